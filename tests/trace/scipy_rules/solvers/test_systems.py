"""Roots of systems and least squares: what SciPy finds, and the derivatives of that."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize

from jitad import batch, hessian, jit, jvp, value_and_grad
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import agrees, together
from tests.programs.table import interpreted

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
T = np.linspace(0.1, 5.0, 12)
RATES = 2.0 * T / (0.7 + T) + 0.05 * np.random.default_rng(1).normal(size=12)
EXACTLY = {"xtol": 1e-15, "ftol": 1e-15}


def coupled(x, a):
    return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1] * a]


def with_slopes(x, a):
    return np.array([x[0] ** 2 - a, x[1] * x[0] - 1]), np.array([[2 * x[0], 0.0], [x[1], x[0]]])


def size(a):
    return np.sum(optimize.root(coupled, [0.0, 0.0], args=(a,), tol=1e-12).x ** 2)


def membrane(a, n=12):
    """Bratu's equation by finite differences."""
    def left(u):
        whole = np.concatenate([np.zeros(1), u, np.zeros(1)])
        return (whole[2:] - 2 * u + whole[:-2]) * (n + 1) ** 2 + a * np.exp(u)
    return optimize.fsolve(left, np.zeros(n))


def test_roots_of_systems():
    together([size, lambda a: optimize.fsolve(coupled, [0.0, 0.0], (a,), xtol=1e-12), membrane,
              lambda a: optimize.root(with_slopes, [1.0, 1.0], args=(a,), jac=True, method="lm", tol=1e-12).x,
              lambda a: optimize.fsolve(lambda x: x**3 - a, 1.0, full_output=True, xtol=1e-12)[0]], 1.3)
    mean = lambda a: integrate.quad(lambda t: optimize.fsolve(lambda x: x**3 + x - a * t, 0.5)[0], 0.0, 1.0)[0]
    agrees(mean, 1.3, rtol=1e-7)


def test_higher_orders_both_modes_and_batches_of_systems():
    steps = 1e-4
    curvature = (size(1.3 + steps) - 2 * size(1.3) + size(1.3 - steps)) / steps**2
    np.testing.assert_allclose(hessian(size)(1.3), curvature, rtol=1e-4)
    at = np.array([1.0, 1.3, 2.0])
    values, slopes = batch(value_and_grad(size))(at)
    np.testing.assert_allclose(values, [size(a) for a in at], rtol=1e-10)
    np.testing.assert_allclose(jvp(size, (1.3,), (2.0,))[1], 2 * slopes[1], rtol=1e-10)


def test_a_system_without_a_root_says_so():
    compiled = jit(lambda a: optimize.fsolve(lambda x: x * x + a, 1.0))
    np.testing.assert_allclose(compiled(-4.0), [2.0])
    with pytest.warns(RuntimeWarning, match="not making good progress"):
        compiled(1.0)
    report = jit(lambda a: (lambda r: (r.success, r["x"]))(optimize.root(lambda x: x * x + a, 1.0)))
    assert [bool(report(a)[0]) for a in (1.0, -4.0)] == [False, True]


def test_least_squares_by_data_and_weights():
    def michaelis_menten(y, start):
        found = optimize.least_squares(lambda p, c: p[0] * T / (c * p[1] + T) - y, start, args=(1.0,), gtol=1e-15,
                                       **EXACTLY)
        return np.sum(found.x * np.array([1.0, 2.0])) + found.cost + found.optimality

    def fitted(y, s):
        model = lambda t, v, k: v * t / (k + t)
        best, covariance = optimize.curve_fit(model, T, y, p0=[1.0, 1.0], sigma=s * (1.0 + T), **EXACTLY)
        whole = optimize.curve_fit(model, T, y, sigma=np.diag(s * (1.0 + T)) + 0.02, absolute_sigma=True, **EXACTLY)
        return best[0] + 2 * best[1] + np.sqrt(covariance[0, 0]) + np.sum(np.sqrt(np.diag(whole[1])))
    agrees(michaelis_menten, RATES, np.ones(2), rtol=1e-6, slope_rtol=1e-4, step=1e-3)
    agrees(fitted, RATES, 0.3, rtol=1e-5, slope_rtol=1e-3, step=1e-3, run=interpreted)


def test_least_squares_within_bounds_and_of_robust_losses():
    model, astray = lambda t, v, k: v * t / (k + t), RATES + 2.0 * (np.arange(12) == 3)
    fitted = lambda a, **how: optimize.least_squares(lambda p: model(T, *p) - astray * a, [1.0, 1.0], f_scale=0.1,
                                                     gtol=1e-15, **EXACTLY, **how)
    together([lambda a: optimize.curve_fit(model, T, astray, bounds=(0, [1.5 * a, np.inf]), **EXACTLY)[0],
              lambda a: fitted(a, loss="soft_l1").x, lambda a: fitted(a, loss="huber").x,
              lambda a: fitted(a, loss="arctan").cost, lambda a: fitted(a, loss="cauchy").grad,
              lambda a: fitted(a, loss="cauchy", bounds=([0, 0], [1.5, 3])).x], 1.1, rtol=1e-4, slope_rtol=1e-3,
             step=1e-3, run=interpreted)


def test_linear_least_squares_within_bounds():
    matrix, right = np.random.default_rng(3).normal(size=(8, 4)), np.random.default_rng(4).normal(size=8)
    together([lambda w: optimize.nnls(matrix, right * w)[0], lambda w: optimize.nnls(matrix * w[:4], right)[1],
              lambda w: optimize.lsq_linear(matrix, right * w, (-0.1, w[:4] / 10)).x,
              lambda w: optimize.lsq_linear(matrix * w[:, None], right).cost,
              lambda w: optimize.leastsq(lambda p: matrix @ p - w * right, np.zeros(4))[0]],
             np.linspace(0.8, 1.5, 8), rtol=1e-7, slope_rtol=1e-6, step=1e-4, run=interpreted)


def test_what_systems_refuse():
    for function, what in (
            (lambda a: optimize.root(lambda x: x - a, 0.0, method="krylov").x, r"root with method='krylov' at"),
            (lambda a: optimize.root(lambda x: x - a, 0.0).nfev, r"'nfev' of what scipy\.optimize\.root gives"),
            (lambda a: optimize.least_squares(lambda x: x - a, [0.0], loss=np.sqrt).x, r"with a loss of your own"),
            (lambda a: optimize.curve_fit(lambda t, k: k * t, T, a * T, full_output=True)[0], r"with full_output at")):
        with pytest.raises(UnsupportedOperationError, match=what):
            jit(function)(1.0)
    with pytest.raises(TypeError, match="mismatch between the input and output shape"):
        jit(lambda a: optimize.fsolve(lambda x: np.ones(3) * a, np.zeros(2)))(1.0)
    with pytest.raises(ValueError, match="Initial guess is outside of provided bounds"):
        jit(lambda a: optimize.least_squares(lambda x: x - a, [0.0], bounds=(1.0, 2.0)).x)(1.0)
    with pytest.raises(ValueError, match="Unable to determine number of fit parameters"):
        jit(lambda a: optimize.curve_fit(lambda t, *p: p[0] * t, T, a * T)[0])(1.0)
