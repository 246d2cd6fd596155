"""Modes of many densities of few free numbers at once, by Newton's method within a radius of trust."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.inference.starts import REACH, TRIES

STEPS = 200
EXACT = 1e-14                # of what a step still promises, beside the value
ROUNDING = 1e-12             # differences of values that mean nothing
STUCK = 1e-10                # radius below which nothing is found any more

Both = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]     # values and gradients at points (n, dim)


class Modes(NamedTuple):
    """For each density: the free vector, the value, the gradient and the Hessian there; and whether it is a mode."""

    free: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    found: np.ndarray


def best_modes(both: Both, hessian: Callable[[np.ndarray], np.ndarray], given: np.ndarray | None,
               seeds: Sequence[Any], dim: int, starts: int) -> Modes:
    """The best of what is reached from `starts` points, drawn by the seed of each density, or from the one `given`."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    best: Modes | None = None
    for _ in range(starts if given is None else 1):
        u = _begun(both, generators, dim) if given is None else np.tile(given, (len(seeds), 1))
        new = climbed(both, hessian, u)
        best = new if best is None else _better(best, new)
    assert best is not None
    return best


def _better(a: Modes, b: Modes) -> Modes:
    second = (b.found & ~a.found) | ((b.found == a.found) & (b.value > a.value))
    return Modes(*(np.where(second.reshape(-1, *[1] * (x.ndim - 1)), y, x) for x, y in zip(a, b, strict=True)))


def _begun(both: Both, generators: Sequence[np.random.Generator], dim: int) -> np.ndarray:
    """Points at which the densities are finite, as far as such are found."""
    u = np.array([generator.uniform(-REACH, REACH, dim) for generator in generators])
    for _ in range(TRIES):
        lost = np.flatnonzero(~_finite(*both(u))).tolist()
        if not lost:
            break
        u[lost] = [generators[i].uniform(-REACH, REACH, dim) for i in lost]
    return u


def _finite(*found: np.ndarray) -> np.ndarray:
    return np.logical_and.reduce([np.isfinite(x).reshape(len(x), -1).all(1) for x in found])


def climbed(both: Both, hessian: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> Modes:
    """From each point uphill, until a step promises nothing more. Directions of the wrong curvature are gone as if it
    were the right one. No density has to do with another."""
    (value, slope), matrix = both(u), hessian(u)
    count, dim = u.shape
    radius, done = np.ones(count), np.zeros(count, bool)
    stuck = ~_finite(value, slope, matrix)
    for _ in range(STEPS):
        scales, axes = np.linalg.eigh(np.where(stuck[:, None, None], np.eye(dim), -matrix))
        size = np.maximum(abs(scales), 1e-10 * abs(scales).max(1, keepdims=True) + 1e-300)
        full = np.einsum("nij,nj->ni", axes, np.einsum("nij,ni->nj", axes, slope) / size)
        with np.errstate(invalid="ignore", over="ignore"):
            promised, length = 0.5 * np.sum(full * slope, 1), np.sqrt(np.sum(full * full, 1))
            done |= ~stuck & (scales[:, 0] > 0) & (promised <= EXACT * (1 + abs(value)))
            if (done | stuck).all():
                break
            part = np.where(done | stuck, 0.0, np.minimum(1.0, radius / np.maximum(length, 1e-300)))
            there = np.where(part[:, None] > 0, u + part[:, None] * full, u)
            new, gradient = both(there)
            rounding = (new >= value - ROUNDING * abs(value)) & (np.sum(gradient**2, 1) < np.sum(slope**2, 1))
            better = (part > 0) & _finite(new, gradient) & ((new > value) | rounding)
        radius = np.where(better, np.maximum(radius, 2 * part * length), 0.25 * part * length)
        stuck |= (part > 0) & ~better & (radius <= STUCK * (1 + abs(u).max(1)))
        u, value, slope = (np.where(better.reshape(-1, *[1] * (x.ndim - 1)), y, x) for x, y in (
            (u, there), (value, new), (slope, gradient)))
        matrix = np.where(better[:, None, None], hessian(u), matrix)
        stuck |= ~_finite(matrix)
    return Modes(u, value, slope, matrix, done)
