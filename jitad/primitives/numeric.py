"""Algorithms written once, for arrays of NumPy and for scalar expressions.

An algorithm takes `m`, one of `ARRAYS` and `SCALARS`, and values of its kind, for which Python's operators work, and
calls `m` for what has no operator. All sides of a `select` are computed; a loop takes no step where its condition
does not hold, so a condition that names the region keeps it from running outside.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape import expr as scalar

Column = tuple[float, ...]
NAMES = {"lgamma": "gammaln", "digamma": "psi"}


class Numeric(Protocol):
    """What algorithms call; `name` in `call` is a math function of the compiler or, after ``special_``, of SciPy."""

    def call(self, name: str, *operands: Any) -> Any: ...
    def select(self, condition: Any, a: Any, b: Any) -> Any: ...
    def equal(self, a: Any, b: Any) -> Any: ...
    def loop(self, first: Sequence[Any], condition: Callable[..., Any], step: Callable[..., Any]) -> Sequence[Any]: ...
    def total(self, columns: tuple[Column, Column], terms: Callable[..., Any]) -> Sequence[Any]: ...


class _Arrays:
    """Float64 arrays."""

    def call(self, name: str, *operands: Any) -> Any:
        if name in ROUTINES:
            return ROUTINES[name](self, *operands)
        plain = name.removeprefix("special_")
        function = getattr(np, plain, None) or getattr(ufuncs, NAMES.get(plain, plain))
        return function(*operands)

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return np.equal(a, b)

    def loop(self, first: Sequence[Any], condition: Callable[..., Any], step: Callable[..., Any]) -> Sequence[Any]:
        state = list(np.broadcast_arrays(*(np.asarray(f, np.float64) for f in first)))
        while True:
            going = condition(*state)
            if not np.any(going):
                return state
            state = [np.where(going, new, old) for new, old in zip(step(*state), state, strict=True)]

    def total(self, columns: tuple[Column, Column], terms: Callable[..., Any]) -> Sequence[Any]:
        totals: list[Any] = []
        for row in zip(*columns, strict=True):
            found = terms(*map(np.float64, row))
            totals = [t + f for t, f in zip(totals, found, strict=True)] if totals else list(found)
        return totals


class _Scalars:
    """Expressions of the loop language."""

    call = staticmethod(scalar.call)
    select = staticmethod(scalar.select)
    loop = staticmethod(scalar.repeat)
    total = staticmethod(scalar.sum_over)

    def equal(self, a: Any, b: Any) -> Any:
        return a.eq(b)


ARRAYS: Numeric = _Arrays()
SCALARS: Numeric = _Scalars()
ROUTINES: dict[str, Callable[..., Any]] = {}
"""Functions of float64 that are neither SciPy's nor in the table of vector math, by the names of their operations."""


def routine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter ``f(m, *operands)`` as the operation ``special_f``."""
    ROUTINES[f"special_{function.__name__}"] = function
    return function


@cache
def gauss_legendre(count: int) -> tuple[Column, Column]:
    """Nodes and weights of Gauss's rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return tuple((0.5 + 0.5 * nodes).tolist()), tuple((0.5 * weights).tolist())


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """``sum(c[i] * x**i)``."""
    result = x * coefficients[-1] + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        result = result * x + c
    return result


def clip(m: Numeric, x: Any, low: float | None, high: float | None) -> Any:
    """`x` within bounds; NaN stays."""
    x = x if high is None else m.select(x > high, high, x)
    return x if low is None else m.select(x < low, low, x)


def least(m: Numeric, a: Any, b: Any) -> Any:
    return m.select(a < b, a, b)
