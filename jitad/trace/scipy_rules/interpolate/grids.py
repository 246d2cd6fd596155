"""Interpolation between neighbours: `interp1d` in one dimension, `RegularGridInterpolator` and `interpn` in several.

A value is a weighted sum of those at the corners of the point's cell. It is differentiated by the point (at a grid
point as on the cell that SciPy takes), by the values, and by the grid; that costs 2**d gathers in d dimensions. Splines
of several dimensions are products of B-splines, whose coefficients solve a system for each dimension after the other
(de Boor, A Practical Guide to Splines, chapter XVII): (k + 1)**d gathers. SciPy solves one system for all, by
iterations that end at 1e-6; of a table that was made outside its coefficients are taken.
"""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, require, scipy_class, stands_for, this_recorder
from jitad.trace.scipy_rules.interpolate.bsplines import Spline, basis, make_interp_spline
from jitad.trace.scipy_rules.interpolate.pieces import interval
from jitad.trace.substitutes import substitute

__all__ = ["GridTable", "LineTable"]

_DEGREES = {"slinear": 1, "quadratic": 2, "cubic": 3}
_GRID_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}


class LineTable(StandIn):
    """`interp1d`: points `x`, ascending, and values `y` with the points along the first dimension."""

    __slots__ = ("bounds_error", "fill_value", "kind", "spline", "x", "y", "y_axis")

    def __init__(self, cls: type, x: Any, y: Any, kind: Any, y_axis: int, bounds_error: Any, fill_value: Any,
                 spline: Any) -> None:
        super().__init__(cls)
        self.x, self.y, self.kind, self.y_axis = lifted(x) + 0.0, lifted(y) + 0.0, kind, y_axis
        self.bounds_error, self.fill_value, self.spline = bounds_error, fill_value, spline

    @method
    def __call__(self, x: Any) -> Any:
        points = lifted(x)
        flat = points.reshape(-1) + 0.0
        value = self._filled(flat, self.spline(flat) if self.spline is not None else self._values(flat))
        value = value.reshape(points.shape + self.y.shape[1:])
        if not self.y_axis:
            return value
        d = points.ndim
        return np.transpose(value, [*range(d, d + self.y_axis), *range(d), *range(d + self.y_axis, value.ndim)])

    def _values(self, flat: Any) -> Any:
        n, column = self.x.shape[0], (-1,) + (1,) * (self.y.ndim - 1)
        if self.kind in ("previous", "zero"):
            return self.y[np.clip(np.searchsorted(self.x, flat, side="right") - 1, 0, n - 1)]
        if self.kind == "next":
            return self.y[np.clip(np.searchsorted(self.x, flat, side="left"), 0, n - 1)]
        if self.kind in ("nearest", "nearest-up"):
            side: Any = "left" if self.kind == "nearest" else "right"
            return self.y[np.clip(np.searchsorted((self.x[1:] + self.x[:-1]) / 2.0, flat, side=side), 0, n - 1)]
        above = np.clip(np.searchsorted(self.x, flat), 1, n - 1)
        x0, x1, y0, y1 = self.x[above - 1], self.x[above], self.y[above - 1], self.y[above]
        slope = (y1 - y0) / (x1 - x0).reshape(column)
        return slope * (flat - x0).reshape(column) + y0

    def _filled(self, flat: Any, value: Any) -> Any:
        """Beyond the points: an error, or what was said."""
        fill = self.fill_value
        if isinstance(fill, str) and fill == "extrapolate":
            return value
        below, above = flat < self.x[0], flat > self.x[-1]
        if self.bounds_error:
            require(~below, ValueError("A value in x_new is below the interpolation range."))
            require(~above, ValueError("A value in x_new is above the interpolation range."))
            return value
        low, high = fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)
        column = (-1,) + (1,) * (self.y.ndim - 1)
        return np.where(below.reshape(column), low, np.where(above.reshape(column), high, value))


def _take_line(cls: type, x: Any, y: Any, knots: Any, coefficients: Any, kind: Any, axis: int, bounds_error: Any,
               fill_value: Any, degree: Any) -> LineTable:
    spline = None if knots is None or not degree else Spline(scipy_class("BSpline"), knots, coefficients, degree, True)
    kind = "zero" if kind == "spline" and not degree else kind
    return LineTable(cls, x, np.moveaxis(lifted(y), axis, 0), kind, axis, bounds_error, fill_value, spline)


