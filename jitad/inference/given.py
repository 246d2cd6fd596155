"""What a user gives to `posterior`, checked and put in order: parameters, data, and how the functions are called."""
from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.constraints.base import Constraint
from jitad.constraints.joint import Call, ParameterBlock, by_container, by_keywords, by_mapping
from jitad.errors import SignatureError

Values = Any                                      # the parameters' values: a dict, or the user's own container


class FreeVector:
    """The parameters in order, with their places in the free vector, and the class of the container if there is one."""

    def __init__(self, parameters: Any):
        self.make, given = _named(parameters)
        if not given:
            raise SignatureError("there are no parameters: give a dict such as {'mu': real(), 'tau': positive()}")
        blocks, end = [], 0
        for name, constraint in given.items():
            if not isinstance(constraint, Constraint):
                raise SignatureError(f"parameter {name!r} must have a constraint of `jitad.constraints`, such as "
                                     f"real(8) or positive(); not {constraint!r}")
            blocks.append(ParameterBlock(name, constraint, end, end + constraint.size))
            end += constraint.size
        if not end:
            raise SignatureError("the parameters have no free numbers: there is nothing to estimate")
        self.blocks, self.dim = tuple(blocks), end
        self.shapes = {block.name: block.constraint.shape for block in blocks}

    @property
    def names(self) -> list[str]:
        """A name for each free number: ``tau``, ``eta[3]``, ``L.free[0]`` where values and free numbers differ."""
        return free_names(self.blocks)

    def values(self, given: Values) -> dict[str, Any]:
        """A dict of the values; raises `SignatureError` unless all parameters are there, and nothing else."""
        if not isinstance(given, Mapping):
            if self.make is None or not isinstance(given, self.make):
                raise SignatureError(f"the values of the parameters must be a dict with "
                                     f"{', '.join(self.shapes)}; not {type(given).__name__}")
            given = {name: getattr(given, name) for name in self.shapes}
        missing, further = [n for n in self.shapes if n not in given], [n for n in given if n not in self.shapes]
        if missing or further:
            wrong = [f"{words} {', '.join(map(repr, of))}" for words, of in (
                ("without", missing), ("with unknown", further)) if of]
            raise SignatureError(f"the values of the parameters are {' and '.join(wrong)}; the parameters are "
                                 f"{', '.join(self.shapes)}")
        return dict(given)

    def of(self, given: Values) -> np.ndarray:
        """The free vector of shape ``(dim,)`` of these values; raises `ConstraintError` with the parameter's name."""
        values = self.values(given)
        found = []
        for name, constraint, _, _ in self.blocks:
            try:
                found.append(constraint.inverse(values[name], values))
            except ValueError as error:
                error.args = (f"parameter {name!r}: {error}",)
                raise
        return np.concatenate(found)

    def vector(self, given: Any, what: str) -> np.ndarray:
        """A free vector, or the free vector of values; raises `SignatureError` for a wrong length."""
        if isinstance(given, Mapping) or (self.make is not None and isinstance(given, self.make)):
            return self.of(given)
        u = np.array(given, dtype=np.float64)
        if u.shape != (self.dim,):
            listing = ", ".join(f"{b.name} {b.end - b.begin}" for b in self.blocks)
            raise SignatureError(f"{what} has shape {u.shape}, but the free vector has shape ({self.dim},): {listing}")
        return u


def _named(parameters: Any) -> tuple[type | None, dict[str, Any]]:
    if isinstance(parameters, Mapping):
        wrong = [name for name in parameters if not isinstance(name, str)]
        if wrong:
            raise SignatureError(f"names of parameters are strings, not {wrong[0]!r}")
        return None, dict(parameters)
    if dataclasses.is_dataclass(parameters) and not isinstance(parameters, type):
        return type(parameters), {f.name: getattr(parameters, f.name) for f in dataclasses.fields(parameters)}
    if isinstance(parameters, tuple) and hasattr(parameters, "_fields"):
        return type(parameters), dict(zip(parameters._fields, parameters, strict=True))
    raise SignatureError("parameters must be a dict of constraints by name, such as {'mu': real(), 'tau': positive()}, "
                         f"or a dataclass or named tuple of them; not {type(parameters).__name__}")


