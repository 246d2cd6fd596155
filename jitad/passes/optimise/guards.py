"""What guards need, and guards that a kernel need not look at.

A factorization that a tape does anyway stops the kernel where it fails. A guard that it does not fail asks for the same
once more: the kernel leaves it out, and who goes on after it has stopped asks the conditions which guard it was.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jitad.passes.optimise.rewrites import optimise
from jitad.passes.optimise.scan import optimise_scans
from jitad.primitives.linalg.failures import FAILS, OWN, condition
from jitad.tape.builder import Builder
from jitad.tape.evaluate import GuardMiss, evaluate
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


def first_missed(conditions: Tape, inputs: Sequence[Any]) -> Guard | None:
    """The first guard that inputs break. Where a step of a loop fails and it is caught that a step may fail, the step
    has been reached before its guard: then a guard without a node."""
    try:
        evaluate(conditions, *inputs)
    except GuardMiss as miss:
        return miss.guard
    except (LookupError, ValueError):
        if not any(node.body is not None and asks(node.body) for node in conditions.nodes):
            raise
        return Guard(-1, True, None)
    return None


def asks(tape: Tape) -> bool:
    """Whether something on the tape says whether an operation fails."""
    def one(node: Node) -> bool:
        if node.prim is condition:
            return not node.params["text"]
        return node.params["caught"] if node.prim in _ROWS else node.body is not None and asks(node.body)
    return any(map(one, tape.nodes))


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
    node = nodes[node.inputs[0]]                         # all examples of a batch, or steps of a loop, agree
    if node.prim is not TABLE["eq"]:
        return False
    found, expected = (seen_through(nodes, nodes[i]) for i in node.inputs)
    return expected.constant is not None and not expected.constant.any() and _succeeds(tape, found)


def _succeeds(tape: Tape, node: Node) -> bool:
    """Whether `node` says that a factorization fails which the tape does too, or the same in each step of a loop. The
    first operand is what is factored."""
    if node.picks is not None:
        body: Tape = tape.nodes[node.inputs[0]].body
        return _succeeds(body, body.nodes[body.outputs[node.picks]])
    row = _ROWS.get(node.prim)
    own = {k: v for k, v in node.params.items() if k not in OWN}
    return row is not None and any(
        other.prim is row and other.inputs[0] == node.inputs[0] and dict(other.params) == own for other in tape.nodes)


__all__ = ["asks", "conditions", "first_missed", "implied", "without_implied"]
