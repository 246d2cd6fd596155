"""Lists, dicts, deques and objects that go from step to step: what is in them, and the same ones with other contents.

A tree of containers is taken apart into a description that can be compared, its leaves, and the containers themselves,
each before what is in it. Put together again it is made of new containers, or of the same ones, which are given other
contents in place, so that whoever holds one of them sees these.
"""
from __future__ import annotations

import dataclasses
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jitad.trace.captures.objects.classes import is_copy
from jitad.trace.captures.objects.standins import Poison

__all__ = ["LARGEST", "Taken", "alone", "contents", "filled", "leaves_in", "taken"]

DEEPEST, LARGEST = 32, 4096                              # of containers in each other; of all that is in one tree
_DICTS = (dict, OrderedDict, defaultdict, Counter)


class Taken(NamedTuple):
    """A tree of containers taken apart. `homes` has for each leaf the number of the list or deque that it is in, or
    None; `fit` says that no container is in it twice, and that it is not too large."""

    tree: Any
    leaves: list[Any]
    objects: list[Any]
    homes: list[int | None]
    fit: bool


def _fields_of(thing: Any) -> list[str] | None:
    """The attributes of an object that recorded code has made, or of a dataclass; None of anything else."""
    kind = type(thing)
    fields = [f.name for f in dataclasses.fields(thing)] if hasattr(kind, "__dataclass_fields__") else []
    if not is_copy(kind):
        return fields or None
    names = [*dict.fromkeys([*fields, *getattr(thing, "__dict__", ())])]
    return names if names or hasattr(thing, "__dict__") else None


def _kind(thing: Any) -> Any:
    """The class of a container; of what stands for a captured object the class of that."""
    kind = type(thing)
    real = getattr(kind, "__jitad_class__", None) if hasattr(kind, "__dataclass_fields__") else None
    return real() if real else kind


def _is_frozen(kind: Any) -> bool:
    return issubclass(kind, tuple) or bool(getattr(getattr(kind, "__dataclass_params__", None), "frozen", False))


def _parts(thing: Any) -> tuple[Any, list[Any]] | None:
    """What tells a container from others, and what is in it; None of a leaf."""
    kind = type(thing)
    if kind in (list, tuple):
        return (), list(thing)
    if kind is deque:
        return thing.maxlen, list(thing)
    if kind in _DICTS:
        return tuple((type(key), key) for key in thing), list(thing.values())
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return (), list(thing)
    names = _fields_of(thing)
    return None if names is None else (tuple(names), [getattr(thing, name) for name in names])


def contents(thing: Any) -> list[Any]:
    """What is in a container itself."""
    found = _parts(thing)
    return [] if found is None else [*(thing if isinstance(thing, dict) else ()), *found[1]]


class _Taking:
    """A tree being taken apart. Nothing of it may be left when that is done: it is counted who holds a container."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.objects: list[Any] = []
        self.homes: list[int | None] = []
        self.seen: set[int] = set()
        self.fit = True

    def walk(self, thing: Any, home: int | None, depth: int) -> Any:
        parts = None if type(thing) is Poison else _parts(thing)
        if parts is None:
            self.leaves.append(thing)
            self.homes.append(home)
            return ()
        kind = _kind(thing)
        if not _is_frozen(kind):
            self.fit = self.fit and id(thing) not in self.seen
            home = len(self.objects) if kind in (list, deque) else None
            self.objects.append(thing)
            self.seen.add(id(thing))
        if depth > DEEPEST or len(self.leaves) > LARGEST or not self.fit:
            self.fit = False
            return kind, parts[0], ()
        return kind, parts[0], tuple([self.walk(part, home, depth + 1) for part in parts[1]])


def taken(value: Any) -> Taken:
    """A tree of containers taken apart."""
    taking = _Taking()
    tree = taking.walk(value, None, 0)
    return Taken(tree, taking.leaves, taking.objects, taking.homes, taking.fit)


def leaves_in(value: Any) -> list[Any]:
    return taken(value).leaves


def filled(tree: Any, leaves: Sequence[Any], objects: Sequence[Any] | None = None) -> Any:
    """The tree with these leaves: of new containers, or in place, of those that it was taken from."""
    return _built(tree, iter(leaves), None if objects is None else iter(objects))


def _built(tree: Any, leaves: Iterator[Any], objects: Iterator[Any] | None) -> Any:
    if not tree:
        return next(leaves)
    kind, told, parts = tree
    thing = None if _is_frozen(kind) else _new(kind, told) if objects is None else next(objects)
    inside = [_built(part, leaves, objects) for part in parts]
    return tuple.__new__(kind, inside) if issubclass(kind, tuple) else _with(thing, kind, told, inside)


def _new(kind: Any, told: Any) -> Any:
    return deque(maxlen=told) if kind is deque else kind() if kind is list or kind in _DICTS else object.__new__(kind)


def _with(thing: Any, kind: Any, told: Any, inside: list[Any]) -> Any:
    """A container with other contents; of one that is never written, a new one."""
    if kind is list:
        thing[:] = inside
    elif kind is deque:
        thing.clear()
        thing.extend(inside)
    elif kind in _DICTS:
        for (_, key), part in zip(told, inside, strict=True):
            dict.__setitem__(thing, key, part)
    else:
        thing = object.__new__(kind) if thing is None else thing
        for name, part in zip(told, inside, strict=True):
            object.__setattr__(thing, name, part)
    return thing


# --- who else holds a container -----------------------------------------------------------------------
def alone(names: dict[str, Any], name: str) -> list[bool]:
    """For each container in the tree of a variable of a frame, with these `names`, whether nothing but the variable, or
    the container around it, holds it."""
    found: list[bool] = []
    _ask(names, name, _BY_NAME, True, found)
    return found


def _ask(holder: Any, key: Any, usual: int, mine: bool, found: list[bool]) -> None:
    if _parts(holder[key]) is not None:
        frozen, single = _is_frozen(_kind(holder[key])), sys.getrefcount(holder[key]) <= usual
        found += [] if frozen else [mine and single]
        parts = (_parts(holder[key]) or ((), []))[1]
        for i in range(len(parts)):
            _ask(parts, i, _INSIDE, not frozen or (mine and single), found)


def _usual() -> tuple[int, int]:
    """The counts of what one variable holds, and of what one list does."""
    held: Any = [[]]
    count = lambda holder, key: sys.getrefcount(holder[key])
    return count(sys._getframe(0).f_locals, "held"), count(list(held), 0)


_BY_NAME, _INSIDE = _usual()
