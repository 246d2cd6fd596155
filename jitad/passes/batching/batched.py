"""Tapes for a whole batch: every example at once, along a new first dimension.

`batched` is the transformation, node by node: what does not depend on the batch stays as it is, everything else gets
the dimension by the rule of its row or kind (`rules` and `scan` beside this file). It serves `jitad.batch`,
the columns of Jacobians, and loops whose steps do not depend on each other, for which the batch is the positions.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitad.passes.batching.rules import Batched, batch_node, full
from jitad.passes.batching.scan import batch_scan
from jitad.primitives.elementwise import mul as multiply
from jitad.primitives.reduce import contract, reduce_sum
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Node

__all__ = ["Batch", "Batched", "batchable", "batched", "outer_product", "positions"]


def batched(builder: Builder, nodes: Sequence[Node], leaves: dict[int, Batched], length: int,
            wanted: Sequence[int]) -> list[Batched]:
    """The nodes `wanted` for all examples of a batch of `length`, appended to `builder`.

    Parameters
    ----------
    nodes
        What to compute, for one example: the nodes of a tape or of a builder, which may be `builder` itself.
    leaves
        Where to start: a value of `builder` for each input that is needed, or for any other node; True with it
        if the value has the batch as its first dimension, False if it is the same for all examples.

    Returns
    -------
    values
        For each of `wanted` its value, and whether that has the batch's dimension: it has where it depends on a leaf
        that has. Use `full` for the dimension in any case.
    """
    line = builder.line
    batch = Batch(builder, nodes, length, leaves)
    values = [batch.get(n) for n in wanted]
    builder.line = line
    return values


class Batch:
    """The work of `batched`, step by step."""

    def __init__(self, builder: Builder, nodes: Sequence[Node], length: int, leaves: dict[int, Batched]):
        self.builder, self.nodes, self.length = builder, nodes, length
        self.done = dict(leaves)
        self.loops: dict[int, list[Batched]] = {}              # the outputs of scans that depend on the batch

    def rows(self, number: int) -> Value:
        """The value of a node for all examples."""
        return full(self.get(number), self.length)

    def total(self, number: int) -> Value:
        """The sum over all examples; of outer products it is a contraction."""
        outer = outer_product(self.nodes, number)
        if outer is None:
            return reduce_sum(self.rows(number), (0,))
        (a, left), (b, right), out = outer
        return contract(self.rows(a), self.rows(b), f"t{left},t{right}->{out}")

    def get(self, number: int) -> Batched:
        """The value, with the batch's dimension only if it depends on it."""
        stack = [number]
        while stack:
            top = stack[-1]
            missing = [i for i in self.nodes[top].inputs if i not in self.done] if top not in self.done else []
            if missing:
                stack += missing
                continue
            stack.pop()
            if top not in self.done:
                self.done[top] = self._apply(top)
        return self.done[number]

    def _apply(self, number: int) -> Batched:
        node = self.nodes[number]
        operands = [self.done[i] for i in node.inputs]
        if self.nodes is self.builder.nodes and not any(flag for _, flag in operands):
            return self.builder.value(number), False
        if node.constant is not None:
            return self.builder.value(self.builder.constant(node)), False
        self.builder.line = node.where
        if node.picks is not None and node.inputs[0] in self.loops:
            return self.loops[node.inputs[0]][node.picks]
        if not any(flag for _, flag in operands):
            numbers = [v.number for v, _ in operands]
            return self.builder.value(self.builder.apply(node.prim, numbers, node.params, node.where)), False
        if node.body is not None:
            self.loops[number] = batch_scan(node, operands, self.length, batched)
            return operands[0]                                 # nothing but picks reads a bundle
        return batch_node(node, operands, self.length), True


# --- for loops -----------------------------------------------------------------------------------

def batchable(node: Node, batched: Sequence[bool]) -> bool:
    """Whether work on operands of which these depend on the position may leave a loop: as cheap as in it."""
    found = node.prim.separable
    return found if isinstance(found, bool) else found(batched)


def outer_product(nodes: Sequence[Node], number: int) -> tuple[tuple[int, str], tuple[int, str], str] | None:
    """For a product of two arrays of fewer dimensions: the arrays with letters for their dimensions, and the
    product's letters."""
    node = nodes[number]
    letters = "abcdefgh"[:node.aval.ndim]
    if node.prim is not multiply or node.aval.dtype.kind != "f" or node.aval.ndim > len(letters):
        return None
    sides = []
    for i in node.inputs:
        side = nodes[i]
        index = side.index_map
        if index is None:
            return None
        source = nodes[side.inputs[0]].aval.shape
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
