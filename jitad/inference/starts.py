"""Points to start from: given, from a user's function, or found."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.errors import SignatureError, StartError
from jitad.inference.density import FINE, Density
from jitad.inference.given import FreeVector

TRIES = 100
BESIDE = 1e-4                # how far beside a stationary point a chain begins
REACH = 2.0                  # how far from zero the free numbers of a point are that is looked for


def starts(density: Density, free: FreeVector, given: Any, jitter: float | None, count: int,
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


def _each(given: Any, count: int) -> Callable[[int], Any]:
    if isinstance(given, (list, tuple)) and not hasattr(given, "_fields") and given and not np.isscalar(given[0]):
        if len(given) != count:
            raise SignatureError(f"there are {len(given)} points to start from, for {count} chains")
        return lambda i: given[i]
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return _each(list(given), count)
    return lambda i: given


def _found(density: Density, free: FreeVector, given: Any, reach: float, generator: np.random.Generator,
           number: int) -> np.ndarray:
    centre = np.zeros(free.dim)
    for _ in range(TRIES):
        if callable(given) and not isinstance(given, (Mapping, Sequence)):
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
