"""How NumPy's functions find their rules: the tables, and the errors of a recording.

`FUNCTIONS` maps a NumPy function object to its expression in primitives, filled by `@implements`; `COMPLEX` says what
functions mean where something is complex. Nothing here knows the functions themselves: `trace.record` fills the tables.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError, MutationError, UnsupportedOperationError
from jitad.primitives.core import stop_gradient
from jitad.tape.builder import Builder, Value
from jitad.trace.leaves import altered, is_complex
from jitad.trace.reasons import WHY, advice
from jitad.trace.where import fault, is_fault, user_line

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
_SIGNATURES: dict[Any, inspect.Signature] = {}
SHARING: set[Any] = set()      # functions whose results may be views of their arguments
SOMETIMES: dict[Any, Callable[..., bool]] = {}           # those whose results may be for some arguments
Run = Callable[..., Any]

ADVICE = WHY["no rule yet"]


class Meanings:
    """What numbers, NumPy's functions and its ufuncs are where something is complex."""

    constant: Callable[[Builder, Any], Any]
    function: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    substitute: Callable[[Any, Any], Any]
    ufunc: Callable[..., Any]


COMPLEX = Meanings()


class Results:
    """How a result goes into the array that a function got as ``out=``, which `arrays.assign` says."""

    into: Callable[..., Any]


RESULTS = Results()


class _Repeats:
    """How rules are run that recorded code calls many times: each time, or by `trace.templates`, once installed."""

    by: Callable[[Any, Run, tuple[Any, ...], dict[str, Any]], Any] = staticmethod(
        lambda rule, run, args, kwargs: run(*args, **kwargs))


