"""What a cluster costs and gives: ``python -m benchmarks.cluster``.

Processes of this machine on the loopback: what a round costs beside the arithmetic, how much faster two workers are
than one at gradients of 1, 10 and 100 ms, and 64 chains. Two processors are needed, and nothing else that runs on them.
"""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import jitad
from jitad.constraints import positive, real

SHARDS = 8
MILLISECONDS = (1.0, 10.0, 100.0)
COLUMNS = 4


@contextmanager
def client_of(workers: int) -> Iterator[Client]:
    """A cluster of so many processes with one thread each."""
    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                      dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
                      silence_logs=50) as cluster, Client(cluster) as client:
        yield client


def log_likelihood(theta: Any, x: Any, y: Any) -> Any:
    """A logistic regression."""
    eta = x @ theta
    return np.sum(y * eta - np.log1p(np.exp(eta)))


def data_of(rows: int) -> list[Any]:
    """Data of so many rows in shards."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, COLUMNS))
    y = (rng.random(rows) < 0.5) * 1.0
    return list(zip(np.array_split(x, SHARDS), np.array_split(y, SHARDS), strict=True))


def rows_for(seconds: float) -> int:
    """How many rows one gradient in one process takes so long for."""
    rows = 80_000
    gradient = jitad.sharded(log_likelihood, data_of(rows)).value_and_grad
    return max(int(rows * seconds / np.min(times(gradient, 30))) // SHARDS, 1) * SHARDS


def times(gradient: Callable[[np.ndarray], Any], rounds: int) -> np.ndarray:
    """Seconds of each of some rounds, at points that differ."""
    points = np.random.default_rng(2).normal(size=(rounds + 2, COLUMNS))
    found = []
    for point in points:
        begun = time.perf_counter()
        gradient(point)
        found.append(time.perf_counter() - begun)
    return np.array(found[2:])                               # without what was compiled


def overhead(client: Client, rounds: int) -> np.ndarray:
    """Seconds of rounds with hardly any data."""
    return times(jitad.sharded(log_likelihood, data_of(SHARDS), client=client).value_and_grad, rounds)


def speed_up(one: Client, two: Client, seconds: float, rounds: int) -> tuple[float, float]:
    """The least times of rounds on each of two clusters, measured in turns."""
    shards = data_of(rows_for(seconds))
    sums = [jitad.sharded(log_likelihood, shards, client=client).value_and_grad for client in (one, two)]
    found = np.array([[times(gradient, rounds) for gradient in sums] for _ in range(4)])
    first, second = found.min((0, 2))
    return float(first), float(second)


def chains(client: Client, number: int, draws: int, rows: int) -> float:
    """Seconds of so many chains for data of so many rows."""
    y = np.random.default_rng(3).normal(1.0, 2.0, size=rows)
    post = jitad.posterior(lambda mu, tau, y: -np.sum(2.5 * np.log1p(((y - mu) / tau) ** 2 / 4.0) + np.log(tau)) - tau,
                           dict(mu=real(), tau=positive()), data=(y,))
    begun = time.perf_counter()
    found = post.draws(draws, tune=draws, chains=number, seed=1, client=client, progress=False)
    assert found["mu"].shape == (number, draws)
    return time.perf_counter() - begun


def main(out: Any = sys.stdout) -> None:
    """Print all."""
    with client_of(1) as one, client_of(2) as two:
        low, middle, high = 1e3 * np.quantile(overhead(two, 1000), [0.1, 0.5, 0.9])
        print(f"a round of two workers: {low:.2f} ms (10 %), {middle:.2f} (median), {high:.2f} (90 %)", file=out)
        for asked in MILLISECONDS:
            first, second = speed_up(one, two, asked / 1e3, max(5, int(500 / asked)))
            print(f"{asked:5.0f} ms a gradient: {1e3 * first:7.2f} ms on one worker, {1e3 * second:7.2f} on two, "
                  f"{first / second:.2f} times", file=out)
        for client in (one, two):
            chains(client, 2, 100, 10_000)                   # workers compile
        first, second = chains(one, 64, 300, 10_000), chains(two, 64, 300, 10_000)
        print(f"64 chains: {first:.2f} s on one worker, {second:.2f} on two, {first / second:.2f} times", file=out)


if __name__ == "__main__":
    main()
