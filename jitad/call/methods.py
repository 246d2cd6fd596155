"""Decorated functions as methods of classes, and in pickles."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from jitad.call.memory import Bound
from jitad.call.messages import by_name
from jitad.call.request.request import TIERS, Request, Settings


class Methods:
    """What a transformed function does when a class or an instance has it, and how it is pickled."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]
    _given: Any
    _request: Request
    _settings: Settings
    _classes: Bound
    _attribute: str | None
    _origin: tuple[Any, str] | None
    _on_tier: Any

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        given = self._given
        if isinstance(given, classmethod):
            instance = type(instance) if owner is None else owner
        elif instance is None or isinstance(given, staticmethod) or not hasattr(given, "__get__"):
            return self
        make: Any = type(self)
        memo, key = self._memo(instance)
        known = memo.get(key)
        if known is None or known._origin[0] is not instance:
            bound = given.__get__(None, instance) if isinstance(given, classmethod) else given.__get__(instance, owner)
            known = memo[key] = make(bound, self._request, self._settings)
            known._origin = (instance, self._attribute or self.__name__)
        return known

    def _memo(self, instance: Any) -> tuple[Any, Any]:
        """Where the bound form for an instance or class is kept, and under what. Slotted instances have no place."""
        if isinstance(instance, type):
            return self._classes, instance
        holder = getattr(instance, "__dict__", None)
        if not isinstance(holder, dict):
            return {}, self
        memo = holder.get("_jitad_bound")
        return memo if memo is not None else holder.setdefault("_jitad_bound", Bound()), self

    def __reduce__(self) -> Any:
        return type(self), (self.__wrapped__, self._request, self._settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name where there is one: the decorator stands between a function and its own name."""
        home, name = self._origin or (None, "")
        home = home() if isinstance(home, weakref.ref) else home
        if home is not None:
            return (type(self)._on_tier if name in TIERS else getattr), (home, name)
        if by_name(self):
            return self.__qualname__
        return type(self), (self._given, self._request, self._settings)
