"""scipy.ndimage's splines: the filter that finds their coefficients, values at any places, shifts and affine maps.

The coefficients follow from the values by recursive filters, forwards and backwards, one for each pole of the B-spline
(Unser, Aldroubi and Eden, B-Spline Signal Processing, IEEE Transactions on Signal Processing 41, 1993). Values at a
place are sums of the coefficients around it, weighted by the B-spline; their derivative by the place is that of the
weights. Which coefficients they are is picked by whole numbers; at the knots the derivative is that from the right.
"""
from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.trace.dispatch import complex_in, refused
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.images.filters import result_dtype
from jitad.trace.scipy_rules.signal.filters import cascade
from jitad.trace.scipy_rules.signal.lines import beyond, normalized_axis
from jitad.trace.substitutes import substitute

__all__ = ["at_places"]

MODULE = "scipy.ndimage"
POLES = {2: (math.sqrt(8.0) - 3.0,), 3: (math.sqrt(3.0) - 2.0,),
         4: tuple(math.sqrt(664.0 + s * math.sqrt(438976.0)) - s * math.sqrt(304.0) - 19.0 for s in (-1.0, 1.0)),
         5: tuple(math.sqrt(67.5 + s * math.sqrt(4436.25)) - s * math.sqrt(26.25) - 6.5 for s in (-1.0, 1.0))}
SMALL = 64                                   # elements of an axis up to which the filter is a product with a matrix
MARGIN = 12                                  # of elements more at the ends, where the spline has no exact condition
# How what is beyond the ends of the coefficients mirrors them, by mode.
_ENDS = {"reflect": "reflect", "grid-mirror": "reflect", "nearest": "reflect", "grid-wrap": "wrap"}
MODES = ("constant", "nearest", "mirror", "reflect", "wrap", "grid-constant", "grid-mirror", "grid-wrap")


def _within(places: np.ndarray, n: int, mode: str) -> np.ndarray:
    """The element of n that stands at each place beyond the ends."""
    if n == 1:
        return np.zeros_like(places)
    if mode == "wrap":
        return places % n
    if mode == "reflect":
        at = places % (2 * n)
        return np.minimum(at, 2 * n - 1 - at)
    at = places % (2 * n - 2)
    return np.minimum(at, 2 * n - 2 - at)


def _coefficients(x: Any, order: int, mode: str, axis: int) -> Any:
    """The coefficients of the splines along an axis."""
    n = x.shape[axis]
    if n == 1 or order < 2:
        return x
    front = np.moveaxis(x, axis, 0)
    if n <= SMALL:
        from scipy import ndimage

        matrix = ndimage.spline_filter1d(np.eye(n), order, axis=0, mode=mode)
        return np.moveaxis(np.tensordot(matrix, front, 1), 0, axis)
    mode = _ENDS.get(mode, "mirror")
    gain = math.prod((1.0 - z) * (1.0 - 1.0 / z) for z in POLES[order])
    front = lifted(front * gain)
    for z in POLES[order]:
        front = _pole(front, z, mode)
    return np.moveaxis(front, 0, axis)


def _pole(x: Any, z: float, mode: str) -> Any:
    """``1 / ((1 - z S) (1 - z / S))`` up to its gain, where S shifts by one: forwards, then backwards."""
    n = x.shape[0]
    reach = min(int(math.log(1e-17) / math.log(-z)) + 1, 100 * n)
    powers = z ** np.arange(reach)
    first = np.bincount(_within(-np.arange(reach), n, mode), powers, n)          # what came before, of the values
    forwards, _ = cascade([([1.0, 0.0], [1.0, -z])], x[1:], [[z * _dot(first, x)]])
    y = np.concatenate([_dot(first, x)[None], forwards])
    if mode == "mirror":
        last = (z * y[n - 2] + y[n - 1]) * (z / (z * z - 1.0))
    elif mode == "reflect":
        last = y[n - 1] * (z / (z - 1.0))
    else:
        after = np.bincount(_within(n - 1 + np.arange(reach), n, mode), powers, n)
        last = -z * _dot(after, y)
    back, _ = cascade([([-z, 0.0], [1.0, -z])], lifted(y[n - 2::-1]), [[z * last]])
    return lifted(np.concatenate([back[::-1], last[None]]))


