"""Recording: run a function on traced values and keep what it does to them.

`record` makes a `Recorder`, wraps every array and number among the arguments as a `Tracer`, hands the captures of the
function to `trace.captures`, and runs a copy of the function that sees those. What comes back is a `Recording`.

This is the entry to the room: importing it fills the tables of `trace.dispatch` with the rules of all functions, which
takes a while, and is left until something is recorded.
"""
from __future__ import annotations

import contextlib
import copy
import dis
import enum
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np

from jitad.cache.keys.guards import Unguardable, freeze
from jitad.errors import ArgumentTypeError, ConcretizationError, InternalError, JitadError
from jitad.tape.builder import Value
from jitad.tape.types import Where
from jitad.trace import templates
from jitad.trace.attempts import require_unread
from jitad.trace.captures.bytecode import KINDS_TOLD, truths_asked
from jitad.trace.captures.captures import Captures
from jitad.trace.captures.objects.classes import as_originals
from jitad.trace.captures.policy import cure, is_user_class
from jitad.trace.complexes import rules as complex_rules  # noqa: F401  (fills the table)
from jitad.trace.dispatch import repeat_by
from jitad.trace.leaves import is_dynamic, refusal
from jitad.trace.numpy_rules import creation  # noqa: F401  (fills the tables, after all other rules of NumPy's)
from jitad.trace.pytree import TreeDef, classes_in, flatten
from jitad.trace.recorder import Recorder, Recording, as_output, kind_of, outside, recording
from jitad.trace.scipy_rules import functions as scipy_functions  # noqa: F401  (fills the table)
from jitad.trace.steps.known import Loops, StartOver
from jitad.trace.steps.marks import Marks
from jitad.trace.values.tracer import Tracer
from jitad.trace.values.truths import Concluding, concluded
from jitad.trace.where import fault, is_fault, is_library_file, is_own_file, user_line

__all__ = ["record"]

ROUNDS = 40                      # in which what is known of loops is found out

repeat_by(templates.repeated)


def record(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None,
           names: Sequence[str] | None = None, loops: Loops | None = None, objects: Sequence[Any] = ()) -> Recording:
    """Run `target`, as `jitad.cache.keys.identity.unwrap` gives it, on traced `args` and `kwargs`. What is known of its
    `loops` from other recordings comes into this one, and what is found out is added to it. `objects` are those that
    were given by the caller, for code that compares them by ``is``.

    Raises `ArgumentTypeError` for an argument that cannot be on a tape, `OutputError` for a result that cannot,
    `CaptureError` and `MutationError` for captures that cannot be followed, and what the function raises.
    """
    where = user_line(2)
    known = {} if loops is None else loops
    for _ in range(ROUNDS):
        try:
            return _once(target, args, kwargs, names, where, known, objects)
        except StartOver:
            continue
    for loop in known.values():
        loop.unfit = loop.unfit or "there is no end to what is found out about it"
    return _once(target, args, kwargs, names, where, known, objects)


def _once(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, names: Sequence[str] | None,
          where: Where | None, known: Loops, objects: Sequence[Any]) -> Recording:
    """One run of the function, with what is `known` of its loops; `StartOver` where more is known now."""
    function = target.function
    told = truths_asked(function, target.self, *target.args)
    recorder = Recorder(function.__qualname__, told - {KINDS_TOLD})
    recorder.kinds = KINDS_TOLD not in told
    recorder.marks = marks = Marks(recorder, known)
    traced = _Arguments(recorder, where)
    names = names or argument_names(function.__code__, len(args), len(target.bound))
    parts = [traced.take(value, name) for value, name in zip(args, names, strict=True)]
    keywords = {name: traced.take(value, name) for name, value in (kwargs or {}).items()}
    try:
        with recording(recorder), marks.watched():
            captures = recorder.captures = Captures(recorder, target, objects)
            for cls in sorted(traced.classes, key=lambda c: c.__qualname__):
                captures.argument(cls)
            given = [captures.rebuilt(part) for part in parts]
            named = {name: captures.rebuilt(part) for name, part in keywords.items()}
            captures.asked.given([*given, *named.values()])
            result = captures.run(given, named)
            recorder.check_swallowed()
            captures.finish()
            leaves, paths, structure = flatten(as_originals(result), "result")
            outputs = [as_output(recorder, leaf, path, where) for leaf, path in zip(leaves, paths, strict=True)]
            require_unread(recorder, outputs)
            marks.check(outputs)
            captures.release()
    except Exception as error:
        said = _explained(error, target, args, kwargs or {}, where)
        raise said from (error if isinstance(said, InternalError) and said is not error else said.__cause__)
    finally:
        builder = recorder.close()
    values = lambda items: tuple(Value(builder, v.number) for v in items)
    return Recording(builder, recorder.function_name, tuple(traced.values), values(traced.inputs),
                     values(captures.inputs), tuple(captures.values), values(outputs), structure, captures.plan, where,
                     tuple(o.weak if isinstance(o, Tracer) else o.aval.weak for o in outputs), known,
                     tuple(captures.asked.answers))


