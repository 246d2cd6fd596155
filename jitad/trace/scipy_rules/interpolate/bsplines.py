"""B-splines: `BSpline`, interpolation by them, and FITPACK's splines of one variable.

Of degree k, at a point in [t[i], t[i+1]) only k + 1 of them are not zero; their values follow from those of lower
degree (de Boor, A Practical Guide to Splines, revised edition, chapter IX). So a value is a gather of k + 1
coefficients, and so is its derivative by the coefficients; that by the point is the recurrence differentiated.
Coefficients that interpolate solve a linear system, whose derivative is one solution more of it.
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jitad.trace.dispatch import as_value, plain, refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, require, scipy_class, stands_for, this_recorder
from jitad.trace.scipy_rules.interpolate.pieces import evaluated, interval
from jitad.trace.substitutes import substitute

__all__ = ["Spline", "basis"]


def basis(knots: Any, points: Any, degree: int, where: Any) -> list[Any]:
    """The ``degree + 1`` B-splines that are not zero in the intervals `where` of the points, from the left."""
    values = [points * 0.0 + 1.0]
    for k in range(1, degree + 1):
        saved: Any = points * 0.0
        for j in range(k):
            left, right = knots[where + (j + 1 - k)], knots[where + (j + 1)]
            part = values[j] / (right - left)
            values[j] = saved + (right - points) * part
            saved = (points - left) * part
        values.append(saved)
    return values


class Spline(StandIn):
    """Knots `t`, coefficients `c` along their first dimension, degree `k`."""

    __slots__ = ("axis", "c", "extrapolate", "k", "t")

    def __init__(self, kind: type, t: Any, c: Any, k: int, extrapolate: Any, axis: int = 0) -> None:
        super().__init__(kind)
        self.t, self.c, self.k = lifted(t) + 0.0, lifted(c) + 0.0, operator.index(k)
        self.extrapolate, self.axis = extrapolate, axis
        if self.c.dtype.kind == "c":
            raise refused(self.c, "a B-spline of complex coefficients", "make one of each part")

    @property
    def tck(self) -> tuple[Any, Any, int]:
        return self.t, self.c, self.k

    @method
    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        ends = self.t[self.k], self.t[self.t.shape[0] - self.k - 1]
        return evaluated(self, x, nu, extrapolate, ends, self.c.shape[1:])

    def at(self, flat: Any, nu: int) -> Any:
        if nu > self.k:
            return self.c[np.zeros(flat.shape, int)] * 0.0
        if nu:
            return self.derivative(nu).at(flat, 0)
        where = interval(self.t, flat, self.k, self.t.shape[0] - self.k - 2)
        total: Any = None
        for j, weight in enumerate(basis(self.t, flat, self.k, where)):
            term = weight.reshape((-1,) + (1,) * (self.c.ndim - 1)) * self.c[where + (j - self.k)]
            total = term if total is None else total + term
        return total

    @method
    def derivative(self, nu: int = 1) -> Any:
        """The spline of the derivative, of a lower degree on the knots without the outermost."""
        if nu < 0:
            return self.antiderivative(-nu)
        found = self
        for _ in range(nu):
            t, c, k = found.t, found.c, found.k
            n = t.shape[0] - k - 1
            if not k:
                raise ValueError("the derivative of a spline of degree 0 is refused by SciPy, too")
            span = (t[k + 1:n + k] - t[1:n]).reshape((-1,) + (1,) * (c.ndim - 1))
            empty = span == 0
            c = np.where(empty, 0.0, k * (c[1:n] - c[:n - 1]) / np.where(empty, 1.0, span))
            found = Spline(scipy_class("BSpline"), t[1:-1], c, k - 1, self.extrapolate, self.axis)
        return found

    @method
    def antiderivative(self, nu: int = 1) -> Any:
        """The spline whose derivative this is, zero at the first knot."""
        found = self
        for _ in range(nu):
            t, c, k = found.t, found.c, found.k
            n = t.shape[0] - k - 1
            span = (t[k + 1:n + k + 1] - t[:n]).reshape((-1,) + (1,) * (c.ndim - 1))
            total = np.cumsum(c[:n] * span / (k + 1), axis=0)
            c = np.concatenate([total[:1] * 0.0, total, *[total[-1:]] * (k + 1)])
            t = np.concatenate([t[:1], t, t[-1:]])
            extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
            found = Spline(scipy_class("BSpline"), t, c, k + 1, extrapolate, self.axis)
        return found

    @method
    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The definite integral from `a` to `b`; without extrapolation, of the part within the knots."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            raise refused(self.c, "scipy.interpolate.BSpline.integrate of a periodic one", "integrate within a period")
        a, b = lifted(a) + 0.0, lifted(b) + 0.0
        if not extrapolate:
            first, last = self.t[self.k], self.t[self.t.shape[0] - self.k - 1]
            a, b = (np.minimum(np.maximum(v, first), last) for v in (a, b))
        whole = self.antiderivative()
        ends = whole.at(np.stack([a, b]), 0)
        return ends[1] - ends[0]


@stands_for("scipy.interpolate.BSpline", Spline, "t c k extrapolate axis")
def bspline(t: Any, c: Any, k: Any, extrapolate: Any = True, axis: int = 0) -> Spline:
    t, c, k = lifted(t) + 0.0, lifted(c) + 0.0, operator.index(k)
    if k < 0:
        raise ValueError("Spline order cannot be negative.")
    if t.ndim != 1:
        raise ValueError("Knot vector must be one-dimensional.")
    n = t.size - k - 1
    if n < k + 1:
        raise ValueError(f"Need at least {2 * k + 2} knots for degree {k}")
    axis = int(np.lib.array_utils.normalize_axis_index(axis, c.ndim))
    if c.shape[axis] < n:
        raise ValueError("Knots, coefficients and degree are inconsistent.")
    require(np.diff(t) >= 0, ValueError("Knots must be in a non-decreasing order."))
    return Spline(scipy_class("BSpline"), t, np.moveaxis(c, axis, 0) if axis else c, k, extrapolate, axis)


def take_bspline(kind: type, t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> Spline:
    """Of an instance, whose coefficients lie with their axis first."""
    return Spline(kind, t, c, k, extrapolate, axis)


@substitute("scipy.interpolate", "make_interp_spline")
def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0,
                       check_finite: bool = True) -> Any:
    name = "scipy.interpolate.make_interp_spline"
    if bc_type is not None and bc_type not in ("not-a-knot", (None, None)):
        raise refused(this_recorder(), f"{name} with bc_type=", "use scipy.interpolate.CubicSpline, which has it")
    x, y = lifted(x) + 0.0, lifted(y) + 0.0
    axis = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    y = np.moveaxis(y, axis, 0) if axis else y
    if x.ndim != 1:
        raise ValueError("Expect x to be a 1D sequence of values.")
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"Shapes of x {x.shape} and y {y.shape} are incompatible")
    require(np.diff(x) > 0, ValueError("Expect x to not have duplicates, and to be sorted"))
    if k == 0:
        return Spline(scipy_class("BSpline"), np.concatenate([x, x[-1:]]), y, 0, True, axis)
    t = _knots(x, k) if t is None else lifted(t) + 0.0
    if t.shape[0] != x.size + k + 1:
        raise ValueError(f"The number of derivatives at boundaries does not match: expected "
                         f"{t.shape[0] - x.size - k - 1}, got 0+0")
    return Spline(scipy_class("BSpline"), t, coefficients(x, y, t, k), k, True, axis)


def _knots(x: Any, k: int) -> Any:
    """Those of SciPy's choice: the ends k + 1 times, and between the points, or midpoints for an even degree."""
    n = x.size
    if n < k + 1:
        raise ValueError(f"Need at least {k + 1} points for a spline of degree {k}")
    if k == 1:
        return np.concatenate([x[:1], x, x[-1:]])
    inner = x[(k + 1) // 2:n - (k + 1) // 2] if k % 2 else ((x[1:] + x[:-1]) / 2.0)[k // 2:-(k // 2)]
    return np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])


