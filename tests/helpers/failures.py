"""Functions that fail for some arguments, and the comparison with NumPy in either order."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.linalg import LinAlgError

import jitad
from jitad import jit_grad
from tests.helpers.public import compiling

EYE, B = np.eye(3), np.array([1.0, -2.0, 0.5])
GOOD, ALSO_GOOD, BAD, ALSO_BAD = (np.array([a, 0.3, 1.5]) for a in (0.4, 0.2, 1.6, 2.5))


def matrix(x: Any) -> Any:
    """Positive definite for ``|x[0]| < 1 / sqrt(2)``."""
    off = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    return EYE + x[0] * off + x[1] ** 2 * np.diag([0.0, 0.0, 0.1])


def singular(x: Any) -> Any:
    """Of rank two where x[0] is 1.6 or 2.5, else regular: by numbers that rounding leaves alone."""
    return np.array([[1.0, 2.0, 0.0], [2.0, 4.0 + (x[0] < 1.5) * 1.0, 0.0], [0.0, 0.0, 1.0]]) * x[2]


def ends(f: Any, x: Any) -> Any:
    """What f gives, or the type and text of what it raises."""
    try:
        return f(x)
    except (ArithmeticError, ValueError, LookupError, LinAlgError, RuntimeError) as error:
        return type(error), str(error)


def slope(f: Any, x: Any, h: float = 1e-6) -> Any:
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


def follows(f: Any, points: Any, ways: int = 2) -> None:
    """Value and gradient are NumPy's at all points, in either order, from `ways` compiled ways."""
    for order in (points, points[::-1]):
        jitad.cache.clear()
        g = jit_grad(f)
        with compiling(ways):
            for x in (*order, *order):
                expected = ends(f, x)
                if isinstance(expected, tuple):
                    with pytest.raises(expected[0]) as caught:
                        g.value_and_grad(x)
                    assert str(caught.value) == expected[1]
                    continue
                value, gradient = g.value_and_grad(x)
                np.testing.assert_allclose(value, expected, rtol=1e-12)
                np.testing.assert_allclose(gradient, slope(f, x), rtol=1e-6, atol=1e-6)


def log_det(a: Any) -> Any:
    return 2.0 * np.sum(np.log(np.diag(np.linalg.cholesky(a))))


def caught_outside(x: Any) -> Any:
    try:
        return log_det(matrix(x)) + x[1]
    except LinAlgError:
        return x[2] ** 2


def raised_again(x: Any) -> Any:
    try:
        return log_det(matrix(x))
    except LinAlgError as error:
        raise ValueError("not a covariance") from error
