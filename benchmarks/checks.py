"""Whether a gradient is the derivative of its log density."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


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
