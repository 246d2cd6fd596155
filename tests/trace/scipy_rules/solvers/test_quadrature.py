"""Integrals: SciPy's values within its tolerances, and derivatives by parameters and limits."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize

from jitad import grad, hessian, jit, value_and_grad
from jitad.errors import UnsupportedOperationError
from jitad.trace.scipy_rules.solvers import quadrature
from tests.helpers.solvers import agrees, together
from tests.programs.table import interpreted

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def total(*integrands):
    return lambda *args: sum(f(*args) for f in integrands)


def test_finite_ranges_with_kinks_and_singular_ends():
    quad = lambda f, *range_, **options: integrate.quad(f, *range_, **options)[0]
    agrees(total(
        lambda a: quad(lambda x: np.exp(-a * x), a, a**2), lambda a: quad(lambda x: a / np.sqrt(x), 0.0, a),
        lambda a: quad(lambda x: x * a if x < 0.3 * a else 0.3 * a * a, 0, 1),
        lambda a: quad(lambda x, b, c: x**b * c, 0, 1, args=(a, 2.0)),
        lambda a: quad(lambda x: abs(x - 0.5) ** 0.5 * a, 0, 1, points=[0.5]),
        lambda a: 1e-3 * quad(lambda x: 1 / (1e-4 + (x - 0.3 * a) ** 2), 0, 1)), 1.3, rtol=2e-8, step=1e-4)


def test_infinite_ranges():
    quad = lambda f, *range_: integrate.quad(f, *range_)[0]
    bell = lambda x: np.exp(-(x - 0.3) ** 2)
    agrees(total(lambda a: quad(bell, -np.inf, a), lambda a: quad(lambda x: bell(a * x), -np.inf, np.inf),
                 lambda a: quad(bell, np.inf, a)), 1.3, rtol=2e-8, step=1e-4)


def test_several_dimensions_and_vectors():
    agrees(total(
        lambda a: integrate.nquad(lambda x, y: np.exp(-a * x * y), [lambda y: (0, y), (0, a)])[0],
        lambda a: np.sum(integrate.quad_vec(lambda x: np.array([np.exp(-a * x), x**a]), 0, 1)[0] ** 2)),
        1.3, rtol=2e-8, step=1e-4)


def test_second_derivatives_and_one_solver_in_another():
    laplace = lambda a: integrate.quad(lambda x: np.exp(-a * x), 0, np.inf)[0]
    np.testing.assert_allclose(hessian(laplace)(1.3), 2 / 1.3**3, rtol=1e-8)

    def roots(a):
        return integrate.quad(lambda x: optimize.brentq(lambda y: y**3 - a - x, 0.0, 10.0), 0, 1)[0]
    exact = 0.75 * (3.0 ** (4 / 3) - 2.0 ** (4 / 3)), 3.0 ** (1 / 3) - 2.0 ** (1 / 3)
    np.testing.assert_allclose(value_and_grad(roots)(2.0), exact, rtol=1e-9)

    def quantile(a):
        return optimize.brentq(lambda x: integrate.quad(lambda y: np.exp(-a * y), 0, x)[0] - 0.5, 0.0, 5.0)
    found = -np.log(1 - 0.35) / 0.7
    slope = -found / 0.7 + 0.5 / 0.65 / 0.7
    np.testing.assert_allclose(value_and_grad(quantile)(0.7), (found, slope), rtol=1e-7)


def test_the_rule_is_exact_to_its_degree():
    x, w = np.polynomial.legendre.leggauss(10)
    gauss = quadrature.GAUSS > 0
    np.testing.assert_allclose(quadrature.POINTS[gauss][::-1], x, atol=1e-15)
    np.testing.assert_allclose(quadrature.GAUSS[gauss], w, rtol=1e-14)
    for power in range(32):
        exact = (1 - (-1) ** (power + 1)) / (power + 1)
        np.testing.assert_allclose(np.sum(quadrature.KRONROD * quadrature.POINTS**power), exact, atol=1e-15)


def test_what_does_not_converge_warns_and_what_is_missing_is_named():
    with pytest.warns(integrate.IntegrationWarning, match="has not reached its tolerance"):
        jit(lambda a: integrate.quad(lambda x: np.sin(a / x) / x, 0.0, 1.0, limit=5)[0])(1.0)
    for case, what in ((lambda a: integrate.quad(lambda x: a * x, 0.0, -np.inf, weight="cos", wvar=2.0)[0],
                        "scipy.integrate.quad with this weight and limits in this order"),
                       (lambda a: integrate.quad(lambda x: a * x, 0.0, 1.0, full_output=1)[2]["neval"],
                        "what scipy.integrate.quad tells with full_output"),
                       (lambda a: integrate.nquad(lambda x: a * x, [(0, 1)], full_output=True)[0], "nquad with full_")):
        with pytest.raises(UnsupportedOperationError, match=rf"{what}.* at .*test_quad"):
            jit(case)(1.0)


def test_inner_derivatives_at_plain_numbers():
    """An inner differentiation is with respect to a constant, which outside of it has no derivative."""
    slope = lambda a: a * grad(lambda t: integrate.quad(lambda x: np.exp(-t * x), 0, 1.0)[0])(2.0)
    exact = (3.0 * np.exp(-2.0) - 1.0) / 4.0
    np.testing.assert_allclose(interpreted(value_and_grad(slope), (1.5,)), (1.5 * exact, exact), rtol=1e-10)


def test_kinks_and_roots_that_move():
    """Where the derivative of the integrand jumps or is infinite, its intervals are chosen for it."""
    at = 0.37
    for power, exact, near in ((1.0, 2 * at - 1.0, 3e-6), (0.5, at**0.5 - (1 - at) ** 0.5, 3e-5)):
        slope = interpreted(value_and_grad(
            lambda q, k=power: integrate.quad(lambda x: np.abs(x - q) ** k, 0, 1)[0]), (at,))[1]
        np.testing.assert_allclose(slope, exact, rtol=near)


def test_break_points_and_options_of_each_range():
    """Points that are traced move with what they are made of: so do jumps there."""
    cut = np.array([1.0, 2.0])

    def stepped(x, a):
        return a * x if x < a else a * a * x
    agrees(total(
        lambda a: integrate.quad(stepped, 0, 3, args=(a,), points=[a], full_output=True)[0],
        lambda a: integrate.quad(lambda x: np.abs(x - 1) ** 1.5 * a + np.abs(x - 2), 0, 3, points=cut)[0],
        lambda a: np.sum(integrate.quad_vec(lambda x: np.exp(-abs(x - a) * cut), 0, 2, points=[a], norm="max")[0]),
        ), 1.3, rtol=2e-8, step=1e-4, run=interpreted)
    near = {"epsabs": 1e-3, "epsrel": 1e-3}
    several = lambda a: integrate.nquad(
        lambda x, y, b: np.exp(-b * np.abs(x - 0.5) * y), [lambda y, b: (0, b + y), [0, 2.0]], args=(a,),
        opts=[{"points": [0.5], **near}, lambda b: near])[0] + integrate.dblquad(
            lambda y, x, b: np.exp(-b * x * y), 0, 1, 0, lambda x: 1 + x, args=(a,), **near)[0]
    np.testing.assert_allclose(interpreted(jit(several), (1.3,)), several(1.3), rtol=1e-6)


def test_three_dimensions():
    ends = 0.0, 1.0, lambda x, y: 0.0, lambda x, y: y
    value, slope = value_and_grad(lambda k: integrate.tplquad(lambda z, y, x: k * z, 0.0, k, *ends)[0])(0.9)
    np.testing.assert_allclose([value, slope], [0.81 / 6, 0.3], rtol=1e-12)


def test_what_fails_in_a_step_is_nan():
    """The inner root has no bracket for small x, on one of two ways."""
    root = lambda a, x: optimize.brentq(lambda y: y * y - a * x, 0.0, 3.0)
    inner = lambda a, least: integrate.quad(lambda x: root(a, x - 0.2) if x > least else 0.0, 0.0, 1.0, limit=2)[0]
    with pytest.warns(integrate.IntegrationWarning):
        assert np.isnan(jit(lambda a: inner(a, -1.0))(1.0))
    np.testing.assert_allclose(jit(lambda a: inner(a, 0.2))(1.0), 2 / 3 * 0.8**1.5, rtol=1e-2)


def test_weights():
    """Against SciPy's QAWO, QAWF, QAWS and QAWC."""
    decay, wave = lambda x, p: np.exp(-p * x), lambda x, p: np.cos(p * x)
    one = lambda *given, **options: integrate.quad(*given, **options)[0]
    together([lambda p: one(decay, 0, 3, (p,), weight="cos", wvar=7 * p),
              lambda p: one(lambda x: p / (x + p), 0, np.inf, weight="sin", wvar=2.0),
              lambda p: one(lambda x: 1 / (1 + x * x * p), -np.inf, p, weight="cos", wvar=3.0 * p),
              lambda p: one(wave, 0.2, 2 * p, (p,), weight="alg-loga", wvar=(-0.5, 0.3)),
              lambda p: one(wave, 2.0, 0.2, (p,), weight="alg-log", wvar=(p / 4, -0.8)),
              lambda p: one(decay, -1, 2, (p,), weight="cauchy", wvar=0.3 * p),
              lambda p: one(decay, -1, p, (p,), weight="cauchy", wvar=3.0),
              lambda p: np.abs(one(lambda x: np.exp(1j * p * x), 0, 1, complex_func=True))],
             1.1, rtol=1e-9, slope_rtol=1e-5, step=1e-5, run=interpreted)
