"""A cluster of two processes, made once; it listens on the loopback alone."""
from __future__ import annotations

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
                      dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
                      silence_logs=50) as made:
        yield made


@pytest.fixture(scope="session")
def client(cluster):
    with Client(cluster) as made:
        yield made
