"""Roots and fixed points: SciPy's values, and the derivatives of what was found."""
from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from jitad import batch, cache, derivative, grad, jit, jvp, value_and_grad
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import agrees

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
ANOMALIES = np.linspace(0.1, 3.0, 7)
BRACKETING = ["brentq", "brenth", "ridder", "bisect", "toms748"]


def test_brackets():
    """All of SciPy's functions, with an argument, with a branch, with functions of math, one in the other."""
    def total(a, b):
        found = sum(getattr(optimize, name)(lambda x: x**3 + b * x - a, 0.0, 10.0) for name in ("brentq", "toms748"))
        found += optimize.bisect(lambda x, c: math.exp(x) - c, 0.0, a, args=(a,), xtol=1e-13)
        found += optimize.ridder(lambda x: x - a if x > 1 else 2 * (x - a) + 1, 0.0, 10.0)
        inner = lambda x: optimize.brentq(lambda y: y**3 - a - x, 0.0, 10.0)
        found += optimize.brenth(lambda x: x - inner(x), 0.0, 10.0)
        found += optimize.root_scalar(lambda x: x * x - b, bracket=(0, 10.0)).root
        return found + optimize.brentq(lambda x: x * x - a, 0.0, 10.0, full_output=True)[1].root
    agrees(total, 4.0, 1.5)


def test_newton_and_the_secant():
    def kepler(e):
        known = {"fprime": lambda E: 1 - e * np.cos(E)}
        f = lambda E: E - e * np.sin(E) - ANOMALIES
        third = optimize.newton(f, ANOMALIES, fprime2=lambda E: e * np.sin(E), **known)
        return np.sum(np.cos(optimize.newton(f, ANOMALIES, **known))) + np.sum(optimize.newton(f, ANOMALIES) * third)

    def numbers(a):
        f, slope = lambda x: x * x - a, lambda x: 2 * x
        started_at_the_root = optimize.newton(f, 2.0)
        return (started_at_the_root + optimize.newton(f, 3.0) + optimize.newton(f, 3.0, fprime=slope)
                + optimize.newton(f, 3.0, fprime=slope, fprime2=lambda x: 2.0) + optimize.newton(f, 1.0, x1=3.0)
                + optimize.root_scalar(f, x0=3.0, fprime=slope).root + optimize.root_scalar(f, x0=3.0).root
                + optimize.root_scalar(lambda x: (f(x), slope(x)), x0=3.0, fprime=True, options={"xtol": 1e-13}).root)
    agrees(kepler, 0.3)
    agrees(numbers, 4.0, rtol=1e-7)
    value, slope = value_and_grad(lambda a: optimize.newton(lambda x: x * x - a, 2.0))(4.0)
    assert (value, slope) == (2.0, 0.25)                 # the secant's steps would say 0.2222


def test_fixed_points_that_depend_on_each_other():
    def total(a):
        alone = optimize.fixed_point(lambda x: np.cos(a * x), 0.5) + optimize.fixed_point(
            lambda x: np.cos(0.5 * a * x), 0.5, method="iteration")
        return alone + np.sum(optimize.fixed_point(lambda x: np.sqrt(a + x[::-1]), np.array([1.0, 2.0])) ** 2)
    agrees(total, 1.0, rtol=1e-7)


def test_higher_orders_both_modes_and_batches():
    root = lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 10.0)
    exact = [8.0 ** (1 / 3), 8.0 ** (-2 / 3) / 3, -2 / 9 * 8.0 ** (-5 / 3), 10 / 27 * 8.0 ** (-8 / 3)]
    for order in range(1, 4):
        found = root
        for _ in range(order):
            found = derivative(found)
        np.testing.assert_allclose(found(8.0), exact[order], rtol=1e-9)
    np.testing.assert_allclose(jvp(root, (8.0,), (2.0,)), [exact[0], 2 * exact[1]], rtol=1e-11)
    values, slopes = batch(value_and_grad(root))(np.array([1.0, 8.0, 27.0]))
    np.testing.assert_allclose(values, [1, 2, 3], rtol=1e-11)
    np.testing.assert_allclose(slopes, [1 / 3, 1 / 12, 1 / 27], rtol=1e-9)


