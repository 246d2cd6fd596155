"""From the start of a process to 4 x 1,000 draws: ``python -m benchmarks.posteriors``.

Each posterior is sampled in processes of its own, with an empty disk cache (cold) and with that of the process before
(warm), once as NumPy arrays and once as ArviZ's InferenceData, whose import is the larger part for small models. The
last columns are the least effective sample size of a free number, by ArviZ, and how many of them a second of the warm
run is worth.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: I001, F401  (sets the number of threads; before NumPy)

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def eight_schools() -> Any:
    import jitad
    from jitad.constraints import positive, real

    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def logp(mu: Any, tau: Any, eta: Any, y: Any, sigma: Any) -> Any:
        z = (y - mu - tau * eta) / sigma
        return -0.5 * np.sum(z * z) - 0.5 * np.sum(eta * eta) - 0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2)
    return jitad.posterior(logp, {"mu": real(), "tau": positive(), "eta": real(8)}, (y, sigma))


def logistic() -> Any:
    import jitad
    from jitad.constraints import real

    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 5))
    y = (rng.random(1000) < 1 / (1 + np.exp(-x @ np.array([1.0, -1.0, 0.5, 0.0, 2.0])))).astype(float)

    def logp(beta: Any, x: Any, y: Any) -> Any:
        eta = x @ beta
        return y @ eta - np.sum(np.logaddexp(0.0, eta)) - 0.5 * np.sum(beta * beta)
    return jitad.posterior(logp, {"beta": real(5)}, (x, y))


def slopes() -> Any:
    import jitad
    from jitad.constraints import cholesky_corr, positive, real

    rng = np.random.default_rng(1)
    group, x = rng.integers(0, 40, 1000), rng.normal(size=1000)
    y = rng.normal(size=40)[group] + rng.normal(size=40)[group] * x + rng.normal(size=1000)

    def logp(beta: Any, tau: Any, factor: Any, z: Any, sigma: Any, y: Any, x: Any, group: Any) -> Any:
        b = beta + (tau[:, None] * factor @ z).T
        residual = (y - b[group, 0] - b[group, 1] * x) / sigma
        prior = 2.0 * np.sum(np.log(np.diag(factor)[1:])) - 0.5 * np.sum(z**2) - 0.5 * np.sum(beta**2) - np.sum(tau)
        return -0.5 * np.sum(residual**2) - y.size * np.log(sigma) - sigma + prior
    parameters = {"beta": real(2), "tau": positive(2), "factor": cholesky_corr(2), "z": real(2, 40),
                  "sigma": positive()}
    return jitad.posterior(logp, parameters, (y, x, group))


def mixture() -> Any:
    import jitad
    from jitad.constraints import ordered, positive, simplex

    rng = np.random.default_rng(2)
    y = np.concatenate([rng.normal(-3, 1, 300), rng.normal(0, 0.7, 200), rng.normal(4, 1, 500)])

    def logp(w: Any, mu: Any, s: Any, y: Any) -> Any:
        terms = np.log(w) - 0.5 * ((y[:, None] - mu) / s) ** 2 - np.log(s)
        top = np.max(terms, axis=1)
        total = np.sum(top + np.log(np.sum(np.exp(terms - top[:, None]), axis=1)))
        return total - 0.5 * np.sum(mu**2) / 25 - np.sum(s)
    return jitad.posterior(logp, {"w": simplex(3), "mu": ordered(3), "s": positive(3)}, (y,))


def garch() -> Any:
    import jitad
    from jitad.constraints import interval, positive, real

    y = np.random.default_rng(3).normal(size=500)

    def logp(mu: Any, a0: Any, a1: Any, b1: Any, y: Any) -> Any:
        v = np.zeros(y.size)
        v[0] = 1.0
        for t in range(1, y.size):
            v[t] = a0 + a1 * (y[t - 1] - mu) ** 2 + b1 * v[t - 1]
        return -0.5 * np.sum((y - mu) ** 2 / v + np.log(v))
    parameters = {"mu": real(), "a0": positive(), "a1": interval(0, 1), "b1": interval(0, lambda p: 1 - p["a1"])}
    return jitad.posterior(logp, parameters, (y,))


POSTERIORS: dict[str, Callable[[], Any]] = {
    "eight schools": eight_schools, "logistic": logistic, "correlated slopes": slopes, "mixture": mixture,
    "GARCH": garch}


def run(name: str, arviz: bool) -> None:
    """What a process does."""
    post = POSTERIORS[name]()
    _ = post.sample(seed=1, progress=False) if arviz else post.draws(seed=1)


def seconds(name: str, arviz: bool, folder: str) -> float:
    """Of a process from its start to its end."""
    code = f"from benchmarks.posteriors import run; run({name!r}, {arviz})"
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=Path(__file__).resolve().parents[1],
                   env={**os.environ, "JITAD_CACHE_DIR": folder, "JITAD_DISK_CACHE": "1"})
    return time.perf_counter() - begun


def effective(name: str) -> float:
    import arviz

    free = POSTERIORS[name]().draws(seed=1).free
    return float(arviz.ess(arviz.convert_to_dataset({"u": free}))["u"].min())


def main() -> None:
    print(f"{'posterior':<20} {'cold':>8} {'warm':>8} {'cold, ArviZ':>12} {'warm, ArviZ':>12} {'least ESS':>10} "
          f"{'ESS/s':>8}")
    for name in POSTERIORS:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            times = [seconds(name, False, one), min(seconds(name, False, one) for _ in range(3)),
                     seconds(name, True, other), min(seconds(name, True, other) for _ in range(3))]
        least = effective(name)
        print(f"{name:<20} {times[0]:8.2f} {times[1]:8.2f} {times[2]:12.2f} {times[3]:12.2f} {least:10.0f} "
              f"{least / times[1]:8.0f}", flush=True)


if __name__ == "__main__":
    main()
