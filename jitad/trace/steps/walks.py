"""What a loop walks, as a thing with a length whose element at a traced position is known."""
from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.dispatch import plain
from jitad.trace.values.local import local

__all__ = ["Zipped", "Walk", "walk_over"]


class Zipped:
    """``enumerate(...)``, ``zip(...)`` or ``reversed(...)`` before it is walked."""

    def __init__(self, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.kind, self.args, self.kwargs = kind, args, kwargs

    def __iter__(self) -> Any:
        return iter(self.kind(*self.args, **self.kwargs))


class Walk:
    """`length` elements; ``at(t)`` is the one at a traced position."""

    def __init__(self, length: int, at: Callable[[Any], Any]) -> None:
        self.length, self.at = length, at


def walk_over(recorder: Any, things: Any) -> Walk | None:
    """The walk over `things`; None where an element at a traced position cannot be told."""
    if isinstance(things, Zipped):
        return _several(recorder, things)
    if isinstance(things, range):
        return Walk(len(things), lambda t: _affine(t, things.start, things.step, weak=True))
    array = plain(things)
    if isinstance(array, Value) and array.ndim:
        return Walk(array.shape[0], lambda t: things[t])
    if isinstance(array, np.ndarray) and array.ndim and array.dtype.kind in "fiub" and len(array):
        if array.ndim == 1 and array.dtype == np.int64 and len(array) > 1 and len({*np.diff(array).tolist()}) == 1:
            return Walk(len(array), lambda t: _affine(t, int(array[0]), int(array[1] - array[0]), weak=False))
        return Walk(len(array), lambda t: recorder.value(recorder.const(array).number)[t])
    if type(things) in (list, tuple) and things:
        return _listed(recorder, things)
    return None


def _affine(t: Any, start: int, step: int, weak: bool) -> Any:
    number = t if step == 1 else t * step
    number = number if start == 0 else number + start
    number = t.builder.value(cast(Value(t.builder, number.number), np.int64).number)
    number.weak = weak
    return number


def _several(recorder: Any, things: Zipped) -> Walk | None:
    kind, args, options = things.kind, things.args, things.kwargs
    if kind is builtins.reversed and len(args) == 1 and not isinstance(args[0], Zipped):
        return walk_over(recorder, args[0][::-1]) if hasattr(type(args[0]), "__getitem__") else None
    parts = [walk_over(recorder, arg) for arg in (args[:1] if kind is builtins.enumerate else args)]
    if not parts or any(part is None for part in parts):
        return None
    length = min(part.length for part in parts)                     # type: ignore[union-attr]
    if kind is builtins.enumerate:
        start = options.get("start", args[1] if len(args) > 1 else 0)
        return Walk(length, lambda t: (_affine(t, start, 1, weak=True), parts[0].at(t))) if (       # type: ignore[union-attr]
            type(start) is int) else None
    if kind is builtins.zip and not (options.get("strict") and len({p.length for p in parts}) > 1):  # type: ignore[union-attr]
        return Walk(length, lambda t: tuple(part.at(t) for part in parts))                          # type: ignore[union-attr]
    return None


def _listed(recorder: Any, things: Any) -> Walk | None:
    """Numbers of one kind, or arrays of one shape, as rows of one array."""
    items = [plain(x) for x in things]
    kinds = {type(x) for x in items}
    if kinds <= {float} or kinds <= {int}:
        rows = recorder.value(recorder.const(np.array(items)).number)
        weak = True
    elif all(isinstance(x, (Value, np.ndarray, np.floating)) for x in items):
        if len({(np.shape(x) if not isinstance(x, Value) else x.shape, x.dtype, getattr(x, "weak", False))
                for x in items}) > 1:
            return None
        rows, weak = plain(local(np.stack(items))), getattr(items[0], "weak", False)
        rows = rows if isinstance(rows, Value) else recorder.value(recorder.const(rows).number)
    else:
        return None

    def at(t: Any) -> Any:
        element = rows[t]
        element.weak = weak
        return element
    return Walk(len(items), at)
