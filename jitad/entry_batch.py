"""The tape of one example becomes that of a batch.

There are two ways. A small model is a loop over the batch whose body has no memory of the step before: written out
element by element by the compiler, so that the examples run side by side in vector lanes. Everything else is the same
tape with one more dimension (`jitad.batch`): products with a matrix become products of matrices, loops carry arrays.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.batch import Batched, batched
from jitad.batch_rules import full, in_turn, to_front
from jitad.compile.scan_unroll import unrollable
from jitad.optimise import optimise
from jitad.primitives.core import TABLE
from jitad.primitives.reduce import reduce_all
from jitad.primitives.scan import Form, transplant
from jitad.tape import Aval, Builder, Guard, Node, Tape, Value

APART = frozenset({"view", "const"})        # what a body may have of its own although it does not vary


def in_batch(tape: Tape, axes: Sequence[int | None], length: int) -> Tape:
    """`tape` for every example of a batch of `length`.

    `axes` says of each input along which of its dimensions the examples lie, None where all have the same. Every
    output has the batch as first dimension. A guard on what varies becomes a guard that all examples agree.
    """
    small = _in_lanes(tape, axes, length)
    return small if small is not None else optimise(_finished(tape, *_with_dimension(tape, axes, length), length))


def _inputs(tape: Tape, axes: Sequence[int | None], length: int) -> tuple[Builder, dict[int, Batched]]:
    """A builder with the inputs of the batch, and the values of the tape's inputs on it, the batch first."""
    builder, leaves = Builder(), {}
    for number, name, axis in zip(tape.inputs, tape.names, axes, strict=True):
        aval = tape.nodes[number].aval
        shape = aval.shape if axis is None else (*aval.shape[:axis], length, *aval.shape[axis:])
        value = builder.input(Aval(shape, aval.dtype), name)
        leaves[number] = (value, False) if axis is None else (to_front(value, axis), True)
    return builder, leaves


def _wanted(tape: Tape) -> list[int]:
    return [*tape.outputs, *(g.node for g in tape.guards)]


def _with_dimension(tape: Tape, axes: Sequence[int | None], length: int) -> tuple[Builder, list[Batched]]:
    builder, leaves = _inputs(tape, axes, length)
    return builder, batched(builder, tape.nodes, leaves, length, _wanted(tape))


def _finished(tape: Tape, builder: Builder, values: Sequence[Batched], length: int) -> Tape:
    """The tape with these values of the wanted nodes."""
    outputs = [full(v, length) for v in values[:len(tape.outputs)]]
    for guard, value in zip(tape.guards, values[len(tape.outputs):], strict=True):
        guard_all(builder, guard, value)
    return builder.finish(outputs, tape.labels)


def guard_all(builder: Builder, guard: Guard, value: Batched) -> Value:
    """Guard that `value` is what `guard` expects for every example; returns the guarded value."""
    found, several = value
    if not several:
        builder.guard(found, guard.expected, guard.where)
        return found
    agree = reduce_all(TABLE["eq"](found, guard.expected), axes=(0,))
    builder.guard(agree, True, guard.where)
    return agree


# --- small models --------------------------------------------------------------------------------

def _in_lanes(tape: Tape, axes: Sequence[int | None], length: int) -> Tape | None:
    """The tape as a loop over the batch, if its body is small enough to be written out."""
    builder, leaves = _inputs(tape, axes, length)
    moving = _dependent(tape.nodes, [n for n, (_, varies) in leaves.items() if varies])
    wanted = _wanted(tape)
    ends = [n for n in dict.fromkeys(wanted) if n in moving]
    still = [n for n in dict.fromkeys(wanted) if n not in moving]
    needed = _needed(tape.nodes, ends, moving)
    fixed = [n for n in needed if n not in moving and tape.nodes[n].prim.kind not in APART]
    given = [n for n in needed if n in leaves and n in moving]
    values = dict(zip([*fixed, *still], transplant(
        tape.nodes, {n: v for n, (v, _) in leaves.items()}, [*fixed, *still], builder), strict=True))

    def body(inner: Builder, examples: list[Value]) -> list[Value]:
        return transplant(tape.nodes, dict(zip([*given, *fixed], examples, strict=True)), ends, inner)
    operands = [*(leaves[n] for n in given), *((values[n], False) for n in fixed)]
    stacks = in_turn(operands, length, body) if ends else []
    if not stacks or not unrollable(Form.of(builder.nodes[stacks[0].node.inputs[0]])):
        return None
    found = {n: (v, False) for n, v in values.items()} | {n: (v, True) for n, v in zip(ends, stacks, strict=True)}
    return _finished(tape, builder, [found[n] for n in wanted], length)


def _dependent(nodes: Sequence[Node], sources: Sequence[int]) -> set[int]:
    found = set(sources)
    for number, node in enumerate(nodes):
        if not found.isdisjoint(node.inputs):
            found.add(number)
    return found


def _needed(nodes: Sequence[Node], ends: Sequence[int], moving: set[int]) -> list[int]:
    """What the body computes or is given: what varies and, where that stops, what does not."""
    seen: set[int] = set()
    stack = list(ends)
    while stack:
        number = stack.pop()
        if number not in seen:
            seen.add(number)
            if number in moving or nodes[number].prim.kind in APART:
                stack += nodes[number].inputs
    return sorted(seen)
