"""Piecewise polynomials: `PPoly` and the splines that SciPy makes of it.

On [x[i], x[i+1]) the value is the sum of ``c[j, i] (t - x[i])**(k - 1 - j)``: gathers of the coefficients at the
interval of each point, found by bisection, and Horner's rule. So derivatives by the points are those of the pieces, as
SciPy's ``nu=1`` gives them, those by coefficients are sums over the points in an interval; both cost what the value
costs, times a small factor.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, require, scipy_class, stands_for, this_recorder

__all__ = ["Pieces", "evaluated", "interval"]

ASCENDING = "`x` must be strictly increasing sequence."


def interval(knots: Any, points: Any, first: int, last: int) -> Any:
    """The interval of each point among those that begin at `knots`, from `first` to `last`."""
    return np.clip(np.searchsorted(knots, points, side="right") - 1, first, last)


def evaluated(spline: Any, x: Any, nu: int, extrapolate: Any, ends: tuple[Any, Any], trailing: tuple[int, ...]) -> Any:
    """The derivative number `nu` of a spline at points of any shape; `ends` of where it is known, and the dimensions
    that each value has."""
    points, (first, last) = lifted(x), ends
    extrapolate = spline.extrapolate if extrapolate is None else extrapolate
    flat = points.reshape(-1) + 0.0
    if extrapolate == "periodic":
        flat = first + (flat - first) % (last - first)
    value = spline.at(flat, nu)
    if not extrapolate:
        outside = (flat < first) | (flat > last)
        value = np.where(outside.reshape((-1,) + (1,) * (value.ndim - 1)), np.nan, value)
    value, d, axis = value.reshape(points.shape + trailing), points.ndim, spline.axis
    if not axis:
        return value
    return np.transpose(value, [*range(d, d + axis), *range(d), *range(d + axis, value.ndim)])


class Pieces(StandIn):
    """Coefficients `c` of shape (order, intervals, ...) and breakpoints `x`; the result has `axis` where points are."""

    __slots__ = ("axis", "c", "extrapolate", "x")

    def __init__(self, kind: type, c: Any, x: Any, extrapolate: Any, axis: int) -> None:
        super().__init__(kind)
        self.c, self.x = lifted(c), lifted(x)
        self.extrapolate, self.axis = extrapolate, axis
        if self.c.dtype.kind == "c":
            raise refused(self.c, "a piecewise polynomial of complex coefficients", "make one of each part")

    @method
    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        return evaluated(self, x, nu, extrapolate, (self.x[0], self.x[-1]), self.c.shape[2:])

    def at(self, flat: Any, nu: int) -> Any:
        order, intervals = self.c.shape[:2]
        if nu < 0:
            return self.antiderivative(-nu).at(flat, 0)
        where = interval(self.x, flat, 0, intervals - 1)
        s = (flat - self.x[where]).reshape((-1,) + (1,) * (self.c.ndim - 2))
        total: Any = None
        for j in range(order - nu):
            term = self.c[j][where] * _falling(order - 1 - j, nu)
            total = term if total is None else total * s + term
        return self.c[0][where] * 0.0 if total is None else total

    @method
    def derivative(self, nu: int = 1) -> Any:
        """The piecewise polynomial of the derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        order = self.c.shape[0]
        if nu >= order:
            return self._with(self.c[:1] * 0.0)
        factors = np.array([_falling(order - 1 - j, nu) for j in range(order - nu)])
        return self._with(self.c[:order - nu] * factors.reshape((-1,) + (1,) * (self.c.ndim - 1)))

    @method
    def antiderivative(self, nu: int = 1) -> Any:
        """The continuous antiderivative that is zero at the first breakpoint."""
        if nu <= 0:
            return self.derivative(-nu) if nu else self
        order, c = self.c.shape[0], self.c
        factors = 1.0 / np.arange(order, 0, -1)
        c = c * factors.reshape((-1,) + (1,) * (c.ndim - 1))
        steps = np.diff(self.x).reshape((-1,) + (1,) * (c.ndim - 2))
        ends: Any = c[0] * 0.0
        for j in range(order):
            ends = (ends + c[j]) * steps
        before = np.concatenate([ends[:1] * 0.0, np.cumsum(ends, axis=0)[:-1]])
        found = self._with(np.concatenate([c, before[None]]))
        if self.extrapolate == "periodic":
            found.extrapolate = False
        return found.antiderivative(nu - 1) if nu > 1 else found

    def _with(self, c: Any) -> Pieces:
        kind = scipy_class("PPoly") if self.jitad_kind.__name__ != "PPoly" else self.jitad_kind
        return Pieces(kind, c, self.x, self.extrapolate, self.axis)

    @method
    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The definite integral from `a` to `b`."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        if extrapolate == "periodic":
            period, first = self.x[-1] - self.x[0], self.x[0]
            total = whole.at(lifted(self.x[-1:]), 0)[0]

            def upto(t: Any) -> Any:
                turns = np.floor((t - first) / period)
                return turns * total + whole.at((t - turns * period).reshape(-1), 0)[0]
            return upto(lifted(b)) - upto(lifted(a))
        return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)


def _falling(power: int, nu: int) -> float:
    """The factor of the derivative `nu` of a power."""
    return float(math.perm(power, nu))


@stands_for("scipy.interpolate.PPoly", Pieces, "c x extrapolate axis")
def ppoly(c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Pieces:
    c, x = lifted(c), lifted(x)
    if x.ndim != 1 or x.size < 2:
        raise ValueError("at least two breakpoints are needed")
    if c.ndim < 2 or c.shape[1] != x.size - 1:
        raise ValueError(f"number of coefficients != len(x)-1: {c.shape} for {x.size} breakpoints")
    if axis:
        c = np.moveaxis(np.moveaxis(c, axis + 1, 0), 1, 0)
    require(np.diff(x) > 0, ValueError(ASCENDING))
    return Pieces(scipy_class("PPoly"), c, x, True if extrapolate is None else extrapolate, axis)


def prepared(x: Any, y: Any, axis: int, slopes: Any = None) -> tuple[Any, Any, Any, int]:
    """`x`, and `y` and the slopes with `axis` first, checked as SciPy does."""
    x, y = lifted(x) + 0.0, lifted(y) + 0.0
    if y.dtype.kind == "c":
        raise refused(this_recorder(), "interpolation of complex values", "interpolate each part")
    if x.ndim != 1:
        raise ValueError("`x` must be 1-dimensional.")
    if x.size < 2:
        raise ValueError("`x` must contain at least 2 elements.")
    axis = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    if y.shape[axis] != x.size:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    require(np.isfinite(x), ValueError("`x` must contain only finite values."))
    require(np.isfinite(y), ValueError("`y` must contain only finite values."))
    require(np.diff(x) > 0, ValueError(ASCENDING))
    if slopes is not None:
        slopes = np.moveaxis(lifted(slopes) + 0.0, axis, 0)
    return x, np.moveaxis(y, axis, 0) if axis else y, slopes, axis


def hermite(kind: type, x: Any, y: Any, slopes: Any, extrapolate: Any, axis: int) -> Pieces:
    """The cubic pieces with given values and slopes at the breakpoints."""
    dx = np.diff(x).reshape((-1,) + (1,) * (y.ndim - 1))
    chord = np.diff(y, axis=0) / dx
    t = (slopes[:-1] + slopes[1:] - 2 * chord) / dx
    c = np.stack([t / dx, (chord - slopes[:-1]) / dx - t, slopes[:-1], y[:-1]])
    return Pieces(kind, c, x, True if extrapolate is None else extrapolate, axis)
