"""What the store keeps: counts, misses, memos, and the small records that tie entries to their owner."""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Protocol

from cachetools import LRUCache

__all__ = ["Build", "CacheInfo", "Counters", "Memo", "Miss", "MissNote", "OwnerReport", "Record", "Slot"]

MISSES_KEPT = 16


class CacheInfo(NamedTuple):
    """Counts of a store or of one owner in it; every field is an `int`."""

    hits: int
    misses: int
    compiles: int
    currsize: int
    maxsize: int


class Miss(NamedTuple):
    """Why a call found no entry: `number` counts the owner's recorded misses from 1, `reasons` are lines of words.

    `seconds` and `hits` are of the entry that was built then, None if none was stored; `cached` says whether it
    is still stored.
    """

    number: int
    reasons: tuple[str, ...]
    seconds: float | None = None
    hits: int | None = None
    cached: bool = False


class OwnerReport(NamedTuple):
    """What a store holds for one owner: number of entries, counts, seconds spent on building, bytes in use."""

    owner: Hashable
    entries: int
    hits: int
    misses: int
    seconds: float
    nbytes: int


class Memo(Protocol):
    """Something that remembers an entry outside the store; must be hashable by identity and weakly referenceable."""

    def forget(self) -> None:
        """Drop what is remembered. Runs under the store's lock: assign attributes, do nothing else."""


class Counters:
    """Plain counts of one owner or entry. Callers add their warm hits without a lock: `counters.hits += 1`, or in
    `cell`, where compiled code does.

    Such increments may lose a count when threads race, which is the price of a warm path without a lock.
    """

    __slots__ = ("cell", "compiles", "misses")

    def __init__(self) -> None:
        self.cell = ctypes.c_int64()
        self.zero()

    @property
    def hits(self) -> int:
        return self.cell.value

    @hits.setter
    def hits(self, number: int) -> None:
        self.cell.value = number

    def zero(self) -> None:
        """Set every count to zero."""
        self.hits = self.misses = self.compiles = 0

    def add(self, other: Counters) -> None:
        """Add the counts of `other` to these."""
        self.hits += other.hits
        self.misses += other.misses
        self.compiles += other.compiles


class Slot:
    """Where an entry lives. Hashed by identity, so siblings under one key are separate items of the order."""

    __slots__ = ("counters", "entry", "hits_seen", "key", "miss", "nbytes", "record", "seconds")

    def __init__(self, record: Record, key: Hashable, entry: Any, seconds: float) -> None:
        self.record = record
        self.key = key
        self.entry = entry
        self.seconds = seconds
        self.nbytes = 0
        self.counters = Counters()
        self.hits_seen = 0
        self.miss: MissNote | None = None

    def count_hit(self) -> None:
        """Count a hit that came through the store, which is not news to the order."""
        self.counters.hits += 1
        self.hits_seen += 1


class MissNote:
    """A miss as the store keeps it: while the entry built then is stored, its `slot` tells what came of it."""

    __slots__ = ("hits", "number", "reasons", "seconds", "slot", "thread")

    def __init__(self, number: int, reasons: tuple[str, ...]) -> None:
        self.number = number
        self.reasons = reasons
        self.thread: int | None = threading.get_ident()  # None once an entry has come of it
        self.slot: Slot | None = None
        self.seconds: float | None = None
        self.hits: int | None = None


class Record:
    """What the store knows of one owner."""

    __slots__ = ("churned", "counters", "hits_seen", "memos", "miss_count", "misses", "order", "seconds", "siblings")

    def __init__(self) -> None:
        self.counters = Counters()  # but for the hits of the entries that are stored
        self.hits_seen = 0
        self.siblings: dict[Hashable, list[Slot]] = {}
        self.order: LRUCache = LRUCache(math.inf)
        self.memos: weakref.WeakKeyDictionary[Memo, Slot | None] = weakref.WeakKeyDictionary()
        self.misses: deque[MissNote] = deque(maxlen=MISSES_KEPT)
        self.miss_count = 0
        self.seconds = 0.0  # of the entries that are gone
        self.churned = False

    def slots(self) -> Iterator[Slot]:
        for group in self.siblings.values():
            yield from group

    def count_hit(self) -> None:
        """Count a hit of an entry that may be gone by now."""
        self.counters.hits += 1
        self.hits_seen += 1

    def counts(self) -> Counters:
        """The counts of the owner and all its entries."""
        total = Counters()
        total.add(self.counters)
        for slot in self.slots():
            total.add(slot.counters)
        return total

    def size(self) -> int:
        return sum(map(len, self.siblings.values()))

    def add(self, slot: Slot) -> None:
        """File a new slot before its siblings, and with the last miss that this thread has noted for it."""
        self.siblings.setdefault(slot.key, []).insert(0, slot)
        self.order[slot] = None
        for note in reversed(self.misses):
            if note.thread == threading.get_ident():
                note.thread, note.slot, slot.miss = None, slot, note
                break

    def remove(self, slot: Slot, seconds: float) -> None:
        """Take a slot out; what it has counted stays the owner's. Its memos forget."""
        group = self.siblings.get(slot.key, [])
        if slot not in group:  # a finaliser came back here and was faster
            return
        group.remove(slot)
        if not group:
            del self.siblings[slot.key]
        self.order.pop(slot, None)
        self.counters.add(slot.counters)
        self.hits_seen += slot.counters.hits
        self.seconds += seconds
        if slot.miss is not None:
            slot.miss.seconds, slot.miss.hits, slot.miss.slot = seconds, slot.counters.hits, None
        for memo, remembered in list(self.memos.items()):
            if remembered is slot:
                self.memos[memo] = None
                memo.forget()

    def reset(self) -> None:
        """Forget the entries, counts and misses, and make every memo forget."""
        self.siblings.clear()
        self.order = LRUCache(math.inf)
        self.counters.zero()
        self.hits_seen = self.miss_count = 0
        self.seconds = 0.0
        self.churned = False
        self.misses.clear()
        for memo in list(self.memos):
            self.memos[memo] = None
            memo.forget()

    def idle(self) -> bool:
        return not self.siblings and not len(self.memos)


class Build:
    """A build that a thread may run: after `claim` it is under way, and what came of it stands once `done` is set."""

    __slots__ = ("claimed", "done", "entry", "ok", "seconds", "stored", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.entry: Any = None
        self.seconds = 0.0
        self.claimed = self.ok = self.stored = False

    def claim(self) -> None:
        """Make it something to wait for; not done at once, since most look-ups find an entry."""
        self.done = threading.Event()
        self.claimed = True
