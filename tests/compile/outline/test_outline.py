"""Kernels that are made of calls of a few pieces of code."""
from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitad
from jitad.compile.emit.source import run as run_python
from jitad.compile.emit.source import write
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.kernel import Kernel
from jitad.compile.loops import Calls
from jitad.compile.outline.values import ValueSlot, placed
from jitad.passes.optimise.rewrites import optimise
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from tests.helpers.programs import Random, argument, call, compare, scale_of


@settings(max_examples=25, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(1, 24))
def test_random_programs(data: st.DataObject, length: int) -> None:
    """Against the interpreter, on new inputs too; the printed source does the same."""
    program = Random(lambda n: data.draw(st.integers(0, max(n - 1, 0))))
    tape, inputs = optimise(program.build(length)), program.inputs
    rtol = 1e-11 if program.dtype == "float64" else 2e-4
    kernel = Kernel(tape, tuple(argument_type(argument(x)) for x in inputs), quick=True)
    expected = evaluate(tape, *inputs)
    compare("kernel", call(kernel, inputs), expected, rtol, scale_of(tape, inputs))
    status, printed = run_python(write(kernel.source), kernel.program, tape, inputs)
    assert not status
    compare("source", printed, [np.asarray(e) for e in expected], rtol, scale_of(tape, inputs))
    again = [x * x.dtype.type(1.25) if x.dtype.kind == "f" else x for x in inputs]
    compare("new inputs", call(kernel, again), evaluate(tape, *again), rtol, scale_of(tape, again))


def outlined(f, *args, **options):
    machine = jitad.value_and_grad(f, tier="machine", **options).compile(*args)
    assert machine.tier == "machine" and "operations on the tape machine" in repr(machine)
    return machine, machine.kernel, jitad.value_and_grad(f, tier="kernel", **options)


def test_slices_of_all_lengths_share_pieces():
    def pairs(q, x):
        return sum(np.sum(np.exp(-q * np.abs(x[t + 1:] - x[t]))) for t in range(len(x)))

    x = np.random.default_rng(1).normal(size=120)
    machine, _, kernel = outlined(pairs, 0.5, x)
    rows, = (s for s in machine._kernel.program.body if isinstance(s, Calls))
    assert len(rows.pieces) < 12 < 400 < len(rows.rows)
    for q in (0.5, 1.5):
        assert machine(q, x) == pytest.approx(kernel(q, x), rel=1e-12)


def test_what_is_stored_into_goes_on_in_its_memory_unless_something_else_reads_it():
    def stores(x):
        out, kept = np.zeros(20), []
        for t in range(20):
            out[t] = np.tanh(x[t] + np.sum(out[:t]))
            kept.append(out[::-1][:3] * 1.0)
            out[3:6] = out[2:5] * 2.0
        return np.sum(out) + np.sum(np.stack(kept) ** 2)

    x = np.linspace(-1, 1, 20)
    machine, _, kernel = outlined(stores, x)
    for at in (x, x[::-1].copy()):
        (value, gradient), (expected, wanted) = machine(at), kernel(at)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-12)


def test_matrices_loops_and_layouts():
    def model(a, b, k):
        s = np.zeros(3)
        for _ in range(40):
            s = np.tanh(a @ s + b[:, 0])
        return np.sum(np.linalg.solve(a + 4 * np.eye(3), s)) * k + np.linalg.slogdet(a @ a.T + np.eye(3))[1]

    a, b = np.random.default_rng(2).normal(size=(2, 3, 3))
    machine, _, kernel = outlined(model, a, b, 2.0, argnums=(0, 1, 2))
    for matrix in (a, np.asfortranarray(a), np.zeros((6, 6))[::2, ::2] + a):
        (value, found), (expected, wanted) = machine(matrix, b.T, 2.5), kernel(matrix, b.T, 2.5)
        assert value == pytest.approx(expected, rel=1e-12)
        for g, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10)


def test_branches_and_failures_are_those_of_a_kernel():
    g = jitad.jit_grad(lambda x, i: np.sum(np.linalg.cholesky(x)) * i[2] if x[0, 0] > 1 else np.sum(x * x),
                       tier="machine", on_mismatch="silent")
    x = np.eye(2)
    np.testing.assert_array_equal(g(x, np.ones(3)), 2 * x)
    np.testing.assert_allclose(g(4 * x, np.ones(3))[0, 0], 0.25)
    np.testing.assert_array_equal(g(x, np.ones(3)), 2 * x)
    with pytest.raises(np.linalg.LinAlgError):
        g(np.array([[2.0, 3.0], [3.0, 1.0]]), np.ones(3))
    taken = jitad.jit_grad(lambda x, i: np.sum(x[i] ** 2), tier="machine")
    np.testing.assert_array_equal(taken(np.ones(400), np.array([0, -1]))[[0, -1]], [2, 2])
    with pytest.raises(IndexError):
        taken(np.ones(400), np.array([0, 400]))


