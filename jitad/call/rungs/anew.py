"""Transforms that are applied anew in each call: ``value_and_grad(lambda q: ...)(q)``, ``grad(self.loss)(q)``.

The function is another one each time, of the same code. A shortcut is code that is bound to what it reads: the
function, its cells, the object of a method. For another function of that code it is the same code, bound to the parts
of that one. An `Unbound` shortcut says which is bound where; with it a transform is an object with a shortcut and
nothing else, until it is asked for more or has been called often (`Provisional`).
"""
from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jitad import cache
from jitad.cache.keys.guards import settled
from jitad.cache.keys.identity import Same
from jitad.cache.keys.signature import Leaf
from jitad.cache.records import Counters
from jitad.call.request.request import DEFAULTS, Request
from jitad.call.request.subject import Subject
from jitad.call.rungs.shortcut import NOT_SERVED, Shortcut
from jitad.compile.entry.kernel_errors import is_marked
from jitad.trace.recorder import current
from jitad.trace.where import is_library_file

__all__ = ["Provisional", "keep"]

KEPT = 256           # pieces of code that have unbound shortcuts
SIGNATURES = 4       # unbound shortcuts of one piece of code
CALLS = 64           # of one function, before it is worth a shortcut of its own

_unbound: dict[tuple[int, str, Any, str], tuple[Unbound, ...]] = {}


class Unbound:
    """A shortcut without the function that it is bound to: `code` in `names`, with `cells` and, by `places`, what to
    put into them. A memo of the cache, so that it goes with the kernel."""

    __slots__ = ("__weakref__", "alive", "cells", "code", "key", "names", "of", "places", "shape")

    def __init__(self, request: Request, strict: FunctionType, found: _Parts):
        of = found.parts[1]
        self.of, self.shape, self.alive = weakref.ref(of), found.shape, True
        self.key = id(of), request.what, request.argnums, request.mode
        self.code, self.names = strict.__code__, strict.__globals__
        cells = [(cell, found.seen.get(id(cell.cell_contents))) for cell in strict.__closure__ or ()]
        self.cells = [cell if place is None else CellType() for cell, place in cells]
        self.places = [(i, place) for i, (_, place) in enumerate(cells) if place is not None]

    @classmethod
    def of_function(cls, f: Any, request: Request, strict: Any) -> Unbound | None:
        """That of the shortcut of `f`; None where nothing else may have it."""
        found = _parts(f) if type(strict) is FunctionType else None
        if found is None or any(settled(part) is not None for part in found.parts if type(part) not in _BY_ITSELF):
            return None                                  # what is settled is compared by identity, as a guard
        made = cls(request, strict, found)
        return made if made.lasting else None

    @property
    def lasting(self) -> bool:
        """Whether nothing else is bound that belongs to the function at hand."""
        own = {i for i, _ in self.places}
        module = sys.modules.get(self.names.get("__name__", ""))
        return module is not None and vars(module) is self.names and all(map(_lasting, self.shape)) and all(
            _lasting(cell.cell_contents) for i, cell in enumerate(self.cells) if i not in own)

    def bound_to(self, parts: Sequence[Any]) -> Callable[..., Any]:
        """The shortcut of another function."""
        cells = self.cells.copy()
        for i, part in self.places:
            cells[i] = CellType(parts[part])
        return FunctionType(self.code, self.names, "shortcut", None, tuple(cells))

    def forget(self) -> None:
        """Called when the specialization is gone, or its kernel another one."""
        self.alive = False
        _unbound.pop(self.key, None)


class _Parts:
    """What a shortcut of a callable may be bound to, each once: functions, their code, cells and objects. By `shape`
    the parts of another callable are known to be the same ones in the same places."""

    __slots__ = ("parts", "seen", "shape")

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.seen: dict[int, int] = {}
        self.shape: list[Any] = []

    def add(self, part: Any) -> bool:
        """Whether it is a new one."""
        place = self.seen.setdefault(id(part), len(self.parts))
        if place < len(self.parts):
            self.shape.append(place)
            return False
        self.parts.append(part)
        return True

    def function(self, f: FunctionType) -> bool:
        """A function and what it has in its cells; False if no unbound shortcut may be made of it."""
        if f.__dict__:                                   # another signature, or a decorator's
            return False
        if self.add(f):
            self.add(f.__code__)
            for cell in f.__closure__ or ():
                if self.add(cell) and not self._content(cell):
                    return False
        return True

    def _content(self, cell: CellType) -> bool:
        try:
            content = cell.cell_contents
        except ValueError:                               # not assigned yet
            return False
        kind = type(content)
        if kind is FunctionType and not content.__dict__:
            self.shape.append((content.__code__, content.__module__, content.__qualname__))
            return self.function(content)
        if kind.__flags__ & _HEAP:
            self.shape.append(kind)
            self.add(content)
        return True


_HEAP = 1 << 9                                           # of a class that is made by a class statement


