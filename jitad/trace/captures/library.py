"""Functions of NumPy and SciPy without a rule: which are followed like the user's own, and how others are refused.

What a library's function does with a traced value cannot be foreseen. Some are written in Python and only ask for
shapes: they work as they are. Most call ``np.asarray``, which a traced value refuses; recorded code sees those
through `guarded`, so that the error names the function that the user wrote.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError
from jitad.trace import reasons
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
    elif _is_guarded(value):
        replacement = _refusing(value)
    else:
        return None
    _GUARDED[id(value)] = value, replacement
    return replacement


def _is_guarded(value: Any) -> bool:
    if not callable(value) or isinstance(value, (type, np.ufunc)) or is_followed_function(value):
        return False
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(home, str) or home.partition(".")[0] not in ("numpy", "scipy") or not isinstance(name, str):
        return False
    return getattr(sys.modules.get(home), name, None) is value


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
    home = function.__module__.partition("._")[0]
    while home not in reasons.REFUSED and "." in home:
        home = home.rpartition(".")[0]
    name, known = f"{home}.{function.__name__}", reasons.why(home, function.__name__)

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
