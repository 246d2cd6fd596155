"""What a transformed function remembers: entries that it calls without asking the cache, and bound forms of methods."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from jitad.cache.signature import Signature
from jitad.compile.kernel_errors import Miss, StatusMiss
from jitad.entry import Entry


class Remembered:
    """An entry that `home` calls without asking the cache, until the cache drops it. Holds `home` weakly: no cycles, so
    that a function made in a loop goes, with the arrays that it captures, as soon as it is no longer used."""

    warm: Callable[..., Any] | None = None

    def __init__(self, home: Any, signature: Signature, entry: Entry):
        self.home, self.signature = weakref.ref(home), signature
        self.entry: Entry | None = entry
        self.guarded = entry.guarded

    def forget(self) -> None:
        """Called by the cache: the entry is gone."""
        home = self.home()
        if home is not None:
            home._warm = None
        self.warm = self.entry = None


class Bound(weakref.WeakKeyDictionary):
    """The bound forms of decorated methods: an instance's by method, a method's by class. Copies and pickles of the
    instance start with none."""

    def __reduce__(self) -> Any:
        return Bound, ()

    def __deepcopy__(self, memo: Any) -> Bound:
        return Bound()


def either(ways: list[Any]) -> Callable[..., Any]:
    """Ways through one function's branches, tried in turn: each kernel knows whether it is on its way."""
    def warm(*args: Any, **kwargs: Any) -> Any:
        for way in ways:
            try:
                return way(*args, **kwargs)
            except StatusMiss:
                continue
        raise Miss
    return warm
