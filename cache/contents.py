"""What a store holds, and how it is kept within its limits. Look-up and building are in `memory`."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from .bounds import Limits, Order
from .records import CacheInfo, Counters, Memo, Miss, MissNote, OwnerReport, Record, Slot

__all__ = ["Contents", "ShapeChurnWarning", "owner_name"]

ORPHANS = 32  # entries kept, at most, whose code is gone: the same source may be defined again


class ShapeChurnWarning(UserWarning):
    """One function needs more compiled tapes than the cache keeps for it: many signatures, or many ways through its
    branches."""


class Contents:
    """Entries by (owner, key) with counts, misses and memos; evicts what exceeds the limits.

    `size_of(entry)` gives the bytes and `seconds_of(entry)` further seconds that an entry has cost; both may
    grow, run under the lock and must take none. `gone(owners)` returns those owners whose code is not alive any
    more: their entries go first, and only a few of them are kept. `warn(owner, message)` is called without the
    lock when an owner first exceeds its own limit. An entry whose attribute `loaded` is true was not compiled here,
    and does not count as a compile.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        # Re-entrant, because the garbage collector may run a finaliser that comes back here at any allocation.
        self.lock = threading.RLock()
        self._limits = limits.checked()
        self.clock = clock
        self._order = Order(limits, clock)
        self.records: dict[Hashable, Record] = {}
        self.retired = Counters()
        self.dropped: list[Slot] = []
        self.size_of: Callable[[Any], int] = _nbytes
        self.seconds_of: Callable[[Any], float] = _seconds
        self.gone: Callable[[Iterable[Hashable]], set[Hashable]] = _none_gone
        self.warn: Callable[[Hashable, str], None] = _warn

    # --- memos ---------------------------------------------------------------------------------------------------

    def attach(self, owner: Hashable, memo: Memo, entry: Any = None) -> Counters:
        """Register `memo` (weakly) with `owner`, to be told to `forget()`; return counters for its warm hits.

        They are those of `entry` if it is given and stored, else the owner's, and stay in use until `forget()`.
        """
        with self.lock:
            record = self.record_of(owner)
            record.memos.setdefault(memo, None)
            for slot in record.slots() if entry is not None else ():
                if slot.entry is entry:
                    return slot.counters
            return record.counters

    def publish(self, owner: Hashable, key: Hashable, entry: Any, memo: Memo, action: Callable[[], None]) -> bool:
        """Run `action`, which makes `memo` remember `entry`, unless the entry is no longer stored.

        Check and action are one step under the lock, so a concurrent `clear` either comes first and nothing is
        remembered, or comes after and calls `memo.forget()`. Returns whether `action` ran.
        """
        with self.lock:
            record = self.records.get(owner)
            slots = record.siblings.get(key, ()) if record is not None else ()
            for slot in slots:
                if slot.entry is entry:
                    slot.record.memos[memo] = slot
                    action()
                    return True
            return False

    # --- misses and contents -------------------------------------------------------------------------------------

    def note_miss(self, owner: Hashable, reasons: Iterable[str], building: bool = True) -> None:
        """Remember in words why a call of `owner` found no entry; the last few are kept.

        Noted inside `build`, the miss also tells what became of the entry that is built. With `building=False`
        nothing is going to be stored for it, and it is counted here.
        """
        with self.lock:
            record = self.record_of(owner)
            record.miss_count += 1
            note = MissNote(record.miss_count, tuple(reasons))
            record.misses.append(note)
            if not building:
                note.thread = None
                record.counters.misses += 1

    def note_compile(self, owner: Hashable) -> None:
        """Count that an entry which was loaded has been compiled after all."""
        with self.lock:
            self.record_of(owner).counters.compiles += 1

    def misses(self, owner: Hashable) -> tuple[Miss, ...]:
        """Return the last recorded misses of `owner`, oldest first."""
        with self.lock:
            record = self.records.get(owner)
            return tuple(map(self._miss, record.misses)) if record is not None else ()

    def _miss(self, note: MissNote) -> Miss:
        if note.slot is None:
            return Miss(note.number, note.reasons, note.seconds, note.hits)
        return Miss(note.number, note.reasons, self._cost(note.slot), note.slot.counters.hits, True)

    def entries(self, owner: Hashable) -> list[tuple[Hashable, Any]]:
        """Return (key, entry) of everything stored for `owner`, without counting or touching anything."""
        with self.lock:
            record = self.records.get(owner)
            return [(slot.key, slot.entry) for slot in record.slots()] if record is not None else []

    def owners(self) -> list[Hashable]:
        """Return every owner that has entries."""
        with self.lock:
            return [owner for owner, record in self.records.items() if record.siblings]

    def info(self, owner: Hashable | None = None) -> CacheInfo:
        """Return the counts of one owner, or of all together."""
        with self.lock:
            self.drop_expired()
            total = Counters()
            if owner is None:
                total.add(self.retired)
            records = self.selected(owner)
            for record in records:
                total.add(record.counts())
            size = sum(record.size() for record in records)
            found = CacheInfo(total.hits, total.misses, total.compiles, size, self._limits.maxsize)
        self.release()
        return found

    def report(self) -> list[OwnerReport]:
        """Return what is known of each owner that has entries or counts, sizes measured anew."""
        with self.lock:
            self.drop_expired()
            rows = []
            for owner, record in list(self.records.items()):
                slots, counts = list(record.slots()), record.counts()
                if slots or counts.hits or counts.misses:
                    seconds = record.seconds + sum(map(self._cost, slots))
                    nbytes = sum(map(self._measure, slots))
                    rows.append(OwnerReport(owner, len(slots), counts.hits, counts.misses, seconds, nbytes))
        self.release()
        return rows

    def discard(self, owner: Hashable, entry: Any) -> None:
        """Let go of an entry of `owner`, in place of which there is another."""
        with self.lock:
            record = self.records.get(owner)
            for slot in list(record.slots()) if record is not None else ():
                if slot.entry is entry:
                    self._drop(slot)
        self.release()

    # --- limits --------------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._limits

    def limit(self, limits: Limits) -> None:
        """Put other limits in force; what exceeds them goes at once.

        Raises what `Limits.checked` raises, and then changes nothing.
        """
        limits.checked()
        with self.lock:
            self.drop_expired()
            self._refresh()
            if (limits.policy, limits.ttl) != (self._limits.policy, self._limits.ttl):
                old, self._order = self._order, Order(limits, self.clock)
                for slot in old.drain():
                    self._order.use(slot)
            self._limits = limits
            for record in list(self.records.values()):
                self._shrink_owner(record)
                record.churned = False  # there may be something new to say
            self._shrink(None)
        self.release()

    def resize(self, maxsize: int) -> None:
        """Set the greatest number of entries; when it shrinks, those that the policy gives up first go.

        Raises `ValueError` when `maxsize` is below 1, `TypeError` when it is not an integer.
        """
        self.limit(self._limits._replace(maxsize=maxsize))

    def touch_size(self, entry: Any) -> None:
        """Measure `entry` anew, which has grown; others go if that is too much for `maxbytes`."""
        with self.lock:
            for slot in list(self._order.slots):
                if slot.entry is entry:
                    self._measure(slot)
                    self._refresh()
                    self._shrink(slot)
                    break
        self.release()

    # --- under the lock ------------------------------------------------------------------------------------------

    def record_of(self, owner: Hashable) -> Record:
        record = self.records.get(owner)
        if record is None:
            if len(self.records) >= 2 * self._limits.maxsize + 1024:
                self.retire()
            record = self.records[owner] = Record()
        return record

    def retire(self) -> None:
        """Drop the records of owners that have nothing left, so that short-lived code does not pile up."""
        busy = self._busy()
        for owner in [o for o, record in self.records.items() if record.idle() and o not in busy]:
            self.retired.add(self.records.pop(owner).counters)

    def _busy(self) -> set[Hashable]:
        """Owners whose records are in use."""
        return set()

    def selected(self, owner: Hashable | None) -> list[Record]:
        if owner is None:
            return list(self.records.values())
        record = self.records.get(owner)
        return [record] if record is not None else []

    def insert(self, owner: Hashable, key: Hashable, entry: Any, seconds: float) -> str | None:
        """Store an entry; return the words of a warning if its owner now has too many for the first time."""
        record = self.record_of(owner)
        record.counters.compiles += not getattr(entry, "loaded", False)
        slot = Slot(record, key, entry, seconds)
        self._refresh()
        self._measure(slot)
        record.add(slot)
        self._order.use(slot)
        churn = self._shrink_owner(record)
        self._shrink(slot)
        return _churn_message(owner, self._limits.per_function) if churn else None

    def touch(self, slot: Slot) -> None:
        if slot in self._order.slots:
            self._order.use(slot)
            slot.record.order[slot]  # reading moves it to the end
            group = slot.record.siblings[slot.key]
            group.remove(slot)
            group.insert(0, slot)

    def _refresh(self) -> None:
        """Bring the orders up to date with warm hits, which went past them, before anything is evicted."""
        for record in list(self.records.values()):
            fresh = [slot for slot in record.slots() if slot.counters.hits != slot.hits_seen]
            if record.counters.hits != record.hits_seen:
                record.hits_seen = record.counters.hits
                fresh += [slot for slot in record.memos.values() if slot is not None]
            for slot in fresh:
                slot.hits_seen = slot.counters.hits
                if slot in self._order.slots:
                    self._order.use(slot)
                    record.order[slot]

    def drop_expired(self, spared: Slot | None = None) -> None:
        if self._order.expired():
            self._refresh()
            for slot in self._order.expired():
                if slot is not spared:
                    self._drop(slot)

    def _shrink_owner(self, record: Record) -> bool:
        """Keep one owner within its limit; return whether that had to be done for the first time."""
        limit, churned = self._limits.per_function, record.churned
        while limit is not None and record.size() > limit:
            record.churned = True
            self._drop(record.order.popitem()[0])
        return record.churned and not churned

    def _shrink(self, spared: Slot | None) -> None:
        """Keep the whole within its limits; `spared`, the entry in use, stays however large it is."""
        self.drop_expired(spared)
        orphans = self._orphans(spared)
        for slot in orphans[: max(len(orphans) - ORPHANS, 0)]:
            self._drop(slot)
        orphans = orphans[-ORPHANS:]
        while self._too_much() and len(self._order.slots) > (spared is not None):
            self._drop(orphans.pop(0) if orphans else self._order.pop(spared))

    def _too_much(self) -> bool:
        slots, limits = self._order.slots, self._limits
        if len(slots) > limits.maxsize:
            return True
        return limits.maxbytes is not None and sum(slot.nbytes for slot in slots) > limits.maxbytes

    def _orphans(self, spared: Slot | None) -> list[Slot]:
        """The slots of owners whose code is gone."""
        if len(self._order.slots) <= ORPHANS and not self._too_much():
            return []
        gone = self.gone([owner for owner, record in self.records.items() if record.siblings])
        records = [record for owner, record in self.records.items() if owner in gone]
        return [slot for record in records for slot in reversed(list(record.slots())) if slot is not spared]

    def _drop(self, slot: Slot) -> None:
        self._order.remove(slot)
        slot.record.remove(slot, self._cost(slot))
        self.dropped.append(slot)

    def release(self) -> None:
        """Let go of what was dropped. Called without the lock: an entry's finaliser may take its time, or come back."""
        dropped, self.dropped = self.dropped, []
        del dropped

    def _measure(self, slot: Slot) -> int:
        slot.nbytes = int(self.size_of(slot.entry))
        return slot.nbytes

    def _cost(self, slot: Slot) -> float:
        return slot.seconds + self.seconds_of(slot.entry)


