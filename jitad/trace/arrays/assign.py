"""Writing into traced arrays: ``a[i] = v`` and in-place operators."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import put
from jitad.primitives.view import broadcast_to, slice_dims
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.arrays.indexing import Advanced, entries_of, traced_mask, within
from jitad.trace.arrays.windows import Window, narrowed, positions
from jitad.trace.dispatch import RESULTS, as_value, call, not_mutable, plain, stand_in


def setitem(x: Any, index: Any, value: Any) -> None:
    """``x[index] = value`` with NumPy's rules and errors."""
    if getattr(x, "is_number", False):
        name = type(x.dtype.type(0).item()).__name__ if x.weak else f"numpy.{x.dtype}"
        raise TypeError(f"{name!r} object does not support item assignment")
    check_writable(x)
    index, value = plain(index), plain(value)
    if type(index) is int and x.ndim:
        index = (index,)
    if type(index) is tuple and len(index) == x.ndim and all(type(i) is int for i in index):
        numbers = within(index, x.shape)
        window = Window(x.window.offset + sum(i * s for i, s in zip(numbers, x.window.strides, strict=True)), (), ())
        write(x, window, value, number=True)
        return
    mask = _traced_mask(x, index)
    if mask is not None and np.size(value) == 1:
        write(x, x.window, choose(mask, cast(as_value(x.builder, value).reshape(()), x.dtype), x))
        return
    entries = entries_of(x, index)
    if any(isinstance(e, Value) for e in entries):
        _set_computed(x, entries, value)
    elif any(isinstance(e, np.ndarray) for e in entries):
        where = positions(x.window)[tuple(entries)]                 # NumPy's own errors
        x.home.write_at(where, fitting(x, value, where.shape, tuple(entries)).number)
    else:
        number = all(isinstance(e, int) for e in entries) and len(entries) == x.ndim
        write(x, narrowed(x.window, lambda a: a[tuple(dotted(entries))]), value, number)   # of a number, a view of it


def dotted(entries: list[Any]) -> list[Any]:
    return entries if any(e is Ellipsis for e in entries) else [*entries, Ellipsis]


def check_writable(x: Any) -> None:
    x.home.check_writable()
    if x.frozen:
        raise ValueError(x.frozen)


def write(x: Any, window: Window, value: Any, number: bool = False) -> None:
    """Store `value` in a window on the storage of `x`."""
    new = fitting(x, value, window.shape, (...,) if not number else ())
    x.home.write(window, new.number)


def fitting(x: Any, value: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Value:
    """`value` in the dtype of `x` and broadcast to `shape`; NumPy's own message where it does not fit."""
    value = as_value(x.builder, value)
    if value.shape != shape:
        extra = value.ndim - len(shape)
        if extra > 0 and index and all(n == 1 for n in value.shape[:extra]):
            value = slice_dims(value, (*(0,) * extra, *(slice(None),) * len(shape)))
        if extra > 0 and not index:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.zeros(1)[0] = np.zeros(value.shape)             # its own errors: of one element, older ones take it
            return cast(value.reshape(()), x.dtype)
        try:
            np.broadcast_to(stand_in(value.shape), shape)
        except ValueError:
            advanced = any(isinstance(e, np.ndarray) for e in index)
            target: Any = np.zeros(x.shape if advanced else shape, np.int8)
            target[index] = stand_in(value.shape)
            raise
    return broadcast_to(cast(value, x.dtype), shape)


def _traced_mask(x: Any, index: Any) -> Value | None:
    """The index if it is one traced Boolean array of the shape of `x`."""
    mask = traced_mask(index)
    return mask if mask is not None and mask.shape == x.shape else None


def _set_computed(x: Any, entries: list[Any], value: Any) -> None:
    """Integer arrays that are known only when the compiled function runs."""
    parts = Advanced(x, entries)
    values, index = parts.in_front(fitting(x, value, parts.shape, (...,)))
    write(parts.rest, parts.rest.window, put(parts.rest, values, *index, axes=parts.axes))


def assign_result(x: Any, ufunc: np.ufunc, result: Any, operands: tuple[Any, ...]) -> None:
    """Store what an operation gave in the array that it was to change."""
    check_writable(x)
    if result.shape != x.shape or not np.can_cast(result.dtype, x.dtype, "same_kind"):
        dummies = [np.ones(np.shape(o), o.dtype if hasattr(o, "dtype") else np.asarray(o).dtype) for o in operands]
        with np.errstate(all="ignore"):
            ufunc(*dummies, out=np.ones(x.shape, x.dtype))          # raises NumPy's own message
    write(x, x.window, result)


def into(target: Any, result: Any, name: str, mask: Any = True) -> Any:
    """Store `result` in the array that a function got as ``out=``, where `mask` is true; gives that array.

    Raises `MutationError` for an array of the caller's, TypeError for a dtype that NumPy would not cast to."""
    if isinstance(target, tuple) and len(target) == 1:
        target = target[0]
    array = target.written_by(result) if hasattr(target, "written_by") else target
    if not isinstance(array, Value):
        if not isinstance(array, np.ndarray):
            raise TypeError("return arrays must be of ArrayType")
        raise not_mutable(result, f"{name} with out=", "make the array in the recorded function, by np.zeros")
    if getattr(array, "is_number", False):
        raise TypeError("return arrays must be of ArrayType")
    builder: Any = array.builder
    builder.fine = False                                # for a template, which writes nothing
    result = as_value(builder, result)
    if not np.can_cast(result.dtype, array.dtype, "same_kind"):
        raise TypeError(f"Cannot cast {name} output from {result.dtype!r} to {array.dtype!r} with casting rule "
                        "'same_kind'")
    if np.broadcast_shapes(result.shape, array.shape) != array.shape:
        raise ValueError(f"non-broadcastable output operand with shape {array.shape} doesn't match the broadcast shape "
                         f"{np.broadcast_shapes(result.shape, array.shape)}")
    array[...] = result if mask is True else call(np.where, mask, result, array)     # type: ignore[index]
    return target


RESULTS.into = into
