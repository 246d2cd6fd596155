"""Recording: run a function on traced values and keep what it does to them.

`record` makes a `Recorder` (the builder that the traced values write to), wraps every array and number among
the arguments as a `Tracer`, hands the captures of the function to `trace.captures`, and runs a copy of the
function that sees those. What comes back is a `Recording`.

Recorders are stacked by thread; a traced value knows its recorder. When the recording is over its nodes move
to a plain `Builder` and the recorder closes, so that a traced value that got away fails loudly.
"""
from __future__ import annotations

import enum
import gc
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from jitad.cache.keys.guards import Unguardable, freeze
from jitad.errors import ArgumentTypeError, ConcretizationError, JitadError, LeakedTracerError, OutputError
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate_node
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Where
from jitad.trace.captures.captures import Captures
from jitad.trace.captures.policy import is_user_class
from jitad.trace.dispatch import plain
from jitad.trace.leaves import aval_of, is_complex, is_dynamic, packed, refusal
from jitad.trace.pytree import TreeDef, classes_in, flatten, unflatten
from jitad.trace.values.pairs import Complex, as_complex, constant, output_of, unpacked
from jitad.trace.values.tracer import Tracer
from jitad.trace.where import is_library_file, user_line

__all__ = ["Recorder", "Recording", "as_output", "current", "record", "user_line"]


# --- the recorder ---------------------------------------------------------------------------

class _Stack(threading.local):
    def __init__(self) -> None:
        self.recorders: list[Recorder] = []


_stack = _Stack()


def current() -> Recorder | None:
    """The innermost recording under way in this thread."""
    recorders = _stack.recorders
    return recorders[-1] if recorders else None


@contextmanager
def outside() -> Iterator[None]:
    """As if this thread recorded nothing: for Python code that is called, not recorded."""
    recorders, _stack.recorders = _stack.recorders, []
    try:
        yield
    finally:
        _stack.recorders = recorders


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector: a tape has no cycles, and may have a million nodes to look through; one look at
    all that is imported takes as long as a small kernel."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Recorder(Builder):
    """The builder of one recording: its nodes are wrapped as tracers and know the user's line, and any of
    them has a concrete value, computed on demand from the actual arguments."""

    def __init__(self, function_name: str = "function") -> None:
        super().__init__(Tracer)
        self.function_name = function_name
        self.active = True
        self.captures: Any = None
        self.refusals: list[JitadError] = []             # raised so far; see `trace.dispatch`
        self._concrete: dict[int, Any] = {}
        self._lines: dict[int, tuple[CodeType, dict[int, Where] | None]] = {}
        self.placed: dict[int, tuple[int, Any]] = {}     # constants of templates; see `trace.templates`
        self.examples: dict[int, int] = {}               # placeholders for one example -> all of them
        self.likely: dict[int, int] = {}                 # placeholders -> what has the value that they may have
        self.explorer: Any = None                        # decides in place of the values; see `trace.elementwise`

    def where(self, depth: int = 1) -> Where | None:
        """The user's line: the innermost one from `depth` frames above this method outwards."""
        if self.line is not None:
            return self.line
        known, frame = self._lines, sys._getframe(depth)
        while frame is not None:
            code = frame.f_code
            entry = known.get(id(code))
            if entry is None:                            # with the code, which must live as long as its id is used
                entry = known[id(code)] = (code, None if is_library_file(code.co_filename) else {})
            lines = entry[1]
            if lines is not None:
                place = lines.get(frame.f_lasti)
                if place is None:
                    place = lines[frame.f_lasti] = Where(code.co_filename, frame.f_lineno, code.co_name)
                return place
            frame = frame.f_back                         # type: ignore[assignment]
        return None

    def traced_input(self, value: Any, name: str) -> Value:
        """A new input of the tape whose value, for this recording, is `value`."""
        aval = aval_of(value)
        traced: Any = self.input(aval, name)
        traced.boxed = isinstance(value, np.ndarray) and not aval.shape
        self._concrete[traced.number] = packed(value) if is_complex(value) else np.asarray(value, aval.dtype)
        return traced

    @staticmethod
    def seen(traced: Value, value: Any) -> Any:
        """What recorded code gets for the input of `value`: of what is complex, a pair of views."""
        return unpacked(traced, value) if is_complex(value) else traced

    def concrete(self, number: int) -> Any:
        """The value of a node for the arguments that are being recorded."""
        known, nodes = self._concrete, self.nodes
        pending = [number]
        while pending:
            n = pending[-1]
            if n in known:
                pending.pop()
                continue
            if n in self.examples and nodes[self.examples[n]].aval.shape[0]:
                if self.examples[n] in known:
                    known[n] = known[self.examples[n]][0]
                    pending.pop()
                else:
                    pending.append(self.examples[n])
                continue
            if nodes[n].prim.kind == "input":
                raise ConcretizationError(
                    f"the code at {user_line()} needs the number behind a traced value, which is not known inside the "
                    "body of a scan or loop, or of a rule's cotangent and result; use np.where for a choice there")
            missing = [i for i in nodes[n].inputs if i not in known]
            if missing:
                pending += missing
                continue
            known[n] = evaluate_node(nodes[n], [known[i] for i in nodes[n].inputs])
            pending.pop()
        return known[number]

    def know(self, number: int, value: Any) -> None:
        """Keep the value of a node that has been computed elsewhere."""
        self._concrete[number] = value

    def decide(self, value: Value) -> Any:
        """The number behind a 0-d boolean or integer. The tape is right for calls with the same one only."""
        if self.explorer is not None:
            chosen = self.explorer.decide(value)
            if chosen is not None:
                return chosen
        found = self.concrete(value.number).item()
        self.guard(value, found, user_line(2))
        return found

    def decide_all(self, value: Value) -> np.ndarray:
        """As `decide`, for every element of an array: what a mask selects decides on shapes."""
        found = np.array(self.concrete(value.number))
        with self.plain():
            same = TABLE["eq"](self.value(value.number), found)
            same = TABLE["reduce_all"](same, axes=tuple(range(same.ndim)))
        self.guard(same, True, user_line(2))
        return found

    @contextmanager
    def plain(self) -> Iterator[None]:
        """Within, new nodes are plain values: for rules and replays, which must not record guards."""
        wrap, self._wrap = self._wrap, Value
        try:
            yield
        finally:
            self._wrap = wrap

    def as_complex(self, x: Value, dtype: Any) -> Value:
        """`x` in a complex dtype."""
        return as_complex(x, dtype)

    def close(self) -> Builder:
        """End the recording: its nodes go on in a plain builder, and its tracers are of no more use."""
        builder = Builder()
        builder.nodes, builder.inputs, builder.names = list(self.nodes), list(self.inputs), list(self.names)
        builder._memo, self._memo = self._memo, {}
        builder.guards = dict(self.guards)
        self.active = False
        self.captures = None
        self._concrete = {}
        return builder

    def extend(self, number: int, params: Mapping[str, Any]) -> None:
        super().extend(number, params)
        self._concrete.pop(number, None)

    def foreign(self, value: Value) -> LeakedTracerError:
        """The error for a value of another recording that is used in this one."""
        return _leaked(value.builder, f"met in the recording of `{self.function_name}`")

    def check_active(self) -> None:
        if not self.active:
            raise _leaked(self, "used after that recording had ended")

    def input(self, aval: Aval, name: str) -> Value:
        self.check_active()
        return super().input(aval, name)

    def const(self, value: Any, weak: bool = False) -> Value:
        self.check_active()
        return super().const(value, weak)

    def apply(self, prim: Any, inputs: Sequence[int], params: Mapping[str, Any], where: Where | None = None) -> int:
        if not self.active:
            self.check_active()
        return super().apply(prim, inputs, params, where)


