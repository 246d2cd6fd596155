"""A quick kernel serves until another process has compiled the one that takes long."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import jitad
from jitad import cache
from jitad.call import ladder
from jitad.compile.entry import worker
from jitad.compile.outline import outline
from tests.cache.processes import PATIENCE, start, wait

x = np.array([1.0, 2.0, 3.0])
GRADIENT = 2 * np.exp(2 * x)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Every kernel is one that takes long, and none is on the disk."""
    cache.clear()
    monkeypatch.setattr(outline, "PATIENCE", 0.0)
    monkeypatch.setattr(cache, "persistent_store", lambda: None)


@pytest.fixture
def stopped(monkeypatch):
    """Processes that are told what to compile only when the event is set."""
    def answer(process, sent, whole=worker.answer):
        started.append(process)
        event.wait(PATIENCE)
        return whole(process, sent)
    started, event = [], threading.Event()
    event.started = started
    monkeypatch.setattr(worker, "answer", answer)
    yield event
    event.set()


def entry_of(g):
    (_, entry), = cache.store.entries(jitad.call.family.owner_of(g))
    return entry


def finished(entry):
    for thread in list(entry.improving.values()):
        thread.join(PATIENCE)
        assert not thread.is_alive()


def function():
    return jitad.value_and_grad(lambda x, a: np.sum(np.exp(a * x)))


def right(g):
    value, gradient = g(x, 2.0)
    assert value == pytest.approx(np.sum(np.exp(2 * x)), rel=1e-14)
    np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-14)


def tiers(entry):
    return [(kernel.tier, kernel.quick) for kernel in entry.kernels.values()]


def test_a_quick_kernel_serves_until_the_other_is_there(stopped):
    g = function()
    right(g)
    entry, quick = entry_of(g), g._call
    right(g)
    assert tiers(entry) == [("machine", True)] and g._call is quick is not g.fallback
    stopped.set()
    finished(entry)
    assert tiers(entry) == [("kernel", False)] and g._call is g.fallback
    right(g)
    assert g._call is not g.fallback and len(stopped.started) == 1
    info = cache.info(g)
    assert (info.misses, info.hits, info.compiles) == (1, 2, 1)


def test_threads_call_while_kernels_change(stopped):
    g, wrong = function(), []

    def calls():
        try:
            for _ in range(300):
                right(g)
        except BaseException as error:
            wrong.append(error)
    right(g)
    threads = [threading.Thread(target=calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    stopped.set()
    finished(entry_of(g))
    for thread in threads:
        thread.join(PATIENCE)
    right(g)
    assert not wrong and tiers(entry_of(g)) == [("kernel", False)]


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import os; os.write(1, b'1234567890')"])
def test_where_no_kernel_comes_the_quick_one_stays(code, monkeypatch):
    monkeypatch.setattr(worker, "START", code)
    g = function()
    right(g)
    entry = entry_of(g)
    finished(entry)
    right(g)
    assert tiers(entry) == [("machine", True)] and g._call is not g.fallback


def test_a_process_that_is_cut_off(stopped):
    g = function()
    right(g)
    deadline = time.monotonic() + PATIENCE
    while not stopped.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stopped.started[0].kill()
    stopped.set()
    finished(entry_of(g))
    right(g)
    assert tiers(entry_of(g)) == [("machine", True)]


def test_cache_clear_meanwhile(stopped):
    g = function()
    right(g)
    thread, = entry_of(g).improving.values()
    cache.clear(g)
    stopped.set()
    thread.join(PATIENCE)
    assert not thread.is_alive() and cache.info(g).currsize == 0 and g._call is g.fallback
    right(g)
    finished(entry_of(g))
    right(g)
    assert tiers(entry_of(g)) == [("kernel", False)]


def test_compile_waits_for_the_kernel(stopped):
    g = function()
    right(g)
    compiled = g.compile(x, 2.0)
    assert compiled.tier == "kernel" and "piece" not in compiled.source
    right(g)


def test_the_child_of_a_fork_begins_again(stopped):
    g = function()
    right(g)

    def begins_again():
        stopped.set()
        right(g)
        finished(entry_of(g))
        right(g)
        assert tiers(entry_of(g)) == [("kernel", False)]

    assert wait(start(begins_again)) == 0
    right(g)


def test_the_interpreter_does_not_wait():
    code = ("import numpy as np, jitad, time\n"
            "from jitad.compile.outline import outline\n"
            "from jitad.compile.entry import worker\n"
            "outline.PATIENCE, worker.START = 0.0, 'import time; time.sleep(600)'\n"
            "print(jitad.jit_grad(lambda x: np.sum(np.exp(x)))(np.zeros(2)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, "JITAD_DISK_CACHE": "0"})
    assert done.stdout.strip() == "[1. 1.]" and not done.stderr


def test_the_better_kernel_goes_to_the_disk(monkeypatch):
    saved = []
    monkeypatch.setattr(ladder.stored, "save", lambda *given: saved.append(given[-1].quick))
    g = function()
    right(g)
    assert not saved
    finished(entry_of(g))
    right(g)
    assert saved == [False]
