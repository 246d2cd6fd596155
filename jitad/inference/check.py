"""`Posterior.check`: are the derivatives right, is every parameter used, is a direction flat?"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.api.derivatives import hessian
from jitad.inference.density import NO_DENSITY, Density

FLAT = 1e-9                  # of the largest curvature: below, a direction is flat
SHARE = 0.1                  # of the length of a direction: components that are named


@dataclass(frozen=True)
class PosteriorReport:
    """What `Posterior.check` found: the point, the density there, parameters that have no influence on the density, and
    flat directions of the free vector, each as (name of a free number, its component)."""

    u: np.ndarray
    value: float
    unused: tuple[str, ...]
    flat: tuple[tuple[tuple[str, float], ...], ...]

    def __str__(self) -> str:
        lines = [f"log density {self.value:.6g}; derivatives agree with differences"]
        if self.unused:
            lines.append(f"no influence on the density: {', '.join(self.unused)}")
        lines += ["flat: " + ", ".join(f"{part:+.2f} {name}" for name, part in direction) for direction in self.flat]
        return "\n".join(lines)


def report(density: Density, likelihood: Callable[..., Any], names: list[str], u: np.ndarray) -> PosteriorReport:
    """The report at a free vector. Raises `StartError` where the density is not finite, `CheckFailure` for derivatives
    that differences contradict."""
    from jitad.testing.checks import check_grads  # which imports scipy.special

    density.require(u, "at the point of the check")
    check_grads(density.function, (u, *density.data), order=1, argnums=0)
    curvature = hessian(density.function, on_mismatch="silent")(u, *density.data)
    scales, directions = np.linalg.eigh(curvature)
    flat = [directions[:, i] for i in np.flatnonzero(abs(scales) <= FLAT * abs(scales).max(initial=0.0))]
    found = tuple(tuple((names[i], float(v[i])) for i in np.flatnonzero(abs(v) > SHARE)) for v in flat)
    return PosteriorReport(u, density.at(u)[1], tuple(unused(likelihood, density, u, names)), found)


def unused(likelihood: Callable[..., Any], density: Density, u: np.ndarray, names: list[str]) -> list[str]:
    """The parameters, or single numbers of unconstrained ones, whose change leaves the log density of the values
    exactly as it is, by calls in NumPy."""
    rng, found = np.random.default_rng(0), []
    with np.errstate(all="ignore"):
        value = likelihood(u, *density.data)

        def still(begin: int, end: int) -> bool:
            return end > begin and all(_same(likelihood, density, value, _moved(u, begin, end, rng)) for _ in range(2))
        for block in density.blocks:
            if still(block.begin, block.end):
                found.append(block.name)
        suspects = (density.at(u)[2] == 0) & (density.at(_moved(u, 0, u.size, rng))[2] == 0)
        for i in np.flatnonzero(suspects):
            if names[i].partition("[")[0] not in found and still(int(i), int(i) + 1):
                found.append(names[i])
    return found


def _moved(u: np.ndarray, begin: int, end: int, rng: np.random.Generator) -> np.ndarray:
    moved = u.copy()
    moved[begin:end] += rng.uniform(0.1, 0.5, end - begin)
    return moved


def _same(likelihood: Callable[..., Any], density: Density, value: Any, u: np.ndarray) -> bool:
    try:
        return bool(likelihood(u, *density.data) == value)
    except NO_DENSITY:
        return False
