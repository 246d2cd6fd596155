"""NumPy's reductions that leave out NaN. An element that is left out has a derivative of zero."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, implements, lift_with
from jitad.trace.numpy_rules.reductions import reduce as reduce
from jitad.trace.ufuncs import apply_ufunc

Absent = np._NoValue


def _parts(a: Any, other: float, *others: Any) -> tuple[Value, Any]:
    """`a` with `other` for NaN, and where they were (None: there cannot be any)."""
    a = lift_with(a, *others)
    if a.dtype.kind != "f":
        return a, None
    lost = np.isnan(a)
    return choose(lost, other, a), lost


def _where(where: Any) -> Any:
    return True if where is Absent else where


def _summing(function: Any, plain: Callable[..., Any], neutral: float) -> None:
    @implements(function)
    def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
               initial: Any = Absent, where: Any = Absent) -> Any:
        a, _ = _parts(a, neutral, initial, where)
        return plain(a, axis, dtype, keepdims=keepdims, initial=initial, where=_where(where))


_summing(np.nansum, reduce.sum_, 0.0)
_summing(np.nanprod, reduce.prod, 1.0)


def _cumulating(function: Any, plain: Callable[..., Any], neutral: float) -> None:
    @implements(function)
    def nancum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return plain(_parts(a, neutral)[0], axis, dtype)


_cumulating(np.nancumsum, reduce.cumsum, 0.0)
_cumulating(np.nancumprod, reduce.cumprod, 1.0)


def _extremum(function: Any, plain: Callable[..., Any], worst: float) -> None:
    @implements(function)
    def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = Absent,
               where: Any = Absent) -> Any:
        a, lost = _parts(a, worst, initial, where)
        result = plain(a, axis, keepdims=keepdims, initial=initial, where=_where(where))
        if lost is None or initial is not Absent:
            return result
        return choose(np.all(lost, axis=_axes(axis), keepdims=bool(keepdims) and keepdims is not Absent), np.nan,
                      result)


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


_extremum(np.nanmax, reduce.max_, -np.inf)
_extremum(np.nanmin, reduce.min_, np.inf)


def _counted(lost: Any, axis: Any, where: Any) -> Any:
    """How many elements count, with the axes kept."""
    return reduce.sum_(cast(~lost, np.int64), axis, keepdims=True, where=where)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
            where: Any = Absent) -> Any:
    a, lost = _parts(a, 0.0, where)
    if lost is None:
        return reduce.mean(a, axis, dtype, keepdims=keepdims, where=_where(where))
    axes = reduce.axes_of(axis, a.ndim)
    total = reduce.sum_(a, axes, dtype, keepdims=True, where=_where(where))
    return _unkept(apply_ufunc(np.true_divide, total, _as(_counted(lost, axes, _where(where)), total)), axes, keepdims)


def _as(count: Any, like: Value) -> Any:
    return cast(count, like.dtype)


def _unkept(x: Value, axes: tuple[int, ...], keepdims: Any) -> Any:
    """Without the axes, unless they are to be kept."""
    if keepdims and keepdims is not Absent:
        return x
    rest = x.reshape(tuple(n for d, n in enumerate(x.shape) if d not in axes))  # type: ignore[attr-defined]
    return rest if rest.ndim else reduce.fresh(rest)


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
           where: Any = Absent, mean: Any = Absent, correction: Any = Absent) -> Any:
    a, lost = _parts(a, 0.0, where, mean)
    if lost is None:
        return reduce.var(a, axis, dtype, None, ddof, keepdims, where=_where(where), mean=mean, correction=correction)
    ddof = ddof if correction is Absent else correction
    a = a if dtype is None else cast(a, dtype)
    axes, where = reduce.axes_of(axis, a.ndim), _where(where)
    count = _counted(lost, axes, where)
    centre = as_value(a.builder, mean) if mean is not Absent else reduce.sum_(
        a, axes, keepdims=True, where=where) / _as(count, a)
    squares = reduce.sum_(np.square(choose(lost, 0.0, a - centre)), axes, keepdims=True, where=where)
    free = count - ddof
    result = choose(free > 0, squares / _as(choose(free > 0, free, 1), squares), np.nan)
    return _unkept(result, axes, keepdims)


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
           where: Any = Absent, mean: Any = Absent, correction: Any = Absent) -> Any:
    return reduce.root(nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))
