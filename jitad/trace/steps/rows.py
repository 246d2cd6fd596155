"""Arrays that a loop fills row by row: what is stored is stacked, what is read of the rows before is carried.

``x[t] = f(x[t - 1], x[t - 2])`` needs no array that goes from step to step: the last two rows do, and the rows that
the steps store lie side by side at the end. Rows that are read before the loop comes to them are those of the array
as it was before.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jitad.primitives.core import zeros_like
from jitad.primitives.index import reshape, update
from jitad.primitives.scan import transplant
from jitad.primitives.view import slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Node
from jitad.trace.loop_body import Body

__all__ = ["FilledArray", "always_within", "by_rows", "in_all"]

LAGS = 8                  # rows before that are carried, at most


@dataclass
class FilledArray:
    """An array of `first` elements into which step t stores `value` as row ``start + step * t``; `lags` are the
    placeholders of the rows that were stored before, the last one first."""

    first: Value
    start: int
    step: int
    value: Value
    lags: list[Value] = field(default_factory=list)

    def before(self, lag: int) -> Value:
        """The row that is, at first, `lag` steps back."""
        n, at = self.first.shape[0], self.start - self.step * lag
        at = at if 0 <= at < n else at + n if -n <= at < 0 else 0       # else it is not read before it is stored
        return slice_dims(self.first, (at, *(slice(None),) * (self.first.ndim - 1)))

    def final(self, stack: Value) -> Value:
        """The array after the loop, of which the stored rows are stacked."""
        index = ((self.start, ((0, self.step),)), *((0, ((d, 1),)) for d in range(1, self.first.ndim)))
        return update(self.first, stack, indices=(index,))


def by_rows(body: Body, carry: Value, end: Value, first: Value,
            wanted: Sequence[Value]) -> tuple[FilledArray, list[Value]] | None:
    """The array that is `carry` at the head of a step, and `end` after it, by rows; with what becomes of `wanted`, all
    else that the step gives. None if it is written or read in another way."""
    recorder, nodes = body.recorder, body.recorder.nodes
    put, length = end.node, body.length
    if not _stores_row(put) or put.inputs[0] != carry.number:
        return None
    at = body.affine(_shown(nodes, put.inputs[2]))
    n = first.shape[0]
    if at is None or not at[1] or put.inputs[1] == carry.number:
        return None
    start, step = at if at[0] >= 0 else (at[0] + n, at[1])
    if not all(0 <= k < n for k in (start, start + step * (length - 1))):
        return None
    reads = _reads(body, carry, end, [*wanted, end])
    rows = FilledArray(first, start, step, end)
    if reads is None or any(s != step or (b - at[0]) % step for b, s in reads.values()):
        return None
    aval = Aval(first.shape[1:], first.dtype)
    leaves = {number: Value(recorder, number) for number, node in enumerate(nodes) if node.is_input}
    late: list[int] = []
    for number, (b, _) in reads.items():
        lag = (at[0] - b) // step
        if lag > LAGS:
            return None
        if lag > 0:
            while len(rows.lags) < lag:
                rows.lags.append(body.placeholder(aval, f"row{len(rows.lags) + 1}"))
            leaves[number] = _like(rows.lags[lag - 1], nodes[number])
        elif lag == 0 and nodes[number].inputs[0] == end.number:
            late.append(number)
        else:
            b = b if at[0] >= 0 else b + n
            if not all(0 <= k < n for k in (b, b + step * (length - 1))):
                return None
            leaves[number] = _like(body.element(first, "row", b, step), nodes[number])
    stored = reshape(Value(recorder, put.inputs[1]), aval.shape)
    rows.value, = transplant(nodes, leaves, [stored.number], recorder)
    leaves |= {number: _like(rows.value, nodes[number]) for number in late}
    return rows, [Value(recorder, v.number) for v in transplant(nodes, leaves, [w.number for w in wanted], recorder)]


def always_within(body: Body, number: int) -> bool:
    """Whether a node reads or writes a row by the position that the array has in every step."""
    nodes = body.recorder.nodes
    node = nodes[number]
    if not _stores_row(node) and not _reads_row(node):
        return False
    at = body.affine(_shown(nodes, node.inputs[-1]))
    if at is None or body.length > 1 << 40:
        return False
    n, ends = nodes[node.inputs[0]].aval.shape[0], (at[0], at[0] + at[1] * (body.length - 1))
    return all(-n <= k < n for k in ends)


def in_all(body: Body, carry: Value, ends: Sequence[Value]) -> list[Value]:
    """An array after a step in each of its variants; where some of them store rows and others leave the array alone,
    these store what is there: at the same place, if it is there in every step, else at the first."""
    nodes = carry.builder.nodes
    stores = [v.number for v in ends if _stores_row(nodes[v.number]) and nodes[v.number].inputs[0] == carry.number]
    places = {nodes[number].inputs[2] for number in stores}
    if len(places) != 1:
        return list(ends)
    at = Value(carry.builder, places.pop())
    if not always_within(body, stores[0]):
        at = zeros_like(at)
    same = TABLE["put"](carry, TABLE["gather"](carry, at, axes=(0,)), at, axes=(0,))
    return [same if v.number == carry.number else v for v in ends]


def _reads(body: Body, carry: Value, end: Value, ends: Sequence[Value]) -> dict[int, tuple[int, int]] | None:
    """The nodes that read a row of the array, with their places by the position; None if it is read otherwise."""
    nodes = body.recorder.nodes
    found: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    stack = [v.number for v in ends]
    if {carry.number, end.number} & {v.number for v in ends[:-1]}:
        return None
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        node = nodes[number]
        stack += node.inputs
        if number == end.number or not {carry.number, end.number} & {*node.inputs}:
            continue
        plain = _reads_row(node) and nodes[node.inputs[1]].aval.size == 1
        at = body.affine(_shown(nodes, node.inputs[1])) if plain else None
        if at is None or node.inputs[1] in (carry.number, end.number):
            return None
        found[number] = at
    return found


def _stores_row(node: Node) -> bool:
    """Whether a node stores rows in an array."""
    return node.prim.stores and len(node.inputs) == 3 and node.params["axes"] == (0,)


def _reads_row(node: Node) -> bool:
    """Whether a node takes rows out of an array."""
    return node.prim.rearranges and node.prim.indexed and node.params["axes"] == (0,)


def _like(row: Value, read: Any) -> Value:
    """A row in the shape in which it is read."""
    return reshape(row, read.aval.shape)


def _shown(nodes: Sequence[Any], number: int) -> int:
    """The number that a view shows in all its elements."""
    while nodes[number].index_map is not None:
        number = nodes[number].inputs[0]
    return number
