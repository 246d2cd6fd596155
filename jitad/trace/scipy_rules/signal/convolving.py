"""scipy.signal's convolutions and correlations, in any number of dimensions.

A direct one contracts the kernel with windows of the array, which are views; one by transforms multiplies spectra.
Which of the two it is, SciPy's own function says (`choose_conv_method`), so that infinities and NaN spread as there.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.reduce import contract
from jitad.primitives.view import view
from jitad.trace.dispatch import complex_in, lift_all, refused, stand_in
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.substitutes import substitute

MODULE = "scipy.signal"
MODES = ("full", "same", "valid")

Parts = Sequence[tuple[int, int]]        # of the full convolution: first and count, by axis


def _parts(mode: str, n: Sequence[int], m: Sequence[int]) -> Parts:
    """What of the full convolution of arrays of these shapes a mode gives."""
    if mode == "full":
        return [(0, a + b - 1) for a, b in zip(n, m, strict=True)]
    if mode == "same":
        return [((b - 1) // 2, a) for a, b in zip(n, m, strict=True)]
    return [(min(a, b) - 1, abs(a - b) + 1) for a, b in zip(n, m, strict=True)]


def _checked(in1: Any, in2: Any, mode: str, name: str) -> tuple[Any, Any]:
    if complex_in(in1, in2):
        raise refused(this_recorder(), f"{MODULE}.{name} of complex arrays", "use np.fft, or both parts apart")
    a, b = lift_all(in1, in2)
    if a.ndim != b.ndim:
        raise ValueError(f"{'volume and kernel' if name == 'convolve' else 'in1 and in2'} should have the same "
                         "dimensionality")
    if mode not in MODES:
        raise ValueError("Acceptable mode flags are 'valid', 'same', or 'full'")
    larger = [n >= m for n, m in zip(a.shape, b.shape, strict=True)]
    if mode == "valid" and not all(larger) and any(
            n > m for n, m in zip(a.shape, b.shape, strict=True)):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    dtype = np.result_type(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


def padded(a: Any, ends: Sequence[tuple[int, int]], value: Any = 0.0) -> Any:
    """`a` with more elements of one value at the ends of each axis; negative numbers cut."""
    cut = tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(a.shape, ends, strict=True))
    a = a[cut]
    more = [(max(low, 0), max(high, 0)) for low, high in ends]
    return np.pad(a, more, constant_values=value) if any(map(any, more)) else a


def windows(a: Any, kernel: Any) -> Any:
    """``y[i, ..] = sum over j, .. of kernel[j, ..] a[i + j, ..]``, where there are all of them."""
    counts = [n - m + 1 for n, m in zip(a.shape, kernel.shape, strict=True)]
    d = a.ndim
    shown = view(a, (*counts, *kernel.shape), tuple((0, ((k, 1), (d + k, 1))) for k in range(d)))
    outer, inner = ("".join(chr(ord(c) + k) for k in range(d)) for c in "an")
    return contract(shown, kernel, f"{outer}{inner},{inner}->{outer}")


def direct(a: Any, b: Any, parts: Parts) -> Any:
    """The convolution by windows of the larger array."""
    if b.size > a.size:
        a, b = b, a
    ends = [(m - 1 - first, first + count - n)
            for n, m, (first, count) in zip(a.shape, b.shape, parts, strict=True)]
    return windows(lifted(padded(a, ends)), b[(slice(None, None, -1),) * b.ndim])


def _by_transforms(a: Any, b: Any, parts: Parts, axes: Sequence[int]) -> Any:
    """The convolution by transforms along `axes`; along others, which have one length, products."""
    from scipy.fft import next_fast_len

    sizes = [next_fast_len(a.shape[k] + b.shape[k] - 1, True) for k in axes]
    whole = np.fft.irfftn(np.fft.rfftn(a, sizes, axes) * np.fft.rfftn(b, sizes, axes), sizes, axes)
    places = dict(zip(axes, parts, strict=True))
    return whole[tuple(slice(places[k][0], sum(places[k])) if k in places else slice(None) for k in range(whole.ndim))]


def _convolved(a: Any, b: Any, mode: str, method: str) -> Any:
    from scipy import signal

    if not a.ndim:
        return a * b
    if not a.size or not b.size:
        return np.zeros(0, a.dtype)
    if method == "auto":
        method = signal.choose_conv_method(*(np.array(stand_in(x.shape, x.dtype)) for x in (a, b)), mode=mode)
    parts = _parts(mode, a.shape, b.shape)
    if method == "fft":
        whole = _by_transforms(a, b, parts, range(a.ndim))
        return cast(whole if a.dtype.kind == "f" else np.rint(whole), a.dtype)
    if method != "direct":
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    return direct(a, b, parts)


@substitute(MODULE, "convolve")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    return _convolved(*_checked(in1, in2, mode, "convolve"), mode, method)


@substitute(MODULE, "correlate")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    a, b = _checked(in1, in2, mode, "correlate")
    return _convolved(a, b[(slice(None, None, -1),) * b.ndim], mode, method)


def _transformed(name: str) -> None:
    @substitute(MODULE, name)
    def convolution(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
        a, b = _checked(in1, in2, "full" if mode == "valid" else mode, name)
        if not a.ndim:
            return a * b
        if not a.size or not b.size:
            return np.zeros(0)
        axes = [axes] if np.ndim(axes) == 0 and axes is not None else axes
        axes = sorted({int(k) % a.ndim for k in (range(a.ndim) if axes is None else axes)})
        others = [k for k in range(a.ndim) if k not in axes]
        if any(a.shape[k] != b.shape[k] and 1 not in (a.shape[k], b.shape[k]) for k in others):
            raise ValueError(f"incompatible shapes for in1 and in2: {a.shape} and {b.shape}")
        axes = [k for k in axes if a.shape[k] != 1 and b.shape[k] != 1]       # the others are products
        lengths = [[x.shape[k] for k in axes] for x in (a, b)]
        if mode == "valid" and not (all(n >= m for n, m in zip(*lengths, strict=True))
                                    or all(n <= m for n, m in zip(*lengths, strict=True))):
            raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
        dtype = a.dtype if a.dtype.kind == "f" else np.dtype(float)
        a, b = cast(a, dtype), cast(b, dtype)
        return _by_transforms(a, b, _parts(mode, *lengths), axes) if axes else a * b


for _name in ("fftconvolve", "oaconvolve"):
    _transformed(_name)


# --- in two dimensions, with what is beyond the edges -------------------------------------------------

def _beyond(a: Any, ends: Sequence[tuple[int, int]], boundary: str, value: Any) -> Any:
    if boundary == "fill":
        return padded(a, ends, value)
    for axis, (low, high) in enumerate(ends):
        n = a.shape[axis]
        places = np.arange(-low, n + high)
        if boundary == "wrap":
            places = places % n
        else:
            places = np.minimum(places % (2 * n), 2 * n - 1 - places % (2 * n))
        a = np.take(a, places, axis=axis)
    return a


def _plane(name: str, turned: bool) -> None:
    @substitute(MODULE, name)
    def convolution(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
        a, b = lift_all(in1, in2)
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(f"{name} inputs must both be 2-D arrays")
        a, b = _checked(a, b, mode, name)
        if boundary not in ("fill", "wrap", "symm", "pad", "circular", "symmetric"):
            raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or "
                             "'symm').")
        boundary = {"pad": "fill", "circular": "wrap", "symmetric": "symm"}.get(boundary, boundary)
        swap = mode == "valid" and any(n < m for n, m in zip(a.shape, b.shape, strict=True))
        if swap:
            a, b = b, a
        parts = _parts(mode, a.shape, b.shape)
        if turned and mode == "same":                    # its middle is that of the kernel, rounded the other way
            parts = [(m // 2, n) for n, m in zip(a.shape, b.shape, strict=True)]
        ends = [(m - 1 - first, first + count - n)
                for n, m, (first, count) in zip(a.shape, b.shape, parts, strict=True)]
        found = windows(lifted(_beyond(a, ends, boundary, fillvalue)), b if turned else b[::-1, ::-1])
        return found[::-1, ::-1] if swap and turned else found


_plane("convolve2d", False)
_plane("correlate2d", True)
