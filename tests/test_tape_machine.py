"""The tape machine: op-codes derived from the table, schedules, and the choice between it and compiled code."""
from __future__ import annotations

import ctypes
import pickle
import threading

import numpy as np
import pytest

import jitad
from jitad import entry_machine
from jitad.compile import tapemachine_schedule as schedule
from jitad.compile.cython_special import is_special
from jitad.compile.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.loops import tag
from jitad.compile.scalar import Expr, var
from jitad.compile.special_routines import ROUTINES
from jitad.compile.tapemachine import MachineKernel, machine_of
from jitad.differentiate import one, pullback
from jitad.errors import ArgumentTypeError, UnsupportedOperationError
from jitad.evaluate import evaluate
from jitad.primitives.core import TABLE, cast
from jitad.primitives.reduce import reduce_sum
from jitad.tape import Aval, Builder


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

def irregular(count, width=12, seed=1):
    """A program whose choices come from a congruential generator."""
    def f(x):
        s, r = [x[i] for i in range(width)], seed
        for _ in range(count):
            r = (r * 6364136223846793005 + 1442695040888963407) % 2**64
            op, a, b = (r >> 33) % 7, s[(r >> 37) % width], s[(r >> 45) % width]
            s[(r >> 52) % width] = (a + b if op == 0 else a - b * 0.25 if op == 1 else a * b if op == 2 else np.sin(a)
                                    if op == 3 else a / 1.5 if op == 4 else np.tanh(b) if op == 5 else np.maximum(a, b))
        result = 0.0
        for v in s:
            result = result + v if r % 2 else result - v
        return result
    return f


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

def branches(x):
    result = 0.0
    for i in range(3):
        result = result + np.sin(x[i]) if x[i] > 0.5 else result - x[i] ** 2
    return result


def test_other_ways_through_branches_are_siblings():
    g = jitad.jit_grad(branches, tier="machine", on_mismatch="silent")
    for _ in range(2):
        for x in (np.array([1.0, 2, 3]), np.array([0.4, 0.5, 1]), np.zeros(3)):
            np.testing.assert_allclose(g(x), np.where(x > 0.5, np.cos(x), -2 * x))
    assert jitad.cache.info(g).compiles == 3
    machine = g.compile(np.ones(3))._entry.machine
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


# --- the choice ------------------------------------------------------------------------------------

def test_long_irregular_tapes_run_on_the_machine(monkeypatch):
    x = np.linspace(0.1, 1, 12)
    assert jitad.jit_grad(irregular(300)).compile(x).tier == "kernel"
    monkeypatch.setattr(entry_machine, "STRAIGHT", 100)
    g = jitad.jit_grad(irregular(301))
    compiled = g.compile(x)
    assert compiled.tier == "machine" and "operations on the tape machine" in repr(compiled)
    assert compiled.source.startswith("# tape machine: ")
    np.testing.assert_array_equal(compiled(x), g(x))
    assert "tanh" in str(g.tape(x)) and len(compiled.tape) > 300
    for read in (lambda: compiled.source_file, lambda: compiled.step(x)):
        with pytest.raises(UnsupportedOperationError, match="runs on the tape machine and has no generated code"):
            read()


def test_loops_stay_loops(monkeypatch):
    monkeypatch.setattr(entry_machine, "STRAIGHT", 100)

    def f(x):
        h = x[0]
        for i in range(1, 600):
            h = 0.5 * h + np.tanh(x[i]) * h
        return h
    assert jitad.jit_grad(f).compile(np.linspace(0, 1, 600)).tier == "kernel"


def messages(count):
    """Sums over a tree: the same operations in the same order, on operands without any."""
    def f(x):
        message, parents, r = [0.0] * count, [0] * count, 1
        for i in range(1, count):
            r = (r * 6364136223846793005 + 1442695040888963407) % 2**64
            parents[i] = (r >> 33) % i
        for i in range(count - 1, 0, -1):
            e = np.exp(x[i % 12] + np.tanh(message[i]))
            message[parents[i]] = message[parents[i]] + np.log(e + 1 / e)
        return message[0]
    return f


