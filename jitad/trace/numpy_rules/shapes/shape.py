"""NumPy functions that rearrange: shapes, axes, copies of elements, constants like an array."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives import index
from jitad.primitives.core import cast
from jitad.primitives.view import broadcast_to as _broadcast
from jitad.primitives.view import expand_dims as _expand
from jitad.primitives.view import squeeze as _squeeze
from jitad.primitives.view import transpose as _transpose
from jitad.tape.builder import Value
from jitad.trace.arrays import windows
from jitad.trace.arrays.indexing import boxed, getitem
from jitad.trace.arrays.viewing import through_view
from jitad.trace.dispatch import SHARING, as_value, builder_in, implements, lift_all, refused, stand_in


@implements(np.reshape)
def reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    a, = lift_all(a)
    shape = newshape if shape is None else shape
    target = stand_in(a.shape).reshape(shape).shape
    if order not in ("C", "F") and a.ndim > 1:
        raise refused(a, f"numpy.reshape with order={order!r}", "use order='C' or order='F'")
    return reshaped(a, target, order if a.ndim > 1 or len(target) > 1 else "C")


def reshaped(a: Any, shape: tuple[int, ...], order: str = "C") -> Any:
    """`a` in another shape: a view or a copy, whichever it is in NumPy."""
    number = getattr(a, "is_number", False)
    if a.size and hasattr(a, "window_on") and not number:
        home = a.home
        window = windows.reshaped(a.window, shape, order)
        if window is not None and (home.plain or a.ndim < 2 or window.essence == a.window.essence):
            return a.window_on(window)
    result = index.reshape(a, shape) if order == "C" else transpose(index.reshape(transpose(a), shape[::-1]))
    if hasattr(a, "detached"):
        result = result.detached()
        if a.size and not number and not a.home.plain:
            a.home.may_share_with(result.home)
    return result if shape or number else boxed(result)


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    a, = lift_all(a)
    order = "C" if order == "K" and a.ndim < 2 else order
    ordered = a.laid_out(order) if hasattr(a, "laid_out") else a
    result = reshape(ordered, (-1,), order)
    if ordered is not a and not a.home.plain:
        a.home.may_share_with(result.home)
    return result


READ_ONLY = "assignment destination is read-only"


def _viewer(function: Any) -> None:
    """Enter a NumPy function that returns views of its first argument."""
    def impl(a: Any, *args: Any, **kwargs: Any) -> Any:
        a, = lift_all(a)
        if function is np.flip and not a.ndim:
            return getitem(a, np.flip(stand_in(()), *args, **kwargs).shape)           # a number, in NumPy too
        result = through_view(a, function, *args, **kwargs)
        if function is np.diagonal:
            frozen(result)
        array = isinstance(result, Value) and result.ndim == 0 and not getattr(a, "is_number", False)
        return boxed(result) if array else result
    impl.__name__ = function.__name__
    implements(function)(impl)


_VIEWS = ("transpose matrix_transpose permute_dims swapaxes moveaxis rollaxis expand_dims squeeze flip fliplr flipud "
          "rot90 diagonal broadcast_to split array_split hsplit vsplit dsplit").split()
for _name in _VIEWS:
    if hasattr(np, _name) and _name != "broadcast_to":
        _viewer(getattr(np, _name))
_viewer(np.linalg.matrix_transpose)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """As NumPy does it, whose elements of one dimension are numbers."""
    a, = lift_all(x)
    if not a.ndim:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(through_view(a, np.moveaxis, axis, 0))


if hasattr(np, "unstack"):
    implements(np.unstack)(unstack)
    SHARING.add(np.unstack)


def transpose(a: Any) -> Any:
    """All axes reversed."""
    return _transpose(a, tuple(reversed(range(a.ndim))))


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return frozen(through_view(x, lambda a: np.diagonal(a, offset, -2, -1)))


def frozen(result: Any) -> Any:
    """A view that NumPy lets nobody write to."""
    if hasattr(result, "frozen"):
        result.frozen = READ_ONLY
    return result


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    a, = lift_all(array)
    if getattr(a, "is_number", True):
        result = _broadcast(a, np.broadcast_to(stand_in(a.shape), shape).shape)
        return frozen(result) if result.ndim else result
    return frozen(through_view(a, np.broadcast_to, shape))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    arrays = lift_all(*args)
    shape = np.broadcast(*(stand_in(a.shape) for a in arrays)).shape if len(arrays) < 32 else np.broadcast_shapes(
        *(a.shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def _atleast(function: Any) -> Callable[..., Any]:
    least = int(function.__name__[-2])

    @implements(function)
    def atleast(*arys: Any) -> Any:
        builder = builder_in(arys)
        results = tuple(a if isinstance(a, Value) and a.ndim >= least else through_view(as_value(builder, a), function)
                        for a in arys)
        return results[0] if len(results) == 1 else results
    return atleast


atleast_1d, atleast_2d, atleast_3d = map(_atleast, (np.atleast_1d, np.atleast_2d, np.atleast_3d))


def at_least(a: Any, ndim: int) -> Any:
    """`a` with dimensions of length one in front up to `ndim`."""
    return _expand(a, tuple(range(ndim - a.ndim))) if a.ndim < ndim else a


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    a, = lift_all(a)
    if axis is None:
        return index.reshape(roll(ravel(a), np.sum(shift), 0), a.shape)
    axes = np.lib.array_utils.normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
    shifts = np.broadcast(shift, axes)
    if shifts.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    for by, ax in shifts:
        n = a.shape[ax]
        by = int(by) % n if n else 0
        if by:
            lead = (slice(None),) * int(ax)
            a = index.concatenate(getitem(a, (*lead, slice(n - by, None))), getitem(a, (*lead, slice(n - by))),
                                  axis=int(ax))
    return a


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    builder = builder_in(a, repeats)
    if builder_in(repeats) is not None:
        raise refused(builder, "numpy.repeat with traced counts", "the shape of its result depends on data; pass the "
                      "counts as a static value")
    a, = lift_all(a)
    if axis is None:
        a, axis = ravel(a), 0
    a = at_least(a, 1)
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    if np.ndim(repeats) or not isinstance(repeats, (int, np.integer)) or repeats < 0:
        rows = np.repeat(np.arange(a.shape[axis]), repeats)
        return getitem(a, (*(slice(None),) * axis, rows))
    wide = (*a.shape[:axis + 1], int(repeats), *a.shape[axis + 1:])
    flat = (*a.shape[:axis], a.shape[axis] * int(repeats), *a.shape[axis + 1:])
    return index.reshape(_broadcast(_expand(a, (axis + 1,)), wide), flat)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    a, = lift_all(A)
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    reps = (1,) * (a.ndim - len(reps)) + tuple(int(r) for r in reps)
    a = at_least(a, len(reps))
    wide = tuple(m for pair in zip(reps, a.shape, strict=True) for m in pair)
    narrow = _expand(a, tuple(range(0, 2 * a.ndim, 2)))
    return index.reshape(_broadcast(narrow, wide), tuple(r * n for r, n in zip(reps, a.shape, strict=True)))


SHARING.update((np.reshape, np.ravel, np.diag, np.linalg.diagonal, np.linalg.matrix_transpose, np.broadcast_to, np.real,
                np.broadcast_arrays, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.real_if_close,
                *(getattr(np, name) for name in _VIEWS if hasattr(np, name))))


def _like(function: Any, number: float) -> None:
    @implements(function)
    def like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
             device: Any = None) -> Any:
        a = as_value(builder_in(a, shape), a)
        return np.full(a.shape if shape is None else shape, number, a.dtype if dtype is None else dtype)


_like(np.zeros_like, 0)
_like(np.ones_like, 1)
_like(np.empty_like, 0)


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
              device: Any = None) -> Any:
    dtype = np.asarray(a).dtype if dtype is None and not isinstance(a, Value) else dtype or a.dtype
    shape = np.shape(a) if shape is None else shape
    if builder_in(fill_value) is None:
        return np.full(shape, fill_value, dtype)
    result = cast(broadcast_to(fill_value, shape), dtype)
    return result if result.ndim else boxed(result)


def move_to_end(a: Any, axes: tuple[int, ...]) -> Any:
    """`a` with `axes` last, in order."""
    return _transpose(a, (*(d for d in range(a.ndim) if d not in axes), *axes))


def flatten_end(a: Any, count: int) -> Any:
    """`a` with its last `count` dimensions in one."""
    lead = a.shape[:a.ndim - count]
    return index.reshape(a, (*lead, math.prod(a.shape[a.ndim - count:])))


drop = _squeeze