def repeat_by(templates: Callable[[Any, Run, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Install what runs rules."""
    _Repeats.by = staticmethod(templates)


def repeated(rule: Any, run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``run(*args, **kwargs)``, where `rule` and the types of the arguments say what that writes."""
    return _Repeats.by(rule, run, args, kwargs)


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as the rule of NumPy's `functions`."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = impl
            _SIGNATURES[function] = inspect.signature(impl)
        return impl
    return enter


def name_of(function: Any) -> str:
    """``numpy.linalg.norm``, ``scipy.special.jv``, as the user writes it."""
    if isinstance(function, np.ufunc):
        home = "numpy" if getattr(np, function.__name__, None) is function else "scipy.special"
        return f"{home}.{function.__name__}"
    return f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"


def builder_in(*things: Any) -> Builder | None:
    """The builder of the first traced value in `things`, also inside lists, tuples and dicts."""
    for thing in things:
        if isinstance(thing, Value):
            return thing.builder
        if isinstance(thing, (list, tuple)):
            found = builder_in(*thing)
        elif isinstance(thing, dict):
            found = builder_in(*thing.values())
        else:
            continue
        if found is not None:
            return found
    return None


def complex_in(*things: Any) -> bool:
    """Whether there is a complex value or number in `things`, also inside lists, tuples and dicts."""
    for thing in things:
        if isinstance(thing, Value):
            if hasattr(type(thing), "jitad_parts"):
                return True
        elif isinstance(thing, (list, tuple)):
            if complex_in(*thing):
                return True
        elif isinstance(thing, dict):
            if complex_in(*thing.values()):
                return True
        elif is_complex(thing):
            return True
    return False


_ATOMS = frozenset({float, int, bool, str, type(None), np.float64, np.ndarray})


def plain(thing: Any) -> Any:
    """Arrays that were made in recorded code (`values.local.LocalArray`), also in lists, tuples and dicts, as the
    traced value or concrete array that they are at the moment."""
    kind = type(thing)
    if kind in _ATOMS:
        return thing
    current = getattr(kind, "jitad_current", None)
    if current is not None:
        return current.fget(thing)
    if kind in (tuple, list):
        new = [plain(t) for t in thing]
        changed = any(a is not b for a, b in zip(new, thing, strict=True))
        return (tuple(new) if kind is tuple else new) if changed else thing
    if kind is dict:
        return {key: plain(value) for key, value in thing.items()}
    return thing


def strong(result: Any) -> Any:
    """A result of NumPy's has a dtype of its own, also if it is a Python number that came in."""
    if getattr(result, "weak", False):
        result = result.builder.value(result.number)
        result.weak = False
    return result


def stopped(x: Any) -> Any:
    """The value, through which no derivative flows."""
    return x.builder.value(stop_gradient(Value(x.builder, x.number)).number)


def detached(result: Any, args: Any) -> Any:
    """A result that shares no memory with the arguments."""
    if isinstance(result, (list, tuple)) and type(result) in (list, tuple):
        return type(result)(detached(r, args) for r in result)
    if not isinstance(result, Value) or not (result.ndim or getattr(result, "boxed", False)):
        return strong(result)
    if hasattr(type(result), "jitad_parts"):
        return result.detached()                                    # type: ignore[attr-defined]
    if not hasattr(result, "storage"):
        return result
    shares = result.storage is not None or any(a is result for a in args) or result.node.prim.given
    return result.detached() if shares else result                  # type: ignore[attr-defined]


def shares(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether the result of this call may be one of the arguments, or a view of it."""
    return function in SHARING or (function in SOMETIMES and SOMETIMES[function](*args, **kwargs))


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`function` of NumPy on traced values, through its rule."""
    if kwargs.get("out") is not None:
        out = kwargs.pop("out")
        return RESULTS.into(out, call(function, *args, **kwargs), name_of(function))
    return _called(function, *args, **kwargs) if shares(function, args, kwargs) else repeated(
        function, partial(_called, function), args, kwargs)


def _called(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    given, given_by_name = args, kwargs
    args, kwargs = plain(args), plain(kwargs)
    builder = builder_in(args, kwargs)
    if complex_in(args, kwargs):
        with noted_line(builder):
            return COMPLEX.function(function, args, kwargs)
    if function not in FUNCTIONS:
        raise refused(builder, name_of(function), advice(name_of(function)))
    args, kwargs = settled(function, FUNCTIONS[function], args, kwargs)
    try:
        bound = _SIGNATURES[function].bind(*args, **kwargs)
    except TypeError as error:
        raise refused(builder, f"{name_of(function)} called this way ({error})") from None
    if bound.arguments.get("out") is not None:                     # by position
        out = _SIGNATURES[function].bind(*given, **given_by_name).arguments["out"]
        del bound.arguments["out"]
        return RESULTS.into(out, _called(function, *bound.args, **bound.kwargs), name_of(function))
    with noted_line(builder):
        if builder_in(args, kwargs) is None:                        # plain numbers by now
            return _on_tape(builder, function(*args, **kwargs))
        result = FUNCTIONS[function](*args, **kwargs)
        return result if shares(function, args, kwargs) else detached(result, (*args, *kwargs.values()))


def _on_tape(builder: Any, result: Any) -> Any:
    """A concrete result, to go on with as if it were traced."""
    if isinstance(result, (list, tuple)):
        return type(result)(_on_tape(builder, r) for r in result)
    return as_value(builder, result) if isinstance(result, np.ndarray) else result


class noted_line:
    """Within, errors get the user's line as a note."""

    __slots__ = ("builder",)

    def __init__(self, builder: Builder | None) -> None:
        self.builder = builder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, Exception):
            noted(self.builder, error)


def noted(builder: Builder | None, error: Exception) -> None:
    """Add the user's line, if the error does not say it yet. A fault of ours is remembered, lest user code that catches
    it makes its fallback the truth."""
    line = line_of(builder)
    refusals = getattr(builder, "refusals", None)
    if refusals is not None and is_fault(error, surely=True) and not hasattr(error, "__jitad_noted__"):
        error.__jitad_noted__ = True  # type: ignore[attr-defined]
        refusals.append(fault(error, "it recorded", builder.where()))  # type: ignore[union-attr]
    if line and line not in str(error) and not any(line in n for n in getattr(error, "__notes__", ())):
        error.add_note(f"while jitad recorded {line}")


def line_of(builder: Builder | None) -> str:
    """The user's line in words; empty outside of a recording."""
    where = builder.where() if builder is not None else None
    return str(where) if where else ""


def _at(builder: Builder | None) -> str:
    line = line_of(builder)
    return f" at {line}" if line else ""


def refused(source: Value | Builder | None, what: str, advice: str = ADVICE) -> UnsupportedOperationError:
    """The error for what has no rule."""
    builder = source.builder if isinstance(source, Value) else source
    return _remembered(builder, UnsupportedOperationError(f"{what}{_at(builder)} has no rule yet; {advice}"))


def not_concrete(x: Value, what: str, advice: str) -> ConcretizationError:
    """The error for code that asks a traced value for a plain one."""
    return _remembered(x.builder, ConcretizationError(
        f"{what}{_at(x.builder)} needs the number behind a traced value ({x.aval}), which is known only when the "
        f"compiled function runs; {advice}"))


def beyond(source: Value | None, what: str) -> UnsupportedOperationError:
    """The error for what gives a Python integer that is too large for a tape."""
    return _remembered(source and source.builder, UnsupportedOperationError(
        f"{what} at {user_line()} gives an integer beyond 64 bits, which no tape can hold; keep it as a float, by "
        "np.floor, np.ceil, np.trunc or np.rint"))


def _remembered(builder: Any, error: Any) -> Any:
    """The error, also kept by the recording: user code that catches it must not make its fallback the truth."""
    refusals = getattr(builder, "refusals", None)
    if refusals is not None:
        refusals.append(error)
    return error


def not_mutable(source: Value | Builder | None, what: str, advice: str) -> MutationError:
    """The error for code that writes into an array that is not the recording's."""
    builder = source.builder if isinstance(source, Value) else source
    return MutationError(f"{what}{_at(builder)} would change an array in place, which is not recorded; {advice}")


def lift_all(*operands: Any) -> list[Any]:
    """`operands`, at least one of which is traced, as values of one builder."""
    builder = builder_in(*operands)
    return [as_value(builder, o) for o in operands]


def lift_with(operand: Any, *others: Any) -> Any:
    """`operand` as a value of the builder of whichever argument is traced."""
    return as_value(builder_in(operand, others), operand)


def as_value(builder: Builder | None, operand: Any) -> Any:
    """`operand` on the tape, as ``np.asarray`` would make an array of it."""
    operand = plain(operand)
    if isinstance(operand, Value):
        return operand
    assert builder is not None
    if isinstance(operand, (list, tuple)) and builder_in(operand) is not None:
        parts = [as_value(builder, o) for o in operand]
        if len({p.shape for p in parts}) > 1:
            np.array([stand_in(p.shape) for p in parts])            # raises NumPy's own message
        return call(np.stack, parts)
    if is_complex(operand):
        return COMPLEX.constant(builder, operand)
    return builder.lift(checked(builder, operand))


def checked(builder: Builder | None, operand: Any) -> Any:
    """`operand` as a number or an array of a kind that can be on a tape."""
    if type(operand) in (int, float):
        return operand
    try:
        array = np.asarray(operand)
    except ValueError as error:
        if not hasattr(operand, "__array__"):
            raise
        raise refused(builder, f"an operand of type {type(operand).__name__}, whose __array__ cannot be followed ("
                      f"{error}),", "convert it outside of the function and pass the array") from None
    if altered(type(operand)):
        raise refused(builder, f"an operand of type {type(operand).__name__}", "use np.asarray of it")
    if array.dtype.kind not in "biuf":
        raise refused(builder, f"an operand of dtype {array.dtype}",
                      "use real numbers (float64, float32, integers, booleans)")
    return array


def stand_in(shape: Sequence[int], dtype: Any = np.int8) -> np.ndarray:
    """Zeros of `shape` without memory, for NumPy's own checks and messages."""
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))


# --- what NumPy reads as plain numbers -----------------------------------------------------------
# Shapes, axes, sections, repeats: what they are decides what is recorded, and where they are traced that is a guard.

_PLAIN = frozenset("""axes axis axis1 axis2 axisa axisb axisc deg dims edge_order indices_or_sections k kth l_and_u
minlength n new_shape newshape num offset ord p pad_width repeats reps s shape shift source destination subset_by_index
trans type window_shape N d""".split())
_ORDERS = frozenset({"ord", "p"})                        # which may be no integers
_NEVER = frozenset({"comb", "perm", "factorial", "polyint", "polyval", "dist", "roots", "minkowski", "unwrap"})


@lru_cache(maxsize=2048)
def _places(function: Any, rule: Callable[..., Any]) -> tuple[tuple[int, str], ...]:
    """Position and name of the parameters of a function that are plain numbers."""
    if getattr(function, "__name__", "") in _NEVER:
        return ()
    for known in (rule, function):
        try:
            parameters = list(inspect.signature(known).parameters.values())
        except (TypeError, ValueError):
            continue
        if known is function or all(p.kind is not p.VAR_POSITIONAL for p in parameters):
            return tuple((i if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) else -1, p.name)
                         for i, p in enumerate(parameters) if p.name in _PLAIN)
    return ()


def settled(function: Any, rule: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with plain numbers where `function`, whose rule is given, takes such."""
    for place, name in _places(function, rule):
        if name in kwargs:
            found = _settled(kwargs[name], name)
            if found is not kwargs[name]:
                kwargs = {**kwargs, name: found}
        elif 0 <= place < len(args):
            found = _settled(args[place], name)
            if found is not args[place]:
                args = (*args[:place], found, *args[place + 1:])
    return args, kwargs


def _settled(x: Any, name: str) -> Any:
    if isinstance(x, (list, tuple)):
        items = [_settled(item, name) for item in x]
        changed = any(a is not b for a, b in zip(items, x, strict=True))
        return (tuple(items) if isinstance(x, tuple) else items) if changed else x
    if not isinstance(x, Value) or hasattr(type(x), "jitad_parts"):
        return x
    if x.dtype.kind not in "iub" and (name not in _ORDERS or x.ndim or x.dtype.kind != "f"):
        return x
    builder: Any = x.builder
    if not hasattr(builder, "decide_all") or (x.dtype.kind == "f" and not np.isinf(x)):     # may be differentiated by
        return x
    return order_of(x)


def order_of(x: Any) -> Any:
    """A plain number, or array: what the traced one is, which the tape is for."""
    if builder_in(x) is None:
        return x
    found = x.builder.decide_all(x)
    return found if found.ndim else found.item()
