"""The arguments of scipy.optimize.minimize: every kind of method finds the same minimum, maxima by their sign."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from jitad.errors import ArgumentTypeError
from jitad.integrations.scipy import objective


def rosenbrock(x, a):
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize(("method", "second"), [("L-BFGS-B", None), ("trust-exact", "hess"), ("trust-krylov", "hessp"),
                                                ("Newton-CG", "hessp"), ("BFGS", None)])
def test_minimum(method, second):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = minimize(x0=[-1.0, 2.0, 0.0], method=method, **objective(rosenbrock, (50.0,), second=second))
    np.testing.assert_allclose(fit.x, 1.0, atol=1e-3)


def test_maximum_of_a_log_density():
    arguments = objective(lambda x: -0.5 * np.sum((x - 3.0) ** 2), second="hess", maximise=True)
    fit = minimize(x0=np.zeros(2), method="trust-exact", **arguments)
    np.testing.assert_allclose(fit.x, 3.0, atol=1e-6)
    np.testing.assert_allclose(arguments["hess"](fit.x), np.eye(2))


def test_another_second_is_refused():
    with pytest.raises(ArgumentTypeError, match="'hess', 'hessp' or None, not 'hessian'"):
        objective(rosenbrock, second="hessian")
