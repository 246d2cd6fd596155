"""NumPy functions that sort and search.

A sort is a gather by computed places, so that a derivative goes with the element. Equal elements keep their order,
whatever `kind` says. `partition` of one line at one place keeps the elements on either side in their order, any other
sorts as a whole: both are among the orders that NumPy may give.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import order as rows
from jitad.primitives.core import cast
from jitad.primitives.view import expand_dims
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.arrays.indexing import getitem, take_along_axis
from jitad.trace.dispatch import as_value, builder_in, implements, lift_all, refused
from jitad.trace.numpy_rules.elements.elementwise import result_dtype_key
from jitad.trace.numpy_rules.shapes.shape import move_to_end, ravel
from jitad.trace.values.pairs import as_complex

Absent = np._NoValue
SHORT = 64                # elements that are sorted at once


def line(a: Any, axis: int | None) -> tuple[Any, int]:
    """`a` and the axis to work along; None: all elements in one dimension."""
    a, = lift_all(a)
    if axis is None:
        return ravel(a), 0
    return a, int(np.lib.array_utils.normalize_axis_index(axis, a.ndim))


def sorting_order(a: Value) -> Any:
    """The places, along the last axis, of the elements in ascending order."""
    return rows.argsort(_sortable(a))


def places_of_ranks(a: Value, ranks: Any) -> Any:
    """Those of `sorting_order` at `ranks`, of one dimension or of as many as `a` has."""
    return rows.select_places(_sortable(a), as_value(a.builder, ranks))


def _sortable(a: Value) -> Value:
    if a.dtype.kind not in "biuf":
        raise refused(a, f"sorting an array of dtype {a.dtype}", "sort real numbers")
    return a if a.dtype.kind == "f" else cast(a, np.int64)


def _to_end(a: Any, axis: int) -> Any:
    return np.moveaxis(a, axis, -1)


@implements(np.argsort)
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _check_options(kind, order, stable)
    a, axis = line(a, axis if np.ndim(a) or axis not in (0, -1) else None)
    return np.moveaxis(sorting_order(_to_end(a, axis)), -1, axis)


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _check_options(kind, order, stable)
    a, axis = line(a, axis)
    lines = _to_end(a, axis)
    return np.moveaxis(taken(lines, sorting_order(lines)), -1, axis)


def taken(lines: Any, places: Any) -> Any:
    """The elements of each line (along the last axis) at these places of the line."""
    return getitem(lines, places) if lines.ndim == 1 else take_along_axis(lines, places, -1)


def _check_options(kind: Any, order: Any, stable: Any) -> None:
    np.argsort(np.zeros(1), kind=kind, order=order, stable=stable)  # NumPy's own errors


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    return as_complex(sort(a), np.complex64 if a.dtype.char in "bhBH" else np.complex128)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    a, axis = line(a, axis)
    kth = _checked_kth(a, kth, axis, kind, order)
    return getitem(a, _parted(a, kth)) if _parts(a, kth) else sort(a, axis)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    a, axis = line(a, axis)
    kth = _checked_kth(a, kth, axis, kind, order)
    return _parted(a, kth) if _parts(a, kth) else argsort(a, axis)


def _checked_kth(a: Value, kth: Any, axis: int, kind: str, order: Any) -> Any:
    if builder_in(kth) is not None:
        kth = a.builder.decide_all(as_value(a.builder, kth))        # type: ignore[attr-defined]
    np.partition(np.zeros(a.shape[axis]), kth, kind=kind, order=order)  # type: ignore[call-overload]
    return kth


def _parts(a: Value, kth: Any) -> bool:
    """Whether selecting an element is less than a sort."""
    return a.ndim == 1 and np.size(kth) == 1 and a.shape[0] > SHORT


def _parted(a: Value, kth: Any) -> Any:
    """The places of the elements before the one of rank `kth`, its own, and those of the elements after it."""
    length = a.shape[0]
    rank = int(np.reshape(kth, ())) % length
    pivot = places_of_ranks(a, np.array([rank]))
    value, earlier = getitem(a, pivot), rows.iota(a, axis=0) < pivot
    before = (a < value) | ((a == value) & earlier)
    if a.dtype.kind == "f":
        before = choose(np.isnan(value), ~np.isnan(a) | earlier, before)
    after = ~before & (rows.iota(a, axis=0) != pivot)
    return np.concatenate([rows.positions(before, count=rank), pivot,
                           rows.positions(after, count=length - 1 - rank)])


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Stable sorts by one key after the other, the last of which decides first."""
    keys = lift_all(*(keys if isinstance(keys, (list, tuple)) else [keys[i] for i in range(len(keys))]))
    np.lexsort([np.zeros(k.shape) for k in keys], axis)             # NumPy's own errors
    found: Any = None
    for key in keys:
        lines = _to_end(key, axis) if key.ndim else expand_dims(key, (0,))
        if found is None:
            found = sorting_order(lines)
        else:
            found = taken(found, sorting_order(taken(lines, found)))
    return np.moveaxis(found, -1, axis) if keys[0].ndim else found.reshape(())


