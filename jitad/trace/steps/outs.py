"""All that goes from step to step of a loop, and what becomes of the variables after it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.loop_body import Body
from jitad.trace.steps.rows import in_all
from jitad.trace.steps.variant import Cell

__all__ = ["Fixed", "Out", "Outs", "Row"]


@dataclass
class Out:
    """A number or array that goes from step to step: its placeholder, its first value, what it is in each variant,
    and its number at the end in this call."""

    number: int
    aval: Aval
    first: Any
    ends: list[Any]
    boxed: bool = False
    concrete: Any = None
    frozen: str = ""


@dataclass
class Row:
    """What steps append to a list: its value in each variant; then the stack of these."""

    ends: list[Any]
    weak: bool
    boxed: bool
    frozen: str
    stack: Any = None


@dataclass
class Fixed:
    """A leaf that is the same in all steps."""

    thing: Any


class Outs:
    """All that goes from step to step. `places` has for each slot its tree and leaves, a leaf being the number of an
    `Out` or `Fixed`; None where a variable may not be read after the loop."""

    def __init__(self, run: Any, variants: list[Any], body: Body) -> None:
        self.run, self.variants, self.recorder = run, variants, run.recorder
        self.outs: list[Out] = []
        self.code: int | None = None
        self.results: dict[int, Any] = {}
        self.places: dict[str, Any] = {}
        self.originals: dict[str, Any] = {}              # of variables that no step changes
        for place, slot in enumerate(run.slots):
            ends = [v.ends[place] for v in variants]
            self.places[slot.name] = self._last(ends, slot.leaves) if slot.fresh else self._carried(slot, ends)
            lost = slot.fresh and (self.places[slot.name] is None or any(tree is None for tree, _ in ends))
            if lost and slot.name in run.known.loop.elsewhere - {*run.known.loop.targets}:
                run.marks.unfit(run.known, f"`{slot.name}` is read after it, and not every step assigns it")
            still = [all(getattr(x, "number", None) == cell.number for cell, x in zip(slot.leaves, leaves, strict=True)
                         if type(cell) is Cell) for _, leaves in ends] if not slot.fresh else []
            if still and all(still) and not slot.kept:
                self.originals[slot.name] = slot.original
            self._is_told(slot, slot.name in self.originals)
        for i, stored in enumerate(run.stored):
            cell = stored.cell
            ends = in_all(body, Value(self.recorder, cell.number), [v.stored[i] for v in variants])
            self.add(cell.aval, cell.first, ends, cell.concrete, True, cell.number)
        self.rows = [self._appended(i) for i in range(len(run.grown))]
        self.arrays = range(len(self.outs) - len(run.stored), len(self.outs))
        for site in sorted({v.left for v in variants if v.value is not None}):
            ends = [v.value if v.left == site else (None, []) for v in variants]
            outcome = run.outcome[1] if run.outcome and run.outcome[0] == site else []
            found = self._last(ends, outcome)
            if found is None:
                run.marks.unfit(run.known, "what it returns is of several kinds")
            self.results[site] = found

    def _is_told(self, slot: Any, still: bool) -> None:
        """Whether it is known which containers a variable has after the loop, as far as others hold them."""
        run, known = self.run, self.run.known
        of = [v.holders for v in self.variants]
        stays = [holders.stays[slot.name] for holders in of if slot.name in holders.stays]
        some = run.walk is not None                      # whether there is a step in each call
        if stays and not slot.kept and not (all(stays) and still) and (any(stays) or not some):
            run.marks.unfit(known, f"`{slot.name}` may be what it was before, which has another name")
        if any(slot.name in h.appended for h in of) and (
                slot.name in known.loop.elsewhere or any(slot.name in h.written for h in of)):
            run.marks.unfit(known, f"`{slot.name}` is in a list, too")

    def add(self, aval: Aval, first: Any, ends: list[Any], concrete: Any = None, boxed: bool = False,
            number: int | None = None, frozen: str = "") -> int:
        number = self.run.placeholder(aval) if number is None else number
        self.outs.append(Out(number, aval, first, ends, boxed, concrete, frozen))
        return len(self.outs) - 1

    def _frozen(self, *values: Any) -> str:
        """Why NumPy writes into none of these arrays; where it does into some, the loop is Python's."""
        said = {getattr(v, "frozen", "") for v in values}
        if len(said) > 1:
            self.run.marks.unfit(self.run.known, "an array is read-only after some steps")
        return said.pop()

    def _carried(self, slot: Any, ends: list[Any]) -> Any:
        places: list[Any] = []
        for i, cell in enumerate(slot.leaves):
            if not hasattr(cell, "aval") or not hasattr(cell, "concrete"):
                places.append(Fixed(cell))
                continue
            found = [self.run.value_of(leaves[i]) for _, leaves in ends]
            self._frozen(*found, None)                   # in the first step it was not
            values = [cast(Value(self.recorder, v.number), cell.aval.dtype) for v in found]
            places.append(self.add(cell.aval, cell.first, values, cell.concrete, cell.boxed, cell.number))
        return slot.tree, places

    def _last(self, ends: list[Any], concretes: Sequence[Any]) -> Any:
        """Leaves that are set in some variants, of one kind in all of these; None if they are not."""
        trees = [tree for tree, _ in ends if tree is not None]
        if not trees or any(tree != trees[0] for tree in trees):
            return None
        places: list[Any] = []
        for i in range(len(next(leaves for tree, leaves in ends if tree is not None))):
            leaves = [None if tree is None else leaves[i] for tree, leaves in ends]
            there = [x for (tree, _), x in zip(ends, leaves, strict=True) if tree is not None]
            if not isinstance(there[0], (Value, np.ndarray, np.generic, float)) and all(
                    x is there[0] or (type(x) is type(there[0]) in (int, bool, str) and x == there[0]) for x in there):
                places.append(Fixed(there[0]))
                continue
            values = [None if tree is None else self.run.value_of(x) for (tree, _), x in zip(ends, leaves, strict=True)]
            known: list[Any] = [v for (tree, _), v in zip(ends, values, strict=True) if tree is not None]
            if any(v is None or v.shape != known[0].shape for v in known):
                return None
            dtype = np.result_type(*(v.dtype for v in known))
            aval = Aval(known[0].shape, dtype, all(v.aval.weak for v in known))
            number = self.run.placeholder(aval)
            made = [Value(self.recorder, number) if v is None else cast(Value(self.recorder, v.number), dtype)
                    for v in values]
            places.append(self.add(aval, np.zeros(aval.shape, dtype), made,
                                   concretes[i] if i < len(concretes) else None,
                                   any(getattr(v, "boxed", False) for v in known), number, self._frozen(*known)))
        return trees[0], places

    def _appended(self, i: int) -> list[tuple[Any, list[Any]]]:
        """What each step appends to a list, in all variants alike: trees with leaves, each `Fixed` or, for each
        variant, a value."""
        run, several = self.run, [v.rows[i] for v in self.variants]
        first = several[0]
        alike = all(len(rows) == len(first) and all(a[0] == b[0] for a, b in zip(rows, first, strict=True))
                    for rows in several)
        if not alike or any(v.left for v in self.variants):
            run.marks.unfit(run.known, "steps append differently to a list")
        result = []
        for k, (tree, leaves) in enumerate(first):
            items: list[Any] = []
            for j in range(len(leaves)):
                values = [run.value_of(rows[k][1][j]) for rows in several]
                if any(v is None or v.shape != values[0].shape for v in values):
                    run.marks.unfit(run.known, "steps append things of several kinds to a list")
                dtype = np.result_type(*(v.dtype for v in values))
                items.append(Row([cast(Value(self.recorder, v.number), dtype) for v in values],
                                 all(v.aval.weak for v in values), any(getattr(v, "boxed", False) for v in values),
                                 self._frozen(*values)))
            result.append((tree, items))
        return result

    def value(self, slot: Any, traced: Any) -> Any:
        if slot.name in self.originals:
            return self.originals[slot.name]
        found = self.places[slot.name]
        if found is None:
            return self.run.unset(slot.name)
        tree, leaves = found
        return slot.of(tree, [traced(x) if type(x) is int else x.thing for x in leaves])