def coefficients(x: Any, y: Any, t: Any, k: int) -> Any:
    """Of the spline through the points (x, y): the solution with the matrix of the B-splines at the points."""
    return np.linalg.solve(_at_points(x, t, k), y.reshape((x.size, -1))).reshape(y.shape)


def _at_points(x: Any, t: Any, k: int) -> Any:
    """The values of all B-splines at the points, a row each."""
    n = t.shape[0] - k - 1
    where = interval(t, x, k, n - 1)
    matrix: Any = 0.0
    for j, weight in enumerate(basis(t, x, k, where)):
        matrix = matrix + np.where((where + (j - k))[:, None] == np.arange(n), weight[:, None], 0.0)
    return matrix


def _nearest(x: Any, y: Any, t: Any, k: int, w: Any) -> Any:
    """Coefficients of the spline with these knots for which the sum of ``(w (y - spline(x)))**2`` is least."""
    n = t.shape[0] - k - 1
    if x.size < n:
        raise ValueError(f"there are {x.size} points for {n} coefficients")
    w = np.broadcast_to(1.0 if w is None else lifted(w) + 0.0, x.shape)[:, None]
    found = np.linalg.lstsq(w * _at_points(x, t, k), w * y.reshape((x.size, -1)))[0]
    return found.reshape((n, *y.shape[1:]))


