"""Indices that depend on bound data alone are checked once, in the prologue, which gives places to trust."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from jitad.primitives.index import trusted, within, wrapped
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape

MANY = 64             # indices from which it pays to check them apart


def places_apart(tape: Tape, on_data: Collection[int]) -> Tape:
    """`tape` with the places of indices among the nodes `on_data` as nodes of their own, made by `within`."""
    builder, values = Builder(), dict[int, Value]()
    for number, name in zip(tape.inputs, tape.names, strict=True):
        values[number] = builder.input(tape.nodes[number].aval, name)
    for number, node in enumerate(tape.nodes):
        if number in values:
            continue
        inputs = [values[i].number for i in node.inputs]
        if node.prim.indexed:
            shape = node.params.get("shape") or tape.nodes[node.inputs[0]].aval.shape
            for slot, axis in enumerate(node.params["axes"], 1):
                index = node.inputs[slot]
                known = tape.nodes[index]      # a place among combinations may be right though an index is not
                if index in on_data and (known.prim is wrapped or known.aval.size >= MANY):
                    inputs[slot] = _place(builder, tape, values, index, shape[axis])
        values[number] = builder.again(node, inputs)
    for guard in tape.guards:
        builder.guard(values[guard.node], guard.expected, guard.where)
    return builder.finish([values[o] for o in tape.outputs], tape.labels)


def _place(builder: Builder, tape: Tape, values: dict[int, Value], index: int, length: int) -> int:
    node = tape.nodes[index]
    indices: Sequence[int]
    indices, lengths = (node.inputs, node.params["lengths"]) if node.prim is wrapped else ([index], (length,))
    return builder.apply(within, [values[i].number for i in indices], {"lengths": lengths}, node.where)


def trust(place: Value, lengths: tuple[int, ...]) -> Value:
    """In the main tape, what `within` gave in the prologue."""
    return place.builder.value(place.builder.apply(trusted, [place.number], {"length": prod(lengths)}))
