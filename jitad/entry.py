"""What the cache keeps for one signature: the tape, the plan of captures, and the kernels made from them."""
from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from jitad.cache.captures import Plan
from jitad.cache.identity import Target
from jitad.cache.signature import Signature
from jitad.compile.forks import gate
from jitad.differentiate import one, pullback
from jitad.errors import ArgumentTypeError, OutputError, SignatureError
from jitad.evaluate import GuardMiss, evaluate
from jitad.optimise import optimise
from jitad.request import Arguments, Request, check_places
from jitad.reroll import reroll
from jitad.tape import Builder, Guard, Tape, Value
from jitad.trace.pytree import TreeDef, flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, Recording, as_output, record
from jitad.trace.where import user_line

_slots = itertools.count()
_living: weakref.WeakSet[Entry] = weakref.WeakSet()


@dataclass(frozen=True)
class Result:
    """How the outputs of a kernel become what the caller gets: a form for each output, and trees.

    Forms: ``array`` (as it comes), ``number`` (a Python number), ``scalar`` (a NumPy scalar of
    `dtype`), ``array0d``. `groups` says how many outputs each tree takes and its structure (None: bare);
    `packed` whether there is a tuple around the trees, `nested` whether all but the first are a tuple of
    their own: ``(value, (gradient, ...))``.
    """

    forms: tuple[tuple[str, str], ...]
    groups: tuple[tuple[int, TreeDef | None], ...]
    packed: bool
    nested: bool = False

    @property
    def plain(self) -> bool:
        """Whether a kernel's outputs are the result as they are."""
        return not self.nested and all(form in ("array", "number") for form, _ in self.forms) and all(
            tree is None for _, tree in self.groups) and self.packed == (len(self.groups) > 1)

    def build(self, outputs: Any) -> Any:
        if len(self.forms) == 1:
            outputs = (outputs,)
        leaves = [_formed(x, form, dtype) for x, (form, dtype) in zip(outputs, self.forms, strict=True)]
        trees, start = [], 0
        for count, tree in self.groups:
            part = leaves[start:start + count]
            trees.append(part[0] if tree is None else unflatten(tree, part))
            start += count
        if self.nested:
            return trees[0], tuple(trees[1:])
        return tuple(trees) if self.packed else trees[0]


def _formed(x: Any, form: str, dtype: str) -> Any:
    if form == "scalar":
        return np.dtype(dtype).type(x)
    return np.asarray(x, dtype) if form == "array0d" else x


class TapeNeeded(Exception):
    """An entry from the disk has code but no tape, and a tape is needed: see `Entry.complete`."""


