"""NumPy's functions of complex values: structural and linear ones part by part, products by their expansion, and those
with a meaning of their own for complex numbers. What is not here is refused by name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import full
from jitad.trace.complexes.parts import PARTWISE, partwise
from jitad.trace.complexes.products import MULTILINEAR, expanded
from jitad.trace.complexes.ufuncs import absolute, angle
from jitad.trace.dispatch import COMPLEX, FUNCTIONS, builder_in, call, detached, name_of, refused, shares
from jitad.trace.numpy_rules.reductions.reduce import axes_of, root
from jitad.trace.values.pairs import ADVICE, Complex, as_complex, pair, parts_of

RULES: dict[Any, Callable[..., Any]] = {}


def apply(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)``, something in which is complex."""
    builder = builder_in(args, kwargs)
    if kwargs.get("out") is not None:
        raise refused(builder, f"{name_of(function)} with out=", "use the returned array instead")
    if function in RULES:
        result = RULES[function](*args, **kwargs)
    elif function in PARTWISE:
        result = partwise(function, args, kwargs)
    elif function in MULTILINEAR:
        operands, rest = MULTILINEAR[function](*args, **kwargs)
        result = expanded(operands, rest)
    else:
        raise refused(builder, f"{name_of(function)} of complex values", ADVICE)
    return result if shares(function, args, kwargs) else detached(result, (*args, *kwargs.values()))


def rule(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(functions, impl))
        return impl
    return enter


# --- with a meaning of their own -----------------------------------------------------------------------

@rule(np.real)
def real(val: Any) -> Any:
    return parts_of(builder_in(val), val)[0]


@rule(np.imag)
def imag(val: Any) -> Any:
    return parts_of(builder_in(val), val)[1]


@rule(np.angle)
def angle_(z: Any, deg: bool = False) -> Any:
    result = angle(z)
    return result * (180.0 / np.pi) if deg else result


@rule(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return True


@rule(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return False


@rule(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return imag(x) != 0


@rule(np.isreal)
def isreal(x: Any) -> Any:
    return imag(x) == 0


@rule(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return real(a).shape


@rule(np.ndim)
def ndim(a: Any) -> int:
    return len(shape(a))


@rule(np.size)
def size(a: Any, axis: Any = None) -> int:
    return np.size(np.broadcast_to(0, shape(a)), axis)


@rule(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(dtype, copy=copy)


@rule(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
              device: Any = None) -> Any:
    dtype = np.dtype((a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype) if dtype is None else dtype)
    shape = np.shape(a) if shape is None else shape
    if builder_in(fill_value) is None:
        return np.full(shape, fill_value, dtype)
    if dtype.kind != "c":
        raise refused(fill_value, "a complex fill value in a real array", "take its .real")
    return as_complex(np.broadcast_to(fill_value, shape), dtype)


@rule(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
         where: Any = True) -> Any:
    """A balanced tree of products."""
    if initial not in (None, np._NoValue) or dtype is not None:
        raise refused(a, "numpy.prod of complex values with dtype= or initial=", "leave the option out")
    a = a if where is True or where is np._NoValue else np.where(where, a, 1.0)
    axes = axes_of(axis, a.ndim)
    rest = tuple(d for d in range(a.ndim) if d not in axes)
    x = np.transpose(a, (*rest, *axes)).reshape((*(a.shape[d] for d in rest), -1) if a.size or not axes else (
        *(a.shape[d] for d in rest), int(np.prod([a.shape[d] for d in axes]))))
    x = _tree(x)
    return np.expand_dims(x, axes) if keepdims and keepdims is not np._NoValue else x


def _tree(x: Any) -> Any:
    spare = None
    if not x.shape[-1]:
        return as_complex(full(x.re, 1.0, x.shape[:-1], x.re.dtype), x.dtype)
    while (n := x.shape[-1]) > 1:
        if n % 2:
            spare = x[..., n - 1] if spare is None else spare * x[..., n - 1]
        x = x[..., :n // 2] * x[..., n // 2:2 * (n // 2)]
    return x[..., 0] if spare is None else x[..., 0] * spare


@rule(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """By doubling."""
    a, axis = (a.ravel(), 0) if axis is None else (a, np.lib.array_utils.normalize_axis_index(axis, a.ndim))
    lead, step = (slice(None),) * axis, 1
    while step < a.shape[axis]:
        later = a[(*lead, slice(step, None))] * a[(*lead, slice(None, -step))]
        a, step = np.concatenate([a[(*lead, slice(None, step))], later], axis), 2 * step
    return a


@rule(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = np._NoValue, correction: Any = np._NoValue) -> Any:
    """The mean square of the distance from the mean."""
    options = {"axis": axis, "ddof": ddof, "keepdims": keepdims, "where": where, "correction": correction}
    if mean is not np._NoValue or dtype is not None:
        raise refused(a, "numpy.var of complex values with mean= or dtype=", "leave the option out")
    return call(np.var, a.re, **options) + call(np.var, a.im, **options)


@rule(np.std)
def std(a: Any, *args: Any, **kwargs: Any) -> Any:
    return root(var(a, *args, **kwargs))


def _truth(function: Any) -> None:
    @rule(function)
    def ask(a: Any, *args: Any, **kwargs: Any) -> Any:
        return call(function, np.not_equal(a, 0), *args, **kwargs)


for _asked in (np.any, np.all, np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere):
    _truth(_asked)


@rule(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    builder = builder_in(a, b)
    a, b = (pair(*parts_of(builder, x)) for x in (a, b))
    near = (np.absolute(a - b) <= atol + rtol * np.absolute(b)) & np.isfinite(b) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@rule(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return isclose(a, b, rtol, atol, equal_nan).all()


@rule(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if equal_nan:
        raise refused(builder_in(a1, a2), "numpy.array_equal of complex values with equal_nan=True")
    if np.shape(a1) != np.shape(a2):
        return False
    return COMPLEX.ufunc(np.equal, a1, a2).all()


# --- in NumPy's order: by real parts first, then by imaginary ones ------------------------------------------

@rule(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a, axis = (a.ravel(), 0) if axis is None else (a, axis)
    return call(np.lexsort, (a.im, a.re), axis=axis)


@rule(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a, axis = (a.ravel(), 0) if axis is None else (a, axis)
    places = argsort(a, axis)
    return pair(*(call(np.take_along_axis, part, places, axis) for part in (a.re, a.im)))


@rule(np.sort_complex)
def sort_complex(a: Any) -> Any:
    return sort(a)


@rule(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, **options: Any) -> Any:
    return pair(call(np.nan_to_num, x.re, **options), call(np.nan_to_num, x.im, **options))


@rule(np.sinc)
def sinc(x: Any) -> Any:
    y = np.pi * x
    nothing = np.equal(y, 0)
    safe = np.where(nothing, 1.0, y)
    return np.where(nothing, 1.0 - y * y / 6.0, np.sin(safe) / safe)


@rule(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    keys = [(1j if a.weak else a.dtype) if isinstance(a, Complex) else a for a in arrays_and_dtypes]
    return call(np.result_type, *keys) if builder_in(keys) is not None else np.result_type(*keys)


def magnitude(x: Any) -> Any:
    """The moduli."""
    return absolute(parts_of(builder_in(x), x))


RULES.update((like, FUNCTIONS[like]) for like in (np.zeros_like, np.ones_like, np.empty_like))
_TRANSFORMS = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()
RULES.update((getattr(np.fft, name), FUNCTIONS[getattr(np.fft, name)]) for name in _TRANSFORMS)

__all__ = ["RULES", "apply", "magnitude"]
