"""`benchmarks.cluster` runs, in a small size."""
from __future__ import annotations

import numpy as np
import pytest

from benchmarks import cluster
from benchmarks.plan import __main__ as plan

pytestmark = pytest.mark.filterwarnings("ignore:.*do not agree")


def test_it_measures_rounds_and_chains(client):
    assert len(cluster.overhead(client, 3)) == 3
    assert min(cluster.speed_up(client, client, 1e-3, 2)) > 0
    assert cluster.chains(client, 2, 30, 100) > 0


def test_the_model_of_large_clusters_is_what_their_messages_take(client, monkeypatch):
    monkeypatch.setattr(plan, "LINES", 2)
    here = plan.measured(client)
    assert 0 < here.message < 1 and 0 < here.row < 1 and here.slowest(100) >= here.slowest(10) >= 1
    costs = plan.Costs(1e-3, 3e-5, 3e-9, 8e-9, np.random.default_rng(0).lognormal(0.0, 0.25, size=500))
    for workers in plan.WORKERS:
        for parameters in (10, 100_000):
            run = plan.simulated(costs, workers, 10**9, parameters, rounds=100)
            assert abs(costs.of_round(workers, 10**9, parameters) / run - 1) < 0.05
    rounds = {workers: costs.of_round(workers, 10**9, 100_000) for workers in plan.WORKERS}
    assert 100 < costs.best(10**9, 100_000) < 300 and rounds[1000] > rounds[300] and min(rounds, key=rounds.get) < 1000
