"""Structural sparsity and colourings: patterns that miss nothing, and are small where elements stay apart."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import jitad.primitives  # noqa: F401  (fills the table)
from jitad.call.build.derive import _by_columns
from jitad.call.build.sparse import sparse_hessian, sparse_jacobian, structure
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.sparsity.colours import columns_apart, single, star
from jitad.passes.sparsity.patterns import units
from jitad.passes.sparsity.propagate import propagate
from jitad.primitives.core import stop_gradient
from jitad.primitives.index import gather, put, scatter
from jitad.primitives.reduce import contract, cumsum, reduce_sum
from jitad.primitives.scan import loop
from jitad.primitives.view import slice_dims
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from jitad.testing.rules import Case, cases
from tests.helpers.programs import Random as Program
from tests.helpers.random_loops import Random as Loop

F8 = np.dtype("f8")
ROWS = [row for row in TABLE.values() if row.samples and row.kind not in ("input", "const")]


def dense(builder, outputs, wrt, inputs):
    """The dense Jacobian of all outputs by all of `wrt`, as a matrix."""
    blocks = _by_columns(builder, outputs, wrt)
    found = iter(evaluate(builder.finish([b for line in blocks for b in line]), *inputs))
    return np.vstack([np.hstack([np.reshape(next(found), (o.aval.size, w.aval.size)) for w in wrt]) for o in outputs])


def anywhere(builder, outputs, wrt):
    """The pattern where nothing is known of the integers that pick elements."""
    width, known, first = sum(w.aval.size for w in wrt), {}, 0
    for w in wrt:
        known[w.number] = units(w.shape, first, width)
        first += w.aval.size
    found = propagate(builder.nodes, [o.number for o in outputs], known, lambda number: None)
    return np.vstack([np.zeros((o.aval.size, width), bool) if p is None else p.matrix().toarray()
                      for o, p in zip(outputs, found, strict=True)])


def check(builder, outputs, wrt, inputs, sizes=True):
    """The pattern has all elements that are not zero, and both modes give the dense Jacobian; returns the pattern."""
    given = dict(zip(builder.inputs, inputs, strict=True))
    pattern = structure(builder, outputs, wrt, given).toarray()
    expected = dense(builder, outputs, wrt, inputs)
    assert not (~pattern & (expected != 0) & np.isfinite(expected)).any()
    assert not (pattern & ~anywhere(builder, outputs, wrt)).any()
    for mode in ("forward", "reverse"):
        values, matrix = sparse_jacobian(builder, outputs, wrt, mode, given)
        (data,) = evaluate(builder.finish([values]), *inputs)
        found = matrix.build([data]).toarray()
        right = np.isfinite(expected)
        np.testing.assert_allclose(found[right], expected[right], rtol=1e-9, atol=1e-9 * (1 + np.abs(
            expected[right]).max(initial=0)))
    return pattern


# --- the table -------------------------------------------------------------------------------------------

def on_a_tape(case):
    builder = Builder()
    values = [builder.input(Aval(a.shape, a.dtype), f"x{i}") for i, a in enumerate(case.inputs)]
    return builder, values, case.row(*values, **case.params)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_no_row_misses_a_derivative(row):
    for case in cases(row)[:1 if row.kind in ("elementwise", "call") else None]:
        builder, values, y = on_a_tape(case)
        if y.dtype.kind == "f" and case.active and y.aval.size <= 100:
            check(builder, [y], [values[i] for i in case.active], case.inputs)


def test_every_kind_of_row_with_derivatives_is_met():
    kinds = {row.kind for row in ROWS}
    assert {"elementwise", "view", "spread", "gather", "scatter", "reshape", "concatenate", "update", "put", "triangle",
            "reduce", "contract", "cumulative", "recurrence", "call"} <= kinds


EXACT = ("view", "spread", "gather", "scatter", "reshape", "concatenate", "update", "put", "triangle", "reduce_sum",
         "contract", "cumsum", "mul", "sin", "select", "cast")


@pytest.mark.parametrize("row", [r for r in ROWS if r.name in EXACT or r.kind in EXACT], ids=str)
def test_patterns_are_exact_where_elements_stay_apart(row):
    """What depends on an element does so at some random point: structural zeros are all that is zero."""
    for case in cases(row):
        builder, values, y = on_a_tape(case)
        if y.dtype.kind == "f" and case.active:
            wrt, total = [values[i] for i in case.active], 0.0
            pattern = structure(builder, [y], wrt, dict(zip(builder.inputs, case.inputs, strict=True))).toarray()
            for seed in range(8):
                rng = np.random.default_rng(seed)
                inputs = [np.asarray(rng.uniform(0.5, 2, a.shape) if a.dtype.kind == "f" else
                                     rng.uniform(size=a.shape) < 0.5 if a.dtype.kind == "b" else a)
                          for a in case.inputs]
                total = total + np.abs(dense(builder, [y], wrt, inputs))
            np.testing.assert_array_equal(pattern, total != 0)


def test_batches_of_matrices_are_apart():
    rng = np.random.default_rng(0)
    case = Case(TABLE["inv"], (rng.normal(size=(3, 2, 2)) + 2 * np.eye(2),), {})
    builder, values, y = on_a_tape(case)
    np.testing.assert_array_equal(check(builder, [y], values, case.inputs), np.kron(np.eye(3), np.ones((4, 4))) != 0)


# --- data, integers, nothing -----------------------------------------------------------------------------

def vector(*sizes):
    builder = Builder()
    return builder, [builder.input(Aval((n,), F8), f"x{i}") for i, n in enumerate(sizes)]


def test_places_that_are_data_are_known_and_guarded():
    builder, (x,) = vector(4)
    index = builder.input(Aval((3,), np.dtype("i8")), "index")
    y = gather(TABLE["sin"](x), index + 1, axes=(0,))
    pattern = check(builder, [y], [x], [np.arange(4.0), np.array([0, 2, -2])])
    np.testing.assert_array_equal(pattern, np.eye(4)[[1, 3, -1]] != 0)
    assert len(builder.guards) == 1


@pytest.mark.parametrize("use", [
    lambda x, i: gather(x, i, axes=(0,)), lambda x, i: scatter(x, i, axes=(0,), shape=(5,)),
    lambda x, i: put(x * 2.0, TABLE["sin"](x), i, axes=(0,))])
def test_places_that_are_differentiated_may_be_any(use):
    builder, (x,) = vector(4)
    y = use(x, TABLE["argsort"](x, axis=0) if "axis" in TABLE["argsort"].samples(np.random.default_rng(0))[0][1]
            else TABLE["argsort"](x))
    assert check(builder, [y], [x], [np.array([0.3, -1.0, 2.0, 0.1])]).all()
    assert not builder.guards


def test_what_is_no_derivative_is_no_element():
    builder, (x,) = vector(3)
    y = stop_gradient(x) * 2.0 + TABLE["floor"](x) + TABLE["sign"](x)
    z = TABLE["mul"](x, x)
    assert not check(builder, [y], [x], [np.ones(3)]).any()
    np.testing.assert_array_equal(check(builder, [z, y], [x], [np.ones(3)]), np.eye(6, 3) != 0)


def test_several_outputs_and_arguments_lie_beside_one_another():
    builder, (a, b) = vector(2, 3)
    outputs = [reduce_sum(b, (0,)), a * slice_dims(b, (slice(1, 3),)), contract(a, b, "i,j->ij")]
    pattern = check(builder, outputs, [b, a], [np.ones(2), np.arange(3.0)])
    np.testing.assert_array_equal(pattern[:3].astype(int), [[1, 1, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]])
    assert pattern.shape == (9, 5)
    np.testing.assert_array_equal(pattern[3:], np.hstack([np.tile(np.eye(3), (2, 1)), np.repeat(np.eye(2), 3, 0)]) != 0)


# --- loops -----------------------------------------------------------------------------------------------

def chain(body, carries, arrays, length, **options):
    """The outputs of a loop over slices of one vector, and the vector."""
    builder, (x,) = vector(length + 1)
    inner = Builder()
    places = [inner.input(Aval((), F8), f"p{i}") for i in range(carries + len(arrays))]
    tape = inner.finish(body(*places))
    first = [slice_dims(x, (0,)) for _ in range(carries)]
    finals, stacks = loop(builder, tape, first, [(x, o, 1) for o in arrays], [], length, **options)
    return builder, x, finals, stacks


def test_a_loop_that_keeps_the_last_element():
    """Stacks that read a carry depend on what the step before brought, and on no more."""
    builder, x, finals, stacks = chain(lambda before, total, now: [now, total + now * before, before * now], 2, [1], 5)
    pattern = check(builder, stacks, [x], [np.arange(1.0, 7)])
    np.testing.assert_array_equal(pattern, (np.eye(5, 6) + np.eye(5, 6, 1)) != 0)
    assert check(builder, finals, [x], [np.arange(1.0, 7)])[1].all()


def test_a_loop_that_remembers():
    builder, x, _, stacks = chain(lambda s, now: [s * 0.5 + now, TABLE["sin"](s)], 1, [1], 4, reverse=True)
    pattern = check(builder, stacks, [x], [np.arange(1.0, 6)])
    expected = np.triu(np.ones((4, 5)), 2)
    expected[:, 0] = 1
    np.testing.assert_array_equal(pattern, expected != 0)


def test_of_long_loops_carries_may_be_what_they_are_at_any_step(monkeypatch):
    monkeypatch.setattr("jitad.passes.sparsity.scan.STEPS", 2)
    builder, x, _, stacks = chain(lambda before, now: [now, before * now, now], 1, [1], 5)
    pattern = check(builder, stacks, [x], [np.arange(1.0, 7)])
    assert pattern[:5].all()
    np.testing.assert_array_equal(pattern[5:], np.eye(5, 6, 1) != 0)


@pytest.mark.parametrize("seed", range(20))
def test_random_loops(seed):
    problem, builder = Loop(seed), Builder()
    values, total = problem.as_loop(builder)
    gradient = pullback(builder, [total], [one(total)], values)
    if sum(v.aval.size for v in values) <= 200:
        check(builder, [total, *gradient], values, problem.inputs)


# --- random programs -------------------------------------------------------------------------------------

@settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(1, 14))
def test_random_programs(data, length):
    program = Program(lambda n: data.draw(st.integers(0, max(n - 1, 0))))
    program.long, program.dtype = 0, "float64"
    tape = program.build(length)
    builder = Builder()
    inputs = [builder.input(tape.nodes[i].aval, f"x{k}") for k, i in enumerate(tape.inputs)]
    outputs = builder.replay(tape, inputs)
    wrt = [v for v in inputs if v.dtype.kind == "f" and v.aval.size]
    outputs = [o for o in outputs if o.dtype.kind == "f"]
    if wrt and sum(w.aval.size for w in wrt) <= 60 and sum(o.aval.size for o in outputs) <= 300:
        check(builder, outputs, wrt, program.inputs)


# --- colourings ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(10))
def test_columns_of_a_colour_share_no_row(seed):
    pattern = random_array((30, 40), density=0.01 + 0.03 * seed, rng=seed).tocsr().astype(bool)
    colours = columns_apart(pattern)
    assert single(pattern, colours).all()
    assert colours.min() == 0 and set(colours) == set(range(colours.max() + 1))


@pytest.mark.parametrize("seed", range(20))
def test_every_element_of_a_symmetric_matrix_can_be_read(seed):
    half = random_array((40, 40), density=0.005 * (seed + 1), rng=seed).tocsr().astype(bool)
    pattern = (half + half.T).tocsr()
    pattern.sort_indices()
    colours = star(pattern)
    alone = csr_array((single(pattern, colours), pattern.indices, pattern.indptr), shape=pattern.shape).toarray()
    wanted = pattern.toarray()
    assert ((alone | alone.T) == wanted).all()
    np.fill_diagonal(wanted, False)
    rows, columns = wanted.nonzero()
    assert (colours[rows] != colours[columns]).all()


def test_known_numbers_of_colours():
    band = csr_array(np.abs(np.subtract.outer(np.arange(50), np.arange(50))) <= 1)
    arrow = csr_array(np.eye(50, dtype=bool) | (np.arange(50) == 7) | (np.arange(50) == 7)[:, None])
    assert columns_apart(band).max() + 1 == 3 and star(band).max() + 1 == 3
    assert columns_apart(arrow).max() + 1 == 50 and star(arrow).max() + 1 == 2
    assert star(csr_array(np.ones((6, 6), bool))).max() + 1 == 6
    assert columns_apart(csr_array((4, 5), dtype=bool)).tolist() == [0] * 5


@pytest.mark.parametrize("seed", range(6))
def test_hessians_are_symmetric_and_right(seed):
    """A function that is a sum of products of three random elements each."""
    rng, n = np.random.default_rng(seed), 14
    builder, (x,) = vector(n)
    sets = rng.integers(0, n, (3, 10))
    a, b, c = (gather(x, builder.const(s), axes=(0,)) for s in sets)
    y = reduce_sum(TABLE["exp"](a * b) * TABLE["sin"](c), (0,)) + reduce_sum(cumsum(
        slice_dims(x, (slice(0, 3),)), axis=0, reverse=False) * slice_dims(x, (slice(3, 6),)), (0,))
    gradients = pullback(builder, [y], [one(y)], [x])
    values, matrix = sparse_hessian(builder, gradients, [x], {})
    at = rng.normal(size=n)
    (data,) = evaluate(builder.finish([values]), at)
    found, expected = matrix.build([data]).toarray(), dense(builder, gradients, [x], [at])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert (found == found.T).all()
