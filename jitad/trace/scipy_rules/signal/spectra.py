"""scipy.signal's spectra: periodograms, cross spectra, short-time transforms.

The segments of a signal are views of it; windows are constants, or traced arrays. The square of the size of a transform
is taken by its parts, so that its derivative at zero is zero.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.primitives.view import view
from jitad.trace.dispatch import builder_in, complex_in, refused
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.signal.lines import extended, normalized_axis
from jitad.trace.scipy_rules.signal.smoothing import detrend as without_trend
from jitad.trace.scipy_rules.signal.smoothing import floating
from jitad.trace.substitutes import substitute

MODULE = "scipy.signal"


@dataclass(frozen=True)
class _Segments:
    """How a signal is cut: the window, the steps from one segment to the next, the length of the transforms."""

    window: Any
    step: int
    nfft: int
    detrend: Any
    name: str

    @property
    def length(self) -> int:
        return int(self.window.shape[0])

    def transforms(self, x: Any, onesided: bool) -> Any:
        """Of the lines of `x` along the last axis: (..., segments, frequencies)."""
        count = (x.shape[-1] - self.length) // self.step + 1
        last = x.ndim - 1
        x = view(lifted(x), (*x.shape[:-1], count, self.length), (
            *((0, ((d, 1),)) for d in range(last)), (0, ((last, self.step), (last + 1, 1)))))
        x = this_recorder().value(x.number)
        if callable(self.detrend):
            raise refused(this_recorder(), f"{MODULE}.{self.name} with a function as detrend=",
                          "use 'constant', 'linear' or False")
        if self.detrend is not False and self.detrend is not None:
            x = without_trend(x, -1, self.detrend)
        x = x * self.window
        return np.fft.rfft(x, self.nfft) if onesided else np.fft.fft(x, self.nfft)

    def frequencies(self, fs: Any, onesided: bool) -> Any:
        n = self.nfft
        numbers = np.arange(n // 2 + 1.0) if onesided else np.fft.fftfreq(n, 1.0 / n)
        return numbers / (n * (1.0 / fs))

    def scale(self, scaling: str, fs: Any) -> Any:
        if scaling == "density":
            return 1.0 / (fs * np.sum(self.window * self.window))
        if scaling == "spectrum":
            return 1.0 / np.square(np.sum(self.window))
        raise ValueError(f"Unknown scaling: {scaling!r}")


def _segments(name: str, n: int, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
              dtype: Any) -> _Segments:
    from scipy import signal

    if isinstance(window, (str, tuple, float, int)) and builder_in(window) is None:
        nperseg = min(256 if nperseg is None else int(nperseg), n)
        if nperseg < 1:
            raise ValueError("nperseg must be a positive integer")
        window = signal.get_window(window, nperseg)
    else:
        window = lifted(window)
        if window.ndim != 1:
            raise ValueError("window must be 1-D")
        if n < window.shape[0]:
            raise ValueError("window is longer than input signal")
        if nperseg is not None and int(nperseg) != window.shape[0]:
            raise ValueError("value specified for nperseg is different from length of window")
        nperseg = window.shape[0]
    nfft = nperseg if nfft is None else int(nfft)
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return _Segments(window.astype(dtype), nperseg - noverlap, nfft, detrend, name)


def _lines(x: Any, axis: Any, name: str) -> Any:
    """The signal in floats, its axis last."""
    if complex_in(x):
        raise refused(this_recorder(), f"{MODULE}.{name} of complex values", "use np.fft")
    x = floating(x, name)
    return np.moveaxis(x, normalized_axis(axis, x.ndim), -1)


def _filled(x: Any, n: int) -> Any:
    """Zeros after the end, up to `n`."""
    return x if x.shape[-1] == n else np.concatenate(
        [x, np.zeros((*x.shape[:-1], n - x.shape[-1]), x.dtype)], axis=-1)


def _densities(x: Any, y: Any, fs: Any, onesided: bool, scaling: str, cut: _Segments) -> Any:
    """``conj(X) Y`` of all segments, scaled: (..., segments, frequencies)."""
    a = cut.transforms(x, onesided)
    if y is x:
        product = np.square(a.real) + np.square(a.imag)
    else:
        b = cut.transforms(y, onesided)
        product = np.conjugate(a) * b
    scale = cut.scale(scaling, fs)
    if onesided:                                         # those with a partner among the others count twice
        twice = np.full(cut.nfft // 2 + 1, 2.0, x.dtype)
        twice[0] = 1.0
        if cut.nfft % 2 == 0:
            twice[-1] = 1.0
        scale = scale * twice
    return product * scale


def _averaged(p: Any, average: str) -> Any:
    """Over the segments, which are the last axis but one."""
    count = p.shape[-2]
    if average == "mean":
        return np.mean(p, axis=-2)
    if average != "median":
        raise ValueError(f"Parameter average='{average}' must be 'median' or 'mean'!")
    if count == 1:
        return p[..., 0, :]
    odd = np.arange(2.0, count, 2.0)
    bias = 1.0 + np.sum(1.0 / (odd + 1.0) - 1.0 / odd)
    if complex_in(p):
        return (np.median(p.real, axis=-2) + 1j * np.median(p.imag, axis=-2)) / bias
    return np.median(p, axis=-2) / bias


def _cross(name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
           return_onesided: Any = True, scaling: str = "density", axis: int = -1, average: str = "mean") -> Any:
    """Frequencies, and the mean density at each; `name` is that of the function that the user calls."""
    same = y is x
    x = _lines(x, axis, name)
    y = x if same else _lines(y, axis, name)
    n = max(x.shape[-1], y.shape[-1])
    x, y = (x, x) if same else (_filled(x, n), _filled(y, n))
    cut = _segments(name, n, window, nperseg, noverlap, nfft, detrend, x.dtype)
    found = _averaged(_densities(x, y, fs, bool(return_onesided), scaling, cut), average)
    return cut.frequencies(fs, bool(return_onesided)), np.moveaxis(found, -1, axis)


@substitute(MODULE, "csd")
def csd(x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
        nfft: Any = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> Any:
    return _cross("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@substitute(MODULE, "welch")
def welch(x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
          nfft: Any = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
          axis: int = -1, average: str = "mean") -> Any:
    return _cross("welch", x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@substitute(MODULE, "periodogram")
def periodogram(x: Any, fs: Any = 1.0, window: Any = "boxcar", nfft: Any = None, detrend: Any = "constant",
                return_onesided: bool = True, scaling: str = "density", axis: int = -1) -> Any:
    x = floating(x, "periodogram")
    axis = normalized_axis(axis, x.ndim)
    n = x.shape[axis]
    if nfft is not None and int(nfft) < n:
        n, nfft = int(nfft), None
        x = x[(slice(None),) * axis + (slice(0, n),)]
    window = "boxcar" if window is None else window
    if hasattr(window, "size") and window.size != n:
        raise ValueError("the size of the window must be the same size of the input on the specified axis")
    return _cross("periodogram", x, x, fs, window, n, 0, nfft, detrend, return_onesided, scaling, axis)


@substitute(MODULE, "coherence")
def coherence(x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
              nfft: Any = None, detrend: Any = "constant", axis: int = -1) -> Any:
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    frequencies, p = _cross("coherence", x, y, *options, axis=axis)
    own = [_cross("coherence", v, v, *options, axis=axis)[1] for v in (x, y)]
    size = np.square(p.real) + np.square(p.imag) if complex_in(p) else np.square(p)
    return frequencies, size / own[0] / own[1]


def _short_time(name: str, x: Any, fs: Any, cut: tuple[Any, ...], boundary: Any, padded: bool,
                axis: int) -> tuple[Any, Any, _Segments]:
    """The lines that are cut, the times of the segments, and how it is cut."""
    x = _lines(x, axis, name)
    window, nperseg, noverlap, nfft, detrend = cut
    found = _segments(name, x.shape[-1], window, nperseg, noverlap, nfft, detrend, x.dtype)
    if boundary is not None:
        if boundary not in ("even", "odd", "constant", "zeros"):
            raise ValueError(f"Unknown boundary option '{boundary}', must be one of: ['even', 'odd', 'constant', "
                             "'zeros', None]")
        x = np.moveaxis(extended(np.moveaxis(x, -1, 0), found.length // 2, boundary), 0, -1)
    if padded:
        x = _filled(x, x.shape[-1] + (-(x.shape[-1] - found.length) % found.step) % found.length)
    count = (x.shape[-1] - found.length) // found.step + 1
    times = (found.length / 2.0 + found.step * np.arange(count)) / fs
    return x, times if boundary is None else times - found.length / 2.0 / fs, found


def _with_frequencies_at(result: Any, axis: int) -> Any:
    """The frequencies where the signal had its axis, the segments last."""
    result = np.swapaxes(result, -1, -2)
    return np.moveaxis(result, -2, axis - 1 if axis < 0 else axis)


@substitute(MODULE, "stft")
def stft(x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = 256, noverlap: Any = None,
         nfft: Any = None, detrend: Any = False, return_onesided: bool = True, boundary: Any = "zeros",
         padded: bool = True, axis: int = -1, scaling: str = "spectrum") -> Any:
    if scaling not in ("psd", "spectrum"):
        raise ValueError(f"Parameter scaling='{scaling}' not in ['spectrum', 'psd']!")
    lines, times, cut = _short_time("stft", x, fs, (window, nperseg, noverlap, nfft, detrend), boundary, padded, axis)
    scale = np.sqrt(cut.scale("density" if scaling == "psd" else scaling, fs))
    onesided = bool(return_onesided)
    found = cut.transforms(lines, onesided) * scale
    return cut.frequencies(fs, onesided), times, _with_frequencies_at(found, axis)


@substitute(MODULE, "spectrogram")
def spectrogram(x: Any, fs: Any = 1.0, window: Any = ("tukey", 0.25), nperseg: Any = None,
                noverlap: Any = None, nfft: Any = None, detrend: Any = "constant", return_onesided: bool = True,
                scaling: str = "density", axis: int = -1, mode: str = "psd") -> Any:
    if mode not in ("psd", "complex", "magnitude"):
        raise refused(this_recorder(), f"{MODULE}.spectrogram with mode={mode!r}", "use 'psd', 'complex' or "
                                                                                   "'magnitude'")
    x = floating(x, "spectrogram")
    n = x.shape[normalized_axis(axis, x.ndim)]
    length = window.shape[0] if hasattr(window, "shape") else min(256 if nperseg is None else int(nperseg), n)
    noverlap = length // 8 if noverlap is None else noverlap
    lines, times, cut = _short_time("spectrogram", x, fs, (window, nperseg, noverlap, nfft, detrend), None, False, axis)
    onesided = bool(return_onesided)
    if mode == "psd":
        found = _densities(lines, lines, fs, onesided, scaling, cut)
    else:
        found = cut.transforms(lines, onesided) * np.sqrt(cut.scale(scaling, fs))
        found = np.abs(found) if mode == "magnitude" else found
    return cut.frequencies(fs, onesided), times, _with_frequencies_at(found, axis)