@stands_for("scipy.interpolate.interp1d", _take_line,
            "x y _spline.t _spline.c _kind axis bounds_error fill_value _spline.k")
def interp1d(x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
             fill_value: Any = np.nan, assume_sorted: bool = False) -> LineTable:
    x, y = lifted(x), lifted(y)
    if x.ndim != 1:
        raise ValueError("the x array must have exactly one dimension.")
    if y.ndim == 0:
        raise ValueError("the y array must have at least one dimension.")
    axis = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    y = np.moveaxis(y, axis, 0) if axis else y
    if y.shape[0] != x.shape[0]:
        raise ValueError("x and y arrays must be equal in length along interpolation axis.")
    if not assume_sorted:
        order = np.argsort(x, kind="mergesort")
        x, y = x[order], y[order]
    if isinstance(fill_value, str) and fill_value == "extrapolate":
        if bounds_error:
            raise ValueError("Cannot extrapolate and raise at the same time.")
        bounds_error = False
        fill_value = {"previous": (np.nan, y[-1]), "next": (y[0], np.nan)}.get(kind, fill_value)
    degree = kind if isinstance(kind, int) else _DEGREES.get(kind)
    if not degree and kind not in ("linear", "nearest", "nearest-up", "previous", "next", "zero", 0):
        raise NotImplementedError(f"{kind} is unsupported: Use fitpack routines for other types.")
    spline = make_interp_spline(x, y, degree) if degree else None
    kind = "zero" if kind == 0 else kind
    bounds_error = True if bounds_error is None else bounds_error
    return LineTable(scipy_class("interp1d"), x, y, kind, axis, bounds_error, fill_value, spline)


class GridTable(StandIn):
    """`RegularGridInterpolator`: a tuple of ascending vectors, and values on their product."""

    __slots__ = ("bounds_error", "coefficients", "fill_value", "grid", "method", "values")

    def __init__(self, cls: type, values: Any, grid: Any, method: str, bounds_error: Any, fill_value: Any,
                 coefficients: Any = None) -> None:
        super().__init__(cls)
        self.coefficients = coefficients
        self.grid, self.values = tuple(lifted(g) + 0.0 for g in grid), lifted(values) + 0.0
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value

    @method
    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
        way = self.method if method is None else method
        _known(way, nu)
        points = _points(xi, len(self.grid))
        shape, flat = points.shape[:-1], points.reshape((-1, len(self.grid))) + 0.0
        within: Any = True
        for d, g in enumerate(self.grid):
            within = within & (flat[:, d] >= g[0]) & (flat[:, d] <= g[-1])
        if self.bounds_error:
            require(within, ValueError("One of the requested xi is out of bounds"))
        value = self._linear(flat) if way == "linear" else self._nearest(flat) if way == "nearest" else self._spline(
            flat, way)
        column = (-1,) + (1,) * (value.ndim - 1)
        if not self.bounds_error and self.fill_value is not None:
            value = np.where(within.reshape(column), value, self.fill_value)
        missing = np.isnan(flat).any(axis=1)
        value = np.where(missing.reshape(column), np.nan, value)
        return value.reshape(shape + self.values.shape[len(self.grid):])

    def _cells(self, flat: Any) -> list[tuple[Any, Any]]:
        """For each dimension the lower corner of the point's cell, and how far from it, in widths."""
        found = []
        for d, g in enumerate(self.grid):
            if g.shape[0] == 1:
                found.append((np.zeros(flat.shape[0], int), flat[:, d] * 0.0))
                continue
            at = np.clip(np.searchsorted(g, flat[:, d], side="right") - 1, 0, g.shape[0] - 2)
            found.append((at, (flat[:, d] - g[at]) / (g[at + 1] - g[at])))
        return found

    def _linear(self, flat: Any) -> Any:
        cells = self._cells(flat)
        total: Any = 0.0
        for corner in product((0, 1), repeat=len(cells)):
            if any(c and g.shape[0] == 1 for c, g in zip(corner, self.grid, strict=True)):
                continue
            weight: Any = 1.0
            for c, (_, share) in zip(corner, cells, strict=True):
                weight = weight * (share if c else 1.0 - share)
            value = self.values[tuple(at + c for c, (at, _) in zip(corner, cells, strict=True))]
            total = total + weight.reshape((-1,) + (1,) * (value.ndim - 1)) * value
        return total

    def _spline(self, flat: Any, way: str) -> Any:
        k, c, lines = _GRID_DEGREES[way], self.values, []
        known = self.coefficients if way == self.method else None
        for d, g in enumerate(self.grid):
            if g.shape[0] <= k:
                raise ValueError(f"There are {g.shape[0]} points in dimension {d}, but method {way} requires at least "
                                 f"{k + 1} points per dimension.")
            line = make_interp_spline(g, np.moveaxis(c, d, 0), k)
            where = interval(line.t, flat[:, d], k, g.shape[0] - 1)
            lines.append((where - k, basis(line.t, flat[:, d], k, where)))
            c = np.moveaxis(line.c, 0, d)
        c = c if known is None else known
        total: Any = 0.0
        for corner in product(range(k + 1), repeat=len(lines)):
            weight: Any = 1.0
            for i, (_, weights) in zip(corner, lines, strict=True):
                weight = weight * weights[i]
            value = c[tuple(first + i for i, (first, _) in zip(corner, lines, strict=True))]
            total = total + weight.reshape((-1,) + (1,) * (value.ndim - 1)) * value
        return total

    def _nearest(self, flat: Any) -> Any:
        return self.values[tuple(np.where(share <= 0.5, at, at + 1) for at, share in self._cells(flat))]


