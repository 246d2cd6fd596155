"""Cubic interpolation of values: splines, and the local rules of Fritsch and Butland and of Akima.

The slopes of a spline at its points solve a banded system, whose right-hand side is linear in the values (de Boor, A
Practical Guide to Splines, revised edition, chapter IV): differentiated as such, by one banded solution more, of a
cost linear in the number of points. The others are formulas of neighbouring chords; where one of those chooses, the
derivative is that of the choice.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.linalg import solve_banded
from jitad.trace.scipy_rules.classes import lifted, require, scipy_class, stands_for
from jitad.trace.scipy_rules.interpolate.pieces import Pieces, hermite, prepared


@stands_for("scipy.interpolate.CubicSpline", Pieces, "c x extrapolate axis")
def cubic_spline(x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> Pieces:
    x, y, _, axis = prepared(x, y, axis)
    if extrapolate is None:
        extrapolate = "periodic" if isinstance(bc_type, str) and bc_type == "periodic" else True
    slopes = _slopes(x, y, _boundaries(bc_type, y))
    return hermite(scipy_class("CubicSpline"), x, y, slopes, extrapolate, axis)


def _boundaries(bc_type: Any, y: Any) -> list[Any]:
    """For each end: "not-a-knot", "periodic", or (order, value) of a derivative that is given."""
    ends = [bc_type, bc_type] if isinstance(bc_type, str) else list(bc_type)
    if len(ends) != 2:
        raise ValueError("`bc_type` must contain 2 elements to specify start and end conditions.")
    if any(isinstance(e, str) and e == "periodic" for e in ends):
        if not all(isinstance(e, str) and e == "periodic" for e in ends):
            raise ValueError("'periodic' `bc_type` is defined for both curve ends and cannot be used with other "
                             "boundary conditions.")
        require(np.abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * np.abs(y[-1]),
                ValueError("The first and last `y` point must be identical (within machine precision) when "
                           "`bc_type='periodic'`."))
    known = {"clamped": (1, 0.0), "natural": (2, 0.0)}
    made = []
    for end in ends:
        if isinstance(end, str):
            if end not in ("not-a-knot", "periodic", *known):
                raise ValueError(f"bc_type={end} is not allowed.")
            made.append(known.get(end, end))
            continue
        order, value = end
        if order not in (1, 2):
            raise ValueError("The specified derivative order must be 1 or 2.")
        value = lifted(value) + 0.0
        if value.shape != y.shape[1:]:
            raise ValueError(f"`deriv_value` shape {value.shape} is not the expected one {y.shape[1:]}.")
        made.append((order, value))
    return made


def _slopes(x: Any, y: Any, ends: list[Any]) -> Any:
    n, rest = x.size, y.shape[1:]
    y = y.reshape((n, -1))
    dx, chord = np.diff(x), np.diff(y, axis=0) / np.diff(x)[:, None]
    ends = [e if isinstance(e, str) else (e[0], lifted(e[1]).reshape(-1) if np.ndim(e[1]) or rest else lifted(e[1]))
            for e in ends]
    if n == 2:                                           # too few points for a condition on what they share
        if ends[0] == "periodic":
            return (y * 0.0).reshape((n, *rest))
        ends = [(1, chord[0]) if isinstance(e, str) else e for e in ends]
    if n == 3 and ends == ["not-a-knot"] * 2:
        return _parabola(dx, chord).reshape((n, *rest))
    if ends[0] == "periodic":
        found = _periodic(dx, chord)
    else:
        found = _banded(dx, chord, [_end(dx, chord, ends[0], 1), _end(dx[::-1], chord[::-1], ends[1], -1)])
    return found.reshape((n, *rest))


def _parabola(dx: Any, chord: Any) -> Any:
    """The slopes of the parabola through three points."""
    second = (chord[1] - chord[0]) / (dx[0] + dx[1])
    return np.stack([chord[0] - dx[0] * second, chord[0] + dx[0] * second, chord[1] + dx[1] * second])


def _end(dx: Any, chord: Any, condition: Any, sign: int) -> tuple[Any, Any, Any]:
    """The equation of an end: the coefficients of its slope and the neighbour's, and the right-hand side. Backwards
    the second derivative changes its sign."""
    if isinstance(condition, str):
        span = dx[0] + dx[1]
        return dx[1], span, ((dx[0] + 2 * span) * dx[1] * chord[0] + dx[0] ** 2 * chord[1]) / span
    order, value = condition
    if order == 1:
        return dx[0] * 0.0 + 1.0, dx[0] * 0.0, chord[0] * 0.0 + value
    return 2 * dx[0], dx[0], 3 * dx[0] * chord[0] - sign * 0.5 * value * dx[0] ** 2


def _banded(dx: Any, chord: Any, ends: list[tuple[Any, Any, Any]]) -> Any:
    """The slopes, from the equations of the inner points and those of the ends."""
    (d0, u0, b0), (d1, l1, b1) = ends
    zero = dx[:1] * 0.0
    one = lambda v: v.reshape(1)
    upper = np.concatenate([zero, one(u0), dx[:-1]])
    middle = np.concatenate([one(d0), 2 * (dx[:-1] + dx[1:]), one(d1)])
    lower = np.concatenate([dx[1:], one(l1), zero])
    inner = 3 * (dx[1:, None] * chord[:-1] + dx[:-1, None] * chord[1:])
    right = np.concatenate([b0[None], inner, b1[None]])
    return lifted(solve_banded(np.stack([upper, middle, lower]), right, lower=1, upper=1))


def _periodic(dx: Any, chord: Any) -> Any:
    """The slopes that are the same at both ends: a banded system without the last point, and one more unknown."""
    n = dx.size                                          # slopes 0 .. n - 1, the last one again the first
    last, first = dx[-1], dx[0]
    right = 3 * (dx[1:, None] * chord[:-1] + dx[:-1, None] * chord[1:])                # points 1 .. n - 1
    top = 3 * (first * chord[-1] + last * chord[0])
    if n == 2:
        system = np.stack([np.stack([2 * (last + first), last + first]), np.stack([first + last, 2 * (first + last)])])
        found = np.linalg.solve(system, np.stack([top, right[0]]))
        return np.concatenate([found, found[:1]])
    zero = dx[:1] * 0.0
    upper = np.concatenate([zero, dx[:-2]])
    middle = 2 * (dx[:-1] + dx[1:])
    lower = np.concatenate([dx[2:], zero])
    inner = np.zeros(n - 3)
    beside = np.concatenate([dx[1:2], inner, dx[-2:-1]]) if n > 3 else np.concatenate([dx[1:2], dx[-2:-1]])
    both = lifted(solve_banded(np.stack([upper, middle, lower]),
                               np.concatenate([right, beside[:, None]], axis=1), lower=1, upper=1))
    s, w = both[:, :-1], both[:, -1]
    zeroth = (top - last * s[0] - first * s[-1]) / (2 * (last + first) - last * w[0] - first * w[-1])
    s = s - w[:, None] * zeroth
    return np.concatenate([zeroth[None], s, zeroth[None]])


@stands_for("scipy.interpolate.CubicHermiteSpline", Pieces, "c x extrapolate axis")
def cubic_hermite_spline(x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> Pieces:
    if lifted(dydx).shape != lifted(y).shape:
        raise ValueError("The shapes of `y` and `dydx` must be identical.")
    x, y, slopes, axis = prepared(x, y, axis, dydx)
    return hermite(scipy_class("CubicHermiteSpline"), x, y, slopes, extrapolate, axis)


@stands_for("scipy.interpolate.PchipInterpolator", Pieces, "c x extrapolate axis")
def pchip(x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> Pieces:
    """Slopes that keep monotone values monotone (Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5, 1984): harmonic
    means of neighbouring chords, 0 where those change sign; at the ends those of a parabola, with limits."""
    x, y, _, axis = prepared(x, y, axis)
    h = np.diff(x).reshape((-1,) + (1,) * (y.ndim - 1))
    chord = np.diff(y, axis=0) / h
    if y.shape[0] == 2:
        slopes = np.concatenate([chord, chord])
    else:
        a, b = chord[:-1], chord[1:]
        flat = (np.sign(a) != np.sign(b)) | (a == 0) | (b == 0)
        w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
        inverse = (w1 / np.where(flat, 1.0, a) + w2 / np.where(flat, 1.0, b)) / (w1 + w2)
        inner = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, inverse))
        slopes = np.concatenate([_edge(h[0], h[1], chord[0], chord[1])[None], inner,
                                 _edge(h[-1], h[-2], chord[-1], chord[-2])[None]])
    return hermite(scipy_class("PchipInterpolator"), x, y, slopes, extrapolate, axis)


def _edge(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end of the parabola through three points, of the chord's sign and at most three times it."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    d = np.where((np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0)), 3.0 * m0, d)
    first = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    return np.where(np.sign(first) != np.sign(m0), 0.0 * m0, d)


@stands_for("scipy.interpolate.Akima1DInterpolator", Pieces, "c x extrapolate axis")
def akima(x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> Pieces:
    """Slopes that are means of neighbouring chords, each weighted by how little those on the other side differ (Akima,
    J. ACM 17, 1970); "makima" adds half their sum to the weights."""
    if method not in ("akima", "makima"):
        raise NotImplementedError(f"`method`={method} is unsupported.")
    x, y, _, axis = prepared(x, y, axis)
    extrapolate = False if extrapolate is None else extrapolate
    dx = np.diff(x).reshape((-1,) + (1,) * (y.ndim - 1))
    chord = np.diff(y, axis=0) / dx
    if y.shape[0] == 2:
        return hermite(scipy_class("Akima1DInterpolator"), x, y, np.concatenate([chord, chord]), extrapolate, axis)
    before = 2 * chord[0] - chord[1]
    after = 2 * chord[-1] - chord[-2]
    m = np.concatenate([(2 * before - chord[0])[None], before[None], chord, after[None],
                        (2 * after - chord[-1])[None]])
    change = np.abs(np.diff(m, axis=0))
    if method == "makima":
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    w1, w2 = change[2:], change[:-2]
    total = w1 + w2
    small = ~(total > 1e-9 * np.max(total))
    slopes = np.where(small, 0.5 * (m[3:] + m[:-3]), (w1 * m[1:-2] + w2 * m[2:-1]) / np.where(small, 1.0, total))
    return hermite(scipy_class("Akima1DInterpolator"), x, y, slopes, extrapolate, axis)