def test_second_derivatives_batches_and_complex_numbers():
    def f(x):
        return np.sum(np.abs(np.exp(1j * x) + x[::-1]) ** 2)

    x = np.linspace(0.1, 1, 5)
    for machine, kernel in ((jitad.hessian(f), jitad.hessian(f)), (jitad.batch(jitad.jit_grad(f)),) * 2):
        at = x if machine is not kernel else np.stack([x, 2 * x])
        found = machine.compile(at, tier="machine")
        assert found.tier == "machine"
        np.testing.assert_allclose(found.kernel(at), kernel(at), rtol=1e-12, atol=1e-13)


def test_float32_stays_float32_and_outputs_may_be_arguments():
    def f(x, y):
        return {"same": x, "twice": (y, y), "sum": np.sum(x * y), "first": x[0]}

    x, y = np.arange(600, dtype=np.float32), np.ones(600, np.float32)
    found = jitad.jit(f, tier="machine")(x, y)
    assert found["sum"] == np.sum(x) and found["twice"][1].dtype == np.float32 and found["first"] == 0
    np.testing.assert_array_equal(found["same"], x)
    found["same"][0] = 7
    assert x[0] == 0


def test_memory_is_shared_by_what_does_not_live_at_one_time():
    rng = np.random.default_rng(3)
    slots = [ValueSlot("f8", int(rng.integers(1, 200)), first=int(a), last=int(a + rng.integers(0, 30)))
             for a in rng.integers(0, 300, 400)]
    size = placed(slots)
    for i, a in enumerate(slots):
        assert a.offset >= 0 and a.offset + a.size <= size
        for b in slots[:i]:
            apart = a.last < b.first or b.last < a.first
            assert apart or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert size < sum(s.size for s in slots) / 4


def test_kernels_share_pieces_and_hold_them():
    """What was compiled for one is called by another, also when the first is gone."""
    x = np.linspace(0.1, 1, 300)
    first = jitad.jit(lambda x: np.sum(np.sin(x) * x), tier="machine").compile(x)
    second = jitad.jit(lambda x: np.sum(np.sin(x[:250]) * x[:250]), tier="machine").compile(x)
    held = [set(map(id, c._kernel.native.held)) for c in (first, second)]
    assert held[0] and held[0] == held[1]
    expected = np.sum(np.sin(x[:250]) * x[:250])
    del first
    jitad.cache.clear()
    gc.collect()
    assert second.kernel(x) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", ["f8", "i8", "b1"])
def test_products_and_extrema_of_any_form_are_few_pieces(dtype):
    """Of booleans as well: what is gathered up there are no sums."""
    rng, builder = np.random.default_rng(3), Builder()
    sizes, outputs, expected, inputs = {"i": 3, "j": 4, "k": 5}, [], [], []
    for spec in ("i,i->", "ij,j->i", "i,ij->j", "ij,jk->ki", "ij,ij->j", "ij,ij->", "i,j->ij", "ijk,jk->i", "ij,k->jik",
                 ",ij->ij"):
        given = [rng.normal(size=[sizes[c] for c in part]) * 3 for part in spec.split("->")[0].split(",")]
        given = [np.asarray(x > 0.5 if dtype == "b1" else x, dtype) for x in given]
        values = [builder.input(Aval(x.shape, x.dtype), f"x{len(inputs) + i}") for i, x in enumerate(given)]
        inputs += given
        outputs.append(builder.apply(TABLE["contract"], [v.number for v in values], {"spec": spec}))
        expected.append(np.einsum(spec, *given))
    for row, extremum in (("reduce_max", np.max), ("reduce_min", np.min)):
        outputs.append(builder.apply(TABLE[row], [builder.inputs[2]], {"axes": (1,)}))
        expected.append(extremum(inputs[2], 1))
    kernel = Kernel(builder.tape(outputs), tuple(map(argument_type, inputs)), quick=True)
    for found, wanted in zip(kernel.call(*inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_products_of_many_lengths_share_pieces():
    def filtered(w, x):
        return sum(np.sum(np.sin(x[:, :t] @ w[:t])) + np.sum(x[:, :t].T @ x[:, t]) for t in range(1, x.shape[1]))

    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(3, 20)), rng.normal(size=20)
    machine, _, _ = outlined(filtered, w, x)
    rows, = (s for s in machine._kernel.program.body if isinstance(s, Calls))
    assert len(rows.pieces) < 20
    for found, wanted in zip(machine(w, x), machine.interpret(w, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11)