def _dot(weights: np.ndarray, x: Any) -> Any:
    used = np.flatnonzero(weights)
    short = used[-1] + 1 if used[-1] < len(weights) // 2 else len(weights)
    return np.tensordot(weights[:short], x[:short], 1)


def _checked(input: Any, order: Any, mode: Any, name: str) -> Any:
    if not 0 <= order <= 5:
        raise RuntimeError("spline order not supported")
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")
    if complex_in(input):
        raise refused(this_recorder(), f"{MODULE}.{name} of complex values", "take both parts apart")
    return lifted(input)


@substitute(MODULE, "spline_filter1d")
def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    x = _checked(input, order, mode, "spline_filter1d")
    axis = normalized_axis(axis, x.ndim)
    return cast(_coefficients(cast(x, np.float64), order, mode, axis), result_dtype(output, x, "spline_filter1d"))


@substitute(MODULE, "spline_filter")
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    if order < 2:
        raise RuntimeError("spline order not supported")
    x = _checked(input, order, mode, "spline_filter")
    found = cast(x, np.float64)
    for axis in range(x.ndim):
        found = _coefficients(found, order, mode, axis)
    return cast(found, result_dtype(output, x, "spline_filter"))


# --- values ------------------------------------------------------------------------------------------

def _weights(order: int, t: Any) -> list[Any]:
    """The B-splines of a degree around a place, which lies `t` beyond the middle of the first half of them: the
    recursion of Cox and de Boor for knots at whole numbers."""
    found: list[Any] = [1.0]                             # N(t + j), where N is the spline from 0 up to degree + 1
    for k in range(1, order + 1):
        rows = [*found, 0.0, 0.0]                        # the last stands for the one before the first, too
        found = [((t + j) * rows[j] + (k + 1 - j - t) * rows[j - 1]) / k for j in range(k + 1)]
    return found[::-1]


def at_places(x: Any, places: list[Any], order: int, mode: str, cval: Any, margin: int) -> Any:
    """The spline with the coefficients `x` at places of each axis, which broadcast."""
    axes = [_axis(n, p, order, mode, margin) for n, p in zip(x.shape, places, strict=True)]
    total: Any = 0.0
    for choice in product(range(order + 1), repeat=len(axes)):
        index = tuple(a[0][k] for a, k in zip(axes, choice, strict=True))
        weight = math.prod([a[1][k] for a, k in zip(axes, choice, strict=True)], start=1.0)
        value = x[index]
        if mode == "grid-constant":
            value = _kept([a[3][k] for a, k in zip(axes, choice, strict=True)], value, cval)
        total = total + weight * value
    return _kept([a[2] for a in axes], total, cval) if mode == "constant" else total


def _kept(flags: list[Any], value: Any, cval: Any) -> Any:
    """`value` where all flags are set, else the constant."""
    flag = flags[0]
    for other in flags[1:]:
        flag = flag & other
    return np.where(flag, value, cval)


def _axis(n: int, place: Any, order: int, mode: str, margin: int) -> tuple[list[Any], list[Any], Any, list[Any]]:
    """By the splines that are not zero at a place: their numbers and weights; whether the place lies within the ends,
    and whether each number does."""
    place = place + float(margin)
    inside = (place >= 0) & (place <= n - 1)
    if mode == "wrap":                                 # of period n - 1, as SciPy has it
        place = np.where(inside, place, place - np.floor(place / max(n - 1, 1)) * (n - 1))
    place = place if order % 2 else place + 0.5
    start = np.floor(place)
    weights = _weights(order, place - start)
    first = cast(start, np.int64) - order // 2
    numbers = [first + k for k in range(order + 1)]
    within = [(i >= 0) & (i < n) for i in numbers]
    return [_mapped(i, n, mode) for i in numbers], weights, inside, within