def test_regular_operations_on_irregular_operands_are_given_up():
    x = np.linspace(0.1, 0.5, 12)
    compiled = jitad.value_and_grad(messages(4000)).compile(x)
    assert compiled.tier == "machine"
    value, gradient = compiled(x)
    f, direction, step = messages(4000), np.cos(np.arange(12)), 1e-6
    assert value == pytest.approx(f(x), rel=1e-12)
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    assert gradient @ direction == pytest.approx(slope, rel=1e-6)


def test_large_arrays_are_for_kernels(monkeypatch):
    monkeypatch.setattr(entry_machine, "STRAIGHT", 50)

    def f(x, y):
        return irregular(200)(x) + np.sum(np.exp(y) * y)
    assert jitad.jit_grad(f).compile(np.ones(12), np.ones(5000)).tier == "kernel"


def test_the_tier_can_be_forced_and_a_wrong_one_is_refused():
    x = np.linspace(0.1, 1, 12)
    g = jitad.value_and_grad(irregular(60))
    machine, kernel = g.compile(x, tier="machine"), g.compile(x)
    assert (machine.tier, kernel.tier, g.compile(x, tier="kernel").tier) == ("machine", "kernel", "kernel")
    np.testing.assert_allclose(machine(x)[1], kernel(x)[1], rtol=1e-12)
    for make in (lambda: g.compile(x, tier="fast"), lambda: jitad.jit(strong, tier="fast"),
                 lambda: jitad.value_and_grad(tier=1)(strong)):
        with pytest.raises(ArgumentTypeError, match='tier must be "kernel" or "machine"'):
            make()
    with pytest.raises(UnsupportedOperationError, match=r'no form for tier="machine": det at .*test_tape_machine'):
        jitad.jit_grad(lambda a: np.linalg.det(a.reshape(2, 2)), tier="machine")(np.arange(4.0))
    assert jitad.jit(lambda x, tier: x * tier).compile(1.0, tier=2.0)(1.0, 2.0) == 2.0


def module_level(x):
    return x[0] * x[1] + np.exp(x[2])


on_machine = jitad.jit_grad(tier="machine")(module_level)


def test_a_pickle_keeps_the_tier():
    x = np.arange(3.0)
    compiled = jitad.jit_grad(module_level).compile(x, tier="machine")
    again = pickle.loads(pickle.dumps(compiled))
    assert again.tier == "machine"
    np.testing.assert_array_equal(again(x), compiled(x))
    assert on_machine.compile(x).tier == "machine"


def test_nothing_of_it_is_stored_on_the_disk(tmp_path, monkeypatch):
    before = jitad.cache.configuration().disk
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jitad.cache, "_persistent", None)
    jitad.cache.configure(disk=True)
    try:
        for tier, files in (("machine", 0), ("kernel", 1)):
            jitad.jit_grad(module_level, tier=tier)(np.ones(3))
            assert bool([p for p in tmp_path.rglob("*") if p.is_file()]) == bool(files)
    finally:
        jitad.cache.configure(disk=before)
        jitad.cache._persistent = None


def test_the_cache_counts_its_memory_and_lets_go_of_it(monkeypatch):
    monkeypatch.setattr(entry_machine, "STRAIGHT", 100)
    g = jitad.jit_grad(irregular(310))
    g(np.ones(12))
    entry = g.compile(np.ones(12))._entry
    assert isinstance(next(iter(entry.kernels.values())), MachineKernel)
    assert entry.nbytes > 16 * entry.machine.program.size
    jitad.cache.clear(g)
    assert jitad.cache.info(g).currsize == 0


def test_as_a_c_function():
    x = np.linspace(0.1, 1, 12)
    compiled = jitad.jit_grad(irregular(62), tier="machine").compile(x)
    made = compiled.cfunc
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(made.address)
    gradient, value = np.empty(12), np.empty(1)
    pointers = gradient.ctypes.data, value.ctypes.data, made.data
    assert function(12, x.ctypes.data, *pointers) == 0
    np.testing.assert_array_equal(gradient, compiled(x))
    assert value[0] == irregular(62)(x)
    assert function(11, x.ctypes.data, *pointers) == -1
    assert function(12, np.full(12, np.nan).ctypes.data, *pointers) == 1
