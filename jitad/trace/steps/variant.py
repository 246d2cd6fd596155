"""What goes from step to step of a loop, and what a step is."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.captures.objects.standins import Poison
from jitad.trace.dispatch import plain
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.steps.held import contents, filled, taken

__all__ = ["Cell", "Variable", "Variant", "same", "widen"]

Ends = tuple[Any, list[Any]]                             # a tree and its leaves; the tree is None of what is not set


@dataclass(eq=False)
class Cell:
    """An array or number that is carried from step to step: its placeholder has this `number`."""

    aval: Aval
    boxed: bool
    first: Value
    concrete: Any
    number: int = -1


@dataclass(eq=False)
class Variable:
    """A variable of the loop: a tree of cells and of things that stay. `fresh` are those that a step assigns first.

    The containers of its tree are new ones at the head of each step, or, of what is `kept`, the `objects` themselves
    with other contents, which whoever has another name for one of them sees. New ones stand for what nothing else
    holds (it is `alone`), or for what no step writes.
    """

    name: str
    fresh: bool
    tree: Any = None
    leaves: list[Any] = field(default_factory=list)      # a `Cell`, or what stays
    original: Any = None                                 # what it was when the loop was entered
    objects: list[Any] = field(default_factory=list)
    homes: list[int | None] = field(default_factory=list)    # of the leaves, as in `Taken`
    kept: bool = False
    single: list[bool] = field(default_factory=list)     # of the objects, whether nothing else holds them
    before: list[Any] = field(default_factory=list)      # containers at the head of a step, with their contents

    @property
    def cells(self) -> list[Cell]:
        return [x for x in self.leaves if type(x) is Cell]

    @property
    def still(self) -> list[Any]:
        """What can be reached from it and is no cell."""
        return [x for x in self.leaves if type(x) is not Cell]

    def take(self, names: dict[str, Any], cell: Callable[[int, Any], Any]) -> bool:
        """Begin with what the variable is before the loop; gives whether that can go from step to step."""
        found = taken(names[self.name])
        self.tree, self.objects, self.homes = found.tree, found.objects, found.homes
        self.leaves = [cell(i, plain(x)) for i, x in enumerate(found.leaves)]
        self.original = names[self.name]
        return found.fit and not any(isinstance(x, set) for x in found.leaves if type(x) is not Poison)

    def head(self, traced: Callable[[Cell], Any], watched: bool) -> Any:
        """What it is at the head of a step; `watched` if it is asked whether it is written."""
        leaves = [traced(x) if type(x) is Cell else x for x in self.leaves]
        made = filled(self.tree, leaves, self.objects if self.kept else None)
        if self.objects and (watched or not (self.alone or self.kept)):
            self.before = [(thing, contents(thing)) for thing in taken(made).objects]
        return made

    def beside(self, i: int) -> list[int]:
        """The leaves that move where one does: those of the same list that are of its kind."""
        home, x = self.homes[i], self.leaves[i]
        count = lambda leaf: type(leaf) in (int, bool)
        return [i] if home is None else [k for k, leaf in enumerate(self.leaves) if self.homes[k] == home and (
            k == i or count(leaf) == count(x))]

    @property
    def written(self) -> bool:
        """Whether a step has changed containers that others may hold."""
        return any([*map(id, contents(thing))] != [*map(id, was)] for thing, was in self.before)

    @property
    def alone(self) -> bool:
        """Whether nothing else holds its containers."""
        return all(self.single)

    def stays(self, objects: list[Any]) -> bool:
        """Whether these are the containers that it was at the head of the step, as far as others may hold them."""
        if self.kept:
            return len(objects) == len(self.objects) and all(
                x is was or single for x, was, single in zip(objects, self.objects, self.single, strict=True))
        return [*map(id, objects)] == [id(thing) for thing, _ in self.before]

    def end(self, value: Any) -> Ends:
        """What it is at the end of a step: its tree, and leaves of which the traced are plain values."""
        if self.fresh:
            leaves, tree = leaves_of(value)
            return tree, leaves
        found = taken(value)
        return found.tree if found.fit else None, found.leaves

    def of(self, tree: Any, leaves: list[Any]) -> Any:
        """What it is with other leaves, after the loop."""
        return unflatten(tree, leaves) if self.fresh else filled(tree, leaves, self.objects if self.kept else None)


@dataclass(eq=False)
class Holders:
    """What holds the containers of variables at the end of a step: `stays` says of those that others may hold whether
    they are what they were, `twins` has variables that are the same container as another one; `appended` are in a list
    that grows, and `written` have been changed in place."""

    stays: dict[str, bool] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)
    appended: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Variant:
    """What steps do that go one way: `path` has the branches with their outcomes, `ends` for each slot what it is at
    the end, `left` how the loop is left and `value` what is returned then, `stored` what the arrays are that are
    written, and `rows` what is appended to each list."""

    path: list[tuple[int, Any, Any]]
    ends: list[Ends]
    left: int
    value: Ends | None
    stored: list[Value]
    rows: list[list[Ends]]
    holders: Holders

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple((where, expected) for _, expected, where in self.path)

    def parts(self) -> Iterator[Ends]:
        """All that it gives."""
        yield from self.ends
        yield self.value or (None, [])
        yield None, list(self.stored)
        for rows in self.rows:
            yield from rows


def same(a: Variant, b: Variant) -> bool:
    """Whether two steps that went one way have done the same."""
    ours, theirs = list(a.parts()), list(b.parts())
    return a.left == b.left and [p[0] for p in a.path] == [p[0] for p in b.path] and len(ours) == len(theirs) and all(
        s == t and len(xs) == len(ys) and all(map(_alike, xs, ys))
        for (s, xs), (t, ys) in zip(ours, theirs, strict=True))


def _widened(cell: Cell, value: Value, x: Any) -> tuple[Aval, bool]:
    """The type that serves what a cell has been and its `value` after a step, that of `x`; whether it is an array."""
    before, after = cell.aval, value.aval
    weak = before.weak and after.weak
    dtype = after.dtype if before.weak and not weak else before.dtype if after.weak and not weak and (
        after.dtype.kind <= before.dtype.kind) else np.result_type(before.dtype, after.dtype)
    return Aval(before.shape, dtype, weak), cell.boxed or getattr(x, "boxed", False)


def widen(run: Any, made: Variant) -> bool:
    """Whether a cell must become of another type, with a placeholder of its own."""
    again = False
    moved: dict[str, set[int]] = {}
    for slot, (tree, leaves) in zip(run.slots, made.ends, strict=True):
        if slot.fresh:
            continue
        if tree != slot.tree:
            _loose(run, slot, leaves)
        for i, (cell, x) in enumerate(zip(slot.leaves, leaves, strict=True)):
            if type(cell) is not Cell:
                if x is not cell and (type(x) not in (int, bool, str) or type(x) is not type(cell) or x != cell):
                    moved.setdefault(slot.name, set()).update(slot.beside(i))
                continue
            value = run.value_of(x)
            if value is None or value.shape != cell.aval.shape:
                _loose(run, slot, leaves)
            aval, boxed = _widened(cell, value, x)
            if aval != cell.aval:
                if aval.dtype.kind != cell.aval.dtype.kind and run.marks.asks_kinds():
                    run.marks.unfit(run.known, f"`{slot.name}` becomes a number of another class")
                cell.aval, again = aval, True
                cell.number = run.placeholder(aval)
            cell.boxed = boxed
    for slot, (_, leaves) in zip(run.slots, made.ends, strict=True):
        if slot.name in moved and slot.name in run.known.loop.names:
            _loose(run, slot, leaves)
    if moved:
        run.hold(moved)
    return again


def _loose(run: Any, slot: Variable, leaves: list[Any]) -> None:
    """A variable that does not stay what it is: its numbers move, or it is assigned before it is read."""
    known = run.known
    if slot.kept and slot.name not in known.loop.names:
        run.marks.unfit(known, f"`{slot.name}` does not stay of one length, with things of one kind")
    if slot.name not in known.moving and any(type(x) in (int, bool) for x in (*slot.leaves, *leaves)):
        known.moving.add(slot.name)
    else:
        known.fresh.add(slot.name)
    run.marks.start_over()


def _alike(x: Any, y: Any) -> bool:
    if isinstance(x, Value) and isinstance(y, Value):
        return x.number == y.number
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return type(x) is type(y) and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    return x is y or (type(x) is type(y) and (x == y or (type(x) is float and x != x and y != y)))
