"""Copies of the user's classes: what recorded code makes instances of, subclasses, and calls methods of.

A copy has the name, the bases (copies themselves) and the attributes of the original; each attribute is taken as a
capture when it is read, so that methods run as copies that see traced captures and stand-ins, whichever way they are
reached. Instances that recorded code makes are plain objects of the copy, with whatever state they have. A copy is an
equal of its original where instances and subclasses are asked for: stand-ins of captured objects say that their class
is the original.
"""
from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from types import FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.errors import CaptureError
from jitad.trace.captures.bytecode import has_code
from jitad.trace.captures.policy import is_user_class

__all__ = ["Classes", "as_originals", "is_copy", "original_of"]

_LAYOUT = (MemberDescriptorType, GetSetDescriptorType)      # made anew with the copy
_OF_ABC = frozenset({"_abc_impl", "__abstractmethods__", "__dict__", "__weakref__"})
_ORIGINAL = "__jitad_copy_of__"


def _names(cls: Any) -> Any:
    """What a class itself has, as it lies there."""
    return type.__dict__["__dict__"].__get__(cls)


def original_of(thing: Any) -> Any:
    """The user's class of which `thing` is the copy; anything else is itself."""
    reference = _names(thing).get(_ORIGINAL) if isinstance(thing, type) else None
    return thing if reference is None else reference()


def is_copy(thing: Any) -> bool:
    return isinstance(thing, type) and _ORIGINAL in _names(thing)


def as_originals(tree: Any) -> Any:
    """A result whose named tuples and dataclass instances are those of the user's classes."""
    return _mapped(tree, lambda cls: original_of(cls) if is_copy(cls) else None)


def _mapped(tree: Any, other: Callable[[type], Any]) -> Any:
    """A tree with the instances of a class those of what `other` gives for it, if it gives a class."""
    kind = type(tree)
    again = lambda value: _mapped(value, other)
    if kind in (list, tuple):
        return kind(map(again, tree))
    if kind in (dict, OrderedDict):
        return kind((key, again(value)) for key, value in tree.items())
    if kind is defaultdict:
        return defaultdict(tree.default_factory, {key: again(value) for key, value in tree.items()})
    cls = other(kind) or kind
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple.__new__(cls, map(again, tree))
    if "__dataclass_fields__" not in dir(kind) or isinstance(tree, type) or hasattr(kind, "_jitad_state"):
        return tree
    made = object.__new__(cls)
    for field in dataclasses.fields(tree):
        object.__setattr__(made, field.name, again(getattr(tree, field.name)))
    return made