@substitute("scipy.interpolate", "make_lsq_spline")
def make_lsq_spline(x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *,
                    method: str = "qr") -> Any:
    x, y, t = (lifted(v) + 0.0 for v in (x, y, t))
    axis = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    y = np.moveaxis(y, axis, 0) if axis else y
    if x.ndim != 1 or x.shape[0] != y.shape[0]:
        raise ValueError(f"Shapes of x {x.shape} and y {y.shape} are incompatible")
    require(np.diff(x) >= 0, ValueError("Expect x to be a 1D non-decreasing sequence."))
    return Spline(scipy_class("BSpline"), t, _nearest(x, y, t, k, w), k, True, axis)


# --- FITPACK ------------------------------------------------------------------------------------

class Univariate(Spline):
    """A `UnivariateSpline` that was made outside: its knots are fixed. `ext` says what it is beyond them."""

    __slots__ = ("ext",)

    def __init__(self, kind: type, eval_args: Any, ext: int) -> None:
        t, c, k = eval_args
        n = t.shape[0] - k - 1
        super().__init__(kind, t, c[:n], k, True)
        self.ext = ext

    @method
    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        codes = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}
        ext = self.ext if ext is None else ext
        return splev(x, (self.t, self.c, self.k), nu, codes.get(ext, ext))

    @method
    def derivative(self, n: int = 1) -> Any:
        found = Spline(scipy_class("BSpline"), self.t, self.c, self.k, True).derivative(n)
        return Univariate(scipy_class("UnivariateSpline"), found.tck, 1 if self.ext == 3 else self.ext)

    @method
    def antiderivative(self, n: int = 1) -> Any:
        found = Spline(scipy_class("BSpline"), self.t, self.c, self.k, True).antiderivative(n)
        return Univariate(scipy_class("UnivariateSpline"), found.tck, self.ext)

    @method
    def integral(self, a: Any, b: Any) -> Any:
        return Spline(scipy_class("BSpline"), self.t, self.c, self.k, False).integrate(a, b)

    @method
    def derivatives(self, x: Any) -> Any:
        """The value and all derivatives at one point."""
        return np.stack([self(x, nu) for nu in range(self.k + 1)])

    def get_coeffs(self) -> Any:
        return self.c

    def get_knots(self) -> Any:
        return self.t[self.k:self.t.shape[0] - self.k]


_EXT = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


