"""A Gaussian process against the calls of LAPACK and BLAS that it cannot avoid: ``python -m benchmarks.gp [n]``.

The log density and its gradient need the Cholesky factor of the covariance matrix (potrf), its inverse from that factor
(potri) and two triangular systems of one column (trsv). Their times, each measured alone in this process, in turns with
the densities, are the yardstick: covariance function, its derivative and all copies are not part of it.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: F401, I001  (sets the number of threads; before NumPy)

from collections.abc import Callable
from time import perf_counter

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from benchmarks.handwritten import densities as handwritten
from benchmarks.timing import readable
from jitad import value_and_grad

Array = np.ndarray


def covariance(theta: Array, x: Array) -> Array:
    """Squared exponential with noise. theta = log rho, log alpha, log sigma."""
    rho, alpha, sigma = np.exp(theta)
    distance = (x[:, None] - x[None, :]) / rho
    return alpha**2 * np.exp(-0.5 * distance**2) + sigma**2 * np.eye(len(x))


def by_cholesky(theta: Array, x: Array, y: Array) -> float:
    """Two general systems, as the textbook has it."""
    L = np.linalg.cholesky(covariance(theta, x))
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.sum(np.log(np.diag(L))) - 0.5 * theta @ theta


def by_cho_solve(theta: Array, x: Array, y: Array) -> float:
    """SciPy's pair of functions."""
    factor = scipy.linalg.cho_factor(covariance(theta, x))
    return -0.5 * y @ scipy.linalg.cho_solve(factor, y) - np.log(np.diag(factor[0])).sum() - 0.5 * theta @ theta


def by_slogdet(theta: Array, x: Array, y: Array) -> float:
    """Nothing is said about the matrix."""
    K = covariance(theta, x)
    return -0.5 * y @ np.linalg.solve(K, y) - 0.5 * np.linalg.slogdet(K)[1] - 0.5 * theta @ theta


def whitened(theta: Array, x: Array, y: Array) -> float:
    """One triangular system, as a multivariate normal density has it."""
    L = scipy.linalg.cholesky(covariance(theta, x), lower=True)
    z = scipy.linalg.solve_triangular(L, y, lower=True)
    return -0.5 * (np.sum(z**2) + 2 * np.sum(np.log(np.diag(L)))) - 0.5 * theta @ theta


DENSITIES = (by_cholesky, by_cho_solve, by_slogdet, whitened)


def unavoidable(x: Array, y: Array, theta: Array) -> dict[str, Callable[[], object]]:
    """The calls, on the covariance matrix itself."""
    K = np.asfortranarray(covariance(theta, x))
    factor, _ = lapack.dpotrf(K, lower=0, clean=0)
    return {
        "potrf": lambda: lapack.dpotrf(K, lower=0, clean=0),
        "potri": lambda: lapack.dpotri(factor, lower=0),
        "trsv": lambda: blas.dtrsv(factor, y),
        "trsv.T": lambda: blas.dtrsv(factor, y, trans=1),
    }


def measure(n: int, rounds: int = 100) -> dict[str, float]:
    """Best time of each call and of each density, taken in turns."""
    rng = np.random.default_rng(20240229)
    x = np.sort(rng.uniform(-5, 5, size=n))
    y = np.sin(1.5 * x) + 0.3 * rng.normal(size=n)
    theta = np.array([0.2, 0.1, -1.0])
    calls = unavoidable(x, y, theta)
    calls["handwritten"] = lambda: handwritten.gp(theta, x, y)
    expected = handwritten.gp(theta, x, y)
    for density in DENSITIES:
        compiled = value_and_grad(density)
        value, gradient = compiled(theta, x, y)
        np.testing.assert_allclose(value, expected[0], rtol=1e-8)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-6)
        calls[density.__name__] = lambda compiled=compiled: compiled(theta, x, y)
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = perf_counter()
            call()
            best[name] = min(best[name], perf_counter() - start)
    return best


def main() -> None:
    """Print the times and their ratios to the yardstick."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    best = measure(n)
    yardstick = sum(best[name] for name in ("potrf", "potri", "trsv", "trsv.T"))
    print(f"n = {n}; potrf + potri + 2 trsv: {readable(yardstick)}")
    for name, seconds in best.items():
        print(f"{name:14s} {readable(seconds):>9s}  {seconds / yardstick:5.2f}")


if __name__ == "__main__":
    main()