class Equal:
    """What a copied class has in its metaclass: instances and subclasses of the original are those of the copy."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (                          # type: ignore[misc]
            is_copy(cls) and isinstance(instance, original_of(cls)))

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return super().__subclasscheck__(subclass) or (                          # type: ignore[misc]
            is_copy(cls) and issubclass(original_of(subclass), original_of(cls)))

    @property
    def __dict__(cls) -> Any:                                                    # type: ignore[override]
        return MappingProxyType({name: raw.whole() if type(raw) is Member else raw
                                 for name, raw in _names(cls).items() if name != _ORIGINAL})


@functools.lru_cache(maxsize=64)
def _metaclass(of: type) -> type:
    made = type(of.__name__, (Equal, of), {"__jitad_metaclass__": of})
    made.__module__, made.__qualname__ = of.__module__, of.__qualname__
    return made


class Member:
    """An attribute of a copied class, taken when it is read; it binds as the original does."""

    __slots__ = ("__isabstractmethod__", "classes", "path", "raw")

    def __init__(self, classes: Classes, raw: Any, path: Path) -> None:
        self.classes, self.raw, self.path = classes, raw, path
        self.__isabstractmethod__ = bool(getattr(raw, "__isabstractmethod__", False)) if callable(raw) or isinstance(
            raw, (staticmethod, classmethod)) else False

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.classes.read(self.raw, self.path, instance, owner or type(instance))

    def whole(self) -> Any:
        """What the dict of the class has there; while a class is made, `abc` asks which members are abstract."""
        if self.classes.making:
            return self
        taken = self.classes.read(self.raw, self.path, None, type)
        kind = type(self.raw)
        return kind(getattr(taken, "__func__", taken)) if kind in (staticmethod, classmethod) else taken


class Classes:
    """The copied classes of one recording: one copy for each, wherever it is found. A class that has nothing but
    names is its own copy."""

    def __init__(self, captures: Any) -> None:
        self.captures: Any = captures
        self._copies: dict[type, type] = {}
        self.making = 0

    def release(self) -> None:
        """Let go of what was captured."""
        self.captures = None
        self._copies.clear()

    def copy(self, cls: type, path: Path) -> type:
        """The copy of a class of the user's that was found at `path`."""
        known = self._copies.get(cls)
        if known is not None:
            return known
        captures = self.captures
        if is_user_class(type(cls)):
            captures.whole.class_(type(cls), path.step("type"))
        if self._is_bare(cls, path):
            self._copies[cls] = cls
            captures.attributes.found(cls, cls, path)
            captures.attributes.hold(cls, path)
            return cls
        bases = path.step("attr", "__bases__")
        captures.guard(cls.__bases__, bases)
        captures.guard(tuple(vars(cls)), path.step("attr", "__dict__").step("keys"))
        above = tuple(self.copy(base, bases.step("item", i)) if self.is_copied(base) else base
                      for i, base in enumerate(cls.__bases__))
        made = self._made(cls, above, dict(self._members(cls, path)))
        self._copies[cls] = made
        captures.attributes.found(made, cls, path)
        captures.attributes.hold(made, path)
        return made

    def as_copies(self, tree: Any) -> Any:
        """An argument whose named tuples and dataclass instances are those of copies."""
        return _mapped(tree, self._copies.get)

    @staticmethod
    def is_copied(cls: type) -> bool:
        """Whether recorded code gets a copy of a class: exceptions and enumerations are told by what they are."""
        return is_user_class(cls) and not issubclass(cls, (BaseException, enum.Enum, type))

    def _is_bare(self, cls: type, path: Path) -> bool:
        """Whether there is neither code nor data in a class that may change, all else being guarded then."""
        for base in cls.__mro__:
            if is_user_class(base) and any(has_code(name, raw) or isinstance(raw, (float, np.ndarray, np.floating))
                                           for name, raw in vars(base).items()):
                return False
        try:
            self.captures.whole.class_(cls, path)
        except CaptureError:
            return False
        return True

    def _made(self, cls: type, bases: tuple[type, ...], names: dict[str, Any]) -> type:
        meta = type(cls)
        make: Any = type.__new__ if is_user_class(meta) else _metaclass(meta).__new__
        self.making += 1
        try:
            made = make(_metaclass(meta), cls.__name__, bases, names)
        finally:
            self.making -= 1
        made.__qualname__ = cls.__qualname__
        return made

    def _members(self, cls: type, path: Path) -> Iterator[tuple[str, Any]]:
        yield _ORIGINAL, weakref.ref(cls)
        of_a_library = type(cls) not in (type, abc.ABCMeta)
        for name, raw in list(vars(cls).items()):
            at = path.step("attr", name)
            if isinstance(raw, _LAYOUT) or name in _OF_ABC:
                continue
            if type(raw) is property:
                get, put, delete = (self._late(getattr(raw, part), at.step("attr", part)) for part in (
                    "fget", "fset", "fdel"))
                yield name, property(get, put, delete, raw.__doc__)
            elif isinstance(raw, functools.cached_property):
                yield name, functools.cached_property(self._late(raw.func, at.step("attr", "func")))
            elif isinstance(raw, functools.partialmethod):
                at = path.step("attr", "__dict__").step("item", name)
                yield name, self._partial(raw, at)
            elif name == "__new__":
                yield name, staticmethod(self._late(getattr(raw, "__func__", raw), at))
            elif not _is_attribute(name, raw) or (of_a_library and name.startswith("_is_")):
                yield name, raw
            else:
                yield name, Member(self, raw, at)

    def _late(self, function: Any, path: Path) -> Any:
        """The copy of a function, made when it is called."""
        if function is None:
            return None

        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.captures.take(function, path)(*args, **kwargs)
        return call

    def _partial(self, raw: functools.partialmethod[Any], path: Path) -> Any:
        take, args, keywords = self.captures.take, path.step("attr", "args"), path.step("attr", "keywords")
        self.captures.guard(len(raw.args), args.step("len"))
        self.captures.guard(tuple(raw.keywords), keywords.step("keys"))
        return functools.partialmethod(
            self._late(raw.func, path.step("attr", "func")),
            *(take(value, args.step("item", i)) for i, value in enumerate(raw.args)),
            **{name: take(value, keywords.step("item", name)) for name, value in raw.keywords.items()})

    def read(self, raw: Any, path: Path, instance: Any, owner: type) -> Any:
        """What reading the attribute `raw` of a copied class gives, from an instance or from the class."""
        captures = self.captures
        if captures is None:
            raise CaptureError(f"`{path.expression()}` is read, after the recording, by an object that a recorded "
                               "function made; return numbers and arrays instead")
        if isinstance(raw, classmethod):
            if self.making and path[-1].key == "__init_subclass__":  # the original has been through it
                return lambda **options: None
            return MethodType(captures.take(raw.__func__, path.step("attr", "__func__")), owner)
        if isinstance(raw, staticmethod):
            return captures.take(raw.__func__, path)
        taken = captures.take(raw, path)
        if hasattr(type(raw), "__jitad_nested__"):
            return taken if instance is None else taken.bound_to(instance)
        if isinstance(raw, (FunctionType, _LRU)):
            return taken if instance is None else MethodType(taken, instance)
        if hasattr(type(raw), "__get__") and not isinstance(raw, type):
            raise captures.error(path, f"goes through the descriptor {type(raw).__name__}")
        return taken


_LRU = type(functools.lru_cache(lambda: None))


def _is_attribute(name: str, raw: Any) -> bool:
    """Whether an attribute of a class is code or data, and not what Python keeps there of the class itself."""
    if isinstance(raw, (FunctionType, classmethod, staticmethod, functools.singledispatchmethod, _LRU)) or hasattr(
            type(raw), "__jitad_nested__"):
        return True
    if name.startswith("__") or name in ("_fields", "_field_defaults"):
        return False
    return isinstance(raw, type) or not hasattr(type(raw), "__get__") or is_user_class(type(raw))
