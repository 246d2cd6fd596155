"""Tangents in the direction of every unit vector at once, as long as each element moves in one direction, or in few.

Of a value that depends on a parameter vector element by element (a slice of it, its exponential, its elements picked
by group) the tangents are a matrix with one entry in each column: the row says which parameter that element follows.
`Entries` keep entries and rows; a `Block` is an ordinary matrix, of a range of the rows. Tangents are sums of such
terms, `Tangents`: elementwise work on entries costs what it costs for one direction, a sum over observations becomes a
sum by group, what is structurally zero meets no partial derivative, and where the structure ends, it ends for the
rows that are there.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.passes.differentiate.directions import Rows
from jitad.primitives.core import cast, full, select
from jitad.primitives.index import concatenate, gather, reshape, scatter
from jitad.primitives.reduce import contract, parse, reduce_sum
from jitad.primitives.rules import Rules
from jitad.primitives.view import Term as Step
from jitad.primitives.view import broadcast_to, expand_dims, spread, transpose, view
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Node, seen_through

MOST = 12                                # terms kept apart: each is code of its own
LONE = 4                                 # of these, single rows
Line = tuple[int, tuple[Step, ...]]      # row = offset + sum(step * index[d])


@dataclass(frozen=True, eq=False)
class Entries:
    """The matrix with ``u[k]`` at (low + row(k), k), zero elsewhere, of the rows from `low` on, `count` of them; `row`
    may be an integer for each element."""

    u: Value
    row: Line | Value
    low: int
    count: int

    @property
    def key(self) -> Any:
        return self.low, self.count, self.row if isinstance(self.row, tuple) else self.row.number

    def changed(self, u: Value, row: Any = None) -> Entries:
        return Entries(u, self.row if row is None else row, self.low, self.count)

    def varies(self, axes: Sequence[int]) -> bool:
        """Whether the row may change along these dimensions."""
        return any(d in axes for d, _ in self.row[1]) if isinstance(self.row, tuple) else bool(axes)

    @property
    def fixed(self) -> bool:
        """Whether all is in one row."""
        return isinstance(self.row, tuple) and not self.row[1]

    def block(self) -> Block:
        """As a matrix."""
        if self.fixed:
            return Block(expand_dims(self.u, (0,)), self.low)
        shape = (self.count, *self.u.shape)
        rows = broadcast_to(_numbers(self), shape)
        count = view(self.u.builder.const(np.arange(self.count)), shape, ((0, ((0, 1),)),))
        return Block(select(TABLE["eq"](count, rows), broadcast_to(self.u, shape), 0.0), self.low)


@dataclass(frozen=True, eq=False)
class Block:
    """The rows from `low` on: the first dimension of `u`."""

    u: Value
    low: int

    @property
    def key(self) -> Any:
        return self.low, self.count, None

    @property
    def count(self) -> int:
        return self.u.shape[0]

    def changed(self, u: Value) -> Block:
        return Block(u, self.low)

    def block(self) -> Block:
        return self


@dataclass(frozen=True, eq=False)
class Tangents:
    """A sum of terms; rows in which none has anything are structurally zero."""

    terms: tuple[Entries | Block, ...]

    @classmethod
    def unit(cls, one: Value) -> Tangents:
        """All unit vectors of a space; `one` has a one for each element."""
        return cls((Entries(one, _in_order(one.shape), 0, one.aval.size),))

    def mapped(self, change: Callable[[Value], Value]) -> Tangents:
        """With a linear function of each element applied to all."""
        return Tangents(tuple(t.changed(change(t.u)) for t in self.terms))

    @property
    def range(self) -> tuple[int, int]:
        return min(t.low for t in self.terms), max(t.low + t.count for t in self.terms)

    def rows(self, low: int, high: int) -> Value:
        """The matrix of these rows, which include all that have something."""
        merged: dict[Any, Value] = {}
        for block in (t.block() for t in self.terms):
            merged[block.key] = merged[block.key] + block.u if block.key in merged else block.u
        pieces = sorted(((key[0], u) for key, u in merged.items()), key=lambda piece: piece[0])
        ends = [start + u.shape[0] for start, u in pieces]
        if any(end > start for end, (start, _) in zip(ends, pieces[1:], strict=False)):
            return _sum([_padded(u, start - low, high - low) for start, u in pieces])
        parts, reached = [], low
        for (start, u), end in zip(pieces, ends, strict=True):
            if start > reached:
                parts.append(full(u, 0, (start - reached, *u.shape[1:]), u.dtype))
            parts.append(u)
            reached = end
        if reached < high:
            parts.append(full(parts[-1], 0, (high - reached, *parts[-1].shape[1:]), parts[-1].dtype))
        return parts[0] if len(parts) == 1 else concatenate(*parts, axis=0)


def _padded(u: Value, start: int, length: int) -> Value:
    return spread(u, (length, *u.shape[1:]), ((start, ((0, 1),)), *((0, ((d, 1),)) for d in range(1, u.ndim))))


def _sum(values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def added(tangents: Sequence[Tangents]) -> Tangents:
    """The sum; terms of the same rows are one."""
    merged: dict[Any, Entries | Block] = {}
    for term in (term for t in tangents for term in t.terms):
        known = merged.get(term.key)
        merged[term.key] = term if known is None else term.changed(known.u + term.u)
    return _fewer(Tangents(tuple(merged.values())))


def _fewer(total: Tangents) -> Tangents:
    """Not more terms than are kept apart: single rows that lie close together become one block; if that is not
    enough, all do."""
    single = Tangents(tuple(t for t in total.terms if isinstance(t, Entries) and t.fixed))
    if len(single.terms) > LONE:
        low, high = single.range
        if high - low <= 2 * len(single.terms):
            others = [t for t in total.terms if not (isinstance(t, Entries) and t.fixed)]
            return added([Tangents((t,)) for t in (*others, Block(single.rows(low, high), low))])
    if len(total.terms) <= MOST:
        return total
    low, high = total.range
    return Tangents((Block(total.rows(low, high), low),))


# --- rows ----------------------------------------------------------------------------------------------

def _in_order(shape: tuple[int, ...]) -> Line:
    """The rows of elements that are counted in C order."""
    steps, stride = [], 1
    for d in reversed(range(len(shape))):
        if shape[d] != 1:
            steps.append((d, stride))
        stride *= shape[d]
    return 0, tuple(reversed(steps))


def _placed(term: Entries, u: Value, row: Line) -> Entries:
    """With new rows, counted as those of `term`; the range is what they reach."""
    offset, steps = row
    steps = tuple(step for step in steps if u.shape[step[0]] != 1)
    ends = [step * (u.shape[d] - 1) for d, step in steps]
    first = offset + sum(e for e in ends if e < 0)
    last = offset + sum(e for e in ends if e > 0)
    if 0 in u.shape:
        return Entries(u, (0, ()), term.low, 1)
    return Entries(u, (offset - first, steps), term.low + first, last - first + 1)


def _numbers(term: Entries) -> Value:
    """The rows of all elements."""
    if isinstance(term.row, Value):
        return term.row
    shape, (offset, steps) = term.u.shape, term.row
    dims = [d for d, _ in steps]
    grid = np.ogrid[tuple(slice(shape[d]) for d in dims)] if dims else []
    table = np.asarray(offset + sum((s * g for (_, s), g in zip(steps, grid, strict=True)), 0), np.int64)
    return view(term.u.builder.const(table), shape, tuple((0, ((d, 1),)) for d in dims))


def _renamed(row: Line, place: dict[int, int]) -> Line:
    return row[0], tuple(sorted((place[d], s) for d, s in row[1]))


def _through(row: Line, index: Any) -> Line:
    """The rows of a view."""
    offset, steps = row[0], dict[int, int]()
    for d, step in row[1]:
        offset += step * index[d][0]
        for out, by in index[d][1]:
            steps[out] = steps.get(out, 0) + step * by
    return offset, tuple(sorted((d, s) for d, s in steps.items() if s))


def _collected(term: Entries, axes: Sequence[int]) -> Block:
    """The matrix, summed over `axes`; the rows may be known for the first dimensions only."""
    u, row = term.u, term.row
    rest = [d for d in range(u.ndim) if d not in axes]
    if isinstance(row, tuple):
        shape = (term.count, *(u.shape[d] for d in rest))
        return Block(spread(u, shape, (row, *((0, ((d, 1),)) for d in rest))), term.low)
    inner = [d for d in axes if d >= row.ndim]
    u, rest = (reduce_sum(u, tuple(inner)) if inner else u), [d for d in rest if d < row.ndim]
    shape = (term.count, *(u.shape[d] for d in rest), *u.shape[row.ndim:])
    counts = [view(u.builder.const(np.arange(u.shape[d])), row.shape, ((0, ((d, 1),)),)) for d in rest]
    return Block(scatter(u, row, *counts, axes=tuple(range(1 + len(counts))), shape=shape), term.low)


# --- rules -----------------------------------------------------------------------------------------------

def linear_rule(builder: Builder, node: Node, tangents: Sequence[Tangents | None], y: Value,
                inputs: Sequence[Value]) -> Tangents | None:
    """The tangents of a node that is not elementwise: term by term where it has a rule for entries, else those of all
    rows at once."""
    moving = [(place, t) for place, t in enumerate(tangents) if t is not None]
    rule = RULES.of(node.prim)
    if rule is None:
        low, high, values = aligned(tangents)
        found = Rows(builder, high - low).jvp(node.prim, node, values, y, inputs)
        return None if found is None else Tangents((Block(found, low),))
    parts: list[Entries | Block] = []
    for place, tangent in moving:
        for term in tangent.terms:
            result = rule(node, term, place, inputs) if isinstance(term, Entries) else None
            if result is None:
                block = term.block()
                alone = [block.u if i == place else None for i in range(len(inputs))]
                value = Rows(builder, block.count).jvp(node.prim, node, alone, y, inputs)
                if value is None:
                    continue
                result = Block(value, block.low)
            parts.append(result)
    return added([Tangents((part,)) for part in parts]) if parts else None


def aligned(tangents: Sequence[Tangents | None]) -> tuple[int, int, list[Value | None]]:
    """The rows in which any of several has something, and the matrix of these of each."""
    ranges = [t.range for t in tangents if t is not None]
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    return low, high, [None if t is None else t.rows(low, high) for t in tangents]


def _branches(node: Node, tangents: Sequence[Tangents | None], inputs: Sequence[Value]) -> Tangents:
    """The tangents of a choice."""
    parts, condition, (_, yes, no) = [], inputs[0], tangents
    if yes is not None:
        parts.append(yes.mapped(lambda u: select(condition, u, 0.0)))
    if no is not None:
        parts.append(no.mapped(lambda u: select(condition, full(u, 0, u.shape, u.dtype), u)))
    return added(parts)


def _cast(node: Node, tangents: Sequence[Any], inputs: Sequence[Value]) -> Tangents:
    return tangents[0].mapped(lambda u: cast(u, node.aval.dtype))


WHOLE: Rules[Callable[[Node, Sequence[Any], Sequence[Value]], Tangents]] = Rules()
WHOLE("select")(_branches)
WHOLE("cast")(_cast)
"""Rules that get the tangents of a node as they are, whatever their terms."""


def _reduce_sum(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries | Block:
    axes = node.params["axes"]
    if term.varies(axes):
        return _collected(term, axes)
    left = [d for d in range(term.u.ndim) if d not in axes]
    row = _renamed(term.row, {d: i for i, d in enumerate(left)}) if isinstance(term.row, tuple) else term.row
    return term.changed(reduce_sum(term.u, axes), row)


def _contract(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries | Block:
    left, right, out = parse(node.params["spec"])
    mine, others, other = (left, right, inputs[1]) if place == 0 else (right, left, inputs[0])
    if not term.varies([d for d, c in enumerate(mine) if c not in out]):
        u = contract(term.u, other, f"{mine},{others}->{out}")
        position = {d: out.index(c) for d, c in enumerate(mine) if c in out}
        if isinstance(term.row, tuple):
            return term.changed(u, _renamed(term.row, position))
        return term.changed(u, view(term.row, u.shape, tuple((0, ((position[d], 1),)) for d in range(len(mine)))))
    letters = mine + "".join(c for c in others if c not in mine)
    product = contract(term.u, other, f"{mine},{others}->{letters}")
    found = _collected(term.changed(product), [d for d, c in enumerate(letters) if c not in out])
    rest = [c for c in letters if c in out]
    return found.changed(transpose(found.u, (0, *(1 + rest.index(c) for c in out))))


def _view(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries:
    shape, index = node.params["shape"], node.params["index"]
    u = view(term.u, shape, index)
    if isinstance(term.row, tuple):
        return _placed(term, u, _through(term.row, index))
    return term.changed(u, view(term.row, shape, index))


def _reshape(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries:
    shape = node.params["shape"]
    u = reshape(term.u, shape)
    if term.fixed:
        return term.changed(u)
    if isinstance(term.row, tuple) and term.row[1] == _in_order(term.u.shape)[1]:
        return term.changed(u, (term.row[0], _in_order(shape)[1]))
    return term.changed(u, reshape(_numbers(term), shape))


def _gather(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries:
    index, axes, aval = inputs[1:], node.params["axes"], node.aval
    number = _number(term.u)
    u = gather(term.u, *index, axes=axes) if number is None else full(term.u, number, aval.shape, aval.dtype)
    if term.fixed:
        return term.changed(u)
    if term.row == (0, ((0, 1),)) and term.u.ndim == 1:
        return term.changed(u, _wrapped(index[0], term.count))
    return term.changed(u, gather(_numbers(term), *index, axes=axes))


def _number(u: Value) -> float | None:
    """The number that all elements are, if it is a constant."""
    constant = seen_through(u.builder.nodes, u.node).constant
    return constant.item() if constant is not None and constant.shape == () else None


def _wrapped(index: Value, length: int) -> Value:
    """The places that an index means, of which negative ones count from the end."""
    index = cast(index, np.int64)
    if index.node.constant is not None and (index.node.constant >= 0).all():
        return index
    return select(TABLE["lt"](index, 0), index + length, index)


def _scatter(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries | Block | None:
    index, axes, shape, u = inputs[1:], node.params["axes"], node.params["shape"], term.u
    if term.fixed:
        return term.changed(scatter(u, *index, axes=axes, shape=shape))
    if index[0].ndim != u.ndim:
        return None
    return Block(scatter(u, _numbers(term), *index, axes=(0, *(a + 1 for a in axes)), shape=(term.count, *shape)),
                 term.low)


def _spread(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries | Block | None:
    shape, index = node.params["shape"], node.params["index"]
    if term.fixed:
        return term.changed(spread(term.u, shape, index))
    if isinstance(term.row, tuple):
        return Block(spread(term.u, (term.count, *shape), (term.row, *index)), term.low)
    return None


def _pointwise(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries:
    return term.changed(node.prim(term.u, **node.params))


def _within_a_row(node: Node, term: Entries, place: int, inputs: Sequence[Value]) -> Entries | None:
    return _pointwise(node, term, place, inputs) if term.fixed else None


Rule = Callable[[Node, Entries, int, Sequence[Value]], "Entries | Block | None"]
RULES: Rules[Rule] = Rules()
for _name, _rule in (("reduce_sum", _reduce_sum), ("contract", _contract), ("view", _view), ("reshape", _reshape),
                     ("gather", _gather), ("scatter", _scatter), ("spread", _spread), ("triangle", _pointwise),
                     ("cumulative", _within_a_row)):
    RULES(_name)(_rule)

__all__ = ["WHOLE", "Block", "Entries", "Tangents", "added", "aligned", "linear_rule"]
