"""Constraints that hold for each element by itself. Definitions after the chapter "Constraint Transforms" of Stan's
reference manual: "Lower bounded scalar", "Upper bounded scalar", "Lower and upper bounded scalar", "Affinely
transformed scalar".
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.constraints.base import Bound, Constraint, Earlier, Number, Shape, bound_at, shape_of, shaped
from jitad.errors import ConstraintError


class Real(Constraint):
    """Any real numbers."""

    separate = True

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        return shaped(u, self.shape), 0.0

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        return self.checked(value).ravel()


class Positive(Constraint):
    """x = exp(u)."""

    separate = True

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        return shaped(np.exp(u), self.shape), np.sum(u)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = self.checked(value)
        self.require(x > 0, "positive", value)
        return np.log(x).ravel()


class Lower(Constraint):
    """x = a + exp(u)."""

    def __init__(self, shape: Shape, a: Any):
        super().__init__("lower", shape, math.prod(shape))
        self.a, self.separate = a, not callable(a)

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        a = bound_at(self.a, earlier)
        return a + shaped(np.exp(u), self.shape), np.sum(u)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x, a = self.checked(value), bound_at(self.a, earlier)
        self.require(x > a, "above {}", value, a)
        return np.log(x - a).ravel()


class Upper(Constraint):
    """x = b - exp(u)."""

    def __init__(self, shape: Shape, b: Any):
        super().__init__("upper", shape, math.prod(shape))
        self.b, self.separate = b, not callable(b)

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        b = bound_at(self.b, earlier)
        return b - shaped(np.exp(u), self.shape), np.sum(u)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x, b = self.checked(value), bound_at(self.b, earlier)
        self.require(x < b, "below {}", value, b)
        return np.log(b - x).ravel()


class Interval(Constraint):
    """x = a + (b - a) / (1 + exp(-u)), the log-Jacobian log(b - a) - u - 2 log(1 + exp(-u)) for each element."""

    bounded = True

    def __init__(self, shape: Shape, a: Any, b: Any):
        super().__init__("interval", shape, math.prod(shape))
        self.a, self.b = a, b
        self.separate = not callable(a) and not callable(b)

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        a = bound_at(self.a, earlier)
        b = bound_at(self.b, earlier)
        free, width = shaped(u, self.shape), b - a
        softened = np.logaddexp(0.0, -free)                       # log(1 + exp(-u))
        return a + width * np.exp(-softened), np.sum(np.log(width) - free - 2.0 * softened)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x, a = self.checked(value), bound_at(self.a, earlier)
        b = bound_at(self.b, earlier)
        self.require((x > a) & (x < b), "between {} and {}", value, a, b)
        return (np.log(x - a) - np.log(b - x)).ravel()


class OffsetScale(Constraint):
    """x = m + s u."""

    def __init__(self, shape: Shape, m: Any, s: Any):
        super().__init__("offset_scale", shape, math.prod(shape))
        self.m, self.s = m, s
        self.separate = not callable(m) and not callable(s)

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        m = bound_at(self.m, earlier)
        s = bound_at(self.s, earlier)
        free = shaped(u, self.shape)
        return m + s * free, np.sum(np.broadcast_to(np.log(s), self.shape))

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        m = bound_at(self.m, earlier)
        s = bound_at(self.s, earlier)
        return ((self.checked(value) - m) / s).ravel()


# --- as users call them --------------------------------------------------------------------------------------

def real(*shape: Any) -> Constraint:
    """Any real numbers: ``real()`` is one, ``real(8)`` a vector, ``real(8, 2)`` a matrix.

    >>> real(2).forward(np.array([1.0, -1.0]), {})
    (array([ 1., -1.]), 0.0)
    """
    sizes = shape_of(shape, "real")
    return Real("real", sizes, math.prod(sizes))


def positive(*shape: Any) -> Constraint:
    """Positive numbers, by their logarithms: ``positive()``, ``positive(8)``, ``positive(8, 2)``.

    >>> value, log_jacobian = positive(2).forward(np.array([0.0, 1.0]), {})
    >>> value.round(3), float(log_jacobian)
    (array([1.   , 2.718]), 1.0)
    """
    sizes = shape_of(shape, "positive")
    return Positive("positive", sizes, math.prod(sizes))


def lower(a: Bound, *shape: Any) -> Constraint:
    """Numbers above `a`: a number, an array, or a function of the earlier parameters, a dict of their values.

    Without a shape it is that of `a`; a function has shape ().

    >>> lower(2.0).forward(np.array([0.0]), {})[0]
    np.float64(3.0)
    >>> lower(lambda earlier: earlier["floor"]).forward(np.array([0.0]), {"floor": 5.0})[0]
    np.float64(6.0)
    """
    bound, = _bounds("lower", a)
    sizes = _shape("lower", shape, bound)
    return real(sizes) if _is_all(-np.inf, bound) else Lower(sizes, _finite("lower", bound))


def upper(b: Bound, *shape: Any) -> Constraint:
    """Numbers below `b`; as `lower` otherwise.

    >>> upper(2.0).forward(np.array([0.0]), {})[0]
    np.float64(1.0)
    """
    bound, = _bounds("upper", b)
    sizes = _shape("upper", shape, bound)
    return real(sizes) if _is_all(np.inf, bound) else Upper(sizes, _finite("upper", bound))


def interval(a: Bound, b: Bound, *shape: Any) -> Constraint:
    """Numbers between `a` and `b`, by the logistic function; as `lower` otherwise.

    Raises `ConstraintError` unless a < b, where both are numbers or arrays.

    >>> interval(-1.0, 1.0, 3).forward(np.zeros(3), {})[0]
    array([0., 0., 0.])
    """
    low, high = _bounds("interval", a, b)
    sizes = _shape("interval", shape, low, high)
    if not callable(low) and not callable(high) and not np.all(low < high):
        raise ConstraintError(f"interval: the lower bound {low} is not below the upper bound {high}")
    if _is_all(-np.inf, low):
        return upper(high, sizes)
    return lower(low, sizes) if _is_all(np.inf, high) else Interval(sizes, low, high)


def offset_scale(m: Bound, s: Bound, *shape: Any) -> Constraint:
    """Real numbers x = m + s u: for another location and scale of the sampler's own coordinates (non-centred effects).

    `m` and `s` may be numbers, arrays or functions of the earlier parameters; shapes as for `lower`.

    >>> offset_scale(10.0, 2.0, 2).forward(np.array([0.0, 1.0]), {})[0]
    array([10., 12.])
    """
    offset, scale = _bounds("offset_scale", m, s)
    if not callable(scale) and not np.all(scale > 0):
        raise ConstraintError(f"offset_scale: the scale must be positive, not {scale}")
    return OffsetScale(_shape("offset_scale", shape, offset, scale), offset, scale)


def _bounds(name: str, *given: Any) -> list[Any]:
    """Numbers as floats, arrays as copies, functions as they are."""
    found: list[Any] = []
    for bound in given:
        if callable(bound):
            found.append(bound)
            continue
        try:
            array = np.array(bound, dtype=np.float64)
        except (TypeError, ValueError):
            raise ConstraintError(f"{name}: a bound must be a number, an array, or a function of the earlier "
                                  f"parameters, not {bound!r}") from None
        if np.isnan(array).any() or (np.isinf(array).any() and not np.isinf(array).all()):
            raise ConstraintError(f"{name}: bounds of one parameter are finite, or all of them infinite: {array}; "
                                  "give those elements parameters of their own")
        found.append(array if array.ndim else float(array))
    return found


def _shape(name: str, given: tuple[Any, ...], *bounds: Any) -> Shape:
    """The shape that is given, or that of the bounds."""
    of_bounds = np.broadcast_shapes(*(np.shape(bound) for bound in bounds if not callable(bound)))
    sizes = shape_of(given, name) if given else of_bounds
    try:
        fits = np.broadcast_shapes(sizes, of_bounds) == sizes
    except ValueError:
        fits = False
    if not fits:
        raise ConstraintError(f"{name}: bounds of shape {of_bounds} do not fit the shape {sizes}")
    return sizes


def _is_all(infinity: float, bound: Any) -> bool:
    return not callable(bound) and np.size(bound) > 0 and bool(np.all(bound == infinity))


def _finite(name: str, bound: Any) -> Any:
    if not callable(bound) and np.isinf(bound).any():
        raise ConstraintError(f"{name}: nothing is beyond the bound {bound}")
    return bound
