"""The ways of computing a tape for a batch.

A loop over the batch has steps without memory of each other. Where its body is small, the compiler writes it out
element by element, and the examples run side by side in vector lanes; where it is not, each step is as fast as a call.
The other way is the same tape with one more dimension (`jitad.passes.batching.batched`): products with a matrix that all share become
products of matrices. Models with loops of their own take some of both: a few examples advance together.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.call.request.axes import Place
from jitad.passes.batching.batched import Batched, batched
from jitad.passes.batching.rules import full, in_turn, to_front
from jitad.compile.plan.prepare import for_routine
from jitad.compile.lower.scan.unroll import unrollable
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.index import concatenate, reshape
from jitad.primitives.scan import Form, transplant
from jitad.primitives.view import broadcast_to, slice_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape, dependent, needed
from jitad.tape.types import Aval, Node

Made = tuple[Builder, list[Batched]]
TOGETHER = 4                                # examples that advance together through the loops of a model
FEW = 8                                     # up to which all do


def all_examples(tape: Tape, axes: Sequence[Place], length: int) -> Made:
    """The values of the outputs and of the guarded nodes for the whole batch, by the way that promises to be the
    fastest. `axes` says of each input along which dimension the examples lie."""
    alone = _in_loop(tape, axes, length)
    if alone is None or _written_out(alone, length):
        return alone or _with_dimension(tape, axes, length)
    if any(node.body is not None for node in tape.nodes):
        several = _in_loop(tape, axes, length, TOGETHER) if length > FEW else None
        return several or _with_dimension(tape, axes, length)
    together = _with_dimension(tape, axes, length)
    return together if _products(together[0].nodes) > _products(tape.nodes) else alone


def _written_out(made: Made, length: int) -> bool:
    """Whether the compiler writes out the body of the loop over the batch."""
    forms = [Form.of(node) for node in made[0].nodes if node.body is not None]
    return any(unrollable(form) for form in forms if not form.carries and form.length == length)


def _products(nodes: Sequence[Node]) -> int:
    """How many products there are for routines."""
    return sum(for_routine(node, [nodes[i].aval for i in node.inputs]) for node in nodes)


def _wanted(tape: Tape) -> list[int]:
    return [*tape.outputs, *(g.node for g in tape.guards)]


def _inputs(tape: Tape, axes: Sequence[Place], length: int) -> tuple[Builder, dict[int, Batched]]:
    """A builder with the inputs of the batch, and the values of the tape's inputs on it, the batch first."""
    builder, leaves = Builder(), {}
    for number, name, axis in zip(tape.inputs, tape.names, axes, strict=True):
        aval = tape.nodes[number].aval
        shape = aval.shape if axis is None else (*aval.shape[:axis], length, *aval.shape[axis:])
        value = builder.input(Aval(shape, aval.dtype), name)
        leaves[number] = (value, False) if axis is None else (to_front(value, axis), True)
    return builder, leaves


def _with_dimension(tape: Tape, axes: Sequence[Place], length: int) -> Made:
    """The same nodes with one more dimension, optimised."""
    builder, leaves = _inputs(tape, axes, length)
    values = batched(builder, tape.nodes, leaves, length, _wanted(tape))
    made = optimise(builder.finish(v for v, _ in values))
    fresh = Builder()
    found = fresh.replay(made, [fresh.input(made.nodes[n].aval, name) for n, name in zip(
        made.inputs, made.names, strict=True)])
    return fresh, [(v, several) for v, (_, several) in zip(found, values, strict=True)]


def _in_loop(tape: Tape, axes: Sequence[Place], length: int, together: int = 0) -> Made | None:
    """A loop over the batch, one example in a step, or `together` of them. What does not vary is computed before it.
    None if nothing varies."""
    builder, leaves = _inputs(tape, axes, length)
    moving = dependent(tape.nodes, [n for n, (_, varies) in leaves.items() if varies])
    wanted = dict.fromkeys(_wanted(tape))
    ends, still = [n for n in wanted if n in moving], [n for n in wanted if n not in moving]
    if not ends:
        return None
    still_there = {n for n, node in enumerate(tape.nodes) if n not in moving and not _repeated(node)}
    used = [n for n, found in enumerate(needed(tape.nodes, ends, still_there)) if found]
    fixed = [n for n in used if n in still_there]
    given = [n for n in used if n in leaves and n in moving]
    known = transplant(tape.nodes, {n: v for n, (v, _) in leaves.items()}, [*fixed, *still], builder)
    values = dict(zip([*fixed, *still], known, strict=True))

    def body(inner: Builder, operands: list[Value]) -> list[Value]:
        places = dict(zip([*given, *fixed], operands, strict=True))
        if not together:
            return transplant(tape.nodes, places, ends, inner)
        starts = {n: (v, n in moving) for n, v in places.items()}
        return [full(v, together) for v in batched(inner, tape.nodes, starts, together, ends)]
    steps = -(-length // together) if together else length
    rows = [(_in_steps(leaves[n][0], steps, together) if together else leaves[n][0], True) for n in given]
    stacks = in_turn([*rows, *((values[n], False) for n in fixed)], steps, body, optimise if together else None)
    found = {n: (v, False) for n, v in values.items()}
    found |= {n: (_whole(v, length) if together else v, True) for n, v in zip(ends, stacks, strict=True)}
    return builder, [found[n] for n in _wanted(tape)]


def _repeated(node: Node) -> bool:
    """Whether a body has the node of its own although it does not vary."""
    return node.index_map is not None or node.constant is not None


def _in_steps(rows: Value, steps: int, together: int) -> Value:
    """The examples of each step; the last one is repeated until the last step is whole."""
    length, rest = rows.shape[0], rows.shape[1:]
    if steps * together > length:
        last = slice_dims(rows, (slice(length - 1, length), *[slice(None)] * len(rest)))
        rows = concatenate(rows, broadcast_to(last, (steps * together - length, *rest)), axis=0)
    return reshape(rows, (steps, together, *rest))


def _whole(stack: Value, length: int) -> Value:
    rows = reshape(stack, (stack.shape[0] * stack.shape[1], *stack.shape[2:]))
    return slice_dims(rows, (slice(0, length), *[slice(None)] * (rows.ndim - 1)))
