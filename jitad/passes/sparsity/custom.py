"""Structural sparsity of rules that users have added: read off the rules, not off what they are rules for."""
from __future__ import annotations

from jitad.passes.sparsity.patterns import Pattern, of_matrix, units
from jitad.passes.sparsity.propagate import Application, added, constants_of, propagate, rule
from jitad.tape.tape import Tape


@rule("custom")
def through_custom(step: Application) -> Pattern | None:
    """That of the value, and of what the rules bring."""
    return added(step, _parts(step))


def _parts(step: Application) -> list[Pattern | None]:
    """The parts of the pattern of a custom node: what it depends on by itself, and what either rule brings, whichever
    will be used."""
    params, inputs = step.node.params, step.operands[1:1 + step.node.params["inputs"]]
    parts = [step.operands[0]]
    if params["jvp"] is not None:
        tape = params["jvp"]
        known = {number: p for number, p in zip(tape.inputs, inputs, strict=False) if p is not None}
        parts += propagate(tape.nodes, tape.outputs, known, constants_of(tape))
    if params["vjp"] is not None:
        parts += _backwards(step, params["vjp"], [inputs[i] for i in params["reach"]])
    return parts


def _backwards(step: Application, tape: Tape, inputs: list[Pattern | None]) -> list[Pattern | None]:
    """What a rule for cotangents brings: its own pattern, transposed, times that of the inputs."""
    aval = step.node.aval
    found = propagate(tape.nodes, tape.outputs, {tape.inputs[0]: units(aval.shape, 0, aval.size)}, constants_of(tape))
    return [of_matrix(ct.matrix().T.tocsr() @ p.matrix(), aval.shape)
            for ct, p in zip(found, inputs, strict=True) if ct is not None and p is not None]
