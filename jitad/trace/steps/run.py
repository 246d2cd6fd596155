"""A loop that is recorded as a loop: each step on the same placeholders, whichever way it goes.

At the head of a step the variables of the frame are placeholders for what they are at the head of any step, and the
counter is one. So what a step does is written in the same nodes each time, and what a step is, is the branches on its
way and what the variables are at its end: a *variant*. The steps of the call are recorded one after the other, with
the numbers that they have; then those that earlier recordings have seen, told which way to go. When the loop is left,
`trace.steps.join` makes one body of all variants.
"""
from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.tape.types import INPUT, Aval, Node
from jitad.trace.captures.objects.standins import Poison
from jitad.trace.dispatch import plain
from jitad.trace.pytree import leaves_of
from jitad.trace.steps.aliases import RESULT, Aliases, is_lost
from jitad.trace.steps.changed import (
    Growing,
    Grown,
    Stored,
    cell_of,
    containers,
    holders_of,
    is_array,
    notice,
    one_of_each,
    storage_of,
)
from jitad.trace.steps.emit import Found, emitted
from jitad.trace.steps.held import alone
from jitad.trace.steps.known import WHOLE, Known
from jitad.trace.steps.state import state_of
from jitad.trace.steps.variant import Cell, Variable, Variant, same, widen
from jitad.trace.where import user_line

__all__ = ["LoopRun"]

VARIANTS, DECISIONS, WAYS = 64, 256, 3      # of a step, and in one, at most; of either where no branch is a choice
END, BREAK, RETURN = 1, 2, 3        # how a loop is left; 0 where it goes on
_ABSENT = object()
_NUMBERS = (float, np.floating, np.integer, np.bool_)


