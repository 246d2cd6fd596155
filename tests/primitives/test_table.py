"""Tests derived from the table of primitives: every row, by its own samples."""
from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.primitives.core import FLOATS
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Primitive
from jitad.testing import rules as checks
from jitad.testing import scalar
from jitad.testing.rules import Case, CaseGraph, CheckFailure, cases

WITHOUT_SAMPLES = {
    "input": "not an operation",
    "const": "not an operation",
    "stop_gradient": "has no derivative on purpose; tested by hand below",
    "gemm": "a contraction, made by the compiler where a routine is better; tested with the kernels",
    **dict.fromkeys(("factor", "solve_factored", "inv_factored", "det_factored", "slogdet_sign_factored",
                     "slogdet_log_factored", "eigvalsh", "svdvals"),
                    "made by the compiler for matrices with several routines"),
    "custom": "a rule of the user's; tested in test_rules.py",
    "opaque": "a function of the user's; tested in test_opaque.py",
    "solution": "of a tape, what a solver has found; tested in test_roots.py",
    "forwards": "of a tape, whatever it does; tested in test_odes.py",
    "scan": "its result is a bundle; tested in test_scan.py",
    "pick": "its operand is a bundle; tested in test_scan.py",
}
ROWS = [row for name, row in TABLE.items() if name not in WITHOUT_SAMPLES]
UFUNCS = [row for row in ROWS if row.ufunc is not None]
CASES = [pytest.param(case, id=f"{row.name}-{i}") for row in ROWS if row.samples for i, case in enumerate(cases(row))]


# --- the table itself ------------------------------------------------------------------------------

def missing_samples(rows: list[Primitive]) -> list[str]:
    return [f"row {row.name} has no samples" for row in rows if row.samples is None]


def test_every_row_has_samples() -> None:
    assert missing_samples(ROWS) == []


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rows_with_float_results_have_a_rule(row: Primitive) -> None:
    """A derivative that is zero is written down: a forgotten one must not count as zero."""
    results = [row.infer(*(jitad_aval(a) for a in c.inputs), **c.params) for c in cases(row) if c.active]
    if any(aval.dtype.char in FLOATS for aval in results):
        assert row.partials is not None or (row.vjp is not None and row.jvp is not None)


def jitad_aval(a: np.ndarray) -> Any:
    from jitad.tape.types import Aval
    return Aval(a.shape, a.dtype)


# --- every sample ------------------------------------------------------------------------------------

@pytest.mark.parametrize("case", CASES)
def test_value(case: Case) -> None:
    checks.check_value(case)
    checks.check_value(case.astype(np.float32))


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: Case) -> None:
    """Both modes and both orders, one direction and many."""
    checks.check_adjoint(case)
    checks.check_adjoint(case.astype(np.float32))
    checks.check_forward(case)
    checks.check_second_order(case)
    checks.check_directions(case)


@pytest.mark.parametrize("case", CASES)
def test_pullback_tape_is_printed_and_checked(case: Case) -> None:
    tape = checks.build(case).check()
    lines = str(tape).splitlines()
    assert any(case.row.name in line for line in lines) or case.row.name in ("positive",)
    assert lines[-1].startswith("return ")


# --- shapes and layouts --------------------------------------------------------------------------------

CUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "(2, 3)": lambda a: a, "(3,)": lambda a: a[0], "(2, 1)": lambda a: a[:, :1], "()": lambda a: a[0, 0]}


@pytest.mark.parametrize("row", [r for r in ROWS if r.kind == "elementwise" and len(cases(r)[0].inputs) > 1], ids=str)
def test_broadcasting(row: Primitive) -> None:
    """Every pair of shapes at every pair of inputs, the others whole."""
    case = cases(row)[0]
    whole = CUTS["(2, 3)"]
    for cuts in product(CUTS.values(), repeat=len(case.inputs)):
        if sum(cut is not whole for cut in cuts) <= 2:
            checks.check_broadcast(case, cuts)


@pytest.mark.parametrize("row", [r for r in ROWS if r.kind == "elementwise"], ids=str)
def test_empty_and_strided(row: Primitive) -> None:
    case = cases(row)[0]
    empty = Case(row, tuple(np.zeros((0,), a.dtype) for a in case.inputs), case.params)
    checks.check_value(empty)
    checks.check_adjoint(empty)
    for layout in (lambda a: np.repeat(np.atleast_1d(a), 3, axis=-1)[..., ::-2], lambda a: np.asarray(a).T):
        checks.check_value(Case(row, tuple(layout(a) for a in case.inputs), case.params))


