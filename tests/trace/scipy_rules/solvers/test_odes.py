"""Differential equations: SciPy's values at SciPy's steps, and gradients by forward sensitivities."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import odeint, solve_ivp
from scipy.interpolate import interp1d

from jitad import hessian, jit, jvp, value_and_grad
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import differences

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
TIMES = np.linspace(0.0, 10.0, 11)


def lotka_volterra(p, method="RK45", rtol=1e-6):
    def rates(t, state):
        hare, lynx = state
        return [p[0] * hare - p[1] * hare * lynx, -p[2] * lynx + p[3] * hare * lynx]
    found = solve_ivp(rates, (0.0, 10.0), p[4:], method=method, t_eval=TIMES, rtol=rtol, atol=1e-9)
    assert found.success
    return np.sum(np.log(found.y) ** 2) + np.sum(found.t) * 0.0


P = np.array([0.8, 0.5, 0.7, 0.3, 2.0, 1.0])


def test_the_same_steps_and_gradients_within_the_tolerance():
    value, gradient = value_and_grad(lotka_volterra)(P)
    np.testing.assert_allclose(value, lotka_volterra(P), rtol=1e-12)
    np.testing.assert_allclose(jit(lambda p: lotka_volterra(p, "DOP853"))(P), lotka_volterra(P, "DOP853"), rtol=1e-12)
    exact, = differences(lambda p: lotka_volterra(p, "DOP853", 1e-13), (P,), 1e-5)
    np.testing.assert_allclose(gradient, exact, rtol=1e-5)


def test_all_of_what_is_traced_moves_the_solution():
    """``y' = -k (y - c)`` from `start` to `end`: the ends of the interval, arguments, captures, in time's direction and
    against it; by RK23, whose last state is read without t_eval."""
    def last(q):
        start, end, y0, k, c = q
        found = solve_ivp(lambda t, y, c: -k * (y - c), (start, end), np.array([y0]), args=(c,), method="RK23",
                          rtol=1e-8, atol=1e-10)
        return found.y[0, -1]

    def exact(q):
        start, end, y0, k, c = q
        return c + (y0 - c) * np.exp(-k * (end - start))
    for q in (np.array([0.5, 2.0, 3.0, 0.7, 1.0]), np.array([2.0, 0.5, 3.0, 0.7, 1.0])):
        value, gradient = value_and_grad(last)(q)
        np.testing.assert_allclose(value, last(q), rtol=1e-13)
        np.testing.assert_allclose(gradient, differences(exact, (q,))[0], rtol=1e-6)


def test_second_derivatives_and_tangents():
    def last(q):
        return solve_ivp(lambda t, y: -q[1] * y, (0.0, 1.5), q[:1], rtol=1e-9, atol=1e-12).y[0, -1]
    q, e = np.array([2.0, 0.7]), np.exp(-1.05)
    np.testing.assert_allclose(hessian(last)(q), [[0.0, -1.5 * e], [-1.5 * e, 2.0 * 1.5**2 * e]], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(jvp(last, (q,), (np.array([1.0, 1.0]),)), [2 * e, e - 3.0 * e], rtol=1e-7)


def test_a_dose_by_odeint_with_branches():
    """One compartment, of which an infusion fills until the second hour."""
    times = np.linspace(0.0, 6.0, 7)

    def misfit(p):
        def rates(amount, t):
            return (p[0] if t < 2.0 else 0.0) - p[1] * amount
        return np.sum(odeint(rates, 0.0 * p[0], times)[:, 0] ** 2)

    def exact(p):
        amount = np.where(times < 2, 1 - np.exp(-p[1] * times), (1 - np.exp(-2 * p[1])) * np.exp(-p[1] * (times - 2)))
        return np.sum((p[0] / p[1] * amount) ** 2)
    p = np.array([1.5, 0.4])
    value, gradient = value_and_grad(misfit)(p)
    np.testing.assert_allclose(value, exact(p), rtol=1e-6)
    np.testing.assert_allclose(gradient, differences(exact, (p,))[0], rtol=1e-5)


def test_dense_output():
    def area(k):
        found = solve_ivp(lambda t, y: -k * y, (0.0, 2.0), [1.0], dense_output=True, rtol=1e-8, atol=1e-10)
        return found.sol(0.7)[0] + np.sum(found.sol(np.array([1.5, 0.2]))[0])
    value, slope = value_and_grad(area)(0.8)
    at = np.array([0.7, 1.5, 0.2])
    np.testing.assert_allclose(value, np.sum(np.exp(-0.8 * at)), rtol=1e-6)
    np.testing.assert_allclose(slope, np.sum(-at * np.exp(-0.8 * at)), rtol=1e-6)


def test_a_solution_that_breaks_off_says_so_as_scipys_does():
    """``y' = y**2`` has no solution beyond ``1 / y0``."""
    def reached(y0):
        found = solve_ivp(lambda t, y: y * y, (0.0, 1.0), [y0], t_eval=np.linspace(0.0, 1.0, 5))
        return found.y[0, -1] if found.success else -found.y.shape[1] + 0.0 * y0
    compiled = jit(reached)
    for y0 in (0.5, 1.6, 0.5):
        np.testing.assert_allclose(compiled(y0), reached(y0), rtol=1e-12)


