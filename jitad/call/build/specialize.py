"""How a specialization is built: the function is recorded, re-rolled, differentiated, optimised."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from jitad.cache.keys.identity import Target
from jitad.call.build.batch import examples, in_batches
from jitad.call.build.derive import Argument, Derivation
from jitad.call.build.machine import choose, suited
from jitad.call.build.specialization import Specialization
from jitad.call.request.request import Arguments, Request
from jitad.call.request.results import Result
from jitad.call.request.sameness import named_objects
from jitad.compile.llvm.fork_guard import gate
from jitad.passes.differentiate.solutions import jacobian
from jitad.passes.optimise.logsums import factored
from jitad.passes.optimise.rewrites import optimised
from jitad.passes.reroll.reroll import reroll
from jitad.tape.builder import Builder, Value
from jitad.trace.captures.asked import FRESH
from jitad.trace.leaves import aval_of, is_complex, packed_all
from jitad.trace.pytree import objects_in
from jitad.trace.recorder import Recording, uncollected
from jitad.trace.steps.known import Loops, merged
from jitad.trace.where import no_fault


def build(target: Target, request: Request, arguments: Arguments, loops: Loops | None = None) -> Specialization:
    """Record the function, re-roll its loops, differentiate, optimise; or leave the recording to the tape machine.
    `loops` is what is known of its loops."""
    name = target.function.__qualname__
    with gate, uncollected():
        example, levels = examples(request.batch, arguments, name)
        recording = recorded(target, request, example, loops)
        if suited(request):
            found = choose(recording, request, rerolled, lambda r: derivation(r, request, example, name))
            if not isinstance(found, Recording):
                machine, result = found
                return Specialization.of(name, request, arguments, None, recording.plan, result,
                                         guarded=bool(machine.guards), machine=machine, loops=recording.loops,
                                         asked=recording.asked)
            recording = found
        with no_fault(f"it differentiated `{name}`"):
            recording = _rewritten(recording, factored)
            outputs, labels, result = requested(recording, request, example, name)
            tape = optimised(recording.builder, outputs, labels)
            if levels:
                tape, result = in_batches(tape, result, levels, arguments, recording.captured, name)
    return Specialization.of(name, request, arguments, tape, recording.plan, result, guarded=bool(tape.guards),
                             loops=recording.loops, asked=recording.asked)


def complete(specialization: Specialization, target: Target, arguments: Arguments) -> None:
    """Record the tape, if it is not there yet, for a call that the specialization serves."""
    if specialization.recorded is None:
        request = replace(specialization.request, tier="kernel")
        specialization.recorded = build(target, request, arguments, merged([specialization.loops])).tape


def recorded(target: Target, request: Request, arguments: Arguments, loops: Loops | None = None) -> Recording:
    """The function run on the arguments; with its loops re-rolled unless the tape machine may take it as it is, and
    with the seed, if the request has one, as further inputs."""
    from jitad.trace.record import record
    from jitad.trace.scipy_rules.solvers.callbacks import differentiate_by

    differentiate_by(jacobian)
    objects = _objects(request, arguments)
    if suited(request):
        return record(target, arguments.args, arguments.kwargs, arguments.positional, loops, objects)
    if not request.seed_name:
        return rerolled(record(target, arguments.args, arguments.kwargs, arguments.positional, loops, objects))
    recording = rerolled(record(
        target, arguments.args[:-1], arguments.kwargs, arguments.positional[:-1], loops, objects))
    builder, span = recording.builder, arguments.span(len(arguments.args) - 1)
    first = sum(arguments.dynamic[:span.start])
    seeds = [builder.input(aval_of(arguments.leaves[i]), arguments.names[i]) for i in span]
    given, behind = recording.argument_inputs, len(builder.inputs) - len(seeds)
    order = [*range(first), *range(behind, len(builder.inputs)), *range(first, behind)]      # that of the call
    builder.inputs[:], builder.names[:] = [builder.inputs[i] for i in order], [builder.names[i] for i in order]
    return replace(recording, argument_inputs=(*given[:first], *seeds, *given[first:]))


def _objects(request: Request, arguments: Arguments) -> list[Any]:
    """The containers and leaves that the function is called with; of an example of a batch those that others share."""
    given = [thing for _, thing in named_objects(arguments)]
    if not request.batch:
        return given
    taken = (*arguments.args[:len(arguments.args) - bool(request.seed_name)], *arguments.kwargs.values())
    return [a if a is b else FRESH for a, (_, b) in zip(given, (
        pair for value in taken for pair in objects_in(value, "")), strict=True)]


def requested(recording: Recording, request: Request, arguments: Arguments,
              name: str) -> tuple[list[Value], list[str], Result]:
    """What is asked of the function, on the builder of its recording: outputs, their labels, how they are returned."""
    return derivation(recording, request, arguments, name).parts()


def derivation(recording: Recording, request: Request, arguments: Arguments, name: str) -> Derivation:
    """The request, on the builder of the recording."""
    numbers = {leaf: i for i, leaf in enumerate(n for n, d in enumerate(arguments.dynamic) if d)}

    def values(span: Iterable[int]) -> tuple[Value, ...]:
        return tuple(recording.argument_inputs[numbers[leaf]] for leaf in span)

    last, taken = len(arguments.args) - bool(request.seed_name), []
    for place in request.places:
        span = arguments.span(place % last)
        taken.append(Argument(values(span), arguments.structures[place % last],
                              tuple(arguments.names[i] for i in span), tuple(arguments.leaves[i] for i in span)))
    span = arguments.span(last) if request.seed_name else range(0)
    inputs = (v.number for v in (*recording.argument_inputs, *recording.captured_inputs))
    given = dict(zip(inputs, packed_all([*arguments.inputs, *recording.captured]), strict=True)) if (
        request.sparse) else {}
    return Derivation(recording.builder, request, name, recording.outputs, recording.structure, recording.weak,
                      tuple(taken), values(span), arguments.structures[last] if request.seed_name else None,
                      tuple(is_complex(arguments.leaves[i]) for i in span), given=given)


def rerolled(recording: Recording, most: int | None = None) -> Recording:
    """The recording with its loops as scans; `most` as for `reroll`."""
    return _rewritten(recording, partial(reroll, most=most))


def _rewritten(recording: Recording, change: Callable[[Builder, list[Value]], list[Value]]) -> Recording:
    """The recording on the builder on which a pass has written it anew."""
    parts = (recording.argument_inputs, recording.captured_inputs, recording.outputs)
    values = change(recording.builder, [v for part in parts for v in part])
    if not values or values[0].builder is recording.builder:
        return recording
    rest = iter(values)
    arguments, captured, outputs = (tuple(itertools.islice(rest, len(part))) for part in parts)
    return replace(recording, builder=values[0].builder, argument_inputs=arguments, captured_inputs=captured,
                   outputs=outputs)