def _leaked(origin: Builder, what: str) -> LeakedTracerError:
    name = getattr(origin, "function_name", "a function")
    return LeakedTracerError(
        f"a traced value from the recording of `{name}` was {what}, at {user_line(3)}. It was kept in a global, a "
        "container or an attribute while the function was recorded; return it from the function instead.")


# --- arguments and their names --------------------------------------------------------------

def argument_names(code: CodeType, count: int, bound: int) -> list[str]:
    """The names of `count` positional arguments of which the first `bound` are not the caller's."""
    named = code.co_varnames[:code.co_argcount]
    star = "args"
    if code.co_flags & 0x04:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    return [named[i] if i < len(named) else f"{star}[{i - len(named)}]" for i in range(bound, bound + count)]


@dataclass(frozen=True)
class Recording:
    """What a function did on its arguments.

    `builder` holds all nodes. `arguments` are the values and `argument_inputs` the tape inputs of the dynamic
    leaves of the call, in the order of its leaves; `captured_inputs` those of the captures, in the order of
    `plan`. `outputs` are the leaves of the result, `structure` its tree; `weak` says which are Python numbers.
    """

    builder: Builder
    function_name: str
    arguments: tuple[Any, ...]
    argument_inputs: tuple[Value, ...]
    captured_inputs: tuple[Value, ...]
    captured: tuple[Any, ...]
    outputs: tuple[Value, ...]
    structure: TreeDef
    plan: Any = None
    where: Where | None = None
    weak: tuple[bool, ...] = ()

    @property
    def result(self) -> Any:
        """The result as the function returned it, with a value of the builder at each leaf."""
        return unflatten(self.structure, self.outputs)

    def tape(self) -> Tape:
        """The tape from all inputs (arguments, then captures) to the leaves of the result."""
        return self.builder.finish(self.outputs)