def test_what_is_missing_is_named_and_bad_input_is_an_error():
    decay = lambda k, **options: solve_ivp(lambda t, y: -k * y, (0.0, 2.0), [1.0], **options)
    for options, what in (({"jac": None}, "jac="), ({"method": "BDF", "order": 3}, "order=")):
        with pytest.raises(UnsupportedOperationError, match=rf"scipy\.integrate\.solve_ivp with {what} at .*test_odes"):
            jit(lambda k, o=options: decay(k, **o).y[0, -1])(1.0)
    with pytest.raises(UnsupportedOperationError, match=r"states of scipy\.integrate\.solve_ivp at each step.*t_eval"):
        jit(lambda k: decay(k).y[0])(1.0)
    with pytest.raises(ValueError, match="not within `t_span`"):
        jit(lambda k: decay(k, t_eval=np.array([3.0])).y)(1.0)
    with pytest.raises(ValueError, match="not properly sorted"):
        jit(lambda k: decay(k, t_eval=np.array([1.0, 0.5])).y)(1.0)
    with pytest.raises(ValueError, match="`method` must be one of"):
        jit(lambda k: decay(k, method="Euler").y[0, -1])(1.0)
    with pytest.raises(ValueError, match=r"an event of .* gives a result of shape \(2,\)"):
        jit(lambda k: decay(k, events=lambda t, y: y[[0, 0]]).y[0, -1])(1.0)
    with pytest.raises(ValueError, match="`max_step` must be positive"):
        jit(lambda k: decay(k, max_step=0.0).y[0, -1])(1.0)
    with pytest.raises(ValueError, match="`atol` must be positive"):
        jit(lambda k: decay(k, atol=-1e-6).y[0, -1])(1.0)
    with pytest.warns(UserWarning, match="At least one element of `rtol` is too small"):
        jit(lambda k: decay(k, rtol=1e-20, atol=1e-9).y[0, -1])(1.0)
    with pytest.raises(ValueError, match="for a state of shape"):
        jit(lambda k: solve_ivp(lambda t, y: np.stack([k, k]), (0.0, 2.0), [1.0]).y[0, -1])(1.0)


def test_times_and_options_of_odeint():
    solved = lambda k, t, **options: odeint(lambda y, t: -k * y, [1.0], t, **options)[:, 0]
    times = np.array([2.0, 1.0, 1.0, 0.0])
    found = jit(lambda k: solved(k, times, h0=0.1, hmax=0.5))(0.7)
    np.testing.assert_allclose(found, np.exp(0.7 * (2.0 - times)), rtol=1e-6)
    with pytest.raises(ValueError, match="monotonically increasing or monotonically decreasing"):
        jit(lambda k: solved(k, np.array([0.0, 2.0, 1.0])))(0.7)
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.integrate\.odeint with tcrit="):
        jit(lambda k: solved(k, times, tcrit=[1.5]))(0.7)


def test_a_slope_that_is_no_number_ends_the_solution():
    """Also where a table in the right-hand side ends, whose error can not be raised in a step."""
    table = interp1d(np.linspace(0.0, 5.0, 6), np.ones(6))
    slope = lambda k: solve_ivp(lambda t, y: -k * y * np.sqrt(0.5 - t), (0.0, 1.0), [1.0])
    beyond = lambda k: solve_ivp(lambda t, y: -k * y + table(t), (0.0, 7.0), [1.0])
    for solved in (slope, beyond):
        assert not jit(lambda k, s=solved: s(k).success)(1.0)
