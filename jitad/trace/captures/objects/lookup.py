"""Attribute look-up on stand-ins: Python's own rules, with every read noted and every method a copy.

A path names what a later call would find by the same look-up: `self.scale` for data, `self.loglik.__func__` for a
method (so that a method replaced on the instance is seen), `type(self).mean.fget` for a property.
"""
from __future__ import annotations

import functools
from types import FunctionType, MemberDescriptorType, MethodType
from typing import Any

from jitad.cache.keys.captures import Path
from jitad.trace.captures.policy import is_user_class

_MISSING = object()
_OF_THE_CLASS = frozenset("__dataclass_fields__ __dataclass_params__ __match_args__ __annotations__ __doc__ __module__"
                          .split())
_LRU = type(functools.lru_cache(lambda: None))


def _find(mro: tuple[type, ...], name: str) -> tuple[type | None, Any]:
    for cls in mro:
        if name in vars(cls):
            return cls, vars(cls)[name]
    return None, _MISSING


def attribute(captures: Any, view: Any, value: Any, path: Path, name: str) -> Any:
    """What reading attribute `name` of the captured `value` gives in recorded code."""
    cls = type(value)
    instance = _instance_dict(value)
    if name == "__dict__" and instance is not None:
        return captures.dict_view(instance, path.step("attr", name))
    owner, raw = _find(cls.__mro__, name)
    at = path.step("attr", name)
    if name in _OF_THE_CLASS and owner is not None:
        return raw
    if isinstance(raw, property):
        return _property(captures, view, raw, path.step("type").step("attr", name))
    if isinstance(raw, MemberDescriptorType):
        try:
            return captures.take(raw.__get__(value, cls), at)
        except AttributeError:
            raise captures.error(at, "is a slot without a value") from None
    if instance is not None and name in instance:
        if owner is not None and hasattr(type(raw), "__set__"):
            raise captures.error(at, f"goes through the descriptor {type(raw).__name__}")
        return captures.take(instance[name], at)
    if owner is None:
        return _absent(captures, view, value, path, name)
    if isinstance(raw, functools.cached_property):
        captures.guard(tuple(instance or ()), path.step("attr", "__dict__").step("keys"))
        at = path.step("type").step("attr", name).step("attr", "func")
        return captures.function(raw.func, at)(view)
    return _bound(captures, view, value, raw, owner, at)


def special(captures: Any, view: Any, value: Any, path: Path, name: str) -> Any:
    """A special method, which Python looks up on the type alone."""
    owner, raw = _find(type(value).__mro__, name)
    at = path.step("type").step("attr", name)
    if isinstance(raw, FunctionType):
        return MethodType(captures.function(raw, at), view)
    return _bound(captures, view, value, raw, owner, at)


def super_attribute(captures: Any, view: Any, cls: type, value: Any, path: Path, name: str) -> Any:
    mro = type(value).__mro__
    start = mro.index(cls) + 1
    owner, raw = _find(mro[start:], name)
    if owner is None:
        raise AttributeError(f"'super' object has no attribute {name!r}")
    at = path.step("type").step("attr", "__mro__").step("item", mro.index(owner)).step("attr", name)
    if isinstance(raw, property):
        return _property(captures, view, raw, at)
    if isinstance(raw, FunctionType):
        return MethodType(captures.function(raw, at), view)
    return _bound(captures, view, value, raw, owner, at)


def _instance_dict(value: Any) -> dict[str, Any] | None:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _property(captures: Any, view: Any, raw: property, at: Path) -> Any:
    if raw.fget is None:
        raise AttributeError("property has no getter")
    return captures.take(raw.fget, at.step("attr", "fget"))(view)


def _bound(captures: Any, view: Any, value: Any, raw: Any, owner: Any, at: Path) -> Any:
    """The attribute `raw` of a class as an instance gives it; `at` is the path to it through the instance."""
    if isinstance(raw, FunctionType):
        return MethodType(captures.function(raw, at.step("attr", "__func__")), view)
    if isinstance(raw, staticmethod):
        return captures.take(raw.__func__, at)
    if isinstance(raw, classmethod):
        cls = captures.take(type(value), Path(at[:-1]).step("type"))
        return MethodType(captures.function(raw.__func__, at.step("attr", "__func__")), cls)
    if isinstance(raw, _LRU):
        at = Path(at[:-1]).step("type").step("attr", at[-1].key)
        return MethodType(captures.take(raw, at), view)
    if hasattr(type(raw), "__jitad_nested__"):
        at = Path(at[:-1]).step("type").step("attr", at[-1].key)
        return captures.take(raw, at).bound_to(view)
    if not hasattr(type(raw), "__get__"):
        return captures.take(raw, at)
    if not is_user_class(owner):
        return raw.__get__(value, type(value))
    if isinstance(raw, type):
        return captures.take(raw, at)
    raise captures.error(at, f"goes through the descriptor {type(raw).__name__}")


def _absent(captures: Any, view: Any, value: Any, path: Path, name: str) -> Any:
    raw = _find(type(value).__mro__, "__getattr__")[1]
    if isinstance(raw, FunctionType):
        instance = _instance_dict(value)
        if instance is None:
            raise captures.error(path.step("attr", name), "does not exist, which cannot be watched on a class that "
                                                          "has slots")
        captures.guard(tuple(instance), path.step("attr", "__dict__").step("keys"))
        captures.guard(False, path.step("type").step("has", name))
        at = path.step("type").step("attr", "__getattr__")
        return captures.function(raw, at)(view, name)
    captures.guard(False, path.step("has", name))
    raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
