"""Batches, derived from the table of primitives: every row, with each choice of the inputs that are batched, gives what
a loop of evaluations gives."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.passes.batching.batched import batched
from jitad.passes.batching.rules import full, rule
from jitad.primitives.core import stop_gradient
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from jitad.testing.rules import Case, cases

LENGTH = 3
ROWS = [row for row in TABLE.values() if row.samples]
CASES = [pytest.param(row, i, id=f"{row.name}-{i}") for row in ROWS for i, _ in enumerate(cases(row))]


def examples(row: Any, number: int) -> list[Case]:
    """The same sample with other numbers; integers, which may be places, change their order, unless the row trusts
    them."""
    rng = np.random.default_rng(number)
    found = []
    for shift in range(LENGTH):
        if row.trusts:
            inputs, params = row.samples(np.random.default_rng(number))[number]
            inputs = [a * (1.0 + shift) if a.dtype.kind == "f" else a for a in inputs]
            found.append(Case(row, tuple(inputs), params))
            continue
        inputs, params = row.samples(rng)[number]
        inputs = [np.roll(a, shift) if a.dtype.kind == "i" else a for a in map(np.asarray, inputs)]
        found.append(Case(row, tuple(inputs), params))
    return found


def check(row: Any, number: int, flags: tuple[bool, ...]) -> None:
    same = examples(row, number)
    first = same[0]
    builder = Builder()
    one = Builder()
    y = row(*(one.input(Aval(x.shape, x.dtype), f"x{i}") for i, x in enumerate(first.inputs)), **first.params)
    inputs = [np.stack([c.inputs[i] for c in same]) if flag else first.inputs[i] for i, flag in enumerate(flags)]
    leaves = {n: (builder.input(Aval(x.shape, x.dtype), f"x{i}"), flag)
              for i, (n, x, flag) in enumerate(zip(one.inputs, inputs, flags, strict=True))}
    ((value, flag),) = batched(builder, one.nodes, leaves, LENGTH, [y.number])
    assert flag == any(flags)
    (found,) = evaluate(builder.finish([full((value, flag), LENGTH)]), *inputs)
    alone = one.finish([y])
    for b, case in enumerate(same):
        (wanted,) = evaluate(alone, *(x if f else s for x, s, f in zip(case.inputs, first.inputs, flags, strict=True)))
        np.testing.assert_allclose(found[b], wanted, rtol=1e-12, atol=1e-13, strict=True)


@pytest.mark.parametrize(("row", "number"), CASES)
def test_a_batch_is_a_loop_of_evaluations(row: Any, number: int) -> None:
    count = len(cases(row)[number].inputs)
    for flags in product((False, True), repeat=count):
        check(row, number, flags)


def test_a_row_without_a_rule_is_done_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TABLE["solve"], "batch", None)
    monkeypatch.delitem(rule.by_name, "concatenate")
    for flags in product((False, True), repeat=2):
        check(TABLE["solve"], 0, flags)
        check(TABLE["concatenate"], 0, flags)


def test_stop_gradient_is_as_any_other() -> None:
    builder = Builder()
    one = Builder()
    y = stop_gradient(one.input(Aval((2,), np.dtype(float)), "x"))
    x = builder.input(Aval((3, 2), np.dtype(float)), "x")
    (found,) = batched(builder, one.nodes, {0: (x, True)}, 3, [y.number])
    (value,) = evaluate(builder.finish([found[0]]), np.arange(6.0).reshape(3, 2))
    assert found[1] and value.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_batch_of_right_sides_is_one_system() -> None:
    """One factorisation of a matrix that all share."""
    builder = Builder()
    one = Builder()
    a, b = (one.input(Aval(shape, np.dtype(float)), name) for shape, name in (((3, 3), "a"), ((3, 2), "b")))
    y = TABLE["solve"](a, b)
    leaves = {a.number: (builder.input(a.aval, "a"), False),
              b.number: (builder.input(Aval((5, 3, 2), np.dtype(float)), "b"), True)}
    ((value, _),) = batched(builder, one.nodes, leaves, 5, [y.number])
    tape = builder.finish([value])
    assert [n.aval.shape for n in tape.nodes if n.prim.name == "solve"] == [(3, 10)]
