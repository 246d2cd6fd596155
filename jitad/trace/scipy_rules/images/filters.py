"""scipy.ndimage's linear filters: weighted sums of neighbours, with what is beyond the edges.

They work in float64, as SciPy's do, and give the dtype of the input. Weights, the widths of Gaussians and constants
beyond the edges may be traced too.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.trace.dispatch import complex_in, refused
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.signal.convolving import windows
from jitad.trace.scipy_rules.signal.lines import beyond, normalized_axis, windows_dot
from jitad.trace.substitutes import substitute

__all__ = ["correlated_lines", "result_dtype"]

MODULE = "scipy.ndimage"
PADS = {"reflect": "symmetric", "grid-mirror": "symmetric", "constant": "constant", "grid-constant": "constant",
        "nearest": "edge", "mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap"}


def _beyond(x: Any, ends: Sequence[tuple[int, int]], mode: Any, cval: Any) -> Any:
    """`x` with what is beyond its edges."""
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported")
    if mode not in PADS:
        raise RuntimeError("boundary mode not supported")
    for axis, (before, after) in enumerate(ends):
        x = beyond(x, axis, before, after, PADS[mode], cval)
    return x


def _image(x: Any, name: str) -> Any:
    if complex_in(x):
        raise refused(this_recorder(), f"{MODULE}.{name} of complex values", "filter both parts apart")
    return lifted(x)


def result_dtype(output: Any, x: Any, name: str) -> Any:
    """The dtype of the result, which `output` may be."""
    if output is None:
        return x.dtype
    if isinstance(output, (type, np.dtype, str)):
        return np.dtype(output)
    raise refused(this_recorder(), f"{MODULE}.{name} with an array as output=", "use the returned array instead")


def correlated_lines(x: Any, weights: Any, axis: int, mode: Any = "reflect", cval: Any = 0.0, origin: int = 0) -> Any:
    """``y[i] = sum_j weights[j] x[i + j - size // 2 - origin]`` along an axis, in float64."""
    x, weights = cast(lifted(x), np.float64), cast(lifted(weights), np.float64)
    if weights.ndim != 1 or not weights.shape[0]:
        raise RuntimeError("no filter weights given")
    size, origin = weights.shape[0], int(origin)
    if not -(size // 2) <= origin <= (size - 1) // 2:
        raise ValueError("Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= "
                         "(len(weights)-1) // 2")
    ends = [(0, 0)] * x.ndim
    ends[axis] = (size // 2 + origin, size - 1 - size // 2 - origin)
    return windows_dot(_beyond(x, ends, mode, cval), weights, axis)


@substitute(MODULE, "correlate1d")
def correlate1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: Any = "reflect",
                cval: Any = 0.0, origin: int = 0) -> Any:
    x = _image(input, "correlate1d")
    found = correlated_lines(x, weights, normalized_axis(axis, x.ndim), mode, cval, origin)
    return cast(found, result_dtype(output, x, "correlate1d"))


def _turned(size: int, origin: int) -> int:
    """The origin of the filter of `size` weights in reverse order."""
    return -int(origin) - (size % 2 == 0)


@substitute(MODULE, "convolve1d")
def convolve1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: Any = "reflect",
               cval: Any = 0.0, origin: int = 0) -> Any:
    weights = lifted(weights)
    return correlate1d(input, weights[::-1], axis, output, mode, cval, _turned(weights.shape[0], origin))


def _sequence(value: Any, count: int) -> list[Any]:
    several = isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0
    found = list(value) if several else [value] * count
    if len(found) != count:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return found


def _axes(axes: Any, ndim: int) -> list[int]:
    return [normalized_axis(k, ndim) for k in (
        range(ndim) if axes is None else [axes] if not np.ndim(axes) else axes)]


# --- Gaussians -----------------------------------------------------------------------------------------

def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """Weights at -radius .. radius: the normal density, of sum 1, or its derivative: q(x) phi(x) with
    q' - x q / sigma^2 in the place of q for each order."""
    if order < 0:
        raise ValueError("order must be non-negative")
    x = np.arange(-radius, radius + 1.0)
    inverse = 1.0 / (sigma * sigma)
    phi = np.exp(-0.5 * inverse * x**2)
    phi = phi / np.sum(phi)
    q = [1.0 + 0.0 * inverse]                            # coefficients, those of low powers first
    for _ in range(order):
        slope = [*(k * c for k, c in enumerate(q) if k), 0.0, 0.0]
        q = [s - c for s, c in zip(slope, [0.0, *(inverse * c for c in q)], strict=True)]
    return phi if not order else phi * sum(c * x**k for k, c in enumerate(q))


@substitute(MODULE, "gaussian_filter1d")
def gaussian_filter1d(input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None,
                      mode: Any = "reflect", cval: Any = 0.0, truncate: Any = 4.0, *, radius: Any = None) -> Any:
    reach = int(truncate * sigma + 0.5) if radius is None else radius           # of a traced width, a guard
    if reach < 0 or reach != int(reach):
        raise ValueError("Radius must be a nonnegative integer.")
    return correlate1d(input, _gaussian(sigma, order, int(reach))[::-1], axis, output, mode, cval)


@substitute(MODULE, "gaussian_filter")
def gaussian_filter(input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect",
                    cval: Any = 0.0, truncate: Any = 4.0, *, radius: Any = None, axes: Any = None) -> Any:
    x = _image(input, "gaussian_filter")
    axes, dtype = _axes(axes, x.ndim), result_dtype(output, x, "gaussian_filter")
    options = zip(axes, *(_sequence(v, len(axes)) for v in (sigma, order, mode, radius)), strict=True)
    for axis, width, degree, edges, reach in options:
        if width > 1e-15:                                            # a recorded branch
            x = gaussian_filter1d(x, width, axis, degree, dtype, edges, cval, truncate, radius=reach)
    return cast(x, dtype)


# --- means ---------------------------------------------------------------------------------------------

@substitute(MODULE, "uniform_filter1d")
def uniform_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: Any = "reflect",
                     cval: Any = 0.0, origin: int = 0) -> Any:
    if size < 1:
        raise RuntimeError("incorrect filter size")
    if not 0 <= size // 2 + origin < size:
        raise ValueError("invalid origin")
    return correlate1d(input, np.full(size, 1.0 / size), axis, output, mode, cval, origin)


