"""What a transformed function remembers: entries that it calls without asking the cache, and bound forms of methods."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from jitad.cache.keys.signature import Signature
from jitad.call.build.entry import Entry
from jitad.compile.entry.kernel_errors import KernelMiss, StatusMiss, is_marked

MISSED: Any = object()                                   # instead of a result
_MISSES = (KernelMiss, TypeError, OverflowError)               # the last for integers beyond 64 bits


class Remembered:
    """An entry that `home` calls without asking the cache, until the cache drops it. Holds `home` weakly: no cycles, so
    that a function made in a loop goes, with the arrays that it captures, as soon as it is no longer used."""

    warm: Callable[..., Any] | None = None               # raises `KernelMiss` for what it does not serve
    call: Callable[..., Any] | None = None               # goes on to the function itself then

    def __init__(self, home: Any, signature: Signature, entry: Entry):
        self.home, self.signature = weakref.ref(home), signature
        self.entry: Entry | None = entry
        self.guarded = entry.guarded

    def forget(self) -> None:
        """Called by the cache: the entry is gone."""
        home = self.home()
        if home is not None:
            home._call = home._cold
        self.warm = self.call = self.entry = None


class Bound(weakref.WeakKeyDictionary):
    """The bound forms of decorated methods: an instance's by method, a method's by class. Copies and pickles of the
    instance start with none."""

    def __reduce__(self) -> Any:
        return Bound, ()

    def __deepcopy__(self, memo: Any) -> Bound:
        return Bound()


class sibling:
    """A property that is computed once, as by `functools.cached_property`; but who is found to be its own sibling is
    not kept: it would be a cycle."""

    def __init__(self, find: Callable[[Any], Any]):
        self._find, self.__doc__, self.__name__ = find, find.__doc__, find.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        found = self._find(instance)
        if found is not instance:
            instance.__dict__[self.__name__] = found
        return found


def attempt(warm: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a warm function, or `MISSED`."""
    try:
        return MISSED if warm is None else warm(*args, **kwargs)
    except _MISSES as error:
        if is_marked(error):
            raise
        return MISSED


def falling_back(warm: Callable[..., Any], otherwise: Callable[..., Any], own_out: bool) -> Callable[..., Any]:
    """`warm`, where `otherwise` is called with what it does not serve: with ``out=`` too, unless that is the user's."""
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                return warm(*args)
            if own_out or "out" not in kwargs:
                return warm(*args, **kwargs)
        except _MISSES as error:
            if is_marked(error):
                raise
        return otherwise(*args, **kwargs)
    return call


def either(ways: list[Any]) -> Callable[..., Any]:
    """Ways through one function's branches, tried in turn: each kernel knows whether it is on its way."""
    def warm(*args: Any, **kwargs: Any) -> Any:
        for way in ways:
            try:
                return way(*args, **kwargs)
            except StatusMiss:
                continue
        raise KernelMiss
    return warm
