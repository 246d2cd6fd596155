"""A cluster of two processes, made once; it listens on the loopback alone."""
from __future__ import annotations

import time

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


@pytest.fixture(autouse=True)
def _two_workers(request):
    """One that a test before has ended may still begin again."""
    if "client" in request.fixturenames:
        client, until = request.getfixturevalue("client"), time.monotonic() + 60
        while len(client.nthreads()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
