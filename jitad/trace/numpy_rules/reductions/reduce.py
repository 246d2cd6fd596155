"""NumPy functions that reduce, and those that run along an axis."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from jitad.primitives import index
from jitad.primitives.core import cast, select
from jitad.primitives.order import cumprod as _cumprod
from jitad.primitives.reduce import cumsum as _cumsum
from jitad.primitives.reduce import reduce_max, reduce_min, reduce_sum
from jitad.primitives.view import broadcast_to, expand_dims
from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.arrays.choice import truth
from jitad.trace.arrays.indexing import getitem
from jitad.trace.dispatch import SOMETIMES, as_value, builder_in, implements, lift_all, lift_with, refused
from jitad.trace.numpy_rules.shapes.shape import flatten_end, move_to_end, ravel
from jitad.trace.ufuncs import apply_ufunc, as_float

Absent = np._NoValue


def axes_of(axis: Any, ndim: int, strict: bool = False) -> tuple[int, ...]:
    """`axis` as NumPy's reductions take it, as a sorted tuple; those that are ufuncs take 0 and -1 of a number too."""
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and axis in (0, -1, ()) and not strict:
        return ()
    axes = np.lib.array_utils.normalize_axis_tuple(axis, ndim, allow_duplicate=True)
    if len(set(axes)) < len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(axes))


def keep(result: Any, axes: tuple[int, ...], keepdims: bool, ndim: int) -> Any:
    return expand_dims(result, axes) if keepdims and keepdims is not Absent and ndim else result


@lru_cache(maxsize=256)
def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.add.reduce(np.zeros(1, dtype)).dtype


def total_dtype(a: Any, dtype: Any, name: str) -> np.dtype[Any]:
    """The dtype in which NumPy adds up and multiplies."""
    if dtype is not None:
        return np.dtype(dtype)
    found = sum_dtype(a.dtype)
    if found == np.uint64:
        raise refused(a, f"numpy.{name} of {a.dtype}, which gives uint64", "say dtype=np.int64")
    return found


def masked(x: Any, where: Any, other: Any) -> Any:
    """`x` where `where` holds, else `other`."""
    if where is True or where is Absent:
        return x
    if not isinstance(where, Value):
        where = np.broadcast_to(np.asarray(where, bool), np.broadcast_shapes(np.shape(where), x.shape))
    return select(truth(where), x, other)


@implements(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = Absent,
         where: Any = True) -> Any:
    a = lift_with(a, where, initial)
    axes = axes_of(axis, a.ndim)
    a = cast(a, total_dtype(a, dtype, "sum"))
    result = keep(reduce_sum(masked(a, where, 0), axes), axes, keepdims, a.ndim)
    if initial is not Absent and initial is not None:
        result = result + cast(as_value(a.builder, initial), a.dtype)
    return fresh(result)


def fresh(result: Any) -> Any:
    """A new handle, which is a NumPy number or array and no Python number."""
    if hasattr(type(result), "jitad_parts"):
        return result.detached()
    return result.builder.value(result.number)


@implements(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = Absent,
         where: Any = True) -> Any:
    """A balanced tree of multiplications, so that derivatives of all orders are right at zeros."""
    a = lift_with(a, where, initial)
    axes = axes_of(axis, a.ndim)
    a = cast(a, total_dtype(a, dtype, "prod"))
    x = tree(lambda p, q: p * q, flatten_end(move_to_end(masked(a, where, 1), axes), len(axes)), 1)
    result = keep(x, axes, keepdims, a.ndim)
    if initial is not Absent and initial is not None:
        result = result * cast(as_value(a.builder, initial), a.dtype)
    return fresh(result)


def tree(operation: Callable[[Any, Any], Any], x: Any, identity: float) -> Any:
    """Reduce the last axis pairwise."""
    spare = None
    while (n := x.shape[-1]) > 1:
        if n % 2:
            last = getitem(x, (Ellipsis, n - 1))
            spare = last if spare is None else operation(spare, last)
        half = n // 2
        x = operation(getitem(x, (Ellipsis, slice(half))), getitem(x, (Ellipsis, slice(half, 2 * half))))
    if n == 0:
        return np.broadcast_to(as_value(x.builder, np.asarray(identity, x.dtype)), x.shape[:-1])
    x = getitem(x, (Ellipsis, 0))
    return x if spare is None else operation(x, spare)


