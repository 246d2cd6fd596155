"""The bounded in-memory store: one build per key under concurrency, counters, active invalidation.

The store maps an *owner* (any hashable that stands for a function) and a *key* (any hashable, usually a
`Signature`) to entries. Several entries, *siblings*, may live under one key when something that is not part
of the key tells them apart; an `accept` predicate then chooses among them.

Warm calls never come here. A caller keeps its last entry in a *memo*, an object with a `forget()` method that
the store calls when the entry is cleared or evicted, so that the memo needs no validity check of its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from cachetools import LRUCache

from .records import Bounded, Build, CacheInfo, Counters, Memo, Miss, Record, Slot

__all__ = ["CacheInfo", "Counters", "Memo", "Miss", "Store"]

DEFAULT_MAXSIZE = 1024

Accept = Callable[[Any], bool]


class Store:
    """Bounded map from (owner, key) to entries, safe under threads, with one build per key at a time.

    The least recently used entry goes when `maxsize` entries are exceeded. The store holds owners, keys and
    entries strongly and memos weakly; it never sees a user's function.

    Raises `ValueError` when `maxsize` is below 1, `TypeError` when it is not an integer.

    >>> store = Store(maxsize=2)
    >>> store.get_or_build("f", (3,), lambda: "entry")
    'entry'
    >>> store.get_or_build("f", (3,), lambda: "another")
    'entry'
    >>> store.info()
    CacheInfo(hits=1, misses=1, compiles=1, currsize=1, maxsize=2)
    """

    def __init__(self, maxsize: int = DEFAULT_MAXSIZE) -> None:
        # Re-entrant, because the garbage collector may run a finaliser that comes back here at any allocation.
        self._lock = threading.RLock()
        self._order = Bounded(_checked(maxsize), self._evicted)
        self._records: dict[Hashable, Record] = {}
        self._retired = Counters()
        self._building: dict[tuple[Hashable, Hashable], Build] = {}
        self._waiting: dict[int, Build] = {}
        _STORES.add(self)

    # --- look-up and build ---------------------------------------------------------------------------------------

    def get(self, owner: Hashable, key: Hashable, accept: Accept | None = None) -> Any | None:
        """Return the most recently used entry under `key` that `accept` takes, or None.

        A found entry counts as one hit; a failed look-up counts nothing, since `get_or_build` usually follows.
        """
        with self._lock:
            record = self._records.get(owner)
            slots = list(record.siblings.get(key, ())) if record is not None else []
        return self._choose(slots, accept)

    def get_or_build(
        self, owner: Hashable, key: Hashable, build: Callable[[], Any], accept: Accept | None = None
    ) -> Any:
        """Return an entry under `key` that `accept` takes, else what `build()` makes, stored.

        Of any number of threads that ask for one key at once, one builds and the others wait; different keys
        build in parallel. When a build raises, nothing is stored, its caller sees the error and one of the
        waiting threads tries in turn. A build may ask for other entries; where waiting for them would be
        waiting for itself, it builds a private one that is not stored. What `clear` overtakes is returned to
        its callers and not stored.

        Every call counts as one hit or one miss. `accept` runs without a lock.

        Raises what `build` or `accept` raise, and `ValueError` when `build` returns None.
        """
        mine = Build(threading.get_ident())
        try:
            entry = self._find_or_claim(owner, key, mine, accept)
            if entry is None:
                entry = mine.entry = build()
                if entry is None:
                    raise ValueError("build() returned None, which the store cannot tell from an absent entry")
                mine.ok = True
            return entry
        finally:
            # Around everything, so that not even an interrupt leaves others waiting for a build that is gone.
            if mine.claimed:
                self._finish(owner, key, mine)

    def _find_or_claim(self, owner: Hashable, key: Hashable, mine: Build, accept: Accept | None) -> Any | None:
        """Return an accepted entry, or None once it is up to the caller to build."""
        tried: set[Slot] = set()
        while True:
            with self._lock:
                record = self._record(owner)
                fresh = [slot for slot in record.siblings.get(key, ()) if slot not in tried]
                running = None if fresh else self._building.get((owner, key))
                if not fresh and (running is None or self._waits_for(running, mine.thread)):
                    record.counters.misses += 1
                    mine.claim()
                    if running is None:
                        self._building[owner, key] = mine
                    return None
                if running is not None:
                    self._waiting[mine.thread] = running
            if running is None:
                entry = self._choose(fresh, accept)
                tried.update(fresh)
            else:
                entry = self._await(running, mine.thread, record, accept)
            if entry is not None:
                return entry

    def _choose(self, slots: Iterable[Slot], accept: Accept | None) -> Any | None:
        for slot in slots:
            if accept is None or accept(slot.entry):
                with self._lock:
                    if slot in self._order:  # not a hit of a store that was cleared meanwhile
                        slot.record.count_hit()
                        self._touch(slot)
                return slot.entry
        return None

    def _waits_for(self, running: Build, thread: int) -> bool:
        """Whether `running` can only end after `thread` goes on: it is its own build, or waits for one of its."""
        build: Build | None = running
        while build is not None:
            if build.thread == thread:
                return True
            build = self._waiting.get(build.thread)
        return False

    def _await(self, running: Build, me: int, record: Record, accept: Accept | None) -> Any | None:
        try:
            running.done.wait()
        finally:
            with self._lock:
                self._waiting.pop(me, None)
        if not running.ok or (accept is not None and not accept(running.entry)):
            return None
        # Taken from the build itself: its slot may already have been evicted or cleared.
        if running.stored:
            with self._lock:
                record.count_hit()
        return running.entry

    def _finish(self, owner: Hashable, key: Hashable, mine: Build) -> None:
        with self._lock:
            # Neither a private build nor one that clear() has disowned is found here.
            if self._building.get((owner, key)) is mine:
                del self._building[owner, key]
                if mine.ok:
                    self._insert(owner, key, mine.entry)
                    mine.stored = True
        mine.done.set()

    def _insert(self, owner: Hashable, key: Hashable, entry: Any) -> None:
        record = self._record(owner)
        record.counters.compiles += 1
        slot = Slot(record, key, entry)
        self._refresh()
        self._order[slot] = None
        record.siblings.setdefault(key, []).insert(0, slot)

    # --- memos ---------------------------------------------------------------------------------------------------

    def attach(self, owner: Hashable, memo: Memo) -> Counters:
        """Register `memo` (weakly) with `owner`, to be told to `forget()`; return the owner's counters.

        The counters stay the owner's for as long as one attached memo lives.
        """
        with self._lock:
            record = self._record(owner)
            record.memos.setdefault(memo, None)
            return record.counters

    def publish(self, owner: Hashable, key: Hashable, entry: Any, memo: Memo, action: Callable[[], None]) -> bool:
        """Run `action`, which makes `memo` remember `entry`, unless the entry is no longer stored.

        Check and action are one step under the lock, so a concurrent `clear` either comes first and nothing is
        remembered, or comes after and calls `memo.forget()`. Returns whether `action` ran.
        """
        with self._lock:
            record = self._records.get(owner)
            slots = record.siblings.get(key, ()) if record is not None else ()
            for slot in slots:
                if slot.entry is entry:
                    slot.record.memos[memo] = slot
                    action()
                    return True
            return False

    # --- misses and contents -------------------------------------------------------------------------------------

    def note_miss(self, owner: Hashable, reasons: Sequence[str]) -> None:
        """Remember in words why a call of `owner` found no entry; the last few are kept."""
        with self._lock:
            record = self._record(owner)
            record.miss_count += 1
            record.misses.append(Miss(record.miss_count, tuple(reasons)))

    def misses(self, owner: Hashable) -> tuple[Miss, ...]:
        """Return the last recorded misses of `owner`, oldest first."""
        with self._lock:
            record = self._records.get(owner)
            return tuple(record.misses) if record is not None else ()

    def entries(self, owner: Hashable) -> list[tuple[Hashable, Any]]:
        """Return (key, entry) of everything stored for `owner`, without counting or touching anything."""
        with self._lock:
            record = self._records.get(owner)
            slots = [slot for group in record.siblings.values() for slot in group] if record is not None else []
        return [(slot.key, slot.entry) for slot in slots]

    def owners(self) -> list[Hashable]:
        """Return every owner that has entries."""
        with self._lock:
            return [owner for owner, record in self._records.items() if record.siblings]

    def info(self, owner: Hashable | None = None) -> CacheInfo:
        """Return the counts of one owner, or of all together."""
        with self._lock:
            total = Counters()
            if owner is None:
                total.add(self._retired)
            records = self._selected(owner)
            for record in records:
                total.add(record.counters)
            size = sum(record.size() for record in records)
            return CacheInfo(total.hits, total.misses, total.compiles, size, int(self._order.maxsize))

    # --- clear and resize ----------------------------------------------------------------------------------------

    def clear(self, owner: Hashable | None = None) -> None:
        """Forget the entries, counts and misses of one owner, or of all; every memo concerned forgets too.

        Safe while calls run: those finish with the entry they have, and builds under way are not stored.
        """
        dropped: list[Slot] = []  # released after the lock: an entry's finaliser may take its time
        with self._lock:
            for running in [k for k in self._building if owner is None or k[0] == owner]:
                del self._building[running]
            for record in self._selected(owner):
                for group in record.siblings.values():
                    dropped += group
                record.siblings.clear()
                record.counters.zero()
                record.hits_seen = record.miss_count = 0
                record.misses.clear()
                record.forget_all()
            for slot in dropped:
                del self._order[slot]
            if owner is None:
                self._retired.zero()
            self._retire()

    def resize(self, maxsize: int) -> None:
        """Set the greatest number of entries; when it shrinks, the least recently used go.

        Raises `ValueError` when `maxsize` is below 1, `TypeError` when it is not an integer.
        """
        with self._lock:
            old, self._order = self._order, Bounded(_checked(maxsize), self._evicted)
            self._refresh(old)
            while old:
                slot, nothing = LRUCache.popitem(old)  # oldest first, and not an eviction
                self._order[slot] = nothing

    # --- under the lock ------------------------------------------------------------------------------------------

    def _record(self, owner: Hashable) -> Record:
        record = self._records.get(owner)
        if record is None:
            if len(self._records) >= 2 * self._order.maxsize + DEFAULT_MAXSIZE:
                self._retire()
            record = self._records[owner] = Record()
        return record

    def _retire(self) -> None:
        """Drop the records of owners that have nothing left, so that short-lived code does not pile up."""
        busy = {owner for owner, _ in self._building}
        for owner in [o for o, record in self._records.items() if record.idle() and o not in busy]:
            self._retired.add(self._records.pop(owner).counters)

    def _selected(self, owner: Hashable | None) -> list[Record]:
        if owner is None:
            return list(self._records.values())
        record = self._records.get(owner)
        return [record] if record is not None else []

    def _touch(self, slot: Slot) -> None:
        if slot in self._order:
            self._order[slot]  # reading moves it to the end of the LRU order
            group = slot.record.siblings[slot.key]
            group.remove(slot)
            group.insert(0, slot)

    def _refresh(self, order: LRUCache | None = None) -> None:
        """Bring the LRU order up to date with warm hits, which went past it, before anything is evicted."""
        order = self._order if order is None else order
        for record in self._records.values():
            if record.counters.hits != record.hits_seen:
                record.hits_seen = record.counters.hits
                for slot in list(record.memos.values()):
                    if slot is not None and slot in order:
                        order[slot]

    def _evicted(self, slot: Slot) -> None:
        record = slot.record
        group = record.siblings[slot.key]
        group.remove(slot)
        if not group:
            del record.siblings[slot.key]
        record.forget_slot(slot)

    def _start_over_in_child(self) -> None:
        """After a fork only the forking thread lives: nothing that others lock, build or wait for may stay."""
        torn = not self._lock.acquire(blocking=False)
        self._lock = threading.RLock()
        self._building.clear()
        self._waiting.clear()
        if torn:  # another thread was in the middle of a change
            self._order = Bounded(int(self._order.maxsize), self._evicted)
            for record in self._records.values():
                record.siblings.clear()
                record.forget_all()


def _checked(maxsize: int) -> int:
    if not isinstance(maxsize, int) or isinstance(maxsize, bool):
        raise TypeError(f"maxsize must be an integer number of entries, not {maxsize!r}")
    if maxsize < 1:
        raise ValueError(f"maxsize must be at least 1, not {maxsize}")
    return maxsize


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_STORES):
        store._start_over_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
