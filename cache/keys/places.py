"""Guards as places: where a reference to one object is found, which compiled code can look at without Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from .guards import settled
from .paths import Path

__all__ = ["Place", "places"]


class Place(NamedTuple):
    """A reference: the "item" of a dict at `key`, the "code" of a function, or what is in a "cell"; and the objects
    that are there, none for an item that must not be there."""

    kind: str
    home: Any
    key: str | None
    there: tuple[Any, ...]


class _Nowhere(Exception):
    """Found in another way than by looking at places."""


def places(paths: Sequence[Path], values: Mapping[Path, Any], function: FunctionType) -> tuple[Place, ...] | None:
    """The places that have to keep their objects for the guards at `paths` to hold, for captures of `function` with
    these values; None where a guard may fail without that. Another object does not mean that it fails: that may be
    equal.
    """
    found = {Path(): [_code(function)]}

    def visit(path: Path) -> None:
        """Find a value and how it is reached."""
        if path in found:
            return
        visit(path.parent)
        value = values[path]
        functions = None if isinstance(value, MethodType) else settled(value)
        if functions is None:
            raise _Nowhere
        start = values[path.parent] if path.parent else function
        found[path] = [*_references(start, *path[-1][:2], value), *map(_code, functions)]

    try:
        for path in paths:
            visit(path)
    except _Nowhere:
        return None
    return tuple({(id(p.home), p.key): p for group in found.values() for p in group}.values())


def _code(function: FunctionType) -> Place:
    return Place("code", function, None, (function.__code__,))


def _references(start: Any, kind: str, key: Any, value: Any) -> list[Place]:
    """Where the step from `start`, which is known to be there, finds the value."""
    if kind == "attr" and type(start) is ModuleType and key in vars(start):
        return [Place("item", vars(start), key, (value,))]
    if type(start) is not FunctionType:
        raise _Nowhere
    if kind == "cell" and start.__closure__ is not None:
        return [Place("cell", start.__closure__[key], None, (value,))]
    names, builtins = start.__globals__, start.__builtins__                     # type: ignore[attr-defined]
    if kind == "global" and type(names) is dict and type(builtins) is dict:
        if key in names:
            return [Place("item", names, key, (value,))]
        return [Place("item", names, key, ()), Place("item", builtins, key, (value,))]
    raise _Nowhere
