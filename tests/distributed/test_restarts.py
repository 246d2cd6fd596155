"""Workers from the shell: one that comes late and cannot write to its disk; a scheduler that is started again."""
from __future__ import annotations

import resource
import subprocess
import sys
from contextlib import ExitStack

import pytest
from distributed import Client, LocalCluster

import jitad
from tests.distributed.test_sharded import SHARDS, T, V, likelihood, prior

PATIENCE = 60                # seconds for what takes few


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


def scheduler(stack, port=0):
    return stack.enter_context(LocalCluster(n_workers=0, host="127.0.0.1", scheduler_port=port, silence_logs=50,
                                            dashboard_address="127.0.0.1:0"))


def worker(stack, address, folder, disk=None):
    """`dask worker`, which may write files of so many bytes only."""
    def limited():
        if disk is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (disk, disk))
    made = subprocess.Popen([sys.executable, "-m", "dask", "worker", address, "--host", "127.0.0.1", "--nthreads", "1",
                             "--no-nanny", "--no-dashboard", "--local-directory", str(folder)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limited)
    stack.callback(made.wait, timeout=PATIENCE)
    stack.callback(made.kill)
    return made


def test_it_goes_on_with_late_workers_on_full_disks_and_after_the_scheduler_was_started_again(stack, tmp_path):
    here = jitad.sharded(likelihood, SHARDS, prior)
    cluster = scheduler(stack)
    address = cluster.scheduler_address
    first = worker(stack, address, tmp_path)
    client = stack.enter_context(Client(address, timeout=PATIENCE))
    client.wait_for_workers(1, timeout=PATIENCE)
    there = jitad.sharded(likelihood, SHARDS, prior, client=client)
    assert there(T) == here(T)

    late = worker(stack, address, tmp_path, disk=0)
    client.wait_for_workers(2, timeout=PATIENCE)
    assert there(V) == here(V) and len(there.engine.held) == 1
    first.kill()
    assert there.hvp(T, V).tobytes() == here.hvp(T, V).tobytes()
    assert there(V + 1.0) == here(V + 1.0)

    cluster.close()
    late.wait(timeout=PATIENCE)                              # it goes when its scheduler does
    scheduler(stack, int(address.rpartition(":")[2]))
    worker(stack, address, tmp_path)
    client.wait_for_workers(1, timeout=PATIENCE)
    assert there(V + 2.0) == here(V + 2.0)
