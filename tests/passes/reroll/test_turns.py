"""Lists in which a few walks follow each other or take turns."""
from __future__ import annotations

import numpy as np

import jitad
from jitad.passes.reroll.spine import Views
from jitad.passes.reroll.turns import turns


def test_stretches_are_walks_that_take_turns() -> None:
    views = Views()

    def element(source: int, *offset: int) -> tuple[int, int]:
        return source, views.intern((), tuple((o, ()) for o in offset))

    backwards = [element(1, 30 - k) for k in range(10)]
    both = [x for k in range(9) for x in (element(2, k, 0), element(3, 5))]
    alone = [(4, 0), element(5, 1), element(6, 2)]
    refs = [alone[0], *backwards, *alone[1:], *both, element(7, 1)]
    assert list(turns(views, refs)) == [(1, 0, 1), (1, 1, 11), (1, 11, 12), (1, 12, 13), (2, 13, 31), (1, 31, 32)]
    assert [r for _, first, stop in turns(views, both[:-3]) for r in both[first:stop]] == both[:-3]     # too few
    assert list(turns(views, [])) == []


def filtered(t, y):
    h, total = t[0], 0.0
    for v in y:
        h = t[0] + t[1] * v ** 2 + t[2] * h
        total = total - 0.5 * (np.log(h) + v ** 2 / h)
    return total


def steepness(t, y):
    return np.sum(jitad.grad(filtered, on_mismatch="silent")(t, y) ** 2)


def test_a_gradient_inside_a_gradient_takes_what_a_loop_takes() -> None:
    """The sums over steps are those of walks, so that the tape of twice as many steps is no longer."""
    g, t, y = jitad.grad(steepness, on_mismatch="silent"), np.array([0.3, 0.5, 0.2]), np.linspace(-1.0, 2.0, 500)
    small, large = g.compile(t, y[:250]), g.compile(t, y)
    assert len(small.tape.nodes) == len(large.tape.nodes) < 200
    expected = 2 * jitad.hessian(filtered)(t, y) @ jitad.grad(filtered)(t, y)
    np.testing.assert_allclose(large(t, y), expected, rtol=1e-10)
