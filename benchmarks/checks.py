"""Whether a gradient is the derivative of its log density, and whether two results are the same."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
ValueAndGrad = tuple[float, Array]


def check_derivative(logp: Callable[..., Any], theta: Array, data: tuple[Any, ...],
                     result: tuple[float, Array]) -> None:
    """The value is NumPy's, and the gradient agrees with central differences along random directions."""
    value, grad = result
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(value, logp(theta, *data), rtol=1e-9)
        rng, step = np.random.default_rng(3), 1e-5
        for _ in range(3):
            v = rng.normal(size=theta.shape)
            v /= np.linalg.norm(v)
            slope = (logp(theta + step * v, *data) - logp(theta - step * v, *data)) / (2 * step)
            np.testing.assert_allclose(grad @ v, slope, rtol=1e-5, atol=1e-6 * float(np.linalg.norm(grad)))


def assert_same(result: ValueAndGrad, expected: ValueAndGrad, rtol: float = 1e-9) -> None:
    """Equal values, and gradients equal in proportion to their largest element."""
    np.testing.assert_allclose(result[0], expected[0], rtol=rtol)
    scale = float(np.max(np.abs(expected[1])))
    np.testing.assert_allclose(result[1], expected[1], rtol=rtol, atol=rtol * scale)
