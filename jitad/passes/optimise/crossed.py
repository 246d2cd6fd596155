"""Several groupings of the same rows as one: ``a[i] + b[j]`` is a lookup in a small table of sums.

A sum of lookups by row loads at a computed place for each of its terms, and its reverse adds each cotangent at as many
places. Where the groups are few, so are their combinations: the table of sums is made once, a row looks up one place
of it, and what the combinations get is summed along the sides of the table at the end. The order in which the terms
are added is free, as in every sum.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import prod

import numpy as np

from jitad.primitives.elementwise import add
from jitad.primitives.index import gather, reshape, scatter, wrapped
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.view import expand_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Node

ROWS = 16             # rows, at least, for each combination
MOST = 512            # combinations whose sums, several of each, stay in the first cache
Side = tuple[int, int]                # an index array and the length that it indexes


def crossed(tape: Tape) -> Tape:
    """`tape`, where lookups that are added up, and sums of one array by several groupings, are of combinations."""
    if not any(node.prim.indexed for node in tape.nodes):
        return tape
    lookups, sums = _lookups(tape), _sums(tape)
    return _Crossing(tape, lookups, sums).run() if lookups or sums else tape


def addends(tape: Tape, number: int) -> list[int]:
    """The leaves of the tree of additions at `number` whose inner nodes nobody else reads."""
    leaves: list[int] = []
    stack = [number]
    while stack:
        top = stack.pop()
        node = tape.nodes[top]
        if node.prim is add and (top == number or private(tape, top)):
            stack.extend(reversed(node.inputs))
        else:
            leaves.append(top)
    return leaves


def private(tape: Tape, number: int) -> bool:
    return len(tape.uses[number]) == 1 and number not in tape.outputs


def _side(tape: Tape, node: Node) -> Side | None:
    """The index of a lookup in a row of floats, or of a sum into one, that is computed for each of many rows. What is a
    place of several already stays one: of a place in such a place nobody would check each index."""
    if not node.prim.indexed:
        return None
    shape = node.params.get("shape") or tape.nodes[node.inputs[0]].aval.shape
    index = tape.nodes[node.inputs[1]]
    suits = (len(node.inputs) == 2 and len(shape) == index.aval.ndim == 1 and node.aval.dtype.kind == "f"
             and index.aval.dtype == np.int64 and index.constant is None and index.prim is not wrapped)
    return (node.inputs[1], shape[0]) if suits and 0 < shape[0] * ROWS <= index.aval.size else None


def _bins(tape: Tape, sides: Iterable[Side]) -> list[tuple[Side, ...]]:
    """Groupings that go together, the largest first. The same ones always go together."""
    bins: list[list[Side]] = []
    for side in sorted(set(sides), key=lambda s: (-s[1], s[0])):
        room = min(MOST, tape.nodes[side[0]].aval.size // ROWS)
        for found in bins:
            if prod(n for _, n in found) * side[1] <= room:
                found.append(side)
                break
        else:
            bins.append([side])
    return [tuple(b) for b in bins if len(b) > 1]


def _lookups(tape: Tape) -> dict[int, list[tuple[tuple[Side, ...], list[int]]]]:
    """For each sum of lookups the bins of their groupings, with the lookups of each."""
    found: dict[int, list[tuple[tuple[Side, ...], list[int]]]] = {}
    inner: set[int] = set()
    for number in range(len(tape.nodes) - 1, -1, -1):
        node = tape.nodes[number]
        leaves = addends(tape, number)
        if leaves == [number] or node.aval.ndim != 1 or node.aval.dtype.kind != "f" or number in inner:
            continue
        inner.update(_inner(tape, number))
        if len(set(leaves)) < len(leaves):                          # ``x + x``: its terms stand for several
            continue
        sides: dict[Side, list[int]] = {}
        for leaf in leaves:
            side = _side(tape, tape.nodes[leaf]) if tape.nodes[leaf].prim.rearranges else None
            if side is not None and private(tape, leaf):
                sides.setdefault(side, []).append(leaf)
        bins = _bins(tape, sides) if len(sides) > 1 else []
        if bins:
            found[number] = [(b, [leaf for side in b for leaf in sides[side]]) for b in bins]
    return found


def _inner(tape: Tape, number: int) -> list[int]:
    """The additions below the one at `number` that belong to the same sum."""
    found, leaves, stack = [], set(addends(tape, number)), [number]
    while stack:
        below = [i for i in tape.nodes[stack.pop()].inputs if i not in leaves]
        found += below
        stack += below
    return found


def _sums(tape: Tape) -> dict[int, tuple[Side, ...]]:
    """For each sum of an array by groups, if there are others of the same array, the bin of its grouping."""
    users: dict[int, dict[Side, int]] = {}
    for number, node in enumerate(tape.nodes):
        side = _side(tape, node) if node.prim.scatters else None
        if side is not None:
            users.setdefault(node.inputs[0], {})[side] = number
    found: dict[int, tuple[Side, ...]] = {}
    for sides in users.values():
        first = min(sides.values())
        known = [side for side in sides if side[0] < first]         # indices that exist when the first is summed
        for b in _bins(tape, known):
            found.update((sides[side], b) for side in b)
    return found


class _Crossing:
    """The tape anew; what nobody reads any more is left out."""

    def __init__(self, tape: Tape, lookups: Mapping[int, Sequence[tuple[tuple[Side, ...], list[int]]]],
                 sums: Mapping[int, tuple[Side, ...]]):
        self.tape, self.lookups, self.sums = tape, lookups, sums
        self.builder = Builder()
        self.values: dict[int, Value] = {}

    def run(self) -> Tape:
        tape, builder, values = self.tape, self.builder, self.values
        for number, name in zip(tape.inputs, tape.names, strict=True):
            values[number] = builder.input(tape.nodes[number].aval, name)
        for number, node in enumerate(tape.nodes):
            if number in values:
                continue
            if number in self.lookups:
                values[number] = self._added(number)
            elif number in self.sums:
                values[number] = self._summed(node, self.sums[number])
            else:
                values[number] = builder.again(node, [values[i].number for i in node.inputs])
        for guard in tape.guards:
            builder.guard(values[guard.node], guard.expected, guard.where)
        return builder.finish([values[o] for o in tape.outputs], tape.labels)

    def _place(self, sides: Sequence[Side]) -> Value:
        """The place of each row in a table with those sides, in C order."""
        numbers = [self.values[i].number for i, _ in sides]
        return self.builder.value(self.builder.apply(wrapped, numbers, {"lengths": tuple(n for _, n in sides)}))

    def _added(self, top: int) -> Value:
        """A sum with the lookups of each bin as one, where the first of them was."""
        made: dict[int, Value | None] = {}
        for sides, leaves in self.lookups[top]:
            made.update((leaf, None) for leaf in leaves)
            made[min(leaves)] = self._looked_up(sides, leaves)
        add = TABLE["add"]
        for number in sorted([*_inner(self.tape, top), top]):
            node = self.tape.nodes[number]
            terms = [t for t in (made.get(i, self.values[i]) for i in node.inputs) if t is not None]
            made[number] = self.builder.value(self.builder.apply(add, [t.number for t in terms], {}, node.where)) if (
                len(terms) == 2) else terms[0] if terms else None
        result = made[top]
        assert result is not None
        return result

    def _looked_up(self, sides: tuple[Side, ...], leaves: Sequence[int]) -> Value:
        tables = []
        for leaf in leaves:
            source, index = self.tape.nodes[leaf].inputs
            table = self.values[source]
            place = sides.index((index, table.shape[0]))
            tables.append(expand_dims(table, tuple(d for d in range(len(sides)) if d != place)))
        table = reduce(TABLE["add"], tables)
        return gather(reshape(table, (prod(n for _, n in sides),)), self._place(sides), axes=(0,))

    def _summed(self, node: Node, sides: tuple[Side, ...]) -> Value:
        lengths = tuple(n for _, n in sides)
        total = scatter(self.values[node.inputs[0]], self._place(sides), axes=(0,), shape=(prod(lengths),))
        own = sides.index((node.inputs[1], node.params["shape"][0]))
        return reduce_sum(reshape(total, lengths), tuple(d for d in range(len(sides)) if d != own))
