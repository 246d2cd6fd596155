"""The tape of one example becomes that of a batch.

There are two ways. A small model is a loop over the batch whose body has no memory of the step before: written out
element by element by the compiler, so that the examples run side by side in vector lanes. Everything else is the same
tape with one more dimension (`jitad.batching`): products with a matrix become products of matrices, loops carry arrays.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitad.axes import Axes, Place, example
from jitad.batching import Batched, batched
from jitad.batching_rules import from_front, full, in_turn, to_front
from jitad.compile.scan_unroll import unrollable
from jitad.errors import OutputError
from jitad.evaluate import GuardMiss, evaluate
from jitad.optimise import optimise
from jitad.primitives.core import TABLE
from jitad.primitives.reduce import reduce_all
from jitad.primitives.scan import Form, transplant
from jitad.request import Arguments
from jitad.results import Result, framed
from jitad.tape import Aval, Builder, Guard, Node, Tape, Value
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.where import user_line

APART = frozenset({"view", "const"})        # what a body may have of its own although it does not vary


class WaysDiffer(Exception):
    """The examples of a batch take different ways through the user's code: at `guard`."""

    def __init__(self, guard: Guard):
        super().__init__(guard)
        self.guard = guard


@dataclass(frozen=True)
class Level:
    """One batch of a call: the axis of each leaf, None for what all examples share, and how many there are."""

    axes: Axes
    places: tuple[Place, ...]
    length: int


def examples(batches: Sequence[Axes], arguments: Arguments, name: str) -> tuple[Arguments, list[Level]]:
    """The arguments of one example, the first, and the batches that they are taken from, the outermost first.

    Raises `ArgumentTypeError` where there are no such axes.
    """
    levels = []
    for axes in batches:
        places, length = axes.of_call(arguments.args, arguments.kwargs, arguments.positional, name)
        levels.append(Level(axes, tuple(places), length))
        arguments = example_of(arguments, places)
    return arguments, levels


def example_of(arguments: Arguments, places: Sequence[Place], number: int = 0) -> Arguments:
    """The arguments of example `number`."""
    leaves = [example(leaf, place, number) for leaf, place in zip(arguments.leaves, places, strict=True)]
    values, start = [], 0
    for tree, count in zip(arguments.structures, arguments.counts, strict=True):
        values.append(unflatten(tree, leaves[start:start + count]))
        start += count
    given = len(arguments.args)
    return replace(arguments, args=tuple(values[:given]), leaves=tuple(leaves),
                   kwargs=dict(zip(arguments.kwargs, values[given:], strict=True)))


def in_batches(tape: Tape, result: Result, levels: Sequence[Level], arguments: Arguments, captured: Sequence[Any],
               name: str) -> tuple[Tape, Result]:
    """The tape of one example as that of all batches, with its result.

    Raises `WaysDiffer` if the examples of these arguments do not all take the way that is on the tape.
    """
    for level in reversed(levels):
        places = [place for place, dynamic in zip(level.places, arguments.dynamic, strict=True) if dynamic]
        outer = level.axes.of_result(framed(result.frame, range(len(result.forms))), name)
        order = leaves_of(framed(result.frame, range(len(result.forms))))[0]
        ends = [end for _, end in sorted(zip(order, outer, strict=True), key=lambda pair: pair[0])]
        tape = in_batch(tape, [*places, *[None] * len(captured)], level.length, ends, name)
        forms = [form if end is None else ("array", "") for form, end in zip(result.forms, ends, strict=True)]
        result = Result(tuple(forms), result.frame)
    if tape.guards:
        builder = Builder()
        builder.replay(tape, [builder.input(tape.nodes[n].aval, name) for n, name in zip(
            tape.inputs, tape.names, strict=True)])
        try:
            evaluate(builder.finish([]), *arguments.inputs, *captured)
        except GuardMiss as miss:
            raise WaysDiffer(miss.guard) from None
    return tape, result


def in_batch(tape: Tape, axes: Sequence[Place], length: int, ends: Sequence[Place], name: str = "function") -> Tape:
    """`tape` for every example of a batch of `length`.

    `axes` says of each input along which of its dimensions the examples lie, None where all have the same; `ends` the
    same of each output, of which None must not vary. A guard on what varies becomes a guard that all examples agree.
    """
    small = _in_lanes(tape, axes, length)
    builder, values = small if small is not None else _with_dimension(tape, axes, length)
    outputs = [placed(value, end, length, name) for value, end in zip(values, ends, strict=False)]
    for guard, value in zip(tape.guards, values[len(tape.outputs):], strict=True):
        guard_all(builder, guard, value)
    made = builder.finish(outputs, tape.labels)
    return made if small is not None else optimise(made)


def placed(value: Batched, end: Place, length: int, name: str) -> Value:
    """An output with its examples along axis `end`. Raises `OutputError` where there is no such axis."""
    found, several = value
    if end is None:
        if several:
            raise OutputError(f"out_axes of `{name}` is None for a result that is not the same for all examples "
                              f"(called at {user_line()}); give an axis")
        return found
    made = full(value, length)
    if not -made.ndim <= end < made.ndim:
        raise OutputError(f"out_axes of `{name}` has axis {end} for a result of {made.ndim} dimensions with that of "
                          f"the examples (called at {user_line()})")
    return from_front(made, end % made.ndim)


def _inputs(tape: Tape, axes: Sequence[Place], length: int) -> tuple[Builder, dict[int, Batched]]:
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


def _with_dimension(tape: Tape, axes: Sequence[Place], length: int) -> tuple[Builder, list[Batched]]:
    """The values of the wanted nodes on a new builder."""
    builder, leaves = _inputs(tape, axes, length)
    return builder, batched(builder, tape.nodes, leaves, length, _wanted(tape))


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

def _in_lanes(tape: Tape, axes: Sequence[Place], length: int) -> tuple[Builder, list[Batched]] | None:
    """The same by a loop over the batch, if its body is small enough to be written out."""
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
    return builder, [found[n] for n in wanted]


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
