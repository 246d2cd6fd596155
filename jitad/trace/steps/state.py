"""What recorded code could change besides its variables: the objects that are reachable from them."""
from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitad.tape.types import Handle, Primitive
from jitad.trace.captures.objects.standins import Poison

__all__ = ["State", "state_of"]

_FIXED = (int, float, complex, str, bytes, type(None), np.generic, np.dtype, type, BuiltinFunctionType, ModuleType,
          range, slice, frozenset, np.ufunc, Handle, Primitive, enum.Enum, type(Ellipsis), type(NotImplemented))


class State:
    """Pictures of objects, which are held so that no other gets their identity. Where it cannot be told whether
    something has changed, it is equal to nothing."""

    __hash__ = None                                      # type: ignore[assignment]

    def __init__(self) -> None:
        self.pictures: dict[int, Any] = {}               # by identity
        self.held: list[Any] = []
        self.unknown = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and not self.unknown and self.pictures == other.pictures

    def changed(self, before: State) -> set[int]:
        """The identities of what is not what it was."""
        return {one for one, picture in self.pictures.items() if before.pictures.get(one, picture) != picture}


def state_of(marks: Any, names: dict[str, Any], left_out: set[str], more: Iterable[Any], without: set[int]) -> State:
    """A picture of all that can be reached from variables, and from `more`, and can change, `without` some objects;
    equal to another one if nothing has."""
    watched = {id(copy) for copy, _, _ in marks.recorder.captures.watched} | without
    found = State()
    seen: set[int] = set()
    waiting = [*more, *(value for name, value in names.items() if name not in left_out and not name.startswith("."))]
    while waiting:
        thing = waiting.pop()
        if type(thing) is Poison or isinstance(thing, _FIXED) or id(thing) in seen or id(thing) in watched:
            continue
        seen.add(id(thing))
        picture = _picture(thing)
        if picture is None:
            found.unknown = True
            continue
        content, inside = picture
        found.pictures[id(thing)] = content
        found.held += [thing, *inside]
        waiting += inside
    return found


def _picture(thing: Any) -> tuple[Any, list[Any]] | None:
    """What is in a thing, to be compared, and what can be reached through it; None for what is not known."""
    kind = type(thing)
    if isinstance(thing, (list, tuple, deque)):
        return [id(x) for x in thing], list(thing)
    if isinstance(thing, dict):
        return [(id(k), id(x)) for k, x in thing.items()], list(thing.values())
    if isinstance(thing, set):
        return sorted(map(id, thing)), list(thing)
    if isinstance(thing, np.ndarray) and kind is np.ndarray:
        return thing.tobytes(), []
    if hasattr(kind, "memory") and hasattr(kind, "jitad_current"):
        own = thing.memory
        return ((id(own.storage),), []) if own.storage is not None else (np.asarray(own.owner).tobytes(), [])
    if isinstance(thing, FunctionType):
        return (), [*_contents(thing)]
    if isinstance(thing, MethodType):
        return (), [thing.__self__, thing.__func__]
    if isinstance(thing, partial):
        return (), [thing.func, *thing.args, *thing.keywords.values()]
    if kind.__module__.partition(".")[0] in ("jitad", "numpy", "scipy", "math", "functools"):
        return (), []
    if hasattr(thing, "__dict__") and not hasattr(kind, "__next__"):
        return [(k, id(x)) for k, x in vars(thing).items()], list(vars(thing).values())
    return None


def _contents(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