@substitute(MODULE, "uniform_filter")
def uniform_filter(input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
                   origin: Any = 0, *, axes: Any = None) -> Any:
    x = _image(input, "uniform_filter")
    axes, dtype = _axes(axes, x.ndim), result_dtype(output, x, "uniform_filter")
    for axis, n, edges, at in zip(axes, *(_sequence(v, len(axes)) for v in (size, mode, origin)), strict=True):
        x = uniform_filter1d(x, int(n), axis, dtype, edges, cval, at) if n > 1 else x
    return cast(x, dtype)


# --- weights in several dimensions -------------------------------------------------------------------------

def _weighted(name: str, turned: bool) -> None:
    @substitute(MODULE, name)
    def filtered(input: Any, weights: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
                 origin: Any = 0, *, axes: Any = None) -> Any:
        if complex_in(weights):
            raise refused(this_recorder(), f"{MODULE}.{name} with complex weights", "filter both parts apart")
        x, weights = _image(input, name), cast(lifted(weights), np.float64)
        axes = _axes(axes, x.ndim)
        if weights.ndim != len(axes):
            raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({len(axes)})")
        origins = [int(o) for o in _sequence(origin, len(axes))]
        if turned:
            weights = weights[(slice(None, None, -1),) * weights.ndim]
            origins = [_turned(n, o) for n, o in zip(weights.shape, origins, strict=True)]
        if any(not -(n // 2) <= o <= (n - 1) // 2 for n, o in zip(weights.shape, origins, strict=True)):
            raise ValueError("Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= "
                             "(weights.shape[k]-1) // 2")
        ends, shape = [(0, 0)] * x.ndim, [1] * x.ndim
        for axis, n, at in zip(axes, weights.shape, origins, strict=True):
            ends[axis], shape[axis] = (n // 2 + at, n - 1 - n // 2 - at), n
        if axes != sorted(axes):
            weights = weights.transpose(np.argsort(axes))
        whole = lifted(_beyond(cast(x, np.float64), ends, mode, cval))
        return cast(windows(whole, weights.reshape(shape)), result_dtype(output, x, name))


_weighted("correlate", False)
_weighted("convolve", True)


# --- differences -------------------------------------------------------------------------------------------

def _edges(name: str, across: list[float]) -> None:
    @substitute(MODULE, name)
    def differences(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
        x = _image(input, name)
        axis, modes = normalized_axis(axis, x.ndim), _sequence(mode, x.ndim)
        found = correlate1d(x, [-1.0, 0.0, 1.0], axis, result_dtype(output, x, name), modes[axis], cval)
        for k in range(x.ndim):
            found = found if k == axis else correlate1d(found, across, k, None, modes[k], cval)
        return found


_edges("sobel", [1.0, 2.0, 1.0])
_edges("prewitt", [1.0, 1.0, 1.0])


def _sum_of(name: str, term: Callable[..., Any], x: Any, output: Any, mode: Any, axes: Any) -> Any:
    """The sum over the axes of ``term(x, place of the axis, axis, dtype, mode)``."""
    axes, dtype = _axes(axes, x.ndim), result_dtype(output, x, name)
    found = [term(x, i, k, dtype, m) for i, (k, m) in enumerate(zip(axes, _sequence(mode, len(axes)), strict=True))]
    return cast(sum(found[1:], found[0]) if found else x, dtype)


@substitute(MODULE, "laplace")
def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    def second(x: Any, _: int, axis: int, dtype: Any, mode: Any) -> Any:
        return correlate1d(x, [1.0, -2.0, 1.0], axis, dtype, mode, cval)
    return _sum_of("laplace", second, _image(input, "laplace"), output, mode, axes)


@substitute(MODULE, "gaussian_laplace")
def gaussian_laplace(input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *,
                     axes: Any = None, **kwargs: Any) -> Any:
    return _sum_of("gaussian_laplace", _gaussian_slopes(2, sigma, axes, cval, kwargs),
                   _image(input, "gaussian_laplace"), output, mode, axes)


@substitute(MODULE, "gaussian_gradient_magnitude")
def gaussian_gradient_magnitude(input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *,
                                axes: Any = None, **kwargs: Any) -> Any:
    slopes, image = _gaussian_slopes(1, sigma, axes, cval, kwargs), _image(input, "gaussian_gradient_magnitude")
    if not image.ndim:
        return image                                     # as SciPy, which has no axis to go along
    return np.sqrt(_sum_of("gaussian_gradient_magnitude", lambda *given: np.square(slopes(*given)), image, output, mode,
                           axes))


def _gaussian_slopes(degree: int, sigma: Any, axes: Any, cval: Any, options: dict[str, Any]) -> Callable[..., Any]:
    """The derivatives along one axis, smoothed along all."""
    def slope(x: Any, place: int, axis: int, dtype: Any, mode: Any) -> Any:
        chosen = _axes(axes, x.ndim)
        order = [degree if i == place else 0 for i in range(len(chosen))]
        return gaussian_filter(x, sigma, order, dtype, mode, cval, axes=chosen, **options)
    return slope
