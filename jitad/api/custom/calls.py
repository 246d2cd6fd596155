"""Functions that recorded code calls in a way of their own: the callable, and its call taken apart."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitad.call.messages import by_name
from jitad.call.pickling import restored
from jitad.errors import ArgumentTypeError, CaptureError, UnsupportedOperationError
from jitad.passes.differentiate.custom import custom
from jitad.primitives.core import FLOATS, alias, stop_gradient
from jitad.tape.builder import Value
from jitad.tape.types import seen_through
from jitad.trace.dispatch import plain
from jitad.trace.leaves import is_dynamic
from jitad.trace.pytree import TreeDef, flatten, leaves_of, unflatten
from jitad.trace.recorder import Recorder, current
from jitad.trace.where import user_line

__all__ = ["CustomCall", "MadeHere", "Recordable", "as_it_is", "copied", "custom", "handed", "is_number", "like",
           "line_of_code", "name_of", "shares"]

ALIAS = -1       # the slot of the aliases that stand for arguments, which may not be written


class Recordable:
    """A callable that recorded code calls by `on_tape`."""

    __name__: str

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        if not callable(function):
            raise ArgumentTypeError(f"jitad.{kind} needs a function, not a {type(function).__name__} "
                                    f"(at {user_line()})")
        self.__wrapped__ = function
        self.__name__ = name_of(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__module__ = getattr(function, "__module__", __name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__jitad_transform__: tuple[Any, ...] = (kind,)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return self.plainly(*args, **kwargs)
        return self.on_tape(MadeHere(recorder), args, kwargs)

    def __jitad_nested__(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.on_tape(view, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def settings(self) -> tuple[Any, ...]:
        """What makes this of its function."""
        return (self.__jitad_transform__[0],)

    def __jitad_with__(self, function: Callable[..., Any]) -> Any:
        """The same of another function."""
        return type(self)(function, *self.settings)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By name where there is one: it stands between a function and its own name."""
        return self.__qualname__ if by_name(self) else (
            restored, (self.__jitad_transform__[0], self.__wrapped__, *self.settings))

    def __repr__(self) -> str:
        return f"<jitad {self.__jitad_transform__[0]} {self.__name__}>"

    def plainly(self, *args: Any, **kwargs: Any) -> Any:
        """The call outside of recordings."""
        return self.__wrapped__(*args, **kwargs)

    def on_tape(self, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call in the recording of `view`, by which captures are taken."""
        raise NotImplementedError


class MadeHere:
    """In place of a `CaptureView`, for what was not reached by a capture: made in the recorded function itself."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.captures, self.path = recorder, recorder.captures, None

    def copy_of(self, function: Any, attribute: str = "__wrapped__") -> Any:
        return self.captures.copy_of(function)


def as_it_is(view: Any, function: Any, attribute: str) -> Any:
    """A function of the user that is called, not recorded; noted by its identity."""
    if view.path is None:
        raise CaptureError(
            f"`{name_of(function)}`, which is called as opaque Python at {user_line()}, was made in the function that "
            "is recorded, or reached in a way that cannot be followed; make it outside, and use it by its name")
    return view.captures.static(function, view.path.step("attr", attribute))


def name_of(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def line_of_code(function: Any) -> str:
    """Where a function is, for errors."""
    while not isinstance(function, FunctionType):
        inner = getattr(function, "__func__", None) or getattr(function, "func", None) or getattr(
            function, "__wrapped__", None)
        if inner is None:
            return f"at {user_line()}"
        function = inner
    return f"at {function.__code__.co_filename}:{function.__code__.co_firstlineno}"


@dataclass
class CustomCall:
    """The positional inputs of a call as leaves: `traced` are the values among them, at the `places` in all leaves;
    `moving` says which of the traced ones are differentiated."""

    recorder: Recorder
    name: str
    leaves: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    trees: list[TreeDef] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, recorder: Recorder, function: Any, args: Sequence[Any], kwargs: dict[str, Any],
           name: str) -> CustomCall:
        """Keywords go to the places of their parameters, and defaults are inputs like others."""
        call = cls(recorder, name)
        for number, arg in enumerate(_positional(function, args, kwargs, name)):
            leaves, paths, _ = flatten(arg, f"input {number}")
            tree = leaves_of(unflatten(leaves_of(arg)[1], leaves))[1]          # a captured dict as any other
            leaves = [plain(x) for x in leaves]
            if any(isinstance(x, Value) and x.builder is not recorder for x in leaves):
                raise recorder.foreign(next(x for x in leaves if isinstance(x, Value) and x.builder is not recorder))
            if any(isinstance(x, Value) and x.dtype.kind == "c" for x in leaves):
                raise UnsupportedOperationError(
                    f"`{name}` at {user_line()} gets a complex number, for which there are no rules of the user's own "
                    "yet; pass its real and imaginary parts")
            call.leaves += [lifted(recorder, x) for x in leaves]
            call.paths += paths
            call.trees.append(tree)
            call.counts.append(len(leaves))
        return call

    @property
    def places(self) -> list[int]:
        return [i for i, x in enumerate(self.leaves) if isinstance(x, Value)]

    @property
    def moving(self) -> list[int]:
        """The places of what may be differentiated."""
        return [i for i in self.places if self.leaves[i].dtype.char in FLOATS]

    def inputs(self, replaced: dict[int, Any] | None = None) -> list[Any]:
        """The inputs again, with leaves replaced by their places."""
        leaves = [(replaced or {}).get(i, x) for i, x in enumerate(self.leaves)]
        return self.structured(leaves)

    def structured(self, leaves: Sequence[Any]) -> list[Any]:
        result, start = [], 0
        for tree, count in zip(self.trees, self.counts, strict=True):
            result.append(unflatten(tree, leaves[start:start + count]))
            start += count
        return result

    def stopped(self) -> dict[int, Any]:
        """Stand-ins for what may be differentiated, which stop derivatives and may not be written."""
        return {i: copied(self.recorder, self.leaves[i], stop=True) for i in self.moving}

    def protected(self) -> dict[int, Any]:
        """Stand-ins that may not be written."""
        return {i: copied(self.recorder, self.leaves[i]) for i in self.moving}


def _positional(function: Any, args: Sequence[Any], kwargs: dict[str, Any], name: str) -> tuple[Any, ...]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        if not kwargs:
            return tuple(args)
        raise ArgumentTypeError(f"`{name}` takes its inputs by position (called at {user_line()})") from None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentTypeError(f"`{name}` takes its inputs by position, for its rules too, not the keyword-only "
                                f"`{next(iter(bound.kwargs))}` (called at {user_line()})")
    return bound.args


def copied(recorder: Recorder, x: Any, stop: bool = False, slot: int = ALIAS) -> Any:
    """The same value as an argument that may not be written."""
    number = x.number
    if stop:
        number = recorder.apply(stop_gradient, [number], {})
    made = recorder.value(recorder.apply(alias, [number], {"slot": slot}))
    return like(made, x)


def like(made: Any, x: Any) -> Any:
    made.weak, made.boxed = getattr(x, "weak", False), getattr(x, "boxed", False)
    return made


def handed(recorder: Recorder, value: Value, weak: bool = False) -> Any:
    """A value for the user's code."""
    made: Any = recorder.value(value.number)
    made.weak = weak
    return made


def lifted(recorder: Recorder, leaf: Any) -> Any:
    """A plain float or array of floats as a constant of the recording; any other leaf as it is."""
    if isinstance(leaf, Value) or not is_dynamic(leaf) or np.asarray(leaf).dtype.char not in FLOATS:
        return leaf
    made: Any = recorder.const(leaf, weak=type(leaf) is float)
    made.boxed = isinstance(leaf, np.ndarray) and not leaf.ndim
    return made


def shares(value: Value) -> bool:
    """Whether NumPy would give the memory of an input: then nobody may write to the result either."""
    node = seen_through(value.builder.nodes, value.node)
    return node.prim is alias and value.ndim > 0


def is_number(leaf: Any) -> bool:
    return isinstance(leaf, Value) or is_dynamic(leaf)