def _mapped(i: Any, n: int, mode: str) -> Any:
    """The number of the coefficient that stands for one beyond the ends."""
    if n == 1:
        return i * 0
    if mode in ("nearest", "grid-constant"):
        return np.clip(i, 0, n - 1)
    if mode == "grid-wrap":
        return i % n
    period = 2 * n if mode in ("reflect", "grid-mirror") else 2 * n - 2
    at = i % period
    return np.minimum(at, period - at - (1 if period == 2 * n else 0))


def _prepared(x: Any, order: int, mode: str, cval: Any, prefilter: bool) -> tuple[Any, int]:
    """The coefficients, and by how many elements they are more at each end."""
    x, margin = cast(x, np.float64), 0
    if prefilter and order > 1:
        if mode in ("nearest", "grid-constant"):
            margin = MARGIN
            for axis in range(x.ndim):
                x = beyond(x, axis, margin, margin, "edge" if mode == "nearest" else "constant", cval)
        for axis in range(x.ndim):
            x = _coefficients(x, order, mode, axis)
    return lifted(x), margin


def _values(x: Any, places: list[Any], shape: tuple[int, ...], options: tuple[Any, ...], dtype: Any) -> Any:
    order, mode, cval, prefilter = options
    coefficients, margin = _prepared(x, order, mode, cval, prefilter)
    found = at_places(coefficients, [lifted(p) for p in places], order, mode, cval, margin)
    whole: Any = np.broadcast_to(found, shape)
    return cast(whole, dtype)


@substitute(MODULE, "map_coordinates")
def map_coordinates(input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant",
                    cval: Any = 0.0, prefilter: bool = True) -> Any:
    x = _checked(input, order, mode, "map_coordinates")
    places: Any = cast(lifted(coordinates), np.float64)
    if x.ndim < 1 or places.ndim < 2:
        raise RuntimeError("input and output rank must be > 0")
    if places.shape[0] != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    return _values(x, [places[k] for k in range(x.ndim)], places.shape[1:], (order, mode, cval, prefilter),
                   result_dtype(output, x, "map_coordinates"))


def _grid(shape: tuple[int, ...], k: int) -> np.ndarray:
    """The positions along axis `k`, to broadcast."""
    return np.arange(shape[k], dtype=float).reshape([-1 if i == k else 1 for i in range(len(shape))])


@substitute(MODULE, "shift")
def shift(input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
          prefilter: bool = True) -> Any:
    x = _checked(input, order, mode, "shift")
    by = lifted(shift)
    by = np.broadcast_to(by, (x.ndim,)) if not by.ndim else by
    if by.shape != (x.ndim,):
        raise RuntimeError("sequence argument must have length equal to input rank")
    return _values(x, [_grid(x.shape, k) - by[k] for k in range(x.ndim)], x.shape, (order, mode, cval, prefilter),
                   result_dtype(output, x, "shift"))


@substitute(MODULE, "affine_transform")
def affine_transform(input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None,
                     order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True) -> Any:
    x = _checked(input, order, mode, "affine_transform")
    matrix, offset, n = lifted(matrix), lifted(offset), x.ndim
    if matrix.ndim == 2 and matrix.shape[1] == n + 1 and matrix.shape[0] in (n, n + 1):
        if matrix.shape[0] == n + 1 and not (matrix[n] == np.array([0.0] * n + [1.0])).all():     # a recorded branch
            raise ValueError(f"Expected homogeneous transformation matrix with shape {matrix.shape} for image shape "
                             f"{x.shape}, but bottom row was not equal to {[0] * n + [1]}")
        matrix, offset = matrix[:n, :n], matrix[:n, n]
    shape = x.shape if output_shape is None else tuple(int(k) for k in output_shape)
    if matrix.ndim not in (1, 2) or matrix.shape[0] != n or matrix.shape[-1] != len(shape):
        raise RuntimeError("affine matrix has wrong number of rows or columns")
    offset = np.broadcast_to(offset, (n,))
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    places = [sum(matrix[i, k] * _grid(shape, k) for k in range(len(shape))) + offset[i] for i in range(n)]
    return _values(x, places, shape, (order, mode, cval, prefilter), result_dtype(output, x, "affine_transform"))
