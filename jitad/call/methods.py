"""Decorated functions as methods of classes, and in pickles."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from jitad.call.ladder import Ladder
from jitad.call.messages import by_name
from jitad.call.pickling import restored, restores
from jitad.call.request.request import TIERS


class BoundForms(weakref.WeakKeyDictionary):
    """The bound forms of decorated methods: an instance's by method, a method's by class. Copies and pickles of the
    instance start with none."""

    def __reduce__(self) -> Any:
        return restored, ("bound forms",)

    def __deepcopy__(self, memo: Any) -> BoundForms:
        return BoundForms()


restores("bound forms")(BoundForms)


class Methods(Ladder):
    """What a transformed function does when a class or an instance has it, and how it is pickled."""

    __qualname__: str
    __wrapped__: Callable[..., Any]
    _pickled_as: str                       # the word for the class
    _classes: BoundForms
    _attribute: str | None
    _origin: tuple[Any, str] | None

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        given = self.subject.given
        if isinstance(given, classmethod):
            instance = type(instance) if owner is None else owner
        elif instance is None or isinstance(given, staticmethod) or not hasattr(given, "__get__"):
            return self
        memo, key = self._memo(instance)
        known = memo.get(key)
        if known is None or known._origin[0] is not instance:
            bound = given.__get__(None, instance) if isinstance(given, classmethod) else given.__get__(instance, owner)
            known = memo[key] = self.__jitad_with__(bound)
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
        return memo if memo is not None else holder.setdefault("_jitad_bound", BoundForms()), self

    def __jitad_with__(self, function: Callable[..., Any]) -> Any:
        """The same of another function."""
        make: Any = type(self)
        return make(function, self.subject.request, self.subject.settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name where there is one: the decorator stands between a function and its own name."""
        home, name = self._origin or (None, "")
        home = home() if isinstance(home, weakref.ref) else home
        if home is not None:
            return (restored, ("tier", home, name)) if name in TIERS else (getattr, (home, name))
        if by_name(self):
            return self.__qualname__
        subject = self.subject
        return restored, (self._pickled_as, subject.given, subject.request.parts, tuple(subject.settings))
