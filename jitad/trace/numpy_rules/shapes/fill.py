"""NumPy's functions that fill arrays: ``ufunc.at``, ``np.copyto``, ``np.put`` and their like."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import gather, scatter
from jitad.primitives.reduce import cumsum
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.trace.arrays.assign import check_writable, dotted, fitting, setitem, write
from jitad.trace.arrays.choice import choose, truth
from jitad.trace.arrays.indexing import Advanced, entries_of, getitem
from jitad.trace.arrays.windows import positions
from jitad.trace.dispatch import as_value, builder_in, implements, not_mutable, plain, refused
from jitad.trace.ufuncs import METHODS, apply_ufunc
from jitad.trace.values.tracer import Tracer


def array_of(a: Any, what: str) -> Tracer:
    """The array that a function is to fill, if it can be written."""
    if not isinstance(a, Tracer) or not (a.ndim or a.boxed):
        raise not_mutable(builder_in(a), what, "make the array in the recorded function (np.zeros, np.array(a))")
    check_writable(a)
    return a


# --- ufunc.at ------------------------------------------------------------------------------------

def ufunc_at(ufunc: np.ufunc, a: Any, indices: Any, *operands: Any) -> None:
    """``ufunc.at(a, indices, b)``."""
    name = f"numpy.{ufunc.__name__}.at"
    a, indices, operands = array_of(a, name), plain(indices), plain(operands)
    entries = entries_of(a, indices)
    if not any(isinstance(e, (np.ndarray, Value)) for e in entries):
        place = getitem(a, tuple(dotted(entries)))
        place.assign(ufunc, apply_ufunc(ufunc, place, *operands), (place, *operands))
        return
    if ufunc in (np.add, np.subtract):
        _add_at(a, ufunc, entries, operands[0])
        return
    if any(isinstance(e, Value) for e in entries):
        raise refused(a, f"{name} with traced indices, which may repeat", "use np.add.at, or a loop over the indices")
    where = np.arange(a.size).reshape(a.shape)[tuple(entries)]
    if np.unique(where).size < where.size:
        _at_in_rounds(a, ufunc, where, operands)
        return
    setitem(a, tuple(entries), apply_ufunc(ufunc, getitem(a, tuple(entries)), *operands))


def _at_in_rounds(a: Tracer, ufunc: np.ufunc, where: np.ndarray, operands: tuple[Any, ...]) -> None:
    """The first occurrence of each place, then the second, and so on."""
    places = where.ravel()
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[order], prepend=-1))
    turn = np.empty(places.size, np.int64)
    turn[order] = np.arange(places.size) - np.repeat(first, np.diff(np.append(first, places.size)))
    others: list[Any] = [np.broadcast_to(as_value(a.builder, o), where.shape).reshape(-1) for o in operands]
    for r in range(int(turn.max()) + 1):
        now = np.flatnonzero(turn == r)
        old: Any = getitem(a.reshape(-1), places[now])
        put_(a, places[now], apply_ufunc(ufunc, old, *(getitem(o, now) for o in others)))


def _add_at(a: Tracer, ufunc: np.ufunc, entries: list[Any], operand: Any) -> None:
    parts = Advanced(a, entries)
    operand = as_value(a.builder, operand)
    if not np.can_cast(operand.dtype, a.dtype, "same_kind") and not operand.aval.weak:
        ufunc.at(np.zeros(1, a.dtype), [0], np.zeros(1, operand.dtype))        # raises NumPy's own message
    values, index = parts.in_front(fitting(a, operand, parts.shape, (...,)))
    added = scatter(values, *index, axes=parts.axes, shape=parts.rest.shape)
    write(parts.rest, parts.rest.window, apply_ufunc(ufunc, parts.rest, added))


METHODS["at"] = ufunc_at


# --- functions -----------------------------------------------------------------------------------

@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    dst = array_of(dst, "numpy.copyto")
    src = as_value(dst.builder, src)
    if not src.aval.weak and not np.can_cast(src.dtype, dst.dtype, casting):
        np.copyto(np.zeros(1, dst.dtype), np.zeros(1, src.dtype), casting)     # raises NumPy's own message
    if where is True:
        setitem(dst, ..., src)
    else:
        write(dst, dst.window, choose(where, cast(src, dst.dtype), dst))


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    a = array_of(a, "numpy.fill_diagonal")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim == 2:
        step, end = a.shape[1] + 1, None if wrap else a.shape[1] * a.shape[1]
    else:
        if len(set(a.shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        step, end = 1 + int(np.cumprod(a.shape[:-1]).sum()), None
    _put_flat(a, positions(a.window).ravel()[:end:step], val)


def _put_flat(a: Tracer, where: np.ndarray, values: Any) -> None:
    """Store values one after the other, again from the start when they are used up."""
    values = as_value(a.builder, values).reshape(-1)  # type: ignore[attr-defined]
    if not where.size:
        return
    if values.aval.size != where.size and values.aval.size != 1:
        values = gather(values, as_value(a.builder, np.arange(where.size) % values.aval.size), axes=(0,))
    a.home.write_at(where, broadcast_to(cast(values, a.dtype), where.shape).number)


@implements(np.put)
def put_(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    a = array_of(a, "numpy.put")
    if builder_in(ind) is not None:
        flat = a.reshape(-1)
        if flat.home is not a.home:
            raise refused(a, "numpy.put with traced indices into an array that is not contiguous")
        setitem(flat, ind, v)
        return
    where = positions(a.window).ravel()
    _put_flat(a, np.take(where, np.asarray(ind).ravel(), mode=mode), v)    # type: ignore[call-overload]


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    arr = array_of(arr, "numpy.place")
    if builder_in(mask) is not None:
        place_computed(arr, truth(as_value(arr.builder, mask)), vals)
        return
    _put_flat(arr, positions(arr.window).ravel()[np.asarray(mask, bool).ravel()], vals)


def place_computed(arr: Tracer, mask: Any, vals: Any) -> None:
    """Store values, one after the other and again from the first, where a traced mask is true."""
    if mask.aval.size != arr.size:
        np.place(np.zeros(arr.shape), np.zeros(mask.shape, bool), [0.0])          # NumPy's own message
    vals = as_value(arr.builder, vals).reshape(-1)  # type: ignore[attr-defined]
    if not vals.size:
        if mask.any():
            raise ValueError("Cannot insert from an empty array!")
        return
    mask = mask.reshape(arr.shape)
    if vals.size == 1:
        setitem(arr, mask, vals.reshape(()))
        return
    order = cumsum(cast(mask.reshape(-1), np.int64), axis=0, reverse=False) - 1
    taken = gather(cast(vals, arr.dtype), apply_ufunc(np.remainder, order, vals.size), axes=(0,))
    write(arr, arr.window, choose(mask, taken.reshape(arr.shape), arr))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    a = array_of(a, "numpy.putmask")
    values = as_value(a.builder, values)
    if values.shape != a.shape:
        flat = values.reshape(-1)  # type: ignore[attr-defined]
        index = np.arange(a.size).reshape(a.shape) % max(values.aval.size, 1)
        values = gather(flat, as_value(a.builder, index), axes=(0,))
    if builder_in(mask) is None and np.shape(mask) != a.shape:
        raise ValueError("putmask: mask and data must be the same size")
    write(a, a.window, choose(truth(mask), cast(values, a.dtype), a))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    arr = array_of(arr, "numpy.put_along_axis")
    if axis is None:
        put_(arr, indices, values)
        return
    axis = np.lib.array_utils.normalize_axis_index(axis, arr.ndim)
    indices = indices if isinstance(indices, Value) else np.asarray(indices)
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = [np.arange(n).reshape((-1,) + (1,) * (arr.ndim - 1 - d)) for d, n in enumerate(arr.shape)]
    setitem(arr, tuple(indices if d == axis else i for d, i in enumerate(index)), values)
