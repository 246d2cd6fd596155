"""Direct connections to the workers, beside Dask's messages."""
from __future__ import annotations

import socket
import types

import distributed
import numpy as np
import psutil
import pytest

import jitad
from jitad.distributed import cluster as asking
from jitad.distributed.lines import SECRET, Answering, DirectLine, message, opened
from tests.cache.processes import start, wait
from tests.distributed.test_sharded import SHARDS, T, V, likelihood, prior

HERE = jitad.sharded(likelihood, SHARDS, prior)


class Echo(Answering):
    def twice(self, x):
        return 2 * x

    def wrong(self):
        raise ValueError(lambda: "what does not travel")


@pytest.fixture
def worker(monkeypatch):
    made = types.SimpleNamespace(address="tcp://127.0.0.1:1")
    monkeypatch.setattr(distributed, "get_worker", lambda: made)
    return made


def test_who_has_the_secret_is_answered_and_nobody_else(worker):
    secret = b"s" * SECRET
    line = opened(worker.address, Echo().listen(secret), secret)
    assert [line.send(message("twice", (x,))) or line.receive(5.0) for x in (3, "ab")] == [6, "abab"]
    line.send(message("wrong", ()))
    assert "ValueError: <function" in str(line.receive(5.0))
    line.close()
    port = Echo().listen(secret)
    stranger = opened(worker.address, port, b"t" * SECRET)
    with pytest.raises(OSError):
        stranger.receive(5.0)
    assert opened(worker.address, port, secret) is None      # who came once does not come again
    worker.address = "tls://127.0.0.1:1"                     # as safe as that is no line
    assert Echo().listen(secret) is None and opened(worker.address, None, secret) is None
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert opened("tcp://127.0.0.1:1", port, secret) is None


def usage():
    own = psutil.Process()
    return own.num_fds(), own.memory_info().rss


def test_a_thousand_rounds_leave_no_file_open_and_no_memory_behind(client):
    there = jitad.sharded(likelihood, SHARDS, prior, client=client)
    points = np.random.default_rng(0).normal(size=(1200, 2))
    found = [there(point) for point in points[:200]]
    before = {**client.run(usage), "here": usage()}
    found += [there(point) for point in points[200:]]
    for who, (files, memory) in {**client.run(usage), "here": usage()}.items():
        assert files <= before[who][0] + 1 and memory < before[who][1] + 3_000_000
    assert found[::100] == [HERE(point) for point in points[::100]]


def test_answers_that_nobody_took_are_not_those_of_the_next_round(client, monkeypatch):
    there = jitad.sharded(likelihood, SHARDS, prior, client=client)
    there(T)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(DirectLine, "receive", lambda self, patience: (_ for _ in ()).throw(KeyboardInterrupt))
        there(V)
    assert there(V + 1.0) == HERE(V + 1.0)


def test_without_lines_dask_carries_the_round(client, monkeypatch):
    monkeypatch.setattr(asking, "opened", lambda *given: None)
    there = jitad.sharded(likelihood, SHARDS, prior, client=client)
    assert there(T) == HERE(T) and all(actor.line is None for actor in there.engine.held)


def test_a_forked_process_has_no_part_in_the_lines(client):
    there = jitad.sharded(likelihood, SHARDS, prior, client=client)
    there(T)

    def ask():
        with pytest.raises(jitad.ClusterError, match="forked from the one that has the client"):
            there(V)
    assert wait(start(ask), 30.0) == 0 and there(V) == HERE(V)
