"""NumPy functions that pick elements, put them in other places, or read between them."""
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import concatenate
from jitad.primitives.view import broadcast_to, slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import Node
from jitad.trace.arrays.choice import choose, truth
from jitad.trace.arrays.indexing import boxed, getitem
from jitad.trace.arrays.positions import unflattened
from jitad.trace.attempts import bound_of
from jitad.trace.dispatch import as_value, builder_in, implements, lift_all, refused
from jitad.trace.numpy_rules.elements.elementwise import result_dtype_key
from jitad.trace.numpy_rules.reductions.order import line, searchsorted, sorting_order
from jitad.trace.numpy_rules.shapes.shape import ravel
from jitad.trace.ufuncs import apply_ufunc

# --- interpolation -----------------------------------------------------------------------------------------

@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation in float64. At a knot the slope is that on its right, at the last one that on
    its left. As in NumPy, nothing sees to it that `xp` ascends."""
    builder = builder_in(x, xp, fp, left, right, period)
    x, xp, fp = (cast(as_value(builder, v), np.float64) for v in (x, xp, fp))
    np.interp(0.0, np.zeros(xp.shape), np.zeros(fp.shape))          # NumPy's own errors
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        x, xp = apply_ufunc(np.remainder, x, period), apply_ufunc(np.remainder, xp, period)
        order = sorting_order(xp)
        xp, fp = getitem(xp, order), getitem(fp, order)
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    y = _between(x, xp, fp) if xp.size > 1 else broadcast_to(fp[0], x.shape)
    y = choose(x < xp[0], left, y)
    y = choose(x > xp[-1], right, y)
    return choose(np.isnan(x), x, y) if xp.size > 1 else y


def _between(x: Any, xp: Any, fp: Any) -> Any:
    """The line through the neighbouring points, by the one below; at the last one by that."""
    place = np.minimum(np.maximum(searchsorted(xp, x, "right") - 1, 0), xp.size - 2)
    x0, x1, f0, f1 = (getitem(v, place + k) for v in (xp, fp) for k in (0, 1))
    slope = (f1 - f0) / (x1 - x0)
    at_end = x == xp[-1]
    xb, fb = choose(at_end, x1, x0), choose(at_end, f1, f0)
    y = slope * (x - xb) + fb
    other = slope * (x - x1) + f1                                   # where the first way gives NaN, as NumPy
    other = choose(np.isnan(other) & (f0 == f1), f0, other)
    return choose(np.isnan(y), choose(x == xb, fb, other), y)


# --- choices -------------------------------------------------------------------------------------------------

@implements(np.choose)
def choose_(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    builder = builder_in(a, choices)
    parts = list(choices) if isinstance(choices, (list, tuple)) else [choices[i] for i in range(len(choices))]
    np.choose(0, [0], mode=mode)  # type: ignore[call-overload]      # NumPy's own error for the mode
    a, n = as_value(builder, a) if builder_in(a) is not None else np.asarray(a), len(parts)
    if a.dtype.kind == "f" or not parts:
        np.choose(np.zeros(1, a.dtype), [0] if parts else [])       # raises NumPy's own error
    if mode == "raise" and ((a < 0) | (a >= n)).any():              # a recorded branch if `a` is traced
        raise ValueError("invalid entry in choice array")
    a = cast(as_value(builder, a), np.int64)
    a = apply_ufunc(np.remainder, a, n) if mode == "wrap" else np.minimum(np.maximum(a, 0), n - 1)
    dtype = np.result_type(*map(result_dtype_key, parts))
    result = cast(as_value(builder, parts[-1]), dtype)
    for k in range(n - 2, -1, -1):
        result = choose(a == k, cast(as_value(builder, parts[k]), dtype), result)
    return broadcast_to(result, np.broadcast_shapes(a.shape, result.shape))


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """A function that works element by element is applied to all of `x`, of which what does not count is dropped; any
    other to the elements that it is for, whose number is then guarded."""
    builder = builder_in(x, condlist)
    x = as_value(builder, x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    if len(conditions) and np.ndim(conditions[0]) == 0 and x.ndim:   # one condition, given as a list of truths
        conditions = [conditions]
    masks = [truth(as_value(builder, c)) for c in conditions]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(np.stack(masks), axis=0))
    elif len(funclist) != len(masks):
        n = len(masks)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    y = broadcast_to(as_value(builder, np.zeros((), x.dtype)), x.shape)
    for mask, function in zip(masks, funclist, strict=True):
        if not callable(function):
            y = choose(mask, cast(as_value(builder, function), x.dtype), y)
            continue
        whole = _elementwise(builder, function, x, args, kw)
        if whole is not None:
            y = choose(mask, cast(whole, x.dtype), y)
        else:
            y = y.copy()
            y[mask] = function(getitem(x, mask), *args, **kw)
    return boxed(y)


def _elementwise(builder: Any, function: Callable[..., Any], x: Any, args: Any, kw: Any) -> Any:
    """``function(x)`` if the nodes that it records are elementwise ones of the shape of `x`; else None, and nothing
    is left of the attempt."""
    start, guards = len(builder.nodes), dict(builder.guards)
    refusals, errors = list(builder.refusals), list(builder.errors)
    try:
        result = as_value(builder, function(x, *args, **kw))
        fine = all(_each_alone(builder, n, x.shape) for n in builder.nodes[start:])
        if fine and builder.guards == guards and result.shape in (x.shape, ()):
            return result
    except Exception:                                               # it will be raised again on the elements
        pass
    builder.guards, builder.refusals, builder.errors[:] = guards, refusals, errors
    return None


def _each_alone(builder: Any, node: Node, shape: tuple[int, ...]) -> bool:
    """Whether a node computes each element of its own, or a number."""
    if node.index_map is not None:
        return node.aval.shape == shape and builder.nodes[node.inputs[0]].aval.size == 1
    if node.constant is not None:
        return node.aval.size == 1
    return node.elementwise and (node.aval.shape == shape or node.aval.size == 1)


# --- elements in other places ----------------------------------------------------------------------------------

def rearranged(flat: Any, where: np.ndarray) -> Any:
    """Elements of an array of one dimension at known places, as slices if these are few."""
    places = where.reshape(-1)
    cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), places.size]
    if where.ndim == 1 and places.size and len(cuts) <= 5:
        runs = [slice_dims(flat, (slice(int(places[i]), int(places[i]) + j - i),))
                for i, j in pairwise(cuts)]
        return runs[0] if len(runs) == 1 else concatenate(*runs, axis=0)
    return getitem(flat, where)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    builder: Any = builder_in(arr, obj, values)
    arr = as_value(builder, arr)
    values = cast(as_value(builder, values), arr.dtype)
    if builder_in(obj) is not None:
        obj = builder.decide_all(as_value(builder, obj))             # where a value goes is a recorded branch
    n = arr.size
    where = np.insert(np.arange(n).reshape(arr.shape), obj, np.arange(values.size).reshape(values.shape) + n, axis)
    return rearranged(np.concatenate([ravel(arr), ravel(values)]), where)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    builder = builder_in(arr, obj)
    arr = as_value(builder, arr)
    if builder_in(obj) is None:
        return rearranged(ravel(arr), np.delete(np.arange(arr.size).reshape(arr.shape), obj, axis))
    arr, axis = line(arr, axis)
    left = _left(as_value(builder, obj), arr.shape[axis])
    return getitem(arr, (*(slice(None),) * axis, left))


def _left(obj: Any, n: int) -> Any:
    """What is left of `n` places: of traced ones that go, one or a mask or several."""
    if obj.dtype.kind == "b":
        if obj.shape != (n,):
            np.delete(np.zeros(n), np.zeros(obj.shape, bool))       # NumPy's own error
        return ~obj
    if bound_of(obj) > n and ((obj < -n) | (obj >= n)).any():       # a recorded branch
        np.delete(np.zeros(n), obj.builder.concrete(obj.number))    # raises NumPy's own error
    if obj.size == 1:
        gone = obj.reshape(())
        left = np.arange(n - 1)
        return left + (left >= choose(gone < 0, gone + n, gone))
    left = as_value(obj.builder, np.ones(n, bool)).copy()
    left[obj.reshape(-1)] = False
    return left


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    places, = lift_all(indices)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(shape, dtype=np.int64))
    np.unravel_index(np.zeros(0, places.dtype), shape, order=order)  # type: ignore[call-overload]  # NumPy's own errors
    if bound_of(places) > size and ((places < 0) | (places >= size)).any():      # a recorded branch
        np.unravel_index(places.builder.concrete(places.number), shape)      # raises NumPy's own error
    found = unflattened(cast(places, np.int64), shape if order == "C" else shape[::-1])
    return found if order == "C" else found[::-1]


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    builder = builder_in(multi_index, mode)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    parts = [as_value(builder, i) for i in multi_index]
    modes = (mode,) * len(dims) if isinstance(mode, str) else tuple(mode)
    nothing: Any = tuple(np.zeros(0, p.dtype) for p in parts)
    np.ravel_multi_index(nothing, dims, mode=modes, order=order)  # type: ignore[call-overload]  # NumPy's own errors
    steps = np.cumprod([1, *(dims[:0:-1] if order == "C" else dims[:-1])])
    total: Any = 0
    for part, n, step, how in zip(parts, dims, steps[::-1] if order == "C" else steps, modes, strict=True):
        place: Any = cast(part, np.int64)
        if how == "raise" and bound_of(part) > n and ((place < 0) | (place >= n)).any():      # a recorded branch
            raise ValueError("invalid entry in coordinates array")
        if how != "raise":
            place = apply_ufunc(np.remainder, place, n) if how == "wrap" else np.minimum(np.maximum(place, 0), n - 1)
        total = total + place * int(step)
    return total


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    a, = lift_all(a)
    return rearranged(ravel(a), np.resize(np.arange(a.size), new_shape)) if a.size else np.resize(
        np.zeros(a.shape, a.dtype), new_shape)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    builder = builder_in(ary, to_end, to_begin)
    flat = ravel(as_value(builder, ary))
    steps = flat[1:] - flat[:-1]
    for what, ends in (("to_begin", to_begin), ("to_end", to_end)):
        if ends is None:
            continue
        given = ends.dtype if isinstance(ends, Value) else np.asanyarray(ends).dtype
        if not np.can_cast(given, steps.dtype, "same_kind"):
            raise TypeError(f"dtype of `{what}` must be compatible with input `ary` under the `same_kind` rule.")
    parts: Any = [cast(ravel(as_value(builder, p)), steps.dtype) for p in (to_begin, steps, to_end) if p is not None]
    return np.concatenate(parts)


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    arr, = lift_all(arr)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, arr.ndim))
    lines = np.moveaxis(arr, axis, -1)
    lead = lines.shape[:-1]
    if 0 in lead:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [func1d(lines[at], *args, **kwargs) for at in np.ndindex(lead)]
    each = np.stack([as_value(arr.builder, f) for f in found])
    rest = each.shape[1:]
    places = [*range(axis), *range(axis + len(rest), len(lead) + len(rest))]
    return np.moveaxis(each.reshape(lead + rest), range(len(lead)), places)


__all__ = ["insert", "interp", "rearranged"]


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False,
                        writeable: bool = False) -> Any:
    """The windows are looked up by their places; they cannot be written, as NumPy's by default."""
    if writeable:
        raise refused(x, "numpy.lib.stride_tricks.sliding_window_view with writeable=", "write into the array itself")
    places = np.lib.stride_tricks.sliding_window_view(np.arange(x.size).reshape(x.shape), window_shape, axis)
    windows = ravel(x)[places]
    windows.frozen = "assignment destination is read-only"
    return windows
