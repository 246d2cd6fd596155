"""Likelihoods in shards on a cluster of processes."""
from __future__ import annotations

import functools
import importlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import numpy as np
import pytest
from distributed import Client

import jitad
from jitad.distributed import keeper
from tests.distributed.test_sharded import T, V, X, Y, prior

SCALE = np.array(2.0)
SHARDS = list(zip(np.split(X[:35], 5), np.split(Y[:35], 5), strict=True))


def likelihood(theta, x, y):
    r = (y - x @ theta) / SCALE
    if y[0] > 0:                                             # some shards go this way, others that
        r = r - 0.1
    return np.sum(np.log1p(r**2))


@pytest.fixture(scope="module")
def here():
    return jitad.sharded(likelihood, SHARDS, prior)


@pytest.fixture(scope="module")
def there(client):
    return jitad.sharded(likelihood, SHARDS, prior, client=client)


def test_all_bits_are_those_of_one_machine(here, there):
    assert len({y[0] > 0 for _, y in SHARDS}) == 2
    for theta in (T, V):
        assert here(theta) == there(theta)
        assert here.grad(theta).tobytes() == there.grad(theta).tobytes()
    assert here.hvp(T, V).tobytes() == there.hvp(T, V).tobytes()
    assert all(a.tobytes() == b.tobytes() for a, b in zip(here.batch([T, V]), there.batch([T, V]), strict=True))
    assert set(there.engine.seconds) == set(there.engine.cluster.workers())


def test_it_is_called_by_compiled_code_and_by_several_threads(here, there):
    gradient = jitad.jit_grad(lambda t: there(t) * 2.0)
    np.testing.assert_array_equal(gradient(T), 2.0 * here.grad(T))
    points = [T + k for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(there, points))
    assert found == [here(point) for point in points]


def test_a_function_that_loads_runs_on_the_worker_and_is_no_shared_name(client):
    here = os.getpid()

    def loading(k):
        return lambda: np.full(k + 1, float(os.getpid() != here))
    ones, tens = (jitad.sharded(f, [loading(0), loading(1)], client=client) for f in (
        lambda theta, x: theta[0] * np.sum(x), lambda theta, x: 10.0 * theta[0] * np.sum(x)))
    assert (ones(V), tens(V)) == (3.0, 30.0)


def test_two_users_may_call_their_functions_and_data_the_same(cluster, client):
    def log_likelihood(theta, x):
        return theta[0] * np.sum(x)
    first = log_likelihood

    def log_likelihood(theta, x):
        return np.sum(x**2) - theta[0]
    with Client(cluster) as other:
        ours, theirs = (jitad.sharded(f, [Y[:3], Y[3:6]], client=user) for f, user in (
            (first, client), (log_likelihood, other)))
        for theta in (T, V):
            assert ours(theta) == jitad.sharded(first, [Y[:3], Y[3:6]])(theta)
            assert theirs(theta) == jitad.sharded(log_likelihood, [Y[:3], Y[3:6]])(theta)


def test_faults_are_named_with_shard_and_worker(client):
    y = SHARDS[4][1].copy()
    y[6] = np.nan
    wrong = [*SHARDS[:4], (SHARDS[4][0], y)]
    with pytest.raises(jitad.NonFiniteError, match=r"shard 4 gives NaN, where `y` is nan in row 6") as caught:
        jitad.sharded(likelihood, wrong, client=client)(T)
    assert "on the worker tcp://127.0.0.1" in caught.value.__notes__[-1]
    with pytest.raises(jitad.TapeFileError):
        jitad.sharded(jitad.primitive(lambda t, x: 1.0, opaque=True, vjp=lambda *a: (a[2], None)), [np.ones(2)],
                      client=client)(T)


def test_captured_values_that_change_are_refused(client, monkeypatch):
    f = jitad.sharded(likelihood, SHARDS, client=client)
    before = f(T)
    monkeypatch.setitem(globals(), "SCALE", np.array(3.0))
    for call in (lambda: f(V), lambda: f.hvp(T, V)):
        with pytest.raises(jitad.SignatureError, match=r"`SCALE`, which the .* has changed since the first evaluation"):
            call()
    monkeypatch.setitem(globals(), "SCALE", 2)               # no array any more
    with pytest.raises(jitad.SignatureError, match=r"reads.* has changed since the first evaluation"):
        f(V)
    monkeypatch.undo()
    assert f(T) == before


def test_other_versions_are_refused(client, monkeypatch):
    monkeypatch.setattr(keeper, "version", lambda name: "1.0" if name == "numpy" else version(name))
    with pytest.raises(jitad.ClusterError, match=r"worker tcp.* has other versions: numpy 2\S* there and 1.0 here"):
        jitad.sharded(likelihood, SHARDS, client=client)(T)


def test_what_is_no_client_is_refused(cluster):
    with pytest.raises(jitad.ArgumentTypeError, match=r"client must be a distributed.Client, not a str"):
        jitad.sharded(likelihood, SHARDS, client="tcp://127.0.0.1:8786")
    with Client(cluster) as closed:
        pass
    with pytest.raises(jitad.ArgumentTypeError, match="the client is closed"):
        jitad.sharded(likelihood, SHARDS, client=closed)


def dying(module, name):
    """From now on, what calls this in the process ends it."""
    *path, last = name.split(".")
    setattr(functools.reduce(getattr, path, importlib.import_module(module)), last,
            lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.parametrize("place", [("jitad.compile.llvm.native", "optimise"), ("jitad.distributed.keeper",
                                                                              "Keeper.answer")])
def test_shards_of_a_worker_that_dies_while_it_works_go_to_others(client, place):
    def own(theta, x, y):                                    # which no test before has compiled
        return np.sum(np.cosh(np.sin(y - x @ theta)))
    here, there = (jitad.sharded(own, SHARDS, prior, client=where) for where in (None, client))
    lost = min(client.run(os.getpid))
    if place[1] == "optimise":                               # before it has compiled
        client.run(jitad.cache.configure, disk=False, workers=[lost])
    else:
        there(T)
    client.run(dying, *place, workers=[lost])
    assert there(V + 1.0) == here(V + 1.0)
    assert lost not in {actor.address for actor in there.engine.held}
    assert sorted(n for held in there.engine.held.values() for n in held) == [0, 1, 2, 3, 4]
    assert there.hvp(V, T).tobytes() == here.hvp(V, T).tobytes()
