"""scipy.signal's trends, smoothing polynomials, analytic signals, other sampling rates: linear maps of signals."""
from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.trace.dispatch import builder_in, complex_in, refused
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.images.filters import correlated_lines
from jitad.trace.scipy_rules.signal.filters import lfilter, sosfilt, sosfiltfilt
from jitad.trace.scipy_rules.signal.lines import normalized_axis, windows_dot
from jitad.trace.substitutes import substitute

__all__ = ["detrend", "floating", "real"]

MODULE = "scipy.signal"


def real(x: Any, name: str) -> Any:
    if complex_in(x):
        raise refused(this_recorder(), f"{MODULE}.{name} of complex values", "use the function on both parts")
    return lifted(x)


def floating(x: Any, name: str) -> Any:
    """`x` in the dtype in which it is worked on."""
    x = real(x, name)
    return x if x.dtype in (np.float64, np.float32) else cast(x, np.float64)


@substitute(MODULE, "detrend")
def detrend(data: Any, axis: int = -1, type: Any = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    if overwrite_data:
        raise refused(this_recorder(), f"{MODULE}.detrend with overwrite_data", "use the returned array instead")
    x = floating(data, "detrend")
    axis = normalized_axis(axis, x.ndim)
    if type in ("constant", "c"):
        return x - np.mean(x, axis, keepdims=True)
    n, front = x.shape[axis], np.moveaxis(x, axis, 0)
    if builder_in(bp) is not None:
        raise refused(this_recorder(), f"{MODULE}.detrend with traced breakpoints", "pass them as static values")
    breaks = np.unique(np.concatenate([[0, n], np.atleast_1d(bp)])).astype(int)
    if np.any(breaks > n):
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    pieces = [_without_line(front[a:b]) for a, b in pairwise(breaks)]
    return np.moveaxis(np.concatenate(pieces) if len(pieces) > 1 else pieces[0], 0, axis)


def _without_line(x: Any) -> Any:
    """Less the line of least squares along the first axis: its mean, and its slope by a centred time."""
    n = x.shape[0]
    time = (np.arange(n) - (n - 1) / 2.0).astype(x.dtype)
    column = time.reshape((-1,) + (1,) * (x.ndim - 1))
    square = float(np.sum(time * time))
    slope = np.sum(column * x, 0) / square if square else 0.0 * x[0]
    return x - np.mean(x, 0) - slope * column


# --- polynomials along a window -----------------------------------------------------------------------

@substitute(MODULE, "savgol_filter")
def savgol_filter(x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: Any = 1.0, axis: int = -1,
                  mode: str = "interp", cval: Any = 0.0) -> Any:
    from scipy import signal

    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    x = floating(x, "savgol_filter")
    axis = normalized_axis(axis, x.ndim)
    size = int(window_length)
    weights = signal.savgol_coeffs(size, polyorder, deriv=deriv)[::-1]
    scale = delta**-deriv if deriv else 1.0
    origin = -(size % 2 == 0)                            # a convolution's
    if mode != "interp":
        return cast(correlated_lines(x, weights, axis, mode, cval, origin) * scale, x.dtype)
    if size > x.shape[axis]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    front: Any = cast(lifted(np.moveaxis(x, axis, 0)), np.float64)
    middle = windows_dot(front, weights)
    before, after = (_fit(size, polyorder, deriv, places) for places in (
        np.arange(size // 2), np.arange(size - size // 2, size)))
    half = size // 2
    inner = middle if size % 2 else middle[1:]           # what the fits at both ends do not give
    whole: Any = np.concatenate([np.tensordot(before, front[:size], 1), inner,
                            np.tensordot(after, front[front.shape[0] - size:], 1)]) if half else middle
    whole = np.moveaxis(whole * scale, 0, axis)
    return cast(whole, x.dtype)


def _fit(size: int, degree: int, deriv: int, places: np.ndarray) -> np.ndarray:
    """The derivative, at `places`, of the polynomial of least squares, as a matrix on the values at 0 .. size - 1."""
    fits = [np.polynomial.Polynomial.fit(np.arange(size), unit, degree).deriv(deriv)(places) for unit in np.eye(size)]
    return np.stack(fits, axis=1)


# --- analytic signals ---------------------------------------------------------------------------------

@substitute(MODULE, "hilbert")
def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    x = lifted(x)
    if complex_in(x):
        raise ValueError("x must be real.")
    axis = normalized_axis(axis, x.ndim)
    n = x.shape[axis] if N is None else int(N)
    if n <= 0:
        raise ValueError("N must be positive.")
    weight = np.zeros(n)
    weight[0], weight[1:(n + 1) // 2] = 1.0, 2.0
    if n % 2 == 0:
        weight[n // 2] = 1.0
    x = floating(x, "hilbert")
    weight = weight.astype(x.dtype).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    return np.fft.ifft(np.fft.fft(x, n, axis=axis) * weight, axis=axis)


# --- other rates ------------------------------------------------------------------------------------

@substitute(MODULE, "resample")
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    from scipy import fft, signal

    if domain != "time":
        if domain != "freq":
            raise ValueError(f"Parameter domain='{domain}' not in ('time', 'freq')!")
        raise refused(this_recorder(), f"{MODULE}.resample with domain='freq'", "pass the signal itself")
    x = floating(x, "resample")
    axis = normalized_axis(axis, x.ndim)
    n, num = x.shape[axis], int(num)
    spectrum, shared = np.fft.rfft(np.moveaxis(x, axis, -1)), min(num, n)
    if window is not None:
        weights = window(np.fft.fftfreq(n)) if callable(window) else lifted(window) if hasattr(window, "shape") else (
            fft.fftshift(signal.get_window(window, n)))
        if weights.shape != (n,):
            raise ValueError(f"window.shape={weights.shape} != ({n},), i.e., window length is not equal to number of "
                             "frequency bins!")
        mirrored = np.concatenate([weights[:1], weights[:0:-1]])
        spectrum = spectrum * ((weights + mirrored) / 2.0)[:n // 2 + 1].astype(x.dtype)
    scale = np.full(shared // 2 + 1, num / n, x.dtype)
    if shared % 2 == 0 and num != n:                     # the bin at the end has no partner
        scale[-1] *= 2.0 if num < n else 0.5
    result = np.fft.irfft(spectrum[..., :shared // 2 + 1] * scale, n=num)
    result = np.moveaxis(result, -1, axis)
    return result if t is None else (result, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num))


@substitute(MODULE, "upfirdn")
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    if mode != "constant" or builder_in(cval) is not None or cval:
        raise refused(this_recorder(), f"{MODULE}.upfirdn with mode={mode!r} or cval=", "extend the signal before")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    h, x = floating(h, "upfirdn"), floating(x, "upfirdn")
    if h.ndim != 1 or not h.shape[0]:
        raise ValueError("h must be 1-D with non-zero length")
    axis = normalized_axis(axis, x.ndim)
    front = np.moveaxis(x, axis, 0)
    n = front.shape[0]
    length = (n - 1) * up + h.shape[0]
    if up > 1:
        zeros = np.zeros((n, up - 1, *front.shape[1:]), x.dtype)
        front = np.concatenate([front[:, None], zeros], axis=1).reshape((n * up, *front.shape[1:]))[:(n - 1) * up + 1]
    count = -(-length // down)
    before, rows = h.shape[0] - 1, (count - 1) * down + h.shape[0]
    left, right = (np.zeros((k, *front.shape[1:]), x.dtype) for k in (before, max(rows - before - front.shape[0], 0)))
    front = np.concatenate([left, front, right])[:rows]
    return np.moveaxis(windows_dot(front, h[::-1], step=down), 0, axis)


@substitute(MODULE, "resample_poly")
def resample_poly(x: Any, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0),
                  padtype: str = "constant", cval: Any = None) -> Any:
    from scipy import signal

    if padtype != "constant" or cval is not None:
        raise refused(this_recorder(), f"{MODULE}.resample_poly with padtype={padtype!r} or cval=",
                      "subtract the background before")
    x = floating(x, "resample_poly")
    up, down = (int(k) // math.gcd(int(up), int(down)) for k in (up, down))
    if up < 1 or down < 1:
        raise ValueError("up and down must be >= 1")
    if up == down == 1:
        return x.copy()
    axis = normalized_axis(axis, x.ndim)
    n = x.shape[axis]
    wanted = -(-n * up // down)
    if isinstance(window, list) or hasattr(window, "shape"):
        h = lifted(np.asarray(window) if builder_in(window) is None else window)
        half = (h.shape[0] - 1) // 2
    else:
        most = max(up, down)
        half = 10 * most
        h = lifted(signal.firwin(2 * half + 1, 1.0 / most, window=window).astype(x.dtype))
    before = down - half % down
    first = (half + before) // down
    after = max(0, (wanted + first - 1) * down + 1 - ((n - 1) * up + h.shape[0] + before))
    h = np.concatenate([np.zeros(before, h.dtype), h * up, np.zeros(after, h.dtype)])
    y = upfirdn(h, x, up, down, axis)
    return y[(slice(None),) * axis + (slice(first, first + wanted),)]


@substitute(MODULE, "decimate")
def decimate(x: Any, q: int, n: Any = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True) -> Any:
    from scipy import signal

    x, q = floating(x, "decimate"), int(q)
    axis = normalized_axis(axis, x.ndim)
    if ftype == "iir":
        sos = signal.cheby1(8 if n is None else int(n), 0.05, 0.8 / q, output="sos").astype(x.dtype)
        y = (sosfiltfilt if zero_phase else sosfilt)(sos, x, axis=axis)
    elif ftype == "fir":
        b = signal.firwin((20 * q if n is None else int(n)) + 1, 1.0 / q, window="hamming").astype(x.dtype)
        if zero_phase:
            return resample_poly(x, 1, q, axis=axis, window=b)
        y = lfilter(b, 1.0, x, axis)
    else:
        raise refused(this_recorder(), f"{MODULE}.decimate with ftype={ftype!r}", "use 'iir' or 'fir', or sosfiltfilt")
    return y[(slice(None),) * axis + (slice(None, None, q),)]
