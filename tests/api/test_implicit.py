"""Derivatives of what solvers find, against closed forms."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, root

from jitad import (
    ArgumentTypeError,
    CaptureError,
    OutputError,
    batch,
    cache,
    derivative,
    grad,
    hessian,
    implicit,
    jacobian,
    jit,
    jit_grad,
    scan,
    second_derivative,
    value_and_grad,
)
from jitad.testing.checks import check_grads
from tests.helpers.public import compiling, fresh, x3  # noqa: F401


@implicit(lambda y, a: y * y - a)
def square_root(a):
    return brentq(lambda y: y * y - a, 0.0, 1.0 + a, xtol=1e-15)


@implicit(lambda anomaly, mean, e: anomaly - e * np.sin(anomaly) - mean)
def kepler(mean, e):
    anomaly = mean
    for _ in range(60):
        anomaly = anomaly - (anomaly - e * np.sin(anomaly) - mean) / (1 - e * np.cos(anomaly))
    return anomaly


def equations(y, p):
    return np.array([y[0] ** 2 + y[1] - p[0], y[1] ** 3 + y[2] - p[1] * y[0], y[2] + y[0] - p[2]])


@implicit(equations)
def system(p):
    return root(lambda y: equations(y, p), np.ones(3), tol=1e-14).x


rng = np.random.default_rng(3)
X, t = rng.normal(size=(20, 3)), rng.normal(size=20)


def ridge_loss(b, penalty):
    return 0.5 * np.sum((X @ b - t) ** 2) + 0.5 * penalty * np.sum(b**2)


@implicit(lambda b, penalty: grad(ridge_loss)(b, penalty))
def ridge(penalty):
    return minimize(lambda b: ridge_loss(b, penalty), np.zeros(3), tol=1e-12,
                    jac=lambda b: X.T @ (X @ b - t) + penalty * b).x


# --- closed forms ------------------------------------------------------------------------------------

def test_a_square_root_to_the_third_order():
    assert np.isclose(square_root(9.0), 3.0)
    assert np.isclose(derivative(square_root)(4.0), 0.25, rtol=1e-14)
    assert np.isclose(second_derivative(square_root)(4.0), -1 / 32)
    assert np.isclose(grad(grad(grad(square_root)))(4.0), 3 / 8 * 4.0**-2.5)
    value, slope = value_and_grad(square_root)(16.0)
    assert np.isclose(value, 4.0) and np.isclose(slope, 1 / 8)


def test_keplers_equation():
    anomaly = kepler(1.0, 0.3)
    by_mean, by_e = jit_grad(kepler, argnums=(0, 1))(1.0, 0.3)
    bottom = 1 - 0.3 * np.cos(anomaly)
    assert np.isclose(by_mean, 1 / bottom) and np.isclose(by_e, np.sin(anomaly) / bottom)
    curvature = jit_grad(jit_grad(kepler))(1.0, 0.3)
    assert np.isclose(curvature, -0.3 * np.sin(anomaly) / bottom**3)


def test_a_system_in_both_modes():
    p = np.array([2.0, 3.0, 1.5])
    y = system(p)
    by_y = np.array([[2 * y[0], 1, 0], [-p[1], 3 * y[1] ** 2, 1], [1, 0, 1]])
    by_p = np.array([[-1, 0, 0], [0, -y[0], 0], [0, 0, -1]])
    expected = -np.linalg.solve(by_y, by_p)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(jacobian(system, mode=mode)(p), expected, rtol=1e-10)
    check_grads(system, (p,), order=2, rtol=1e-5)


def test_the_minimum_of_a_ridge_regression():
    penalty = 0.7
    a = X.T @ X + penalty * np.eye(3)
    b = np.linalg.solve(a, X.T @ t)
    first = -np.linalg.solve(a, b)
    np.testing.assert_allclose(ridge(penalty), b, rtol=1e-8)
    np.testing.assert_allclose(derivative(ridge)(penalty), first, rtol=1e-7)
    np.testing.assert_allclose(second_derivative(ridge)(penalty), -2 * np.linalg.solve(a, first), rtol=1e-6)


def test_a_fixed_point_of_trees_of_parameters():
    @implicit(lambda y, p, k: y - np.cos(p["a"] * y) - k * p["b"])
    def fixed(p, k):
        y = np.zeros_like(p["b"])
        for _ in range(200):
            y = np.cos(p["a"] * y) + k * p["b"]
        return y
    p = {"a": 0.4, "b": np.array([[0.1, 0.2], [0.3, -0.1]])}
    y = fixed(p, 2)
    bottom = 1 + p["a"] * np.sin(p["a"] * y)
    found = jit_grad(lambda p: np.sum(fixed(p, 2)))(p)
    assert np.isclose(found["a"], np.sum(-np.sin(p["a"] * y) * y / bottom))
    np.testing.assert_allclose(found["b"], 2 / bottom)


# --- within other things --------------------------------------------------------------------------------

def test_in_a_log_density_that_is_maximised():
    """Find (mean anomaly, e) from anomalies that are given: an optimum in closed form."""
    times = np.array([0.2, 0.5, 0.9])
    seen = np.stack([kepler(m, 0.35) for m in 1.3 * times])

    def loss(theta):
        total = 0.0
        for i in range(3):
            total = total + (kepler(theta[0] * times[i], theta[1]) - seen[i]) ** 2
        return total
    g = value_and_grad(loss)
    found = minimize(lambda theta: g(theta), np.array([1.0, 0.2]), jac=True, tol=1e-14)
    np.testing.assert_allclose(found.x, [1.3, 0.35], rtol=1e-5)
    with compiling(0):
        g(found.x)
    curved = hessian(loss)(np.array([1.3, 0.35]))
    rows = np.stack([jit_grad(lambda th, m=m: kepler(th[0] * m, th[1]))(np.array([1.3, 0.35])) for m in times])
    np.testing.assert_allclose(curved, 2 * rows.T @ rows, rtol=1e-6, atol=1e-8)


def test_a_random_walk_on_a_density_with_a_solver():
    """Metropolis-adjusted Langevin on the square of a standard normal's root: moments of the normal."""
    g = value_and_grad(lambda x: -0.5 * (square_root(x * x + 1.0) ** 2 - 1.0))
    draw = np.random.default_rng(1)
    x, (logp, slope), kept, step = 0.3, g(0.3), [], 1.2
    for _ in range(3000):
        new = x + 0.5 * step * slope + np.sqrt(step) * draw.normal()
        logp_new, slope_new = g(new)
        forth = (new - x - 0.5 * step * slope) ** 2 / (2 * step)
        back = (x - new - 0.5 * step * slope_new) ** 2 / (2 * step)
        if np.log(draw.uniform()) < logp_new - logp + forth - back:
            x, logp, slope = new, logp_new, slope_new
        kept.append(x)
    assert abs(np.mean(kept)) < 0.1 and abs(np.var(kept) - 1) < 0.15