# --- a test of the tests ---------------------------------------------------------------------------------

def planted(name: str, **changes: Any) -> Case:
    """The first sample of a copy of a row with a fault."""
    row = copy.copy(TABLE[name])
    for attribute, value in changes.items():
        assert getattr(row, attribute) is not None
        setattr(row, attribute, value)
    return Case(row, cases(TABLE[name])[0].inputs, cases(TABLE[name])[0].params)


FAULTS: dict[str, tuple[Callable[[Case], Any], Callable[[], Case]]] = {
    "wrong sign in tanh": (checks.check_forward, lambda: planted("tanh", partials=lambda y, x: y * y - 1.0)),
    "x for y in exp": (checks.check_forward, lambda: planted("exp", partials=lambda y, x: x)),
    "partials of a product swapped": (checks.check_forward, lambda: planted("mul", partials=lambda y, a, b: (a, b))),
    "forgotten partial": (checks.check_forward, lambda: planted("hypot", partials=lambda y, a, b: (a / y, None))),
    "derivative that cannot be derived": (checks.check_second_order, lambda: planted(
        "log", partials=lambda y, x: 1.0 / TABLE["stop_gradient"](x))),
    "factor in a linear vjp": (checks.check_adjoint, lambda: planted(
        "cumsum", vjp=lambda ct, y, x, axis, reverse: (2.0 * TABLE["cumsum"](ct, axis=axis, reverse=not reverse),))),
    "direction in a linear vjp": (checks.check_adjoint, lambda: planted(
        "cumsum", vjp=lambda ct, y, x, axis, reverse: (TABLE["cumsum"](ct, axis=axis, reverse=reverse),))),
    "transposed solve": (checks.check_adjoint, lambda: planted(
        "solve", vjp=lambda ct, y, a, b: (None, TABLE["solve"](a, ct)))),
    "shape of a cotangent": (checks.check_adjoint, lambda: planted("reduce_sum", vjp=lambda ct, y, x, axes: (ct,))),
    "infer": (checks.check_value, lambda: planted("reduce_sum", infer=lambda x, axes: jitad_aval(np.zeros(x.shape)))),
    "evaluate": (checks.check_value, lambda: planted("cos", evaluate=np.sin)),
    "scalar code": (lambda c: scalar.check_scalar(c.row, "f8"), lambda: planted(
        "sinh", scalar=lambda x: 0.5 * (TABLE["exp"].scalar(x) - TABLE["exp"].scalar(x)))),
    "NaN in scalar code": (lambda c: scalar.check_scalar(c.row, "f8"), lambda: planted(
        "maximum", scalar=TABLE["fmax"].scalar)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_caught(fault: str) -> None:
    check, plant = FAULTS[fault]
    with pytest.raises(CheckFailure):
        check(plant())


def test_the_message_shows_the_worst_component() -> None:
    with pytest.raises(CheckFailure, match=r"case: value: 1 of 3 differ; worst at \[1\]: got .*2\.5.*expected .*2\.0"):
        checks.close("case", "value", np.array([1.0, 2.5, np.nan]), np.array([1.0, 2.0, np.nan]), 1e-9)


def test_a_row_without_samples_is_named() -> None:
    assert missing_samples([planted("exp", samples=None).row]) == ["row exp has no samples"]


# --- by hand -----------------------------------------------------------------------------------------------

def test_stop_gradient() -> None:
    graph = CaseGraph(Case(TABLE["stop_gradient"], (np.array([1.0, 2.0]),), {}))
    assert [v.tolist() for v in graph.function([graph.y, *graph.reverse(), *graph.forward()])(
        *reversed_directions(graph))] == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def reversed_directions(graph: CaseGraph) -> tuple[Any, Any, Any]:
    ct, ts, active = graph.directions()
    return active, ct, ts


def test_evaluate_is_the_oracle_for_every_sample() -> None:
    """A tape of all elementwise rows at once: nothing depends on what else is on the tape."""
    from jitad.tape.builder import Builder
    from jitad.tape.types import Aval
    builder = Builder()
    x = builder.input(Aval((4,), np.dtype(np.float64)), "x")
    rows = [r for r in UFUNCS if r.ufunc.nin == 1 and r.name not in ("invert",)]
    tape = builder.finish([row(x) for row in rows])
    data = np.array([0.2, 0.3, 0.7, 0.9])
    for row, value in zip(rows, evaluate(tape, data), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(value, row.ufunc(data), err_msg=row.name)