def _parts(f: Any) -> _Parts | None:
    """The parts of a callable; None for those of which no unbound shortcut is made."""
    kind, found = type(f), _Parts()
    if kind is FunctionType:
        return found if found.function(f) else None
    if kind is MethodType and type(f.__func__) is FunctionType and not isinstance(f.__self__, type):
        found.shape.append(type(f.__self__))
        return found if found.function(f.__func__) and found.add(f.__self__) else None
    if kind is functools.partial and type(f.func) is FunctionType and all(type(a) is np.ndarray for a in f.args):
        found.shape += [len(f.args), *f.keywords]
        if found.function(f.func):
            for part in (f, f.args, f.keywords, *f.args):
                found.add(part)
            return found
    return None


def _lasting(value: Any) -> bool:
    """Whether an unbound shortcut may hold a value: it belongs to a module or to the cache, not to the function."""
    kind = type(value)
    if kind in (tuple, list):
        return all(map(_lasting, value))
    if kind is FunctionType:
        return not value.__closure__ or is_library_file(value.__code__.co_filename)
    if kind is MethodType:
        return is_library_file(value.__func__.__code__.co_filename) and type(value.__self__) in _OURS
    if kind is dict:
        return vars(sys.modules.get(value.get("__name__", ""), np)) is value
    if isinstance(value, type):
        return "<locals>" not in value.__qualname__
    return kind in _LASTING or kind in _OURS or isinstance(value, (np.dtype, np.ufunc))


_BY_ITSELF = frozenset({FunctionType, CodeType, CellType, np.ndarray, tuple, dict, functools.partial})
_OURS = frozenset({Counters, Same, Leaf})
_LASTING = frozenset({bool, int, float, complex, str, bytes, type(None), type(...), range, frozenset, CodeType,
                      ModuleType, BuiltinFunctionType, type(np.sum)})


def keep(subject: Subject, known: Shortcut) -> None:
    """Keep a shortcut unbound, if other functions of the same code may be served by it."""
    specialization, request = known.specialization, subject.request
    if (specialization is None or subject.plain is not subject.given or subject.foreign
            or subject.settings != DEFAULTS or request != Request(request.what, request.argnums, request.mode)
            or any(isinstance(step.key, Same) for path, _ in specialization.plan.reads for step in path)):
        return                                           # a key of a dict could be a part, and is not read anew
    made = Unbound.of_function(subject.given, request, known.strict)
    if made is None:
        return

    def put_first() -> None:
        others = [t for t in _unbound.pop(made.key, ()) if t.of() is made.of() and t.alive]
        _unbound[made.key] = (made, *others[:SIGNATURES - 1])
        while len(_unbound) > KEPT:
            oldest, *_ = _unbound
            _unbound.pop(oldest, None)
    cache.store.attach(subject.owner, made, specialization)
    specialization.remember(made)
    cache.store.publish(subject.owner, subject.key(known.signature), specialization, made, put_first)


class Provisional:
    """A transformed function that is an object with a shortcut until it is asked for something else."""

    _call: Callable[..., Any]
    fallback: Callable[..., Any]
    shortcuts: tuple[Shortcut, ...]

    @classmethod
    def quickly(cls, f: Any, what: str, argnums: Any, mode: str = "") -> Any:
        """The transform of a function whose code is known, without options; None where it is not known."""
        found = _parts(f) if current() is None else None
        if found is None or not (type(argnums) is int or (
                type(argnums) is tuple and all(type(n) is int for n in argnums))):
            return None
        function, code, shape = found.parts[0], found.parts[1], found.shape
        fitting = [t for t in _unbound.get((id(code), what, argnums, mode), ()) if t.of() is code and t.shape == shape
                   and t.names is function.__globals__]
        if not fitting:
            return None
        made = object.__new__(cls)
        made.__dict__.update(__doc__=f.__doc__, __module__=function.__module__, _given=(f, what, argnums, mode))
        made._call = made.fallback = _tried(fitting, found.parts, weakref.ref(made))
        made.shortcuts = ()
        return made

    def in_full(self) -> Any:
        """The same object, as if made by its class."""
        given = self.__dict__.get("_given")
        if given is not None:
            f, *asked = given
            own = {name: value for name, value in self.__dict__.items() if name != "_given"}
            self.__init__(f, Request(*asked))                                        # type: ignore[misc]
            self.__dict__.update(own)
            self.__dict__.pop("_given", None)
        return self

    def __getattr__(self, name: str) -> Any:
        if "_given" in self.__dict__ and name != "_given":
            return getattr(self.in_full(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


def _tried(known: Sequence[Unbound], parts: Sequence[Any], home: Callable[[], Any]) -> Callable[..., Any]:
    """What is called: the unbound shortcuts for a while, then what the transform is in full."""
    left = CALLS
    ways: list[tuple[Unbound, Callable[..., Any] | None]] = [(t, None) for t in known]

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        for i, (shortcut, strict) in enumerate(ways if left >= 0 else ()):
            if not shortcut.alive:
                continue
            if strict is None:
                strict = shortcut.bound_to(parts)
                ways[i] = shortcut, strict
            try:
                return strict(*args, **kwargs)
            except NOT_SERVED as error:
                if is_marked(error):
                    raise
        found = home()
        if found is None:
            raise ReferenceError("the function is gone; keep it, not its `__call__`")
        return found.in_full()._call(*args, **kwargs)
    return call
