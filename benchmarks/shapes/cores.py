"""What more cores give: value and gradient on one core and on several, in turns, in one process:

    python -m benchmarks.shapes.cores [threads ...]

The same function twice, with ``parallel=True`` and without. Without numbers, for one thread and then twice as many up
to all cores; one thread shows what the parts cost by themselves. The aim on two cores is 1.8. The machine has to be
idle: other work takes the second core away.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import from_call, paired_times, readable
from jitad import batch, cache, value_and_grad
from jitad.compile.parallel.pool import available

ROUNDS, SECONDS, SIZE = 12, 5e-3, 1_000_000


def logistic(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta)))


def waves(x: np.ndarray) -> float:
    return np.sum(np.exp(-x * x) * np.sin(x))


def network(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    hidden = np.tanh(X @ theta[:160].reshape(20, 8))
    return np.sum((hidden @ theta[160:] - y) ** 2)


def smoothness(u: np.ndarray) -> float:
    return np.sum((u[1:-1, 1:-1] * 4 - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]) ** 2)


def autoregression(theta: np.ndarray, y: np.ndarray) -> float:
    level = total = 0.0
    for t in range(1, len(y)):
        total += (y[t] - theta[0] * y[t - 1] - theta[1] * level) ** 2
        level = 0.5 * level + y[t]
    return -total


def problems(size: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """What takes options and gives a function of the arguments."""
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(size, 20)), (rng.random(size) < 0.5) * 1.0, rng.integers(0, 100, size)
    side = int(size**0.5)

    def varying(z: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        return np.sum((y - z[groups] * x) ** 2)

    def of(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **options: value_and_grad(f, **options)
    return {
        f"logistic, {size:,} x 20": (of(logistic), (0.1 * rng.normal(size=20), X, y)),
        f"elementwise sum of {10 * size:,}": (of(waves), (rng.normal(size=10 * size),)),
        f"intercepts of 100 groups, {size:,}": (of(varying), (rng.normal(size=100), X[:, 0].copy(), y)),
        f"hidden layer of 8, {size:,} x 20": (of(network), (0.1 * rng.normal(size=168), X, y)),
        f"grid of {side} x {side}": (of(smoothness), (rng.normal(size=(side, side)),)),
        f"recursion, batch of {size // 1000:,}": (
            lambda **options: batch(value_and_grad(autoregression), (0, None), **options),
            (rng.normal(size=(size // 1000, 2)), rng.normal(size=1000))),
    }


def main(numbers: list[int], size: int = SIZE) -> None:
    """Measure for so many threads."""
    cores = available()
    numbers = numbers or [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n < cores] + [cores]
    print("| value and gradient | one core |" + "".join(f" {n} thread{'s' * (n > 1)} |" for n in numbers))
    print("|---|" + "---|" * (len(numbers) + 1))
    for name, (make, arguments) in problems(size).items():
        engines = [from_call(label, partial(make(parallel=parallel), *arguments)) for label, parallel in (
            ("one", False), ("several", True))]
        for a, b in zip(*(engine.call() for engine in engines), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())
        cells = []
        for n in numbers:
            cache.configure(threads=n)
            seconds = paired_times(engines, ROUNDS, SECONDS)
            cells.append(f" {seconds['one'] / seconds['several']:.2f} |")
        print(f"| {name} | {readable(seconds['one'])} |{''.join(cells)}", flush=True)
    cache.configure(threads=None)


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]])
