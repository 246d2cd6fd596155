"""What of a tape depends on bound data alone: a prologue, run once for the data, and the main tape that is left.

What moves to the prologue is worth more than loading its result: transcendental work, reductions, products, gathers,
sorts, factorizations, strided slices (which become contiguous). Cheap elementwise work on arrays that are read anyway
stays, and so do broadcasts: storing those would cost more memory traffic than computing them again.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jitad.passes.optimise.crossed import crossed
from jitad.passes.split.indices import places_apart, trust
from jitad.primitives.custom import has_code
from jitad.primitives.index import within
from jitad.primitives.reduce import parse
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape, needed
from jitad.tape.types import Aval, Node

DEAR = 8              # cost of elementwise work, for each element, from which its result is stored
SMALL = 1 << 12       # elements that stay in the first cache: there, storing pays from
LESS_DEAR = 4         # this cost
GROWTH = 8            # a stored result has at most so many elements for each of what it is made of, or
ROOM = 1 << 16        # so many altogether
THIN = 16             # columns, at most, of a matrix that is read column by column


@dataclass(frozen=True)
class Split:
    """`prologue` has the bound inputs and `main` the free ones, then those of the bound ones that it still reads
    (`kept`, numbers among the bound), then the outputs of the prologue.

    The guards of the prologue are on bound data alone; `main` has the others.
    """

    prologue: Tape
    main: Tape
    kept: tuple[int, ...]

    @property
    def hoisted(self) -> int:
        """How many values come from the prologue."""
        return len(self.prologue.outputs)

    def thin(self, free: int) -> tuple[bool, ...]:
        """For each input of the main tape behind the `free` first whether its columns had better be contiguous."""
        return tuple(_thin(self.main, number) for number in self.main.inputs[free:])


def split(tape: Tape, free: Sequence[int], hoist: bool = True) -> Split:
    """Split `tape`, of whose inputs the numbers `free` vary; without `hoist` everything stays in the main tape."""
    if hoist:
        tape = crossed(tape)
        found = _Splitting(tape, tuple(free), hoist)
        tape = places_apart(tape, found.on_data - found.varying)
    return _Splitting(tape, tuple(free), hoist).run()


class _Splitting:
    def __init__(self, tape: Tape, free: tuple[int, ...], hoist: bool):
        self.tape, self.hoist = tape, hoist
        self.free = [tape.inputs[i] for i in free]
        self.bound = [number for i, number in enumerate(tape.inputs) if i not in free]
        varying = set(self.free)
        for number, node in enumerate(tape.nodes):
            if not varying.isdisjoint(node.inputs) or has_code([node]):
                varying.add(number)
        self.varying = varying
        self.stored: list[int] = []                      # data that the main tape gets from the prologue
        self.computed: set[int] = set()                  # nodes of the main tape

    def run(self) -> Split:
        guards = [g for g in self.tape.guards if g.node in self.varying or not self.hoist]
        stack = [*self.tape.outputs, *(g.node for g in guards)]
        seen: set[int] = set()
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            if self.hoist and number not in self.varying and self._worth(number):
                self.stored.append(number)
            else:
                self.computed.add(number)
                stack += self.tape.nodes[number].inputs
        self.stored.sort()
        kept = [i for i, number in enumerate(self.bound) if number in self.computed]
        return Split(self._prologue(), self._main(kept), tuple(kept))

    # --- what moves --------------------------------------------------------------------------
    @cached_property
    def _read(self) -> set[int]:
        """Bound inputs that the main tape reads in any case, directly or by views."""
        tape, found = self.tape, set[int]()
        for number in self.varying:
            for source in tape.nodes[number].inputs:
                while tape.nodes[source].prim.shows:
                    source = tape.nodes[source].inputs[0]
                found.add(source)
        return found

    def _worth(self, number: int) -> bool:
        """Whether the result of a node that depends on data alone is better stored than computed each time."""
        node = self.tape.nodes[number]
        size = node.aval.size
        if node.is_leaf or node.body is not None or node.aval.dtype == object or not size or not self._bound(number):
            return False
        if _checks(node):
            return True
        if node.index_map is not None:
            return _strided(node, self.tape.nodes[node.inputs[0]].aval)
        if node.prim.shows or node.prim.shape_only:
            return False
        if size == 1:
            return True
        if not _pointwise(node):
            return size <= max(GROWTH * sum(self.tape.nodes[i].aval.size for i in node.inputs), ROOM)
        cost, leaves = self._made_of(number)
        total = sum(self.tape.nodes[i].aval.size for i in leaves)
        if size > max(GROWTH * total, ROOM):
            return False
        if cost >= (LESS_DEAR if size <= SMALL else DEAR):
            return True
        return size <= sum(self.tape.nodes[i].aval.size for i in leaves if i not in self._read)

    def _bound(self, number: int) -> bool:
        """Whether a node depends on bound inputs, not on constants alone."""
        return number in self.on_data

    @cached_property
    def on_data(self) -> set[int]:
        found = set(self.bound)
        for number, node in enumerate(self.tape.nodes):
            if number not in self.varying and not found.isdisjoint(node.inputs):
                found.add(number)
        return found

    def _made_of(self, number: int) -> tuple[float, set[int]]:
        """The elementwise work for each element of a result, and the data that is read for it."""
        size, cost = self.tape.nodes[number].aval.size, 0.0
        leaves, seen, stack = set[int](), set[int](), [number]
        while stack:
            number = stack.pop()
            node = self.tape.nodes[number]
            if number in seen or node.constant is not None:
                continue
            seen.add(number)
            if node.prim.shows or _pointwise(node):
                cost += node.prim.cost * min(node.aval.size / size, 1) if _pointwise(node) else 0
                stack += node.inputs
            else:
                leaves.add(number)
        return cost, leaves

    # --- the two tapes -----------------------------------------------------------------------
    def _prologue(self) -> Tape:
        builder, values = Builder(), dict[int, Value]()
        for number in self.bound:
            values[number] = builder.input(self.tape.nodes[number].aval, self._name(number))
        guards = [g for g in self.tape.guards if g.node not in self.varying] if self.hoist else []
        self._replay(builder, values, _numbers(self.tape, [*self.stored, *(g.node for g in guards)]))
        for guard in guards:
            builder.guard(values[guard.node], guard.expected, guard.where)
        return builder.finish([values[number] for number in self.stored])

    def _main(self, kept: Sequence[int]) -> Tape:
        builder, values = Builder(), dict[int, Value]()
        for number in [*self.free, *(self.bound[i] for i in kept)]:
            values[number] = builder.input(self.tape.nodes[number].aval, self._name(number))
        for place, number in enumerate(self.stored):
            aval = self.tape.nodes[number].aval
            values[number] = builder.input(Aval(aval.shape, aval.dtype), f"hoisted_{place}")
            if _checks(self.tape.nodes[number]):
                values[number] = trust(values[number], self.tape.nodes[number].params["lengths"])
        self._replay(builder, values, self.computed)
        for guard in self.tape.guards:
            if guard.node in self.computed:
                builder.guard(values[guard.node], guard.expected, guard.where)
        return builder.finish([values[o] for o in self.tape.outputs], self.tape.labels)

    def _name(self, number: int) -> str:
        return self.tape.names[self.tape.inputs.index(number)]

    def _replay(self, builder: Builder, values: dict[int, Value], numbers: Iterable[int]) -> None:
        for number in sorted(numbers):
            node = self.tape.nodes[number]
            if number not in values and not node.is_input:
                values[number] = builder.again(node, [values[i].number for i in node.inputs])


def _numbers(tape: Tape, wanted: Iterable[int]) -> list[int]:
    return [number for number, found in enumerate(needed(tape.nodes, wanted)) if found]


def _checks(node: Node) -> bool:
    """Whether a node checks indices, and gives places to trust."""
    return node.prim is within


def _product(node: Node) -> bool:
    return node.prim.kind == "contract"


def _pointwise(node: Node) -> bool:
    """Elementwise, or a product of arrays along separate dimensions."""
    if _product(node):
        left, right, out = parse(node.params["spec"])
        return {*left, *right} == {*out}
    return node.elementwise


def _strided(node: Node, source: Aval) -> bool:
    """Whether a view picks elements of a larger array that do not lie together, each once."""
    index = node.params["index"]
    used = [dim for _, terms in index for dim, _ in terms]
    if not 1 < node.aval.size < source.size or sorted(used) != [d for d, n in enumerate(node.aval.shape) if n != 1]:
        return False
    strides = np.cumprod([1, *source.shape[:0:-1]])[::-1]
    steps = {dim: step * int(stride) for (_, terms), stride in zip(index, strides, strict=True) for dim, step in terms}
    if not steps:
        return False
    return abs(steps[max(steps)]) != 1


def _thin(tape: Tape, number: int) -> bool:
    """Whether an input is a thin matrix that is only multiplied along its rows or columns."""
    aval = tape.nodes[number].aval
    if aval.ndim != 2 or aval.dtype.kind != "f" or not 1 < aval.shape[1] <= min(THIN, aval.shape[0] // 2):
        return False
    users = [tape.nodes[user] for user in tape.uses[number]]
    return bool(users) and number not in tape.outputs and all(
        _product(user) and not _pointwise(user) for user in users)
