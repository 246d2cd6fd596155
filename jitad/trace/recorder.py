"""The recorder: the builder that the traced values of one recording write to, and what comes of it, a `Recording`.

Recorders are stacked by thread; a traced value knows its recorder. When the recording is over its nodes move
to a plain `Builder` and the recorder closes, so that a traced value that got away fails loudly.
"""
from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError, JitadError, LeakedTracerError, OutputError, made
from jitad.primitives.linalg.failures import may_fail
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate_node
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Where
from jitad.trace.attempts import attempted
from jitad.trace.catching import may_be_caught
from jitad.trace.dispatch import plain
from jitad.trace.leaves import aval_of, is_complex, is_dynamic, packed, refusal
from jitad.trace.pytree import TreeDef, unflatten
from jitad.trace.values.pairs import Complex, as_complex, constant, output_of, unpacked
from jitad.trace.values.tracer import Tracer
from jitad.trace.values.truths import Concluding
from jitad.trace.where import CodeLines, came_to_user, is_library_file, user_line

__all__ = ["Recorder", "Recording", "as_output", "current", "in_handler", "kind_of", "outside", "recording",
           "uncollected"]


# --- the recorder ---------------------------------------------------------------------------

class _Stack(threading.local):
    def __init__(self) -> None:
        self.recorders: tuple[Recorder, ...] = ()        # never changed, but replaced and put back: see `recording`


_stack = _Stack()


def current() -> Recorder | None:
    """The innermost recording under way in this thread."""
    recorders = _stack.recorders
    return recorders[-1] if recorders else None


class outside:
    """As if this thread recorded nothing: for Python code that is called, not recorded."""

    __slots__ = ("recorders",)

    def __enter__(self) -> None:
        self.recorders, _stack.recorders = _stack.recorders, ()

    def __exit__(self, *_: object) -> None:
        _stack.recorders = self.recorders


