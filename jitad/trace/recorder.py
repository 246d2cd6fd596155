"""Recording: run a function on traced values and keep what it does to them.

`record` makes a `Recorder` (the builder that the traced values write to), wraps every array and number among
the arguments as a `Tracer`, hands the captures of the function to `trace.captures`, and runs a copy of the
function that sees those. What comes back is a `Recording`.

Recorders are stacked by thread; a traced value knows its recorder. When the recording is over its nodes move
to a plain `Builder` and the recorder closes, so that a traced value that got away fails loudly.
"""
from __future__ import annotations

import enum
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from jitad.errors import ArgumentTypeError, LeakedTracerError, OutputError
from jitad.evaluate import evaluate_node
from jitad.primitives.core import SUPPORTED
from jitad.tape import Aval, Builder, Tape, Value, Where
from jitad.trace.pytree import TreeDef, flatten, unflatten

__all__ = ["Recorder", "Recording", "current", "record", "user_line"]


# --- where the user is ----------------------------------------------------------------------

def _library_folders() -> tuple[str, ...]:
    """Folders whose code is never the user's: ours, NumPy, SciPy, optree, the standard library."""
    here = Path(__file__).resolve().parent.parent
    folders = [str(here), str(here.parent / "cache")] if (here.parent / "cache" / "memory.py").exists() else [str(here)]
    for name in ("numpy", "scipy", "optree"):
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            folders.append(str(Path(module.__file__).parent))
    return tuple(f + "/" for f in folders)


_STANDARD = sysconfig.get_path("stdlib") + "/"


@lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Whether the code in this file belongs to jitad, NumPy, SciPy or Python rather than to the user."""
    if filename.startswith("<frozen"):
        return True
    path = filename.replace("\\", "/")
    standard = _STANDARD.replace("\\", "/")
    if path.startswith(standard) and not path.startswith((standard + "site-packages/", standard + "dist-packages/")):
        return True
    return path.startswith(tuple(f.replace("\\", "/") for f in _library_folders()))


def user_line(depth: int = 1) -> Where | None:
    """The innermost line of user code on the stack."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if not is_library_file(code.co_filename):
            return Where(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


# --- the recorder ---------------------------------------------------------------------------

class _Stack(threading.local):
    def __init__(self) -> None:
        self.recorders: list[Recorder] = []


_stack = _Stack()


def current() -> Recorder | None:
    """The innermost recording under way in this thread."""
    recorders = _stack.recorders
    return recorders[-1] if recorders else None


def _wrap() -> Any:
    try:
        from jitad.trace.tracer import Tracer
    except ModuleNotFoundError:  # while the tracer is being written
        return Value
    return Tracer


class Recorder(Builder):
    """The builder of one recording: its nodes are wrapped as tracers and know the user's line, and any of
    them has a concrete value, computed on demand from the actual arguments."""

    def __init__(self, function_name: str = "function") -> None:
        super().__init__(_wrap())
        self.function_name = function_name
        self.active = True
        self.captures: Any = None
        self._concrete: dict[int, Any] = {}

    def where(self) -> Where | None:
        return user_line(2)

    def traced_input(self, value: Any, name: str) -> Value:
        """A new input of the tape whose value, for this recording, is `value`."""
        aval = aval_of(value)
        traced = self.input(aval, name)
        self._concrete[traced.number] = np.asarray(value, aval.dtype)
        return traced

    def concrete(self, number: int) -> Any:
        """The value of a node for the arguments that are being recorded."""
        known, nodes = self._concrete, self.nodes
        pending = [number]
        while pending:
            n = pending[-1]
            if n in known:
                pending.pop()
                continue
            missing = [i for i in nodes[n].inputs if i not in known]
            if missing:
                pending += missing
                continue
            known[n] = evaluate_node(nodes[n], [known[i] for i in nodes[n].inputs])
            pending.pop()
        return known[number]

    @contextmanager
    def plain(self) -> Iterator[None]:
        """Within, new nodes are plain values: for rules and replays, which must not record guards."""
        wrap, self._wrap = self._wrap, Value
        try:
            yield
        finally:
            self._wrap = wrap

    def close(self) -> Builder:
        """End the recording: its nodes go on in a plain builder, and its tracers are of no more use."""
        builder = Builder()
        builder.nodes, builder.inputs, builder.names = list(self.nodes), list(self.inputs), list(self.names)
        builder._memo, self._memo = self._memo, {}
        self.active = False
        self.captures = None
        self._concrete = {}
        return builder

    def foreign(self, value: Value) -> LeakedTracerError:
        """The error for a value of another recording that is used in this one."""
        return _leaked(value.builder, f"met in the recording of `{self.function_name}`")

    def _check_active(self) -> None:
        if not self.active:
            raise _leaked(self, "used after that recording had ended")

    def input(self, aval: Aval, name: str) -> Value:
        self._check_active()
        return super().input(aval, name)

    def const(self, value: Any, weak: bool = False) -> Value:
        self._check_active()
        return super().const(value, weak)

    def apply(self, prim: Any, inputs: Sequence[int], params: Mapping[str, Any], where: Where | None = None) -> int:
        if not self.active:
            self._check_active()
        return super().apply(prim, inputs, params, where)


def _leaked(origin: Builder, what: str) -> LeakedTracerError:
    name = getattr(origin, "function_name", "a function")
    return LeakedTracerError(
        f"a traced value from the recording of `{name}` was {what}, at {user_line(3)}. It was kept in a global, a "
        "container or an attribute while the function was recorded; return it from the function instead.")


# --- leaves ---------------------------------------------------------------------------------

def is_dynamic(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an input of the tape (an array or a number) or a static value."""
    kind = type(leaf)
    return kind is np.ndarray or kind in (float, int, bool) or (
        isinstance(leaf, (np.ndarray, np.generic, float, int, complex)) and not isinstance(leaf, enum.Enum))


def aval_of(value: Any) -> Aval:
    """Shape and dtype of an array or number whose dtype is supported."""
    dtype = np.asarray(value).dtype
    return Aval(np.shape(value), dtype, type(value) in (int, float))


def refusal(value: Any) -> str | None:
    """Why an array or number cannot be an input of a tape, and what to do; None when it can."""
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        return f"is a {type(value).__name__}, whose operations are not those of arrays; pass np.asarray of it"
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        return "is an integer beyond 64 bits; pass it as a float"
    dtype = np.asarray(value).dtype
    if dtype.name not in SUPPORTED:
        if dtype.kind == "c":
            return f"is complex ({dtype}); complex numbers are not supported: pass real and imaginary parts apart"
        if dtype.kind == "O":
            return "is an object array; convert it with .astype(float)"
        return f"has dtype {dtype}, which is not supported; convert it to float64, float32, an integer or bool"
    if not dtype.isnative:
        return f"is in foreign byte order ({dtype.str}); convert it with .astype({dtype.name!r})"
    return None


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
    `plan`. `outputs` are the leaves of the result, `structure` its tree.
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

    @property
    def result(self) -> Any:
        """The result as the function returned it, with a value of the builder at each leaf."""
        return unflatten(self.structure, self.outputs)

    def tape(self) -> Tape:
        """The tape from all inputs (arguments, then captures) to the leaves of the result."""
        return self.builder.finish(self.outputs)


def record(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> Recording:
    """Run `target`, as `jitad.cache.identity.unwrap` gives it, on traced `args` and `kwargs`.

    Raises `ArgumentTypeError` for an argument that cannot be on a tape, `OutputError` for a result that cannot,
    `CaptureError` and `MutationError` for captures that cannot be followed, and what the function raises.
    """
    where = user_line(2)
    function = target.function
    recorder = Recorder(function.__qualname__)
    traced = _Arguments(recorder, where)
    names = argument_names(function.__code__, len(args), len(target.bound))
    new_args = [traced.take(value, name) for value, name in zip(args, names, strict=True)]
    new_kwargs = {name: traced.take(value, name) for name, value in (kwargs or {}).items()}
    _stack.recorders.append(recorder)
    try:
        captures = _captures(recorder, target)
        result = captures.run(new_args, new_kwargs)
        captures.finish()
        leaves, paths, structure = flatten(result, "result")
        outputs = [_output(recorder, leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
    finally:
        _stack.recorders.pop()
        builder = recorder.close()
    values = lambda items: tuple(Value(builder, v.number) for v in items)
    return Recording(builder, recorder.function_name, tuple(traced.values), values(traced.inputs),
                     values(captures.inputs), tuple(captures.values), values(outputs), structure, captures.plan, where)


class _Arguments:
    """The caller's arguments: their dynamic leaves become inputs of the tape, the others stay."""

    def __init__(self, recorder: Recorder, where: Where | None) -> None:
        self.recorder, self.where = recorder, where
        self.values: list[Any] = []
        self.inputs: list[Value] = []

    def take(self, value: Any, name: str) -> Any:
        if is_dynamic(value):
            return self._leaf(value, name)
        leaves, paths, structure = flatten(value, name)
        return unflatten(structure, [self._leaf(x, path) for x, path in zip(leaves, paths, strict=True)])

    def _leaf(self, leaf: Any, path: str) -> Any:
        if not is_dynamic(leaf):
            return leaf
        why = refusal(leaf)
        if why is not None:
            raise ArgumentTypeError(
                f"argument `{path}` of `{self.recorder.function_name}` {why} (called at {self.where})")
        self.values.append(leaf)
        self.inputs.append(self.recorder.traced_input(leaf, path))
        return self.inputs[-1]


def _output(recorder: Recorder, leaf: Any, path: str) -> Value:
    if isinstance(leaf, Value):
        if leaf.builder is not recorder:
            raise recorder.foreign(leaf)
        return leaf
    why = refusal(leaf) if is_dynamic(leaf) else f"is {_kind(leaf)}"
    if why is not None:
        hint = "; is a return statement missing?" if leaf is None else "; return arrays and numbers"
        raise OutputError(f"`{recorder.function_name}` returned something that cannot be on a tape: "
                          f"{path} {why}{hint}")
    return recorder.const(leaf, weak=type(leaf) in (int, float))


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


class _NoCaptures:
    """Until trace.captures is there: the function itself."""

    plan = None
    inputs: tuple[Value, ...] = ()
    values: tuple[Any, ...] = ()

    def __init__(self, recorder: Recorder, target: Any) -> None:
        self.target = target

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        t = self.target
        keywords = {name: home[name] for name, home in t.keywords.items()}
        return t.function(*t.bound, *args, **{**keywords, **kwargs})

    def finish(self) -> None:
        pass


def _captures(recorder: Recorder, target: Any) -> Any:
    return _NoCaptures(recorder, target)
