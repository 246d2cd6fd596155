"""The tape machine: op-codes derived from the table, schedules, and the choice between it and compiled code."""
from __future__ import annotations

import threading

import numpy as np
import pytest

import jitad
from jitad.compile.entry.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.llvm.cython_special import is_special
from jitad.compile.loops import tag
from jitad.compile.math.algorithms import ROUTINES
from jitad.compile.tapemachine import schedule as schedule
from jitad.compile.tapemachine.machine import machine_of
from jitad.passes.differentiate.modes import one, pullback
from jitad.primitives.core import cast
from jitad.primitives.reduce import reduce_sum
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.expr import Expr, var
from jitad.tape.types import TABLE, Aval
from tests.helpers.long_programs import irregular


def plain(prim):
    """Whether the row is arithmetic, written out; of those that call a function of SciPy two will do."""
    given, params = prim.samples(np.random.default_rng(0))[0]
    if prim.name in ("gammainc", "betainc") or prim.scalar is None:
        return True
    stack = [prim.scalar(*(var(f"x{i}", tag(np.asarray(x).dtype)) for i, x in enumerate(given)), **params)]
    seen = set()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        if is_special(e.op) or e.op in ROUTINES:
            return False
        seen.add(e)
        stack += [a for a in e.args if isinstance(a, Expr)]
    return True


ROWS = [p for p in TABLE.values() if p.kind == "elementwise" and p.samples and p.name != "alias" and plain(p)]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 3.0, -2.5, 1e-300, 1e300])


def total(outputs):
    """A number that depends on all of the outputs that have derivatives."""
    result = outputs[0].builder.const(0.0)
    for k, y in enumerate(outputs):
        if y.dtype.kind == "f":
            result = result + cast(reduce_sum(y, tuple(range(y.ndim))), np.float64) * (1.0 + 0.1 * k)
    return result


def compared(builder, outputs, inputs, scalar=None):
    """(got, expected) for outputs and gradients, by the machine and by the interpreter on the differentiated tape."""
    scalar = total(outputs) if scalar is None else scalar
    wrt = [builder.value(i) for i in builder.inputs if builder.nodes[i].aval.dtype.kind == "f"]
    machine = machine_of(builder, outputs, scalar, wrt)
    twice = [machine.run(inputs), machine.run(inputs)]
    for a, b in zip(*twice, strict=True):
        np.testing.assert_array_equal(a, b)
    tape = builder.finish([*outputs, *pullback(builder, [scalar], [one(scalar)], wrt)])
    return twice[0], evaluate(tape, *inputs)


def of_rows(dtype, size, builder=None, outputs=(), inputs=(), rows=ROWS):
    """All rows on one tape, on sample inputs, repeated to have `size`."""
    rng, builder, outputs, inputs = np.random.default_rng(0), builder or Builder(), [*outputs], [*inputs]
    for prim in rows:
        for given, params in prim.samples(rng)[:1]:
            arrays = [np.resize(x, size) for x in given]
            if dtype is not None:
                arrays = [x.astype(dtype) if x.dtype == np.float64 else x for x in arrays]
            values = [builder.input(Aval(x.shape, x.dtype), f"x{len(inputs) + i}") for i, x in enumerate(arrays)]
            outputs.append(prim(*values, **params))
            inputs += arrays
    return builder, outputs, inputs


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_every_row_of_the_table_forward_and_reverse(dtype):
    """In runs of one and of many."""
    builder, outputs, inputs = of_rows(dtype, (19,), *of_rows(dtype, (1,)))
    got, expected = compared(builder, outputs, inputs)
    tolerance = 2e-11 if dtype is None else 3e-4
    for a, b in zip(got, expected, strict=True):
        assert np.asarray(a).dtype == b.dtype or not b.ndim
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance if dtype else 1e-300)


