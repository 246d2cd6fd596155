"""Loops whose steps branch, in all that is made of a function: bound data, C functions, the disk, other processes and
threads, batches; ways that a lane alone takes; loops that are no statements."""
from __future__ import annotations

import ctypes
import functools
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitad
from tests.cache.processes import start, wait
from tests.call.test_background import finished

from .programs import RAIN, P, tank

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
ROOT = Path(__file__).parents[3]
DRAWS = P * (1 + 0.2 * np.random.default_rng(8).standard_normal((12, 3)))


@pytest.fixture(autouse=True)
def nothing_compiled():
    jitad.cache.clear()


def checked(p, y):
    """A tank whose rain must not be too much."""
    s, total = 1.0, 0.0
    for u in y:
        s = s + u - p[2] * s
        if s > 9.0:
            raise ValueError(f"too much: {u}")
        if s < 0:
            s = 0.0
        total = total + p[0] * s * s
    return total


def slopes(f, p, *args):
    return np.array([(f(p + 1e-6 * e, *args) - f(p - 1e-6 * e, *args)) / 2e-6 for e in np.eye(len(p))])


def test_bound_data_and_c_functions():
    g = jitad.value_and_grad(tank)
    bound, plain = g.bind(RAIN), [g(p, RAIN) for p in DRAWS]
    c = g.compile(P, RAIN).cfunc
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.POINTER(ctypes.c_double)] * 3,
                            ctypes.c_void_p)(c.address)
    pointer = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    for p, (value, slope) in zip(DRAWS, plain, strict=True):
        assert value == pytest.approx(tank(p, RAIN), rel=1e-12)
        np.testing.assert_allclose(bound(p)[1], slope, rtol=1e-12)
        out, grad = np.zeros(1), np.zeros(3)
        assert call(3, pointer(p), pointer(grad), pointer(out), c.data) == 0
        assert out[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(grad, slope, rtol=1e-12)


@pytest.mark.parametrize("k", [0, 6, 11])
def test_an_exception_in_a_step_of_bound_data(k):
    fine = np.linspace(0.1, 0.5, 12)
    bad = np.where(np.arange(12) == k, 20.0, fine)
    g = jitad.value_and_grad(checked)
    np.testing.assert_allclose(g(P, fine)[1], slopes(checked, P, fine), rtol=1e-6)
    with pytest.raises(ValueError, match=r"too much: 20\.0"):
        g(P, bad)
    bound = g.bind(np.where(np.arange(12) == k, 8.2, fine))
    bound(P + np.array([0.0, 0.0, 0.4]))
    with pytest.raises(ValueError, match=r"too much: 8\.2"):
        bound(P * np.array([1.0, 1.0, 0.0]))


def test_a_way_that_one_lane_alone_takes():
    f = jitad.batch(jitad.value_and_grad(tank), in_axes=(None, 0))
    calm = np.full((4, 9), 0.1)
    f(P, calm)
    for lane, k, u in ((2, 8, 9.0), (0, 0, -9.0), (3, 4, 5.0)):
        rain = calm.copy()
        rain[lane, k] = u
        values, slope = f(P, rain)
        np.testing.assert_allclose(values, [tank(P, r) for r in rain], rtol=1e-12)
        np.testing.assert_allclose(slope, [slopes(tank, P, r) for r in rain], rtol=1e-5, atol=1e-7)


def test_a_way_that_comes_first_while_a_thread_compiles():
    g = jitad.value_and_grad(tank, compile="background")
    for _ in range(2):
        for rain in (np.full(9, 0.1), np.r_[np.full(8, 0.1), 9.0], np.r_[-9.0, np.full(8, 0.1)]):
            value, slope = g(P, rain)
            assert value == pytest.approx(tank(P, rain), rel=1e-12)
            np.testing.assert_allclose(slope, slopes(tank, P, rain), rtol=1e-5, atol=1e-7)
        finished(g)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_way_that_comes_first_in_a_child():
    g, rain = jitad.value_and_grad(tank), np.r_[np.full(8, 0.1), 9.0]
    g(P, np.full(9, 0.1))
    same = lambda: None if g(P, rain)[0] == pytest.approx(tank(P, rain), rel=1e-12) else os._exit(3)
    assert wait(start(same)) == 0
    assert g(P, rain)[0] == pytest.approx(tank(P, rain), rel=1e-12)


def test_a_second_process_has_the_ways_from_the_disk(tmp_path):
    code = """
import numpy as np, jitad
from tests.trace.steps.programs import P, RAIN, tank
g = jitad.value_and_grad(tank, on_mismatch="silent")
for p in P * (1 + 0.2 * np.random.default_rng(8).standard_normal((12, 3))):
    assert abs(g(p, RAIN)[0] - tank(p, RAIN)) < 1e-9
print(jitad.cache.info(g).compiles)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JITAD_CACHE_DIR": str(tmp_path), "JITAD_DISK_CACHE": "1"}
    counts = [int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100,
                                 env=environment).stdout) for _ in range(2)]
    assert counts[0] > 0 and counts[1] == 0


def comprehension(p, x):
    return sum([p[0] * u if u * p[1] > 0.1 else p[2] * u**2 for u in x])


def generator(p, x):
    def states():
        s = 0.0
        for u in x:
            s = s + p[0] * u if s < p[1] else s * p[2]
            yield s
    return sum(v * v for v in states())


def folded(p, x):
    return functools.reduce(lambda s, u: s * p[0] + u if s > p[1] else s - p[2] * u, x, 0.5)


def accumulated(p, x):
    return sum(v * v for v in itertools.accumulate(x, lambda s, u: max(s * p[0] + u, p[1])))


def recursion(p, x, i=0, s=0.0):
    return s if i == len(x) else recursion(p, x, i + 1, s * p[0] + x[i] if s > p[1] else s - p[2] * x[i])


def tree(p, x, depth=3):
    if depth == 0:
        return p[0] * x[0]
    left, right = tree(p, x[1:], depth - 1), tree(p, x[2:], depth - 1)
    return left + right if left > p[1] * right else p[2] * left * right


def at_most(p, x):
    s = 1.0
    for u in x:
        s = max(min(s + p[0] * u, p[1]), -p[2]) + 0.01 * s
    return s * s


@pytest.mark.parametrize("f", [comprehension, generator, folded, accumulated, recursion, tree, at_most])
def test_loops_that_are_no_statements_and_choices_that_are_no_branches(f):
    g, rng = jitad.value_and_grad(f), np.random.default_rng(3)
    p, x = np.array([0.7, 0.3, 0.4]), rng.normal(size=12)
    for _ in range(6):
        q = p * (1 + 0.3 * rng.standard_normal(3))
        value, slope = g(q, x)
        assert value == pytest.approx(f(q, x), rel=1e-11)
        np.testing.assert_allclose(slope, slopes(f, q, x), rtol=1e-5, atol=1e-6)
