"""Minima under constraints: what SciPy finds, and the derivatives of that, by everything that moves the constraints."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize

from jitad import hessian, jit, jit_grad, jvp, value_and_grad
from tests.helpers.solvers import agrees, together
from tests.programs.table import interpreted

EXACT = {"options": {"ftol": 1e-15, "maxiter": 500}}
COVARIANCE = np.array([[1.0, 0.2, 0.1], [0.2, 2.0, 0.3], [0.1, 0.3, 1.5]])
DISC, SQUARE = NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 0, 2.0), Bounds([0, 0], [1.2, 3])


def portfolio(p):
    """Shares that sum to 1, none below 0."""
    return minimize(lambda w: p[0] * (w @ COVARIANCE @ w) - p[1] * (w @ np.array([0.1, 0.2, 0.15])), np.ones(3) / 3,
                    bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda w: np.sum(w) - 1}, **EXACT).x


def nearest(p):
    """The nearest point of a disc that the line x0 = p[1] cuts."""
    constraints = [{"type": "ineq", "fun": lambda x: p[0] + 1.0 - x[0] ** 2 - x[1] ** 2},
                   {"type": "ineq", "fun": lambda x, a: a - x[0], "args": (p[1],)}]
    return minimize(lambda x: (x[0] - 2.0) ** 2 + (x[1] - 3.0) ** 2, [0.1, 0.2], constraints=constraints, **EXACT).x


def corner(p):
    """A linear program: the corner of two lines."""
    lines = LinearConstraint(np.array([[1.0, 2.0], [3.0, p[1]]]), [3.0, 4.0 * p[0]])
    return minimize(lambda x: p @ x, [0.0, 0.0], method="SLSQP", bounds=Bounds(0.0, [p[0] * 9, 9.0]),
                    constraints=lines, **EXACT).x


def captured(p):
    return minimize(lambda x: -p[0] * x[0] - p[1] * x[1], [0.5, 0.5], constraints=[DISC], bounds=SQUARE,
                    method="SLSQP", **EXACT).x


def boxed(p):
    fitted = optimize.least_squares(lambda x: x - p[:2], [0.15, 0.15], bounds=Bounds([p[0] - 0.9] * 2, 0.5)).x
    return fitted[0] + minimize(lambda x: np.sum(np.cosh(x - p)), np.zeros(2), bounds=Bounds([p[1] + 2, -9], 9.0)).x


def on_two_sides(a):
    """A curve within two ends, of which the upper one holds, and an equation: (x, 1 - x) with x x + 1 - x = a."""
    line = LinearConstraint([[1, 1]], 1.0, 1.0)
    curve = NonlinearConstraint(lambda x: [x[0] ** 2 + x[1]], -1.0, [a])
    return minimize(lambda x: -np.exp(x[0]) + 1e-3 * x[1], [0.5, 0.5], method="trust-constr",
                    constraints=[line, curve]).x[0]


def test_minima_under_constraints():
    together([portfolio, nearest, corner, captured, boxed], np.array([1.0, 1.2]), rtol=1e-6, slope_rtol=2e-3, step=1e-3,
             run=interpreted)


def test_derivatives_of_any_order_and_what_is_found():
    """x = (1 + sqrt(4 a - 3)) / 2; minima without the equations' help agree to the precision of numbers."""
    a = 1.5
    root = np.sqrt(4 * a - 3)
    (value, slope), bend = value_and_grad(on_two_sides)(a), hessian(on_two_sides)(a)
    np.testing.assert_allclose([value, slope, bend], [(1 + root) / 2, 1 / root, -2 / root**3], rtol=1e-9)
    np.testing.assert_allclose(jvp(on_two_sides, (a,), (2.0,))[1], 2 / root, rtol=1e-9)


def test_constraints_that_say_the_same_and_such_as_nothing_meets():
    def twice(a):
        same = {"type": "ineq", "fun": lambda x: a - x[0]}
        return minimize(lambda x: (x[0] - 9) ** 2 + (x[1] - x[0]) ** 2, [0.0, 0.0], constraints=(same, same)).x.sum()

    def never(a):
        found = minimize(lambda x: (x[0] - a) ** 2, [0.0], constraints=[
            {"type": "eq", "fun": lambda x: x[0] - 1.0}, {"type": "eq", "fun": lambda x: x[0] + 1.0}])
        return found.x[0] if found.success else 7.0 * a
    agrees(twice, 2.0, rtol=1e-6, slope_rtol=2e-3, step=1e-3, run=interpreted)
    assert jit_grad(never)(3.0) == 7.0


def test_wrong_constraints_are_errors():
    for constraint, error, what in (({"fun": np.sum}, KeyError, "no type defined"),
                                    ({"type": "eq"}, ValueError, "no function defined"),
                                    ({"type": "le", "fun": np.sum}, ValueError, "Unknown constraint type 'le'"),
                                    (3.0, TypeError, "are expected, not Tracer"),
                                    (LinearConstraint([[1.0]], 2.0, 1.0), ValueError, "above its upper end")):
        with pytest.raises(error, match=what):
            jit(lambda a, c=constraint: minimize(lambda x: x[0] ** 2, [a], constraints=[c]).x)(1.0)
    with pytest.warns(RuntimeWarning, match="cannot handle constraints"):
        jit(lambda a: minimize(lambda x: (x[0] - a) ** 2, [0.0], method="BFGS", constraints=[
            {"type": "eq", "fun": np.sum}]).x)(1.0)