def _extremum(function: Any, alias: Any, reduce: Any, ufunc: np.ufunc, logical: str) -> Callable[..., Any]:
    @implements(function, alias)
    def extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = Absent,
                 where: Any = True) -> Any:
        a = lift_with(a, where, initial)
        axes = axes_of(axis, a.ndim)
        given = initial is not Absent and initial is not None
        if where is not True and where is not Absent:
            if not given:
                raise ValueError(f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where "
                                 "mask one has to specify 'initial'")
            a = masked(a, where, cast(as_value(a.builder, initial), a.dtype))
        if not given:
            _check_not_empty(function, a, axes)
        elif any(a.shape[d] == 0 for d in axes):
            shape = tuple(n for d, n in enumerate(a.shape) if d not in axes)
            start = cast(as_value(a.builder, initial), a.dtype)
            return keep(broadcast_to(start, shape), axes, keepdims, a.ndim)
        reducer = reduce if a.dtype.kind != "b" else TABLE[logical]
        result = keep(reducer(a, axes=axes) if axes else a, axes, keepdims, a.ndim)
        return fresh(apply_ufunc(ufunc, result, cast(as_value(a.builder, initial), a.dtype)) if given else result)
    return extremum


def _check_not_empty(function: Any, a: Any, axes: tuple[int, ...]) -> None:
    if any(a.shape[d] == 0 for d in axes):
        function(np.empty(tuple(n if n == 0 else 1 for n in a.shape)), axis=axes)    # raises NumPy's own message


max_ = _extremum(np.max, np.amax, reduce_max, np.maximum, "reduce_any")
min_ = _extremum(np.min, np.amin, reduce_min, np.minimum, "reduce_all")


def _logical(function: Any, row: str, neutral: bool) -> None:
    @implements(function)
    def logical(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
        a = lift_with(a, where)
        axes = axes_of(axis, a.ndim)
        x = masked(truth(a), where, neutral)
        return fresh(keep(TABLE[row](x, axes=axes) if axes else x, axes, keepdims, a.ndim))


_logical(np.any, "reduce_any", False)
_logical(np.all, "reduce_all", True)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return sum_(truth(lift_all(a)[0]), axis, keepdims=keepdims)


def _count(a: Any, axes: tuple[int, ...], where: Any, keepdims: bool) -> Any:
    if where is True or where is Absent:
        return math.prod(a.shape[d] for d in axes)
    ones = masked(as_value(a.builder, np.ones(a.shape, np.int64)), where, 0)
    return keep(reduce_sum(ones, axes), axes, keepdims, a.ndim)


def _float_result(a: Any, dtype: Any) -> Any:
    return as_float(a) if dtype is None else cast(a, dtype)


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
         where: Any = True) -> Any:
    a = lift_with(a, where)
    axes, a = axes_of(axis, a.ndim, strict=True), _float_result(a, dtype)
    total = sum_(a, axes, keepdims=keepdims, where=where)
    return fresh(cast(apply_ufunc(np.true_divide, total, _count(a, axes, where, keepdims)), a.dtype))


@implements(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = Absent, correction: Any = Absent) -> Any:
    a = lift_with(a, where)
    ddof = ddof if correction is Absent else correction
    axes, a = axes_of(axis, a.ndim, strict=True), _float_result(a, dtype)
    centre = FUNCTION_MEAN(a, axes, keepdims=True, where=where) if mean is Absent else mean
    squares = sum_(np.square(a - centre), axes, keepdims=keepdims, where=where)
    count = _count(a, axes, where, keepdims)
    free = apply_ufunc(np.maximum, count - ddof, 0) if isinstance(count, Value) else max(count - ddof, 0)
    return fresh(cast(apply_ufunc(np.true_divide, squares, free), a.dtype))


FUNCTION_MEAN = mean


