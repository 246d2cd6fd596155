"""Hessians of models with 50 parameters, in gradients of the same model:

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.hessians

The aim is at most three times 50/8 gradients: as many lanes as a vector register has, and room for the rest.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jitad
from benchmarks.models import densities
from benchmarks.timing import best

AIM = 3 * 50 / 8
PROBLEMS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], tuple[np.ndarray, tuple[Any, ...]]]]] = {}


def problem(logp: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a model with a function that makes 50 parameters and the data."""
    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        PROBLEMS[make.__name__] = (logp, make)
        return make
    return register


@problem(densities.logistic)
def logistic(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Any, ...]]:
    """3,000 rows, 50 columns."""
    return densities.make_logistic(rng, 3000, 50)


@problem(densities.poisson_glmm)
def poisson_glmm(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Any, ...]]:
    """1,000 counts in 47 groups."""
    group, x = rng.integers(0, 47, size=1000), rng.normal(size=1000)
    y = rng.poisson(np.exp(1.0 + 0.4 * x + 0.5 * rng.normal(size=47)[group])).astype(float)
    return np.concatenate([0.3 * rng.normal(size=47), [0.9, 0.3, -0.6]]), (group, x, y)


@problem(densities.varying_intercepts)
def varying_intercepts(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Any, ...]]:
    """3,000 observations in 46 groups."""
    group, x = rng.integers(0, 46, size=3000), rng.normal(size=3000)
    y = 1.0 + 0.3 * rng.normal(size=46)[group] - 0.5 * x + rng.normal(size=3000)
    return np.concatenate([0.3 * rng.normal(size=46), [-0.5, 1.2, -0.8, -0.2]]), (group, x, y)


@problem(densities.eight_schools)
def forty_eight_schools(rng: np.random.Generator) -> tuple[np.ndarray, tuple[Any, ...]]:
    """48 observations with known errors."""
    return rng.uniform(-1, 1, size=50), (8 + 10 * rng.normal(size=48), rng.uniform(9, 18, size=48))


def main() -> None:
    print(f"{'model':22} {'gradient':>10} {'Hessian':>10} {'ratio':>6}   first call (at most {AIM:g} wanted)")
    for name, (logp, make) in PROBLEMS.items():
        theta, data = make(np.random.default_rng(20240229))
        gradient, hessian = jitad.jit_grad(logp), jitad.hessian(logp)
        start = time.perf_counter()
        hessian(theta, *data)
        first = time.perf_counter() - start
        g, h = best(lambda: gradient(theta, *data), lambda: hessian(theta, *data))          # noqa: B023
        print(f"{name:22} {1e6 * g:7.2f} us {1e6 * h:7.2f} us {h / g:6.1f}   {first:.2f} s")


if __name__ == "__main__":
    main()
