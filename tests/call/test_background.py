"""``compile="background"``: the first calls are interpreted while a thread compiles."""
from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import jitad
from jitad import cache
from jitad.compile.entry.kernel import Kernel
from jitad.errors import ArgumentTypeError
from tests.cache.processes import start, wait
from tests.helpers.public import compiling, fresh, same  # noqa: F401

x = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def held(monkeypatch):
    """Compilation waits for this event."""
    let, code = threading.Event(), Kernel.call.func

    def call(self):
        assert let.wait(60)
        return code(self)
    monkeypatch.setattr(Kernel.call, "func", call)
    yield let
    let.set()


def slow_function():
    return jitad.value_and_grad(lambda x, a: np.sum(np.exp(a * x)), compile="background")


def finished(g):
    """Wait until all kernels of the entries are there."""
    for _, entry in cache.store.entries(jitad.call.family.owner_of(g)):
        for thread in list(entry.compiling.values()):
            thread.join(60)


def test_calls_are_served_while_the_kernel_is_compiled(held):
    g = slow_function()
    expected = np.sum(np.exp(2 * x))
    with compiling(1):
        for _ in range(3):
            value, gradient = g(x, 2.0)
            assert value == pytest.approx(expected, rel=1e-14)
            np.testing.assert_allclose(gradient, 2 * np.exp(2 * x), rtol=1e-14)
            assert g._call is g.fallback
        (_, entry), = cache.store.entries(jitad.call.family.owner_of(g))
        assert not entry.kernels and len(entry.compiling) == 1
        held.set()
        finished(g)
        assert g(x, 2.0)[0] == pytest.approx(expected, rel=1e-14)
        assert g._call is not g.fallback and entry.kernels and not entry.compiling
        assert cache.info(g).misses == 1


def test_compile_waits(held):
    g = slow_function()
    g(x, 2.0)
    threading.Timer(0.05, held.set).start()
    compiled = g.compile(x, 2.0)
    assert held.is_set() and compiled(x, 2.0)[0] == pytest.approx(np.sum(np.exp(2 * x)))


def test_errors_of_the_compiler_are_raised_by_the_next_call(monkeypatch):
    g, code = slow_function(), Kernel.call.func

    def fail(self):
        raise MemoryError("as if")
    monkeypatch.setattr(Kernel.call, "func", fail)
    g(x, 2.0)
    finished(g)
    with pytest.raises(MemoryError, match="as if") as caught:
        g(x, 2.0)
    assert "was compiled in the background" in caught.value.__notes__[0]
    monkeypatch.setattr(Kernel.call, "func", code)
    g(x, 2.0)
    finished(g)
    assert g(x, 2.0)[0] == pytest.approx(np.sum(np.exp(2 * x))) and g._call is not g.fallback


def test_other_ways_and_signatures():
    g = jitad.jit_grad(lambda x: np.sum(x * x) if x[0] > 0 else np.sum(x), compile="background")
    for _ in range(2):
        same(g(x), 2 * x)
        same(g(-x), np.ones(3))
        same(g(x[:2]), 2 * x[:2])
        finished(g)


def test_failures_are_those_of_the_function(held):
    g = jitad.jit(lambda a: np.linalg.cholesky(a), compile="background")
    g(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        g(-np.eye(2))


def test_a_fork_waits_for_the_compiler():
    g = slow_function()
    g(x, 2.0)

    def works():
        g(x, 2.0)
        assert abs(g(x, 2.0)[0] - np.sum(np.exp(2 * x))) < 1e-9

    assert wait(start(works)) == 0
    assert g(x, 2.0)[0] == pytest.approx(np.sum(np.exp(2 * x)))


def test_the_interpreter_ends_in_good_order():
    code = ("import numpy as np, jitad\n"
            "g = jitad.jit_grad(lambda x: np.sum(np.exp(x)), compile='background')\n"
            "print(g(np.zeros(2)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, "JITAD_DISK_CACHE": "0"})
    assert done.stdout.strip() == "[1. 1.]" and not done.stderr


def test_options():
    with pytest.raises(ArgumentTypeError, match='compile must be "now" or "background", not \'later\''):
        jitad.jit_grad(np.sum, compile="later")
    assert jitad.jit(lambda x: x, compile="now").subject.settings.background is False
