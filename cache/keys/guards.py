"""Snapshots of values, for guarding what a function read: `freeze` takes one, `show` puts it into words."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import fractions
import functools
import operator
import pathlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from .identity import Same, code_key

__all__ = ["GUARDED_ARRAYS", "Unguardable", "freeze", "is_atom", "settled", "show"]

Frozen = Hashable
_Recur = Callable[[object], Frozen]


class Unguardable(TypeError):
    """`value` has no snapshot by value: it is mutable in ways that cannot be seen from outside, or too deep."""

    def __init__(self, value: object, why: str = "has no snapshot by value") -> None:
        super().__init__(f"a value of type {type(value).__module__}.{type(value).__qualname__} {why}")
        self.value = value


def freeze(value: object, functions: bool = True) -> Frozen:
    """Return a hashable snapshot, equal to a later one exactly if the value is still the same.

    Type-aware (`1`, `True` and `1.0` differ, `-0.0` is not `0.0`, nan equals nan), recursive, safe for cycles.
    Containers are copied by content, so a change in place is seen. Functions count by their code alone: what
    they capture is to be guarded apart, and whoever cannot do that refuses them by `functions=False`. Classes,
    modules, builtins and ufuncs count by identity.

    Raises `Unguardable` for arrays, instances of user classes and anything else without a snapshot.

    >>> sizes = [1, 2]
    >>> before = freeze(sizes)
    >>> sizes.append(3)
    >>> freeze(sizes) == before
    False
    """
    try:
        return _freeze(value, {}, functions)
    except RecursionError:
        raise Unguardable(value, "is nested too deeply to guard") from None


def _freeze(value: object, seen: dict[int, tuple[object, Frozen]], functions: bool) -> Frozen:
    kind = type(value)
    if kind in _ITSELF:
        return value  # type: ignore[return-value]  # str, bytes, None, Ellipsis, NotImplemented
    if kind is FunctionType and not functions:
        raise Unguardable(value, "may change through what it captures")
    atom = _ATOMS.get(kind)
    if atom is not None:
        return atom(value)
    if kind in _BY_IDENTITY:
        return ("is", Same(value))
    # Marked before going inside: a container that is met again within itself is named by its place.
    known = seen.get(id(value))
    if known is not None:
        return known[1]
    seen[id(value)] = (value, ("cycle", len(seen)))
    frozen = _freeze_inside(value, kind, lambda item: _freeze(item, seen, functions))
    seen[id(value)] = (value, frozen)
    return frozen


def _freeze_inside(value: Any, kind: type, recur: _Recur) -> Frozen:
    container = _CONTAINERS.get(kind)
    if container is not None:
        return container(value, recur)
    if isinstance(value, (type, enum.Enum)):
        return ("is", Same(value))
    if isinstance(value, ModuleType):
        return ("module", value.__name__, Same(value))
    if isinstance(value, np.generic):
        return _numpy_scalar(value)
    if kind is np.ndarray and value.dtype.kind in GUARDED_ARRAYS:
        return ("array", value.dtype, value.shape, value.tobytes(), np.array2string(value, threshold=4))
    if isinstance(value, np.dtype):
        return ("dtype", value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return ("namedtuple", Same(kind), tuple(zip(kind._fields, map(recur, value), strict=True)))
    if dataclasses.is_dataclass(value) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        names = [f.name for f in dataclasses.fields(value)]
        return ("dataclass", Same(kind), tuple((name, recur(getattr(value, name))) for name in names))
    raise Unguardable(value)


def _numpy_scalar(value: np.generic) -> Frozen:
    if value.dtype.hasobject:
        raise Unguardable(value)
    # The bytes are exact, except that those of a long double end in padding.
    content = repr(value) if value.dtype.char in "gG" else value.tobytes()
    return ("numpy", value.dtype, content, repr(value))


def _builtin(value: Any, recur: _Recur) -> Frozen:
    bound = value.__self__
    if _stands_alone(bound):
        return ("is", Same(value))
    # `[].append` and `dict.fromkeys` are new objects at each look-up: they are what they are bound to.
    return ("method", value.__name__, recur(bound))


def _stands_alone(bound: object) -> bool:
    return bound is None or isinstance(bound, ModuleType)


def _dict(value: dict[Any, Any], recur: _Recur) -> Frozen:
    # The order counts: a loop over the items would record something else.
    return (type(value).__name__, tuple((recur(k), recur(v)) for k, v in list(value.items())))


def _sequence(value: Any, recur: _Recur) -> Frozen:
    return (type(value).__name__, tuple(map(recur, tuple(value))))


def _function(function: FunctionType) -> Frozen:
    # Functions of a library that one decorator has made share their code, and may have rules: their names differ.
    names = (function.__module__, function.__qualname__) if function.__closure__ else ()
    return ("function", code_key(function), *names)


_ITSELF: frozenset[type] = frozenset({str, bytes, type(None), type(...), type(NotImplemented)})

_ATOMS: dict[type, Callable[[Any], Frozen]] = {
    bool: lambda v: ("bool", v),
    int: lambda v: ("int", v),
    float: lambda v: ("float", v.hex()),
    complex: lambda v: ("complex", v.real.hex(), v.imag.hex()),
    range: lambda v: ("range", v.start, v.stop, v.step),
    bytearray: lambda v: ("bytearray", bytes(v)),
    FunctionType: lambda v: _function(v),
    **dict.fromkeys(
        (fractions.Fraction, datetime.timedelta, datetime.date, pathlib.PurePosixPath, pathlib.PureWindowsPath,
         pathlib.PosixPath, pathlib.WindowsPath),
        lambda v: ("value", type(v).__name__, v),
    ),
}  # fmt: skip

_BY_IDENTITY: frozenset[type] = frozenset(
    {np.ufunc, type(np.sum), type, MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType}
)

_CONTAINERS: dict[type, Callable[[Any, _Recur], Frozen]] = {
    tuple: _sequence,
    list: _sequence,
    dict: _dict,
    OrderedDict: _dict,
    set: _sequence,                                      # equal sets may be gone through in another order
    frozenset: _sequence,
    slice: lambda v, recur: ("slice", recur(v.start), recur(v.stop), recur(v.step)),
    functools.partial: lambda v, recur: ("partial", recur(v.func), recur(v.args), recur(v.keywords)),
    MethodType: lambda v, recur: ("bound method", recur(v.__func__), recur(v.__self__)),
    staticmethod: lambda v, recur: ("staticmethod", recur(v.__func__)),
    classmethod: lambda v, recur: ("classmethod", recur(v.__func__)),
    BuiltinFunctionType: _builtin,
    **dict.fromkeys(
        (operator.itemgetter, operator.attrgetter, operator.methodcaller),
        lambda v, recur: (type(v).__name__, recur(v.__reduce__()[1])),
    ),
}


def is_atom(value: object) -> bool:
    """Whether a value cannot change while it stays the same object, so that identity is a full guard."""
    kind = type(value)
    if kind in _ITSELF:
        return True
    if kind in (FunctionType, bytearray):  # a function's __code__ can be replaced
        return False
    if kind is BuiltinFunctionType:
        return _stands_alone(value.__self__)  # type: ignore[attr-defined]
    return kind in _ATOMS or kind in _BY_IDENTITY or isinstance(value, (type, enum.Enum, ModuleType, np.dtype))


def settled(value: Any) -> list[FunctionType] | None:
    """Return the functions inside a value that otherwise cannot change while it stays the same object, else None.

    For such a value identity is a full guard, once the `__code__` of those functions is still theirs too.

    >>> settled((1, "a")), settled((1, []))
    ([], None)
    """
    kind = type(value)
    if kind is FunctionType:
        return [value]
    if is_atom(value):
        return []
    if kind is MethodType:
        return _settled_all((value.__func__, value.__self__))
    if kind is functools.partial:
        return _settled_all((value.func, *value.args)) if not value.keywords else None
    if kind in (tuple, frozenset) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return _settled_all(value)
    if dataclasses.is_dataclass(value) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return _settled_all([getattr(value, f.name) for f in dataclasses.fields(value)])
    return [] if isinstance(value, np.generic) and not value.dtype.hasobject and kind is not np.void else None


def _settled_all(values: Iterable[object]) -> list[FunctionType] | None:
    functions: list[FunctionType] = []
    for value in values:
        inner = settled(value)
        if inner is None:
            return None
        functions += inner
    return functions


def show(frozen: Frozen, limit: int = 60) -> str:
    """Put a snapshot into words for a message, cut to `limit` characters.

    >>> show(freeze({"scale": 2.0, "mode": "fast"}))
    "{'scale': 2.0, 'mode': 'fast'}"
    """
    text = _show(frozen)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _show(frozen: Any) -> str:
    if not isinstance(frozen, tuple):
        return repr(frozen)
    tag, *rest = frozen
    if tag in _BRACKETS:
        left, right = _BRACKETS[tag]
        inside = ", ".join(map(_show, rest[0]))
        return f"{left}{inside}{',' if tag == 'tuple' and len(rest[0]) == 1 else ''}{right}"
    if tag in ("dict", "OrderedDict"):
        return "{" + ", ".join(f"{_show(k)}: {_show(v)}" for k, v in rest[0]) + "}"
    if tag in ("namedtuple", "dataclass"):
        return f"{rest[0]}({', '.join(f'{name}={_show(v)}' for name, v in rest[1])})"
    if tag in ("float", "complex"):
        numbers = [float.fromhex(part) for part in rest]
        return repr(numbers[0] if tag == "float" else complex(*numbers))
    if tag in ("slice", "range", "bound method", "partial"):
        return f"{tag}({', '.join(map(_show, rest))})"
    if tag == "function":
        name, _, digest = rest[0].rpartition("-")
        return f"function {name} (code {digest[:6]})"
    if tag in ("numpy", "array"):
        return rest[-1]
    if tag == "module":
        return f"module {rest[0]}"
    if tag == "cycle":
        return "..."
    return repr(rest[-1]) if rest else tag


GUARDED_ARRAYS = "USMm"  # kinds of arrays, of texts and times, that are guarded by content

_BRACKETS = {"tuple": "()", "list": "[]", "set": "{}", "frozenset": ("frozenset({", "})")}
