"""Last rewrites before fusion: outputs of their own, operands of routines in memory, routines for products."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from jitad.passes.optimise.crossed import crossed
from jitad.primitives.core import alias
from jitad.primitives.index import gather, scatter, trusted, wrapped
from jitad.primitives.lowlevel import gemm
from jitad.primitives.reduce import contraction, parse
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node, Primitive

ROUTINE_WORK = 4096           # multiplications from which a product of matrices is a routine's
FEW, FAR = 4, 16 << 20        # columns up to which a matrix of more bytes is read once, by loops, rather than twice


def prepare(tape: Tape, layouts: tuple[str, ...]) -> Tape:
    """`layouts` says of each input how it lies in memory: C, F, A (any strides) or ``number``."""
    tape = crossed(tape)
    builder = Builder()
    orders = dict(zip(tape.inputs, layouts, strict=True))
    values: dict[int, Value] = {}
    for number, name in zip(tape.inputs, tape.names, strict=True):
        values[number] = builder.input(tape.nodes[number].aval, name)
    shared = _indexed(tape, gather) & _indexed(tape, scatter)
    for number, node in enumerate(tape.nodes):
        if number not in values:
            builder.line = node.where
            operands = [values[i] for i in node.inputs]
            if node.prim in (gather, scatter):
                operands[1:] = [builder.value(builder.apply(wrapped, [v.number], {"lengths": at[1:]}, node.where))
                                if at in shared else v for v, at in zip(operands[1:], _places(tape, node), strict=True)]
            values[number] = _rebuilt(builder, node, operands, [orders.get(i, "C") for i in node.inputs])
    outputs: list[Value] = []
    for place, o in enumerate(tape.outputs):
        value = values[o]
        fresh = not value.node.is_leaf and value.number not in [v.number for v in outputs]
        outputs.append(value if fresh else _copied(value, place))
    for guard in tape.guards:
        builder.guard(values[guard.node], guard.expected, guard.where)
    return builder.tape([v.number for v in outputs], tape.labels)


def _rebuilt(builder: Builder, node: Node, operands: list[Value], orders: list[str]) -> Value:
    if node.is_leaf:
        return builder.value(builder.constant(node))
    prim, params = node.prim, node.params
    if for_routine(node, [v.aval for v in operands]):
        prim, params = gemm, {**params, "by_columns": tuple(order == "F" for order in orders)}
    if prim.kind == "call":
        read = ("C", "F") if prim is gemm else ("C",)
        operands = [v if order in read else _copied(v, -1) for v, order in zip(operands, orders, strict=True)]
    return builder.value(builder.enter(prim, tuple([v.number for v in operands]), params,
                                       tuple(sorted(params.items())) if params else (), node.aval))


def _places(tape: Tape, node: Node) -> list[tuple[int, int]]:
    """The index arrays of a gather or scatter, and the lengths that they index."""
    shape = node.params.get("shape") or tape.nodes[node.inputs[0]].aval.shape
    return [(i, shape[axis]) for axis, i in zip(node.params["axes"], node.inputs[1:], strict=True)]


def _indexed(tape: Tape, prim: Primitive) -> set[tuple[int, int]]:
    """What `_places` finds of all nodes of a kind, but for constants and numbers."""
    return {(i, length) for node in tape.nodes if node.prim is prim for i, length in _places(tape, node)
            if tape.nodes[i].aval.ndim and tape.nodes[i].aval.dtype == np.int64
            and tape.nodes[i].constant is None and tape.nodes[i].prim not in (wrapped, trusted)}


def _copied(value: Value, slot: int) -> Value:
    return value.builder.value(value.builder.apply(alias, [value.number], {"slot": slot}, value.node.where))


def for_routine(node: Node, operands: Sequence[Aval]) -> bool:
    """Whether a node is a product of matrices that a routine does better than loops shared with others."""
    if node.prim is not contraction:
        return False
    left, right, out = parse(node.params["spec"])
    if (len(left), len(right), len(out)) != (2, 2, 2) or node.aval.dtype.kind != "f":
        return False
    sizes = dict(zip(left + right, operands[0].shape + operands[1].shape, strict=True))
    sides = sorted(sizes.values())
    if len(sides) != 3 or sides[0] < 2 or prod(sides) < ROUTINE_WORK:
        return False
    return sides[0] > FEW or sides[1] * sides[2] * node.aval.dtype.itemsize <= FAR
