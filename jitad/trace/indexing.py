"""``x[index]`` on traced values: basic indices are views, integer arrays are gathers."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import gather
from jitad.primitives.view import broadcast_to, slice_dims, transpose
from jitad.tape import Value
from jitad.trace.dispatch import as_value, implements, lift_all, refused, stand_in
from jitad.trace.viewing import through_view


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` with NumPy's rules, results and errors."""
    if type(index) is int and x.ndim:
        n = x.shape[0]
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for axis 0 with size {n}")
        return slice_dims(x, (index % n, *(slice(None),) * (x.ndim - 1)))
    entries = [_entry(x, e) for e in (index if isinstance(index, tuple) else (index,))]
    if any(isinstance(e, (np.ndarray, Value)) for e in entries):
        return _advanced(x, entries)
    dots = any(e is Ellipsis for e in entries)
    if not dots:
        entries.append(Ellipsis)
    result = through_view(x, lambda a: a[tuple(entries)])
    return boxed(result) if dots else result


def boxed(result: Any) -> Any:
    """A new handle, marked as an *array* if it has no dimensions: in-place operators would change it."""
    result = result.builder.value(result.number)
    result.boxed = result.ndim == 0
    return result


def _entry(x: Any, entry: Any) -> Any:
    """One entry of an index: int, slice, None, Ellipsis, an integer or Boolean array, or a traced integer."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    if isinstance(entry, Value) or (isinstance(entry, (list, tuple)) and _has_values(entry)):
        traced = as_value(x.builder, entry)
        if traced.dtype.kind == "b":
            return traced.builder.decide_all(traced)     # type: ignore[attr-defined]
        if traced.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return traced
    if isinstance(entry, (bool, np.bool_)):
        return np.asarray(entry)
    if hasattr(entry, "__index__") and not isinstance(entry, np.ndarray):
        return entry.__index__()
    array = np.asarray(entry)
    if array.size == 0 and not isinstance(entry, np.ndarray):
        return array.astype(np.intp)
    return array if array.dtype.kind in "biu" else stand_in(x.shape)[entry]      # raises NumPy's own message


def _has_values(entry: Any) -> bool:
    return any(isinstance(e, Value) or (isinstance(e, (list, tuple)) and _has_values(e)) for e in entry)


def _advanced(x: Any, entries: list[Any]) -> Any:
    probe = tuple(np.zeros(e.shape, np.intp) if isinstance(e, Value) else e for e in entries)
    expected = stand_in(x.shape)[probe].shape                    # NumPy's own errors
    basic, arrays, first, consecutive = _plan(x, entries)
    rest = through_view(x, lambda a: a[tuple(basic)])
    axes = tuple(axis for axis, _ in arrays)
    shape = np.broadcast_shapes(*(a.shape for _, a in arrays))
    index = [_index_value(rest, a, rest.shape[axis], shape) for axis, a in arrays]
    result = gather(rest, *index, axes=axes)
    if consecutive and first:
        lead = len(shape)
        order = (*range(lead, lead + first), *range(lead), *range(lead + first, result.ndim))
        result = transpose(result, order)
    assert result.shape == expected, (result.shape, expected)
    return result


def _plan(x: Any, entries: list[Any]) -> tuple[list[Any], list[tuple[int, Any]], int, bool]:
    """The index with all arrays replaced by full slices; each array with the dimension of that result
    which it indexes; the place of the arrays' dimensions; whether they are neighbours (NumPy's rule)."""
    taken = sum(e.ndim if _is_mask(e) else e is not None for e in entries if e is not Ellipsis)
    spare = x.ndim - taken
    if not any(e is Ellipsis for e in entries):
        entries = [*entries, Ellipsis]
    basic: list[Any] = []
    arrays: list[tuple[int, Any]] = []
    state, first = "before", 0                    # then "in", "after", "apart"
    for entry in entries:
        advanced = isinstance(entry, (int, np.ndarray, Value))
        if advanced:
            state = {"before": "in", "after": "apart"}.get(state, state)
        elif state == "in":
            state = "after"
        for b, array in _expand(entry, spare):
            if array is None and state == "before":
                first += 1
            elif array is not None:
                arrays.append((len(basic), array))
            basic.append(b)
    return basic, arrays, first, state != "apart"


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, np.ndarray) and entry.dtype.kind == "b"


def _expand(entry: Any, spare: int) -> list[tuple[Any, Any]]:
    """(basic entry, index array or None) for each dimension that `entry` makes or takes."""
    if entry is Ellipsis:
        return [(slice(None), None)] * spare
    if entry is None or isinstance(entry, slice):
        return [(entry, None)]
    if _is_mask(entry):
        if entry.ndim == 0:
            return [(None, np.zeros(int(entry), np.intp))]
        return [(slice(None), a) for a in entry.nonzero()]
    return [(slice(None), np.asarray(entry) if isinstance(entry, int) else entry)]


def _index_value(x: Any, index: Any, length: int, shape: tuple[int, ...]) -> Any:
    if not isinstance(index, Value):
        index = index.astype(np.int64)
        index = np.broadcast_to(np.where(index < 0, index + length, index), shape)
        return as_value(x.builder, index)
    return broadcast_to(cast(index, np.int64), shape)


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    a, = lift_all(a) if isinstance(a, Value) else [as_value(indices.builder, a)]
    if axis is None:
        a, axis = a.ravel(), 0
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    indices = indices if isinstance(indices, Value) else np.asarray(indices)
    if mode == "clip":
        indices = np.clip(indices, 0, a.shape[axis] - 1)
    elif mode == "wrap":
        indices = np.remainder(indices, a.shape[axis])
    return getitem(a, (*(slice(None),) * axis, indices))


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    arr, indices = lift_all(arr, indices) if isinstance(indices, Value) else (arr, np.asarray(indices))
    if axis is None:
        arr, axis = arr.ravel(), 0
    axis = np.lib.array_utils.normalize_axis_index(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = [np.arange(n).reshape((-1,) + (1,) * (arr.ndim - 1 - d)) for d, n in enumerate(arr.shape)]
    return getitem(arr, tuple(indices if d == axis else i for d, i in enumerate(index)))
