"""Sparse Jacobians and Hessians against dense ones, and against the function and its gradient:

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.sparse_jacobians
"""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jitad
from benchmarks.timing import best

SIZE = 2000


def tridiagonal(x: np.ndarray) -> np.ndarray:
    """Broyden's tridiagonal function: the Jacobian has three colours."""
    left, right = np.concatenate([np.zeros(1), x[:-1]]), np.concatenate([x[1:], np.zeros(1)])
    return (3 - 2 * x) * x - left - 2 * right + 1


def state_space(x: np.ndarray, y: np.ndarray) -> Any:
    """Poisson counts with a latent path: the Hessian is tridiagonal."""
    return -0.5 * np.sum((x[1:] - 0.9 * np.sin(x[:-1])) ** 2) + np.sum(y * x - np.exp(x))


def hierarchy(theta: np.ndarray, group: np.ndarray, y: np.ndarray) -> Any:
    """Poisson counts in groups whose effects share mean and scale: the Hessian is an arrow with a point of two."""
    effects, mean, scale = theta[:-2], theta[-2], theta[-1]
    eta = effects[group]
    prior = 0.5 * np.sum((effects - mean) ** 2) * np.exp(-2 * scale) + scale * len(effects)
    return np.sum(y * eta - np.exp(eta)) - prior


def line(name: str, plain: Callable[..., Any], make: Callable[..., Any], function: Callable[..., Any],
         *args: Any) -> None:
    """The times of a function or its gradient, of its sparse derivative and of the dense one."""
    sparse, dense = make(function, sparse=True), make(function)
    start = time.perf_counter()
    matrix = sparse(*args)
    first = time.perf_counter() - start
    assert abs(matrix - dense(*args)).max() <= 1e-12 * abs(matrix).max()
    times = best(lambda: plain(*args), lambda: sparse(*args))
    (slow,) = best(lambda: dense(*args))
    print(f"{name:24}{matrix.nnz:>8}{1e6 * times[0]:>10.1f} us{1e6 * times[1]:>10.1f} us{1e3 * slow:>10.1f} ms"
          f"{times[1] / times[0]:>8.1f}{slow / times[1]:>8.0f}   {first:.2f} s")


def main() -> None:
    rng = np.random.default_rng(20240229)
    x, group = rng.normal(size=SIZE), rng.integers(0, SIZE - 2, 5 * SIZE)
    few, many = rng.poisson(1.0, SIZE).astype(float), rng.poisson(1.0, 5 * SIZE).astype(float)
    print(f"n = {SIZE:<20}{'stored':>8}{'f or grad':>13}{'sparse':>13}{'dense':>13}   ratios       first call")
    line("Jacobian, tridiagonal", jitad.jit(tridiagonal), jitad.jacobian, tridiagonal, x)
    line("Hessian, state space", jitad.jit_grad(state_space), jitad.hessian, state_space, x, few)
    line("Hessian, hierarchy", jitad.jit_grad(hierarchy), jitad.hessian, hierarchy, x, group, many)


if __name__ == "__main__":
    main()
