"""Methods, operators and properties read from a class, as recorded code calls them: ``np.ndarray.sum(x)``,
``float.__add__(x, 1.0)``, ``map(float.is_integer, xs)``.

Python's own take nothing but instances of the class. Of something traced it is what is found under that name on the
value itself, so that both spellings are one; what is not traced goes to the method of the class.
"""
from __future__ import annotations

from types import GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, refused
from jitad.trace.values.seen import as_python, stood_for

__all__ = ["DESCRIPTORS", "OfClass", "unbound"]

_PROPERTIES = (GetSetDescriptorType, MemberDescriptorType)
DESCRIPTORS = (MethodDescriptorType, WrapperDescriptorType, *_PROPERTIES)
_PYTHONS = (int, float, complex)
_CONVERSIONS = {"__float__": float, "__complex__": complex}
_OWNERS = (np.ndarray, np.generic, *_PYTHONS)


def unbound(raw: Any) -> OfClass | None:
    """What recorded code gets for a method or property of arrays or numbers that it reads from their class; None for
    anything else."""
    if type(raw) not in DESCRIPTORS or not issubclass(raw.__objclass__, _OWNERS):
        return None
    return OfClass(raw)


class OfClass:
    """See the module."""

    __slots__ = ("__weakref__", "raw")

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        owner = args[0] if args else None
        builder = None if type(self.raw) in _PROPERTIES else builder_in(args, kwargs)
        if hasattr(type(owner), "jitad_current"):
            return getattr(owner, self.raw.__name__)(*args[1:], **kwargs)
        if builder is None or not (args and isinstance(_class_of(owner), type)):
            return self.raw(*args, **kwargs)
        own, name = self._checked(owner, builder), self.raw.__name__
        if name in _CONVERSIONS:
            return as_python(own, _CONVERSIONS[name])
        if name.startswith("__") and not hasattr(type(own), name):
            raise refused(builder, f"{self.raw.__qualname__}", "call what Python calls it for: math.floor(x), int(x)")
        return NotImplemented if self._declines(args) else getattr(own, name)(*args[1:], **kwargs)

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        if isinstance(owner, Value) or hasattr(type(owner), "jitad_current"):
            if isinstance(owner, Value):
                owner = self._checked(owner, owner.builder)
            return getattr(owner, self.raw.__name__)
        return self if owner is None else self.raw.__get__(owner, cls)

    def _checked(self, owner: Any, builder: Any) -> Any:
        """What has the attribute: a traced array or number of the class, for Python's classes one of its numbers."""
        home, found = self.raw.__objclass__, _class_of(owner)
        if not issubclass(found, home):
            raise TypeError(f"descriptor {self.raw.__name__!r} requires a {home.__name__!r} object but received a "
                            f"{found.__name__!r}")
        value = owner if isinstance(owner, Value) else as_value(builder, owner)
        return as_python(value, None if home is int else home) if home in _PYTHONS else value

    def _declines(self, args: Any) -> bool:
        """Whether an operator of a class of numbers leaves these others to the other side."""
        if type(self.raw) is not WrapperDescriptorType or self.raw.__objclass__ is np.ndarray:
            return False
        alike = [_class_of(a)(1) if isinstance(a, Value) else a for a in args]
        try:
            return self.raw(*alike) is NotImplemented
        except Exception:
            return False

    def __eq__(self, other: object) -> bool:
        return self.raw == (other.raw if type(other) is OfClass else other)

    def __hash__(self) -> int:
        return hash(self.raw)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "raw"), name)

    def __repr__(self) -> str:
        return repr(self.raw)


def _class_of(thing: Any) -> type:
    return stood_for(thing) if isinstance(thing, Value) else type(thing)
