"""Events on the way of a differential equation: SciPy's times and states, which move with what they depend on."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from jitad import hessian, jit, value_and_grad
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import agrees
from tests.programs.table import interpreted

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
EXACTLY = {"rtol": 1e-10, "atol": 1e-12}


def half(t, y):
    return y[0] - 0.5


half.terminal = True


def half_life(k):
    return solve_ivp(lambda t, y: -k * y, (0.0, 5.0), [1.0], events=half, **EXACTLY).t[-1]


def test_a_fall_with_drag_ends_on_the_ground():
    def fall(q):
        ground = lambda t, y: y[0]
        ground.terminal, ground.direction = True, -1
        found = solve_ivp(lambda t, y: [y[1], -q[0] - q[2] * y[1]], (0.0, 100.0), [q[1] * 0.0, 10.0 * q[1]],
                          events=[ground], method="Radau", **EXACTLY)
        return found.t[-1] + 0.3 * found.y[1, -1] + found.t_events[0][0] * found.y_events[0][0, 1] + found.status
    agrees(fall, np.array([9.81, 1.0, 0.1]), step=1e-4)


def test_events_that_end_nothing():
    def swings(w):
        found = solve_ivp(lambda t, y: [y[1], -w * y[0]], (0.0, 10.0), [1.0, 0.0], t_eval=np.linspace(0.0, 10.0, 5),
                          events=[lambda t, y: y[0], lambda t, y: y[1] - 0.5], rtol=1e-8, atol=1e-10)
        return (np.sum(found.t_events[0]) + np.sum(found.t_events[1] ** 2) + np.sum(found.y)
                + np.sum(found.y_events[1][:, 0]))
    agrees(swings, 1.7, rtol=1e-8, run=interpreted)
    none = jit(lambda k: solve_ivp(lambda t, y: -k * y, (0.0, 0.1), [1.0], events=half).t_events[0])
    assert none(1.0).shape == (0,)


def test_times_up_to_the_end_and_the_second_event():
    def stopped(k):
        found = solve_ivp(lambda t, y: -k * y, (0.0, 5.0), [1.0], events=half, t_eval=np.linspace(0.0, 5.0, 21),
                          **EXACTLY)
        return np.sum(found.y) + found.t_events[0][0] * len(found.t)
    compiled = value_and_grad(stopped)
    for k in (0.7, 1.5, 0.7):
        np.testing.assert_allclose(compiled(k)[0], stopped(k), rtol=1e-12)

    def second(k):
        level = lambda t, y: y[0] - 0.5
        level.terminal = 2
        return solve_ivp(lambda t, y: [np.cos(t) * k], (0.0, 20.0), [0.0], events=level, **EXACTLY).t[-1]
    np.testing.assert_allclose(jit(second)(1.3), np.pi - np.arcsin(0.5 / 1.3), rtol=1e-7)


def test_times_of_events_of_second_order_and_in_integrals():
    np.testing.assert_allclose(hessian(half_life)(0.7), 2 * np.log(2.0) / 0.7**3, rtol=1e-5)
    mean = lambda a: quad(lambda k: half_life(a * k), 0.5, 1.0, limit=2)[0]
    np.testing.assert_allclose(jit(mean)(1.0), np.log(2) ** 2, rtol=1e-7)


def test_what_events_refuse():
    with pytest.raises(RuntimeError, match="happens more than 64 times"):
        jit(lambda k: solve_ivp(lambda t, y: [np.cos(k * t)], (0.0, 400.0), [0.0],
                                events=lambda t, y: y[0] - 0.01).t_events[0])(1.0)
    inner = lambda k: solve_ivp(lambda t, y: -k * y, (0.0, 5.0), [1.0], events=half, t_eval=[0.1]).y[0, 0]
    with pytest.raises(UnsupportedOperationError, match="events= and t_eval= in the step of a loop"):
        jit(lambda a: quad(lambda k: inner(a * k), 0.5, 1.0)[0])(1.0)
