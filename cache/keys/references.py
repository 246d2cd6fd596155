"""Names for modules, classes, builtins and members of enums that mean the same thing in another process.

A name is only good if it leads back to the very object. A class of the user's is named together with a digest of
what it is made of, since the same name may stand for an edited class when the next process starts.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .guards import Unguardable, freeze
from .identity import code_key

__all__ = ["Reference", "Unstorable", "refer", "resolve"]

Reference = tuple[str, str, str]
Encode = Callable[[object], Any]  # what a class is made of is encoded by who asks for its name
LIBRARIES = frozenset({"builtins", "jitad", "llvmlite", "numba", "numpy", "optree", "scipy"})  # told by their versions
VERSIONED = LIBRARIES | sys.stdlib_module_names
_MISSING = object()


class Unstorable(TypeError):
    """A value that means nothing outside this process, or a stored one that means nothing in it."""

    def __init__(self, value: object, why: str = "has no meaning in another process") -> None:
        super().__init__(f"a value of type {type(value).__module__}.{type(value).__qualname__} {why}")


def refer(value: Any, encode: Encode) -> Reference:
    """Return module, qualified name and digest ("" but for classes of the user's) of what can be found by name.

    Raises `Unstorable` when no name leads back to `value`.

    >>> refer(np.sin, repr), refer(len, repr)
    (('numpy', 'sin', ''), ('builtins', 'len', ''))
    """
    for module, name in _candidates(value):
        if isinstance(module, str) and isinstance(name, str) and _find(module, name) is value:
            digest = _digest(value, encode)
            if not digest and not isinstance(value, ModuleType) and module.partition(".")[0] not in VERSIONED:
                raise Unstorable(value, "is compiled code of an unknown version")
            return module, name, digest
    raise Unstorable(value, "cannot be found by its name")


def resolve(module: str, name: str, digest: str, encode: Encode) -> Any:
    """Return what `refer` has named. Imports nothing: what is not imported yet cannot have been captured.

    Raises `Unstorable` when there is no such thing in this process, or when it is made of something else.
    """
    value = _find(module, name)
    if value is _MISSING:
        raise Unstorable(f"{module}.{name}", f"names nothing here: {module}.{name}")
    if _digest(value, encode) != digest:
        raise Unstorable(value, f"is not what it was: {module}.{name}")
    return value


def _candidates(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, ModuleType):
        yield value.__name__, ""
    elif isinstance(value, enum.Enum):
        yield type(value).__module__, f"{type(value).__qualname__}.{value.name}"
    else:
        name = getattr(value, "__name__", None)
        yield getattr(value, "__module__", None), getattr(value, "__qualname__", name)
        home = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        if isinstance(home, ModuleType):
            yield home.__name__, name
        elif isinstance(home, type):
            yield home.__module__, f"{home.__qualname__}.{name}"
        elif isinstance(value, np.ufunc):
            yield "numpy", name
            yield "scipy.special", name


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module, _MISSING)
    for part in name.split(".") if name else ():
        try:
            found = getattr(found, part, _MISSING)
        except Exception:  # a module's or metaclass's own __getattr__ may raise anything
            return _MISSING
    return found


# --- what a class is made of ------------------------------------------------------------------------------------------


def _digest(value: Any, encode: Encode) -> str:
    cls = type(value) if isinstance(value, enum.Enum) else value
    if not isinstance(cls, type) or not _is_told_by_content(cls):
        return ""
    text = json.dumps(_content(cls, encode), sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _is_told_by_content(cls: type) -> bool:
    return bool(cls.__flags__ & 1 << 9) and cls.__module__.partition(".")[0] not in LIBRARIES  # a heap type


def _content(cls: type, encode: Encode) -> list[Any]:
    """Everything about a class that a recording may depend on and that no guard of its own tells."""
    own = [base for base in cls.__mro__ if _is_told_by_content(base) and base is not enum.Enum]
    content: list[Any] = [_name(type(cls)), [_name(base) for base in cls.__mro__]]
    if isinstance(cls, enum.EnumMeta):
        return [*content, [[name, _exactly(member.value, encode)] for name, member in _members(cls)]]
    for base in own:
        names = sorted(vars(base).keys() - _IRRELEVANT)
        content.append([[n, _member(vars(base)[n])] for n in names if not n.startswith(("_abc", "_jitad"))])
    if dataclasses.is_dataclass(cls):
        content.append(repr(getattr(cls, "__dataclass_params__", "")))
        content.append([_field(field, encode) for field in getattr(cls, "__dataclass_fields__", {}).values()])
    return content


_IRRELEVANT = frozenset({
    "__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "__dataclass_fields__",
    "__dataclass_params__",
})  # fmt: skip


def _member(raw: Any) -> Any:
    """Functions by their code, the rest by type: what is read of it has a guard of its own."""
    if isinstance(raw, FunctionType):
        return code_key(raw)
    if isinstance(raw, (staticmethod, classmethod)):
        return [type(raw).__name__, _member(raw.__func__)]
    if isinstance(raw, property):
        return ["property", _member(raw.fget), _member(raw.fset)]
    if isinstance(raw, functools.cached_property):
        return ["cached_property", _member(raw.func)]
    return _name(type(raw))


def _members(cls: enum.EnumMeta) -> Iterator[tuple[str, Any]]:
    """The members of an enum, whose methods run unseen: one with methods of its own is refused."""
    for base in cls.__mro__:
        for raw in vars(base).values() if isinstance(base, enum.EnumMeta) else ():
            function = getattr(raw, "fget", None) or getattr(raw, "__func__", None) or raw
            if isinstance(function, FunctionType) and function.__module__ not in ("enum", "re", "builtins"):
                raise Unstorable(cls, "is an enum with methods")
    yield from cls.__members__.items()


def _field(field: dataclasses.Field[Any], encode: Encode) -> list[Any]:
    factory = field.default_factory
    if factory is dataclasses.MISSING:
        made: Any = None
    elif isinstance(factory, FunctionType):
        if factory.__closure__ or factory.__code__.co_names or factory.__defaults__:
            raise Unstorable(factory, "makes a field from what it captures")
        made = code_key(factory)
    else:
        made = list(refer(factory, encode))
    kind = str(getattr(field, "_field_type", ""))
    return [field.name, kind, field.init, field.kw_only is True, _roughly(field.default, encode), made]


def _exactly(value: Any, encode: Encode) -> Any:
    try:
        return encode(freeze(value, functions=False))
    except Unguardable:
        raise Unstorable(value) from None


def _roughly(value: Any, encode: Encode) -> Any:
    try:
        return _exactly(value, encode)
    except Unstorable:
        return ["of type", _name(type(value))]


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
