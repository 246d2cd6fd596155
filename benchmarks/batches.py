"""Gradients of many chains at once, against as many calls of the C pointer for one chain:

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.batches

Both are called from a compiled loop without Python, and give values and gradients. The aim is four times as many
gradients a second for 64 chains of eight schools.
"""
from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from scipy import special

import jitad
from benchmarks.models import densities

ROUNDS, WINDOW = 400, 2e-4         # how often each is timed, and for how long


def garch(q: np.ndarray, y: np.ndarray) -> float:
    """GARCH(1, 1). q = mu, log alpha0, logit alpha1, logit(beta1 / (1 - alpha1))."""
    alpha0, a = np.exp(q[1]), special.expit(q[2])
    beta = (1 - a) * special.expit(q[3])
    sigma = np.zeros(len(y))
    sigma[0] = 1.0
    for t in range(1, len(y)):
        sigma[t] = np.sqrt(alpha0 + a * (y[t - 1] - q[0]) ** 2 + beta * sigma[t - 1] ** 2)
    return np.sum(-0.5 * ((y - q[0]) / sigma) ** 2 - np.log(sigma)) - 0.5 * q @ q


def problems() -> dict[str, tuple[Callable[..., Any], int, np.ndarray, tuple[Any, ...]]]:
    """A log density, the number of chains, a point and the data."""
    rng = np.random.default_rng(0)
    return {
        "eight schools": (densities.eight_schools, 64, *densities.make_eight_schools(rng)),
        "eight schools, 4 chains": (densities.eight_schools, 4, *densities.make_eight_schools(rng)),
        "logistic, 1,000 x 20": (densities.logistic, 64, *densities.make_logistic(rng, 1000, 20)),
        "logistic, 20,000 x 6": (densities.logistic, 16, *densities.make_logistic(rng, 20_000, 6)),
        "GARCH, 1,000 days": (garch, 16, np.array([0.1, -1.0, -1.5, 1.0]), (rng.normal(size=1000),)),
    }


def pointer(compiled: Any) -> tuple[Callable[..., int], int]:
    made = compiled.cfunc
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    function = kind(made.address)
    function.kept = made                                              # type: ignore[attr-defined]
    return function, made.data


def looped(f: Callable[..., int], rows: int, width: int) -> Callable[..., int]:
    """`rows` calls of a C function, each on `width` numbers, `count` times; one value for each call or, if there is
    one call, for all."""
    @numba.njit
    def run(x: np.ndarray, grad: np.ndarray, value: np.ndarray, data: int, count: int) -> int:
        status = 0
        for _ in range(count):
            for i in range(rows):
                at = i * width * 8
                status += f(width, x.ctypes.data + at, grad.ctypes.data + at, value.ctypes.data + i * 8, data)
        return status
    return run


def compare(logp: Callable[..., Any], chains: int, point: np.ndarray,
            data: tuple[Any, ...]) -> tuple[float, float, float]:
    """Seconds for one gradient of all chains: by single calls, by the batch, and by the batch called from Python."""
    g = jitad.value_and_grad(logp, on_mismatch="silent")
    many = jitad.batch(g, in_axes=(0, *[None] * len(data)))
    x = point + 0.1 * np.random.default_rng(1).uniform(-1, 1, size=(chains, len(point)))
    single, word = pointer(g.compile(x[0], *data))
    whole, other = pointer(many.compile(x, *data))
    runs = [(looped(single, chains, len(point)), word), (looped(whole, 1, x.size), other)]
    results = []
    for run, word in runs:
        grad, value = np.empty_like(x), np.empty(chains)
        assert run(x, grad, value, word, 1) == 0
        results.append((grad, value))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    grad, value = results[0]
    calls: list[Callable[[int], Any]] = [
        lambda n, run=run, word=word: run(x, grad, value, word, n) for run, word in runs]

    def from_python(n: int) -> None:
        for _ in range(n):
            many(x, *data)
    calls.append(from_python)
    return tuple(best(*calls))                                        # type: ignore[return-value]


def best(*calls: Callable[[int], Any]) -> list[float]:
    """The shortest time of each call; they take turns, so that each finds the machine idle now and then."""
    counts = []
    for call in calls:
        start = time.perf_counter()
        call(10)
        counts.append(max(1, int(10 * WINDOW / (time.perf_counter() - start))))
    times = [np.inf] * len(calls)
    for _ in range(ROUNDS):
        for i, (call, count) in enumerate(zip(calls, counts, strict=True)):
            start = time.perf_counter()
            call(count)
            times[i] = min(times[i], (time.perf_counter() - start) / count)
    return times


def main() -> None:
    print(f"{'':26}{'chains':>7}{'single':>12}{'batch':>12}{'ratio':>8}{'from Python':>14}")
    for name, (logp, chains, point, data) in problems().items():
        single, whole, python = compare(logp, chains, point, data)
        print(f"{name:26}{chains:7}{single * 1e6:9.2f} us{whole * 1e6:9.2f} us{single / whole:8.2f}"
              f"{python * 1e6:11.2f} us", flush=True)


if __name__ == "__main__":
    main()
