"""NumPy functions that work element by element and are no ufuncs, and questions about types."""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose, truth
from jitad.trace.arrays.indexing import boxed
from jitad.trace.arrays.positions import nonzero_of
from jitad.trace.dispatch import SOMETIMES, builder_in, implements, lift_all, lift_with, refused, stand_in, stopped
from jitad.trace.ufuncs import apply_ufunc


@implements(np.where)
def where(condition: Any, *branches: Any) -> Any:
    if not branches:
        if not np.ndim(condition):
            np.nonzero(np.zeros(()))                                # raises NumPy's own error
        return nonzero_of(truth(lift_all(condition)[0]))
    return boxed(choose(condition, *branches))


@implements(np.select)
def select_(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    result = default
    dtype = np.result_type(*(result_dtype_key(c) for c in (*choicelist, default)))
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = choose(condition, choice, result) if builder_in(condition, choice, result) else np.where(
            condition, choice, result)
    return boxed(cast(result, dtype))


def result_dtype_key(x: Any) -> Any:
    """What ``np.result_type`` needs to know of `x`."""
    if isinstance(x, Value):
        return ({"f": 0.0, "i": 0}.get(x.dtype.kind, x.dtype) if x.aval.weak else x.dtype)
    return x if type(x) in (int, float) else np.asarray(x).dtype


@implements(np.clip)
def clip(a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *, min: Any = np._NoValue,
         max: Any = np._NoValue) -> Any:
    low, high = (None if v is np._NoValue else v for v in (a_min if min is np._NoValue else min,
                                                            a_max if max is np._NoValue else max))
    a = lift_with(a, low, high)
    result = a
    if low is not None:
        result = apply_ufunc(np.maximum, result, low)
    if high is not None:
        result = apply_ufunc(np.minimum, result, high)
    return result


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    if a.dtype.kind == "b":
        raise refused(a, "numpy.round of bool, which gives float16", "use x.astype(float)")
    if a.dtype.kind in "iu":
        if decimals < 0:
            scale = 10.0 ** -decimals
            return cast(np.rint(cast(a, np.float64) / scale) * scale, a.dtype)
        return a
    if decimals == 0:
        return apply_ufunc(np.rint, a)
    scale = 10.0 ** abs(decimals)
    return np.rint(a * scale) / scale if decimals > 0 else np.rint(a / scale) * scale


@implements(round)
def round_number(number: Any, ndigits: int) -> Any:
    """``round(x, n)`` of a Python float."""
    digits = operator.index(ndigits)
    if not 0 <= digits <= 7:
        raise refused(number, f"round(x, {digits}) of a Python float, for which Python looks at each decimal,",
                      f"use np.round(x, {digits}), whose last digit may differ at ties, or up to 7 decimals")
    return stopped(rounded(number, digits) if digits else np.rint(number))


def rounded(x: Any, digits: int) -> Any:
    """What Python's ``round(x, digits)`` gives of a float, for `digits` from 1 to 7: the decimal that is nearest to
    its exact value, of two the even one. NumPy rounds the product with 10**digits, which may be a tie that `x` is not:
    2.55, which lies below, becomes 2.6.

    The fraction is taken apart into 26 binary places at a time, of which products with 10**digits (up to 24 bits) are
    exact, whether or not they are rounded before something is added; so the sign of the distance from a tie is right.

    >>> float(rounded(np.float64(2.55), 1)), float(rounded(np.float64(-0.25), 1)), float(rounded(np.float64(1e300), 7))
    (2.5, -0.2, 1e+300)
    """
    scale, size = 10.0 ** digits, np.abs(x)
    whole = np.floor(size)
    rest, distance, first = size - whole, -0.5, 0.0
    for places in (26, 52):
        part = np.floor(rest * 2.0**places) * 2.0**-places
        below = np.floor(part * scale) if places == 26 else 0.0
        first, distance, rest = first + below, distance + (part * scale - below), rest - part
    distance = distance + rest * scale
    odd = first - 2.0 * np.floor(0.5 * first)
    up = np.where(distance > 0.0, 1.0, np.where(distance == 0.0, odd, 0.0))
    decimal = (whole * scale + first + up) / scale
    return np.copysign(np.where(size * scale < 2.0**53, decimal, size), x)   # finer than the decimals otherwise


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    z, = lift_all(z)
    result = np.arctan2(0.0, z)
    return np.degrees(result) if deg else result


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return x if x.dtype.kind in "iub" else np.trunc(x)


@implements(np.real)
def real(val: Any) -> Any:
    return val


@implements(np.imag)
def imag(val: Any) -> Any:
    return val.dtype.type(0) if getattr(val, "is_number", False) else np.zeros(val.shape, val.dtype)


@implements(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    return a


@implements(np.copy, np.astype)
def copy(a: Any, dtype: Any = None, order: str = "K", subok: bool = False, *, copy: bool = True,
         device: Any = None) -> Any:
    if isinstance(dtype, str) and dtype in ("K", "C", "F", "A"):    # np.copy(a, order)
        dtype = None
    return boxed(a) if dtype is None else a.astype(dtype)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x, = lift_all(x) if isinstance(x, (Value, list, tuple)) else [x]
    if x.dtype.kind != "f":
        return x
    info = np.finfo(x.dtype)
    posinf, neginf = info.max if posinf is None else posinf, info.min if neginf is None else neginf
    result = choose(np.isnan(x), nan, x)
    result = choose(x == np.inf, posinf, result)
    result = cast(choose(x == -np.inf, neginf, result), x.dtype)
    if copy or not (x.ndim or x.boxed):
        return result
    x[...] = result                                                 # in place, as NumPy does it
    return x


SOMETIMES[np.nan_to_num] = lambda x, copy=True, *limits, **options: not copy


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    a, b = lift_all(a, b)
    b = cast(b, np.result_type(b.dtype, 1.0))
    near = (np.absolute(a - b) <= atol + rtol * np.absolute(b)) & np.isfinite(b) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return isclose(a, b, rtol, atol, equal_nan).all()


@implements(np.sinc)
def sinc(x: Any) -> Any:
    y = np.pi * x
    safe = choose(y == 0, 1.0, y)
    return choose(y == 0, 1.0 - y * y / 6.0, np.sin(safe) / safe)    # with its derivatives at 0 up to the second


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return a.shape if isinstance(a, Value) else lift_all(a)[0].shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return len(shape(a))


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    return np.size(stand_in(shape(a)), axis)


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*(result_dtype_key(a) if isinstance(a, Value) else a for a in arrays_and_dtypes))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(from_.dtype if isinstance(from_, Value) else from_, to, casting)


@implements(np.min_scalar_type)
def min_scalar_type(a: Any) -> np.dtype[Any]:
    if a.ndim == 0:
        raise refused(a, "numpy.min_scalar_type of a number")
    return a.dtype


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*(stand_in((), a.dtype) if isinstance(a, Value) else a for a in arrays))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return False


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return True


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return np.zeros(x.shape, bool)[()]


@implements(np.isreal)
def isreal(x: Any) -> Any:
    return np.ones(x.shape, bool)[()]
