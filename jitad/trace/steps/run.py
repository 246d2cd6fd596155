"""A loop that is recorded as a loop: each step on the same placeholders, whichever way it goes.

At the head of a step the variables of the frame are placeholders for what they are at the head of any step, and the
counter is one. So what a step does is written in the same nodes each time, and what a step is, is the branches on its
way and what the variables are at its end: a *variant*. The steps of the call are recorded one after the other, with
the numbers that they have; then those that earlier recordings have seen, told which way to go. When the loop is left,
`trace.steps.join` makes one body of all variants.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.tape.types import INPUT, Aval, Node
from jitad.trace.captures.objects.standins import Poison
from jitad.trace.dispatch import plain
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.steps.aliases import RESULT, Aliases, is_lost
from jitad.trace.steps.changed import (
    Growing,
    Grown,
    Stored,
    cell_of,
    containers,
    is_array,
    storage_of,
)
from jitad.trace.steps.emit import emitted
from jitad.trace.steps.known import Known
from jitad.trace.steps.state import state_of
from jitad.trace.steps.variant import Cell, Variable, Variant, same, widened
from jitad.trace.where import user_line

__all__ = ["LoopRun"]

VARIANTS, DECISIONS = 64, 256       # of a step, and in one, at most
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
        self.slots = [self._slot(name, names.get(name, _ABSENT)) for name in loop.names]
        self.slots += [Variable(name, True) for name in loop.targets]
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
        refuse = lambda: self.marks.unfit(known, "a list that it appends to is read")
        for name in known.loop.changeable:
            thing = names.get(name)
            if name in known.stored and type(thing) is list:
                self.grown.append(Grown(name, thing, Growing(refuse, self.aliases.keep)))
            elif name in known.stored and is_array(thing):
                storage = storage_of(recorder, thing, trace=True)
                if storage is None or storage.owner:
                    self.marks.unfit(known, "it writes an array that is not the function's own")
                elif all(storage is not other.storage for other in self.stored):
                    self.stored.append(Stored(storage, cell_of(recorder, storage)))
                    self.stored[-1].cell.number = self.placeholder(self.stored[-1].cell.aval)

    def _slot(self, name: str, value: Any) -> Variable:
        """The slot of a variable by what it is when the loop is entered."""
        first = name in self.known.loop.first
        if value is _ABSENT or type(value) is Poison or (first and (name in self.known.fresh or containers(value))):
            return Variable(name, True)
        if name in self.known.fresh:
            self.marks.unfit(self.known, f"`{name}` becomes something of another kind")
        if containers(value):
            self.marks.unfit(self.known, f"`{name}`, a list, dict or set, goes from step to step")
        leaves, tree = leaves_of(value)
        if name in self.known.stored and is_array(value):
            storage_of(self.recorder, value, trace=True)
            return Variable(name, False, tree, [plain(value)])
        return Variable(name, False, tree, [self._cell(name, plain(x)) for x in leaves], value)

    def _cell(self, name: str, x: Any) -> Any:
        recorder = self.recorder
        if isinstance(x, Value):
            if not hasattr(type(x), "jitad_parts"):
                if getattr(x, "frozen", ""):
                    self.marks.unfit(self.known, f"`{name}` is read-only")
                return Cell(x.aval, getattr(x, "boxed", False), Value(recorder, x.number), recorder.concrete(x.number))
        elif isinstance(x, _NUMBERS) or (type(x) in (int, bool) and name in self.known.moving) or (
                isinstance(x, np.ndarray) and x.dtype.kind in "fiub"):
            array = np.asarray(x)
            weak = type(x) in (int, float, bool)
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
        self.heads = []
        for slot in self.slots[:len(self.known.loop.names)]:
            self.heads.append(self.unset(slot.name) if slot.fresh else unflatten(
                slot.tree, [self._traced(x, x.number) if type(x) is Cell else x for x in slot.leaves]))
        lists = {grown.name: grown.stand_in for grown in self.grown}
        for grown in self.grown:
            grown.stand_in.made = []
        self.heads += [lists.get(name, names.get(name)) for name in self.known.loop.changed]
        self.path: list[tuple[int, Any, Any]] = []
        self.answers: dict[int, Any] = {}
        self.left, self.value = 0, None
        recorder.moment += 1
        self.moment = recorder.moment
        self.aliases.begin()
        self.before = state_of(self.marks, names, self._held())
        return None if self.walk is None else self.walk.at(recorder.value(self.position))

    def _held(self) -> set[str]:
        return {slot.name for slot in self.slots} | (self.known.stored & {*self.known.loop.changed})

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
        if len(self.path) > DECISIONS:
            self.marks.unfit(self.known, "a step has too many branches")

    # --- the end of a step -------------------------------------------------------------------------
    def _close(self, names: dict[str, Any]) -> None:
        marks, recorder = self.marks, self.recorder
        after = state_of(marks, names, self._held())
        if after != self.before:
            held = [(n, names.get(n)) for n in self.known.loop.changeable]
            self.changes([n for n, thing in held if is_array(thing) or type(thing) is list])
        if any(any(thing is grown.real for thing in after.held) for grown in self.grown):
            marks.unfit(self.known, "a list that it appends to has several names")
        named = [id(x) for slot in self.slots for x in containers(names.get(slot.name))]
        if len(named) > len(set(named)) or not set(named).isdisjoint(map(id, after.held)):
            marks.unfit(self.known, "one list, dict or set has several names")
        if self.walk is not None and not self.walk.is_steady():
            marks.unfit(self.known, "an array that it walks is written")
        self.aliases.end(names)
        ends = [self._end(slot, names.get(slot.name, _ABSENT)) for slot in self.slots]
        value = None if self.value is None else (self.value[1], [plain(x) for x in self.value[0]])
        made = Variant(self.path, ends, self.left, value,
                       [Value(recorder, s.storage.read(s.storage.whole)) for s in self.stored],
                       [list(grown.stand_in.made) for grown in self.grown])
        if self._widened(made) or marks.version != self.version:
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
        leaves, tree = leaves_of(value)
        return (None, []) if any(map(is_lost, leaves)) else (tree, [plain(x) for x in leaves])

    def _widened(self, made: Variant) -> bool:
        """Whether a cell must become of another type, with a placeholder of its own."""
        again = False
        for slot, (tree, leaves) in zip(self.slots, made.ends, strict=True):
            if slot.fresh:
                continue
            if tree != slot.tree:
                self._loose(slot, leaves)
            for cell, x in zip(slot.leaves, leaves, strict=True):
                if type(cell) is not Cell:
                    if x is not cell and (type(x) not in (int, bool, str) or type(x) is not type(cell) or x != cell):
                        self._loose(slot, leaves)
                    continue
                value = self.value_of(x)
                if value is None or value.shape != cell.aval.shape:
                    self._loose(slot, leaves)
                aval, boxed = widened(cell, value, x)
                if aval != cell.aval:
                    if aval.dtype.kind != cell.aval.dtype.kind and self.marks.asks_kinds():
                        self.marks.unfit(self.known, f"`{slot.name}` becomes a number of another class")
                    cell.aval, again = aval, True
                    cell.number = self.placeholder(aval)
                cell.boxed = boxed
        return again

    def _loose(self, slot: Variable, leaves: list[Any]) -> None:
        """A variable that does not stay what it is: its numbers move, or it is assigned before it is read."""
        known = self.known
        if slot.name not in known.moving and any(type(x) in (int, bool) for x in (*slot.leaves, *leaves)):
            known.moving.add(slot.name)
        else:
            known.fresh.add(slot.name)
        self.marks.start_over()

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
        self.found = found
        self.aliases.after(found.values)
        lists = {grown.name: grown.real for grown in self.grown}
        return [*(named[n] for n in loop.names), *(lists.get(n, self.ending.get(n)) for n in loop.changed),
                *(named[n] for n in loop.targets)]

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