def free_names(blocks: Sequence[ParameterBlock]) -> list[str]:
    """A name for each free number of parameters: see `FreeVector.names`."""
    found: list[str] = []
    for name, constraint, _, _ in blocks:
        if constraint.size == int(np.prod(constraint.shape)):
            found += labels(name, constraint.shape)
        else:
            found += labels(f"{name}.free", (constraint.size,))
    return found


def labels(name: str, shape: tuple[int, ...]) -> list[str]:
    """A name for each element in C order, ``eta[3]``, ``L[1, 0]``."""
    return [f"{name}[{', '.join(map(str, index))}]" if index else name for index in np.ndindex(shape)]


# --- data ----------------------------------------------------------------------------------------------------

class Data:
    """The data in order, and their names if they were given by name. Lists become arrays."""

    def __init__(self, given: Any):
        if isinstance(given, Mapping):
            self.names: tuple[str, ...] | None = tuple(given)
            values: Sequence[Any] = list(given.values())
        elif isinstance(given, (str, bytes)) or not isinstance(given, (tuple, list)):
            raise SignatureError(f"data must be a tuple, such as (X, y) or (y,), or a dict by name; "
                                 f"got {type(given).__name__}")
        else:
            self.names, values = None, given
        self.values = tuple(np.asarray(x) if isinstance(x, list) else x for x in values)
        for i, x in enumerate(self.values):
            if hasattr(x, "to_numpy"):
                name = repr(self.names[i]) if self.names is not None else f"data[{i}]"
                raise SignatureError(f"{name} is a {type(x).__name__}; give arrays: {name.strip(chr(39))}.to_numpy(), "
                                     "or one for each column")

    def named(self, function: Callable[..., Any], free: FreeVector) -> dict[str, np.ndarray]:
        """The arrays and numbers among the data, by name: their own, or those of the function's arguments."""
        names = list(self.names or ())
        if self.names is None and self.values:
            arguments = list(inspect.signature(inspect.unwrap(function)).parameters.values())
            by_name = all(name in [a.name for a in arguments] for name in free.shapes) and free.make is None
            rest = [a.name for a in arguments if a.name not in free.shapes] if by_name else [
                a.name for a in arguments[1:] if a.kind is not a.VAR_POSITIONAL]
            names = [*rest, *(f"data_{i}" for i in range(len(rest), len(self.values)))]
        return {name: np.asarray(x) for name, x in zip(names, self.values, strict=False)
                if np.asarray(x).dtype.kind in "biuf"}

    def changed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What `posterior` would be given for other data: all in order, or some by name."""
        if args and kwargs:
            raise SignatureError("give new data in their order or by name, not both")
        if args:
            if len(args) != len(self.values):
                raise SignatureError(f"the posterior has {len(self.values)} data, and {len(args)} were given")
            return dict(zip(self.names, args, strict=True)) if self.names is not None else args
        unknown = [name for name in kwargs if self.names is None or name not in self.names]
        if unknown:
            known = "have no names: give all of them in order" if self.names is None else f"are {', '.join(self.names)}"
            raise SignatureError(f"there are no data called {unknown[0]!r}; the data {known}")
        return {**dict(zip(self.names or (), self.values, strict=True)), **kwargs}


# --- how the functions are called -----------------------------------------------------------------------------

def calling(function: Callable[..., Any], what: str, free: FreeVector, data: Data) -> Call:
    """How `function` takes its arguments: a dict (or the container) and the data, or everything by name, which it does
    if every parameter's name is the name of an argument."""
    if not callable(function):
        raise SignatureError(f"{what} must be a function, not {type(function).__name__}")
    function = plain_function(function)
    try:
        arguments = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        arguments = []
    names = [a.name for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    if free.make is not None:
        return by_container(function, data.names, free.make)
    if not all(name in names for name in free.shapes):
        return by_mapping(function, data.names)
    others = [name for name in names if name not in free.shapes]
    if data.names is not None:
        return by_keywords(function, data.names)
    if len(others) < len(data.values):
        raise SignatureError(f"{what} takes the parameters by name, and {len(others)} further arguments, but there are "
                             f"{len(data.values)} data")
    return by_keywords(function, tuple(others[:len(data.values)]))


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The density itself of one that is decorated by `jit`, `jit_grad` or `value_and_grad`. Any other decorator is part
    of the density: those of the user, gradients of one's own, batches."""
    match getattr(function, "__jitad_transform__", None):
        case ("value" | "grad" | "value_and_grad", _, _, "()"):
            return function.__wrapped__                      # type: ignore[attr-defined]
    return function