def record(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None,
           names: Sequence[str] | None = None) -> Recording:
    """Run `target`, as `jitad.cache.keys.identity.unwrap` gives it, on traced `args` and `kwargs`.

    Raises `ArgumentTypeError` for an argument that cannot be on a tape, `OutputError` for a result that cannot,
    `CaptureError` and `MutationError` for captures that cannot be followed, and what the function raises.
    """
    where = user_line(2)
    function = target.function
    recorder = Recorder(function.__qualname__)
    traced = _Arguments(recorder, where)
    names = names or argument_names(function.__code__, len(args), len(target.bound))
    new_args = [traced.take(value, name) for value, name in zip(args, names, strict=True)]
    new_kwargs = {name: traced.take(value, name) for name, value in (kwargs or {}).items()}
    _stack.recorders.append(recorder)
    try:
        captures = recorder.captures = Captures(recorder, target)
        for cls in sorted(traced.classes, key=lambda c: c.__qualname__):
            captures.scan.argument(cls)
        result = captures.run(new_args, new_kwargs)
        if recorder.refusals:                            # and caught by the function, which would go on without
            raise recorder.refusals[0]
        captures.finish()
        leaves, paths, structure = flatten(result, "result")
        outputs = [as_output(recorder, leaf, path, where) for leaf, path in zip(leaves, paths, strict=True)]
        captures.release()
    except JitadError as error:
        error.add_note(f"while jitad recorded `{function.__qualname__}`, called at {where}")
        raise
    except (TypeError, ValueError) as error:
        if not isinstance(error.__cause__, JitadError):
            if "<traced" in str(error):                  # NumPy swallows what `int` of a traced value raises
                error.add_note(f"while jitad recorded `{function.__qualname__}`, called at {where}: a number that "
                               "shapes depend on must be known then; let the function capture it")
            raise
        error.__cause__.add_note(f"while NumPy did what ends in \"{error}\": to fill an array that a library made, "
                                 "a[i] = x, take a copy of it first: a = np.array(a)")
        raise error.__cause__ from None
    finally:
        _stack.recorders.pop()
        builder = recorder.close()
    values = lambda items: tuple(Value(builder, v.number) for v in items)
    return Recording(builder, recorder.function_name, tuple(traced.values), values(traced.inputs),
                     values(captures.inputs), tuple(captures.values), values(outputs), structure, captures.plan, where,
                     tuple(o.weak if isinstance(o, Tracer) else o.aval.weak for o in outputs))


class _Arguments:
    """The caller's arguments: their dynamic leaves become inputs of the tape, the others stay."""

    def __init__(self, recorder: Recorder, where: Where | None) -> None:
        self.recorder, self.where = recorder, where
        self.values: list[Any] = []
        self.inputs: list[Value] = []
        self.classes: set[type] = set()                  # those of the user, whose methods run as they are

    def take(self, value: Any, name: str) -> Any:
        if is_dynamic(value):
            return self._leaf(value, name)
        leaves, paths, structure = flatten(value, name)
        self.classes |= {cls for cls in classes_in(structure) if is_user_class(cls)}
        return unflatten(structure, [self._leaf(x, path) for x, path in zip(leaves, paths, strict=True)])

    def _leaf(self, leaf: Any, path: str) -> Any:
        if isinstance(leaf, Value):
            raise self.recorder.foreign(leaf)
        static = not is_dynamic(leaf)
        why = _static_refusal(leaf) if static else refusal(leaf)
        if why is not None:
            raise ArgumentTypeError(
                f"argument `{path}` of `{self.recorder.function_name}` {why} (called at {self.where})")
        if static:
            if isinstance(leaf, enum.Enum) and is_user_class(type(leaf)):
                self.classes.add(type(leaf))
            return leaf
        self.values.append(leaf)
        self.inputs.append(self.recorder.traced_input(leaf, path))
        return self.recorder.seen(self.inputs[-1], leaf)


def _static_refusal(leaf: Any) -> str | None:
    """Why an argument that is no data cannot be a static value, and what to do; None when it can."""
    try:
        freeze(leaf, functions=False)
    except Unguardable:
        return (f"is {_kind(leaf)}, of which jitad cannot tell whether it has changed: let the function capture it "
                "(a global, a closure, functools.partial) instead of passing it")
    if isinstance(leaf, type) and is_user_class(leaf) and not issubclass(leaf, enum.Enum):
        return "is a class whose code cannot be followed; let the function capture it instead of passing it"
    return None


def as_output(recorder: Recorder, leaf: Any, path: str, where: Where | None) -> Value:
    """A leaf of a result as a value of the recording; raises `OutputError` for what cannot be one."""
    leaf = plain(leaf)
    if isinstance(leaf, Value):
        if leaf.builder is not recorder:
            raise recorder.foreign(leaf)
        if isinstance(leaf, Complex):
            return output_of(leaf)
        return leaf.detached() if isinstance(leaf, Tracer) and leaf.storage is not None else leaf   # as it is now
    why = refusal(leaf) if is_dynamic(leaf) else f"is {_kind(leaf)}"
    if why is not None:
        hint = "; is a return statement missing?" if leaf is None else "; return arrays and numbers"
        raise OutputError(f"`{recorder.function_name}` returned something that cannot be on a tape: "
                          f"{path} {why} (called at {where}){hint}")
    if is_complex(leaf):
        return output_of(constant(recorder, leaf))
    return recorder.const(leaf, weak=type(leaf) in (int, float))


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