def _nbytes(entry: Any) -> int:
    return getattr(entry, "nbytes", 0)


def _seconds(entry: Any) -> float:
    return getattr(entry, "seconds", 0.0)


def _none_gone(owners: Iterable[Hashable]) -> set[Hashable]:
    return set()


def _warn(owner: Hashable, message: str) -> None:
    warnings.warn(message, ShapeChurnWarning, stacklevel=3)


def owner_name(owner: Hashable) -> str:
    """The name of a function in the words of its owner, which ends in a digest of the code.

    >>> owner_name("gradient of logp-0123456789abcdef0123456789abcdef")
    'gradient of logp'
    """
    text = str(owner)
    name, dash, digest = text.rpartition("-")
    return name if dash and len(digest) == 32 and not digest.strip("0123456789abcdef") else text


def _churn_message(owner: Hashable, limit: int | None) -> str:
    return (
        f"`{owner_name(owner)}` has been compiled for more than {limit} different signatures, the most that the "
        "cache keeps for one function. From now on those not used for the longest time are dropped, and compiled "
        "again when they come back. To compile less often: pad arrays to a few sizes; pass what changes all the "
        "time as arrays or floats, and as static values (strings, sizes, flags) only what rarely changes; decorate "
        "a wider function whose arguments keep their shapes. Or raise the limit: "
        "jitad.cache.configure(per_function=...)"
    )
