"""Memory that kernels keep from call to call."""
import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from jitad import cache, value_and_grad
from jitad.compile.llvm import native, workspace
from jitad.compile.llvm.workspace import release
from jitad.compile.lower.slots import WorkSlot
from jitad.compile.lower.slots import workspace as places


def _computed_table(q, j):
    return np.sum(np.sin((q[0] + q[1] * q[2:])[j]))


@pytest.fixture
def table():
    """A kernel with 80 kB of work memory, its arguments, value and gradient."""
    rng = np.random.default_rng(0)
    q, j = rng.normal(size=10002), rng.integers(0, 10000, 5000)
    return value_and_grad(_computed_table), (q, j), np.sum(np.sin((q[0] + q[1] * q[2:])[j]))


def test_memory_is_kept_and_given_back(table):
    g, arguments, expected = table
    release()
    assert g(*arguments)[0] == pytest.approx(expected, rel=1e-12)
    kept = release()
    assert kept >= 80000
    assert release() == 0
    g(*arguments)
    g(*arguments)                                           # takes what the first one has given back
    assert release() == kept
    g(*arguments)
    cache.clear(g)
    assert release() == kept                                # that of all functions goes when all is cleared
    g(*arguments)
    cache.clear()
    assert release() == 0


def test_threads_do_not_share_what_they_use(table):
    g, (q, j), _ = table
    points = [q + k for k in range(8)]
    expected = [g(p, j) for p in points]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for (value, gradient), (v, d) in zip(pool.map(lambda p: g(p, j), points), expected, strict=True):
                assert value == v
                np.testing.assert_array_equal(gradient, d)
    assert 0 < release() <= workspace.KEPT


def test_what_exceeds_the_bound_is_not_kept():
    code = native.compile_module(workspace.source(kept=1000000), level=1, vector_width=0)
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(code.address("workspace_take"))
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("workspace_give"))
    blocks = [take(300000) for _ in range(3)]
    assert len(set(blocks)) == 3 and all(b % 64 == 0 for b in blocks)
    for block in blocks:
        give(block)
    assert code.function("workspace_release")() == 2**19            # one of 2**19 bytes, as a second one is too much


def test_arrays_of_one_group_lie_apart_and_others_share_whole_places():
    slots = [WorkSlot("a", 0, 2), WorkSlot("b", 1, 1), WorkSlot("c", 2, 4), WorkSlot("d", 3, 3), WorkSlot("e", 4, 5)]
    sizes = {"a": 100, "b": 40, "c": 20, "d": 300, "e": 90}
    buffers, total = places((s, "f8", (sizes[s.name],)) for s in slots)
    start = {b.name: b.offset for b in buffers}
    reach = {b.name: (b.offset, b.offset + b.size) for b in buffers}
    for s in slots:
        for t in slots:
            together = s is not t and s.first <= t.last and t.first <= s.last
            apart = reach[s.name][1] <= reach[t.name][0] or reach[t.name][1] <= reach[s.name][0]
            assert apart if together else apart or start[s.name] == start[t.name]
    assert len(set(start.values())) == 2 and total["f8"] < sum(sizes.values())
