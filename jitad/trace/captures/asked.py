"""What recorded code asks of its arguments by ``is``.

Each array or container among the arguments has a stand-in of its own, also where two are one object: so a derivative
knows them apart. In copied code ``a is b`` is a call of `Asked.is_` (`trace.steps.asking`), which answers as for the
objects that were given, and notes what was asked: later calls are served if the answers are the same. Where that call
cannot be put into the code, all arguments have to be different objects.
"""
from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.errors import CaptureError
from jitad.trace.captures.notes import Notes
from jitad.trace.leaves import is_dynamic
from jitad.trace.pytree import objects_in

__all__ = ["FRESH", "Asked", "Sameness"]

Sameness = tuple[tuple[Any, ...], bool]                  # places, as numbers of objects or paths; all one, or all apart
FRESH: Any = object()                                    # instead of an object that is made for each call
_SINGLE = (type(None), bool, type(Ellipsis), type(NotImplemented), enum.Enum, type)


class Asked:
    """The arguments of one recording: `objects` are those that were given, containers before what is in them, in the
    order of `objects_in`. `answers` are what was asked, in its order."""

    def __init__(self, captures: Notes, objects: Sequence[Any]) -> None:
        self.captures, self.objects = captures, objects
        self.answers: dict[Sameness, None] = {}
        self.unseen = ""                                 # a function whose questions are not seen
        self._places: dict[int, list[int]] = {}
        self._held: list[Any] = []
        self._meant: dict[int, Any] = {}

    def given(self, stand_ins: Iterable[Any]) -> None:
        """What stands for the arguments."""
        if not self.objects:
            return
        found = [thing for value in stand_ins for _, thing in objects_in(value, "")]
        for place, (thing, given) in enumerate(zip(found, self.objects, strict=True)):
            if given is not FRESH and (is_dynamic(given) or not isinstance(given, _SINGLE)):
                self._places.setdefault(id(thing), []).append(place)
        self._held += found

    def mean(self, value: Any, other: Any) -> None:
        """A value is what a differentiated function has in place of another."""
        for (_, a), (_, b) in zip(objects_in(value, ""), objects_in(other, ""), strict=True):
            self._meant[id(a)] = b
            self._held.append(a)

    # --- what the code calls -----------------------------------------------------------------------
    def is_(self, a: Any, b: Any, /) -> bool:
        a, b = (self._meant.get(id(x), x) for x in (a, b))
        ours, others = self._places.get(id(a), []), self._places.get(id(b), [])
        if a is b:
            if len(ours) > 1:
                self._note(tuple(ours), True)
            for path in self._paths(a, ours):
                self._note((ours[0], path), True)
            return True
        answer = False
        for i in ours:
            for j in others:
                answer = self._ask(i, j, self.objects[j])
        for places, thing in ((ours, b), (others, a)):
            for path in self._paths(thing, places):
                for i in places:
                    answer = self._ask(i, path, self.captures.taken[path][0]) or answer
        return answer

    def is_not(self, a: Any, b: Any, /) -> bool:
        return not self.is_(a, b)

    def is_same(self, a: Any, b: Any) -> bool:
        """As `is_`, also of two captured objects that have a stand-in for each of the ways in which they were found."""
        if self.is_(a, b):
            return True
        found = [[(path, value) for path, (value, taken) in self.captures.taken.items() if taken is x] for x in (a, b)]
        for path, value in found[0]:
            for other, thing in found[1]:
                self.captures.guard(True, path.step("one", other) if value is thing else path.step("apart", (other,)))
                if value is thing:
                    return True
        return False

    def _paths(self, thing: Any, places: list[int]) -> list[Path]:
        """Where captured objects are that `thing` stands for, and that may be those at `places`."""
        kinds = {_kind(self.objects[i]) for i in places}
        return [path for path, (value, taken) in self.captures.taken.items()
                if taken is thing and _kind(value) in kinds] if places else []

    def _ask(self, place: int, other: Any, thing: Any) -> bool:
        answer = self.objects[place] is thing
        self._note((place, other), answer)
        return answer

    def _note(self, places: tuple[Any, ...], same: bool) -> None:
        self.answers[places, same] = None

    # --- the end -----------------------------------------------------------------------------------
    def finish(self) -> tuple[Sameness, ...]:
        """All that was asked. Raises `CaptureError` where it was not seen, and two arguments are one object."""
        kinds: dict[Any, dict[int, Any]] = {}
        if self.unseen:
            for place, thing in enumerate(self.objects):
                number = is_dynamic(thing) and not isinstance(thing, np.ndarray)
                if not (number or isinstance(thing, (*_SINGLE, str, bytes))):
                    known = kinds.setdefault(_kind(thing), {})
                    if id(thing) in known and not (thing is FRESH or (type(thing) is tuple and not thing)):
                        raise CaptureError(
                            f"`{self.unseen}` compares by `is`, its source is not at hand, and two arguments of "
                            f"`{self.captures.recorder.function_name}` are one object; pass a copy for one of them")
                    known[id(thing)] = place
            for path, (value, _) in self.captures.taken.items():
                known = kinds.get(_kind(value), {})
                if isinstance(known.get(id(value)), int):
                    raise CaptureError(f"`{self.unseen}` compares by `is`, its source is not at hand, and an argument "
                                       f"is the object at {path}; pass a copy of it")
                if known:
                    known[id(value)] = path
        for places in kinds.values():
            if len(places) > 1:
                self._note(tuple(places.values()), False)
        return tuple(self.answers)


def _kind(thing: Any) -> type:
    """Objects of two kinds are surely two."""
    return np.ndarray if isinstance(thing, np.ndarray) else float if is_dynamic(thing) else type(thing)