class LoopRun:
    """One walk of a loop."""

    active = True

    def __init__(self, marks: Any, known: Known, walk: Any) -> None:
        self.marks, self.known, self.walk, self.recorder = marks, known, walk, marks.recorder
        self.steps, self.nothing = self, ()
        self.slots: list[Variable] = []
        self.stored: list[Stored] = []
        self.grown: list[Grown] = []
        self.variants: dict[tuple[Any, ...], Variant] = {}
        self.count = -1                                  # steps that were begun
        self.over = False                                # whether the steps of the call are done
        self.forced: tuple[Any, ...] | None = None
        self.examples: dict[tuple[Any, ...], Any] = {}   # numbers with which a step goes a way, if some are known
        self.version = marks.version
        self.left = 0
        self.value: Any = None
        self.sites: list[Any] = []                       # where it returns
        self.outcome: Any = None
        self.aliases = Aliases(self)
        self.twins: dict[str, str] = {}                  # variables that are the same container as another one

    # --- walking ---------------------------------------------------------------------------------
    def __iter__(self) -> LoopRun:
        return self

    def __next__(self) -> Any:
        names = sys._getframe(1).f_locals
        (self._enter if self.count < 0 else self._close)(names)
        self.count += 1
        if self.over or (self.walk is not None and self.count >= self.walk.length) or (
                (self.count or self.known.paths) and self.marks.is_forced()):
            self.over = True
            waiting = [path for path in self.known.paths if path not in self.variants]
            if not waiting:
                self.marks.runs.remove(self)
                self.ending = dict(names)
                raise StopIteration
            self.forced = waiting[0]
        return self._begin(names)

    def _enter(self, names: dict[str, Any]) -> None:
        loop = self.known.loop
        held = [n for n in self.known.held if n in names and n not in (*loop.names, *loop.targets)]
        self.single = {name: alone(names, name) for name in (*loop.names, *held) if name in names}
        self.slots = [self._slot(name, names) for name in loop.names]
        self.slots += [Variable(name, True) for name in loop.targets]
        self.slots += one_of_each(self, [self._slot(name, names) for name in held])
        self.since = len(self.recorder.nodes)
        self.dependent, self.seen = set[int](), self.since
        self.position = self.placeholder(Aval((), np.dtype(np.int64)))
        for slot in self.slots:
            for cell in slot.cells:
                cell.number = self.placeholder(cell.aval)
        self._changing(names)
        self.aliases.enter(names)
        self.required = set(self.recorder.required)
        self.marks.runs.append(self)

    def _changing(self, names: dict[str, Any]) -> None:
        """The objects that are known to change."""
        recorder, known = self.recorder, self.known
        for name in known.loop.changeable:
            thing = names.get(name)
            if name in known.held:
                continue
            if name in known.stored and type(thing) is list:
                self.grown.append(Grown(name, thing, Growing(partial(self.hold, {name: {WHOLE}}), self.aliases.keep)))
            elif name in known.stored and is_array(thing):
                storage = storage_of(recorder, thing, trace=True)
                if storage is None or storage.owner:
                    self.marks.unfit(known, "it writes an array that is not the function's own")
                elif all(storage is not other.storage for other in self.stored):
                    self.stored.append(Stored(storage, cell_of(recorder, storage)))
                    self.stored[-1].cell.number = self.placeholder(self.stored[-1].cell.aval)

    def _slot(self, name: str, names: dict[str, Any]) -> Variable:
        """The slot of a variable by what it is when the loop is entered."""
        known = self.known
        first = name in known.loop.first
        if name not in names or type(names[name]) is Poison or (
                first and (name in known.fresh or containers(names[name]))):
            return Variable(name, True)
        if name in known.fresh:
            self.marks.unfit(known, f"`{name}` becomes something of another kind")
        if name in known.stored and is_array(names[name]):
            storage_of(self.recorder, names[name], trace=True)
            return Variable(name, False, (), [plain(names[name])])
        slot = Variable(name, False, kept=name in known.held, single=self.single[name])
        moving, assigned = known.held.get(name, ()), name in known.loop.names
        if not slot.take(names, lambda i, x: self._cell(name, x, name in known.moving if assigned else True)
                         if assigned or i in moving else x):
            self.marks.unfit(known, f"`{name}` has a container in it that cannot go from step to step")
        return slot

    def _cell(self, name: str, x: Any, moving: bool) -> Any:
        recorder = self.recorder
        if isinstance(x, Value):
            if not hasattr(type(x), "jitad_parts"):
                if getattr(x, "frozen", ""):
                    self.marks.unfit(self.known, f"`{name}` is read-only")
                return Cell(x.aval, getattr(x, "boxed", False), Value(recorder, x.number), recorder.concrete(x.number))
        elif isinstance(x, _NUMBERS) or (type(x) in (int, bool) and moving) or (
                isinstance(x, np.ndarray) and x.dtype.kind in "fiub"):
            array, weak = np.asarray(x), type(x) in (int, float, bool)
            return Cell(Aval(array.shape, array.dtype, weak), isinstance(x, np.ndarray) and not array.ndim,
                        Value(recorder, recorder.const(array).number), array)
        return x

    def placeholder(self, aval: Aval) -> int:
        number = len(self.recorder.nodes)
        self.recorder.nodes.append(Node(INPUT, (), {}, aval, None))
        self.dependent.add(number)
        return number

    def _begin(self, names: dict[str, Any]) -> Any:
        recorder = self.recorder
        recorder.forget(self.since)
        recorder.required = set(self.required)
        self.names = names
        cells = [cell for slot in self.slots if not slot.fresh for cell in slot.cells]
        cells += [stored.cell for stored in self.stored]
        numbers = [cell.concrete for cell in cells]
        self.example = (self.count, numbers) if self.forced is None else self.examples.get(self.forced)
        at, numbers = self.example or (0, numbers)
        recorder.know(self.position, np.asarray(at, np.int64))
        for cell, number in zip(cells, numbers, strict=True):
            recorder.know(cell.number, np.asarray(number, cell.aval.dtype))
        for stored in self.stored:
            stored.storage.replace(stored.cell.number)
        traced = lambda cell: self._traced(cell, cell.number)
        heads = {slot.name: slot.head(traced, bool(self.grown)) for slot in self.slots if not slot.fresh}
        lists = {grown.name: grown.stand_in for grown in self.grown}
        for grown in self.grown:
            grown.stand_in.things = []
        self._heads = [*(heads[n] if n in heads else self.unset(n) for n in self.known.loop.names),
                       *(lists.get(n, names.get(n)) for n in self.known.loop.changed)]
        self.path: list[tuple[int, Any, Any]] = []
        self.answers: dict[int, Any] = {}
        self.left, self.value = 0, None
        recorder.moment = self.moment = recorder.moment + 1
        self.aliases.begin(heads)
        self.before = self._state(names)
        return None if self.walk is None else self.walk.at(recorder.value(self.position))

    @property
    def heads(self) -> list[Any]:
        """What the variables are at the head of a step, given once: it is counted who else holds them."""
        heads, self._heads = self._heads, []
        return heads

    def _state(self, names: dict[str, Any]) -> Any:
        left_out = {slot.name for slot in self.slots} | {grown.name for grown in self.grown} | (
            self.known.stored & {*self.known.loop.changed})
        kept = [slot for slot in self.slots if slot.kept]
        return state_of(self.marks, names, left_out, [x for slot in kept for x in slot.still],
                        {id(x) for slot in kept for x in slot.objects})

    def hold(self, leaves: Mapping[str, set[int]]) -> None:
        """The containers of these variables are given other contents in each step, or these of their leaves."""
        held = self.known.held
        if all(found <= held.get(name, set()) for name, found in leaves.items()):
            self.marks.unfit(self.known, "a step changes more than its variables")
        for name, found in leaves.items():
            held[name] = held.get(name, set()) | found
        self.marks.start_over()

    def _traced(self, cell: Cell, number: int) -> Any:
        traced = self.recorder.value(number)
        traced.weak, traced.boxed = cell.aval.weak, cell.boxed
        return traced

    def unset(self, name: str) -> Poison:
        return Poison(lambda: self.marks.unfit(self.known, f"`{name}` is read before it is assigned"))

    # --- leaving ------------------------------------------------------------------------------------
    def breaks(self) -> bool:
        self.left = BREAK
        return False

    def ends(self) -> bool:
        self.left = END
        return False

    def returns(self, value: Any) -> bool:
        line = user_line(2)
        if line not in self.sites:
            self.sites.append(line)
        self.left, self.value = RETURN + self.sites.index(line), leaves_of(value)
        self.aliases.note(RESULT, value)
        return False

    # --- branches -----------------------------------------------------------------------------------
    def depends(self, number: int) -> bool:
        """Whether a node is another one in each step."""
        nodes = self.recorder.nodes
        for n in range(self.seen, len(nodes)):
            if not self.dependent.isdisjoint(nodes[n].inputs):
                self.dependent.add(n)
        self.seen = len(nodes)
        return number in self.dependent

    def decide(self, value: Value) -> Any:
        if value.number in self.answers:
            return self.answers[value.number]
        if self.forced is not None and len(self.path) < len(self.forced):
            found = self.forced[len(self.path)][1]
        else:
            found = self.recorder.concrete(value.number).item()
        self.note(value.number, found)
        return found

    def note(self, number: int, found: Any) -> None:
        """A branch of this step."""
        if number in self.answers:
            return
        where = user_line(2)
        if self.forced is not None and (self.forced[len(self.path):len(self.path) + 1] != ((where, found),)):
            self.marks.drop(self.known, self.forced)
        self.answers[number] = found
        self.path.append((number, found, where))
        self._choose_from(len(self.path))
        if len(self.path) > DECISIONS:
            self.marks.unfit(self.known, "a step has too many branches")

    def _choose_from(self, count: int) -> None:
        """Many branches: those that only assign are choices from now on, which gives the step other ways."""
        if count > WAYS and not self.known.choosing:
            self.known.choosing = True
            self.known.paths.clear()
            self.marks.start_over()

    # --- the end of a step -------------------------------------------------------------------------
    def _close(self, names: dict[str, Any]) -> None:
        marks, recorder = self.marks, self.recorder
        after = self._state(names)
        if after != self.before:
            notice(self, names, after)
        if any(any(thing is grown.real for thing in after.held) for grown in self.grown):
            marks.unfit(self.known, "a list that it appends to has several names")
        if self.walk is not None and not self.walk.is_steady():
            marks.unfit(self.known, "an array that it walks is written")
        self.aliases.end(names)
        ends = [self._end(slot, names.get(slot.name, _ABSENT)) for slot in self.slots]
        holders = holders_of(self, names, after)
        value = None if self.value is None else (self.value[1], [plain(x) for x in self.value[0]])
        made = Variant(self.path, ends, self.left, value,
                       [Value(recorder, s.storage.read(s.storage.whole)) for s in self.stored],
                       [grown.stand_in.rows() for grown in self.grown], holders)
        if widen(self, made) or marks.version != self.version:
            marks.renew(self)                            # their paths are known, and are gone once more
        else:
            known = self.variants.get(made.key)
            if known is None:
                self.variants[made.key] = made
                if len(self.variants) > VARIANTS:
                    marks.unfit(self.known, "a step has too many variants")
            elif not same(known, made):
                marks.unfit(self.known, "steps differ though their branches do not")
        if self.forced is not None and made.key != self.forced:
            self.known.paths.pop(self.forced)            # what was asked on it is not asked any more
        if made.key not in self.known.paths:
            self.known.paths[made.key] = None
            self._choose_from(len(self.known.paths))
            marks.version += 1
        self.version = marks.version
        self.examples.setdefault(made.key, self.example)
        if self.forced is None:
            self._go_on(made)
        self.forced = None

    def changes(self, names: list[str]) -> None:
        """The objects of these variables change in a step, and possibly others."""
        if self.known.stored.issuperset(names):
            self.marks.unfit(self.known, "a step changes more than its variables")
        self.known.stored |= set(names)
        self.marks.start_over()

    def holds(self, storage: Any) -> bool:
        """Whether the storage of an array may be written in a step."""
        return storage.born >= self.moment or any(storage is stored.storage for stored in self.stored)

    def _end(self, slot: Variable, value: Any) -> tuple[Any, list[Any]]:
        """What a variable is at the end of a step: its tree, and leaves of which the traced are plain values."""
        if value is _ABSENT or type(value) is Poison:
            return None, []
        tree, leaves = slot.end(value)
        return (None, []) if any(map(is_lost, leaves)) else (tree, [plain(x) for x in leaves])

    def value_of(self, x: Any) -> Any:
        """A leaf at the end of a step as a value; None for what cannot be on a tape."""
        if isinstance(x, Value):
            return None if hasattr(type(x), "jitad_parts") or x.builder is not self.recorder else x
        if isinstance(x, (*_NUMBERS, int, np.ndarray)) and np.asarray(x).dtype.kind in "fiub":
            with self.recorder.plain():
                return self.recorder.const(x, weak=type(x) in (int, float, bool))
        return None

    def _go_on(self, made: Variant) -> None:
        """The numbers with which the next step begins."""
        recorder = self.recorder
        for slot, (_, leaves) in zip(self.slots, made.ends, strict=True):
            if slot.fresh:
                if leaves:
                    slot.leaves = [recorder.concrete(v.number) if (v := self.value_of(x)) is not None else x
                                   for x in leaves]
                continue
            for cell, x in zip(slot.leaves, leaves, strict=True):
                if type(cell) is Cell:
                    cell.concrete = recorder.concrete(self.value_of(x).number)
        for stored, value in zip(self.stored, made.stored, strict=True):
            stored.cell.concrete = recorder.concrete(value.number)
        for grown, rows in zip(self.grown, made.rows, strict=True):
            grown.numbers.append([recorder.concrete(v.number) for _, leaves in rows for x in leaves
                                  if (v := self.value_of(x)) is not None])
        if made.left:
            self.over, self.outcome = True, (made.left, [
                None if (v := self.value_of(x)) is None else recorder.concrete(v.number)
                for x in (made.value or (None, []))[1]])

    # --- after the loop ----------------------------------------------------------------------------
    def finals(self) -> list[Any]:
        self.recorder.forget(self.since)
        self.recorder.required = set(self.required)
        found = emitted(self)
        loop = self.known.loop
        named = {slot.name: value for slot, value in zip(self.slots, found.values, strict=True)}
        named |= {name: named[other] for name, other in self.twins.items()}
        self.aliases.after(found.values)
        self.found = Found([], found.code, found.results)
        lists = {grown.name: grown.real for grown in self.grown}
        finals = [*(named[n] for n in loop.names), *(lists.get(n, self.ending.get(n)) for n in loop.changed),
                  *(named[n] for n in loop.targets)]
        self.slots, self.grown, self.before, self.names, self.ending, self.variants = [], [], None, {}, {}, {}
        return finals

    def broken(self) -> bool:
        return bool(self.found.code is not None and self.recorder.decide(self.found.code == BREAK))

    def returned(self) -> bool:
        if self.found.code is None or not self.sites:
            return False
        return bool(self.recorder.decide(self.found.code >= RETURN))

    def result(self) -> Any:
        site = int(self.recorder.decide(self.found.code)) if len(self.sites) > 1 else RETURN
        self.aliases.tie(RESULT, self.found.results[site])
        return self.found.results[site]
