"""numpy.fft and the functions of scipy.fft that mean the same, in the transforms of `jitad.primitives.fft`."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.view import slice_dims
from jitad.tape.types import TABLE
from jitad.trace.dispatch import builder_in, call, implements, lift_all, refused
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import as_float
from jitad.trace.values.pairs import Complex, as_complex, pack, pair, split_packed

INVERSE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


# --- the pieces ----------------------------------------------------------------------------------

def _operand(a: Any) -> Any:
    """`a` as a complex value or a real one in a floating dtype."""
    a, = lift_all(a)
    return a if isinstance(a, Complex) else as_float(a)


def _scale(n: int, norm: Any, inverse: bool) -> float:
    if norm not in INVERSE:
        np.fft.fft(np.zeros(1), norm=norm)              # raises
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if inverse == (norm != "forward") else 1.0


def _length(n: Any, default: int) -> int:
    n = default if n is None else int(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return n


def _lines(a: Any, n: int, axis: int) -> Any:
    """`a` with `axis` last, and of length n there: cut, or filled with zeros."""
    a = np.moveaxis(a, axis, -1)
    if a.shape[-1] > n:
        return a[..., :n]
    if a.shape[-1] < n:
        a = np.concatenate([a, np.zeros((*a.shape[:-1], n - a.shape[-1]), a.dtype)], axis=-1)
    return a


def _parts(z: Any, function: Callable[[Any], Any]) -> Complex:
    return pair(function(z.re), function(z.im))


def _scaled(z: Any, scale: float) -> Any:
    if scale == 1.0:
        return z
    return _parts(z, lambda x: x * scale) if isinstance(z, Complex) else z * scale


def _back(result: Any, axis: int) -> Any:
    return np.moveaxis(result, -1, axis)


def _full(a: Any, n: Any, axis: int, norm: Any, inverse: bool) -> Any:
    """The complex transform along an axis."""
    a = _operand(a)
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    n = _length(n, a.shape[axis])
    a, scale = _lines(a, n, axis), _scale(n, norm, inverse)
    if isinstance(a, Complex):
        found = split_packed(TABLE["idft" if inverse else "dft"](pack(a)))
    else:
        found = _mirrored(split_packed(TABLE["rdft"](a)), n)
        found = Complex(found.re, -found.im) if inverse else found
    return _back(_scaled(found, scale), axis)


def _mirrored(half: Complex, n: int) -> Complex:
    """All coefficients of real data from the first half."""
    count = n - half.shape[-1]
    if not count:
        return half
    lead = (slice(None),) * (half.ndim - 1)

    def flipped(x: Any) -> Any:
        return slice_dims(x, (*lead, slice(count, 0, -1)))
    return Complex(np.concatenate([half.re, flipped(half.re)], axis=-1),
                   np.concatenate([half.im, -flipped(half.im)], axis=-1))


def _real(a: Any, n: Any, axis: int, norm: Any) -> Any:
    a = _operand(a)
    if isinstance(a, Complex):
        np.fft.rfft(np.zeros(2, complex))                           # raises NumPy's own message
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    n = _length(n, a.shape[axis])
    found = split_packed(TABLE["rdft"](_lines(a, n, axis)))
    return _back(_scaled(found, _scale(n, norm, False)), axis)


def _real_inverse(a: Any, n: Any, axis: int, norm: Any) -> Any:
    a = _operand(a)
    a = a if isinstance(a, Complex) else as_complex(a, np.result_type(a.dtype, np.complex64))
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    n = _length(n, 2 * (a.shape[axis] - 1))
    a = _lines(a, n // 2 + 1, axis)
    weight = np.full(n // 2 + 1, 2.0 * _scale(n, norm, True), a.re.dtype)
    weight[0] /= 2.0
    if n % 2 == 0:
        weight[-1] /= 2.0
    return _back(TABLE["irdft"](pack(_parts(a, lambda x: x * weight)), n=n), axis)


def _shape_and_axes(a: Any, s: Any, axes: Any, inverse_of_real: bool = False) -> tuple[list[int], list[int]]:
    """As NumPy's ``_cook_nd_args``."""
    given = s is not None
    if given:
        s = [int(n) for n in s]
    elif axes is None:
        s = list(a.shape)
    else:
        s = [a.shape[int(ax)] for ax in axes]
    axes = list(range(-len(s), 0)) if axes is None else [int(ax) for ax in axes]
    if len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if inverse_of_real and not given:
        s[-1] = (a.shape[axes[-1]] - 1) * 2
    return [a.shape[ax] if n == -1 else n for n, ax in zip(s, axes, strict=True)], axes


