"""What a loop walks, as a thing with a length whose element at a traced position is known."""
from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.captures.extremes import are_alike
from jitad.trace.dispatch import plain
from jitad.trace.steps.held import LARGEST
from jitad.trace.values.local import LocalArray, local
from jitad.trace.values.tracer import Tracer

__all__ = ["Zipped", "Walk", "counts_steps", "numbers_of", "walk_over"]

SHORT = 256               # steps of a loop that may as well be recorded one by one


class Zipped:
    """``enumerate(...)``, ``zip(...)`` or ``reversed(...)`` before it is walked."""

    def __init__(self, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.kind, self.args, self.kwargs = kind, args, kwargs

    def __iter__(self) -> Any:
        return iter(self.kind(*self.args, **self.kwargs))


class Walk:
    """`length` elements; ``at(t)`` is the one at a traced position. `copied` are the arrays of which it walks copies:
    true as long as no step writes them."""

    def __init__(self, length: int, at: Callable[[Any], Any], copied: Sequence[Any] = ()) -> None:
        self.length, self.at, self.copied = length, at, copied
        self._before = [*map(_content, copied)]

    def is_steady(self) -> bool:
        return [*map(_content, self.copied)] == self._before


def _content(array: Any) -> Any:
    """What tells whether an array has been written."""
    if type(array) in (list, tuple):
        return [*map(id, array)]
    own = array.memory if type(array) is LocalArray else array
    storage = getattr(own, "storage", None)
    if storage is None:
        return np.asarray(own.owner).tobytes() if own is not array else 0
    return storage.version


def walk_over(recorder: Any, things: Any, doubt: Callable[[], Any]) -> Walk | None:
    """The walk over `things`; None where an element at a traced position cannot be told. `doubt` raises, where an
    element is written that is a copy."""
    if isinstance(things, Zipped):
        return _several(recorder, things, doubt)
    if isinstance(things, range):
        return Walk(len(things), lambda t: _affine(t, things.start, things.step, weak=True))
    array = plain(things)
    if isinstance(array, Value) and array.ndim:
        return Walk(array.shape[0], lambda t: things[t])
    if isinstance(array, np.ndarray) and array.ndim and array.dtype.kind in "fiub" and len(array):
        if array.ndim == 1 and array.dtype == np.int64 and len(array) > 1 and len({*np.diff(array).tolist()}) == 1:
            first, step = int(array[0]), int(array[1] - array[0])
            return Walk(len(array), lambda t: _affine(t, first, step, weak=False),
                        [things] if type(things) is LocalArray else [])
        if type(things) is LocalArray:
            return Walk(len(array), lambda t: things[t])
        return Walk(len(array), lambda t: recorder.value(recorder.const(array).number)[t])
    if type(things) in (list, tuple) and things:
        return _listed(recorder, things, doubt)
    return None


def _affine(t: Any, start: int, step: int, weak: bool) -> Any:
    number = t if step == 1 else t * step
    number = number if start == 0 else number + start
    number = t.builder.value(cast(Value(t.builder, number.number), np.int64).number)
    number.weak = weak
    return number


def _several(recorder: Any, things: Zipped, doubt: Callable[[], Any]) -> Walk | None:
    kind, args, options = things.kind, things.args, things.kwargs
    if kind is builtins.reversed and len(args) == 1 and not isinstance(args[0], Zipped):
        return walk_over(recorder, args[0][::-1], doubt) if hasattr(type(args[0]), "__getitem__") else None
    parts = [walk_over(recorder, arg, doubt) for arg in (args[:1] if kind is builtins.enumerate else args)]
    if not parts or any(part is None for part in parts):
        return None
    length = min(part.length for part in parts)                     # type: ignore[union-attr]
    copied = [array for part in parts for array in part.copied]     # type: ignore[union-attr]
    if kind is builtins.enumerate:
        start = options.get("start", args[1] if len(args) > 1 else 0)
        return Walk(length, lambda t: (_affine(t, start, 1, weak=True), parts[0].at(t)),            # type: ignore[union-attr]
                    copied) if type(start) is int else None
    if kind is builtins.zip and not (options.get("strict") and len({p.length for p in parts}) > 1):  # type: ignore[union-attr]
        return Walk(length, lambda t: tuple(part.at(t) for part in parts), copied)                  # type: ignore[union-attr]
    return None


def numbers_of(recorder: Any, things: Any) -> tuple[Any, bool] | None:
    """The numbers of a list as an array, and whether they are Python's; None if they are not of one kind."""
    kinds = {type(x) for x in things}
    whole = kinds == {int}
    if not things or len(things) > LARGEST or not (whole or are_alike(recorder, things)):
        return None
    if Tracer not in kinds:
        return recorder.value(recorder.const(np.array(things, np.int64 if whole else np.float64)).number), (
            whole or kinds <= {int, float})
    stacked = plain(local(np.stack(things)))
    return recorder.value(stacked.number), all(x.weak if type(x) is Tracer else type(x) in (int, float) for x in things)


def _listed(recorder: Any, things: Any, doubt: Callable[[], Any]) -> Walk | None:
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
        if element.ndim:
            element.home.doubt = doubt
        return element
    return Walk(len(items), at, [things, *(x for x in things if getattr(x, "ndim", 0))])


def counts_steps(run: Any, number: int) -> bool:
    """Whether a node depends on nothing but the position in a loop, which is a short one."""
    stack, found = [number], set[int]()
    while stack:
        n = stack.pop()
        if n in run.dependent and n not in found:
            found.add(n)
            stack += run.recorder.nodes[n].inputs
    placeholders = {n for n in found if run.recorder.nodes[n].is_input}
    return run.walk is not None and run.walk.length <= SHORT and placeholders == {run.position}