@implements(np.std)
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = Absent, correction: Any = Absent) -> Any:
    return root(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


def root(x: Any) -> Any:
    """The square root, with derivative 0 at 0: that of a norm."""
    return select(x == 0, 0.0, np.sqrt(x))


def weights_beside(w: Any, a: Value, axis: Any) -> Any:
    """Weights of the shape of `a`, or of its shape along `axis`, in the dimensions of `a`; raises what NumPy raises."""
    if w.shape == a.shape:
        return w
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
    if w.shape != tuple(a.shape[d] for d in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    w = np.transpose(w, np.argsort(axes))
    return w.reshape(tuple(n if d in axes else 1 for d, n in enumerate(a.shape)))


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    if weights is None:
        a = as_float(lift_all(a)[0])
        result = mean(a, axis, keepdims=keepdims)
        scale: Any = np.full(result.shape, a.size / result.size, result.dtype)
    else:
        a, w = lift_all(a, weights)
        dtype = np.result_type(a.dtype, w.dtype, *(["f8"] if a.dtype.kind in "iub" else []))
        w = weights_beside(w, a, axis)
        a, w = cast(a, dtype), cast(w, dtype)
        scale = sum_(broadcast_to(w, a.shape), axis, keepdims=keepdims)
        result = sum_(a * w, axis, keepdims=keepdims) / scale
    return (result, scale) if returned else result


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return max_(a, axis, keepdims=keepdims) - min_(a, axis, keepdims=keepdims)


# --- along an axis ---------------------------------------------------------------------------

def _line(a: Any, axis: Any, dtype: Any, name: str) -> tuple[Any, int]:
    a, = lift_all(a)
    a = cast(a, total_dtype(a, dtype, name))
    if axis is None:
        a, axis = ravel(a), 0
    if a.ndim == 0:
        a = expand_dims(a, (0,))
    return a, int(np.lib.array_utils.normalize_axis_index(axis, a.ndim))


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    a, axis = _line(a, axis, dtype, "cumsum")
    return _cumsum(a, axis=axis, reverse=False)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    a, axis = _line(a, axis, dtype, "cumprod")
    return _cumprod(a, axis)


@implements(getattr(np, "cumulative_sum", None))
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None,
                   include_initial: bool = False) -> Any:
    return _cumulative(cumsum(x, _only_axis(x, axis), dtype), _only_axis(x, axis), include_initial, 0)


@implements(getattr(np, "cumulative_prod", None))
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None,
                    include_initial: bool = False) -> Any:
    return _cumulative(cumprod(x, _only_axis(x, axis), dtype), _only_axis(x, axis), include_initial, 1)


def _only_axis(x: Any, axis: int | None) -> int:
    if axis is None and x.ndim > 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    return np.lib.array_utils.normalize_axis_index(axis or 0, max(x.ndim, 1))


def _cumulative(result: Any, axis: int, include_initial: bool, start: int) -> Any:
    if not include_initial:
        return result
    shape = tuple(1 if d == axis else n for d, n in enumerate(result.shape))
    return index.concatenate(as_value(result.builder, np.full(shape, start, result.dtype)), result, axis=axis)


SOMETIMES[np.diff] = lambda a, n=1, *rest, **options: n == 0


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = Absent, append: Any = Absent) -> Any:
    parts = [p for p in (prepend, a, append) if p is not Absent]
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    a = as_value(builder_in(*parts), a)
    if n == 0:
        return a
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    unit = tuple(1 if d == axis else m for d, m in enumerate(a.shape))
    lifted = [as_value(a.builder, p) for p in parts]
    joined = [broadcast_to(p, unit) if p.ndim == 0 else p for p in lifted]
    a = np.concatenate(joined, axis) if len(joined) > 1 else a
    lead = (slice(None),) * axis
    for _ in range(n):
        late, early = getitem(a, (*lead, slice(1, None))), getitem(a, (*lead, slice(-1)))
        a = late != early if a.dtype.kind == "b" else late - early
    return a


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = lift_with(y, x, dx)
    axis = np.lib.array_utils.normalize_axis_index(axis, y.ndim)
    step = dx
    if x is not None:
        x = as_value(y.builder, x)
        step = diff(x, axis=axis if x.ndim > 1 else 0)
        if x.ndim == 1:
            step = step.reshape(tuple(-1 if d == axis else 1 for d in range(y.ndim)))
    lead = (slice(None),) * axis
    return sum_(step * (getitem(y, (*lead, slice(1, None))) + getitem(y, (*lead, slice(-1)))) / 2.0, axis)


__all__ = ["axes_of", "keep", "root", "sum_dtype"]
