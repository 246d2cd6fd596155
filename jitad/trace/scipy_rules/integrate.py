"""Functions of scipy.integrate on samples, and Gauss-Legendre quadrature of a fixed order."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in, call
from jitad.trace.numpy_rules.reductions.reduce import diff, sum_
from jitad.trace.substitutes import substitute


@substitute("scipy.integrate", "trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    return call(np.trapezoid, y, x, dx, axis)


def _steps(y: Any, x: Any, axis: int) -> Any:
    """The differences of `x`, which has one dimension or those of `y`, along `axis` of `y`."""
    x = as_value(y.builder, x)
    if x.ndim == 1:
        return diff(x).reshape(tuple(-1 if d == axis else 1 for d in range(y.ndim)))
    if x.ndim != y.ndim:
        raise ValueError("If given, shape of `x` must be 1-D or the same as `y`.")
    return diff(x, axis=axis)


def _start(y: Any, x: Any, dx: Any, axis: int) -> tuple[Any, int, Any, Callable[..., Any]]:
    y = as_value(builder_in(y, x, dx), y)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    lead = (slice(None),) * axis
    return y, axis, None if x is None else _steps(y, x, axis), lambda a, *s: a[(*lead, slice(*s))]


@substitute("scipy.integrate", "cumulative_trapezoid")
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    y, axis, h, at = _start(y, x, dx, axis)
    if not y.shape[axis]:
        raise ValueError("At least one point is required along `axis`.")
    d = dx if h is None else h
    found = np.cumsum(d * (at(y, 1, None) + at(y, -1)) / 2.0, axis=axis)
    if initial is None:
        return found
    if initial != 0:
        raise ValueError("`initial` must be `None` or `0`.")
    shape = tuple(1 if d == axis else n for d, n in enumerate(found.shape))
    return np.concatenate([np.zeros(shape, found.dtype), found], axis=axis)


@substitute("scipy.integrate", "simpson")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Simpson's composite rule; for an even number of points the last interval as Cartwright (2017, eq. 8) has it."""
    y, axis, h, at = _start(y, x, dx, axis)
    n = y.shape[axis]
    if n % 2:
        return _pairs(y, h, dx, axis, at, n - 2)
    if n == 2:
        last = dx if h is None else _drop(at(h, -1, None), axis)
        return 0.5 * last * _drop(at(y, -1, None) + at(y, -2, -1), axis)
    h0, h1 = (dx, dx) if h is None else (_drop(at(h, -2, -1), axis), _drop(at(h, -1, None), axis))
    alpha = _ratio(2 * h1 ** 2 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _ratio(h1 ** 2 + 3.0 * h0 * h1, 6 * h0)
    eta = _ratio(h1 ** 3, 6 * h0 * (h0 + h1))
    y1, y2, y3 = (_drop(at(y, s, s + 1 or None), axis) for s in (-1, -2, -3))
    return _pairs(y, h, dx, axis, at, n - 3) + (alpha * y1 + beta * y2 - eta * y3)


def _pairs(y: Any, h: Any, dx: Any, axis: int, at: Callable[..., Any], stop: int) -> Any:
    """The rule over the pairs of intervals up to the one that starts at `stop` - 1."""
    y0, y1, y2 = (at(y, s, stop + s, 2) for s in range(3))
    if h is None:
        return sum_(y0 + 4.0 * y1 + y2, axis) * (dx / 3.0)
    h0, h1 = (at(h, s, stop + s, 2) for s in range(2))
    both = h0 + h1
    ratio = _ratio(h0, h1)
    return sum_(both / 6.0 * (y0 * (2.0 - _ratio(1.0, ratio)) + y1 * (both * _ratio(both, h0 * h1))
                              + y2 * (2.0 - ratio)), axis)


def _ratio(a: Any, b: Any) -> Any:
    """``a / b``, and 0 where `b` is."""
    if builder_in(a, b) is None:
        return np.divide(a, b) if b != 0 else 0.0
    return choose(b == 0, 0.0, a / choose(b == 0, 1.0, b))


def _drop(a: Any, axis: int) -> Any:
    return np.squeeze(a, axis)


@substitute("scipy.integrate", "romb")
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    y, axis, _, at = _start(y, None, dx, axis)
    intervals = y.shape[axis] - 1
    levels = max(intervals, 1).bit_length() - 1
    if 2 ** levels != intervals:
        raise ValueError("Number of samples must be one plus a non-negative power of 2.")
    width = intervals * (as_value(y.builder, dx) + 0.0)
    row = [_drop(at(y, 1) + at(y, -1, None), axis) / 2.0 * width]
    for i in range(1, levels + 1):
        step = 2 ** (levels - i)
        width = width / 2.0
        new = [0.5 * (row[0] + 2 * width * sum_(at(y, step, None, 2 * step), axis))]
        for j in range(i):
            new.append(new[j] + (new[j] - row[j]) / (4 ** (j + 1) - 1))
        row = new
    return row[-1]


@substitute("scipy.integrate", "fixed_quad", calls=True)
def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> tuple[Any, None]:
    if any(builder_in(x) is None and np.isinf(x) for x in (a, b)):
        raise ValueError("Gaussian quadrature is only available for finite limits.")
    x, w = np.polynomial.legendre.leggauss(n)
    points = (b - a) * (x + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(w * func(points, *args), axis=-1), None
