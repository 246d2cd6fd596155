"""What guards need, and guards that a kernel need not look at.

A factorization that a tape does anyway stops the kernel where it fails. A guard that it does not fail asks for the same
once more: the kernel leaves it out, and who goes on after it has stopped asks the conditions which guard it was.
"""
from __future__ import annotations

from dataclasses import replace

from jitad.passes.optimise.rewrites import optimise
from jitad.passes.optimise.scan import optimise_scans
from jitad.primitives.linalg.failures import FAILS
from jitad.tape.builder import Builder
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Guard, Node, seen_through

_ROWS = {fails: row for row, fails in FAILS.items()}


def conditions(tape: Tape) -> Tape:
    """The part of `tape` that its guards need, with the guards and without outputs."""
    return _only(replace(tape, outputs=(), labels=()))


def _only(tape: Tape) -> Tape:
    """What the outputs and guards of `tape` need."""
    builder = Builder()
    outputs = builder.replay(tape, [builder.input(tape.nodes[i].aval, name) for i, name in zip(
        tape.inputs, tape.names, strict=True)])
    return optimise_scans(builder.tape([o.number for o in outputs], tape.labels), optimise)


def implied(tape: Tape) -> tuple[Guard, ...]:
    """The guards of `tape` that hold wherever its factorizations succeed."""
    return tuple(guard for guard in tape.guards if _is_implied(tape, guard))


def without_implied(tape: Tape) -> Tape:
    """`tape` as a kernel needs it: without the guards that are implied."""
    found = implied(tape)
    if not found:
        return tape
    return _only(replace(tape, guards=tuple(g for g in tape.guards if g not in found)))


def _is_implied(tape: Tape, guard: Guard) -> bool:
    nodes, node = tape.nodes, tape.nodes[guard.node]
    if guard.expected is False:
        return _succeeds(tape, node)
    if node.prim is not TABLE["reduce_all"] or len(node.params["axes"]) != nodes[node.inputs[0]].aval.ndim:
        return False
    node = nodes[node.inputs[0]]                         # all examples of a batch agree that it does not fail
    if node.prim is not TABLE["eq"]:
        return False
    expected = seen_through(nodes, nodes[node.inputs[1]]).constant
    return expected is not None and not expected.any() and _succeeds(tape, nodes[node.inputs[0]])


def _succeeds(tape: Tape, node: Node) -> bool:
    """Whether `node` says that a factorization fails which the tape does too, or the same in each step of a loop."""
    if node.picks is not None:
        body: Tape = tape.nodes[node.inputs[0]].body
        return _succeeds(body, body.nodes[body.outputs[node.picks]])
    row = _ROWS.get(node.prim)
    own = {k: v for k, v in node.params.items() if k != "leading"}
    return row is not None and any(
        other.prim is row and other.inputs == node.inputs and dict(other.params) == own for other in tape.nodes)


__all__ = ["conditions", "implied", "without_implied"]
