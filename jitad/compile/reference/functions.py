"""The functions that generated source calls, as plain Python.

A generated file imports them from here and so can be run and stepped through
without numba.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.compile.reference import fft, linalg, order, sparse  # noqa: F401  (they register their routines)
from jitad.compile.reference.scalar import OPERATIONS, math_function
from jitad.compile.reference.table import ROUTINES
from jitad.compile.routines.opaque import call_by_address

ROUTINES["opaque"] = call_by_address


def select(condition: Any, a: Any, b: Any) -> Any:
    """`a` if `condition` else `b`, without a branch in compiled code."""
    return a if condition else b


def accumulate(total: Any, term: Any) -> Any:
    """``total + term``; compiled code may sum in any order."""
    return total + term


def maximum(a: Any, b: Any) -> Any:
    return np.maximum(a, b)


def minimum(a: Any, b: Any) -> Any:
    return np.minimum(a, b)


def logical_not(a: Any) -> Any:
    return not a


def quotient(a: Any, b: Any) -> Any:
    """The quotient of integers, rounded towards zero."""
    rounded_down = a // b
    return rounded_down + 1 if rounded_down * b != a and (a < 0) != (b < 0) else rounded_down


def __getattr__(name: str) -> Callable[..., Any]:
    """The routines, and math functions by the name of their scalar operation."""
    function = ROUTINES.get(name) or math_function(name) or OPERATIONS.get(name)
    if function is None:
        raise AttributeError(name)
    return globals().setdefault(name, function)
