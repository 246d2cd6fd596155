"""Routines of one matrix share its factors: a rewrite before fusion.

A system, an inverse and a determinant of the same matrix, or of its transpose as in the reverse sweep of a system,
would each factor it anew.
"""
from __future__ import annotations

from jitad.primitives.linalg.matrices import mT
from jitad.primitives.lowlevel import factor
from jitad.primitives.view import view
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Node


def share_factors(tape: Tape) -> Tape:
    """`tape` with one factorization for each matrix of which several routines want one, and without vectors that
    nobody reads."""
    narrow = {number for number, node in enumerate(tape.nodes)
              if node.prim.values is not None and _only_values(tape, number)}
    users: dict[int, int] = {}
    for node in tape.nodes:
        if node.prim.factored is not None and tape.nodes[node.inputs[0]].aval.shape[-1]:
            source = _source(tape, node)[0]
            users[source] = users.get(source, 0) + 1
    shared = {number for number, count in users.items() if count > 1}
    if not shared and not narrow:
        return tape
    builder = Builder()
    values: dict[int, Value] = {}
    for number, name in zip(tape.inputs, tape.names, strict=True):
        values[number] = builder.input(tape.nodes[number].aval, name)
    for number in range(len(tape.nodes)):
        if number not in values:
            values[number] = _rebuilt(builder, tape, number, values, shared, narrow)
    for guard in tape.guards:
        builder.guard(values[guard.node], guard.expected, guard.where)
    return builder.finish([values[o] for o in tape.outputs], tape.labels)


def _source(tape: Tape, node: Node) -> tuple[int, bool]:
    """The matrix that is factored, and whether `node` has its transpose."""
    matrix = tape.nodes[node.inputs[0]]
    if matrix.index_map is not None and len((source := tape.nodes[matrix.inputs[0]]).aval.shape) > 1:
        probe = Builder().input(source.aval, "a")
        if dict(mT(probe).node.params) == dict(matrix.params):
            return matrix.inputs[0], True
    return node.inputs[0], False


def _only_values(tape: Tape, number: int) -> bool:
    """Whether all that is read of a decomposition is its first column."""
    return number not in tape.outputs and all(
        (shown := tape.nodes[user].index_map) is not None and shown[-1] == (0, ())
        for user in tape.uses[number])


def _rebuilt(builder: Builder, tape: Tape, number: int, values: dict[int, Value], shared: set[int],
             narrow: set[int]) -> Value:
    node = tape.nodes[number]
    if number in narrow:
        operands = [values[i].number for i in node.inputs]
        assert node.prim.values is not None
        return builder.value(builder.apply(node.prim.values, operands, node.params, node.where))
    if node.index_map is not None and node.inputs[0] in narrow:
        return view(values[node.inputs[0]], node.params["shape"], node.index_map[:-1])
    if node.prim.factored is not None:
        source, trans = _source(tape, node)
        found = node.prim.factored(node.params, trans) if source in shared else None
        if found is not None:
            prim, params = found
            factors = builder.apply(factor, [values[source].number], {}, node.where)
            operands = [factors, *(values[i].number for i in node.inputs[1:])]
            return builder.value(builder.apply(prim, operands, params, node.where))
    return builder.again(node, [values[i].number for i in node.inputs])
