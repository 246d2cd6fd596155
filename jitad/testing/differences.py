"""Derivatives by numbers alone: the complex step, and central differences with Richardson's extrapolation."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.trace.pytree import leaves_of, unflatten

LEVELS = 6                   # halvings of the step
FIRST = 0.05                 # the longest step
IMAGINARY = 1e-30            # the complex step: its square vanishes beside any number


class Slope(NamedTuple):
    """A derivative, an estimate of the error of each element of each leaf, and a remark if it is not to be trusted."""

    value: Any
    error: list[np.ndarray]
    note: str = ""


def slope(f: Callable[..., Any], args: Sequence[Any], places: Sequence[int], tangents: Sequence[Any]) -> Slope:
    """The derivative of `f` at `args` along `tangents` of the arguments at `places`, in double precision.

    Differences of ``f(x + h t) - f(x - h t)`` for steps h, h/2, h/4, ... are extrapolated to h = 0 (Ridders, Advances
    in Engineering Software 4, 1982), for each element the best entry of the tableau. Where the complex step
    ``imag(f(x + i h t)) / h`` (Squire & Trapp, SIAM Review 40, 1998) can be taken and agrees, it is the answer.
    """
    _, tree = leaves_of(f(*args))
    size = max([1.0, *(_size(t) for t in tangents)])

    def at(step: Any) -> list[np.ndarray]:
        moved = list(args)
        for place, tangent in zip(places, tangents, strict=True):
            leaves, structure = leaves_of(args[place])
            moved[place] = unflatten(structure, [(np.asarray(x, np.float64) + step * np.asarray(t, np.float64))[()]
                                                 for x, t in zip(leaves, leaves_of(tangent)[0], strict=True)])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(y) for y in leaves_of(f(*moved))[0]]
    values, errors = _differences(at, FIRST / size)
    rough = any(np.any(e > 1e-3 * (np.abs(v).max(initial=0.0) + 1e-8)) for v, e in zip(values, errors, strict=True))
    exact = None if rough else _complex_step(at, values, errors)
    if exact is not None:
        return Slope(unflatten(tree, exact), [1e-13 * np.abs(v) for v in exact])
    note = "; the differences did not settle: the function may not be smooth here" if rough else ""
    return Slope(unflatten(tree, values), errors, note)


def _size(tree: Any) -> float:
    return max((float(np.max(np.abs(x), initial=0.0)) for x in leaves_of(tree)[0]), default=0.0)


def _differences(at: Callable[[Any], list[np.ndarray]], step: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    tableau: list[list[list[np.ndarray]]] = []
    best: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    for level in range(LEVELS):
        h = step / 2**level
        central = [(np.asarray(p, np.float64) - np.asarray(m, np.float64)) / (2 * h)
                   for p, m in zip(at(h), at(-h), strict=True)]
        row = [central]
        for k in range(1, level + 1):
            factor = 4.0**k
            row.append([(factor * a - b) / (factor - 1) for a, b in zip(row[k - 1], tableau[-1][k - 1], strict=True)])
            found = [np.maximum(np.abs(new - left), np.abs(new - above)) for new, left, above in zip(
                row[k], row[k - 1], tableau[-1][k - 1], strict=True)]
            if not best:
                best, errors = row[k], found
                continue
            better = [np.nan_to_num(e, nan=np.inf) < np.nan_to_num(o, nan=np.inf)
                      for e, o in zip(found, errors, strict=True)]
            best = [np.where(b, new, old) for b, new, old in zip(better, row[k], best, strict=True)]
            errors = [np.where(b, new, old) for b, new, old in zip(better, found, errors, strict=True)]
        tableau.append(row)
    return best, [np.nan_to_num(e, nan=0.0, posinf=0.0) for e in errors]


def _complex_step(at: Callable[[Any], list[np.ndarray]], values: list[np.ndarray],
                  errors: list[np.ndarray]) -> list[np.ndarray] | None:
    """The derivative by the complex step; None if `f` does not take complex numbers, or is not analytic."""
    try:
        found = at(1j * IMAGINARY)
    except Exception:                                    # whatever a function does with numbers not meant for it
        return None
    if len(found) != len(values) or any(y.dtype.kind != "c" or y.shape != v.shape
                                        for y, v in zip(found, values, strict=True)):
        return None
    exact = [np.imag(y) / IMAGINARY for y in found]
    agree = all(np.all(np.abs(x - v) <= 10 * e + 1e-7 * (np.abs(v).max(initial=0.0) + 1e-8))
                for x, v, e in zip(exact, values, errors, strict=True))
    return exact if agree else None
