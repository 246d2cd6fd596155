"""Arrays that a variable of a loop shares with others: after a step it is a placeholder, which shares with nothing.

Where a write would have to be seen through another name, the loop is recorded step by step, as Python walks it.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from jitad.trace.arrays.storage import Storage
from jitad.trace.captures.objects.standins import Poison
from jitad.trace.steps.changed import identity_of, is_array, shared, storage_of
from jitad.trace.steps.held import leaves_in
from jitad.trace.values.local import LocalArray, memories

__all__ = ["RESULT", "Aliases", "is_lost"]

RESULT = "return"                                        # what a step returns, among the names of variables


class Aliases:
    """What the variables of a loop share. `kept` are arrays that steps have put into a list."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.kept: dict[int, Storage] = {}
        self._shared: dict[str, dict[Any, Storage]] = {}
        self._pinned: set[str] = set()
        self._twins: dict[str, set[str]] = {}            # variables that have been one array, by each of them
        self._doubled: set[str] = set()                  # those that have had one array twice
        self._heads: dict[int, str] = {}                 # the variables of placeholders
        self._memories = 0

    def enter(self, names: dict[str, Any]) -> None:
        """Before the first step, when these are the variables."""
        twice = shared(names)
        for one, found in self._by_identity(names, twice).items():
            self._join(found)
            for name in found:
                for leaf in _arrays(names[name]):
                    if identity_of(leaf) == one and (home := storage_of(self.run.recorder, leaf, trace=True)):
                        self._shared.setdefault(name, {})[id(home)] = home
        self._join_rivals(names)

    def begin(self, heads: dict[str, Any]) -> None:
        """At the head of a step, when these are the variables."""
        self._memories = next(memories)
        self._heads = {cell.number: slot.name for slot in self.run.slots for cell in slot.cells}
        for name, head in heads.items():
            self.tie(name, head)
        self._tie_twins(heads)

    def end(self, names: dict[str, Any]) -> None:
        """At the end of a step."""
        run = self.run
        for one, found in self._by_identity(names, shared(names)).items():
            if any(one == id(stored.storage) for stored in run.stored):
                run.marks.unfit(run.known, "two of its variables are one array")
            self._join(found)
        self._join_rivals(names)
        for slot in run.slots:
            if slot.name in names and slot.name not in run.known.stored:
                self.note(slot.name, names[slot.name])

    def after(self, values: Sequence[Any]) -> None:
        """After the loop, when these are the variables."""
        loop = self.run.known.loop
        kept = {slot.name: value for slot, value in zip(self.run.slots, values, strict=True)
                if slot.name in loop.elsewhere or slot.name not in loop.first}
        for name, value in kept.items():
            self.tie(name, value)
        self._tie_twins(kept)

    def _by_identity(self, names: dict[str, Any], wanted: set[int]) -> dict[int, list[str]]:
        """The variables of the loop that are, or have in them, an array that has several names."""
        found: dict[int, list[str]] = {}
        for slot in self.run.slots if wanted else ():
            value = names.get(slot.name)
            if type(value) is not Poison and slot.name not in self.run.known.stored:
                for one in map(identity_of, leaves_in(value)):
                    if one is not None and one in wanted:
                        found.setdefault(one, []).append(slot.name)
        return found

    def _join_rivals(self, names: dict[str, Any]) -> None:
        """Variables of which NumPy decides, by a layout, whether they are one array."""
        found: dict[int, tuple[str, Storage]] = {}
        for slot in self.run.slots:
            for leaf in _arrays(names.get(slot.name)) if slot.name not in self.run.known.stored else ():
                if (storage := getattr(leaf, "storage", None)) is not None:
                    found[id(storage)] = slot.name, storage
        for name, storage in found.values():
            for rival in storage.others:
                if id(rival) in found:
                    self._join([name, found[id(rival)][0]])

    def _join(self, names: Sequence[str]) -> None:
        """These are one array, and so may be what each of them has shared one with."""
        group = {*names}.union(*(self._twins.get(name, ()) for name in names))
        doubled = {*names} - self._doubled if len(names) > len({*names}) else set()
        if doubled or (len(group) > 1 and any(self._twins.get(name) != group for name in group)):
            self._doubled |= doubled
            self._twins.update(dict.fromkeys(group, group))
            self.run.marks.version += 1                  # steps that were recorded without are recorded again

    def _tie_twins(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            for other in self._twins.get(name, ()):
                if other in values and (other < name or (other == name and name in self._doubled)):
                    for home, rival in itertools.product(self._homes(value), self._homes(values[other])):
                        if home is not rival:
                            home.may_share_with(rival, self.doubt)

    def _homes(self, value: Any) -> list[Storage]:
        found = (storage_of(self.run.recorder, leaf, trace=True) for leaf in _arrays(value))
        return [home for home in found if home is not None]

    def doubt(self) -> NoReturn:
        """What a write or a read calls that would have to know of the other name."""
        self.run.marks.unfit(self.run.known, "an array of its steps has another name")
        raise AssertionError

    def keep(self, leaf: Any) -> None:
        """An array is put into a list: later writes to it would be seen there."""
        if not (is_array(leaf) and leaf.ndim):
            return
        storage = storage_of(self.run.recorder, leaf, trace=True)
        if storage is None or any(storage is other.storage for other in self.run.stored):
            self.doubt()
        elif not storage.owner:
            self.kept[id(storage)] = storage
            storage.doubt = self.doubt

    def note(self, name: str, value: Any) -> None:
        """What a variable is at the end of a step."""
        found = self._shared.setdefault(name, {})
        before = len(found) + (name in self._pinned)
        for leaf in _arrays(value):
            found.update((self._key(s), s) for s in self._origins(leaf) if s.made not in self._heads)
            head = self._heads.get(getattr(storage_of(self.run.recorder, leaf), "made", -1), name)
            if head != name and head in self._twins:
                self._join([name, head])
            if id(getattr(leaf, "storage", None)) in self.kept:
                self._pinned.add(name)
        if len(found) + (name in self._pinned) > before:
            self.run.marks.version += 1                  # steps that were recorded without are recorded again

    def _key(self, storage: Storage) -> Any:
        """What tells a storage from others from step to step; of those that each step makes anew, the node."""
        return id(storage) if storage.born < self.run.moment else ("made", storage.made)

    def _origins(self, array: Any) -> list[Storage]:
        """The memory that an array shows, or may show, if it was there before this step."""
        run = self.run
        if type(array) is LocalArray:
            older = array.memory.serial < self._memories
            storage = storage_of(run.recorder, array, trace=older)
            return [] if storage is None else [storage] if older else storage.others
        storage = array.storage
        if storage is None:
            return [] if array.number >= run.since else [array.home]
        older = storage.born < run.moment or storage.made < run.since
        return [storage] if older else storage.others

    def tie(self, name: str, value: Any) -> None:
        """A placeholder for the variable, or what it is after the loop."""
        shared = self._shared.get(name, {})
        for leaf in _arrays(value) if shared or name in self._pinned else ():
            home = storage_of(self.run.recorder, leaf, trace=True)
            if home is None:
                continue
            if name in self._pinned or any(s.owner for s in shared.values()):
                home.doubt = self.doubt
            for storage in shared.values():
                if storage is not home:
                    home.may_share_with(storage, self.doubt)


def _arrays(value: Any) -> Iterator[Any]:
    for leaf in leaves_in(value):
        if is_array(leaf) and leaf.ndim:
            yield leaf


def is_lost(leaf: Any) -> bool:
    """Whether an array cannot be told any more, since what may be the same memory was written."""
    return getattr(getattr(leaf, "storage", None), "lost", None) is not None
