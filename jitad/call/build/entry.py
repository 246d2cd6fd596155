"""What the cache keeps for one signature: the tape, the plan of captures, and the kernels made from them."""
from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jitad.cache.keys.captures import Plan
from jitad.cache.keys.identity import Target
from jitad.cache.keys.signature import Signature
from jitad.compile.llvm.fork_guard import gate
from jitad.call.build.derive import Argument, Derivation
from jitad.call.build.batch import examples, in_batches
from jitad.call.build.machine import choose, suited
from jitad.errors import ArgumentTypeError, OutputError
from jitad.tape.evaluate import GuardMiss, evaluate
from jitad.passes.optimise.rewrites import optimised
from jitad.call.request.request import Arguments, Request, check_places
from jitad.passes.reroll.reroll import reroll
from jitad.call.request.results import Result, framed
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Guard
from jitad.trace.values.pairs import is_packed
from jitad.trace.dispatch import plain
from jitad.trace.leaves import aval_of, packed_all
from jitad.trace.pytree import TreeDef, flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, Recording, as_output, uncollected
from jitad.trace.where import user_line

if TYPE_CHECKING:
    from jitad.compile.tapemachine.machine import TapeMachine

_slots = itertools.count()
_living: weakref.WeakSet[Entry] = weakref.WeakSet()


class TapeNeeded(Exception):
    """An entry from the disk has code but no tape, and a tape is needed: see `Entry.complete`."""


@dataclass(eq=False)
class Entry:
    """One compiled signature of one function. Holds neither the function nor what it captures.

    `recorded` is the tape; an entry from the disk (`loaded`) starts without one. `guarded` says whether the tape
    has guards, `passing` whether the entry serves one call and has no place in the cache; `crowded` is set once
    the user knows that there are too many like it. On the `machine` there is no tape either, until it is asked for.
    `bound` has the kernels for bound data, see `jitad.call.bound`; `compiling` the threads of `jitad.call.background`.
    """

    name: str
    request: Request
    signature: Signature
    names: tuple[str, ...]
    dynamic: tuple[bool, ...]
    structures: tuple[TreeDef, ...]
    keywords: tuple[str, ...]
    recorded: Tape | None
    plan: Plan
    result: Result
    guarded: bool = False
    loaded: bool = False
    passing: bool = False
    crowded: bool = False
    machine: TapeMachine | None = None
    kernels: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    bound: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    compiling: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        _living.add(self)

    @property
    def tape(self) -> Tape:
        if self.recorded is None:
            raise TapeNeeded
        return self.recorded

    def output(self, number: int) -> Aval:
        """Shape and dtype of an output of the tape."""
        return self.tape.nodes[self.tape.outputs[number]].aval

    def complete(self, target: Target, arguments: Arguments) -> None:
        """Record the tape, if it is not there yet, for a call that this entry serves."""
        if self.recorded is None:
            self.recorded = build(target, replace(self.request, tier="kernel"), arguments).tape

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.tape.guards if self.machine is None else self.machine.guards

    @property
    def way(self) -> str:
        """What tells the ways through the branches of one function apart."""
        return " ".join(f"{g.node}={g.expected}" for g in self.tape.guards)

    @property
    def nbytes(self) -> int:
        """Machine code and constants."""
        return sum(kernel.nbytes for kernel in [*self.kernels.values(), *self.bound.values()])

    @property
    def seconds(self) -> float:
        """What compiling the kernels took."""
        return sum(kernel.seconds for kernel in list(self.kernels.values()))

    def captured(self, target: Target) -> tuple[Any, ...] | None:
        """The captured inputs as they are now; None if the captures are not those of this tape."""
        values = self.plan.values(target)
        return values if values is None else tuple(packed_all(values))

    @cached_property
    def _conditions(self) -> Tape:
        """The part of the tape that its guards need."""
        builder = Builder()
        values = [builder.input(self.tape.nodes[i].aval, n)
                  for i, n in zip(self.tape.inputs, self.tape.names, strict=True)]
        builder.replay(self.tape, values)
        return builder.finish(())

    def missed(self, inputs: Sequence[Any]) -> Guard | None:
        """The first guard that these inputs break: they take another way through the user's code."""
        if not self.guarded:
            return None
        if self.machine is not None:
            return self.machine.missed(inputs)
        if self.recorded is None:
            return self._stopped(inputs)
        try:
            evaluate(self._conditions, *inputs)
        except GuardMiss as miss:
            return miss.guard
        return None

    def _stopped(self, inputs: Sequence[Any]) -> Guard | None:
        from jitad.compile.entry.kernel_errors import StatusMiss

        try:
            self.kernel(inputs).call(*inputs)
        except StatusMiss:
            return Guard(-1, True, None)
        return None

    def has_kernel(self, inputs: Sequence[Any]) -> bool:
        from jitad.compile.entry.arguments import argument_type

        return tuple(map(argument_type, inputs)) in self.kernels

    def kernel(self, inputs: Sequence[Any]) -> Any:
        """The kernel for inputs that lie in memory as these do; compiled once."""
        from jitad.compile.entry.arguments import argument_type

        kinds = tuple(map(argument_type, inputs))
        kernel = self.kernels.get(kinds)
        if kernel is None:
            with gate, uncollected(), self.lock:
                from jitad.compile.entry.kernel import Kernel
                from jitad.compile.tapemachine.machine import MachineKernel

                kernel = self.kernels.get(kinds)
                if kernel is None:
                    kernel = Kernel(self.tape, kinds) if self.machine is None else MachineKernel(self.machine, kinds)
                    kernel.call                         # noqa: B018  compiles
                    self.kernels[kinds] = kernel
        return kernel

    def run(self, inputs: Sequence[Any]) -> Any:
        """The result for dynamic leaves and captured inputs; failures are raised as NumPy raises them."""
        from jitad.compile.entry.kernel_errors import StatusMiss

        try:
            return self.result.build(self.kernel(inputs).call(*inputs))
        except StatusMiss:
            pass
        return self.interpret(inputs)

    def interpret(self, inputs: Sequence[Any]) -> Any:
        """The same by the reference interpreter."""
        outputs = [x if x.ndim else x.item() for x in evaluate(self.tape, *inputs)]
        return self.result.build(outputs[0] if len(outputs) == 1 else outputs)