def test_in_batches_and_loops():
    a = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(batch(jit_grad(square_root))(a), 0.5 / np.sqrt(a))
    f = lambda a: scan(lambda c, x: (c * square_root(x), None), 1.0, a)[0]
    np.testing.assert_allclose(jit_grad(f)(a), 6.0 * 0.5 / a)
    p = np.array([[2.0, 3.0, 1.5], [2.1, 2.9, 1.4]])
    rows = np.stack([jit_grad(lambda p: np.sum(system(p)))(row) for row in p])
    np.testing.assert_allclose(batch(jit_grad(lambda p: np.sum(system(p))))(p), rows, rtol=1e-10)


def test_captures_of_the_residual_are_seen():
    level = 2.0

    @implicit(lambda y, a: y**3 - level * a)
    def cube_root(a):
        return np.cbrt(level * a)
    g = jit_grad(cube_root)
    assert np.isclose(g(4.0), 2 / 12)
    level = 16.0
    with compiling(0):
        assert np.isclose(g(4.0), 16 / 48)


def test_outside_of_compiled_code_and_where_nothing_is_differentiated():
    assert repr(kepler) == "<jitad implicit kepler>"
    count = implicit(lambda y, n: y - n)(lambda n: float(n))
    assert jit(lambda n: count(n) + count(2))(3) == 5.0


# --- errors -----------------------------------------------------------------------------------------------

def test_what_a_solver_raises_comes_through():
    g = jit_grad(square_root)
    assert np.isclose(g(4.0), 0.25)
    with pytest.raises(ValueError, match=r"different signs"):
        g(-0.5)
    assert np.isclose(g(9.0), 1 / 6)


def test_a_singular_jacobian_is_an_error_or_infinite():
    assert jit_grad(square_root)(0.0) == np.inf
    @implicit(lambda y, a: np.array([y[0] + y[1] - a, 2 * y[0] + 2 * y[1] - 2 * a]))
    def undetermined(a):
        return np.array([a, 0.0 * a])
    with pytest.raises(np.linalg.LinAlgError):
        jit_grad(lambda a: np.sum(undetermined(a)))(1.0)


def test_errors():
    with pytest.raises(ArgumentTypeError, match=r"needs the function that is zero at the solution, not a float"):
        implicit(3.0)
    with pytest.raises(ArgumentTypeError, match=r"jitad.implicit needs a function, not a int"):
        implicit(lambda y: y)(3)
    larger = implicit(lambda y, a: np.array([y, y]) - a)(lambda a: a)
    with pytest.raises(OutputError, match=r"residual of `<lambda>` \(at .*must be as large as the solution, of shape "
                                          r"\(\), and is float64 of shape \(2,\)"):
        jit_grad(larger)(1.0)
    constant = implicit(lambda y, a: 0.0)(lambda a: a)
    with pytest.raises(OutputError, match=r"does not depend on the solution: it returned a float"):
        jit_grad(constant)(1.0)
    several = implicit(lambda y, a: y)(lambda a: (a, a))
    with pytest.raises(OutputError, match=r"must return one number or array of floats"):
        jit_grad(lambda a: several(a)[0])(1.0)
    def made_inside(a):
        return implicit(lambda y, b: y - b)(lambda b: b)(a)
    with pytest.raises(CaptureError, match=r"was made in the function that is recorded"):
        jit_grad(made_inside)(1.0)
    assert cache.info().currsize == 0
