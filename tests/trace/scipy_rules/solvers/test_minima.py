"""Minima, of many variables and of one, within bounds: what SciPy finds, and the derivatives of that."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.distance import cdist

from jitad import batch, hessian, jit, jvp, value_and_grad
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import agrees, together
from tests.programs.table import interpreted

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
START = [-1.2, 1.0, 0.5]
GRID = np.random.default_rng(1).normal(size=(7, 2))


def valley(x, a):
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + 0.1 * np.sum(x * a)


def with_slope(x, a):
    off = x[1:] - x[:-1] ** 2
    ends = np.zeros(1)
    return valley(x, a), 2 * a * np.concatenate([ends, off]) - np.concatenate([
        4 * a * off * x[:-1] + 2 * (1 - x[:-1]), ends]) + 0.1 * a


def lowest(a):
    return optimize.minimize(valley, START, args=(a,), tol=1e-10).x


def wave(x, a):
    return (x - a) ** 4 / 4 + np.cos(x * a) + 0.1 * x * x


def within(a):
    found = optimize.minimize(valley, START, args=(a,), tol=1e-12, method="L-BFGS-B",
                              bounds=[(None, 0.4), (-1, a / 10), (0, None)])
    return np.sum(found.x * np.arange(1.0, 4.0)) + found.fun


def test_minima_of_many_variables():
    simplex = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 2000, "maxfev": 4000}
    together([lowest, within,
              lambda a: optimize.minimize(lambda x: valley(x, a), np.array(START), method="Nelder-Mead",
                                          options=simplex).fun,
              lambda a: optimize.minimize(with_slope, START, args=(a,), jac=True, method="CG").fun,
              lambda a: optimize.fmin_bfgs(valley, START, args=(a,), gtol=1e-8, disp=False),
              lambda a: optimize.fmin_l_bfgs_b(valley, START, args=(a,), approx_grad=True, factr=10.0, pgtol=1e-9,
                                               bounds=[(-2.0, 2.0)] * 3)[1]],
             5.0, rtol=1e-6, slope_rtol=1e-4, step=1e-3, run=interpreted)
    np.testing.assert_allclose(value_and_grad(within)(5.0)[0], within(5.0), rtol=1e-7)


def test_minima_of_one_variable():
    together([lambda a: optimize.minimize_scalar(wave, args=(a,)).x,
              lambda a: optimize.minimize_scalar(wave, bracket=(5.0, 4.0), args=(a,), method="golden").fun,
              lambda a: optimize.minimize_scalar(wave, bracket=(1.0, 2.0, 10.0), args=(a,), tol=1e-10)["x"],
              lambda a: optimize.minimize_scalar(wave, bounds=(0.0, a), args=(a,), options={"xatol": 1e-10}).x,
              lambda a: optimize.fminbound(lambda x: -x * np.exp(-a * x), 0.0, 4.0, xtol=1e-10),
              lambda a: optimize.brent(wave, (a,)) + optimize.golden(wave, (a,), (-3.0, -4.0))],
             1.3, rtol=1e-6, slope_rtol=1e-4, step=1e-3, run=interpreted)


def test_higher_orders_both_modes_and_batches_of_minima():
    """The minimum of x**4 / 4 - a x is the cube root of a."""
    root = lambda a: optimize.minimize(lambda x: x[0] ** 4 / 4 - a * x[0], [1.0]).x[0]
    np.testing.assert_allclose(hessian(root)(1.3), -2 / 9 * 1.3 ** (-5 / 3), rtol=1e-9)
    at = np.array([1.0, 1.3, 2.0])
    values, slopes = batch(value_and_grad(root))(at)
    np.testing.assert_allclose([values, slopes], [np.cbrt(at), at ** (-2 / 3) / 3], rtol=1e-12)
    np.testing.assert_allclose(jvp(root, (1.3,), (2.0,))[1], 2 * slopes[1], rtol=1e-12)


def test_what_is_not_found_is_reported_and_has_no_derivative():
    def looked_for(a, most):
        found = optimize.minimize(valley, START, args=(a,), options={"maxiter": most})
        told = found.message == "Optimization terminated successfully.", found.status == 0
        return found.x[0] if told == (bool(found.success),) * 2 else 0.0 * a
    value, slope = interpreted(value_and_grad(lambda a: looked_for(a, 2)), (5.0,))
    assert value != 0.0 and np.isnan(slope)
    value, slope = interpreted(value_and_grad(lambda a: looked_for(a, 100)), (5.0,))
    assert value != 0.0 and np.isfinite(slope)
    with pytest.raises(RuntimeError, match="without finding a valid bracket"):
        jit(lambda a: optimize.minimize_scalar(lambda x: -x * a).x)(1.0)


def test_assignments_are_constants():
    def matched(points):
        cost = cdist(points, GRID)
        rows, columns = optimize.linear_sum_assignment(cost)
        return np.sum(cost[rows, columns]) + np.sum((points[rows] - GRID[columns]) ** 2)
    agrees(matched, np.random.default_rng(2).normal(size=(5, 2)))
    np.testing.assert_array_equal(jit(lambda c: optimize.linear_sum_assignment(c, True)[1])(np.eye(3)[::-1]), [2, 1, 0])


def test_what_minima_refuse():
    square = lambda x: np.sum(x * x)
    for function, what in (
            (lambda a: optimize.minimize(lambda x: square(x - a), [0.0], constraints=[optimize.Bounds(0, a)]).x,
             "minimize with Bounds among constraints= at"),
            (lambda a: optimize.minimize(lambda x: square(x - a), [0.0], callback=print).x, "with callback= at"),
            (lambda a: optimize.minimize(lambda x: square(x - a), [0.0]).hess_inv, "'hess_inv' of what"),
            (lambda a: optimize.minimize(lambda x: square(x - a), [0.0], options={"mu": 1}).x, "the option 'mu'")):
        with pytest.raises(UnsupportedOperationError, match=what):
            jit(function)(1.0)
    for function, what in ((lambda a: optimize.minimize(lambda x: x - a, [0.0, 1.0]).x, "must return a scalar value"),
                           (lambda a: optimize.minimize(lambda x: square(x - a), [0.0], bounds=[(1, 0)]).x,
                            "An upper bound is less"),
                           (lambda a: optimize.minimize_scalar(lambda x: x * a, bracket=(0, 1, 2)).x, "do not fulfill"),
                           (lambda a: optimize.minimize(square, [a], method="Newton").x, "Unknown solver newton")):
        with pytest.raises(ValueError, match=what):
            jit(function)(1.0)