def _after_fork() -> None:
    for entry in list(_living):
        entry.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def build(target: Target, request: Request, arguments: Arguments) -> Entry:
    """Record the function, re-roll its loops, differentiate, optimise; or leave the recording to the tape machine."""
    name = target.function.__qualname__
    with gate, uncollected():
        example, levels = examples(request.batch, arguments, name)
        recording = recorded(target, request, example)
        if suited(request):
            found = choose(recording, request, rerolled, lambda r: derivation(r, request, example, name))
            if not isinstance(found, Recording):
                machine, result = found
                return Entry(name, request, arguments.signature, arguments.names, arguments.dynamic,
                             arguments.structures, tuple(arguments.kwargs), None, recording.plan, result,
                             bool(machine.guards), machine=machine)
            recording = found
        outputs, labels, result = requested(recording, request, example, name)
        tape = optimised(recording.builder, outputs, labels)
        if levels:
            tape, result = in_batches(tape, result, levels, arguments, recording.captured, name)
    return Entry(name, request, arguments.signature, arguments.names, arguments.dynamic, arguments.structures,
                 tuple(arguments.kwargs), tape, recording.plan, result, bool(tape.guards))


def recorded(target: Target, request: Request, arguments: Arguments) -> Recording:
    """The function run on the arguments; with its loops re-rolled unless the tape machine may take it as it is, and
    with the seed, if the request has one, as further inputs."""
    from jitad.trace.record import record

    if suited(request):
        return record(target, arguments.args, arguments.kwargs, arguments.positional)
    if not request.seed_name:
        return rerolled(record(target, arguments.args, arguments.kwargs, arguments.positional))
    recording = rerolled(record(target, arguments.args[:-1], arguments.kwargs, arguments.positional[:-1]))
    builder, span = recording.builder, arguments.span(len(arguments.args) - 1)
    first = sum(arguments.dynamic[:span.start])
    seeds = [builder.input(aval_of(arguments.leaves[i]), arguments.names[i]) for i in span]
    given, behind = recording.argument_inputs, len(builder.inputs) - len(seeds)
    order = [*range(first), *range(behind, len(builder.inputs)), *range(first, behind)]      # that of the call
    builder.inputs[:], builder.names[:] = [builder.inputs[i] for i in order], [builder.names[i] for i in order]
    return replace(recording, argument_inputs=(*given[:first], *seeds, *given[first:]))


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
    seeds, tree = (values(arguments.span(last)), arguments.structures[last]) if request.seed_name else ((), None)
    inputs = (v.number for v in (*recording.argument_inputs, *recording.captured_inputs))
    given = dict(zip(inputs, packed_all([*arguments.inputs, *recording.captured]), strict=True)) if (
        request.sparse) else {}
    return Derivation(recording.builder, request, name, recording.outputs, recording.structure, recording.weak,
                      tuple(taken), seeds, tree, given=given)


