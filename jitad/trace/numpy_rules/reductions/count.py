"""NumPy functions that count elements or take those that meet a condition.

Where a shape depends on data, the count is a guard and the places are computed (see `arrays.positions`).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import scatter
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import truth
from jitad.trace.arrays.indexing import getitem
from jitad.trace.arrays.positions import flat_positions, nonzero_of
from jitad.trace.dispatch import SHARING, as_value, builder_in, implements, lift_all, refused
from jitad.trace.numpy_rules.reductions.order import line, searchsorted, sorting_order
from jitad.trace.numpy_rules.shapes.shape import ravel


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    a, = lift_all(a)
    if not a.ndim:
        np.nonzero(np.zeros(()))                                    # raises NumPy's own error
    return nonzero_of(truth(a))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return flat_positions(truth(ravel(lift_all(a)[0])))


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    mask = truth(lift_all(a)[0])
    if not mask.ndim:
        return np.zeros((int(bool(mask)), 0), np.int64)
    return np.stack(nonzero_of(mask), axis=-1)  # type: ignore[arg-type]


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    condition, arr = lift_all(condition, arr)
    return getitem(ravel(arr), flat_positions(truth(ravel(condition))))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    builder = builder_in(condition, a)
    if np.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    a, axis = line(as_value(builder, a), axis)
    places = flat_positions(truth(as_value(builder, condition))) if builder_in(condition) is not None else (
        np.flatnonzero(condition))
    return getitem(a, (*(slice(None),) * axis, places))


# --- distinct elements -----------------------------------------------------------------------------------

@implements(np.unique)
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:
    ar, = lift_all(ar)
    if axis is not None and ar.ndim != 1:
        raise refused(ar, "numpy.unique along an axis", "use it on arrays of one dimension")
    flat = ravel(ar)
    order = sorting_order(flat)
    in_order = getitem(flat, order)
    late, early = in_order[1:], in_order[:-1]
    differs = late != early
    if equal_nan and flat.dtype.kind == "f":
        differs = differs & ~(np.isnan(late) & np.isnan(early))
    new: Any = np.concatenate([np.ones(min(flat.size, 1), bool), differs])
    first = flat_positions(new)
    index = getitem(order, first)
    results = [getitem(flat, index)]
    if return_index:
        results.append(index)
    if return_inverse:
        inverse = scatter(np.cumsum(new) - 1, order, axes=(0,), shape=flat.shape)
        results.append(inverse.reshape(ar.shape) if axis is None else inverse)
    if return_counts:
        results.append(np.diff(np.concatenate([first, np.array([flat.size])])))
    return tuple(results) if len(results) > 1 else results[0]


def _array_api(name: str, **options: bool) -> None:
    function = getattr(np, name)

    @implements(function)
    def distinct(x: Any) -> Any:
        found = unique(x, **options, equal_nan=False)
        return type(function(np.zeros(1)))(*found) if options else found


_array_api("unique_values")
_array_api("unique_counts", return_counts=True)
_array_api("unique_inverse", return_inverse=True)
_array_api("unique_all", return_index=True, return_inverse=True, return_counts=True)

FEW = 32                   # elements among which another is looked up by comparing with all


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: Any = None) -> Any:
    element, among = lift_all(element, test_elements)
    among = ravel(among)
    if among.size <= FEW:
        found = np.any(element[..., None] == among, axis=-1)
    else:
        dtype = np.result_type(element.dtype, among.dtype)
        among = cast(among, dtype)
        among = getitem(among, sorting_order(among))
        place = np.minimum(searchsorted(among, cast(element, dtype)), among.size - 1)
        found = getitem(among, place) == element
    return ~found if invert else found


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    a, b = lift_all(a1, a2)
    if a.shape != b.shape:
        return False
    same = a == b
    return (same | (np.isnan(a) & np.isnan(b)) if equal_nan else same).all()


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    a, b = lift_all(a1, a2)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return (a == b).all()


SHARING.add(np.trim_zeros)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    a, = lift_all(filt)
    if a.ndim != 1:
        raise refused(a, "numpy.trim_zeros of an array that has not one dimension", "use slices")
    np.trim_zeros(np.zeros(1), trim)  # type: ignore[arg-type]       # NumPy's own errors
    n, kept = a.size, truth(a)
    if not kept.any():
        return a[:0]
    start = int(np.argmax(kept)) if "f" in trim.lower() else 0
    stop = n - int(np.argmax(kept[::-1])) if "b" in trim.lower() else n
    return a[start:stop]


# --- counts by place ---------------------------------------------------------------------------------------

@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    builder: Any = builder_in(x, weights, minlength)
    places = x if isinstance(x, Value) or builder_in(x) is not None else np.asarray(x)
    length = _bins(builder, places, int(minlength))
    places = cast(as_value(builder, places), np.int64)
    if weights is None:
        weights = np.ones(places.shape, np.int64)
        added = as_value(builder, np.int64(1))
    else:
        added = cast(as_value(builder, weights), np.float64)
        if added.shape != places.shape:
            raise ValueError("The weights and list don't have the same length.")
    return scatter(broadcast_to(added, places.shape), places, axes=(0,), shape=(length,))


def _bins(builder: Any, x: Any, minlength: int) -> int:
    """The length of the result; what it depends on is guarded."""
    x = as_value(builder, x) if builder_in(x) is not None else x
    np.bincount(np.zeros((0,) * x.ndim, np.int64 if not x.size else x.dtype), minlength=minlength)  # NumPy's own errors
    if not x.size:
        return minlength
    if (x < 0).any():
        raise ValueError("'list' argument must have no negative elements")
    length = np.maximum(np.max(x) + 1, minlength) if x.dtype.kind != "b" else np.maximum(np.max(x) * 1 + 1, minlength)
    return int(length)


__all__ = ["bincount", "unique"]