@dataclass(eq=False)
class Entry:
    """One compiled signature of one function. Holds neither the function nor what it captures.

    `recorded` is the tape; an entry from the disk (`loaded`) starts without one. `guarded` says whether the tape
    has guards, `passing` whether the entry serves one call and has no place in the cache; `crowded` is set once
    the user knows that there are too many like it.
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
    kernels: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        _living.add(self)

    @property
    def tape(self) -> Tape:
        if self.recorded is None:
            raise TapeNeeded
        return self.recorded

    def complete(self, target: Target, arguments: Arguments) -> None:
        """Record the tape, if it is not there yet, for a call that this entry serves."""
        if self.recorded is None:
            self.recorded = build(target, self.request, arguments).tape

    @property
    def way(self) -> str:
        """What tells the ways through the branches of one function apart."""
        return " ".join(f"{g.node}={g.expected}" for g in self.tape.guards)

    @property
    def nbytes(self) -> int:
        """Machine code and constants."""
        return sum(len(kernel.native.code) for kernel in list(self.kernels.values()))

    @property
    def seconds(self) -> float:
        """What compiling the kernels took."""
        return sum(kernel.seconds for kernel in list(self.kernels.values()))

    def captured(self, target: Target) -> tuple[Any, ...] | None:
        """The captured inputs as they are now; None if the captures are not those of this tape."""
        return self.plan.values(target)

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
        if self.recorded is None:
            return self._stopped(inputs)
        try:
            evaluate(self._conditions, *inputs)
        except GuardMiss as miss:
            return miss.guard
        return None

    def _stopped(self, inputs: Sequence[Any]) -> Guard | None:
        from jitad.compile.kernel_errors import StatusMiss

        try:
            self.kernel(inputs).call(*inputs)
        except StatusMiss:
            return Guard(-1, True, None)
        return None

    def has_kernel(self, inputs: Sequence[Any]) -> bool:
        from jitad.compile.arguments import argument_type

        return tuple(map(argument_type, inputs)) in self.kernels

    def kernel(self, inputs: Sequence[Any]) -> Any:
        """The kernel for inputs that lie in memory as these do; compiled once."""
        from jitad.compile.arguments import argument_type

        kinds = tuple(map(argument_type, inputs))
        kernel = self.kernels.get(kinds)
        if kernel is None:
            with gate, self.lock:
                from jitad.compile.runtime import Kernel

                kernel = self.kernels.get(kinds)
                if kernel is None:
                    kernel = Kernel(self.tape, kinds)
                    kernel.call                         # noqa: B018  compiles
                    self.kernels[kinds] = kernel
        return kernel

    def run(self, inputs: Sequence[Any]) -> Any:
        """The result for dynamic leaves and captured inputs; failures are raised as NumPy raises them."""
        from jitad.compile.kernel_errors import StatusMiss

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
    """Record the function, re-roll its loops, differentiate, optimise."""
    name = target.function.__qualname__
    with gate:
        recording = rerolled(record(target, arguments.args, arguments.kwargs, arguments.positional))
        if request.what == "value":
            outputs, labels, result = _value_outputs(recording)
        else:
            outputs, labels, result = _gradient_outputs(recording, request, arguments, name)
        tape = optimise(recording.builder.finish(outputs, labels))
    return Entry(name, request, arguments.signature, arguments.names, arguments.dynamic, arguments.structures,
                 tuple(arguments.kwargs), tape, recording.plan, result, bool(tape.guards))


def rerolled(recording: Recording) -> Recording:
    """The recording with its loops as scans."""
    parts = (recording.argument_inputs, recording.captured_inputs, recording.outputs)
    values = reroll(recording.builder, [v for part in parts for v in part])
    if not values or values[0].builder is recording.builder:
        return recording
    rest = iter(values)
    arguments, captured, outputs = (tuple(itertools.islice(rest, len(part))) for part in parts)
    return replace(recording, builder=values[0].builder, argument_inputs=arguments, captured_inputs=captured,
                   outputs=outputs)


def _value_outputs(recording: Recording) -> tuple[list[Value], list[str], Result]:
    outputs = list(recording.outputs)
    forms = tuple(_value_form(v, weak) for v, weak in zip(outputs, recording.weak, strict=True))
    single = recording.structure.spec.is_leaf() and not recording.structure.inner
    labels = ["value"] if len(outputs) == 1 else [f"value_{i}" for i in range(len(outputs))]
    return outputs, labels, Result(forms, ((len(outputs), None if single else recording.structure),), False)


def _value_form(value: Value, weak: bool = False) -> tuple[str, str]:
    if value.ndim:
        return ("array", "")
    return ("number", "") if weak or value.dtype == np.float64 else ("scalar", value.dtype.name)


def _gradient_outputs(recording: Recording, request: Request, arguments: Arguments,
                      name: str) -> tuple[list[Value], list[str], Result]:
    y = scalar_output(recording.builder, recording.outputs, recording.structure, name)
    numbers = {leaf: i for i, leaf in enumerate(n for n, d in enumerate(arguments.dynamic) if d)}
    spans = [arguments.span(place % len(arguments.args)) for place in request.places]
    places = [leaf for span in spans for leaf in span]
    wrt = [recording.argument_inputs[numbers[leaf]] for leaf in places]
    gradients = pullback(recording.builder, [y], [one(y)], wrt) if wrt else []
    groups: list[tuple[int, TreeDef | None]] = []
    for place, span in zip(request.places, spans, strict=True):
        tree = arguments.structures[place % len(arguments.args)]
        groups.append((len(span), None if tree.spec.is_leaf() and not tree.inner else tree))
    forms = [_gradient_form(arguments.leaves[leaf]) for leaf in places]
    labels = [f"grad_{arguments.names[leaf]}" for leaf in places]
    packed = isinstance(request.argnums, tuple)
    if request.what == "value_and_grad":
        return [y, *gradients], ["value", *labels], Result(
            (_value_form(y), *forms), ((1, None), *groups), True, nested=packed)
    return gradients, labels, Result(tuple(forms), tuple(groups), packed)


def _gradient_form(leaf: Any) -> tuple[str, str]:
    if isinstance(leaf, np.ndarray):
        return ("array", "") if leaf.ndim else ("array0d", leaf.dtype.name)
    return ("number", "") if type(leaf) is float else ("scalar", leaf.dtype.name)


def scalar_output(builder: Builder, outputs: Sequence[Value], structure: TreeDef, name: str) -> Value:
    """The one real scalar that a function to be differentiated must return.

    Raises `OutputError` for anything else.
    """
    where = next((n.where for v in reversed(outputs) if (n := v.node).where), None)
    at = f" (last computed at {where})" if where else f" (called at {user_line()})"
    if len(outputs) != 1 or not structure.spec.is_leaf() or structure.inner:
        raise OutputError(f"`{name}` returned {len(outputs)} values in a container{at}; a gradient needs one real "
                          "scalar: return the sum of what you want to differentiate")
    (y,) = outputs
    if y.shape != ():
        raise OutputError(f"`{name}` returned an array of shape {y.shape}{at}; a gradient needs one real scalar: "
                          "return its sum (np.sum) or one element")
    if y.dtype.kind == "b":
        raise OutputError(f"`{name}` returned a boolean{at}; a gradient needs a real scalar")
    if y.dtype.kind in "iu":
        from jitad.primitives.core import cast

        return cast(y, np.float64)
    return y


def differentiated(recorder: Recorder, request: Request, function: Callable[..., Any], args: Sequence[Any],
                   kwargs: dict[str, Any], name: str) -> Any:
    """The gradient, with the value if requested, on the tape of the recording that calls for it: with respect to
    aliases of the arguments, so that other uses of the same values are constants."""
    check_places(request, len(args), name)
    fresh, wrt, trees = list(args), [], []
    for place in request.places:
        leaves, tree = leaves_of(args[place])
        values = [_aliased(recorder, leaf, name) for leaf in leaves]
        fresh[place] = unflatten(tree, values)
        wrt += values
        trees.append((tree, len(values)))
    leaves, paths, tree = flatten(function(*fresh, **kwargs), "result")
    outputs = [as_output(recorder, leaf, path, user_line()) for leaf, path in zip(leaves, paths, strict=True)]
    with recorder.plain():
        y = scalar_output(recorder, outputs, tree, name)
        found = pullback(recorder, [y], [one(y)], wrt)
    gradients, start = [], 0
    for tree, count in trees:
        gradients.append(unflatten(tree, [recorder.value(v.number) for v in found[start:start + count]]))
        start += count
    gradient = tuple(gradients) if isinstance(request.argnums, tuple) else gradients[0]
    return (recorder.value(y.number), gradient) if request.what == "value_and_grad" else gradient


def _aliased(recorder: Recorder, leaf: Any, name: str) -> Any:
    from jitad.primitives.core import alias, cast
    from jitad.trace.dispatch import plain

    leaf = plain(leaf)
    value = leaf if isinstance(leaf, Value) else recorder.const(leaf, weak=type(leaf) in (int, float))
    if value.dtype.kind in "iu":
        value = cast(value, np.float64)
    if value.dtype.kind != "f":
        raise ArgumentTypeError(f"an argument of `{name}` of dtype {value.dtype} cannot be differentiated "
                                f"(called at {user_line()})")
    return recorder.value(recorder.apply(alias, [value.number], {"slot": next(_slots)}))


def write_out(result: Any, out: Any, request: Request, name: str) -> Any:
    """Copy the arrays of `result` into those of `out`, which has the gradient's structure."""
    gradient = result[1] if request.what == "value_and_grad" else result
    if (type(gradient) is type(out) is np.ndarray and gradient.shape == out.shape and gradient.dtype == out.dtype
            and out.flags.writeable):
        out[...] = gradient
        return (result[0], out) if request.what == "value_and_grad" else out
    leaves, tree = leaves_of(gradient)
    buffers, out_tree = leaves_of(out)
    if tree != out_tree:
        raise SignatureError(f"out= of `{name}` has another structure than the result (called at {user_line()})")
    for buffer, leaf in zip(buffers, leaves, strict=True):
        if not isinstance(buffer, np.ndarray) or buffer.shape != np.shape(leaf) or buffer.dtype != np.asarray(
                leaf).dtype or not buffer.flags.writeable:
            raise SignatureError(
                f"out= of `{name}` must be a writeable array of shape {np.shape(leaf)} and dtype "
                f"{np.asarray(leaf).dtype}, not {_shown(buffer)} (called at {user_line()})")
    for buffer, leaf in zip(buffers, leaves, strict=True):
        buffer[...] = leaf
    return (result[0], out) if request.what == "value_and_grad" else out


def _shown(buffer: Any) -> str:
    if isinstance(buffer, np.ndarray):
        return f"a {'' if buffer.flags.writeable else 'read-only '}{buffer.dtype} array of shape {buffer.shape}"
    return f"a {type(buffer).__name__}"
