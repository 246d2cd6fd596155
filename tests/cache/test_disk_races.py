"""The store on disk under many processes at once, and under SIGKILL at any instant."""

import os
import random
import signal
import time

import pytest

from jitad.cache.disk import TEMPORARY, DiskStore
from tests.cache.processes import start, wait

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
PROCESSES = 20


def payload(n, size=20_000):
    return random.Random(n).randbytes(size // 2 + n * 37 % size)


def key(n):
    return f"{n:040x}"


def no_warning(message):
    raise AssertionError(message)


def check(root):
    """Everything that is there is whole: nothing is broken, and what is found is what was put."""
    store = DiskStore(root, warn=no_warning)
    entries = list(store.entries())
    names = [name for name in os.listdir(root) if not name.startswith(TEMPORARY)]
    assert len(entries) == len(names)
    for entry in entries:
        assert store.get(entry.key) == payload(int(entry.key, 16))
    return entries


def test_processes_race_on_an_empty_folder(tmp_path):
    root = tmp_path / "cache"

    def work(seed):
        store = DiskStore(root, warn=no_warning)
        order = list(range(12))
        random.Random(seed).shuffle(order)
        for n in order:
            found = store.get(key(n))
            assert found is None or found == payload(n)
            assert store.put(key(n), payload(n), {"function": f"f{n}"}, replace=bool(seed % 2)) or not seed % 2
            assert store.get(key(n)) == payload(n)

    children = [start(lambda i=i: work(i)) for i in range(PROCESSES)]
    assert [wait(child) for child in children] == [0] * PROCESSES
    assert {int(entry.key, 16) for entry in check(root)} == set(range(12))
    assert not [name for name in os.listdir(root) if name.startswith(TEMPORARY)]


def test_processes_race_on_a_folder_that_is_too_small(tmp_path):
    root, maxbytes = tmp_path / "cache", 200_000

    def work(seed):
        store, numbers = DiskStore(root, maxbytes, warn=no_warning), random.Random(seed)
        for _ in range(25):
            n = numbers.randrange(40)
            assert store.get(key(n)) in (None, payload(n))
            assert store.put(key(n), payload(n))
            if n == 0:
                store.clear(lambda entry: int(entry.key, 16) % 2)

    children = [start(lambda i=i: work(i)) for i in range(PROCESSES)]
    assert [wait(child) for child in children] == [0] * PROCESSES
    check(root)
    store = DiskStore(root, maxbytes)
    store.put(key(1), payload(1))
    assert store.total_bytes() <= maxbytes


def test_a_process_is_killed_at_any_instant(tmp_path):
    root, numbers = tmp_path / "cache", random.Random(1)

    def work(seed):
        store, mine = DiskStore(root, 300_000, warn=no_warning), random.Random(seed)
        while True:
            n = mine.randrange(60)
            store.put(key(n), payload(n), replace=mine.random() < 0.7)
            store.get(key(mine.randrange(60)))
            if mine.random() < 0.02:
                store.clear(lambda entry: mine.random() < 0.5)

    end, killed = time.monotonic() + 4, 0
    while time.monotonic() < end or killed < 20:
        children = [start(lambda: work(numbers.random())) for _ in range(2)]
        time.sleep(numbers.uniform(0.001, 0.06))
        for child in children:
            os.kill(child, signal.SIGKILL)
        assert {os.waitpid(child, 0)[1] for child in children} == {signal.SIGKILL}
        killed += 2
        if os.path.exists(root):
            check(root)
    store = DiskStore(root, warn=no_warning)
    assert store.put(key(1), payload(1)) and store.get(key(1)) == payload(1)
    store.clear()
    assert os.listdir(root) == [], "what the killed ones left is cleaned up"