def _known(method: str, nu: Any = None) -> None:
    if method not in ("linear", "nearest", *_GRID_DEGREES) or nu is not None:
        raise refused(this_recorder(), f"scipy.interpolate.RegularGridInterpolator with method={method!r}"
                      + (", nu=" if nu is not None else ""), "use method='linear' or 'cubic'")


def _points(xi: Any, dimensions: int) -> Any:
    """The points along the last dimension; from a tuple of coordinates, broadcast against each other."""
    if isinstance(xi, tuple):
        parts = [lifted(p) for p in xi]
        shape = np.broadcast_shapes(*(p.shape for p in parts))
        points = np.stack([np.broadcast_to(p, shape) for p in parts], axis=-1)
    else:
        points = lifted(xi)
        if points.ndim == 0:
            points = points.reshape((1, 1))
        elif points.ndim == 1:
            points = points.reshape((-1, 1)) if dimensions == 1 else points.reshape((1, -1))
    if points.shape[-1] != dimensions:
        raise ValueError("The requested sample points xi have dimension "
                         f"{points.shape[-1]} but this RegularGridInterpolator has dimension {dimensions}")
    return points


@stands_for("scipy.interpolate.RegularGridInterpolator", GridTable,
            "values grid method bounds_error fill_value _spline.c")
def regular_grid(points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan,
                 *, solver: Any = None, solver_args: Any = None) -> GridTable:
    grid, values = [lifted(p) for p in points], lifted(values)
    _known(method)
    if len(grid) > values.ndim:
        raise ValueError(f"There are {len(grid)} point arrays, but values has {values.ndim} dimensions")
    for d, g in enumerate(grid):
        if g.ndim != 1:
            raise ValueError(f"The points in dimension {d} must be 1-dimensional")
        if g.shape[0] != values.shape[d]:
            raise ValueError(f"There are {g.shape[0]} points and {values.shape[d]} values in dimension {d}")
        if g.shape[0] > 1 and g[0] > g[-1]:
            grid[d], values = g[::-1], np.flip(values, d)
        require(np.diff(grid[d]) > 0,
                ValueError(f"The points in dimension {d} must be strictly ascending or descending"))
    return GridTable(scipy_class("RegularGridInterpolator"), values, grid, method, bounds_error, fill_value)


@substitute("scipy.interpolate", "interpn")
def interpn(points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True,
            fill_value: Any = np.nan) -> Any:
    found = regular_grid(points, values, method, bounds_error, fill_value)(xi)
    return np.reshape(found, (1, *np.shape(found))) if np.ndim(found) == np.ndim(values) - len(points) else found
