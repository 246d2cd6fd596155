"""Rows that look up several groups: one table of their combinations, checked once where the index is bound."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.compile.lower.lower import program_of
from jitad.passes.optimise.crossed import crossed
from jitad.passes.split.prologue import split
from jitad.primitives.index import gather
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from tests.helpers.public import fresh  # noqa: F401

SIZES, ROWS = (4, 5, 7), 1001
rng = np.random.default_rng(11)
q, y = rng.normal(size=sum(SIZES)), rng.random(ROWS)


def logp(q, y, i, j, k):
    a, b, c = q[:4], q[4:9], q[9:]
    eta = 0.3 + y * q[0] + a[i] + b[j] + c[k]
    return np.sum(y * eta - np.log1p(np.exp(eta)))


def expected(q, y, i, j, k):
    a, b, c = q[:4], q[4:9], q[9:]
    eta = 0.3 + y * q[0] + a[i] + b[j] + c[k]
    ct = y - 1 / (1 + np.exp(-eta))
    grad = np.concatenate([np.zeros_like(part) for part in (a, b, c)])
    for part, index in ((grad[:4], i), (grad[4:9], j), (grad[9:], k)):
        np.add.at(part, index, ct)
    grad[0] += ct @ y
    return np.sum(y * eta - np.log1p(np.exp(eta))), grad


def drawn(low, high, order=np.asarray):
    return tuple(order(rng.integers(low(n), high(n), size=ROWS)) for n in SIZES)


INDICES = {
    "random": drawn(lambda n: 0, lambda n: n),
    "negative": drawn(lambda n: -n, lambda n: n),
    "sorted": drawn(lambda n: 0, lambda n: n, np.sort),
    "one group": drawn(lambda n: n - 1, lambda n: n),
}


@pytest.mark.parametrize("name", INDICES)
def test_any_index_after_the_first_call(name):
    g = jitad.value_and_grad(logp)
    g(q, y, *INDICES["random"])
    value, grad = g(q, y, *INDICES[name])
    right = expected(q, y, *INDICES[name])
    np.testing.assert_allclose(value, right[0], rtol=1e-12)
    np.testing.assert_allclose(grad, right[1], rtol=1e-10, atol=1e-11)
    bound = jitad.jit_grad(logp).bind(**dict(zip("yijk", (y, *INDICES[name]), strict=True)))
    np.testing.assert_allclose(bound(q), right[1], rtol=1e-10, atol=1e-11)


def test_second_order_and_single_precision():
    hessian = jitad.hessian(logp)(q, y, *INDICES["negative"])
    step = 1e-6
    columns = [(expected(q + step * d, y, *INDICES["negative"])[1] - expected(q - step * d, y, *INDICES["negative"])[1])
               / (2 * step) for d in np.eye(q.size)]
    np.testing.assert_allclose(hessian, columns, rtol=1e-5, atol=1e-5)
    grad = jitad.jit_grad(logp)(q.astype("f4"), y.astype("f4"), *INDICES["negative"])
    assert grad.dtype == np.float32
    np.testing.assert_allclose(grad, expected(q, y, *INDICES["negative"])[1], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("place", range(len(SIZES)))
@pytest.mark.parametrize("low", [False, True])
def test_out_of_bounds_is_the_error_of_numpy(place, low):
    g = jitad.jit_grad(logp)
    g(q, y, *INDICES["random"])
    indices = [i.copy() for i in INDICES["random"]]
    indices[place][700] = -SIZES[place] - 1 if low else SIZES[place]
    with pytest.raises(IndexError) as error:
        logp(q, y, *indices)
    for call in (lambda: g(q, y, *indices), lambda: g.bind(y=y, i=indices[0], j=indices[1], k=indices[2])(q)):
        with pytest.raises(IndexError, match=str(error.value)):
            call()


def test_combinations_are_looked_up_at_once():
    tape = jitad.value_and_grad(logp).compile(q, y, *INDICES["random"]).tape
    names = [node.prim.name for node in crossed(tape).nodes]
    assert (names.count("gather"), names.count("scatter")) == (2, 2)       # (7, 5) and what has no room: 4
    few = [i[:100] for i in INDICES["random"]]
    assert crossed(few_rows := jitad.value_and_grad(logp).compile(q, y[:100], *few).tape) is few_rows


def test_the_same_grouping_twice_is_one_lookup():
    def twice(q, y, i, j):
        return np.sum((y - q[:4][i] - 0.0 + (q[4:8][i] + q[4:9][j])) ** 2)

    i, j, _ = INDICES["negative"]
    g = jitad.value_and_grad(twice)
    value, grad = g(q, y, i, j)
    np.testing.assert_allclose(value, twice(q, y, i, j), rtol=1e-12)
    numeric = [(twice(q + 1e-6 * d, y, i, j) - twice(q - 1e-6 * d, y, i, j)) / 2e-6 for d in np.eye(q.size)]
    np.testing.assert_allclose(grad, numeric, rtol=1e-5, atol=1e-5)


def test_an_addend_that_stands_twice_counts_twice():
    """The optimiser makes ``2 * x`` of it; a tape that it has not seen is right as well."""
    i, j, _ = INDICES["negative"]
    builder = Builder()
    a, b, at, by = (builder.input(Aval(x.shape, x.dtype), name)
                    for x, name in ((q[:4], "a"), (q[4:9], "b"), (i, "i"), (j, "j")))
    eta = gather(a, at, axes=(0,)) + gather(b, by, axes=(0,))
    tape = crossed(builder.finish([builder.value(builder.apply(TABLE["add"], [eta.number] * 2, {}))]))
    np.testing.assert_allclose(evaluate(tape, q[:4], q[4:9], i, j)[0], 2 * (q[:4][i] + q[4:9][j]), rtol=1e-14)


def test_bound_indices_are_checked_once():
    tape = jitad.value_and_grad(logp).compile(q, y, *INDICES["random"]).tape
    found = split(tape, (0,))
    assert [node.prim.name for node in found.prologue.nodes].count("within") == 2
    statuses = [s for s in program_of(found.main, ("C",) * len(found.main.inputs)).body if type(s).__name__ == "Loop"]
    assert not any("within" in repr(s) for s in statuses)


@pytest.mark.parametrize("slot", "ij")
def test_a_place_of_several_is_in_no_further_table(slot):
    """The bound index joins the others once it is an input; of a place in a place nobody would check each index."""
    def squares(free, k):
        x, a, b, c = free["x"] ** 2, np.zeros(3), np.zeros(4), np.zeros(5)
        np.add.at(a, free["i"], x)
        np.add.at(b, free["j"], x)
        np.add.at(c, (3 * k + 1) % 5, x)
        return np.sum(a**3) + np.sum(b**3) + np.sum(c**3)

    free = {"x": y, "i": rng.integers(0, 3, ROWS), "j": rng.integers(0, 4, ROWS)}
    bound = jitad.jit(squares).bind(k := rng.integers(0, 50, ROWS))
    np.testing.assert_allclose(bound(free), squares(free, k), rtol=1e-12)
    for other in "ij":
        free[other][5] = 0
    free[slot][5] = {"i": 3, "j": 4}[slot]
    with pytest.raises(IndexError, match="out of bounds"):
        bound(free)


def test_bound_indices_of_any_type():
    def lookup(q, y, i):
        return np.sum((y - q[i]) ** 2)

    for dtype in ("int8", "uint8", "int32", "int64"):
        i = rng.integers(0, 16, size=ROWS).astype(dtype)
        right = np.zeros(16)
        np.add.at(right, i, -2 * (y - q[i]))
        np.testing.assert_allclose(jitad.jit_grad(lookup).bind(y, i)(q), right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bad", [1, -2])
def test_few_bound_indices_are_checked_each(bad):
    """With a table of one element beside another of two, a place may be right though an index is not."""
    def lookups(q, i, j):
        return np.sum((q[:2][i] + q[2:3][j]) ** 2)

    i, j = np.arange(32) % 2, np.zeros(32, int)
    g = jitad.jit_grad(lookups)
    np.testing.assert_allclose(g.bind(i, j)(np.arange(3.0)), [64.0, 96.0, 160.0], rtol=1e-14)
    j[0] = bad
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        g.bind(i, j)(np.arange(3.0))
