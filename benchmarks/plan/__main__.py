"""A plan for clusters that are not here: ``python -m benchmarks.plan``.

Measures the constants of the cost model that `notebooks/scale.md` tells, on two workers of this machine, and holds the
model against a simulation of rounds, message by message, of up to 1,000 workers that share 10^9 rows.
"""
from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client

import jitad
from benchmarks.cluster import client_of, data_of, log_likelihood, overhead, times
from jitad.distributed.cluster import Cluster
from jitad.distributed.keeper import Keeper

ROWS = 10**9
WORKERS = (10, 30, 100, 300, 1000)
LINES = 64                       # connections with which the client's part of a round is measured
SHORT, LONG = 10, 10_000         # numbers in an answer


@dataclass(frozen=True)
class Costs:
    """Seconds of the parts of a round. `spread` are times of one piece of work on one worker, relative to their
    median."""

    latency: float               # a round of one worker, with nothing to do
    message: float               # the client's work for each worker, with an answer of no length
    number: float                # and for each number of the answer
    row: float                   # a worker's work for each row
    spread: np.ndarray

    def of_message(self, parameters: int) -> float:
        """The client's work for the answer of one worker."""
        return self.message + self.number * parameters

    def slowest(self, workers: int) -> float:
        """The expectation of the greatest of so many of the relative times."""
        ordered, n = np.sort(self.spread), len(self.spread)
        below = (np.arange(n + 1) / n) ** workers
        return float(np.sum(ordered * np.diff(below)))

    def of_round(self, workers: int, rows: int, parameters: int) -> float:
        """A round as the model has it: the client sends to all, and takes answers while the slowest still works."""
        messages = workers * self.of_message(parameters) / 2
        return self.latency + messages + max(messages, self.row * rows / workers * self.slowest(workers))

    def best(self, rows: int, parameters: int) -> int:
        """The number of workers with the shortest round, but for stragglers."""
        return max(1, round(float(np.sqrt(2 * self.row * rows / self.of_message(parameters)))))


def simulated(costs: Costs, workers: int, rows: int, parameters: int, rounds: int, seed: int = 0) -> float:
    """The mean of rounds, message by message: the client sends to one worker after the other, each works for a time of
    its own, and the client takes the answers in order."""
    rng = np.random.default_rng(seed)
    sending = receiving = costs.of_message(parameters) / 2
    total = 0.0
    for _ in range(rounds):
        work = costs.row * rows / workers * rng.choice(costs.spread, workers)
        arrived = sending * np.arange(1, workers + 1) + costs.latency / 2
        clock = sending * workers
        for ready in arrived + work + costs.latency / 2:
            clock = max(clock, ready) + receiving
        total += clock
    return total / rounds


def measured(client: Client) -> Costs:
    """The constants of this machine."""
    cluster = Cluster(client)
    short, long = (_seconds_for_each_line(cluster, size) for size in (SHORT, LONG))
    number = (long - short) / (LONG - SHORT)
    rows = 80_000
    work = times(jitad.sharded(log_likelihood, data_of(rows)).value_and_grad, 500)
    return Costs(float(np.median(overhead(client, 300))), max(short - number * SHORT, 0.0), number,
                 float(np.median(work)) / rows, work / np.median(work))


def _seconds_for_each_line(cluster: Cluster, size: int) -> float:
    """The client's processor time in a round, for each connection: that of a quiet tenth of rounds."""
    addresses = cluster.workers()
    actors = [actor for _ in range(LINES // len(addresses)) for actor in cluster.actors(Keeper, (["x"], 1), addresses)]
    cluster.round([(actor, "take", ({0: np.ones(size)},)) for actor in actors])
    found = []
    for _ in range(60):
        begun = time.thread_time()
        cluster.ask(actors, "example", (0,))
        found.append(time.thread_time() - begun)
    return float(np.quantile(found[5:], 0.1)) / len(actors)


def report(costs: Costs, rows: int, parameters: int, rounds: int, out: Any = sys.stdout) -> None:
    """Print the constants, and model and simulation side by side."""
    print(f"latency {1e3 * costs.latency:.2f} ms, message {1e6 * costs.message:.1f} us, number "
          f"{1e9 * costs.number:.1f} ns, row {1e9 * costs.row:.1f} ns; the slowest of 10, 100, 1000: "
          + ", ".join(f"{costs.slowest(n):.2f}" for n in (10, 100, 1000)), file=out)
    print(f"{rows:.0e} rows, {parameters} parameters; best {costs.best(rows, parameters)} workers", file=out)
    print("workers   model ms   simulated ms", file=out)
    for workers in WORKERS:
        model, run = costs.of_round(workers, rows, parameters), simulated(costs, workers, rows, parameters, rounds)
        print(f"{workers:7d} {1e3 * model:10.1f} {1e3 * run:14.1f}", file=out)


def main() -> None:
    """Measure and print all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    with client_of(2) as client:
        costs = measured(client)
    for parameters in (10, 1000, 100_000):
        report(costs, int(given.rows), parameters, given.rounds)
    print("workers that are as fast as their median:")
    report(replace(costs, spread=np.ones(1)), int(given.rows), 10, 1)


if __name__ == "__main__":
    main()
