"""Shapes of loops in kernels: rows in quadruples, additions in turn, checks inside blocks; the logistic pair."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitad
from jitad.compile.loops import Accumulator, Combine, Let, Loop, SetElement, Update
from jitad.compile.lower.registers import in_registers
from jitad.compile.lower.unroll_and_jam import in_turn, jammed
from jitad.tape.expr import const, load, var


@pytest.mark.parametrize("rows", [16, 1003, 5])
@pytest.mark.parametrize("columns", [8, 13])
def test_rows_in_quadruples(rows: int, columns: int) -> None:
    """Dots along rows, and their transpose, for rows that four divides and rows that it does not."""
    rng = np.random.default_rng(rows)
    X, y, theta = rng.normal(size=(rows, columns)), rng.normal(size=rows), rng.normal(size=columns)

    def logp(theta: Any, X: Any, y: Any) -> Any:
        r = y - X @ theta
        return -0.5 * np.sum(r * r)

    g = jitad.value_and_grad(logp, on_mismatch="silent")
    value, gradient = g(theta, X, y)
    r = y - X @ theta
    np.testing.assert_allclose(value, -0.5 * r @ r, rtol=1e-13)
    np.testing.assert_allclose(gradient, X.T @ r, rtol=1e-11, atol=1e-12 * rows)
    assert ("_row3" in g.source(theta, X, y)) == (rows > 15)
    by_matrix = jitad.jit_grad(lambda X, theta, y: logp(theta, X, y), on_mismatch="silent")    # rows in its target
    np.testing.assert_allclose(by_matrix(X, theta, y), np.outer(r, theta), rtol=1e-12, atol=1e-13)


def row_loop(*inner: Any) -> Loop:
    i, j = var("i", "i8"), var("j", "i8")
    first = [Let("t", load("y", (i,), "f8")), Accumulator("s", const(0.0))]
    body = inner or (Combine("s", "add", load("x", (i * 9 + j,), "f8") * load("q", (j,), "f8")),)
    return Loop("i", 0, 50, [*first, Loop("j", 0, 9, list(body)), SetElement("out", (i,), var("s", "f8"))])


def test_what_is_not_taken_in_quadruples() -> None:
    """Loops whose steps read what others write, add in order, or add to computed places stay as they are."""
    loop = row_loop()
    quadruples, rest = jammed(loop)
    assert isinstance(quadruples, Loop) and (quadruples.stop, quadruples.step) == (48, 4)
    assert isinstance(rest, Loop) and (rest.start, rest.stop, rest.body) == (48, 50, loop.body)
    i, j = var("i", "i8"), var("j", "i8")
    for statement in (Combine("s", "add_in_order", load("x", (j,), "f8")),
                      Combine("s", "add", load("out", (i,), "f8")),
                      Update("sum", (load("place", (j,), "i8"),), "add", var("t", "f8")),
                      SetElement("made", (j,), var("t", "f8"))):
        unchanged = row_loop(statement)
        assert jammed(unchanged) == [unchanged]
    whole = Loop("i", 0, 48, [Update("c", (var("lane", "i8") * 3 + i,), "add", const(1.0))])
    assert [s.step for s in in_turn(whole, "lane") if isinstance(s, Loop)] == [4]      # nothing is left


def test_groups_in_several_blocks() -> None:
    """Negative indices count from the end in gather and scatter alike; one beyond the bounds is found in any block."""
    rng = np.random.default_rng(4)
    n, groups = 3001, 37
    group, y, a = rng.integers(-groups, groups, n), rng.normal(size=n), rng.normal(size=groups)

    @jitad.value_and_grad
    def logp(a: Any, group: Any, y: Any) -> Any:
        r = y - np.exp(a)[group]
        return -0.5 * np.sum(r * r)

    r = y - np.exp(a)[group]
    expected = np.zeros(groups)
    np.add.at(expected, group, r)
    value, gradient = logp(a, group, y)
    np.testing.assert_allclose(value, -0.5 * r @ r, rtol=1e-13)
    np.testing.assert_allclose(gradient, expected * np.exp(a), rtol=1e-11)
    for place in (0, 1500, n - 1):
        for wrong in (groups, -groups - 1):
            bad = group.copy()
            bad[place] = wrong
            with pytest.raises(IndexError, match="out of bounds"):
                logp(a, bad, y)


def test_rows_of_groups_in_quadruples() -> None:
    """Each of four rows side by side adds to its own group, which is read before the loop along the row."""
    rng = np.random.default_rng(5)
    x, w, group = rng.normal(size=(40, 16)), rng.normal(size=(50, 16)), rng.integers(0, 40, 50)
    g = jitad.jit_grad(lambda x, group, w: np.sum(np.sin(w) * x[group]))
    expected = np.zeros(x.shape)
    np.add.at(expected, group, np.sin(w))
    np.testing.assert_allclose(g(x, group, w), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_logistic_pair(weighted: bool) -> None:
    """log1p(exp(x)) and its slope as NumPy has them: to rounding, and not finite where exp overflows."""
    x = np.concatenate([np.linspace(-40, 40, 81), [-745.2, -720.0, 709.7, 709.782712893384, -np.inf, 0.0, -0.0]])
    w = np.linspace(0.5, 2.0, len(x)) if weighted else np.ones(len(x))

    @jitad.value_and_grad
    def f(x: Any, w: Any) -> Any:
        return np.sum(w * np.log1p(np.exp(x)))

    assert ("exp_share" in jitad.jit_grad(lambda x, w: np.sum(w * np.log1p(np.exp(x)))).source(x, w))
    value, gradient = f(x, w)
    np.testing.assert_allclose(value, np.sum(w * np.log1p(np.exp(x))), rtol=1e-14)
    np.testing.assert_allclose(gradient, w * (np.exp(x) / (1 + np.exp(x))), rtol=2e-15, atol=1e-323)
    for beyond in (709.782712893385, 800.0, np.inf):
        x[3] = beyond
        value, gradient = f(x, w)
        assert value == np.inf
        assert np.isnan(gradient[3]) and np.isfinite(gradient[[2, 4]]).all()
    share = jitad.jit(lambda x: np.exp(x) / (np.exp(x) + 1.0))
    np.testing.assert_allclose(share(x[10:50]), np.exp(x[10:50]) / (1 + np.exp(x[10:50])), rtol=2e-15)


@pytest.mark.parametrize("columns", [5, 7])
def test_short_rows_are_written_out(columns: int) -> None:
    """One loop over the rows, whose steps run in lanes, with the elements of a row one after the other."""
    x = np.random.default_rng(columns).normal(size=(203, columns))
    g = jitad.value_and_grad(lambda x: np.sum(np.log(np.sum(np.exp(x), axis=1))))
    value, gradient = g(x)
    e = np.exp(x)
    np.testing.assert_allclose(value, np.sum(np.log(e.sum(axis=1))), rtol=1e-13)
    np.testing.assert_allclose(gradient, e / e.sum(axis=1)[:, None], rtol=1e-13)
    assert "for j in" not in g.source(x)


@pytest.mark.parametrize("states", [3, 4, 8])
def test_arrays_of_steps_that_wait_stay_loops_where_rows_fill_vectors(states: int) -> None:
    rng = np.random.default_rng(states)
    q, y = rng.normal(size=(states, states)), rng.normal(size=(120, states))

    def forward(q: Any, y: Any) -> Any:
        a = y[0]
        for t in range(1, len(y)):
            a = np.log(np.sum(np.exp(a[:, None] + q), axis=0)) + y[t]
        return np.sum(a)

    g = jitad.value_and_grad(forward)
    value, gradient = g(q, y)
    np.testing.assert_allclose(value, forward(q, y), rtol=1e-13)
    h = 1e-6 * rng.normal(size=q.shape)
    np.testing.assert_allclose(np.sum(gradient * h), (forward(q + h, y) - forward(q - h, y)) / 2, rtol=1e-6)
    assert ("log(" in g.source(q, y)) and (g.source(q, y).count("exp(") > 2 * states) == (states == 3)


def test_sums_of_a_loop_in_registers() -> None:
    """What is added at one place goes to memory once, unless the loop reads it or the place is another in each step."""
    i = var("i", "i8")
    step, fixed = load("x", (i,), "f8"), (const(3, "i8"),)
    add = Update("sum", fixed, "add", step)
    first, loop, last = in_registers(Loop("i", 0, 50, [Let("t", i * 2), add, add, add]), str)
    assert isinstance(first, Accumulator) and isinstance(loop, Loop) and isinstance(last, Update)
    assert [type(s) for s in loop.body] == [Let, Combine, Combine, Combine] and last.index == fixed
    assert np.signbit(first.first.args[0])                          # -0.0 + x is x, of -0.0 too
    for statement in (Let("t", load("sum", (i,), "f8")), Update("sum", (i,), "add", step),
                      SetElement("sum", (i,), step), Update("sum", (load("place", fixed, "i8"),), "add", step),
                      Update("sum", fixed, "max", step)):
        unchanged = Loop("i", 0, 50, [statement, add])
        assert in_registers(unchanged, str) == [unchanged]
    named = Loop("i", 0, 50, [Let("t", const(1, "i8")), Update("sum", (var("t", "i8"),), "add", step)])
    assert in_registers(named, str) == [named]


@pytest.mark.parametrize("columns", [2, 3, 5, 7])
def test_sums_of_few_columns(columns: int) -> None:
    """Gradients by columns, in one block and in several, of both widths of numbers."""
    rng = np.random.default_rng(columns)

    def logp(m: Any, y: Any, chosen: Any) -> Any:
        seen = np.where(np.arange(columns) <= chosen[:, None], np.log1p(np.exp(y - m)), 0.0)
        return np.sum(seen) + np.sum(np.exp(m)[chosen])

    for rows, dtype, rtol in ((1501, np.float64, 1e-12), (9, np.float32, 2e-5)):
        m, y = rng.normal(size=columns).astype(dtype), rng.normal(size=(rows, columns)).astype(dtype)
        chosen = rng.integers(0, columns, rows)
        value, gradient = jitad.value_and_grad(logp, on_mismatch="silent")(m, y, chosen)
        np.testing.assert_allclose(value, logp(m, y, chosen), rtol=rtol)
        share = np.where(np.arange(columns) <= chosen[:, None], -1.0 / (1.0 + np.exp(m - y)), 0.0)
        expected = share.sum(0) + np.bincount(chosen, minlength=columns) * np.exp(m)
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=rtol * rows)


def test_blocks_of_columns_are_long() -> None:
    """Rows of 300 columns are read whole, those of 1,300 in long pieces."""
    rng = np.random.default_rng(5)

    def logp(theta: Any, X: Any, y: Any) -> Any:
        return np.sum(y * (X @ theta) - np.log1p(np.exp(X @ theta))) - 0.5 * np.sum(theta * theta)

    for rows, columns, blocks in ((60, 300, False), (20, 1300, True)):
        X, theta = rng.normal(size=(rows, columns)), rng.normal(size=columns) * 0.1
        y = (rng.uniform(size=rows) < 0.5) * 1.0
        g = jitad.value_and_grad(logp, on_mismatch="silent")
        _, gradient = g(theta, X, y)
        np.testing.assert_allclose(gradient, (y - 1.0 / (1.0 + np.exp(-X @ theta))) @ X - theta, rtol=1e-11, atol=1e-12)
        assert f"range(0, {columns}, 512)" in g.source(theta, X, y) if blocks else "block" not in g.source(theta, X, y)
