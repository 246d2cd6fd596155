"""Tapes without the nodes that matter to differentiation alone, which is over: also those inside of loops."""
from __future__ import annotations

from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape


def expanded(tape: Tape) -> Tape:
    """The tape with what rows have `instead` of themselves, as often as it has such rows."""
    while _concerned(tape):
        tape = _once(tape)
    return tape


def _once(tape: Tape) -> Tape:
    builder = Builder()
    done: dict[int, Value] = {}
    for number, name in zip(tape.inputs, tape.names, strict=True):
        done[number] = builder.input(tape.nodes[number].aval, name)
    for number, node in enumerate(tape.nodes):
        if number in done:
            continue
        inputs = [done[i] for i in node.inputs]
        if node.prim.instead is not None:
            done[number] = node.prim.instead(builder, inputs, node.params)
        elif node.body is not None:
            params = {**node.params, "body": expanded(node.body)}
            done[number] = builder.value(builder.apply(node.prim, [v.number for v in inputs], params, node.where))
        else:
            done[number] = builder.again(node, [v.number for v in inputs])
    for guard in tape.guards:
        builder.guard(done[guard.node], guard.expected, guard.where)
    return builder.finish([done[o] for o in tape.outputs])


def _concerned(tape: Tape) -> bool:
    return any(node.prim.instead is not None or (node.body is not None and _concerned(node.body))
               for node in tape.nodes)
