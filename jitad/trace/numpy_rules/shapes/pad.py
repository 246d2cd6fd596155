"""``np.pad`` in all its modes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, implements, refused, stand_in
from jitad.trace.numpy_rules.shapes.shape import broadcast_to

_REPEATING = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Any]] = {"maximum": np.max, "mean": np.mean, "median": np.median,
                                              "minimum": np.min}


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    builder: Any = builder_in(array, pad_width, kwargs)
    a = as_value(builder, array)
    if callable(mode):
        raise refused(builder, "numpy.pad with a function as mode", "use one of NumPy's modes or np.concatenate")
    if isinstance(pad_width, dict):
        if builder_in(pad_width) is None:
            np.pad(stand_in(a.shape), pad_width)                    # which older ones do not take
        pad_width = [pad_width.get(d, pad_width.get(d - a.ndim, 0)) for d in range(a.ndim)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
    if builder_in(pad_width) is not None:
        raise refused(builder, "numpy.pad with traced widths", "pass the widths as static values")
    plain_options = {k: v for k, v in kwargs.items() if builder_in(v) is None}
    np.pad(stand_in(a.shape), pad_width, mode, **plain_options)     # NumPy's own errors
    widths = np.broadcast_to(pad_width, (a.ndim, 2)).tolist()
    for axis, (before, after) in enumerate(widths):
        if before or after:
            a = _along(builder, a, axis, before, after, mode, kwargs)
    return a


def _along(builder: Any, a: Any, axis: int, before: int, after: int, mode: str, options: dict[str, Any]) -> Any:
    n, lead = a.shape[axis], (slice(None),) * axis
    number_pad: Any = np.pad
    if mode in _REPEATING:
        odd = options.get("reflect_type") == "odd"
        if odd and mode in ("reflect", "symmetric"):
            return _odd(a, axis, before, after, mode)
        return a[(*lead, number_pad(np.arange(n), (before, after), mode))]
    parts = [a]
    for side, width in ((0, before), (1, after)):
        if not width:
            continue
        shape = (*a.shape[:axis], width, *a.shape[axis + 1:])
        parts.insert(side * len(parts), _edge(builder, a, axis, side, shape, mode, options))
    return np.concatenate(parts, axis)


def _edge(builder: Any, a: Any, axis: int, side: int, shape: tuple[int, ...], mode: str,
          options: dict[str, Any]) -> Any:
    """What is put before (`side` 0) or after the elements."""
    lead, n = (slice(None),) * axis, a.shape[axis]
    if mode == "empty":
        return np.zeros(shape, a.dtype)
    if mode == "constant":
        return cast(broadcast_to(as_value(builder, _of(options.get("constant_values", 0), axis, side, a.ndim)), shape),
                    a.dtype)
    if mode in _STATISTICS:
        length = options.get("stat_length")
        length = n if length is None else min(int(_of(length, axis, side, a.ndim)), n)
        some = a[(*lead, slice(length) if side == 0 else slice(n - length, None))]
        value = _STATISTICS[mode](some, axis=axis, keepdims=True)
        return cast(broadcast_to(_rounded(value, a), shape), a.dtype)
    end = as_value(builder, _of(options.get("end_values", 0), axis, side, a.ndim))
    inner = a[(*lead, slice(1) if side == 0 else slice(n - 1, None))]
    width = shape[axis]
    steps = np.arange(width) if side == 0 else np.arange(width, 0, -1) - 1
    steps = steps.reshape((-1,) + (1,) * (a.ndim - axis - 1))
    ramp = end + (inner - end) / width * steps                      # from the end, which is reached, to the edge
    return cast(np.floor(ramp) if a.dtype.kind in "iu" else ramp, a.dtype)


def _rounded(value: Any, a: Any) -> Any:
    return np.rint(value) if a.dtype.kind in "iu" and value.dtype.kind == "f" else value


def _of(given: Any, axis: int, side: int, ndim: int) -> Any:
    """The value of an option for one side of an axis."""
    if isinstance(given, Value):
        pairs: Any = broadcast_to(given, (ndim, 2)) if given.ndim else None
        return given if pairs is None else pairs[axis, side]
    if builder_in(given) is not None:
        pair = given[axis] if len(given) == ndim and isinstance(given[axis], (list, tuple)) else given[-1] if (
            len(given) == 1) else given
        return pair[side] if isinstance(pair, (list, tuple)) else pair
    return np.broadcast_to(given, (ndim, 2))[axis, side]


def _odd(a: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Reflections about the edge's value, one length of the array after the other."""
    lead = (slice(None),) * axis
    while before or after:
        n = a.shape[axis]
        skip = 1 if mode == "reflect" and n > 1 else 0
        room = n - skip if n > 1 or mode == "symmetric" else 1
        left, right = min(before, room), min(after, room)
        head, tail = a[(*lead, slice(1))], a[(*lead, slice(n - 1, None))]
        parts = [a]
        if left:
            parts.insert(0, 2 * head - np.flip(a[(*lead, slice(skip, left + skip))], axis))
        if right:
            parts.append(2 * tail - np.flip(a[(*lead, slice(n - skip - right, n - skip))], axis))
        a = np.concatenate(parts, axis)
        before, after = before - left, after - right
    return a
