"""Engines that need the models in a language of their own: PyTensor (numba mode) and CasADi, on a few small models.

The other peers run the models' own source, see `makers`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.models.model import Array, Data

Compiled = Callable[[Array], tuple[float, Array]]


def _eight_schools(m: Any, theta: Any, n: int, y: Any, sigma: Any) -> Any:
    """`m` names the functions; slices, arithmetic and powers are the same everywhere."""
    z, mu, tau = theta[:n], theta[n], m.exp(theta[n + 1])
    prior = -0.5 * m.sum(z**2) - 0.5 * (mu / 5) ** 2 - m.log1p((tau / 5) ** 2) + theta[n + 1]
    return prior + m.sum(-0.5 * ((y - (mu + tau * z)) / sigma) ** 2 - m.log(sigma))


def _linear_regression(m: Any, theta: Any, n: int, score: Any, school: Any, iq: Any) -> Any:
    sd = m.exp(theta[4])
    mu = theta[0] + theta[1] * school + theta[2] * iq + theta[3] * school * iq
    return theta[4] - m.log1p((sd / 2.5) ** 2) - 0.5 * m.sum(((score - mu) / sd) ** 2) - n * theta[4]


def _gauss_mixture(m: Any, theta: Any, n: int, y: Any) -> Any:
    mu_1, mu_2 = theta[0], theta[0] + m.exp(theta[1])
    weight = 1 / (1 + m.exp(-theta[4]))
    a = m.log(weight) - theta[2] - 0.5 * ((y - mu_1) / m.exp(theta[2])) ** 2
    b = m.log1p(-weight) - theta[3] - 0.5 * ((y - mu_2) / m.exp(theta[3])) ** 2
    return m.sum(m.logaddexp(a, b)) - 0.5 * m.sum(theta**2)


DENSITIES: dict[str, Callable[..., Any]] = {
    "eight_schools": _eight_schools, "linear_regression": _linear_regression, "gauss_mixture": _gauss_mixture}


def pytensor_function(name: str, theta: Array, data: Data) -> Compiled:
    """Value and gradient, compiled by PyTensor's numba mode; the data are shared variables."""
    import pytensor
    import pytensor.tensor as pt

    vector = pt.dvector("theta")
    constants = [pytensor.shared(a) for a in data]
    value = DENSITIES[name](pt, vector, len(data[0]), *constants)
    compiled = pytensor.function([vector], [value, pytensor.grad(value, vector)], mode="NUMBA", trust_input=True)

    def call(x: Array) -> tuple[float, Array]:
        value, gradient = compiled(x)
        return float(value), gradient

    return call


def casadi_function(name: str, theta: Array, data: Data) -> Compiled:
    """Value and gradient by CasADi's own virtual machine, through its buffers, which do not convert."""
    import casadi

    class Names:
        exp, log, log1p = staticmethod(casadi.exp), staticmethod(casadi.log), staticmethod(casadi.log1p)
        sum = staticmethod(casadi.sum1)

        @staticmethod
        def logaddexp(a: Any, b: Any) -> Any:
            return casadi.fmax(a, b) + casadi.log1p(casadi.exp(-casadi.fabs(a - b)))

    vector = casadi.SX.sym("theta", len(theta))
    value = DENSITIES[name](Names, vector, len(data[0]), *(casadi.DM(a) for a in data))
    function = casadi.Function("f", [vector], [value, casadi.gradient(value, vector)])
    buffer, run = function.buffer()
    x, found, gradient = theta.copy(), np.zeros(1), np.zeros(len(theta))
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(found))
    buffer.set_res(1, memoryview(gradient))

    def call(point: Array) -> tuple[float, Array]:
        x[:] = point
        run()
        return float(found[0]), gradient.copy()

    call.owner = (function, buffer)  # type: ignore[attr-defined]
    return call
