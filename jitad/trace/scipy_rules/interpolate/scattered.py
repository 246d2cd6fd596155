"""Values at scattered points: `LinearNDInterpolator`, `NearestNDInterpolator`, `griddata`, `RBFInterpolator`.

Which points surround a place is found by SciPy's own triangulation (or tree) when the compiled function runs, and is a
constant to derivatives; the value is a sum of those at the corners by barycentric coordinates, which solve a system of
d equations for each place, so that it is differentiated by places, values and points. Radial functions solve the
system of SciPy's documentation (Fasshauer, Meshfree Approximation Methods with MATLAB, chapter 6) as a full one; its
derivative is one solution more.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import plain, refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, scipy_class, stands_for, this_recorder
from jitad.trace.scipy_rules.interpolate.grids import interp1d
from jitad.trace.scipy_rules.served import served
from jitad.trace.scipy_rules.sparse.build import numbers
from jitad.trace.scipy_rules.trees import Tree
from jitad.trace.substitutes import substitute

__all__ = ["Radial", "Scattered"]


def _coordinates(given: Any, ndim: int | None = None) -> Any:
    """Points along the last dimension; of a tuple the coordinates, broadcast against each other."""
    if isinstance(given, tuple) and len(given) == 1:
        given = given[0]
    if isinstance(given, tuple):
        return np.stack(list(np.broadcast_arrays(*(lifted(x) + 0.0 for x in given))), axis=-1)
    points = lifted(given) + 0.0
    return points.reshape((-1, 1 if ndim is None else ndim)) if points.ndim == 1 else points


class _Triangulations:
    """The real triangulation of the last points."""

    def __init__(self) -> None:
        self.last: tuple[np.ndarray, Any] | None = None

    def corners(self, points: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The numbers of the points around each place, and 1 where there are such ones."""
        from scipy.spatial import Delaunay

        last = self.last                                 # of whatever thread
        if last is None or not np.array_equal(last[0], points):
            self.last = last = points.copy(), Delaunay(points)
        triangles = last[1]
        found = triangles.find_simplex(places)
        return np.column_stack([triangles.simplices[np.maximum(found, 0)], found >= 0])


class Scattered(StandIn):
    """`LinearNDInterpolator`, or, with a tree, `NearestNDInterpolator`: points, already moved and scaled, a row each,
    and values along the first dimension."""

    __slots__ = ("_search", "fill_value", "offset", "points", "scale", "trailing", "values")

    def __init__(self, kind: type, points: Any, values: Any, scale: Any, offset: Any, fill_value: Any,
                 trailing: Any) -> None:
        super().__init__(kind)
        self.points, self.values = lifted(points) + 0.0, lifted(values) + 0.0
        if self.values.dtype.kind == "c":
            raise refused(this_recorder(), "values between scattered points that are complex", "take real and "
                          "imaginary parts")
        self.scale, self.offset, self.fill_value = scale, offset, fill_value
        self.trailing = self.values.shape[1:] if trailing is None else tuple(trailing)
        self._search: Any = _Triangulations()
        if kind.__name__.startswith("Nearest"):
            from scipy.spatial import cKDTree

            self._search = Tree(cKDTree, self.points, 16, None)

    @method
    def __call__(self, *args: Any, **options: Any) -> Any:
        if options:
            raise refused(this_recorder(), f"scipy.interpolate.{self.jitad_kind.__name__} with {min(options)}=",
                          "leave it out")
        ndim = self.points.shape[1]
        places = _coordinates(args, ndim)
        if places.shape[-1] != ndim:
            raise ValueError("number of dimensions in xi does not match x")
        shape = places.shape[:-1]
        places = places.reshape((-1, ndim))
        if self.scale is not None:
            places = (places - self.offset) / self.scale
        found = self._linear(places) if isinstance(self._search, _Triangulations) else self.values[
            self._search.query(places)[1]]
        return found.reshape((*shape, *self.trailing))

    def _linear(self, places: Any) -> Any:
        n, ndim = places.shape
        found = served("scipy.interpolate.LinearNDInterpolator", self._search.corners, [self.points, places],
                       (n, ndim + 2), np.int64)
        corners, inside = found[:, :-1], found[:, -1] > 0
        last = self.points[corners[:, ndim]]
        edges: Any = self.points[corners[:, :ndim]] - last[:, None, :]
        shares = _shares(edges, places - last)
        values = self.values[corners].reshape((n, ndim + 1, -1))
        total = np.sum(shares[:, :, None] * (values[:, :ndim] - values[:, ndim:]), axis=1) + values[:, ndim]
        return np.where(inside[:, None], total, self.fill_value)


