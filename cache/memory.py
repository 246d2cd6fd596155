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
import time
import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from .bounds import Limits, Order
from .contents import Contents, ShapeChurnWarning
from .records import Build, CacheInfo, Counters, Memo, Miss, Record, Slot

__all__ = ["CacheInfo", "Counters", "Limits", "Memo", "Miss", "ShapeChurnWarning", "Store"]

Accept = Callable[[Any], bool]


class Store(Contents):
    """Bounded map from (owner, key) to entries, safe under threads, with one build per key at a time.

    The options are those of `Limits`: entries go when there are more than `maxsize`, more than `maxbytes` bytes
    of them, or more than `per_function` of one owner; by default the least recently used first. An entry that is
    larger than `maxbytes` alone stays until the next one comes. The store holds owners, keys and entries
    strongly and memos weakly; it never sees a user's function.

    Raises `ValueError` or `TypeError` for an option that makes no sense.

    >>> store = Store(maxsize=2)
    >>> store.get_or_build("f", (3,), lambda: "entry")
    'entry'
    >>> store.get_or_build("f", (3,), lambda: "another")
    'entry'
    >>> store.info()
    CacheInfo(hits=1, misses=1, compiles=1, currsize=1, maxsize=2)
    """

    def __init__(
        self, maxsize: int = Limits().maxsize, *, clock: Callable[[], float] = time.monotonic, **limits: Any
    ) -> None:
        super().__init__(Limits(maxsize, **limits), clock)
        self._building: dict[tuple[Hashable, Hashable], Build] = {}
        self._waiting: dict[int, Build] = {}
        _STORES.add(self)

    # --- look-up and build ---------------------------------------------------------------------------------------

    def get(self, owner: Hashable, key: Hashable, accept: Accept | None = None) -> Any | None:
        """Return the most recently used entry under `key` that `accept` takes, or None.

        A found entry counts as one hit; a failed look-up counts nothing, since `get_or_build` usually follows.
        """
        with self.lock:
            self.drop_expired()
            record = self.records.get(owner)
            slots = list(record.siblings.get(key, ())) if record is not None else []
        self.release()
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

        Raises what `build` or `accept` raise, and `ValueError` when `build` returns None; also what `warn`
        raises, by when the entry is stored.
        """
        mine = Build(threading.get_ident())
        churn = None
        try:
            entry = self._find_or_claim(owner, key, mine, accept)
            if entry is None:
                start = time.perf_counter()
                entry = mine.entry = build()
                if entry is None:
                    raise ValueError("build() returned None, which the store cannot tell from an absent entry")
                mine.seconds = time.perf_counter() - start
                mine.ok = True
        finally:
            # Around everything, so that not even an interrupt leaves others waiting for a build that is gone.
            if mine.claimed:
                churn = self._finish(owner, key, mine)
        if churn is not None:
            self.warn(owner, churn)
        return entry

    def _find_or_claim(self, owner: Hashable, key: Hashable, mine: Build, accept: Accept | None) -> Any | None:
        """Return an accepted entry, or None once it is up to the caller to build."""
        tried: set[Slot] = set()
        while True:
            with self.lock:
                self.drop_expired()
                record = self.record_of(owner)
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
                with self.lock:
                    if slot in self._order.slots:  # not a hit of a store that was cleared meanwhile
                        slot.count_hit()
                        self.touch(slot)
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
            with self.lock:
                self._waiting.pop(me, None)
        if not running.ok or (accept is not None and not accept(running.entry)):
            return None
        # Taken from the build itself: its slot may already have been evicted or cleared.
        if running.stored:
            with self.lock:
                record.count_hit()
        return running.entry

    def _finish(self, owner: Hashable, key: Hashable, mine: Build) -> str | None:
        churn = None
        try:
            with self.lock:
                # Neither a private build nor one that clear() has disowned is found here.
                if self._building.get((owner, key)) is mine:
                    del self._building[owner, key]
                    if mine.ok:
                        churn = self.insert(owner, key, mine.entry, mine.seconds)
                        mine.stored = True
        finally:
            mine.done.set()
        self.release()
        return churn

    # --- clear, fork ---------------------------------------------------------------------------------------------

    def clear(self, owner: Hashable | None = None) -> None:
        """Forget the entries, counts and misses of one owner, or of all; every memo concerned forgets too.

        Safe while calls run: those finish with the entry they have, and builds under way are not stored.
        """
        with self.lock:
            for running in [k for k in self._building if owner is None or k[0] == owner]:
                del self._building[running]
            for record in self.selected(owner):
                for slot in list(record.slots()):
                    self._order.remove(slot)
                    self.dropped.append(slot)
                record.reset()
            if owner is None:
                self.retired.zero()
            self.retire()
        self.release()

    def _busy(self) -> set[Hashable]:
        return {owner for owner, _ in self._building}

    def _start_over_in_child(self) -> None:
        """After a fork only the forking thread lives: nothing that others lock, build or wait for may stay."""
        torn = not self.lock.acquire(blocking=False)
        self.lock = threading.RLock()
        self._building.clear()
        self._waiting.clear()
        if torn:  # another thread was in the middle of a change
            self._order = Order(self.limits, self.clock)
            for record in self.records.values():
                record.reset()


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_STORES):
        store._start_over_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
