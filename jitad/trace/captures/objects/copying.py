"""``copy.copy`` and ``copy.deepcopy`` of captured objects: an object of the recording, which the code may change."""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from jitad.cache.keys.captures import Path
from jitad.trace.captures.policy import is_user_class

__all__ = ["copier"]

_OF_ITS_OWN = frozenset("__reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __getnewargs_ex__".split())


def copier(captures: Any, view: Any, value: Any, path: Path, name: str) -> Callable[..., Any]:
    """What a captured object without a ``__copy__`` or ``__deepcopy__`` of its own has there."""
    if any(_OF_ITS_OWN & vars(cls).keys() and "__dataclass_fields__" not in vars(cls)
           for cls in type(value).__mro__ if is_user_class(cls)):
        raise captures.error(path, "is copied in a way of its own (__reduce__ and the like), which cannot be followed")

    def made() -> Any:
        return object.__new__(captures.take(type(value), path.step("type")))

    def shallow() -> Any:
        result = made()
        for attribute, taken in _state(captures, value, path):
            object.__setattr__(result, attribute, taken)
        return result

    def deep(memo: dict[int, Any]) -> Any:
        result = memo[id(view)] = made()
        for attribute, taken in _state(captures, value, path):
            object.__setattr__(result, attribute, copy.deepcopy(taken, memo))
        return result
    return shallow if name == "__copy__" else deep


def _state(captures: Any, value: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """The attributes of an instance, each taken."""
    instance = getattr(value, "__dict__", None)
    if instance is not None:
        captures.guard(tuple(instance), path.step("attr", "__dict__").step("keys"))
        for name in list(instance):
            yield name, captures.take(instance[name], path.step("attr", "__dict__").step("item", name))
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                has = hasattr(value, name)
                captures.guard(has, path.step("has", name))
                if has:
                    yield name, captures.take(getattr(value, name), path.step("attr", name))
