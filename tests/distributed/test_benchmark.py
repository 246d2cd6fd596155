"""`benchmarks.cluster` runs, in a small size."""
from __future__ import annotations

from benchmarks import cluster


def test_it_measures_rounds_and_chains(client):
    assert len(cluster.overhead(client, 3)) == 3
    assert min(cluster.speed_up(client, client, 1e-3, 2)) > 0
    assert cluster.chains(client, 2, 30, 100) > 0
