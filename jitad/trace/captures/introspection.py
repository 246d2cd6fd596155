"""The builtins by which code asks what it holds: for recorded code they answer as NumPy would.

What is only printed is printed while the function is recorded, and the tape does not depend on it.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.errors import CaptureError
from jitad.trace.captures.nested import Nested, class_behind
from jitad.trace.captures.notes import Notes
from jitad.trace.captures.objects.classes import original_of
from jitad.trace.captures.objects.standins import DictView, ModuleView, ObjectView, state_of, view_super
from jitad.trace.captures.standard import note
from jitad.trace.dispatch import refused
from jitad.trace.impure import ImpureClass
from jitad.trace.numpy_rules.substitutes import view_errstate
from jitad.trace.numpy_rules.ufuncs import UfuncView
from jitad.trace.recorder import current, outside
from jitad.trace.scipy_rules.stats.distributions import Distribution, Frozen
from jitad.trace.values.kinds import KINDS
from jitad.trace.values.local import LocalArray
from jitad.trace.values.pairs import Complex
from jitad.trace.values.seen import printed, stood_for
from jitad.trace.values.tracer import Tracer
from jitad.trace.values.truths import Concluding
from jitad.trace.where import is_copied, user_line

STAND_INS = (Distribution, Frozen)
TRACED = (Tracer, Complex, Concluding)

__all__ = ["VIEWS", "Identities", "class_of", "explaining", "hashing"]


def view_isinstance(instance: Any, classes: Any, /) -> bool:
    """``isinstance`` in recorded code."""
    asked = [c.real if isinstance(c, ImpureClass) else c
             for c in (classes if type(classes) is tuple else (classes,))]
    if type(instance) not in TRACED:
        found = isinstance(instance, classes)
        if not found and is_copied(frame := sys._getframe(1)):
            frame.f_globals.captures.attributes.unlike += map(original_of, asked)     # type: ignore[attr-defined]
        return found
    if any(isinstance(c, type) and issubclass(c, np.memmap) for c in asked):
        raise refused(instance, "isinstance(array, numpy.memmap)", "compiled code serves arrays in files and in memory "
                      "alike; ask outside of the function")
    return issubclass(stood_for(instance), classes)


def class_of(thing: Any) -> Any:
    """The class that an object has as recorded code sees it."""
    kind = type(thing)
    if kind in TRACED or kind in KINDS:
        recorder, kind = current(), stood_for(thing) if kind in TRACED else kind
        return KINDS.get(kind, kind) if recorder is None or recorder.kinds else kind
    kind = vars(kind).get("__jitad_metaclass__", kind)
    if issubclass(kind, (ObjectView, DictView, *STAND_INS)):
        kind = thing.__class__
    elif kind is Nested:
        kind = class_behind(thing)
    if kind is LocalArray:
        return class_of(thing.array)
    return ViewType if kind in (type, _MetaType, type(KINDS[float])) else _SEEN.get(kind, kind)


_SEEN = { ModuleView: ModuleType, UfuncView: np.ufunc}


class _MetaType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not ViewType:
            return super().__call__(*args, **kwargs)
        return class_of(args[0]) if len(args) == 1 and not kwargs else type(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type) if cls is ViewType else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, type) if cls is ViewType else super().__subclasscheck__(subclass)


class ViewType(type, metaclass=_MetaType):
    """``type`` in recorded code."""


ViewType.__name__, ViewType.__qualname__, ViewType.__module__ = "type", "type", "builtins"


def view_print(*args: Any, **kwargs: Any) -> None:
    """``print`` in recorded code."""
    print(*map(printed, args), **kwargs)


def explaining(function: Any) -> Any | None:
    """What recorded code gets for a function by which pytest says why an assertion has failed, which reads the values
    as they are; None for any other."""
    if getattr(function, "__module__", None) != "_pytest.assertion.rewrite":
        return None

    def explanation(*args: Any) -> Any:
        shown = [printed(tuple(a) if type(a) is list else a) for a in args]
        with outside():
            return function(*shown)
    return explanation


_NUMBERS = (int, bool, float, complex, type(None))


def hashing(captures: Notes) -> Callable[[Any], int]:
    """``hash`` for recorded code."""
    def view_hash(thing: Any, /) -> int:
        if not _of_numbers(thing):
            kind = type(state_of(thing)[1]) if isinstance(thing, ObjectView) else type(thing)
            if kind.__hash__ is object.__hash__ or kind is BuiltinFunctionType:
                raise CaptureError(f"`hash` of a {kind.__name__} at {user_line()} is its place in memory, which is "
                                   "another one in later calls; use a name or number of your own")
            note(captures, "hashes of texts")
        return hash(thing)
    return view_hash


def _of_numbers(thing: Any) -> bool:
    if type(thing) in (tuple, frozenset):
        return all(map(_of_numbers, thing))
    return type(thing) in (*_NUMBERS, *TRACED) or isinstance(thing, np.generic)


class Identities:
    """Captured objects that have a stand-in, where recorded code compares by ``is``. With `unique`, an object that is
    found in two ways has one stand-in, and that it is one is guarded."""

    def __init__(self, captures: Notes, unique: bool) -> None:
        self.captures, self.unique = captures, unique
        self._met: dict[int, Path] = {}
        self._aliases: list[tuple[Path, Path]] = []

    def met(self, value: Any, path: Path) -> None:
        """Remember where an object was found."""
        first = self._met.setdefault(id(value), path)
        if first != path:
            self._aliases.append((first, path))

    def first(self, value: Any, path: Path) -> Path | None:
        """Where the object was found before, if what it has there stands for it here too."""
        found = self._met.get(id(value)) if self.unique else None
        if not found or self.captures.taken.get(found, (None,))[0] is not value:
            return None
        self.captures.guard(True, path.step("one", found))
        return found

    def check(self, compared: bool) -> None:
        """When the recording ends: guard that different objects stay so, if any code has `compared` by ``is``."""
        if not compared:
            return
        for one, other in self._aliases:
            raise CaptureError(f"`{self.captures.recorder.function_name}` compares by `is` and reads one object in two "
                               f"ways, as {one} and as {other}, which jitad cannot watch; compare names or flags")
        paths = [path for path in self._met.values() if path]
        if len(paths) > 1:
            self.captures.guard(True, paths[0].step("apart", tuple(paths[1:])))


VIEWS: dict[Any, Any] = {isinstance: view_isinstance, type: ViewType, print: view_print, super: view_super,
                         np.errstate: view_errstate}
