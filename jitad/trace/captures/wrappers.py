"""Captured callables around a function: bound methods, partials, the wrappers of lru_cache."""
from __future__ import annotations

import functools
from types import MethodType
from typing import Any

from jitad.cache.keys.captures import Path
from jitad.trace.captures.containers import take_tuple
from jitad.trace.captures.libraries.objects import method_of
from jitad.trace.captures.notes import Notes

__all__ = ["take_cached", "take_method", "take_partial"]

_OF_CACHED = frozenset({*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "cache_parameters"})


def take_method(captures: Notes, value: MethodType, path: Path) -> Any:
    """The function's copy, bound to the stand-in of its owner."""
    captures.guard(MethodType, path.step("type"))
    owner = captures.take(value.__self__, path.step("attr", "__self__"))
    function = captures.take(value.__func__, path.step("attr", "__func__"))
    return method_of(owner, function) or MethodType(function, owner)


def take_partial(captures: Notes, value: functools.partial[Any], path: Path) -> Any:
    """A partial of the function's copy, with the attributes of the original."""
    captures.guard(type(value), path.step("type"))
    args = take_tuple(captures, value.args, path.step("attr", "args"))
    keywords = path.step("attr", "keywords")
    captures.guard(tuple(value.keywords), keywords.step("keys"))
    taken = {name: captures.take(v, keywords.step("item", name)) for name, v in value.keywords.items()}
    copy = functools.partial(captures.take(value.func, path.step("attr", "func")), *args, **taken)
    vars(copy).update({name: captures.take(v, path.step("attr", name)) for name, v in vars(value).items()})
    captures.attributes.found(copy, value, path)
    captures.attributes.hold(copy, path)
    return copy


def take_cached(captures: Notes, value: Any, path: Path) -> Any:
    """The function under an lru_cache, which must not keep tracers."""
    captures.guard(type(value), path.step("type"))
    if not {*vars(value)} <= _OF_CACHED:
        return captures.poison(path, "is an lru_cache with attributes, which cannot be followed")
    copy = captures.take(value.__wrapped__, path.step("attr", "__wrapped__"))
    captures.attributes.found(copy, value, path)
    return copy
