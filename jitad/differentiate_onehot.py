"""Tangents in the direction of every unit vector at once, as long as each element moves in one direction, or in few.

Of a value that depends on a parameter vector element by element (a slice of it, its exponential, its elements picked
by group) the tangents are a matrix with one entry in each column: the row says which parameter that element follows. A
`OneHot` keeps entries and rows, a sum of several such matrices: elementwise work costs what it costs for one
direction, a sum over observations becomes a sum by group, and what is structurally zero meets no partial derivative.
Where the structure ends, `dense` makes the matrix.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.primitives.core import TABLE, full, select
from jitad.primitives.index import gather, reshape, scatter
from jitad.primitives.reduce import contract, parse, reduce_sum
from jitad.primitives.view import Term as Step
from jitad.primitives.view import broadcast_to, spread, transpose, view
from jitad.tape import Builder, Node, Value

MOST = 8                     # terms kept apart; more are one matrix
Line = tuple[int, tuple[Step, ...]]      # row = offset + sum(step * index[d])
Row = Line | Value                       # or an integer for each element


@dataclass(frozen=True, eq=False)
class Entries:
    """The matrix with ``u[k]`` at (row(k), k), zero elsewhere."""

    u: Value
    row: Row

    @property
    def fixed(self) -> bool:
        """Whether all is in one row."""
        return isinstance(self.row, tuple) and not self.row[1]

    def varies(self, axes: Sequence[int]) -> bool:
        """Whether the row may change along these dimensions."""
        if isinstance(self.row, tuple):
            return any(d in axes for d, _ in self.row[1])
        return bool(axes)


@dataclass(frozen=True, eq=False)
class OneHot:
    """A sum of `Entries`, for `length` directions."""

    terms: tuple[Entries, ...]
    length: int

    @classmethod
    def unit(cls, like: Value, u: Value) -> OneHot:
        """All unit vectors of the space of `like`, times `u`."""
        return cls((Entries(u, _in_order(like.shape)),), like.aval.size)

    def mapped(self, change: Callable[[Value], Value]) -> OneHot:
        """With a linear function of each element applied to all."""
        return OneHot(tuple(Entries(change(t.u), t.row) for t in self.terms), self.length)

    def dense(self) -> Value:
        """The matrix: the directions are its first dimension."""
        return _sum([_dense(t, self.length) for t in self.terms])


def dense(tangent: Any) -> Any:
    return tangent.dense() if isinstance(tangent, OneHot) else tangent


def added(tangents: Sequence[OneHot | Value]) -> OneHot | Value:
    """The sum; entries of the same rows are one."""
    if not all(isinstance(t, OneHot) for t in tangents):
        return _sum([dense(t) for t in tangents])
    merged: dict[Any, Entries] = {}
    for term in (term for t in tangents for term in t.terms):        # type: ignore[union-attr]
        key = term.row if isinstance(term.row, tuple) else term.row.number
        known = merged.get(key)
        merged[key] = term if known is None else Entries(known.u + term.u, term.row)
    total = OneHot(tuple(merged.values()), tangents[0].length)       # type: ignore[union-attr]
    return total if len(merged) <= MOST else total.dense()


def _sum(values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


# --- rows ----------------------------------------------------------------------------------------------

def _in_order(shape: tuple[int, ...]) -> Line:
    """The rows of elements that are counted in C order."""
    steps, stride = [], 1
    for d in reversed(range(len(shape))):
        if shape[d] != 1:
            steps.append((d, stride))
        stride *= shape[d]
    return 0, tuple(reversed(steps))


def _numbers(builder: Builder, row: Row, shape: tuple[int, ...]) -> Value:
    """The rows of all elements of an array of `shape`."""
    if isinstance(row, Value):
        return row
    offset, steps = row
    dims = [d for d, _ in steps]
    grid = np.ogrid[tuple(slice(shape[d]) for d in dims)] if dims else []
    table = builder.const(np.asarray(offset + sum((s * g for (_, s), g in zip(steps, grid, strict=True)), 0), np.int64))
    return view(table, shape, tuple((0, ((d, 1),)) for d in dims))


def _renamed(row: Line, place: dict[int, int]) -> Line:
    return row[0], tuple(sorted((place[d], s) for d, s in row[1]))


def _through(row: Line, index: Any) -> Line:
    """The rows of a view."""
    offset, steps = row[0], {}
    for d, step in row[1]:
        offset += step * index[d][0]
        for out, by in index[d][1]:
            steps[out] = steps.get(out, 0) + step * by
    return offset, tuple(sorted((d, s) for d, s in steps.items() if s))


def _dense(term: Entries, length: int) -> Value:
    u, shape = term.u, (length, *term.u.shape)
    rows = broadcast_to(_numbers(u.builder, term.row, u.shape), shape)
    count = view(u.builder.const(np.arange(length)), shape, ((0, ((0, 1),)),))
    return select(TABLE["eq"](count, rows), broadcast_to(u, shape), 0.0)


def _collected(term: Entries, axes: Sequence[int], length: int) -> Value:
    """The matrix, summed over `axes`; the rows may be known for the first dimensions only."""
    u, row = term.u, term.row
    rest = [d for d in range(u.ndim) if d not in axes]
    if isinstance(row, tuple):
        return spread(u, (length, *(u.shape[d] for d in rest)), (row, *((0, ((d, 1),)) for d in rest)))
    inner = [d for d in axes if d >= row.ndim]
    u, rest = (reduce_sum(u, tuple(inner)) if inner else u), [d for d in rest if d < row.ndim]
    shape = (length, *(u.shape[d] for d in rest), *u.shape[row.ndim:])
    counts = [view(u.builder.const(np.arange(u.shape[d])), row.shape, ((0, ((d, 1),)),)) for d in rest]
    return scatter(u, row, *counts, axes=tuple(range(1 + len(counts))), shape=shape)


# --- rules -----------------------------------------------------------------------------------------------

def linear_rule(node: Node, tangents: Sequence[Any], inputs: Sequence[Value]) -> OneHot | Value | None:
    """The tangent of a node that is linear in what moves, which is `OneHot`; None where there is no rule."""
    rule = RULES.get(node.prim.kind if node.prim.kind != "reduce" else node.prim.name)
    moving = [(place, t) for place, t in enumerate(tangents) if t is not None]
    if rule is None or not all(isinstance(t, OneHot) for _, t in moving):
        return None
    parts: list[OneHot | Value] = []
    for place, tangent in moving:
        for term in tangent.terms:
            found = rule(node, term, place, inputs, tangent.length)
            if found is None:
                return None
            parts.append(OneHot((found,), tangent.length) if isinstance(found, Entries) else found)
    return added(parts)


def branches(condition: Value, yes: Any, no: Any) -> OneHot | Value:
    """The tangent of a choice of which both sides are `OneHot` or None."""
    parts = []
    if yes is not None:
        parts.append(yes.mapped(lambda u: select(condition, u, 0.0)))
    if no is not None:
        parts.append(no.mapped(lambda u: select(condition, full(u, 0, u.shape, u.dtype), u)))
    return added(parts)


def _reduce_sum(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries | Value:
    axes = node.params["axes"]
    if term.varies(axes):
        return _collected(term, axes, length)
    left = [d for d in range(term.u.ndim) if d not in axes]
    row = _renamed(term.row, {d: i for i, d in enumerate(left)}) if isinstance(term.row, tuple) else term.row
    return Entries(reduce_sum(term.u, axes), row)


def _contract(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries | Value:
    left, right, out = parse(node.params["spec"])
    mine, others, other = (left, right, inputs[1]) if place == 0 else (right, left, inputs[0])
    summed = [d for d, c in enumerate(mine) if c not in out]
    if not term.varies(summed):
        u = contract(term.u, other, f"{mine},{others}->{out}")
        position = {d: out.index(c) for d, c in enumerate(mine) if c in out}
        if isinstance(term.row, tuple):
            return Entries(u, _renamed(term.row, position))
        return Entries(u, view(term.row, u.shape, tuple((0, ((position[d], 1),)) for d in range(len(mine)))))
    letters = mine + "".join(c for c in others if c not in mine)
    product = contract(term.u, other, f"{mine},{others}->{letters}")
    found = _collected(Entries(product, term.row), [d for d, c in enumerate(letters) if c not in out], length)
    rest = [c for c in letters if c in out]
    return transpose(found, (0, *(1 + rest.index(c) for c in out)))


def _view(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries:
    shape, index = node.params["shape"], node.params["index"]
    row = _through(term.row, index) if isinstance(term.row, tuple) else view(term.row, shape, index)
    return Entries(view(term.u, shape, index), row)


def _reshape(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries:
    shape, u = node.params["shape"], term.u
    row: Row
    if term.fixed:
        row = term.row
    elif isinstance(term.row, tuple) and term.row[1] == _in_order(u.shape)[1]:
        row = term.row[0], _in_order(shape)[1]
    else:
        row = reshape(_numbers(u.builder, term.row, u.shape), shape)
    return Entries(reshape(u, shape), row)


def _gather(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries:
    u = gather(term.u, *inputs[1:], axes=node.params["axes"])
    if term.fixed:
        return Entries(u, term.row)
    return Entries(u, gather(_numbers(u.builder, term.row, term.u.shape), *inputs[1:], axes=node.params["axes"]))


def _scatter(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries | Value | None:
    index, axes, shape, u = inputs[1:], node.params["axes"], node.params["shape"], term.u
    if term.fixed:
        return Entries(scatter(u, *index, axes=axes, shape=shape), term.row)
    if index[0].ndim != u.ndim:
        return None
    rows = _numbers(u.builder, term.row, u.shape)
    return scatter(u, rows, *index, axes=(0, *(a + 1 for a in axes)), shape=(length, *shape))


def _spread(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries | Value | None:
    shape, index = node.params["shape"], node.params["index"]
    if term.fixed:
        return Entries(spread(term.u, shape, index), term.row)
    if isinstance(term.row, tuple):
        return spread(term.u, (length, *shape), (term.row, *index))
    return None


def _pointwise(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries:
    return Entries(node.prim(term.u, **node.params), term.row)


def _within_a_row(node: Node, term: Entries, place: int, inputs: Sequence[Value], length: int) -> Entries | None:
    return _pointwise(node, term, place, inputs, length) if term.fixed else None


Rule = Callable[[Node, Entries, int, Sequence[Value], int], "Entries | Value | None"]
RULES: dict[str, Rule] = {
    "reduce_sum": _reduce_sum, "contract": _contract, "view": _view, "reshape": _reshape, "gather": _gather,
    "scatter": _scatter, "spread": _spread, "triangle": _pointwise, "cumulative": _within_a_row}

__all__ = ["OneHot", "added", "branches", "dense", "linear_rule"]