def test_the_number_of_steps_compiles_nothing():
    compiled = grad(lambda a: optimize.brentq(lambda x: x**5 - a, 0.0, 1e3))
    for a in np.geomspace(1e-3, 1e6, 40):
        np.testing.assert_allclose(compiled(a), a ** -0.8 / 5, rtol=1e-7)
    assert cache.info(compiled).compiles == 1


def test_what_fails_raises_what_scipy_raises():
    rootless = jit(lambda a: optimize.newton(lambda x: x * x + a, 1.0, fprime=lambda x: 2 * x))
    assert abs(rootless(-4.0) - 2.0) < 1e-8
    with pytest.raises(RuntimeError, match="Failed to converge after 50 iterations"):
        rootless(4.0)
    bracket = jit(lambda a: optimize.brentq(lambda x: x * x - a, 0.0, 10.0))
    bracket(4.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="must have different signs"):
            bracket(-4.0)
    with pytest.raises(RuntimeError, match="Failed to converge after 3 iterations"):
        jit(lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 10.0, maxiter=3))(4.0)
    with pytest.raises(ValueError, match="xtol too small"):
        jit(lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 10.0, xtol=0))(4.0)
    with pytest.raises(ValueError, match="Bracket needed"):
        jit(lambda a: optimize.root_scalar(lambda x: x - a, method="brentq"))(4.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'x2'"):
        jit(lambda a: optimize.root_scalar(lambda x: x - a, x0=a, options={"x2": 1}).root)(4.0)


@pytest.mark.filterwarnings("ignore:Derivative was zero", "ignore:Tolerance of")
def test_what_is_not_converged_says_so():
    """Root, whether it was found, and SciPy's counts of steps and calls, where its steps are made."""
    def solved(**options):
        def solve(a):
            report = optimize.root_scalar(lambda x: x * x - a, **options)
            counts = () if "bracket" in options else (report.iterations, report.function_calls)
            return report.root, report.converged, report.flag == "converged", *counts
        return solve
    slope = {"fprime": lambda x: 2 * x}
    for options in ({"bracket": (0.0, 10.0)}, {"x0": 3.0, **slope}, {"x0": 2.0, **slope}, {"x0": 0.0, **slope},
                    {"x0": 3.0, "fprime2": lambda x: 2.0, **slope}, {"x0": 3.0}, {"x0": 3.0, "x1": 1.0},
                    {"x0": -1.0, "x1": 1.0}):
        np.testing.assert_allclose(jit(solved(**options))(4.0), solved(**options)(4.0), rtol=1e-12)
        if options.get("x0") == 3.0:
            np.testing.assert_allclose(jit(solved(maxiter=2, **options))(4.0), solved(maxiter=2, **options)(4.0))
    assert jit(solved(bracket=(0.0, 10.0), maxiter=3))(4.0)[1:] == (False, False)
    full = {"full_output": True, "disp": False, "maxiter": 3}
    assert not jit(lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 10.0, **full)[1]["converged"])(4.0)
    with pytest.raises(UnsupportedOperationError, match=r"iterations of scipy\.optimize's brentq"):
        jit(lambda a: optimize.root_scalar(lambda x: x - a, bracket=(0.0, 5.0)).iterations)(4.0)


def test_no_root_is_found_where_there_is_none():
    for equation, options in ((lambda x, a: x * 0.0 + a, {}), (lambda x, a: x * x + a, {"x1": 1.0})):
        with pytest.raises(RuntimeError, match="Failed to converge"):
            jit(lambda a, f=equation, o=options: optimize.newton(f, -1.0, args=(a,), **o))(1.0)
    with pytest.raises(ValueError, match="NaN; solver cannot continue"):
        jit(lambda a: optimize.brentq(lambda x: np.where(np.abs(x - 15) < 3, np.nan, x - a), 0.0, 30.0))(15.1)


def test_constant_solves_keep_all_of_scipys_options():
    def scaled(a):
        root, report = optimize.bisect(lambda x: x * x - 2, 0, 3, full_output=True)
        assert report.iterations > 10
        return a * root
    np.testing.assert_allclose(value_and_grad(scaled)(3.0), (3 * 2**0.5, 2**0.5))


def test_an_equation_that_can_not_take_its_argument_is_named():
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.optimize\.brentq, at .*test_roots.*the function that"):
        jit(lambda a: optimize.brentq(lambda x: np.array([-1.0, 1.0, 1.0])[int(x)] * a, 0.0, 2.0))(4.0)
