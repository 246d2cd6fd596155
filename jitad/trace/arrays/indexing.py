"""``x[index]`` on traced values: basic indices are views, integer arrays are gathers."""
from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import gather, reshape
from jitad.primitives.view import broadcast_to, slice_dims, transpose
from jitad.tape.builder import Value
from jitad.trace.arrays.positions import flat_positions, nonzero_of
from jitad.trace.arrays.viewing import sliced, through_map_of, through_view
from jitad.trace.arrays.windows import Window
from jitad.trace.attempts import require_within
from jitad.trace.dispatch import as_value, implements, lift_all, plain, stand_in
from jitad.trace.where import is_library_file


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` with NumPy's rules, results and errors. What a traced integer picks shares its memory in NumPy."""
    result = _read(x, index)
    if getattr(result, "ndim", 0) and is_view(plain(index)) and not x.home.owner and not _stored_at_once():
        x.home.may_share_with(result.home)
    return result


def _stored_at_once() -> bool:
    """Whether the user's code is at ``x[index] += v``: what is picked has no name, and is stored where it was."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and frame.f_lasti in _augmented(frame.f_code)


@lru_cache(maxsize=512)
def _augmented(code: CodeType) -> frozenset[int]:
    """Where the bytecode picks what it is going to store again: it keeps array and index."""
    found = list(dis.get_instructions(code))
    return frozenset(at for *kept, pick, then in zip(found, found[1:], found[2:], found[3:], strict=False)
                     if pick.opname in ("BINARY_SUBSCR", "BINARY_OP") and all(
                         i.opname == "COPY" and i.arg == 2 for i in kept)
                     for at in range(pick.offset, then.offset))      # with the cache behind it


def is_view(index: Any) -> bool:
    """Whether NumPy gives a view for an index, in which a traced integer is."""
    entries = index if type(index) is tuple else (index,)
    return any(isinstance(e, Value) for e in entries) and all(
        e is None or e is Ellipsis or isinstance(e, (slice, int, np.integer)) or (
            isinstance(e, Value) and not e.ndim and e.dtype.kind in "iu") for e in entries)


def _read(x: Any, index: Any) -> Any:
    basic, numbers = _basic(index)
    if basic is None:
        index = plain(index)
        if x.ndim and type(index) is type(x) and index.builder is x.builder and (
                not index.shape and index.dtype == np.int64):
            require_within(index, 0, x.shape[0])
            stored = _just_stored(x, index)
            return gather(x, index, axes=(0,)) if stored is None else reshape(stored, x.shape[1:])
        basic, numbers = _basic(index)
    if numbers and basic and len(basic) <= x.ndim:
        return _numbered(x, basic)
    if basic is not None:
        dots = Ellipsis in basic
        result = through_map_of(x, *sliced(x.shape, basic if dots else (*basic, Ellipsis)))
        return boxed(result) if dots or result.ndim else number(result)
    mask = traced_mask(index)
    if mask is not None and mask.ndim > 1 and mask.shape == x.shape[:mask.ndim]:
        rows = reshape(x, (mask.aval.size, *x.shape[mask.ndim:]))
        return boxed(gather(rows, flat_positions(mask), axes=(0,)))
    entries = entries_of(x, index)
    if any(isinstance(e, (np.ndarray, Value)) for e in entries):
        return _advanced(x, entries)
    dots = any(e is Ellipsis for e in entries)
    result = through_view(x, lambda a: a[tuple(entries if dots else (*entries, Ellipsis))])
    return boxed(result) if dots or result.ndim else number(result)


def _just_stored(x: Any, index: Value) -> Value | None:
    """The row that was stored last of all, if it is the one at `index`."""
    nodes, node = x.builder.nodes, x.node
    if not node.prim.stores or node.params["axes"] != (0,) or len(node.inputs) != 3:
        return None
    at = nodes[node.inputs[2]]
    same = at.index_map is not None and at.aval.size == 1 and at.inputs[0] == index.number
    return x.builder.value(node.inputs[1]) if same else None    # type: ignore[no-any-return]


def _numbered(x: Any, index: tuple[int, ...]) -> Any:
    """``x[i, j, ...]`` with integers alone."""
    numbers = within(index, x.shape)
    storage = getattr(x, "storage", None)
    if len(numbers) < x.ndim:
        rest = x.ndim - len(numbers)
        return through_map_of(x, x.shape[-rest:], (*((i, ()) for i in numbers), *((0, ((d, 1),)) for d in range(rest))))
    if storage is None:
        return slice_dims(x, numbers)
    at = x.window.offset + sum(i * s for i, s in zip(numbers, x.window.strides, strict=True))
    return x.builder.value(storage.read(Window(at, (), ())))


def _basic(index: Any) -> tuple[tuple[Any, ...] | None, bool]:
    """An index of plain integers, slices, None and an ellipsis, in a form that can be a key, and whether it is of
    integers alone; None for all others."""
    if type(index) is int:
        return (index,), True
    entries: list[Any] = []
    numbers = True
    for entry in index if type(index) is tuple else (index,):
        if type(entry) is slice:
            for end in (entry.start, entry.stop, entry.step):
                if end is not None and type(end) is not int:
                    return None, False
            entries.append((entry.start, entry.stop, entry.step))
            numbers = False
        elif type(entry) is int:
            entries.append(entry)
        elif entry is None or entry is Ellipsis:
            entries.append(entry)
            numbers = False
        else:
            return None, False
    return tuple(entries), numbers


def within(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The integers without NumPy's meaning of negative ones."""
    for axis, (i, n) in enumerate(zip(index, shape, strict=False)):
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return tuple(i if i >= 0 else i + n for i, n in zip(index, shape, strict=False))


def entries_of(x: Any, index: Any) -> list[Any]:
    """The entries of an index. A traced mask is taken as the index arrays of its true elements; their number, on
    which shapes depend, is guarded."""
    entries = [_entry(x, e) for e in (index if isinstance(index, tuple) else (index,))]
    masks = [e for e in entries if isinstance(e, Value) and e.dtype.kind == "b"]
    if not masks:
        return entries
    known: Any = x.builder
    parts = [part for e in entries for part in (nonzero_of(e) if isinstance(e, Value) and _is_mask(e) else (e,))]
    stand_in(x.shape)[tuple(known.concrete(e.number) if _is_mask(e) else np.zeros(e.shape, np.intp)
                            if isinstance(e, Value) else e for e in entries)]       # NumPy's own errors
    return parts


def traced_mask(index: Any) -> Value | None:
    """The index if it is one traced Boolean array."""
    index = index[0] if type(index) is tuple and len(index) == 1 else index
    return index if isinstance(index, Value) and index.dtype.kind == "b" and index.ndim else None


def number(result: Any) -> Any:
    """A number taken out of an array, which does not change any more."""
    return result.builder.value(result.number)


def boxed(result: Any) -> Any:
    """A handle that is marked as an *array* if it has no dimensions: in-place operators change it."""
    if getattr(result, "storage", None) is not None:
        return result
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
            return traced if traced.ndim else np.asarray(traced.builder.decide(traced))  # type: ignore[attr-defined]
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


class Advanced:
    """An index with integer arrays, taken apart: `basic` gives `rest`, which the arrays `index` index along `axes`;
    `shape` is that of the result."""

    def __init__(self, x: Any, entries: list[Any]):
        probe = tuple(np.zeros(e.shape, np.intp) if isinstance(e, Value) else e for e in entries)
        self.shape = stand_in(x.shape)[probe].shape              # NumPy's own errors
        basic, arrays, first, consecutive = _plan(x, entries)
        self.rest = through_view(x, lambda a: a[tuple(basic)])
        self.axes = tuple(axis for axis, _ in arrays)
        common = np.broadcast_shapes(*(a.shape for _, a in arrays))
        self.index = [_index_value(self.rest, a, axis, common) for axis, a in arrays]
        lead, ndim = len(common), len(self.shape)
        self.order = tuple(range(ndim))                          # dimensions of the gathered array in the result
        if consecutive and first:
            self.order = (*range(lead, lead + first), *range(lead), *range(lead + first, ndim))

    def read(self) -> Any:
        result = transpose(gather(self.rest, *self.index, axes=self.axes), self.order)
        assert result.shape == self.shape, (result.shape, self.shape)
        return result

    def in_front(self, values: Any) -> tuple[Any, list[Any]]:
        """Values of the result's shape, and the index arrays, with the arrays' dimensions first and as one."""
        back = tuple(int(i) for i in np.argsort(self.order))
        values, lead = transpose(values, back), self.index[0].ndim
        return (reshape(values, (self.index[0].aval.size, *values.shape[lead:])),
                [reshape(i, (i.aval.size,)) for i in self.index])


def _advanced(x: Any, entries: list[Any]) -> Any:
    return Advanced(x, entries).read()


def _plan(x: Any, entries: list[Any]) -> tuple[list[Any], list[tuple[int, Any]], int, bool]:
    """The index with all arrays replaced by full slices; each array with the dimension of that result
    which it indexes; where the arrays' dimensions go; whether they are neighbours (NumPy's rule)."""
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
    return isinstance(entry, (np.ndarray, Value)) and entry.dtype.kind == "b"


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


def _index_value(x: Any, index: Any, axis: int, shape: tuple[int, ...]) -> Any:
    length = x.shape[axis]
    if not isinstance(index, Value):
        index = index.astype(np.int64)
        index = np.broadcast_to(np.where(index < 0, index + length, index), shape)
        return as_value(x.builder, index)
    index = broadcast_to(cast(index, np.int64), shape)
    require_within(index, axis, length)
    return index


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    a, = lift_all(a) if isinstance(a, Value) else [as_value(indices.builder, a)]
    if axis is None or not a.ndim:
        a, axis = a.ravel(), axis or 0
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    indices = indices if isinstance(indices, Value) else np.asarray(indices)
    if mode == "clip":
        indices = np.clip(indices, 0, a.shape[axis] - 1)
    elif mode == "wrap":
        indices = np.remainder(indices, a.shape[axis])
    return _read(a, (*(slice(None),) * axis, indices))


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    arr, indices = lift_all(arr, indices) if isinstance(indices, Value) else (arr, np.asarray(indices))
    if axis is None:
        arr, axis = arr.ravel(), 0
    axis = np.lib.array_utils.normalize_axis_index(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = [np.arange(n).reshape((-1,) + (1,) * (arr.ndim - 1 - d)) for d, n in enumerate(arr.shape)]
    return _read(arr, tuple(indices if d == axis else i for d, i in enumerate(index)))
