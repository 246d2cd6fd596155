"""Derivatives of `custom` nodes: users' rules as they are recorded, one derived from the other where one is missing.

A rule for tangents is linear in them, one for cotangents in those, so that either is the transpose of the other: the
pullback of the rule's tape with respect to its linear inputs.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitad.errors import LeakedTracerError, UnsupportedOperationError
from jitad.passes.batching.batched import batched
from jitad.passes.batching.rules import Batched, full
from jitad.passes.batching.rules import rule as batching_rule
from jitad.passes.differentiate.activity import JVPS, VJPS
from jitad.passes.differentiate.modes import pullback, pushforward
from jitad.primitives.core import zeros_like
from jitad.primitives.custom import custom
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import INPUT, Aval, Node


class _Operands:
    """The operands of a custom node by their parts."""

    def __init__(self, rest: Sequence[Any], inputs: int, split: int):
        self.inputs = list(rest[:inputs])
        self.for_vjp = list(rest[inputs:inputs + split])
        self.for_jvp = list(rest[inputs + split:])


@VJPS("custom")
def _vjp(ct: Value, y: Value, first: Value, *rest: Value, name: str, inputs: int, split: int, vjp: Tape | None,
         jvp: Tape | None, reach: tuple[int, ...]) -> list[Value | None]:
    parts, builder = _Operands(rest, inputs, split), ct.builder
    found: list[Value | None] = [None] * inputs
    if vjp is not None:
        cotangents = builder.replay(vjp, [ct, y, *parts.for_vjp])
        places: Sequence[int] = reach
    else:
        assert jvp is not None
        cotangents = builder.replay(_transposed_jvp(jvp, inputs, name), [ct, y, *parts.for_jvp])
        places = range(inputs)
    for place, value in zip(places, cotangents, strict=True):
        found[place] = value
    return [ct, *found, *[None] * (len(rest) - inputs)]


@JVPS("custom")
def _jvp(tangents: Sequence[Value | None], y: Value, first: Value, *rest: Value, name: str, inputs: int, split: int,
         vjp: Tape | None, jvp: Tape | None, reach: tuple[int, ...]) -> Value | None:
    parts, builder, own = _Operands(rest, inputs, split), y.builder, tangents[0]
    moving = [i for i, t in enumerate(tangents[1:inputs + 1]) if t is not None]
    given: list[Any] = [tangents[i + 1] for i in moving]
    if jvp is not None and moving:
        tape = _partly(jvp, inputs, moving)
        if tape is None:
            tape, given = jvp, [zeros_like(x) if t is None else t
                                for t, x in zip(tangents[1:inputs + 1], parts.inputs, strict=True)]
        (total,) = builder.replay(tape, [*given, y, *parts.for_jvp])
    elif vjp is not None and not set(moving).isdisjoint(reach):
        tape = _transposed_vjp(vjp, y.aval, [reach.index(i) for i in moving if i in reach], name)
        given = [t for i, t in zip(moving, given, strict=True) if i in reach]
        (total,) = builder.replay(tape, [*given, y, *parts.for_vjp])
    else:
        return own
    return total if own is None else own + total


def _copied_inputs(builder: Builder, tape: Tape, places: Sequence[int]) -> list[Value]:
    return [builder.input(tape.nodes[tape.inputs[p]].aval, tape.names[p]) for p in places]


def _placeholders(builder: Builder, tape: Tape, places: Sequence[int]) -> list[Value]:
    """Values for linear inputs at which the derivative is taken, wherever: it must not depend on them."""
    made = []
    for p in places:
        builder.nodes.append(Node(INPUT, (), {}, tape.nodes[tape.inputs[p]].aval, None))
        made.append(builder.value(len(builder.nodes) - 1))
    return made


def _finished(builder: Builder, outputs: Sequence[Value]) -> Tape | None:
    """The tape; None if it depends on placeholders."""
    try:
        return builder.finish(outputs)
    except LeakedTracerError:
        return None


def _partly(jvp: Tape, inputs: int, moving: Sequence[int]) -> Tape | None:
    """The rule for some of the tangents, those of the others being structurally zero. None if it is not linear."""
    if len(moving) == inputs:
        return jvp
    builder = Builder()
    given = _copied_inputs(builder, jvp, moving)
    rest = _copied_inputs(builder, jvp, range(inputs, len(jvp.inputs)))
    dots = _placeholders(builder, jvp, range(inputs))
    outputs = builder.replay(jvp, [*dots, *rest])
    return _finished(builder, pushforward(builder, outputs, [dots[i] for i in moving], given))


def _transposed_jvp(jvp: Tape, inputs: int, name: str) -> Tape:
    """``(ct, y, *reads) -> cotangents`` from ``(*tangents, y, *reads) -> tangent``."""
    builder = Builder()
    ct = builder.input(jvp.nodes[jvp.outputs[0]].aval, "ct")
    rest = _copied_inputs(builder, jvp, range(inputs, len(jvp.inputs)))
    dots = _placeholders(builder, jvp, range(inputs))
    outputs = builder.replay(jvp, [*dots, *rest])
    found = pullback(builder, outputs, [ct], dots)
    return _linear(_finished(builder, found), name, "jvp", "tangents", "reverse", "vjp")


def _transposed_vjp(vjp: Tape, aval: Aval, moving: Sequence[int], name: str) -> Tape:
    """``(*tangents, y, *reads) -> tangent`` from ``(ct, y, *reads) -> cotangents``, for the cotangents numbered
    `moving`."""
    builder = Builder()
    given = [builder.input(vjp.nodes[vjp.outputs[i]].aval, f"dot{i}") for i in moving]
    rest = _copied_inputs(builder, vjp, range(1, len(vjp.inputs)))
    (ct,) = _placeholders(builder, vjp, [0])
    outputs = builder.replay(vjp, [ct, *rest])
    found = pullback(builder, [outputs[i] for i in moving], given, [ct])
    return _linear(_finished(builder, found), name, "vjp", "cotangent", "forward", "jvp")


def _linear(tape: Tape | None, name: str, given: str, what: str, mode: str, missing: str) -> Tape:
    if tape is None:
        raise UnsupportedOperationError(
            f"the {given} rule of `{name}` is not linear in its {what}, so that derivatives in {mode} mode do not "
            f"follow from it; give `{name}` a {missing}= rule too")
    return tape


# --- in a batch ----------------------------------------------------------------------------------

@batching_rule("custom")
def _batch(node: Node, operands: Sequence[Batched], length: int) -> Value:
    params, inputs, split = node.params, node.params["inputs"], node.params["split"]
    values = [full(x, length) for x in operands[:inputs + 1]]
    reads = operands[inputs + 1:]
    vjp = params["vjp"] and _batched_tape(params["vjp"], 2, reads[:split], length)
    jvp = params["jvp"] and _batched_tape(params["jvp"], inputs + 1, reads[split:], length)
    builder = values[0].builder
    numbers = [*(v.number for v in values), *(v.number for v, _ in reads)]
    return builder.value(builder.apply(custom, numbers, {**params, "vjp": vjp, "jvp": jvp}, node.where))


def _batched_tape(tape: Tape, moving: int, reads: Sequence[Batched], length: int) -> Tape:
    """The rule for all examples: its first inputs have the dimension, the others where the operands have it."""
    builder = Builder()
    leaves: dict[int, Batched] = {}
    for place, number in enumerate(tape.inputs):
        aval, flag = tape.nodes[number].aval, place < moving or reads[place - moving][1]
        shape = (length, *aval.shape) if flag else aval.shape
        leaves[number] = builder.input(Aval(shape, aval.dtype), tape.names[place]), flag
    return builder.finish([full(v, length) for v in batched(builder, tape.nodes, leaves, length, tape.outputs)])

