"""Loops for a whole batch."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import jitad
from jitad.api.control import cond, fori_loop, scan, while_loop
from jitad.cache.keys.identity import unwrap
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from jitad.passes.batching.batched import batched
from jitad.passes.batching.rules import full
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.scan import Form
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import Aval
from jitad.trace.record import record

LENGTH = 4
rng = np.random.default_rng(5)


def recorded(f: Callable[..., Any], arguments: list[Any], gradient: bool = False) -> Tape:
    recording = record(unwrap(f), arguments)
    outputs = list(recording.outputs)
    if gradient:
        outputs += pullback(recording.builder, outputs, [one(outputs[0])], list(recording.argument_inputs[:1]))
    return recording.builder.finish(outputs)


def in_batch(tape: Tape, flags: tuple[bool, ...]) -> Tape:
    builder = Builder()
    leaves = {}
    for n, name, flag in zip(tape.inputs, tape.names, flags, strict=True):
        aval = tape.nodes[n].aval
        leaves[n] = builder.input(Aval((LENGTH, *aval.shape) if flag else aval.shape, aval.dtype), name), flag
    values = batched(builder, tape.nodes, leaves, LENGTH, tape.outputs)
    return builder.finish([full(v, LENGTH) for v in values])


def check(f: Callable[..., Any], *arguments: Any, gradient: bool = False) -> list[Tape]:
    """`f` for every choice of the arguments that are batched; each has a first dimension of LENGTH."""
    tape = recorded(f, [a[0] for a in arguments], gradient)
    tapes = []
    for flags in product((False, True), repeat=len(arguments)):
        if not any(flags):
            continue
        tapes.append(in_batch(tape, flags))
        found = evaluate(tapes[-1], *(a if flag else a[0] for a, flag in zip(arguments, flags, strict=True)))
        for b in range(LENGTH):
            wanted = evaluate(tape, *(a[b] if flag else a[0] for a, flag in zip(arguments, flags, strict=True)))
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x[b], y, rtol=1e-12, atol=1e-13, strict=True)
    return tapes


def loops(tape: Tape) -> list[Form]:
    return [Form.of(n) for n in tape.nodes if n.prim.name == "scan"]


def walk(w: Any, start: Any, xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        level, total = carry
        level = np.tanh(w[0] * level + w[1] * x[0])
        return (level, total + level * x[1]), level - total
    (level, total), ys = scan(step, (start, 0.0), xs)
    return total + level + np.sum(ys * np.arange(5.0))


def test_carries_elements_invariants_and_stacks() -> None:
    w, start, xs = rng.normal(size=(LENGTH, 2)), rng.normal(size=LENGTH), rng.normal(size=(LENGTH, 5, 2))
    tapes = check(walk, w, start, xs)
    assert all([form.length for form in loops(tape)] == [5] for tape in tapes)          # not a loop over the batch
    check(walk, w, start, xs, gradient=True)


def test_a_carry_that_meets_the_batch_late() -> None:
    """The second carry depends on the batch from the second step on, the third from the third on."""
    def f(x: Any) -> Any:
        return scan(lambda c, _: ((c[0] * x, c[1] + c[0], c[2] + c[1], c[3] + 1.0), c[2]),
                    (1.0, 0.0, 0.0, 0.0), length=4)
    (tape,) = check(lambda x: f(x)[0][2] + f(x)[0][3] + f(x)[1].sum(), rng.normal(size=LENGTH))
    (form,) = loops(tape)
    shapes = sorted(form.input(i).shape for i in range(form.carries))
    assert shapes == [(), (LENGTH,), (LENGTH,), (LENGTH,)]            # the counter is the same for all


def test_backwards_with_strides_and_a_counter() -> None:
    def f(x: Any, y: Any) -> Any:
        total, ys = scan(lambda c, a: (c * 0.5 + a, c), x, y[1::2], reverse=True)
        return total + np.sum(ys) + fori_loop(0, 3, lambda i, v: v * y[i] + i, x)
    check(f, rng.normal(size=LENGTH), rng.normal(size=(LENGTH, 6)))
    check(f, rng.normal(size=LENGTH), rng.normal(size=(LENGTH, 6)), gradient=True)


def test_a_loop_in_a_loop() -> None:
    def f(x: Any, m: Any) -> Any:
        def outer(c: Any, row: Any) -> Any:
            inner = scan(lambda d, a: (d * x + a, d), c, row)
            return inner[0], np.sum(inner[1])
        end, ys = scan(outer, x, m)
        return end + np.sum(ys)
    check(f, rng.normal(size=LENGTH) * 0.5, rng.normal(size=(LENGTH, 3, 2)), gradient=True)


def test_each_example_leaves_the_loop_when_it_is_done() -> None:
    def f(x: Any, y: Any) -> Any:
        n, v, m = while_loop(lambda c: c[1] < 10.0, lambda c: (c[0] + 1, c[1] * 2.0 + y, c[2] + c[1]),
                             (0, x, np.zeros(2)))
        return n + v + np.sum(m)
    tapes = check(f, np.array([0.3, 5.0, 20.0, 1.0]), np.array([0.1, 1.0, 0.5, 3.0]))
    assert all(len(loops(tape)) == 1 for tape in tapes)


def test_a_step_that_may_fail_is_not_done_for_those_that_are_done() -> None:
    """The second example has left the loop when its matrix is no longer positive definite."""
    def f(x: Any) -> Any:
        return while_loop(lambda v: v > 1.0, lambda v: np.linalg.cholesky(np.array([[v - 1.0]]))[0, 0], x)
    check(f, np.array([30.0, 0.5, 2.0, 5.0]))


def test_each_example_takes_its_branch() -> None:
    def f(x: Any, y: Any) -> Any:
        return cond(x > 0.0, lambda a: np.linalg.cholesky(np.array([[a, 0.0], [0.0, a]]))[0, 0], lambda a: a * y, x)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(-np.eye(2))
    check(f, np.array([4.0, -1.0, 9.0, -2.0]), rng.normal(size=LENGTH))
    check(f, np.array([4.0, -1.0, 9.0, -2.0]), rng.normal(size=LENGTH), gradient=True)


def test_the_kernel_of_a_batch_of_loops() -> None:
    w, start, xs = rng.normal(size=(LENGTH, 2)), rng.normal(size=LENGTH), rng.normal(size=(LENGTH, 5, 2))
    tape = in_batch(recorded(walk, [w[0], start[0], xs[0]], gradient=True), (True, False, True))
    inputs = [w, np.asarray(start[0]), xs]
    value, gradient = Kernel(optimise(tape), tuple(map(argument_type, inputs))).call(*inputs)
    reference = jitad.value_and_grad(walk)
    for b in range(LENGTH):
        expected = reference(w[b], start[0], xs[b])
        np.testing.assert_allclose(value[b], expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient[b], expected[1], rtol=1e-12)