def _explained(error: Exception, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any],
               where: Where | None) -> Exception:
    """What a call raises where recording has raised `error`."""
    name = target.function.__qualname__
    if isinstance(error, InternalError) or is_fault(error):
        plain = _plain_error(target, args, kwargs)
        if plain is not None or isinstance(error, InternalError):
            return plain or error
        return fault(error, f"it recorded `{name}`", _line_in(error) or where)
    if _is_of_others(error) or _is_bare(error):
        plain = _plain_error(target, args, kwargs)
        if plain is None:
            return _strange(error, name, _line_in(error) or where)
        error = error if type(plain) is type(error) and not _TRACED.search(str(error)) else plain
    if isinstance(error, JitadError):
        error.add_note(f"while jitad recorded `{name}`, called at {where}")
        return error
    if not isinstance(error, (TypeError, ValueError)):
        return error
    if not isinstance(error.__cause__, JitadError):
        if "<traced" in str(error):                      # NumPy swallows what `int` of a traced value raises
            error.add_note(f"while jitad recorded `{name}`, called at {where}: a number that shapes depend on must be "
                           "known then; let the function capture it")
        elif not getattr(error, "__notes__", ()):
            error.add_note(f"while jitad recorded `{name}`, at {_line_in(error) or where}")
        return error
    error.__cause__.add_note(f"while NumPy did what ends in \"{error}\": to fill an array that a library made, "
                             "a[i] = x, take a copy of it first: a = np.array(a)")
    return error.__cause__


_RAISES = dis.opmap["RAISE_VARARGS"]
_TRACED = re.compile(r"\b(Tracer|LocalArray)\b")


def _is_of_others(error: Exception) -> bool:
    """Whether code that is not ours has raised: it may be that a traced value is none of its own."""
    if isinstance(error, JitadError) or isinstance(error.__cause__, JitadError):
        return False
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None or is_own_file(step.tb_frame.f_code.co_filename):
        return False
    code = step.tb_frame.f_code                          # what the user's own code raises, it means
    return is_library_file(code.co_filename) or code.co_code[step.tb_lasti] != _RAISES


def _is_bare(error: Exception) -> bool:
    """Whether a traced value has said that it lacks something, which may be what only a traced one lacks."""
    ours = isinstance(error, JitadError) or isinstance(error.__cause__, JitadError)
    bare = isinstance(error, (TypeError, AttributeError)) and not getattr(error, "__notes__", ())
    return bare and not ours and "<traced" not in str(error)


def _strange(error: Exception, name: str, where: Where | None) -> Exception:
    """What is said where plain numbers are taken, and traced ones are not."""
    said = f"{type(error).__name__}: {_TRACED.sub('traced value', str(error))[:200]}"
    return ConcretizationError(
        f"what runs at {where} takes plain numbers and arrays, but no value that is traced in `{name}` ({said}); write "
        "it as an operator, as a method of the value or with NumPy's function, as x.sum() or np.sum(x), or compute it "
        "outside of the function and pass the result in")


def _plain_error(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Exception | None:
    """What the function raises when it runs as it is: that is no fault of ours."""
    try:
        args, kwargs = copy.deepcopy((tuple(args), dict(kwargs)))
        bound = [] if target.self is None else [target.self]
        given = {**{name: home[name] for name, home in target.keywords.items()}, **kwargs}
        with outside(), warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            target.function(*bound, *target.args, *args, **given)
    except Exception as error:
        return error
    return None


def _line_in(error: BaseException) -> Where | None:
    """The innermost line of the user's that an error has come through."""
    step, found = error.__traceback__, None
    while step is not None:
        if not is_library_file(step.tb_frame.f_code.co_filename):
            found = Where(step.tb_frame.f_code.co_filename, step.tb_lineno, step.tb_frame.f_code.co_name)
        step = step.tb_next
    return found


class _Arguments:
    """The caller's arguments: their dynamic leaves become inputs of the tape, the others stay."""

    def __init__(self, recorder: Recorder, where: Where | None) -> None:
        self.recorder, self.where = recorder, where
        self.values: list[Any] = []
        self.inputs: list[Value] = []
        self.classes: set[type] = set()                  # those of the user, whose methods run as they are

    def take(self, value: Any, name: str) -> tuple[TreeDef | None, Any]:
        """The structure of an argument and its leaves as the code sees them; without structure, the one leaf."""
        if is_dynamic(value):
            return None, self._leaf(value, name)
        leaves, paths, structure = flatten(value, name)
        self.classes |= {cls for cls in classes_in(structure) if is_user_class(cls)}
        return structure, [self._leaf(x, path) for x, path in zip(leaves, paths, strict=True)]

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
        seen = self.recorder.seen(self.inputs[-1], leaf)
        return concluded(seen) if type(seen) is Concluding else seen


def _static_refusal(leaf: Any) -> str | None:
    """Why an argument that is no data cannot be a static value, and what to do; None when it can."""
    try:
        freeze(leaf, functions=False)
    except Unguardable:
        if (words := cure(leaf)) is not None:
            return f"is {kind_of(leaf)}: {words}"
        return (f"is {kind_of(leaf)}, of which jitad cannot tell whether it has changed: let the function capture it "
                "(a global, a closure, functools.partial) instead of passing it")
    if isinstance(leaf, type) and is_user_class(leaf) and not issubclass(leaf, enum.Enum):
        return "is a class whose code cannot be followed; let the function capture it instead of passing it"
    return None


def argument_names(code: CodeType, count: int, bound: int) -> list[str]:
    """The names of `count` positional arguments of which the first `bound` are not the caller's."""
    named = code.co_varnames[:code.co_argcount]
    star = "args"
    if code.co_flags & 0x04:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    return [named[i] if i < len(named) else f"{star}[{i - len(named)}]" for i in range(bound, bound + count)]
