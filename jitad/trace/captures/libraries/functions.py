"""Functions of NumPy and SciPy without a rule: which are followed like the user's own, and how others are refused.

What a library's function does with a traced value cannot be foreseen. Some of NumPy's are written in Python and only
ask for shapes: they work as they are. Most call ``np.asarray``, which a traced value refuses; recorded code sees those
through `guarded`, so that the error names the function that the user wrote. SciPy's are in `guards`.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError
from jitad.trace import reasons
from jitad.trace.captures.libraries.guards import ClassOfSciPy, full_name, guarded_function, runs_through
from jitad.trace.dispatch import FUNCTIONS, builder_in, noted_line, plain, refused
from jitad.trace.values.local import on_arrays

__all__ = ["guarded", "is_followed_module", "is_followed_function"]

# Modules of plain NumPy code whose functions run as copies, as the user's do.
_FOLLOWED = frozenset(f"numpy.polynomial.{name}" for name in (
    "polynomial", "chebyshev", "legendre", "laguerre", "hermite", "hermite_e", "polyutils", "_polybase"))
_DISPATCHER = type(np.sum)
_GUARDED: dict[int, tuple[Any, Callable[..., Any]]] = {}


def is_followed_module(name: Any) -> bool:
    return name in _FOLLOWED


def is_followed_function(value: Any) -> bool:
    """Whether this is a function of a library that runs as a copy which sees traced captures."""
    return type(value) is FunctionType and value.__module__ in _FOLLOWED and (
        reasons.why(value.__module__, value.__name__) is None)


def guarded(value: Any) -> Any | None:
    """What recorded code gets for a library's function that does not look at all of its arguments, or has no rule;
    None for everything else."""
    known = _GUARDED.get(id(value))
    if known is not None:
        return known[1]
    if type(value) is _DISPATCHER:
        replacement = _routed(value)
    elif _is_guarded(value, "numpy"):
        replacement = _refusing(value)
    elif _is_guarded(value, "scipy"):
        name = full_name(value)
        replacement = ClassOfSciPy(value, name) if isinstance(value, type) else _refusing(value) if (
            runs_through(value)) else guarded_function(value, name)
    else:
        return None
    _GUARDED[id(value)] = value, replacement
    return replacement


def _is_guarded(value: Any, package: str) -> bool:
    """Whether this is a function of the package, or one of SciPy's classes."""
    if not callable(value) or isinstance(value, np.ufunc) or is_followed_function(value):
        return False
    if isinstance(value, type) and (package == "numpy" or issubclass(value, BaseException)):
        return False
    owner = getattr(value, "__self__", None)             # a method bound to an object reads what that holds
    if package == "scipy" and not (owner is None or isinstance(owner, (type, ModuleType))):
        return False
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(home, str) or home.partition(".")[0] != package or not isinstance(name, str):
        return False
    return getattr(sys.modules.get(home), name, None) is value or package == "scipy"


def _routed(function: Any) -> Callable[..., Any]:
    """A function of NumPy that dispatches, but on some of its arguments only."""
    @wraps(function, updated=())
    def replacement(*args: Any, **kwargs: Any) -> Any:
        if function not in FUNCTIONS or builder_in(plain(args), plain(kwargs)) is None:
            return function(*args, **kwargs)
        result = on_arrays(function, args, kwargs)
        return result.handed_out() if hasattr(type(result), "handed_out") else result
    return replacement


def _refusing(function: Any) -> Callable[..., Any]:
    name = full_name(function)
    home, _, short = name.rpartition(".")
    known = reasons.why(home, short)

    @wraps(function, updated=())
    def replacement(*args: Any, **kwargs: Any) -> Any:
        given = args, kwargs
        args, kwargs = plain(args), plain(kwargs)
        builder = builder_in(args, kwargs)
        if builder is None:
            return function(*given[0], **given[1])                  # local arrays know then that their memory is shared
        if known is not None:
            raise refused(builder, name, reasons.WHY[known])
        before = len(getattr(builder, "refusals", ()))
        try:
            with noted_line(builder):
                return function(*args, **kwargs)
        except ConcretizationError as error:
            refusals = getattr(builder, "refusals", None)
            if refusals is not None:
                del refusals[before:]
            raise refused(builder, name) from error
    return replacement
