"""SciPy's functions and classes in recorded code: by an allow-list, none is recorded through.

What SciPy writes in Python iterates and stops by numbers, so that a recording of it would be that of the steps for
one argument: the derivative of a root found by chance at its start is that of the start. What it writes in C calls
functions back that must return plain numbers. So a function without a rule gets no traced value at all, neither as an
argument nor from a function of the user's that it calls: it is refused by name. Only those of `reasons.THROUGH`,
which are formulas, run on traced values as they are.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from jitad.trace import reasons
from jitad.trace.dispatch import plain, refused
from jitad.trace.recorder import current
from jitad.trace.scipy_rules.classes import CLASSES, made
from jitad.trace.scipy_rules.sparse.build import plain_args
from jitad.trace.watched import Watched, traced_in

__all__ = ["ClassOfSciPy", "full_name", "guarded_function", "runs_through"]


def full_name(value: Any) -> str:
    """``scipy.optimize.newton``: the name under which users import it."""
    home = value.__module__.partition("._")[0]
    while home not in reasons.REFUSED and home not in reasons.SCIPY and "." in home:
        home = home.rpartition(".")[0]
    if home == "scipy":                                  # what several modules share lies in none of them
        home = next((m for m in sorted(reasons.SCIPY) if getattr(sys.modules.get(m), value.__name__, None) is value),
                    home)
    return f"{home}.{value.__name__}"


def runs_through(value: Any) -> bool:
    """Whether a function of SciPy's may be given traced values, and is right for them."""
    module, _, name = full_name(value).rpartition(".")
    return name in reasons.THROUGH.get(module, "").split()


def guarded_function(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What recorded code sees of a function of SciPy's."""
    @wraps(function, updated=())
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return _called(function, name, args, kwargs)
    return replacement


class ClassOfSciPy:
    """What recorded code sees of a class of SciPy's: without a rule, instances are made of plain values only. It stands
    for the class in ``isinstance``, as a base, and for its class methods."""

    __slots__ = ("_guarded",)

    def __init__(self, cls: type, name: str) -> None:
        self._guarded = (cls, name)

    @property
    def jitad_stands_for(self) -> type:
        """The class."""
        return self._guarded[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rule = CLASSES.get(self._guarded[1])
        if rule is not None and current() is not None:
            args, kwargs = plain_args(args), plain_args(kwargs)
            return made(self._guarded[0], rule, args, kwargs, traced_in(plain(args), plain(kwargs)) is not None)
        return _called(*self._guarded, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        cls, own = self._guarded
        value = getattr(cls, name)
        if type(value) in (MethodType, FunctionType, BuiltinFunctionType) and not name.startswith("__"):
            return guarded_function(value, f"{own}.{name}")
        return value

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._guarded[0])

    def __subclasscheck__(self, cls: type) -> bool:
        return issubclass(cls, self._guarded[0])

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (self._guarded[0],)

    def __eq__(self, other: Any) -> bool:
        return self._guarded[0] is (other._guarded[0] if type(other) is ClassOfSciPy else other)

    def __hash__(self) -> int:
        return hash(self._guarded[0])


def _called(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call with plain values; refused when it gets another, as an argument or from a function that it calls."""
    builder = traced_in(plain(args), plain(kwargs))
    if builder is not None:
        raise refused(builder, name, reasons.advice(name))
    return Watched(name).call(function, plain_args(args), plain_args(kwargs))
