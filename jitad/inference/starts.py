"""Points to start from: given, from a user's function, or found."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jitad.errors import SignatureError, StartError
from jitad.inference.density import FINE
from jitad.inference.given import FreeVector

TRIES = 100
BESIDE = 1e-4                # how far beside a stationary point a chain begins
REACH = 2.0                  # how far from zero the free numbers of a point are that is looked for


class Tried(Protocol):
    """What is asked of a density where a chain is to begin: see `Density`."""

    def at(self, u: np.ndarray) -> tuple[int, float, np.ndarray]: ...

    def finite(self, u: np.ndarray) -> bool: ...

    def why_not(self, u: np.ndarray) -> str: ...


def starts(density: Tried, free: FreeVector, given: Any, jitter: float | None, count: int,
           seed: Any) -> list[np.ndarray]:
    """`count` free vectors at which the density is finite.

    `given` is None, a free vector or values for all of them, a list with one for each, or a function of a
    `numpy.random.Generator`. Around what is given (zeros, if it is nothing) lies a cube with half the side `jitter`,
    from which points are drawn until the density is finite. Raises `StartError` after 100.
    """
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(count)]
    each = _each(given, count)
    reach = (REACH if given is None else 0.0) if jitter is None else float(jitter)
    return [_found(density, free, each(i), reach, generator, i) for i, generator in enumerate(generators)]


def count_of(given: Any, otherwise: int) -> int:
    """How many different points `given` can give: `otherwise` where they are looked for, or made by a function."""
    several = _several(given)
    if several is not None:
        return len(several)
    return otherwise if given is None or _makes(given) else 1


def require_count(name: str, value: Any, least: int = 1) -> None:
    """Raise `SignatureError` unless a number of draws, chains or points is an integer, `least` or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SignatureError(f"{name} must be an integer, {least} or more, not {value!r}")


def _several(given: Any) -> list[Any] | None:
    """The points of a list of them, or of an array of shape (points, dim)."""
    listed = isinstance(given, (list, tuple)) and not hasattr(given, "_fields") and given and not np.isscalar(given[0])
    return list(given) if listed or (isinstance(given, np.ndarray) and given.ndim == 2 and len(given)) else None


def _makes(given: Any) -> bool:
    """Whether it is a function that makes points."""
    return callable(given) and not isinstance(given, (Mapping, Sequence))


def _each(given: Any, count: int) -> Callable[[int], Any]:
    several = _several(given)
    if several is None:
        return lambda i: given
    if len(several) != count:
        raise SignatureError(f"there are {len(several)} points to start from, for {count} chains")
    return lambda i: several[i]


def _found(density: Tried, free: FreeVector, given: Any, reach: float, generator: np.random.Generator,
           number: int) -> np.ndarray:
    centre = np.zeros(free.dim)
    for _ in range(TRIES):
        if _makes(given):
            centre = free.vector(given(generator), "what the function for points to start from gave")
        elif given is not None:
            centre = free.vector(given, "the point to start from")
        u = centre + generator.uniform(-reach, reach, free.dim) if reach else centre
        status, _, gradient = density.at(u)
        if status == FINE and not (gradient == 0).any():
            return u
        if status == FINE:                                # where nothing moves there is no scale to begin with
            beside = u + generator.uniform(-BESIDE, BESIDE, u.size) * (1 + abs(u))
            return beside if density.finite(beside) else u
        if not reach and not callable(given):
            break
    where = "at the point to start from"
    if reach:
        where = f"at any of {TRIES} points within {reach:g} of {'zero' if given is None else 'what was given'}"
    elif callable(given):
        where = f"at any of {TRIES} points of the function"
    raise StartError(f"chain {number} has no point to start from: the density is not finite {where}. At the last of "
                     f"them: {density.why_not(u)}\nGive `start`: values of the parameters at which the density is "
                     "finite, or a function of a random generator that makes them.")
