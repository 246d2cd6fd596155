"""Recurrences written as plain Python loops, against hand-written numba: ``python -m benchmarks.loops [name ...]``.

Prints for each the time of a warm value and gradient, its ratio to the kernel of `handwritten_loops`, and the time of
the first call. ``python -m benchmarks.loops --growth`` prints, for GARCH over longer and longer series, the time and
the memory that the first call takes, each in a process of its own.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: I001, F401  (sets the number of threads; before NumPy)

import argparse
import resource
import subprocess
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.special import logsumexp

from benchmarks.conftest import readable

Array = np.ndarray
LENGTHS = (25_000, 50_000, 100_000)


def garch(theta: Array, y: Array) -> float:
    """GARCH(1, 1). theta = mean, log omega, alpha, beta, logarithm of the first variance."""
    mu, omega, alpha, beta = theta[0], np.exp(theta[1]), theta[2], theta[3]
    h = np.exp(theta[4])
    total = 0.0
    for t in range(len(y)):
        total = total - 0.5 * (np.log(h) + (y[t] - mu) ** 2 / h)
        h = omega + alpha * (y[t] - mu) ** 2 + beta * h
    return total


def hmm(theta: Array, y: Array) -> float:
    """Three states with normal emissions. theta = logits of the transitions by rows, means, log scale."""
    logits = theta[:9].reshape(3, 3)
    transition = logits - logsumexp(logits, axis=1, keepdims=True)
    emission = -0.5 * ((y[:, None] - theta[9:12]) / np.exp(theta[12])) ** 2 - theta[12]
    alpha = emission[0] - np.log(3.0)
    for t in range(1, len(y)):
        alpha = logsumexp(alpha[:, None] + transition, axis=0) + emission[t]
    return logsumexp(alpha)


def kalman(theta: Array, F0: Array, H: Array, y: Array) -> float:
    """Four states, four observations. theta = log variances of states and observations, factor of the transition."""
    F, Q, R = theta[8] * F0, np.diag(np.exp(theta[:4])), np.diag(np.exp(theta[4:8]))
    m, P = np.zeros(4), np.eye(4)
    total = 0.0
    for t in range(len(y)):
        m = F @ m
        P = F @ P @ F.T + Q
        v = y[t] - H @ m
        S = H @ P @ H.T + R
        gain = np.linalg.solve(S, H @ P).T
        total = total - 0.5 * (np.linalg.slogdet(S)[1] + v @ np.linalg.solve(S, v))
        m = m + gain @ v
        P = P - gain @ H @ P
    return total


def kalman_by_inverse(theta: Array, F0: Array, H: Array, y: Array) -> float:
    """The same filter as many write it."""
    F, Q, R = theta[8] * F0, np.diag(np.exp(theta[:4])), np.diag(np.exp(theta[4:8]))
    m, P = np.zeros(4), np.eye(4)
    total = 0.0
    for t in range(len(y)):
        m = F @ m
        P = F @ P @ F.T + Q
        v = y[t] - H @ m
        S = H @ P @ H.T + R
        inverse = np.linalg.inv(S)
        gain = P @ H.T @ inverse
        total -= 0.5 * (np.log(np.linalg.det(S)) + v @ inverse @ v)
        m = m + gain @ v
        P = (np.eye(4) - gain @ H) @ P
    return total


def make_garch(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(1)
    return np.array([0.1, -2.0, 0.1, 0.8, 0.0]), rng.normal(size=n)


def make_hmm(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(2)
    theta = np.concatenate([rng.normal(size=9), [-1.0, 0.0, 1.5], [-0.3]])
    return theta, rng.choice([-1.0, 0.0, 1.5], n) + 0.7 * rng.normal(size=n)


def make_kalman(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(3)
    F0 = np.eye(4) + 0.2 * rng.normal(size=(4, 4))
    theta = np.concatenate([rng.normal(-1.0, 0.3, 4), rng.normal(-0.5, 0.3, 4), [0.7]])
    return theta, F0 / np.max(np.abs(np.linalg.eigvals(F0))), rng.normal(size=(4, 4)), rng.normal(size=(n, 4))


#: Name: density, its kernel, its arguments for a length, the length.
LOOPS: dict[str, tuple[Callable[..., float], str, Callable[[int], tuple[Array, ...]], int]] = {
    "garch": (garch, "garch", make_garch, 1000),
    "hmm": (hmm, "hmm", make_hmm, 1000),
    "kalman": (kalman, "kalman", make_kalman, 500),
    "kalman_by_inverse": (kalman_by_inverse, "kalman", make_kalman, 500),
}


def measure(name: str, rounds: int) -> str:
    """One line of the table, after the results have been compared."""
    from benchmarks import handwritten_loops
    from benchmarks.engines import assert_same, bind, from_call, paired_times
    from jitad import cache, value_and_grad

    density, kernel, make, n = LOOPS[name]
    arguments = make(n)
    by_hand = getattr(handwritten_loops, kernel)
    expected = by_hand(*arguments)
    np.testing.assert_allclose(expected[0], density(*arguments), rtol=1e-9)
    cache.clear()
    start = perf_counter()
    result = value_and_grad(density)(*arguments)
    first = perf_counter() - start
    assert_same(result, expected, 1e-8)
    engines = [from_call("hand", bind(by_hand, *arguments)),
               from_call("jitad", bind(value_and_grad(density), *arguments))]
    warm = paired_times(engines, rounds)
    return (f"{name:18} n = {n:6}   handwritten {readable(warm['hand']):>9}   jitad {readable(warm['jitad']):>9}   "
            f"ratio {warm['jitad'] / warm['hand']:5.2f}   first call {readable(first)}")


def grow(n: int) -> str:
    """Time and peak memory of a first call over `n` observations; call it in a process of its own."""
    from jitad import value_and_grad

    g, (theta, y) = value_and_grad(garch), make_garch(n)
    value_and_grad(lambda x: np.sum(x * x))(theta)       # what a process loads once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, own = perf_counter(), process_time()
    g(theta, y)
    seconds, own = perf_counter() - start, process_time() - own
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return (f"garch n = {n:7}   first call {seconds:6.2f} s   processor {own:6.2f} s, {own / n * 1e6:5.1f} us/step   "
            f"memory {memory:7.0f} MB")


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])       # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(LOOPS))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--growth", action="store_true", help="how first calls grow with the length")
    parser.add_argument("--length", type=int, help="one first call of GARCH of that length")
    chosen = parser.parse_args(arguments)
    if chosen.length:
        print(grow(chosen.length))
    elif chosen.growth:
        for n in LENGTHS:
            subprocess.run([sys.executable, "-m", "benchmarks.loops", "--length", str(n)], check=True)
    else:
        for name in chosen.names or LOOPS:
            print(measure(name, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