@stands_for("scipy.interpolate.UnivariateSpline", Univariate, "_eval_args ext")
def univariate(x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
               check_finite: bool = False) -> Any:
    if s is None or plain(s) != 0:
        raise refused(this_recorder(), "scipy.interpolate.UnivariateSpline of traced values with s=",
                      "its knots depend on the data: say s=0, choose the knots of LSQUnivariateSpline, or make it "
                      "outside")
    return interpolated(x, y, w, bbox, k, ext)


@stands_for("scipy.interpolate.InterpolatedUnivariateSpline", Univariate, "_eval_args ext")
def interpolated(x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
                 check_finite: bool = False) -> Any:
    """Through all points, whatever weights they have."""
    _whole(bbox, "InterpolatedUnivariateSpline")
    made = make_interp_spline(x, y, k)
    return Univariate(scipy_class("InterpolatedUnivariateSpline"), made.tck, _EXT.get(ext, ext))


@stands_for("scipy.interpolate.LSQUnivariateSpline", Univariate, "_eval_args ext")
def with_knots(x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
               check_finite: bool = False) -> Any:
    _whole(bbox, "LSQUnivariateSpline")
    return Univariate(scipy_class("LSQUnivariateSpline"), _fitted(x, y, t, k, w), _EXT.get(ext, ext))


def _whole(bbox: Any, name: str) -> None:
    if list(bbox) != [None, None]:
        raise refused(this_recorder(), f"scipy.interpolate.{name} with bbox=", "leave it out, or use make_lsq_spline")


def _fitted(x: Any, y: Any, inner: Any, k: int, w: Any) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree, of inner knots."""
    x, y, inner = (lifted(v) + 0.0 for v in (x, y, inner))
    require(np.diff(x) >= 0, ValueError("x must be increasing"))
    t: Any = np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])
    require(np.diff(t[k:t.shape[0] - k]) > 0, ValueError("Interior knots t must satisfy Schoenberg-Whitney conditions"))
    return t, _nearest(x, y, t, k, w), k


@substitute("scipy.interpolate", "splrep")
def splrep(x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
           t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1) -> tuple[Any, Any, int]:
    name = "scipy.interpolate.splrep"
    if full_output or per or xb is not None or xe is not None:
        raise refused(this_recorder(), f"{name} with full_output, per=, xb= or xe=", "leave them out")
    if t is None and (plain(s) if s is not None else w is not None):
        raise refused(this_recorder(), f"{name} with s= or w=, which chooses knots by the data", "say s=0, or give the "
                      "knots, as t=")
    knots, c, k = make_interp_spline(x, y, k).tck if t is None else _fitted(x, y, t, k, w)
    return knots, np.concatenate([c, np.zeros(k + 1)]), k


@substitute("scipy.interpolate", "splev")
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    if isinstance(tck, Spline):
        tck = tck.tck
    t, c, k = tck
    if isinstance(c, (list, tuple)) or np.ndim(c) > 1:
        raise refused(this_recorder(), "scipy.interpolate.splev of a curve", "call it for each coordinate")
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    if ext not in (0, 1, 2, 3):
        raise ValueError(f"ext = {ext} not in (0, 1, 2, 3) ")
    t, c, x = lifted(t) + 0.0, lifted(c) + 0.0, as_value(this_recorder(), x)
    n = t.shape[0] - k - 1
    first, last = t[k], t[n]
    if ext == 2:
        require((x >= first) & (x <= last), ValueError("Error code returned by bispev: 1"))
    inside = np.minimum(np.maximum(x, first), last) if ext == 3 else x
    value = Spline(scipy_class("BSpline"), t, c[:n], k, True)(inside, der)
    return np.where((x < first) | (x > last), 0.0, value) if ext == 1 else value


@substitute("scipy.interpolate", "splint")
def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    t, c, k = tck
    if full_output:
        raise refused(this_recorder(), "scipy.interpolate.splint with full_output", "leave it out")
    t, c = lifted(t), lifted(c)
    return Spline(scipy_class("BSpline"), t, c[:t.shape[0] - k - 1], k, False).integrate(a, b)