def test_values_at_special_points_are_those_of_numpy():
    names = ("add sub mul div neg abs sign square sqrt reciprocal maximum minimum fmax fmin exp log log1p tanh "
             "floor").split()
    builder = Builder()
    a, b = (builder.input(Aval((169,), np.dtype(float)), n) for n in "ab")
    x, y = (g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL))
    outputs = [TABLE[n](*(a, b)[:TABLE[n].ufunc.nin]) for n in names]
    machine = machine_of(builder, outputs)
    with np.errstate(all="ignore"):
        for name, got in zip(names, machine.run([x, y]), strict=True):
            expected = TABLE[name].ufunc(*(x, y)[:TABLE[name].ufunc.nin])
            np.testing.assert_allclose(got, expected, rtol=1e-15, err_msg=name)


# --- structural zeros ------------------------------------------------------------------------------

def strong(x):
    """Gradients that are finite only where structural zeros meet no infinity."""
    return (np.where(x[0] > 0, np.log(x[0]), 0.0) + np.where(x[1] >= 0, x[1], np.sqrt(-x[1]))
            + np.where(x[2] > 0, np.sqrt(x[2]) * np.log(x[2]), x[2] * 2.0) + np.maximum(x[3], x[4]) + abs(x[5]))


@pytest.mark.parametrize("x", [np.zeros(6), np.array([1.0, -4.0, 2.0, 1.0, 1.0, -3.0]), -np.ones(6)])
def test_structural_zeros_and_ties_are_those_of_kernels(x):
    machine, kernel = (jitad.value_and_grad(strong, tier=t, on_mismatch="silent")(x) for t in ("machine", "kernel"))
    np.testing.assert_allclose(machine[0], kernel[0])
    np.testing.assert_array_equal(machine[1], kernel[1])
    assert np.isfinite(machine[1]).all()


def test_a_computed_zero_still_meets_an_infinity():
    assert np.isnan(jitad.jit_grad(lambda x: 0.0 * np.log(x), tier="machine")(0.0))


def test_a_zero_that_several_untaken_branches_leave_stays_structural():
    def f(x):
        u = np.log(x)
        return np.where(x > 1, u, 0.0) + np.where(x > 2, u * u, 0.0)
    assert jitad.jit_grad(f, tier="machine")(0.0) == 0.0


# --- schedules -------------------------------------------------------------------------------------

def test_against_the_interpreter_on_new_inputs():
    compiled = jitad.value_and_grad(irregular(500), tier="machine").compile(np.linspace(0.1, 1, 12))
    for x in (np.linspace(0.1, 1, 12), np.random.default_rng(0).normal(size=12), np.zeros(12)):
        (value, gradient), (expected, slope) = compiled(x), compiled.interpret(x)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(gradient, slope, rtol=1e-11, atol=1e-13)


def test_long_sums_are_one_operation_added_in_order():
    x = np.array([1e16, 1.0, -1e16, 1.0] * 10)

    def added(x):
        result = x[0]
        for i in range(1, 40):
            result = result + x[i] if i % 3 else result - x[i]
        return result

    def f(x):
        return added(x) ** 2
    compiled = jitad.value_and_grad(f, tier="machine").compile(x)
    assert "sums" in compiled.source
    value, gradient = compiled(x)
    assert value == f(x)
    signs = np.where((np.arange(40) % 3 == 0) & (np.arange(40) > 0), -1.0, 1.0)
    np.testing.assert_array_equal(gradient, 2 * added(x) * signs)
    assert added(x) != np.sum(signs * x)                    # the order shows


def test_partial_sums_that_are_used_otherwise_are_kept():
    def f(x):
        result, kept = x[0], 0.0
        for i in range(1, 30):
            result = result + x[i]
            if i == 17:
                kept = result
        return result * kept
    x = np.linspace(0, 1, 30)
    value, gradient = jitad.value_and_grad(f, tier="machine")(x)
    first, whole = x[:18].sum(), x.sum()
    np.testing.assert_allclose(value, first * whole)
    np.testing.assert_allclose(gradient, first + whole * (np.arange(30) < 18))


def test_cheap_operations_are_mixed_up_to_a_number():
    builder, outputs, inputs = of_rows(None, (11,), rows=[p for p in ROWS if p.name in (
        "add sub mul div neg abs square maximum minimum reciprocal copysign hypot".split())])
    got, expected = compared(builder, outputs, inputs)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    mixture = machine_of(builder, outputs, total(outputs)).program.codes[0]
    assert len(mixture.codes) == schedule.MIXED