# --- places of extrema -------------------------------------------------------------------------------

def _arg(function: Any, largest: bool) -> Any:
    @implements(function)
    def arg(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
        a, = lift_all(a)
        ndim = a.ndim
        place = None if axis is None else _axis(axis, ndim)
        lines = ravel(a) if place is None or not ndim else move_to_end(a, (place,))
        if lines.shape[-1] == 0:
            function(np.zeros(a.shape), axis)                       # raises NumPy's own error
        result = rows.arg_extremum(lines, lines.ndim - 1, largest)
        if keepdims is Absent or not keepdims:
            return result.builder.value(result.number)
        return expand_dims(result, tuple(range(ndim)) if axis is None else (_axis(axis, ndim),)[:ndim])
    return arg


def _axis(axis: Any, ndim: int) -> int:
    return int(np.lib.array_utils.normalize_axis_index(axis, max(ndim, 1)))    # a number is an array of one


argmax, argmin = _arg(np.argmax, True), _arg(np.argmin, False)


def _nanarg(function: Any, arg: Any, worst: float) -> None:
    @implements(function)
    def nanarg(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
        a, = lift_all(a)
        if a.dtype.kind != "f":
            return arg(a, axis, keepdims=keepdims)
        lost = np.isnan(a)
        if a.aval.size and np.all(lost, axis=axis).any():                           # a branch of the recorded function
            raise ValueError("All-NaN slice encountered")
        return arg(choose(lost, worst, a), axis, keepdims=keepdims)


_nanarg(np.nanargmax, argmax, -np.inf)
_nanarg(np.nanargmin, argmin, np.inf)


# --- places among sorted elements ------------------------------------------------------------------------

@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    np.searchsorted(np.zeros(1), 0.0, side=side)                    # NumPy's own errors
    builder = builder_in(a, v, sorter)
    a, v = as_value(builder, a), as_value(builder, v)
    if a.ndim != 1:
        np.searchsorted(np.zeros(a.shape), 0.0)                     # raises NumPy's own error
    if sorter is not None:
        a = getitem(a, as_value(builder, sorter))
    dtype = np.result_type(result_dtype_key(a), result_dtype_key(v))
    dtype = dtype if dtype.kind == "f" else np.dtype(np.int64)
    return rows.searchsorted(cast(a, dtype), cast(v, dtype), side=_side(side))


def _side(side: str) -> str:
    return "left" if side[0] in "lL" else "right"


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    side = "left" if right else "right"
    traced = builder_in(bins) is not None
    bins, x = lift_all(bins, x) if traced else (np.asarray(bins), lift_all(x)[0])
    if bins.ndim != 1:
        raise ValueError("object of too small depth for desired array" if bins.ndim == 0 else
                         "object too deep for desired array")
    if _ascending(bins):
        return searchsorted(bins, x, side)
    return bins.shape[0] - searchsorted(bins[::-1], x, side)


def _ascending(bins: Any) -> bool:
    """Whether bins ascend, or descend; of traced ones a recorded branch. The last ones may be NaN."""
    late, early = bins[1:], bins[:-1]
    if (late == early).all():
        return True
    if (late > early).any():
        if ((late < early) | ((early != early) & (late == late))).any():
            raise ValueError("bins must be monotonically increasing or decreasing")
        return True
    return False


__all__ = ["SHORT", "argsort", "line", "places_of_ranks", "searchsorted", "sort", "sorting_order", "taken"]
