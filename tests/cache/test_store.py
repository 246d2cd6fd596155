"""The store under threads: one build per key, waiting without deadlock, clearing while calls run, forks."""

import os
import threading
import time

import pytest

from jitad import cache
from jitad.cache.memory import Store
from tests.cache.memos import PATIENCE, Memo, run_all

THREADS = 8


def test_racing_threads_build_once():
    store, built = Store(), []

    def build():
        built.append(threading.get_ident())
        time.sleep(0.05)
        return object()

    results = run_all(*[lambda: store.get_or_build("f", "k", build)] * THREADS)
    assert len(built) == 1 and len(set(map(id, results))) == 1
    assert store.info() == (THREADS - 1, 1, 1, 1, 1024)


def test_different_keys_build_in_parallel():
    store, both = Store(), threading.Barrier(2, timeout=PATIENCE)

    def build():
        both.wait()  # breaks if the other build has to wait for this one
        return "entry"

    assert run_all(*(lambda k=k: store.get_or_build("f", k, build) for k in "ab")) == ["entry", "entry"]


def test_failing_build_stores_nothing_and_each_waiter_sees_its_own_error():
    store, count = Store(), []

    def build():
        count.append(1)
        time.sleep(0.01)
        raise KeyError(len(count))

    errors = run_all(*[lambda: store.get_or_build("f", "k", build)] * 4)
    assert sorted(e.args[0] for e in errors) == [1, 2, 3, 4]
    assert store.info()[:4] == (0, 4, 0, 0)
    assert store.get_or_build("f", "k", lambda: "fine") == "fine"


def test_waiter_builds_after_another_thread_failed():
    store, count = Store(), []

    def build():
        count.append(1)
        time.sleep(0.02)
        if len(count) == 1:
            raise ValueError
        return "entry"

    results = run_all(*[lambda: store.get_or_build("f", "k", build)] * 4)
    assert sorted(map(repr, results)) == ["'entry'"] * 3 + ["ValueError()"]
    assert len(count) == 2


def test_interrupted_build_does_not_block_the_key():
    def build():
        raise KeyboardInterrupt

    store = Store()
    with pytest.raises(KeyboardInterrupt):
        store.get_or_build("f", "k", build)
    assert store.get_or_build("f", "k", lambda: 1) == 1


def test_build_may_build_others_and_itself():
    store = Store()

    def outer():
        return store.get_or_build("g", "inner", lambda: "a") + store.get_or_build("f", "k", lambda: "b")

    assert store.get_or_build("f", "k", outer) == "ab"
    assert store.entries("f") == [("k", "ab")] and store.entries("g") == [("inner", "a")]


def test_builds_that_need_each_other_do_not_deadlock():
    store, both = Store(), threading.Barrier(2, timeout=PATIENCE)

    def build(mine, other):
        def run():
            both.wait()
            return mine + store.get_or_build("f", other, lambda: other)

        return run

    results = run_all(
        lambda: store.get_or_build("f", "a", build("a", "b")), lambda: store.get_or_build("f", "b", build("b", "a"))
    )
    # One of the two may have to build a private copy; the other waits for a finished one.
    assert {r[0] for r in results} == {"a", "b"} and all(len(r) in (2, 3) for r in results)


def test_building_none_is_refused():
    with pytest.raises(ValueError, match="None"):
        Store().get_or_build("f", "k", lambda: None)


def test_siblings_are_chosen_by_accept():
    store = Store()
    for n in (1, 2):
        assert store.get_or_build("f", "k", lambda n=n: n, accept=lambda e, n=n: e == n) == n
    assert store.get("f", "k", accept=lambda e: e == 1) == 1
    assert store.get("f", "k", accept=lambda e: e == 3) is None
    assert store.get("f", "k") == 1, "the last used one first"
    assert store.info("f")[:4] == (2, 2, 2, 2)


def test_racing_siblings_build_once_each():
    store, built = Store(), []

    def job(n):
        def build():
            built.append(n)
            time.sleep(0.01)
            return n

        return lambda: store.get_or_build("f", "k", build, accept=lambda e: e == n)

    assert run_all(*[job(i % 3) for i in range(9)]) == [i % 3 for i in range(9)]
    assert sorted(built) == [0, 1, 2]


def test_clear_during_build_disowns_it():
    store, started, go = Store(), threading.Event(), threading.Event()

    def slow():
        started.set()
        assert go.wait(PATIENCE)
        return "old"

    results = []
    thread = threading.Thread(target=lambda: results.append(store.get_or_build("f", "k", slow)))
    thread.start()
    assert started.wait(PATIENCE)
    store.clear()
    assert store.get_or_build("f", "k", lambda: "new") == "new", "does not wait for what began before"
    go.set()
    thread.join(PATIENCE)
    assert results == ["old"] and store.entries("f") == [("k", "new")]
    assert store.info()[:4] == (0, 1, 1, 1)


def test_clear_while_many_calls_run():
    store, stop = Store(maxsize=4), time.monotonic() + 0.3

    def work(seed):
        n = seed
        memo = Memo()
        while time.monotonic() < stop:
            n = (n * 7 + 3) % 11
            entry = store.get_or_build(n % 3, n, lambda n=n: [n])
            assert entry == [n]
            store.publish(n % 3, n, entry, memo, lambda entry=entry: setattr(memo, "entry", entry))
        return "done"

    def sweep():
        while time.monotonic() < stop:
            store.clear(None)
            store.clear(1)
            store.resize(3)
            store.info()
        return "done"

    assert run_all(*[lambda i=i: work(i) for i in range(4)], sweep) == ["done"] * 5
    info = store.info()
    assert info.currsize == sum(len(store.entries(o)) for o in store.owners()) <= 3
    store.clear()
    assert store.info()[:4] == (0, 0, 0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("locked", [False, True])
def test_forked_child_does_not_wait_for_threads_it_does_not_have(locked):
    store, started, go = Store(), threading.Event(), threading.Event()

    def slow():
        started.set()
        go.wait(PATIENCE)
        return "parent"

    def hold():
        with store.lock:
            slow()

    thread = threading.Thread(target=hold if locked else lambda: store.get_or_build("f", "k", slow))
    thread.start()
    assert started.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        os._exit(0 if store.get_or_build("f", "k", lambda: "child") == "child" else 1)
    deadline = time.monotonic() + PATIENCE
    done = 0
    while not done and time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    go.set()
    thread.join(PATIENCE)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done and status == 0


def test_module_functions_act_on_what_the_resolver_gives(monkeypatch):
    monkeypatch.setattr(cache, "store", Store())
    monkeypatch.setattr(cache, "_resolve", None)

    def resolve(f):
        if not callable(f):
            raise TypeError("not a function")
        return f.__name__

    def logp():
        pass

    cache.set_resolver(resolve)
    cache.store.get_or_build("logp", "k", object)
    assert cache.info(logp) == (0, 1, 1, 1, 1024) == cache.info()
    assert "No call" in cache.explain(logp)
    cache.store.note_miss("logp", [])
    cache.store.note_miss("logp", ["argument `X`: shape (3,) -> (4,)"])
    assert (
        str(cache.explain(logp))
        == ("miss 2 (the last): argument `X`: shape (3,) -> (4,)\nmiss 1: first call")
        == repr(cache.explain(logp))
    )
    with pytest.raises(TypeError):
        cache.clear(3)
    cache.clear(logp)
    assert cache.info()[:4] == (0, 0, 0, 0)
    cache.resize(7)
    assert cache.info().maxsize == 7
