"""Splines of two variables on a grid: `RectBivariateSpline` and FITPACK's other surfaces with fixed knots.

A surface is a sum of products of B-splines. It interpolates values on a grid by the coefficients of one variable, and
then of the other; places beyond the knots are moved to their ends, as FITPACK does, where the derivative is 0.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.dispatch import plain, refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, require, scipy_class, stands_for, this_recorder
from jitad.trace.scipy_rules.interpolate.bsplines import Spline, basis, make_interp_spline
from jitad.trace.scipy_rules.interpolate.pieces import interval
from jitad.trace.substitutes import substitute

__all__ = ["Surface"]


def _line(t: Any, c: Any, k: int) -> Spline:
    return Spline(scipy_class("BSpline"), t, c, k, False)


class Surface(StandIn):
    """Knots of both variables, coefficients, of which each row belongs to a spline of x, and degrees."""

    __slots__ = ("c", "degrees", "tx", "ty")

    def __init__(self, kind: type, tck: Any, degrees: Any) -> None:
        super().__init__(kind)
        tx, ty, c = tck
        self.degrees: tuple[int, int] = tuple(int(k) for k in degrees)                       # type: ignore[assignment]
        self.tx, self.ty = lifted(tx) + 0.0, lifted(ty) + 0.0
        nx, ny = (t.shape[0] - k - 1 for t, k in zip((self.tx, self.ty), self.degrees, strict=True))
        self.c = (lifted(c) + 0.0).reshape((nx, ny))

    @property
    def tck(self) -> tuple[Any, Any, Any]:
        return self.tx, self.ty, self.c.reshape(-1)

    def _derived(self, dx: int, dy: int) -> tuple[Spline, Spline]:
        """Splines of x, whose coefficients are rows, and of y, whose coefficients are columns."""
        for d, k in zip((dx, dy), self.degrees, strict=True):
            if not 0 <= d < max(k, 1):
                raise ValueError("order of derivative must be positive and less than the degree of the spline")
        kx, ky = self.degrees
        along = _line(self.tx, self.c, kx).derivative(dx)
        across = _line(self.ty, np.transpose(along.c), ky).derivative(dy)
        return _line(along.t, np.transpose(across.c), along.k), across

    @method
    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        along, across = self._derived(dx, dy)
        x, y = lifted(x) + 0.0, lifted(y) + 0.0
        if grid:
            x, y = x.reshape(-1), y.reshape(-1)
            for name, v in (("x", x), ("y", y)):
                require(np.diff(v) >= 0, ValueError(f"{name} must be sorted to evaluate on a grid"))
            rows: Any = along.at(_within(x, along), 0)
            return np.transpose(_line(across.t, np.transpose(rows), across.k).at(_within(y, across), 0))
        x, y = np.broadcast_arrays(x, y)
        found = _pairs(along, across, _within(x.reshape(-1), along), _within(y.reshape(-1), across))
        return found.reshape(x.shape)

    @method
    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        return self(xi, yi, dx=dx, dy=dy, grid=False)

    @method
    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        kx, ky = self.degrees
        return _line(self.ty, _line(self.tx, self.c, kx).integrate(xa, xb), ky).integrate(ya, yb)

    def get_knots(self) -> tuple[Any, Any]:
        return self.tx, self.ty

    def get_coeffs(self) -> Any:
        return self.c.reshape(-1)


def _within(x: Any, line: Spline) -> Any:
    first, last = line.t[line.k], line.t[line.t.shape[0] - line.k - 1]
    return np.where(x < first, first, np.where(x > last, last, x))


def _pairs(along: Spline, across: Spline, x: Any, y: Any) -> Any:
    """The surface at each pair of places."""
    at, weights = [], []
    for line, places in ((along, x), (across, y)):
        where = interval(line.t, places, line.k, line.t.shape[0] - line.k - 2)
        at.append(where - line.k)
        weights.append(basis(line.t, places, line.k, where))
    total: Any = 0.0
    for i, wx in enumerate(weights[0]):
        for j, wy in enumerate(weights[1]):
            total = total + wx * wy * along.c[at[0] + i, at[1] + j]
    return total


@stands_for("scipy.interpolate.RectBivariateSpline", Surface, "tck degrees")
def rect_bivariate(x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = 0,
                   maxit: int = 20) -> Surface:
    if plain(s) != 0 or list(bbox) != [None] * 4:
        raise refused(this_recorder(), "scipy.interpolate.RectBivariateSpline with s= or bbox=", "leave them out; "
                      "knots that smoothing chooses depend on the values")
    x, y, z = (lifted(v) + 0.0 for v in (x, y, z))
    for name, v, n in (("x", x, 0), ("y", y, 1)):
        require(np.diff(v) > 0, ValueError(f"{name} must be strictly increasing"))
        if v.size != z.shape[n]:
            raise ValueError(f"{name} dimension of z must have same number of elements as {name}")
    along = make_interp_spline(x, z, kx)
    across = make_interp_spline(y, np.transpose(along.c), ky)
    return Surface(scipy_class("RectBivariateSpline"), (along.t, across.t, np.transpose(across.c)), (kx, ky))


def _chosen(name: str) -> None:
    @stands_for(f"scipy.interpolate.{name}", Surface, "tck degrees")
    def make(*args: Any, **kwargs: Any) -> Any:
        raise refused(this_recorder(), f"scipy.interpolate.{name} of traced values", "its knots or coefficients are a "
                      "fit to the data; use RectBivariateSpline, or make it outside")


for _name in ("SmoothBivariateSpline", "LSQBivariateSpline"):
    _chosen(_name)


@substitute("scipy.interpolate", "bisplev")
def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    tx, ty, c, kx, ky = tck
    found = Surface(scipy_class("RectBivariateSpline"), (tx, ty, c), (kx, ky))(x, y, dx, dy)
    return found[0, 0] if found.shape == (1, 1) else found[0] if len(found) == 1 else found[:, 0] if (
        found.shape[1] == 1) else found
