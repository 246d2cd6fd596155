"""The threads: who has helpers, who has not, and what a fork leaves."""
import os
import threading
import time

import numpy as np
import pytest

from jitad import cache, value_and_grad
from jitad.compile.parallel.pool import BUSY, CALLERS, THREADS, available, pool
from tests.cache import processes

X = np.linspace(-2.0, 2.0, 200_000)


@value_and_grad(parallel=True)
def energy(x):
    return np.sum(np.exp(-x * x) * np.sin(x) ** 2)


@pytest.fixture
def threads():
    """Sets how many there are."""
    yield lambda number: cache.configure(threads=number)
    cache.configure(threads=None)


def bits():
    value, gradient = energy(X)
    return value.hex(), gradient.tobytes()


def test_helpers_come_when_they_are_needed_and_results_do_not_depend_on_them(threads):
    threads(1)
    expected = bits()
    for number in (2, 5, 3):
        threads(number)
        assert all(bits() == expected for _ in range(5))
    assert pool().helpers == 4 and pool().words[BUSY] == pool().words[CALLERS] == 0


def test_calls_at_the_same_time_share_the_cores(threads):
    threads(3)
    expected, failures = bits(), []

    def call():
        for _ in range(40):
            if bits() != expected:
                failures.append(1)
    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures and pool().helpers <= 4 and pool().words[CALLERS] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_the_child_of_a_fork_has_helpers_of_its_own(threads):
    threads(3)
    expected = bits()
    busy = threading.Thread(target=lambda: [bits() for _ in range(40)])
    busy.start()                                         # the pool is in use while the process forks

    def job():
        assert pool().helpers == 0
        assert all(bits() == expected for _ in range(5))
        assert pool().helpers == 2
    children = [processes.start(job) for _ in range(3)]
    assert [processes.wait(child) for child in children] == [0, 0, 0]
    busy.join()
    assert bits() == expected


def test_helpers_sleep_between_calls(threads):
    threads(3)
    bits()
    before, start = time.process_time(), time.perf_counter()
    time.sleep(0.2)
    assert time.process_time() - before < 0.5 * (time.perf_counter() - start)


def test_the_number_of_threads_is_that_of_cores_or_what_the_environment_says(threads, monkeypatch):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for told, number in (("", cores), ("1", 1), ("1000", cores), ("many", cores), ("0", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert available() == number
    energy(X)
    threads(7)
    assert pool().words[THREADS] == 7
