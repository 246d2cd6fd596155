"""How much the store may keep: `Limits`, and the order in which entries go when there is too much."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cachetools import Cache, LRUCache, TTLCache

from .records import Slot

__all__ = ["POLICIES", "Limits", "Order", "count"]

POLICIES = ("lru", "lfu", "ttl")


class Limits(NamedTuple):
    """Bounds of a store: `maxsize` entries and `maxbytes` bytes in all, `per_function` entries of one owner.

    `policy` says which entry goes first: "lru" the one not used for the longest time, "lfu" the one used least
    often, "ttl" any that has not been used for `ttl` seconds, and then as "lru". None is no bound.
    """

    maxsize: int = 1024
    maxbytes: int | None = 512 * 1024**2
    policy: str = "lru"
    ttl: float | None = None
    per_function: int | None = 128

    def checked(self) -> Limits:
        """Return these limits.

        Raises `TypeError` or `ValueError`, which names the option, for one that makes no sense.

        >>> Limits(maxsize=0).checked()
        Traceback (most recent call last):
        ValueError: maxsize must be at least 1, not 0
        """
        count("maxsize", self.maxsize, "an integer number of entries")
        if self.maxbytes is not None:
            count("maxbytes", self.maxbytes, "an integer number of bytes, or None for no bound")
        if self.per_function is not None:
            count("per_function", self.per_function, "an integer number of entries, or None for no bound")
        if self.policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(map(repr, POLICIES))}, not {self.policy!r}")
        if self.policy == "ttl":
            _seconds(self.ttl)
        elif self.ttl is not None:
            raise ValueError(f"ttl={self.ttl!r} goes with policy='ttl', not with policy={self.policy!r}")
        return self


def count(name: str, value: object, what: str) -> None:
    """Raise `TypeError` or `ValueError` unless the option `name` is an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be {what}, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")


def _seconds(ttl: object) -> None:
    if ttl is None:
        raise ValueError("policy='ttl' needs ttl=, the seconds that an entry is kept without being used")
    if not isinstance(ttl, (int, float)) or isinstance(ttl, bool):
        raise TypeError(f"ttl must be a number of seconds, not {ttl!r}")
    if not 0 < ttl < math.inf:
        raise ValueError(f"ttl must be a positive, finite number of seconds, not {ttl!r}")


class _ByHits(Cache):
    """Gives up what was used least often, warm calls included, which `cachetools.LFUCache` would not see."""

    newest: Slot | None = None

    def __setitem__(self, slot: Slot, nothing: None) -> None:
        super().__setitem__(slot, nothing)
        self.newest = slot

    def popitem(self) -> tuple[Slot, None]:
        others = [s for s in self if s is not self.newest] or list(self)
        slot = min(others, key=lambda s: s.counters.hits)
        return slot, self.pop(slot)


class Order:
    """The slots of a store, and which of them goes first. It has no bound of its own: the store counts."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.slots: set[Slot] = set()
        self._clock = clock
        self._now: float | None = None  # while time stands still
        self._cache: Any = (
            TTLCache(math.inf, limits.ttl, self._time) if limits.policy == "ttl"
            else _ByHits(math.inf) if limits.policy == "lfu" else LRUCache(math.inf)
        )  # fmt: skip
        self._timed = limits.policy == "ttl"

    def use(self, slot: Slot) -> None:
        """Add a slot, or note that it was used just now."""
        self.slots.add(slot)
        self._cache[slot] = None

    def remove(self, slot: Slot) -> None:
        """Take a slot out, if it is there."""
        self.slots.discard(slot)
        self._cache.pop(slot, None)
        if self._timed:
            self._cache.expire()

    def pop(self, spared: Slot | None) -> Slot:
        """Take out and return the slot that goes first; there must be another one than `spared`."""
        with self._standstill():
            late = [slot for slot in self.expired() if slot is not spared]
            if late:
                slot = late[0]
            else:
                if spared is not None and spared in self.slots:
                    self._cache[spared] = None
                slot = self._cache.popitem()[0]
        self.slots.discard(slot)
        return slot

    def expired(self) -> list[Slot]:
        """The slots that have not been used for too long, as far as `use` was told. They stay until removed."""
        if not self._timed or len(self._cache) == len(self.slots):
            return []
        return list(self.slots - set(self._cache))

    def drain(self) -> list[Slot]:
        """Take out all slots and return them, the one that goes first first."""
        with self._standstill():
            rest = [self._cache.popitem()[0] for _ in range(len(self._cache))]
        late = self.slots - set(rest)
        self.slots.clear()
        return [*late, *rest]

    def _time(self) -> float:
        return self._clock() if self._now is None else self._now

    @contextlib.contextmanager
    def _standstill(self) -> Iterator[None]:
        """Let nothing expire between two steps."""
        self._now = self._clock()
        try:
            yield
        finally:
            self._now = None
