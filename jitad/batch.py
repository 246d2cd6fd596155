"""Nodes of a loop's body as whole-array operations: every position at once, along a new first dimension."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitad.primitives.index import reshape
from jitad.primitives.reduce import contract, parse, reduce_sum
from jitad.primitives.view import broadcast_to, view
from jitad.tape import Builder, Node, Value

KINDS = frozenset(
    "elementwise view spread reduce contract triangle cumulative concatenate gather reshape const".split())
Batched = tuple[Value, bool]           # a value, and whether its first dimension is the position


class Batch:
    """Computes nodes of a body outside of the loop; `leaves` has what they start from."""

    def __init__(self, builder: Builder, nodes: Sequence[Node], length: int, leaves: dict[int, Batched]):
        self.builder, self.nodes, self.length = builder, nodes, length
        self.done = dict(leaves)

    def rows(self, number: int) -> Value:
        """The value of a node at all positions."""
        value, batched = self.get(number)
        return value if batched else broadcast_to(value, (self.length, *value.shape))

    def total(self, number: int) -> Value:
        """The sum over all positions; of outer products it is a contraction."""
        outer = outer_product(self.nodes, number)
        if outer is None:
            return reduce_sum(self.rows(number), (0,))
        (a, left), (b, right), out = outer
        return contract(self.rows(a), self.rows(b), f"t{left},t{right}->{out}")

    def get(self, number: int) -> Batched:
        """The value, with a dimension for the position only if it depends on it."""
        stack = [number]
        while stack:
            top = stack[-1]
            missing = [i for i in self.nodes[top].inputs if i not in self.done] if top not in self.done else []
            if missing:
                stack += missing
                continue
            stack.pop()
            if top not in self.done:
                self.done[top] = self._apply(self.nodes[top])
        return self.done[number]

    def _apply(self, node: Node) -> Batched:
        operands = [self.done[i] for i in node.inputs]
        if node.prim.kind == "const":
            return self.builder.const(node.params["value"].value, node.aval.weak), False
        if not any(batched for _, batched in operands):
            return self._node(node, [v for v, _ in operands]), False
        return getattr(self, f"_{node.prim.kind}")(node, operands), True

    def _node(self, node: Node, operands: Sequence[Value], **params: object) -> Value:
        numbers = [v.number for v in operands]
        return self.builder.value(self.builder.apply(node.prim, numbers, {**node.params, **params}, node.where))

    def _full(self, operands: Sequence[Batched]) -> list[Value]:
        return [v if batched else broadcast_to(v, (self.length, *v.shape)) for v, batched in operands]

    def _elementwise(self, node: Node, operands: list[Batched]) -> Value:
        return self._node(node, self._full(operands))

    def _view(self, node: Node, operands: list[Batched]) -> Value:
        index = ((0, ((0, 1),)), *((o, tuple((d + 1, s) for d, s in terms)) for o, terms in node.params["index"]))
        return view(operands[0][0], (self.length, *node.params["shape"]), index)

    def _spread(self, node: Node, operands: list[Batched]) -> Value:
        index = ((0, ((0, 1),)), *((o, tuple((d + 1, s) for d, s in terms)) for o, terms in node.params["index"]))
        return self._node(node, [operands[0][0]], shape=(self.length, *node.params["shape"]), index=index)

    def _reshape(self, node: Node, operands: list[Batched]) -> Value:
        return reshape(operands[0][0], (self.length, *node.params["shape"]))

    def _reduce(self, node: Node, operands: list[Batched]) -> Value:
        return self._node(node, [operands[0][0]], axes=tuple(a + 1 for a in node.params["axes"]))

    def _cumulative(self, node: Node, operands: list[Batched]) -> Value:
        return self._node(node, [operands[0][0]], axis=node.params["axis"] + 1)

    def _concatenate(self, node: Node, operands: list[Batched]) -> Value:
        return self._node(node, self._full(operands), axis=node.params["axis"] + 1)

    def _triangle(self, node: Node, operands: list[Batched]) -> Value:
        return self._node(node, [operands[0][0]])

    def _contract(self, node: Node, operands: list[Batched]) -> Value:
        left, right, out = parse(node.params["spec"])
        row = next(c for c in "tuvwxyzabcdefghijklmnopqrs" if c not in left + right)
        (a, first), (b, second) = operands
        spec = f"{row * first}{left},{row * second}{right}->{row}{out}"
        return self._node(node, [a, b], spec=spec)

    def _gather(self, node: Node, operands: list[Batched]) -> Value:
        return self._node(node, [operands[0][0], *self._full(operands[1:])])


def batchable(node: Node, batched: Sequence[bool]) -> bool:
    """Whether there is a rule, for operands of which these depend on the position."""
    if node.prim.kind == "gather":
        return not batched[0]
    return node.prim.kind in KINDS


def outer_product(nodes: Sequence[Node], number: int) -> tuple[tuple[int, str], tuple[int, str], str] | None:
    """For a product of two arrays of fewer dimensions: the arrays with letters for their dimensions, and the
    product's letters."""
    node = nodes[number]
    letters = "abcdefgh"[:node.aval.ndim]
    if node.prim.name != "mul" or node.aval.dtype.kind != "f" or node.aval.ndim > len(letters):
        return None
    sides = []
    for i in node.inputs:
        side = nodes[i]
        if side.prim.kind != "view":
            return None
        index, source = side.params["index"], nodes[side.inputs[0]].aval.shape
        if any(offset or len(terms) != 1 or terms[0][1] != 1 for offset, terms in index):
            return None
        dims = [terms[0][0] for _, terms in index]
        if len(set(dims)) < len(dims) or tuple(node.aval.shape[d] for d in dims) != source or (
                len(dims) == node.aval.ndim):
            return None
        sides.append((side.inputs[0], "".join(letters[d] for d in dims)))
    return (sides[0], sides[1], letters) if set(sides[0][1]) | set(sides[1][1]) == set(letters) else None


def positions(builder: Builder, length: int) -> Value:
    return builder.const(np.arange(length))