def _shares(edges: Any, away: Any) -> Any:
    """Of each edge from the last corner, the share of it that leads to the place."""
    if away.shape[1] != 2:
        return np.linalg.solve(np.swapaxes(edges, 1, 2), away[:, :, None])[:, :, 0]
    (a, b), (c, d) = ((edges[:, i, 0], edges[:, i, 1]) for i in (0, 1))
    area, x, y = a * d - b * c, away[:, 0], away[:, 1]
    return np.stack([(x * d - y * c) / area, (a * y - b * x) / area], axis=1)


def _scattered(name: str) -> Callable[..., Any]:
    @stands_for(f"scipy.interpolate.{name}", Scattered, "points values scale offset fill_value values_shape")
    def make(points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False,
             tree_options: Any = None) -> Scattered:
        from scipy.spatial import Delaunay

        if tree_options is not None or isinstance(points, Delaunay):
            raise refused(this_recorder(), f"scipy.interpolate.{name} called this way", "give the points alone")
        points, values = _coordinates(points), lifted(values)
        if points.ndim != 2:
            raise ValueError("invalid shape for input data points")
        if points.shape[1] < 2:
            raise ValueError("input data must be at least 2-D")
        if values.ndim < 1 or values.shape[0] != points.shape[0]:
            raise ValueError("different number of values and points")
        scale = offset = None
        if rescale:
            offset = np.mean(points, axis=0)
            points = points - offset
            scale = np.max(points, axis=0) - np.min(points, axis=0)
            scale = np.where(scale > 0, scale, 1.0)
            points = points / scale
        return Scattered(scipy_class(name), points, values, scale, offset, fill_value, None)
    return make                                                                              # type: ignore[no-any-return]


_linear, _nearest = map(_scattered, ("LinearNDInterpolator", "NearestNDInterpolator"))


@substitute("scipy.interpolate", "griddata")
def griddata(points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan,
             rescale: bool = False) -> Any:
    points = _coordinates(points)
    if points.shape[-1] == 1 and method in ("nearest", "linear", "cubic"):
        xi = xi[0] if isinstance(xi, tuple) else xi
        return interp1d(points.reshape(-1), values, method, axis=0, bounds_error=False,
                        fill_value="extrapolate" if method == "nearest" else fill_value)(xi)
    if method not in ("nearest", "linear"):
        raise refused(this_recorder(), f"scipy.interpolate.griddata with method={method!r}", "use method='linear', or "
                      "RBFInterpolator, which is smooth")
    make = _linear if method == "linear" else _nearest
    return make(points, values, fill_value, rescale)(xi)


# --- radial functions ------------------------------------------------------------------------------------

def _root(s: Any) -> Any:
    """The square root, of derivative 0 at 0."""
    return np.where(s > 0, np.sqrt(np.where(s > 0, s, 1.0)), 0.0)


# By the square of the distance; with the least degree of the polynomial that has to be added.
KERNELS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "linear": (lambda s: -_root(s), 0),
    "thin_plate_spline": (lambda s: 0.5 * s * np.log(np.where(s > 0, s, 1.0)), 1),
    "cubic": (lambda s: s * _root(s), 1),
    "quintic": (lambda s: -s * s * _root(s), 2),
    "multiquadric": (lambda s: -np.sqrt(s + 1.0), 0),
    "inverse_multiquadric": (lambda s: 1.0 / np.sqrt(s + 1.0), -1),
    "inverse_quadratic": (lambda s: 1.0 / (s + 1.0), -1),
    "gaussian": (lambda s: np.exp(-s), -1)}
SCALE_FREE = ("linear", "thin_plate_spline", "cubic", "quintic")


