"""Many threads at once: one compile for each signature, right results, and a cache that may be cleared meanwhile."""
from __future__ import annotations

import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from jitad import cache, jit, jit_grad, value_and_grad

x3 = np.array([1.0, 2.0, 3.0])
THREADS = 8


@pytest.fixture(autouse=True)
def fresh():
    """An empty cache, and threads that change places often."""
    cache.clear()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def together(work, count=THREADS):
    """Run ``work(i)`` in `count` threads that start at once; the results, or the first error."""
    barrier = threading.Barrier(count)

    def run(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        return [f.result(60) for f in [pool.submit(run, i) for i in range(count)]]


def test_a_cold_function_is_compiled_once():
    @jit_grad
    def f(x):
        return np.sum(np.exp(x) * x)

    got = together(lambda i: f(x3 + i))
    for i, gradient in enumerate(got):
        np.testing.assert_allclose(gradient, np.exp(x3 + i) * (x3 + i + 1), rtol=1e-12)
    info = cache.info(f)
    assert (info.compiles, info.currsize) == (1, 1)


def test_decorated_again_in_each_thread_it_is_still_compiled_once():
    together(lambda i: jit_grad(lambda x: np.sum(np.sin(x) * x))(x3))
    assert cache.info().compiles == 1


def test_several_signatures_at_once():
    f = value_and_grad(lambda x: np.sum(x * x))
    f(np.arange(1.0))                                     # so that the others are not first calls, all at once

    def work(i):
        x = np.arange(1.0 + i % 3)
        for _ in range(50):
            value, gradient = f(x)
            assert value == np.sum(x * x)
            np.testing.assert_array_equal(gradient, 2 * x)
        return True

    with pytest.warns(UserWarning, match="shape"):
        assert all(together(work))
    assert cache.info(f).compiles == 3


def test_clearing_while_calls_run():
    f = jit_grad(lambda x, k: np.sum(x**3) * k)
    stop = threading.Event()

    def work(i):
        if i == 0:
            for _ in range(6):
                cache.clear(f) if _ % 2 else cache.clear()
                stop.wait(0.05)
            stop.set()
            return 0
        count = 0
        while not stop.is_set():
            np.testing.assert_array_equal(f(x3, float(i)), 3 * i * x3**2)
            count += 1
        return count

    assert sum(together(work, 4)) > 0
    cache.clear()
    f(x3, 1.0)
    info = cache.info(f)
    assert (info.compiles, info.currsize) == (1, 1)


SCALE = 1.0


def test_captures_changed_by_another_thread_are_seen_whole(monkeypatch):
    @jit
    def f(x):
        return x * SCALE

    f(x3)
    stop = threading.Event()

    def work(i):
        if i == 0:
            for n in range(2000):
                globals()["SCALE"] = float(n)
            stop.set()
            return True
        while not stop.is_set():
            got = f(x3)
            assert got[0] == int(got[0]) and np.array_equal(got, x3 * got[0])
        return True

    monkeypatch.setitem(globals(), "SCALE", 1.0)
    assert all(together(work, 4))
    assert cache.info(f).compiles == 1


def test_an_error_in_one_thread_reaches_all_and_blocks_none():
    def f(x):
        raise ValueError("on purpose")

    g = jit_grad(f)

    def work(i):
        with pytest.raises(ValueError, match="on purpose"):
            g(x3)
        return True

    assert all(together(work))
    assert cache.info(g).compiles == 0


def test_a_recording_does_not_see_other_threads():
    """Each thread records its own function; calls of compiled functions go on meanwhile."""
    ready = jit_grad(lambda x: np.sum(x**4))
    ready(x3)
    functions = (lambda x: np.sum(x**2), lambda x: np.sum(x**3), lambda x: np.sum(x * x**3), lambda x: np.sum(x**5))

    def work(i):
        g = jit_grad(functions[i])
        np.testing.assert_allclose(g(x3), (i + 2) * x3**(i + 1))
        np.testing.assert_allclose(ready(x3), 4 * x3**3)
        return True

    assert all(together(work, 4))


def test_a_c_function_in_several_threads():
    data = np.linspace(0, 1, 50)
    compiled = jit_grad(lambda theta, y: -np.sum((y[:, None] - theta) ** 2) * 0.5).compile(np.zeros(3), data)
    pointer = compiled.cfunc
    double = ctypes.POINTER(ctypes.c_double)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, double, double, double, ctypes.c_void_p)(pointer.address)

    def work(i):
        theta, gradient, value = x3 * i, np.zeros(3), ctypes.c_double()
        for _ in range(300):
            status = call(3, *(a.ctypes.data_as(double) for a in (theta, gradient)), ctypes.byref(value), pointer.data)
            assert status == 0
            np.testing.assert_allclose(gradient, data.sum() - 50 * theta, rtol=1e-12)
            np.testing.assert_allclose(value.value, -0.5 * np.sum((data[:, None] - theta) ** 2), rtol=1e-12)
        return True

    assert all(together(work, 2))


class Locked:
    """A lock that may not be taken."""

    def __enter__(self):
        raise AssertionError("a warm call takes no lock")

    acquire = __enter__

    def __exit__(self, *args):
        raise AssertionError


def test_warm_calls_take_no_lock(monkeypatch):
    data = np.ones(3)

    @jit_grad
    def f(x):
        return np.sum(x * data) if x[0] > 0 else np.sum(x * x)

    f(x3)
    with pytest.warns(UserWarning, match="another way"):
        f(-x3)
    f(x3), f(-x3)
    (entries,) = [cache.store.entries(owner) for owner in cache.store.owners()]
    with monkeypatch.context() as patch:
        patch.setattr(cache.store, "lock", Locked())
        for _, entry in entries:
            patch.setattr(entry, "lock", Locked())
        for sign in (1, -1, 1):
            np.testing.assert_array_equal(f(sign * x3), data if sign > 0 else -2 * x3)
    assert cache.info(f).compiles == 2


def test_different_functions_at_once_are_each_compiled_once():
    """No more builds than keys, whoever comes first."""
    sources = [f"def f(x): return np.sum(x * {n}.0) + np.sum(np.exp(x))" for n in range(4)]

    def work(i):
        found = []
        for n in range(4):
            space = {"np": np}
            exec(sources[(i + n) % 4], space)
            found.append(jit_grad(space["f"])(x3) - np.exp(x3))
        return [np.round(g[0], 9) for g in found] == [(i + n) % 4 for n in range(4)]

    assert all(together(work))
    assert cache.info().compiles == 4


def test_kernels_are_re_entrant_and_release_the_gil():
    """While one thread is in a long kernel, another goes on with Python."""
    X, theta = np.random.default_rng(0).normal(size=(200_000, 20)), np.zeros(20)
    g = value_and_grad(lambda theta, X: np.sum(np.log1p(np.exp(X @ theta))))
    expected = g(theta, X)
    inside, counts = threading.Event(), []

    def work(i):
        if i == 0:
            inside.set()
            results = [g(theta, X) for _ in range(5)]
            inside.clear()
            return all(r[0] == expected[0] and np.array_equal(r[1], expected[1]) for r in results)
        inside.wait(10)
        count = 0
        while inside.is_set():
            count += 1
        counts.append(count)
        return np.array_equal(g(theta, X)[1], expected[1])

    assert all(together(work, 2)) and counts[0] > 0
