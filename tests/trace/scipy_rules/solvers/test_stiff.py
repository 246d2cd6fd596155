"""Stiff equations: SciPy's values, and gradients by the stages' own equations."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from jitad import value_and_grad
from tests.helpers.solvers import differences
from tests.programs.table import interpreted

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def robertson(p, method="BDF", rtol=1e-6):
    def rates(t, y):
        slow, back, fast = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] ** 2
        return [-slow + back, slow - back - fast, fast]
    found = solve_ivp(rates, (0.0, 1e5), [1.0, 0.0, 0.0], method=method, t_eval=[1.0, 1e3, 1e5],
                      rtol=rtol, atol=1e-6 * rtol)
    return np.sum(found.y * np.array([[1.0], [1e4], [1.0]]))


def test_robertsons_reactions():
    rates, toward = np.array([0.04, 1e4, 3e7]), np.array([1.0, -0.5, 0.3])
    value, gradient = interpreted(value_and_grad(robertson), (rates,))
    exactly = lambda e: robertson(rates * np.exp(e * toward), "LSODA", 1e-10)
    np.testing.assert_allclose(value, exactly(0.0), rtol=1e-5)
    np.testing.assert_allclose(np.sum(gradient * rates * toward), differences(exactly, (0.0,), 1e-3)[0], rtol=1e-4)


def test_van_der_pols_oscillator():
    """In columns, with a branch in the right-hand side, which is for each stage its own."""
    def last(mu, rtol, method="Radau"):
        def rates(t, y):
            return np.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - (y[0] if t < 5.0 else y[0] + 0.0)])
        found = solve_ivp(rates, (0.0, 20.0), [2.0, 0.0], method=method, vectorized=True,
                          t_eval=[10.0, 18.0], rtol=rtol, atol=0.01 * rtol)
        return np.sum(found.y)
    value, slope = value_and_grad(lambda mu: last(mu, 5e-6))(20.0)
    np.testing.assert_allclose(value, last(20.0, 5e-6), rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(slope, differences(lambda mu: last(mu, 1e-12, "LSODA"), (20.0,), 1e-3)[0], rtol=2e-3)