class Radial(StandIn):
    """`RBFInterpolator`: points `y`, a row each, values `d` in columns."""

    __slots__ = ("_coeffs", "_scale", "_shift", "d", "d_shape", "epsilon", "kernel", "neighbors", "powers",
                 "smoothing", "y")

    def __init__(self, kind: type, y: Any, d: Any, d_shape: Any, d_dtype: Any, neighbors: Any, smoothing: Any,
                 kernel: str, epsilon: Any, powers: Any, shift: Any, scale: Any, coefficients: Any) -> None:
        super().__init__(kind)
        if np.dtype(d_dtype).kind == "c":
            raise refused(this_recorder(), "scipy.interpolate.RBFInterpolator of complex values", "take real and "
                          "imaginary parts")
        self.y, self.d, self.smoothing, self.epsilon = (lifted(v) + 0.0 for v in (y, d, smoothing, epsilon))
        self.d_shape, self.neighbors, self.kernel, self.powers = tuple(d_shape), neighbors, kernel, numbers(powers)
        self._shift, self._scale, self._coeffs = shift, scale, coefficients

    def _near(self, from_: Any, to: Any) -> Any:
        """The kernel of each pair of points."""
        away = (from_[..., :, None, :] - to[..., None, :, :]) * self.epsilon
        return KERNELS[self.kernel][0](np.sum(away * away, axis=-1))

    def _polynomials(self, x: Any) -> Any:
        """Each monomial of the points, in columns."""
        columns = []
        for powers in self.powers:
            column: Any = x[..., 0] * 0.0 + 1.0
            for i, power in enumerate(powers):
                for _ in range(int(power)):
                    column = column * x[..., i]
            columns.append(column)
        return np.stack(columns, axis=-1)

    def solved(self, y: Any, d: Any, smoothing: Any) -> tuple[Any, Any, Any]:
        """By what points are moved and scaled before the monomials, and the coefficients; for each of many sets of
        points, if there is a dimension before."""
        low, high = np.min(y, axis=-2, keepdims=True), np.max(y, axis=-2, keepdims=True)
        shift, scale = (high + low) / 2.0, (high - low) / 2.0
        scale = np.where(scale == 0.0, 1.0, scale)
        whole = self._near(y, y) + smoothing[..., :, None] * np.eye(y.shape[-2])
        count = len(self.powers)
        if count:
            beside: Any = self._polynomials((y - shift) / scale)
            below = np.swapaxes(beside, -1, -2)
            corner = np.zeros((*y.shape[:-2], count, count))
            whole = np.concatenate([np.concatenate([whole, beside], -1), np.concatenate([below, corner], -1)], -2)
            d = np.concatenate([d, np.zeros((*d.shape[:-2], count, d.shape[-1]))], -2)
        return shift, scale, np.linalg.solve(whole, d)

    def _valued(self, x: Any, y: Any, parts: tuple[Any, Any, Any]) -> Any:
        shift, scale, coefficients = parts
        value = self._near(x, y) @ coefficients[..., :y.shape[-2], :]
        if len(self.powers):
            value = value + self._polynomials((x - shift) / scale) @ coefficients[..., y.shape[-2]:, :]
        return value

    @method
    def __call__(self, x: Any) -> Any:
        x = lifted(x) + 0.0
        if x.ndim != 2:
            raise ValueError("`x` must be a 2-dimensional array.")
        if x.shape[1] != self.y.shape[1]:
            raise ValueError(f"Expected the second axis of `x` to have length {self.y.shape[1]}.")
        if self.neighbors is None:
            value = self._valued(x, self.y, (self._shift, self._scale, self._coeffs))
        else:
            from scipy.spatial import KDTree

            found: Any = Tree(KDTree, self.y, 10, None).query(x, self.neighbors)[1]
            found = found.reshape((x.shape[0], self.neighbors))
            y, d, smoothing = self.y[found], self.d[found], self.smoothing[found]
            value = self._valued(x[:, None, :], y, self.solved(y, d, smoothing))
        return value.reshape((x.shape[0], *self.d_shape))


@stands_for("scipy.interpolate.RBFInterpolator", Radial,
            "y d d_shape d_dtype neighbors smoothing kernel epsilon powers _shift _scale _coeffs")
def rbf_interpolator(y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
                     epsilon: Any = None, degree: Any = None) -> Radial:
    y, d, kernel = lifted(y) + 0.0, lifted(d), kernel.lower()
    if y.ndim != 2:
        raise ValueError("`y` must be a 2-dimensional array.")
    n, ndim = y.shape
    if d.shape[0] != n:
        raise ValueError(f"Expected the first axis of `d` to have length {n}.")
    if kernel not in KERNELS:
        raise ValueError(f"`kernel` must be one of {set(KERNELS)}.")
    if epsilon is None and kernel not in SCALE_FREE:
        raise ValueError(f"`epsilon` must be specified if `kernel` is not one of {set(SCALE_FREE)}.")
    least = KERNELS[kernel][1]
    degree = max(least, 0) if degree is None else int(plain(degree))
    if degree < -1:
        raise ValueError("`degree` must be at least -1.")
    neighbors = None if neighbors is None else min(int(plain(neighbors)), n)
    powers = _powers(ndim, degree)
    if len(powers) > (neighbors or n):
        raise ValueError(f"At least {len(powers)} data points are required when `degree` is {degree} and the number "
                         f"of dimensions is {ndim}.")
    smoothing = np.broadcast_to(lifted(smoothing) + 0.0, (n,))
    made = Radial(scipy_class("RBFInterpolator"), y, d.reshape((n, -1)), d.shape[1:], d.dtype, neighbors, smoothing,
                  kernel, 1.0 if epsilon is None else epsilon, powers, None, None, None)
    if neighbors is None:
        made._shift, made._scale, made._coeffs = made.solved(made.y, made.d, made.smoothing)
    return made


def _powers(ndim: int, degree: int) -> np.ndarray:
    """The exponents of all monomials up to this degree."""
    grid = np.indices((max(degree, 0) + 1,) * ndim).reshape(ndim, -1).T
    return grid[grid.sum(axis=1) <= degree]