def _full_nd(a: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    a = _operand(a)
    s, axes = _shape_and_axes(a, s, axes)
    for n, axis in reversed(list(zip(s, axes, strict=True))):
        a = _full(a, n, axis, norm, inverse)
    return a


def _real_nd(a: Any, s: Any, axes: Any, norm: Any) -> Any:
    a = _operand(a)
    s, axes = _shape_and_axes(a, s, axes)
    a = _real(a, s[-1], axes[-1], norm)
    for n, axis in reversed(list(zip(s[:-1], axes[:-1], strict=True))):
        a = _full(a, n, axis, norm, False)
    return a


def _real_inverse_nd(a: Any, s: Any, axes: Any, norm: Any) -> Any:
    a = _operand(a)
    s, axes = _shape_and_axes(a, s, axes, inverse_of_real=True)
    for n, axis in zip(s[:-1], axes[:-1], strict=True):
        a = _full(a, n, axis, norm, True)
    return _real_inverse(a, s[-1], axes[-1], norm)


def _hermitian(a: Any, n: Any, axis: int, norm: Any) -> Any:
    a = _operand(a)
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    n = 2 * (a.shape[axis] - 1) if n is None else n
    return _real_inverse(np.conjugate(a), n, axis, INVERSE.get(norm, norm))


def _hermitian_inverse(a: Any, n: Any, axis: int, norm: Any) -> Any:
    return np.conjugate(_real(a, n, axis, INVERSE.get(norm, norm)))


# --- the functions by name -------------------------------------------------------------------------

_LINES: dict[str, Callable[..., Any]] = {
    "fft": lambda a, n, axis, norm: _full(a, n, axis, norm, False),
    "ifft": lambda a, n, axis, norm: _full(a, n, axis, norm, True),
    "rfft": _real, "irfft": _real_inverse, "hfft": _hermitian, "ihfft": _hermitian_inverse}
_SEVERAL: dict[str, Callable[..., Any]] = {
    "fft": lambda a, s, axes, norm: _full_nd(a, s, axes, norm, False),
    "ifft": lambda a, s, axes, norm: _full_nd(a, s, axes, norm, True),
    "rfft": _real_nd, "irfft": _real_inverse_nd}


def _enter_lines(name: str, function: Callable[..., Any]) -> None:
    @implements(getattr(np.fft, name))
    def transform(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return function(a, n, axis, norm)

    @substitute("scipy.fft", name)
    def of_scipy(x: Any, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
                 workers: Any = None, *, plan: Any = None) -> Any:
        _no_plan(x, name, plan)
        return function(x, n, axis, norm)


def _enter_several(name: str, function: Callable[..., Any], axes_default: Any) -> None:
    @implements(getattr(np.fft, name))
    def transform(a: Any, s: Any = None, axes: Any = axes_default, norm: Any = None, out: Any = None) -> Any:
        return function(a, s, axes, norm)

    @substitute("scipy.fft", name)
    def of_scipy(x: Any, s: Any = None, axes: Any = axes_default, norm: Any = None, overwrite_x: bool = False,
                 workers: Any = None, *, plan: Any = None) -> Any:
        _no_plan(x, name, plan)
        return function(x, s, axes, norm)


def _no_plan(x: Any, name: str, plan: Any) -> None:
    if plan is not None:
        raise refused(builder_in(x), f"scipy.fft.{name} with plan=", "leave the option out")


for _name, _rule in _LINES.items():
    _enter_lines(_name, _rule)
for _name, _rule in _SEVERAL.items():
    _enter_several(f"{_name}2", _rule, (-2, -1))
    _enter_several(f"{_name}n", _rule, None)


def _shifted(name: str, sign: int) -> Callable[..., Any]:
    """The zero frequency moved to the middle, or back."""
    def shift(x: Any, axes: Any = None) -> Any:
        x, = lift_all(x)
        axes = range(x.ndim) if axes is None else [axes] if isinstance(axes, (int, np.integer)) else axes
        axes = [int(ax) for ax in axes]
        return np.roll(x, tuple(x.shape[ax] // 2 if sign > 0 else -(x.shape[ax] // 2) for ax in axes), tuple(axes))
    shift.__name__ = name
    implements(getattr(np.fft, name))(shift)
    substitute("scipy.fft", name)(shift)
    return shift


fftshift, ifftshift = _shifted("fftshift", 1), _shifted("ifftshift", -1)


# --- cosine and sine transforms ----------------------------------------------------------------------

def _cosine(x: Any) -> Any:
    """``y[k] = 2 sum_j x[j] cos(pi k (2j + 1) / 2n)`` along the last dimension, by one real transform of the even
    places followed by the odd ones backwards (J. Makhoul, IEEE Trans. ASSP 28 (1980) 27)."""
    n = x.shape[-1]
    ordered = np.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    z = _mirrored(split_packed(TABLE["rdft"](ordered)), n)
    angle = np.pi * np.arange(n) / (2 * n)
    return z.re * (2.0 * np.cos(angle)).astype(x.dtype) + z.im * (2.0 * np.sin(angle)).astype(x.dtype)


def _cosine_adjoint(y: Any) -> Any:
    """``x[j] = y[0] + 2 sum_(k > 0) y[k] cos(pi k (2j + 1) / 2n)``."""
    n = y.shape[-1]
    angle = np.pi * np.arange(n) / (2 * n)
    weight = np.where(np.arange(n) == 0, 1.0, 2.0)
    re, im = (y * (weight * part).astype(y.dtype) for part in (np.cos(angle), np.sin(angle)))
    half = n // 2 + 1
    lead = (slice(None),) * (y.ndim - 1)
    folded = [re[..., :half], im[..., :half]]
    count = n - half
    if count:                                                       # cos and sin of the mirrored frequencies
        zeros = np.zeros((*y.shape[:-1], 1), y.dtype)
        tail = (*lead, slice(n - 1, half - 1, -1))
        ends = [zeros] * (half - 1 - count)
        folded = [folded[0] + np.concatenate([zeros, slice_dims(re, tail), *ends], axis=-1),
                  folded[1] - np.concatenate([zeros, slice_dims(im, tail), *ends], axis=-1)]
    ordered = TABLE["irdft"](pack(pair(*folded)), n=n)
    evens = -(-n // 2)
    back = np.empty(n, np.intp)
    back[::2], back[1::2] = np.arange(evens), np.arange(n - 1, evens - 1, -1)
    return np.take(ordered, back, axis=-1)


def _real_kind(x: Any, kind: int, norm: Any, sine: bool) -> Any:
    """DCT and DST of types 2 and 3 along the last dimension, with SciPy's normalisations."""
    n = x.shape[-1]
    signs = np.where(np.arange(n) % 2, -1.0, 1.0).astype(x.dtype)
    edge = n - 1 if sine else 0
    ends = np.ones(n, x.dtype)
    if norm == "ortho":
        ends[edge] = math.sqrt(0.5 if kind == 2 else 2.0)
    scale = {"ortho": math.sqrt(1.0 / (2 * n)), "forward": 1.0 / (2 * n)}.get(norm, 1.0)
    if kind == 2:
        y = _cosine(x * signs)[..., ::-1] if sine else _cosine(x)
        return y * (ends * scale).astype(x.dtype)
    x = x * (ends * scale).astype(x.dtype)
    return _cosine_adjoint(x[..., ::-1]) * signs if sine else _cosine_adjoint(x)


def _ends(x: Any, kind: int, norm: Any, sine: bool) -> Any:
    """DCT and DST of types 1 and 4, their own inverses: as transforms of the line with its mirror image, and, for type
    4, turned by a quarter of a step."""
    n = x.shape[-1]
    if kind == 1:
        length = 2 * (n + 1 if sine else n - 1)
        if length < 2:
            raise RuntimeError("zero-length FFT requested")
        root = math.sqrt(2.0) if norm == "ortho" and not sine else 1.0
        ends = np.array([root, *[1.0] * (n - 2), root][:n]).astype(x.dtype)
        x = x * ends
        zero = np.zeros((*x.shape[:-1], 1), x.dtype)
        whole = np.concatenate([zero, x, zero, -x[..., ::-1]] if sine else [x, x[..., -2:0:-1]], axis=-1)
        z = split_packed(TABLE["rdft"](whole))
        y = -z.im[..., 1:n + 1] if sine else z.re * (1.0 / ends).astype(x.dtype)
    else:
        length, places = 2 * n, np.arange(n)
        turned = x * np.exp(-0.5j * np.pi * places / n)
        z = call(np.fft.fft, turned, length)[..., :n] * np.exp(-0.25j * np.pi * (2 * places + 1) / n)
        y = -2.0 * z.imag if sine else 2.0 * z.real
    scale = {"ortho": math.sqrt(1.0 / length), "forward": 1.0 / length}.get(norm, 1.0)
    return cast(y * scale, x.dtype)


def _enter_real(name: str) -> None:
    inverse, sine = name.startswith("i"), name.endswith("st")

    def several(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False,
                workers: Any = None, *, orthogonalize: Any = None) -> Any:
        x = _operand(x)
        if s is not None:
            raise refused(x, f"scipy.fft.{name}n with s=", "cut or fill the array first")
        for axis in range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes:
            x = transform(x, type, None, axis, norm, orthogonalize=orthogonalize)
        return x

    substitute("scipy.fft", f"{name}n")(several)

    @substitute("scipy.fft", name)
    def transform(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
                  workers: Any = None, orthogonalize: Any = None) -> Any:
        x = _operand(x)
        if isinstance(x, Complex) or type not in (1, 2, 3, 4) or orthogonalize is not None:
            raise refused(x, f"scipy.fft.{name} of complex values, or with orthogonalize=",
                          "transform the real and the imaginary part, and leave the option out")
        if norm not in INVERSE:
            raise ValueError(f'Invalid norm value {norm!r}, should be "backward", "ortho" or "forward"')
        axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
        x = _lines(x, _length(n, x.shape[axis]), axis)
        norm = INVERSE[norm] if inverse else norm
        if type in (1, 4):
            return _back(_ends(x, type, norm, sine), axis)
        return _back(_real_kind(x, 5 - type if inverse else type, norm, sine), axis)


for _name in ("dct", "idct", "dst", "idst"):
    _enter_real(_name)

__all__ = ["fftshift", "ifftshift"]
