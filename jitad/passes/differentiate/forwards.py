"""Derivatives of `forwards` nodes: tangents run along with the function itself, also where cotangents are asked for.

A cotangent is contracted with the Jacobian, whose columns are tangents in all directions of the inputs at once: forward
sensitivities, as Hairer, Norsett and Wanner (Solving Ordinary Differential Equations I, section II.15) have them for
the steps that are taken. One more run, in which each value has as many tangents as there are inputs, whatever the
number of steps; nothing is kept of them. The Jacobian is a node of the same kind, so that derivatives of any order
follow. Inputs with more than a few elements have a run of their own, which is none if nobody asks; constants have no
direction.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.passes.differentiate.activity import JVPS, VJPS
from jitad.passes.differentiate.modes import one, pushforward
from jitad.passes.differentiate.tangents import Tangents
from jitad.primitives.core import FLOATS, alias
from jitad.primitives.custom import MOVED, forwards
from jitad.primitives.index import concatenate, reshape
from jitad.primitives.linalg import matmul
from jitad.primitives.view import slice_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval

FEW = 8          # elements of an input that shares a run with others
INNER = -6       # the slot of the alias by which the function is differentiated


def _applied(tape: Tape, inputs: Sequence[Value], like: Value) -> Value:
    """The function of a derivative, which knows that it is one."""
    builder = like.builder
    inputs = [builder.lift(1) if name == MOVED else v for v, name in zip(inputs, tape.names, strict=True)]
    return builder.value(builder.apply(forwards, [v.number for v in inputs], {"tape": tape}, like.node.where))


@JVPS("forwards")
def _jvp(tangents: Sequence[Value | None], y: Value, *inputs: Value, tape: Tape) -> Value | None:
    moving = [i for i, t in enumerate(tangents) if t is not None]
    inner = Builder()
    given = [inner.input(Aval(v.shape, v.dtype), n) for v, n in zip(inputs, tape.names, strict=True)]
    dots = [inner.input(Aval(inputs[i].shape, inputs[i].dtype), f"dot {tape.names[i]}") for i in moving]
    outputs = inner.replay(tape, given)
    (found,) = pushforward(inner, outputs, [given[i] for i in moving], dots)
    return _applied(inner.finish([found]), [*inputs, *(tangents[i] for i in moving)], y)       # type: ignore[list-item]


@VJPS("forwards")
def _vjp(ct: Value, y: Value, *inputs: Value, tape: Tape) -> list[Value | None]:
    places = [i for i, v in enumerate(inputs) if v.dtype.char in FLOATS and v.aval.size and not _fixed(v)]
    small = [i for i in places if inputs[i].aval.size <= FEW]
    found: list[Value | None] = [None] * len(inputs)
    for group in ([small] if small else []) + [[i] for i in places if i not in small]:
        jacobian = _applied(_jacobian(tape, inputs, group), inputs, y)
        total = reshape(matmul(jacobian, reshape(ct, (y.aval.size, 1))), (jacobian.shape[0],))
        start = 0
        for i in group:
            size = inputs[i].aval.size
            found[i] = reshape(slice_dims(total, (slice(start, start + size),)), inputs[i].shape)
            start += size
    return found


def _fixed(x: Value, depth: int = 8) -> bool:
    """Whether a value is a constant, or is computed of such ones in few steps; not if an inner differentiation is with
    respect to it."""
    node = x.node
    if node.constant is not None or node.prim.stops:
        return True
    if not depth or not node.inputs or node.prim.given:
        return False
    return all(_fixed(x.builder.value(i), depth - 1) for i in node.inputs)


def _jacobian(tape: Tape, inputs: Sequence[Value], group: Sequence[int]) -> Tape:
    """The tape of the tangents in all directions of a group of inputs, a row for each direction."""
    inner = Builder()
    given = [inner.input(Aval(v.shape, v.dtype), n) for v, n in zip(inputs, tape.names, strict=True)]
    joined = alias(concatenate(*(reshape(given[i], (inputs[i].aval.size,)) for i in group), axis=0), slot=INNER)
    start = 0
    for i in group:
        size = inputs[i].aval.size
        given[i] = reshape(slice_dims(joined, (slice(start, start + size),)), inputs[i].shape)
        start += size
    (output,) = inner.replay(tape, given)
    if start == 1:
        (rows,) = pushforward(inner, [output], [joined], [one(joined)])
    else:
        (rows,) = pushforward(inner, [output], [joined], [Tangents.unit(one(joined))], start)
    return inner.finish([reshape(rows, (start, output.aval.size))])