# --- arrays ----------------------------------------------------------------------------------------

def test_small_arrays_are_written_out():
    A = np.arange(9.0).reshape(3, 3)

    def f(x, a, k, flag):
        v = np.zeros(3)
        v[1:] = x[:2] * 2
        v = v + np.array([x[0], x[1] * x[2], 1.0])
        m = np.outer(v, x) @ a + np.cumsum(x)[::-1].reshape(1, 3)
        b = np.where(np.any(m > k) & flag, np.tril(m), m.T)
        return np.sum(b[[0, 2, 2]]) + np.concatenate([x, v]) @ np.ones(6) + k // 2
    x = np.array([0.3, -0.2, 0.9])
    for flag in (True, False):
        machine, kernel = (jitad.value_and_grad(f, (0, 1), tier=t)(x, A, 3, flag) for t in ("machine", "kernel"))
        np.testing.assert_allclose(machine[0], kernel[0])
        for a, b in zip(machine[1], kernel[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_results_have_the_forms_of_kernels():
    def f(x, n):
        return {"a": x * 2, "b": (x[0], n + 1, x > 0.5), "c": 1.0}
    x = np.array([0.25, 0.75], np.float32)
    a, b = (jitad.jit(f, tier=t)(x, 3) for t in ("machine", "kernel"))
    np.testing.assert_array_equal(a["a"], b["a"])
    assert a["a"].dtype == np.float32
    assert a["b"][:2] == b["b"][:2] and [*map(type, a["b"])] == [*map(type, b["b"])] and a["c"] == 1.0
    np.testing.assert_array_equal(a["b"][2], [False, True])


# --- guards, captures, threads ---------------------------------------------------------------------

def test_other_ways_through_branches_are_siblings():
    def either(x):
        return np.sum(np.sin(x)) if x[0] > 0.5 else -np.sum(x * x)

    g = jitad.jit_grad(either, tier="machine", on_mismatch="silent")
    for _ in range(2):
        for x in (np.array([1.0, 2, 3]), np.array([0.4, 0.5, 1]), np.zeros(3)):
            np.testing.assert_allclose(g(x), np.cos(x) if x[0] > 0.5 else -2 * x)
    assert jitad.cache.info(g).compiles == 2
    machine = g.compile(np.ones(3))._specialization.machine
    assert machine.missed([np.ones(3)]) is None
    assert machine.missed([np.zeros(3)]).where.filename == __file__
    with pytest.raises(StatusMiss):
        machine.run([np.zeros(3)])
    np.testing.assert_allclose(g(np.ones(3)), np.cos(1.0))          # the memory of the failed run is clean


def test_captures_are_inputs_and_signatures_are_checked():
    scale, data = 2.0, np.arange(3.0)
    g = jitad.jit_grad(lambda x: np.sum(x * data * scale), tier="machine", on_mismatch="silent")
    np.testing.assert_array_equal(g(np.ones(3)), 2 * np.arange(3.0))
    data[0], scale = 5.0, 3.0
    np.testing.assert_array_equal(g(np.ones(3)), [15.0, 3.0, 6.0])
    np.testing.assert_array_equal(g(np.asfortranarray(np.ones((3, 3)))[1]), [15.0, 3.0, 6.0])
    kernel = g.compile(np.ones(3))._kernel
    for wrong in ((np.ones(4), data, scale), (np.ones(3, np.float32), data, scale), (np.ones(3), data, 1),
                  (np.ones(3), data)):
        with pytest.raises(SignatureMiss):
            kernel.call(*wrong)


def test_threads_have_memories_of_their_own():
    g = jitad.jit_grad(irregular(400), tier="machine")
    points = [np.random.default_rng(i).normal(size=12) for i in range(8)]
    expected = [g(x) for x in points]
    wrong = []

    def work(k):
        for _ in range(50):
            if not np.array_equal(g(points[k]), expected[k]):
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong
