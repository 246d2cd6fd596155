"""Attributes of what recorded code gets as a copy or as it is: functions, partials, classes, and their like.

What is there was taken when the copy was made. What is not there is noted when it is asked for, since it may be there
by a later call; what was written is found when the recording ends, and refused.
"""
from __future__ import annotations

import abc
import dis
import enum
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.cache.keys.paths import registered
from jitad.errors import CaptureError
from jitad.tape.builder import Value
from jitad.trace.captures.bytecode import codes_in
from jitad.trace.captures.introspection import TRACED, class_of
from jitad.trace.captures.notes import Notes
from jitad.trace.captures.objects.classes import is_copy
from jitad.trace.captures.policy import is_user_class, is_user_function
from jitad.trace.values.seen import stood_for
from jitad.trace.where import catches, user_line

__all__ = ["Attributes"]

_ABSENT = object()
_OF_FUNCTIONS = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")
_SET_ON_FUNCTIONS = (*_OF_FUNCTIONS, "__code__", "__defaults__", "__kwdefaults__")
_WHOLE = frozenset({"__dict__", "vars", "dir", "attrgetter", "getattr_static", "getmembers"})


class Attributes:
    """The attributes of one recording's captures, as far as no stand-in sees them being read and written."""

    def __init__(self, captures: Notes) -> None:
        self.captures = captures
        self._found: list[tuple[Any, Any, Path]] = []
        self._held: dict[int, tuple[Any, dict[str, Any], Path]] = {}
        self.unlike: list[Any] = []                      # classes of which something was no instance
        self.views: dict[Any, Any] = {getattr: self.read, hasattr: self.has}

    def found(self, handed: Any, value: Any, path: Path) -> None:
        """Note where the captured `value` was found, for which recorded code gets `handed`."""
        self._found.append((handed, value, path))

    def hold(self, handed: Any, path: Path) -> None:
        """Note what attributes the code gets; it must not change them."""
        self._held.setdefault(id(handed), (handed, _written(handed), path))

    # --- in recorded code ------------------------------------------------------------------------

    def read(self, thing: Any, name: str, /, *default: Any) -> Any:
        """``getattr`` in recorded code."""
        if name == "__class__":
            return class_of(thing)
        try:
            if type(thing) in TRACED:
                getattr(stood_for(thing), name)          # which may have less than what stands for it
            return getattr(thing, name)
        except AttributeError:
            self._absent(thing, name)
            if len(default) != 1:
                raise
            return default[0]

    def has(self, thing: Any, name: str, /) -> bool:
        """``hasattr`` in recorded code."""
        if type(thing) in TRACED:
            return hasattr(stood_for(thing), name)
        return self.read(thing, name, _ABSENT) is not _ABSENT

    def _absent(self, thing: Any, name: str) -> None:
        """Note that the code has learnt that there is no such attribute."""
        thing = thing.__func__ if isinstance(thing, MethodType) else thing
        ways = self._ways_to(thing)
        if not ways and type(thing) is FunctionType and is_user_function(thing) and not self.captures.is_own(thing):
            raise CaptureError(f"attribute `{name}` of `{thing.__qualname__}` is asked for at {user_line(2)}, but the "
                               "function was reached in a way that cannot be followed; use it by its name")
        for value, path in ways:
            self._note(thing, value, path, name)

    def _note(self, handed: Any, value: Any, path: Path, name: str) -> None:
        if not hasattr(value, name):
            self.captures.guard(False, path.step("has", name))
        elif not isinstance(handed, Value):
            raise self.captures.error(path.step("attr", name), "is an attribute that cannot be followed")

    def _ways_to(self, thing: Any) -> list[tuple[Any, Path]]:
        ways = [(value, path) for path, (value, taken) in self.captures.taken.items() if taken is thing]
        ways += [(value, path) for handed, value, path in self._found if handed is thing]
        if not ways and isinstance(thing, enum.Enum):
            ways = [(thing, path.step("attr", thing.name)) for _, path in self._ways_to(type(thing))]
        return ways

    # --- when the recording ends -----------------------------------------------------------------

    def changed(self) -> Iterator[str]:
        """The attributes that the code has written or deleted."""
        for handed, before, path in self._held.values():
            now = _written(handed)
            for name in {**before, **now}:
                if now.get(name, _ABSENT) is not before.get(name, _ABSENT):
                    yield f"attribute `{name}` of {path or f'`{handed.__name__}`'}"

    def watch(self, codes: list[CodeType]) -> None:
        """Guard what the recorded codes may have learnt otherwise: by ``h.__dict__``, or by ``h.k`` that has raised."""
        mentioned = {name for code in codes for name in _mentioned(code)}
        self._watch_enums(mentioned)
        self._watch_registries()
        whole, own = not mentioned.isdisjoint(_WHOLE), mentioned.intersection(_OF_FUNCTIONS)
        goes_on = any(catches(inner) for code in codes for inner in codes_in(code))
        asked = {name for code in codes for name in _loaded(code)} if goes_on else set()
        if not (whole or own or asked):
            return
        for handed, value, path in [*self._found, *self._as_they_are(mentioned)]:
            absent = [name for name in asked if not hasattr(handed, name)]
            for name in absent:
                if hasattr(value, name):
                    self._note(handed, value, path, name)
            if whole or (absent and not is_copy(handed)):      # the names of a class that was copied are guarded
                self.captures.guard(tuple(vars(value)), path.step("attr", "__dict__").step("keys"))
            for name in sorted(own) if type(value) is FunctionType or isinstance(value, type) else ():
                self.captures.guard(getattr(value, name), path.step("attr", name))

    def _watch_registries(self) -> None:
        """Guard which classes are registered with the user's abstract ones: by that, an object becomes an instance."""
        for cls in {c for c in self.unlike if type(c) is abc.ABCMeta and is_user_class(c)}:
            for path in [path for path, (value, _) in self.captures.taken.items() if value is cls]:
                self.captures.guard(registered(cls), path.step("registered"))

    def _watch_enums(self, mentioned: set[str]) -> None:
        """Guard what was set on enumerations and their members, which the code gets as they are."""
        for _, thing, at in self._as_they_are(mentioned):
            for name, content in [] if isinstance(thing, np.vectorize) else list(vars(thing).items()):
                set_ = not name.startswith("_") and not hasattr(type(content), "__get__")
                if set_ and name in mentioned and not isinstance(content, enum.Enum):
                    self.captures.guard(content, at.step("attr", name))

    def _as_they_are(self, mentioned: set[str]) -> Iterator[tuple[Any, Any, Path]]:
        """Enumerations, those of their members that the code mentions, and vectorised functions."""
        for path, (value, handed) in list(self.captures.taken.items()):
            kind = value if isinstance(value, type) else type(value)
            if kind is np.vectorize:
                yield handed, value, path
            elif issubclass(kind, enum.Enum) and is_user_class(kind):
                members = [m for m in kind if m.name in mentioned] if kind is value else []
                yield from ((m, m, at) for m, at in [
                    (value, path), *((m, path.step("attr", m.name)) for m in members)])


def _written(thing: Any) -> dict[str, Any]:
    """What code can set on a function, partial or class."""
    if isinstance(thing, type):
        names = type.__dict__["__dict__"].__get__(thing)     # as they lie there, also of a copy
        return {name: value for name, value in names.items() if not name.startswith("__")}
    fixed = {name: getattr(thing, name) for name in _SET_ON_FUNCTIONS} if type(thing) is FunctionType else {}
    return {**vars(thing), **fixed}


@functools.lru_cache(maxsize=1024)
def _mentioned(code: CodeType) -> frozenset[str]:
    """The names in the code, and the texts, which may be names."""
    return frozenset(name for inner in codes_in(code) for name in (
        *inner.co_names, *(text for text in inner.co_consts if type(text) is str)))


@functools.lru_cache(maxsize=1024)
def _loaded(code: CodeType) -> frozenset[str]:
    """The attributes that the code reads."""
    return frozenset(str(instruction.argval) for inner in codes_in(code) for instruction in dis.get_instructions(inner)
                     if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"))
