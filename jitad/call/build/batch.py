"""The tape of one example becomes that of a batch: its arguments and results, and the guards."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitad.call.request.axes import Axes, Place, example
from jitad.passes.batching.batched import Batched
from jitad.passes.batching.rules import from_front, full
from jitad.call.build.ways import all_examples
from jitad.errors import ArgumentTypeError, OutputError
from jitad.tape.types import TABLE
from jitad.passes.optimise.guards import conditions, first_missed
from jitad.primitives.reduce import reduce_all
from jitad.call.request.request import Arguments
from jitad.call.request.results import Result, framed
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Guard
from jitad.trace.leaves import is_complex
from jitad.trace.pytree import leaves_of, unflatten
from jitad.trace.where import user_line


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
    for leaf, path in zip(arguments.leaves, arguments.names, strict=True):
        if batches and is_complex(leaf):
            raise ArgumentTypeError(f"argument `{path}` of the batch of `{name}` is complex (called at {user_line()}); "
                                    "pass real and imaginary parts apart")
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
    if any(form.startswith("complex") for form, _ in result.forms):
        raise OutputError(f"`{name}` returned a complex value, which a batch cannot return (called at {user_line()}); "
                          "return its .real and .imag")
    for level in reversed(levels):
        places = [place for place, dynamic in zip(level.places, arguments.dynamic, strict=True) if dynamic]
        outer = level.axes.of_result(framed(result.frame, range(len(result.forms))), name)
        order = leaves_of(framed(result.frame, range(len(result.forms))))[0]
        ends = [end for _, end in sorted(zip(order, outer, strict=True), key=lambda pair: pair[0])]
        tape = in_batch(tape, [*places, *[None] * len(captured)], level.length, ends, name)
        forms = [form if end is None else ("array", "") for form, end in zip(result.forms, ends, strict=True)]
        result = Result(tuple(forms), result.frame)
    if tape.guards:
        missed = first_missed(conditions(tape), [*arguments.inputs, *captured])
        if missed is not None:
            raise WaysDiffer(missed)
    return tape, result


def in_batch(tape: Tape, axes: Sequence[Place], length: int, ends: Sequence[Place], name: str = "function") -> Tape:
    """`tape` for every example of a batch of `length`.

    `axes` says of each input along which of its dimensions the examples lie, None where all have the same; `ends` the
    same of each output, of which None must not vary. A guard on what varies becomes a guard that all examples agree.
    """
    builder, values = all_examples(tape, axes, length)
    outputs = [placed(value, end, length, name) for value, end in zip(values, ends, strict=False)]
    for guard, value in zip(tape.guards, values[len(tape.outputs):], strict=True):
        guard_all(builder, guard, value)
    return builder.finish(outputs, tape.labels)


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


def guard_all(builder: Builder, guard: Guard, value: Batched) -> Value:
    """Guard that `value` is what `guard` expects for every example; returns the guarded value."""
    found, several = value
    if not several:
        builder.guard(found, guard.expected, guard.where)
        return found
    agree = reduce_all(TABLE["eq"](found, guard.expected), axes=(0,))
    builder.guard(agree, True, guard.where)
    return agree