def in_handler() -> bool:
    """Whether a handler of signals runs, which has come between whatever was recorded: it has no part in that."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {handler.__code__ for handler in handlers if isinstance(handler, FunctionType)}
    codes |= {handler.__func__.__code__ for handler in handlers if isinstance(handler, MethodType)}
    frame = sys._getframe(1) if codes else None
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back                             # type: ignore[assignment]
    return frame is not None


class recording:
    """Within, `recorder` is the innermost one of this thread, and keeps jitad's errors. Afterwards all is as it was,
    whatever a handler of signals that came between, or was cut off, has left (a generator that is cut off would put
    back later what it found)."""

    __slots__ = ("outer", "recorder", "recorders")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.recorders, self.outer = _stack.recorders, getattr(made, "errors", None)
        _stack.recorders, made.errors = (*self.recorders, self.recorder), self.recorder.errors

    def __exit__(self, *_: object) -> None:
        _stack.recorders, made.errors = self.recorders, self.outer
        if self.outer is not None:
            self.outer += self.recorder.errors


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

    def __init__(self, function_name: str = "function", truths: frozenset[str] = frozenset()) -> None:
        super().__init__(Concluding if truths else Tracer)
        self.truths = truths                             # which ones are told by identity; see `values.truths`
        self.function_name = function_name
        self.active = True
        self.captures: Any = None
        self.refusals: list[Exception] = []              # raised so far; see `trace.dispatch`
        self.errors: list[JitadError] = []               # all that were made so far
        self.kinds = True                                # whether classes of numbers have stand-ins; see `values.kinds`
        self.bodies = 0                                  # of loops and branches that are being recorded
        self.fallible: list[int] = []                    # nodes that may fail, which nothing would catch
        self.indices: list[tuple[int, int, int]] = []    # computed ones, each with the axis and its length
        self.compared: Any = None                        # by == last; see `values.operators`
        self.required: set[int] = set()                  # nodes whose numbers are finite, or the call fails
        self.unmet: list[tuple[int, Exception]] = []     # what must hold in a loop's step, or raise this
        self._home = sys._getframe(1).f_code             # of whoever records: frames further out are the caller's
        self._concrete: dict[int, Any] = {}
        self._certain: set[int] = set()                  # nodes that `knows` has found to have numbers
        self._lines: dict[int, tuple[CodeType, CodeLines | None]] = {}
        self.placed: dict[int, tuple[int, Any]] = {}     # constants of templates; see `trace.templates`
        self.examples: dict[int, int] = {}               # placeholders for one example -> all of them
        self.likely: dict[int, int] = {}                 # placeholders -> what has the value that they may have
        self.explorer: Any = None                        # decides in place of the values; see `elements.branches`
        self.marks: Any = None                           # of loops that are walked; see `trace.steps`
        self.moment = 0                                  # counts their steps

    def where(self, depth: int = 1) -> Where | None:
        """The user's line: the innermost one from `depth` frames above this method outwards."""
        if self.line is not None:
            return self.line
        known, frame = self._lines, sys._getframe(depth)
        while frame is not None:
            code = frame.f_code
            entry = known.get(id(code))
            if entry is None:                            # with the code, which must live as long as its id is used
                entry = known[id(code)] = (code, None if is_library_file(code.co_filename) else CodeLines(code))
            if entry[1] is not None:
                return entry[1].at(frame.f_lasti)
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
            if nodes[n].is_input:
                raise ConcretizationError(
                    f"the code at {user_line()} needs the number behind a traced value, which is not known inside the "
                    "body of a scan or loop, or of a rule's cotangent and result; use np.where for a choice there")
            missing = [i for i in nodes[n].inputs if i not in known]
            if missing:
                pending += missing
                continue
            try:
                known[n] = evaluate_node(nodes[n], [known[i] for i in nodes[n].inputs])
            except Exception as error:                   # not where it is computed now, but where it was written
                self.refusals.append(error)
                raise
            pending.pop()
        return known[number]

    def knows(self, number: int) -> bool:
        """Whether there is a number behind a node: not if it depends on what is known only step by step of a loop."""
        nodes, stack, seen = self.nodes, [number], set[int]()
        while stack:
            n = stack.pop()
            if n in seen or n in self._certain or n in self._concrete:
                continue
            if nodes[n].is_input and n not in self.examples:
                return False
            seen.add(n)
            stack += nodes[n].inputs
        self._certain |= seen
        return True

    def forget(self, since: int) -> None:
        """Let go of the values of nodes from `since` on, but for inputs: in the next step of a loop they are others."""
        for number in [n for n in self._concrete if n >= since and not self.nodes[n].is_input]:
            del self._concrete[number]

    def know(self, number: int, value: Any) -> None:
        """Keep the value of a node that has been computed elsewhere."""
        self._concrete[number] = value

    def decide(self, value: Value) -> Any:
        """The number behind a 0-d boolean or integer. The tape is right for calls with the same one only."""
        if self.explorer is not None:
            chosen = self.explorer.decide(value)
            if chosen is not None:
                return chosen
        elif self.marks is not None:
            chosen = self.marks.decide(value)
            if chosen is not None:
                return chosen
        found = self.concrete(value.number).item()
        self.guard(value, found, user_line(2))
        return found

    def guard(self, value: Value, expected: bool | int, where: Where | None = None) -> None:
        if self.marks is None or not self.marks.runs or not self.marks.guard(value, expected):
            super().guard(value, expected, where)

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
        wrap, self.wrap = self.wrap, Value
        try:
            yield
        finally:
            self.wrap = wrap

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within, the body of a loop or a branch is recorded, of which nothing is a branch of the recording."""
        self.bodies += 1
        try:
            yield
        finally:
            self.bodies -= 1

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
        self._concrete, self.errors = {}, []
        return builder

    def extend(self, number: int, params: Mapping[str, Any]) -> None:
        super().extend(number, params)
        self._concrete.pop(number, None)

    def foreign(self, value: Value) -> LeakedTracerError:
        """The error for a value of another recording that is used in this one."""
        return _leaked(value.builder, f"met in the recording of `{self.function_name}`")

    def check_swallowed(self) -> None:
        """Raise an error of jitad's that the user's code has caught, to go on without."""
        for error in (*self.refusals, *filter(came_to_user, self.errors)):
            raise error

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
        if not may_fail(prim, params):
            return super().apply(prim, inputs, params, where)
        if self.may_be_caught():
            return attempted(self, prim, inputs, params)
        number = super().apply(prim, inputs, params, where)
        if self.wrap is Tracer and not self.bodies:  # the user's own, not a rule's
            self.fallible.append(number)
        return number

    def may_be_caught(self) -> bool:
        """Whether the recorded code would catch what is raised now, for the numbers at hand."""
        return self.explorer is None and not self.bodies and self.inside_try()

    def inside_try(self) -> bool:
        """Whether the recorded code is where it catches exceptions."""
        return may_be_caught(self._home)


def _leaked(origin: Builder, what: str) -> LeakedTracerError:
    name = getattr(origin, "function_name", "a function")
    return LeakedTracerError(
        f"a traced value from the recording of `{name}` was {what}, at {user_line(3)}. It was kept in a global, a "
        "container or an attribute while the function was recorded; return it from the function instead.")


# --- results ----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Recording:
    """What a function did on its arguments.

    `builder` holds all nodes. `arguments` are the values and `argument_inputs` the tape inputs of the dynamic
    leaves of the call, in the order of its leaves; `captured_inputs` those of the captures, in the order of
    `plan`. `outputs` are the leaves of the result, `structure` its tree; `weak` says which are Python numbers;
    `loops` is what is known of its loops, see `trace.steps.known`; `asked` what was asked of the arguments by ``is``.
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
    loops: Any = None
    asked: tuple[Any, ...] = ()

    @property
    def result(self) -> Any:
        """The result as the function returned it, with a value of the builder at each leaf."""
        return unflatten(self.structure, self.outputs)

    def tape(self) -> Tape:
        """The tape from all inputs (arguments, then captures) to the leaves of the result."""
        return self.builder.finish(self.outputs)


def as_output(recorder: Recorder, leaf: Any, path: str, where: Where | None) -> Value:
    """A leaf of a result as a value of the recording; raises `OutputError` for what cannot be one."""
    leaf = plain(leaf)
    if isinstance(leaf, Value):
        if leaf.builder is not recorder:
            raise recorder.foreign(leaf)
        if isinstance(leaf, Complex):
            return output_of(leaf)
        return leaf.detached() if isinstance(leaf, Tracer) and leaf.storage is not None else leaf   # as it is now
    why = refusal(leaf) if is_dynamic(leaf) else f"is {kind_of(leaf)}"
    if why is not None:
        hint = "; is a return statement missing?" if leaf is None else "; return arrays and numbers" + (
            ", by .to_numpy()" if hasattr(type(leaf), "jitad_array") else "")
        raise OutputError(f"`{recorder.function_name}` returned something that cannot be on a tape: "
                          f"{path} {why} (called at {where}){hint}")
    if is_complex(leaf):
        return output_of(constant(recorder, leaf))
    return recorder.const(leaf, weak=type(leaf) in (int, float))


def kind_of(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
