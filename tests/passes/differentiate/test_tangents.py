"""Tangents in many directions, kept as entries and blocks: what they stand for stays, however they are merged."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitad.passes.differentiate.modes import one, pullback, pushforward
from jitad.passes.differentiate.tangents import LONE, MOST, Block, Entries, Tangents, added
from jitad.primitives.reduce import reduce_sum
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from tests.helpers.programs import Random

ROWS, SHAPE = 24, (3, 4)
RNG = np.random.default_rng(8)


class Made:
    """Terms on a builder, and the matrix that each stands for."""

    def __init__(self):
        self.builder, self.terms, self.total = Builder(), [], np.zeros((ROWS, *SHAPE))

    def entries(self, rows, low, row):
        """`rows` are the numbers of the rows of all elements, `row` says the same relative to `low`."""
        u = RNG.normal(size=SHAPE)
        rows = np.broadcast_to(rows, SHAPE)
        for at in np.ndindex(SHAPE):
            self.total[rows[at], *at] += u[at]
        self.terms.append(Entries(self.builder.const(u), row, low, int(rows.max()) - low + 1))

    def single(self, row):
        self.entries(row, row, (0, ()))

    def line(self, low, steps):
        grid = np.ogrid[tuple(slice(n) for n in SHAPE)]
        self.entries(low + sum((s * grid[d] for d, s in steps), 0), low, (0, steps))

    def picked(self, low, count):
        rows = RNG.integers(0, count, size=SHAPE)
        self.entries(low + rows, low, self.builder.const(rows))

    def block(self, low, count):
        u = RNG.normal(size=(count, *SHAPE))
        self.total[low:low + count] += u
        self.terms.append(Block(self.builder.const(u), low))

    def check(self, most=MOST):
        one = added([Tangents((t,)) for t in self.terms])
        assert len(one.terms) <= most
        tape = self.builder.finish([one.rows(0, ROWS), Tangents(tuple(self.terms)).rows(0, ROWS)])
        for found in evaluate(tape):
            np.testing.assert_allclose(found, self.total, rtol=1e-14, atol=1e-14)
        low, high = one.range
        assert not self.total[:low].any() and not self.total[high:].any()


def test_apart_with_gaps():
    made = Made()
    made.line(0, ((0, 4), (1, 1))), made.single(13), made.block(15, 3), made.picked(20, 3)
    made.check()


def test_rows_that_overlap():
    made = Made()
    made.line(2, ((1, 2),)), made.picked(3, 5), made.block(0, 6), made.block(4, 20), made.single(5)
    made.check()


def test_equal_rows_are_one_term():
    made = Made()
    made.single(3), made.block(4, 2), made.single(3), made.block(4, 2), made.line(0, ((0, 1),)), made.line(0, ((0, 1),))
    made.check(most=3)


def test_single_rows_become_a_block():
    made = Made()
    for row in range(LONE + 3):
        made.single(2 + row)
    made.picked(12, 4)
    made.check(most=2)


def test_single_rows_far_apart_stay():
    made = Made()
    for row in range(LONE + 1):
        made.single(5 * row % ROWS)
    made.check(most=LONE + 1)


@pytest.mark.parametrize("singles", [0, LONE + 2])
def test_too_many_terms_become_one(singles):
    made = Made()
    for i in range(MOST + 1):
        made.picked(i % 7, 3 + i)
    for row in range(singles):
        made.single(row)
    made.check(most=1)


# --- random programs ---------------------------------------------------------------------------------------

def check_program(program: Random, length: int) -> None:
    """All directions at once, forward and in reverse, and of a gradient, are what each is alone."""
    program.build(length)
    builder, y = program.builder, program.values[-1]
    if y.dtype.kind != "f" or not 0 < y.aval.size <= 3000:
        return
    inputs = [builder.value(i) for i in builder.inputs if builder.nodes[i].aval.dtype.kind == "f"]
    wrt = [x for x in inputs if 1 < x.aval.size <= 12][:2]
    if not wrt:
        return
    weights = np.random.default_rng(1).normal(size=y.shape).astype(y.dtype)
    total = reduce_sum(y * builder.const(weights), tuple(range(y.ndim)))
    gradients = pullback(builder, [total], [one(total)], wrt)
    found, expected = [], []
    for x in wrt:
        n = x.aval.size
        units = [builder.const(row.reshape(x.shape)) for row in np.eye(n, dtype=x.dtype)]
        found += pushforward(builder, [y, *gradients], [x], [Tangents.unit(one(x))], n)
        expected += [[pushforward(builder, [out], [x], [unit])[0] for unit in units] for out in (y, *gradients)]
        seeds = np.random.default_rng(2).normal(size=(3, *x.shape)).astype(x.dtype)
        found += pullback(builder, [gradients[wrt.index(x)]], [builder.const(seeds)], wrt, 3)
        each = [pullback(builder, [gradients[wrt.index(x)]], [builder.const(s)], wrt) for s in seeds]
        expected += [list(column) for column in zip(*each, strict=True)]
    flat = [v for rows in expected for v in rows]
    tape = builder.finish([*found, *flat])
    values = evaluate(tape, *program.inputs)
    many, rest = values[:len(found)], iter(values[len(found):])
    rtol = 1e-10 if program.dtype == "float64" else 1e-3
    for value, rows in zip(many, expected, strict=True):
        alone = np.stack([next(rest) for _ in rows])
        if np.isfinite(alone).all():
            scale = np.abs(alone).max(initial=0.0)
            np.testing.assert_allclose(value, alone, rtol=rtol, atol=rtol * (scale + 1e-3), strict=True)


@settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(1, 16))
def test_random_programs(data: st.DataObject, length: int) -> None:
    check_program(Random(lambda n: data.draw(st.integers(0, max(n - 1, 0)))), length)
