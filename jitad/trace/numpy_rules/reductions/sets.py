"""NumPy's functions on sets, and others made of functions that have a rule."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape.builder import Value
from jitad.trace.arrays.indexing import boxed
from jitad.trace.dispatch import as_value, builder_in, implements, lift_all, refused, stand_in
from jitad.trace.numpy_rules.shapes.shape import ravel
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import apply_ufunc, as_float, composed


def _both(*arrays: Any) -> list[Any]:
    builder = builder_in(*arrays)
    return [ravel(as_value(builder, a)) for a in arrays]


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(np.concatenate(_both(ar1, ar2)))


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a, b = _both(ar1, ar2)
    a = a if assume_unique else np.unique(a)
    return a[np.isin(a, b, invert=True)]


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    a, b = _both(ar1, ar2)
    if return_indices:
        raise refused(a, "numpy.intersect1d with return_indices=True")
    every = np.sort(np.concatenate([a, b] if assume_unique else [np.unique(a), np.unique(b)]))
    return every[:-1][every[1:] == every[:-1]]


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a, b = _both(ar1, ar2)
    every = np.concatenate([a, b] if assume_unique else [np.unique(a), np.unique(b)])
    if not every.size:
        return every
    every = np.sort(every)
    change = np.concatenate([[True], every[1:] != every[:-1], [True]])
    return every[change[1:] & change[:-1]]


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    value, = lift_all(a)
    for axis in np.array(axes, ndmin=1).tolist():
        axis = axis + value.ndim if axis < 0 else axis
        result = func(value, axis)
        if result.ndim != value.ndim:
            result = np.expand_dims(result, axis)
        if result.ndim != value.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """The order of contraction, which shapes alone decide."""
    return np.einsum_path(*(stand_in(o.shape, o.dtype) if isinstance(o, Value) else o for o in operands),
                          optimize=optimize)


@implements(np.i0)
def i0(x: Any) -> Any:
    return boxed(apply_ufunc(ufuncs.i0, as_float(lift_all(x)[0])))


@substitute(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    a = as_value(builder_in(a), a)
    a = a if dtype is None else a.astype(dtype)
    if not np.isfinite(a).all():                                    # a recorded branch
        raise ValueError("array must not contain infs or NaNs")
    return a.laid_out(order)


@composed(np.ldexp)
def _ldexp(x: Any, exponent: Any) -> Any:
    x, exponent = lift_all(x, exponent)
    if x.dtype.kind != "f" and x.dtype.itemsize < 4:
        raise refused(x, f"numpy.ldexp of {x.dtype}, which computes in another dtype", "use x.astype(float)")
    x = as_float(x)
    limit = 300 if x.dtype.itemsize == 4 else 2200               # beyond these all results are 0 or infinite
    rest = np.clip(exponent, -limit, limit)
    for share in (3, 2, 1):          # in parts: 2**exponent may overflow where x is small
        part = rest // share
        x, rest = x * cast(np.exp2(as_float(part)), x.dtype), rest - part
    return x