def rerolled(recording: Recording, most: int | None = None) -> Recording:
    """The recording with its loops as scans; `most` as for `reroll`."""
    parts = (recording.argument_inputs, recording.captured_inputs, recording.outputs)
    values = reroll(recording.builder, [v for part in parts for v in part], most=most)
    if not values or values[0].builder is recording.builder:
        return recording
    rest = iter(values)
    arguments, captured, outputs = (tuple(itertools.islice(rest, len(part))) for part in parts)
    return replace(recording, builder=values[0].builder, argument_inputs=arguments, captured_inputs=captured,
                   outputs=outputs)


def differentiated(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                   kwargs: dict[str, Any], name: str) -> Any:
    """What is asked of a function, on the tape of the recording that calls for it: with respect to aliases of the
    arguments, so that other uses of the same values are constants."""
    seeds: tuple[Value, ...] = ()
    seed_tree = None
    if request.seed_name:
        *args, seed = args
        leaves, seed_tree = plain_leaves(seed)
        seeds = tuple(seed_value(recorder, leaf, request.seed_name, name) for leaf in leaves)
    derivation = recorded_on(recorder, request, function, args, kwargs, name)
    with recorder.plain():
        found, _, result = replace(derivation, seeds=seeds, seed_tree=seed_tree).parts()
    return framed(result.frame, [recorder.value(v.number) for v in found])


def recorded_on(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                kwargs: dict[str, Any], name: str) -> Derivation:
    """The function run in the recording that calls it, ready to be differentiated."""
    check_places(request, len(args), name)
    fresh, taken = list(args), []
    for place in request.places:
        given, tree = plain_leaves(args[place])
        paths = flatten(args[place], f"argument {place % len(args)}")[1]
        values = tuple(_aliased(recorder, leaf, name) for leaf in given)
        fresh[place] = unflatten(tree, values)
        taken.append(Argument(tuple(Value(recorder, v.number) for v in values), tree, tuple(paths),
                              tuple(0.0 for _ in paths)))
    result = function(*fresh, **kwargs)
    leaves, tree = plain_leaves(result)
    paths = flatten(result, "result")[1]
    outputs = tuple(as_output(recorder, leaf, path, user_line()) for leaf, path in zip(leaves, paths, strict=True))
    if any(map(is_packed, outputs)):
        raise OutputError(f"`{name}` returned a complex value to be differentiated inside a recorded function, at "
                          f"{user_line()}; return its .real, .imag or np.abs")
    return Derivation(recorder, request, name, tuple(Value(recorder, v.number) for v in outputs), tree,
                      (False,) * len(outputs), tuple(taken))


def plain_leaves(value: Any) -> tuple[list[Any], TreeDef]:
    """Leaves and structure, that of a captured dict as of any other."""
    leaves, tree = leaves_of(value)
    return leaves, leaves_of(unflatten(tree, leaves))[1]


def seed_value(recorder: Recorder, leaf: Any, what: str, name: str) -> Value:
    """A leaf of a seed as a value of the recording."""
    from jitad.primitives.core import cast

    value = Value(recorder, as_value(recorder, leaf).number)
    if value.dtype.kind == "b":
        raise ArgumentTypeError(f"`{what}` for `{name}` has a boolean (called at {user_line()}); a seed is made of "
                                "floats, as what it is for")
    return cast(value, np.float64) if value.dtype.kind in "iu" else value


def as_value(recorder: Recorder, leaf: Any) -> Value:
    leaf = plain(leaf)
    return leaf if isinstance(leaf, Value) else recorder.const(leaf, weak=type(leaf) in (int, float))


def _aliased(recorder: Recorder, leaf: Any, name: str) -> Value:
    from jitad.primitives.core import alias, cast

    value = as_value(recorder, leaf)
    if value.dtype.kind in "iu":
        value = cast(value, np.float64)
    if value.dtype.kind != "f":
        raise ArgumentTypeError(f"an argument of `{name}` of dtype {value.dtype} cannot be differentiated "
                                f"(called at {user_line()})")
    return recorder.value(recorder.apply(alias, [value.number], {"slot": next(_slots)}))
