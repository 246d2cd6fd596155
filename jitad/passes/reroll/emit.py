"""The new tape of a re-rolled recording: nodes that stay as they are, and what becomes of references.

A node that went into a loop is an element of a stack, or a carry after the last step; so a reference to it is a
reference to the stack. A concatenation or an update of many elements that lie side by side in a stack is made of a
slice of it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.passes.reroll.spine import Ref, Spine
from jitad.primitives.index import concatenate, update
from jitad.primitives.linalg.failures import on_success
from jitad.primitives.reduce import reduce_all
from jitad.primitives.view import Map, view
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Guard, Primitive

MANY = 8              # operands from which a concatenation is looked at


@dataclass(eq=False)
class Rolled:
    """A loop on the new tape: the stacks by place, and what carries are after it by ``(iteration, place)``."""

    begin: int
    period: int
    stacks: dict[int, Value]
    finals: dict[tuple[int, int], Value]


class Emitter:
    """Appends the spine to a new builder. `done` is the first position that is not there yet."""

    def __init__(self, old: Builder, spine: Spine):
        self.old, self.spine, self.views = old, spine, spine.views
        self.builder = Builder()
        self.numbers: dict[int, int] = {}
        self.place: list[int] = spine.place.tolist()
        self.loop_of = [-1] * (len(spine.members) + 1)
        self.loops: list[Rolled] = []
        self.guarded = sorted(self.place[spine.ref(number)[0]] for number, guard in old.guards.items()
                              if not on_success(old.nodes[number].prim, guard.expected))
        self.done = 0
        for number, name in zip(old.inputs, old.names, strict=True):
            self.builder.line = old.nodes[number].where
            self.numbers[number] = self.builder.input(old.nodes[number].aval, name).number
        self.builder.line = None

    # --- references ------------------------------------------------------------------------------
    def ref(self, source: int, number: int) -> Ref:
        """A reference on the new tape; ``-1 - source`` stands for a node that is not there yet."""
        known = self.numbers.get(source)
        if known is not None:
            return known, number
        m = self.place[source]
        if m < 0:
            node = self.old.nodes[source]
            known = self.numbers[source] = self.builder.const(node.params["value"].value, node.aval.weak).number
            return known, number
        if self.loop_of[m] < 0:
            return -1 - source, number
        loop = self.loops[self.loop_of[m]]
        at = divmod(m - loop.begin, loop.period)
        if at in loop.finals:
            return loop.finals[at].number, number
        stack = loop.stacks[at[1]]
        shape = stack.shape[1:]
        return stack.number, self.views.through(number, shape, row(at[0], len(shape)))

    def settled(self, ref: Ref) -> Ref:
        """The reference, now that its node is there."""
        return ref if ref[0] >= 0 else self.ref(-1 - ref[0], ref[1])

    def value(self, ref: Ref) -> Value:
        source, number = self.settled(ref)
        value = self.builder.value(source)
        return view(value, *self.views.parts(number)) if number else value

    def at(self, number: int) -> Value:
        """What became of node `number`."""
        return self.value(self.ref(*self.spine.ref(number)))

    # --- nodes that stay -----------------------------------------------------------------------------
    def upto(self, stop: int) -> None:
        """Append the nodes before position `stop` as they are."""
        spine, nodes = self.spine, self.old.nodes
        for m in range(self.done, stop):
            number = spine.members[m]
            node = nodes[number]
            low, high = int(spine.start[m]), int(spine.start[m + 1])
            refs = [self.ref(s, v) for s, v in zip(
                spine.source[low:high].tolist(), spine.view[low:high].tolist(), strict=True)]
            self.builder.line = node.where
            params, prim = node.params, node.prim
            condense = CONDENSED.get(prim)
            if condense is None:
                items = tuple(sorted(params.items())) if params else ()
                self.numbers[number] = self.builder.enter(
                    prim, tuple([self.value(ref).number for ref in refs]), params, items, node.aval)
                continue
            if len(refs) >= MANY:
                operands, params = condense(self, refs, params)
            else:
                operands = [self.value(ref) for ref in refs]
            if len(operands) == 1 < len(refs):                      # all parts are one value
                self.numbers[number] = operands[0].number
            else:
                self.numbers[number] = self.builder.apply(prim, [v.number for v in operands], params, node.where)
        self.done = max(self.done, stop)
        self.builder.line = None

    def joined(self, refs: Sequence[Ref], params: Mapping[str, Any]) -> Condensed:
        """The operands and params of a concatenation."""
        parts = self._side_by_side(refs, params["axis"])
        return [self.value(part) if isinstance(part, tuple) else part for part in parts], params

    def _side_by_side(self, refs: Sequence[Ref], axis: int) -> Iterator[Any]:
        """The parts of a concatenation, where elements of one array follow each other as one value."""
        for group in self.walks(refs):
            shape, index = self.views.parts(group[0][1]) if len(group) > 1 else ((), ())
            if len(group) == 1 or shape[axis] != 1:
                yield from group
                continue
            steps = self.steps(group)
            whole = tuple((o, tuple(sorted((*terms, (axis, step))) if step else terms))
                          for (o, terms), step in zip(index, steps, strict=True))
            yield view(self.builder.value(group[0][0]), (*shape[:axis], len(group), *shape[axis + 1:]), whole)

    def stored(self, refs: Sequence[Ref], params: Mapping[str, Any]) -> Condensed:
        """The operands and params of an update, where elements of one array go to places that follow each other."""
        values, maps, indices = [self.value(refs[0])], [], params["indices"]
        start = 0
        for walk in self.walks(refs[1:]):
            for low, high in _even([indices[i] for i in range(start, start + len(walk))]):
                group, first = walk[low:high], indices[start + low]
                if high - low == 1:
                    values.append(self.value(group[0]))
                    maps.append(first)
                    continue
                steps = [b - a for (a, _), (b, _) in zip(first, indices[start + low + 1], strict=True)]
                values.append(self.row_by_row(group))
                maps.append(led(first, steps))
            start += len(walk)
        return values, {"indices": tuple(maps)}

    def walks(self, refs: Sequence[Ref]) -> Iterator[list[Ref]]:
        """References in groups that walk along one array by a fixed step."""
        views = self.views
        group: list[Ref] = []
        for ref in refs:
            if group and ref[0] == group[0][0] and ref[1] and views.form[ref[1]] == views.form[group[0][1]] and (
                    ref[1] != group[0][1]) and (len(group) == 1 or self.steps([group[-1], ref]) == self.steps(group)):
                group.append(ref)
                continue
            if group:
                yield group
            group = [ref]
        if group:
            yield group

    def steps(self, group: Sequence[Ref]) -> list[int]:
        offsets = self.views.offsets
        return [b - a for a, b in zip(offsets[group[0][1]], offsets[group[1][1]], strict=True)]

    def row_by_row(self, group: Sequence[Ref]) -> Value:
        """A walk as one value, a row for each reference."""
        shape, index = self.views.parts(group[0][1])
        return view(self.builder.value(group[0][0]), (len(group), *shape), led(index, self.steps(group)))

    # --- guards ------------------------------------------------------------------------------------------
    def guards(self) -> None:
        """Guards on what went into a loop become one on all iterations that follow each other."""
        held: dict[int, list[tuple[int, Guard]]] = {}
        for guard in self.old.guards.values():
            source, number = self.spine.ref(guard.node)
            m = self.place[source]
            if number or m < 0 or self.loop_of[m] < 0:
                self.builder.guard(self.at(guard.node), guard.expected, guard.where)
            else:
                held.setdefault(self.loop_of[m], []).append((m - self.loops[self.loop_of[m]].begin, guard))
        for i, found in held.items():
            loop = self.loops[i]
            by_place: dict[int, list[tuple[int, Guard]]] = {}
            for at, guard in sorted(found, key=lambda pair: pair[0]):
                k, place = divmod(at, loop.period)
                by_place.setdefault(place, []).append((k, guard))
            for place, guards in by_place.items():
                self._guard_rows(loop, place, guards)

    def _guard_rows(self, loop: Rolled, place: int, guards: list[tuple[int, Guard]]) -> None:
        start = 0
        while start < len(guards):
            stop = start + 1
            while stop < len(guards) and guards[stop][0] == guards[stop - 1][0] + 1:
                stop += 1
            first = guards[start][1]
            if stop - start == 1 or place not in loop.stacks:
                stop = start + 1
                self.builder.guard(self.at(first.node), first.expected, first.where)
            else:
                k, stack = guards[start][0], loop.stacks[place]
                rows = view(stack, (stop - start,), ((k, ((0, 1),)),))
                expected = np.array([guard.expected for _, guard in guards[start:stop]], stack.dtype)
                self.builder.guard(reduce_all(TABLE["eq"](rows, expected), axes=(0,)), True, first.where)
            start = stop


Condensed = tuple[list[Value], Mapping[str, Any]]
CONDENSED: dict[Primitive, Callable[[Emitter, Sequence[Ref], Mapping[str, Any]], Condensed]] = {
    concatenate: Emitter.joined, update: Emitter.stored}
"""Rows with many operands, and how these become fewer."""


def row(k: int, ndim: int) -> Map:
    """The map of element k of a stack of arrays of `ndim` dimensions."""
    return ((k, ()), *((0, ((d, 1),)) for d in range(ndim)))


def led(index: Map, steps: Sequence[int]) -> Map:
    """The map with a dimension in front along which the offsets grow by `steps`."""
    return tuple((o, (*(((0, step),) if step else ()), *((d + 1, s) for d, s in terms)))
                 for (o, terms), step in zip(index, steps, strict=True))


def _even(maps: Sequence[Map]) -> Iterator[tuple[int, int]]:
    """Stretches in which only the offsets of the maps change, by a fixed step that is not zero."""
    low = 0
    while low < len(maps):
        high = low + 1
        if high < len(maps) and _step(maps[low], maps[high]):
            step = _step(maps[low], maps[high])
            while high < len(maps) and _step(maps[high - 1], maps[high]) == step:
                high += 1
        yield low, high
        low = high


def _step(a: Map, b: Map) -> tuple[int, ...]:
    """How far b is from a, or () where they differ otherwise or not at all."""
    if [t for _, t in a] != [t for _, t in b]:
        return ()
    step = tuple(y - x for (x, _), (y, _) in zip(a, b, strict=True))
    return step if any(step) else ()
