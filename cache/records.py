"""What the store keeps: counts, misses, memos, and the small records that tie entries to their owner."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

from cachetools import LRUCache

__all__ = ["Bounded", "Build", "CacheInfo", "Counters", "Memo", "Miss", "Record", "Slot"]

MISSES_KEPT = 16


class CacheInfo(NamedTuple):
    """Counts of a store or of one owner in it; every field is an `int`."""

    hits: int
    misses: int
    compiles: int
    currsize: int
    maxsize: int


class Miss(NamedTuple):
    """Why a call found no entry: `number` counts the owner's recorded misses from 1, `reasons` are lines of words."""

    number: int
    reasons: tuple[str, ...]


class Memo(Protocol):
    """Something that remembers an entry outside the store; must be hashable by identity and weakly referenceable."""

    def forget(self) -> None:
        """Drop what is remembered. Runs under the store's lock: assign attributes, do nothing else."""


class Counters:
    """Plain counts of one owner. Callers add their warm hits without a lock: `counters.hits += 1`.

    Such increments may lose a count when threads race, which is the price of a warm path without a lock.
    """

    __slots__ = ("compiles", "hits", "misses")

    def __init__(self) -> None:
        self.zero()

    def zero(self) -> None:
        """Set every count to zero."""
        self.hits = self.misses = self.compiles = 0

    def add(self, other: Counters) -> None:
        """Add the counts of `other` to these."""
        self.hits += other.hits
        self.misses += other.misses
        self.compiles += other.compiles


class Slot:
    """Where an entry lives. Hashed by identity, so siblings under one key are separate items of the LRU order."""

    __slots__ = ("entry", "key", "record")

    def __init__(self, record: Record, key: Hashable, entry: Any) -> None:
        self.record = record
        self.key = key
        self.entry = entry


class Record:
    """What the store knows of one owner."""

    __slots__ = ("counters", "hits_seen", "memos", "miss_count", "misses", "siblings")

    def __init__(self) -> None:
        self.counters = Counters()
        self.hits_seen = 0
        self.siblings: dict[Hashable, list[Slot]] = {}
        self.memos: weakref.WeakKeyDictionary[Memo, Slot | None] = weakref.WeakKeyDictionary()
        self.misses: deque[Miss] = deque(maxlen=MISSES_KEPT)
        self.miss_count = 0

    def count_hit(self) -> None:
        """Count a hit that came through the store, which is not news to the LRU order."""
        self.counters.hits += 1
        self.hits_seen += 1

    def size(self) -> int:
        return sum(map(len, self.siblings.values()))

    def forget_all(self) -> None:
        for memo in list(self.memos):
            self.memos[memo] = None
            memo.forget()

    def forget_slot(self, slot: Slot) -> None:
        for memo, remembered in list(self.memos.items()):
            if remembered is slot:
                self.memos[memo] = None
                memo.forget()

    def idle(self) -> bool:
        return not self.siblings and not len(self.memos)


class Build:
    """A build that a thread may run: after `claim` it is under way, and what came of it stands once `done` is set."""

    __slots__ = ("claimed", "done", "entry", "ok", "stored", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.entry: Any = None
        self.claimed = self.ok = self.stored = False

    def claim(self) -> None:
        """Make it something to wait for; not done at once, since most look-ups find an entry."""
        self.done = threading.Event()
        self.claimed = True


class Bounded(LRUCache):
    """An LRU order over slots that tells its owner about every slot it evicts."""

    def __init__(self, maxsize: int, evicted: Callable[[Slot], None]) -> None:
        super().__init__(maxsize)
        self._evicted = evicted

    def popitem(self) -> tuple[Slot, None]:
        slot, nothing = super().popitem()
        self._evicted(slot)
        return slot, nothing
