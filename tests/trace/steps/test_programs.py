"""Loops whose steps go different ways: few kernels, NumPy's values, the derivatives of differences."""
from __future__ import annotations

import numpy as np
import pytest

import jitad

from . import programs
from .programs import CASES, RAIN, P

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
MOST = {"adaptive": 4, "first_passage": 4, "tank_in_arrays": 3}       # compilations; 2 for the others


@pytest.fixture(autouse=True)
def nothing_compiled():
    jitad.cache.clear()


def slopes(f, p, *args, h=1e-6):
    return np.array([(f(p + h * e, *args) - f(p - h * e, *args)) / (2 * h) for e in np.eye(len(p))])


def differs(f, p, *args):
    """Whether a kink is near, where differences say nothing."""
    a, b = (slopes(f, p, *args, h=h) for h in (1e-6, 3e-7))
    return np.abs(a - b).max() > 1e-4 * (1 + np.abs(a).max())


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_values_and_gradients_of_many_patterns(case):
    f, p0, *args = case
    g, rng = jitad.value_and_grad(f), np.random.default_rng(5)
    for k in range(25):
        p = p0 * (1 + 0.1 * (k > 0) * rng.standard_normal(p0.shape))
        value, slope = g(p, *args)
        np.testing.assert_allclose(value, f(p, *args), rtol=1e-10)
        if not differs(f, p, *args):
            np.testing.assert_allclose(slope, slopes(f, p, *args), rtol=2e-4, atol=1e-4)
    assert jitad.cache.info(g).compiles <= MOST.get(f.__name__, 2)
    assert jitad.cache.info(g).currsize <= MOST.get(f.__name__, 2)


@pytest.mark.parametrize("name", ["tank", "adaptive", "first_passage"])
def test_second_order_forward_mode_and_batches(name):
    f, p, *args = next(c for c in CASES if c[0].__name__ == name)
    g = jitad.grad(f)
    expected = np.array([slopes(lambda q, i=i: g(q, *args)[i], p) for i in range(len(p))])
    np.testing.assert_allclose(jitad.hessian(f)(p, *args), expected, rtol=1e-4, atol=1e-4)
    v = np.arange(1.0, 1 + len(p))
    np.testing.assert_allclose(jitad.jvp(lambda q: f(q, *args), (p,), (v,))[1], g(p, *args) @ v, rtol=1e-9)
    many = p * (1 + 0.1 * np.random.default_rng(1).standard_normal((5, len(p))))
    values, slope = jitad.batch(jitad.value_and_grad(f), in_axes=(0, None))(many, *args)
    np.testing.assert_allclose(values, [f(q, *args) for q in many], rtol=1e-10)
    np.testing.assert_allclose(slope, [g(q, *args) for q in many], rtol=1e-9, atol=1e-12)


def test_a_way_that_comes_first_in_the_last_step_or_the_first():
    g = jitad.value_and_grad(programs.tank_in_arrays)
    for rain in (np.full(9, 0.2), np.r_[np.full(8, 0.2), 9.0], np.r_[-9.0, np.full(8, 0.2)], np.full(9, 0.2)):
        np.testing.assert_allclose(g(P, rain)[0], programs.tank_in_arrays(P, rain), rtol=1e-12)
    assert jitad.cache.info(g).compiles <= 3
    assert jitad.cache.info(g).currsize == 1             # the latest serves all


def test_an_exception_in_a_step():
    def f(x, y):
        s = x
        for u in y:
            if u < 0:
                raise ValueError(f"no {u}")
            s = np.sin(s) if s > u else s * u
        return s
    g, fine = jitad.grad(f), np.linspace(0.1, 2.0, 12)
    for k in (0, 7, 11):
        g(1.5, fine)
        with pytest.raises(ValueError, match=r"no -3\.0"):
            g(1.5, np.where(np.arange(12) == k, -3.0, fine))
    np.testing.assert_allclose(g(1.5, fine), (f(1.5 + 1e-6, fine) - f(1.5 - 1e-6, fine)) / 2e-6, rtol=1e-6)


def test_variables_that_are_one_array_stay_so():
    def f(x):
        a = 0.5 * x
        b = a
        for t in range(6):
            if x[0] * t > 3.0:
                a *= 0.5
            b *= 0.9
        a += 1.0
        return np.sum(a * b)
    g = jitad.jit(f)
    for x in (np.ones(3), np.full(3, 2.0), np.array([0.1, 5.0, 1.0])):
        np.testing.assert_allclose(g(x), f(x), rtol=1e-12)


def test_what_does_not_fit_is_recorded_step_by_step():
    def grows(x):
        v = x[:1]
        for t in range(4):
            v = np.concatenate([v, [v[-1] * x[t]]]) if x[t] > 0 else v[1:] if len(v) > 1 else v
        return np.sum(v)

    def counts(x):
        seen = {}
        for t in range(5):
            key = "up" if x[t] > 0 else "down"
            seen[key] = seen.get(key, 0) + 1
        return x[0] * seen.get("up", 0)

    def reads(x):
        rows = [x[0]]
        for t in range(1, 5):
            rows.append(rows[-1] * 0.5 if x[t] > 0 else rows[-1] + x[t])
        return rows[-1]
    rng = np.random.default_rng(0)
    for f in (grows, counts, reads):
        g = jitad.jit(f)
        for x in rng.normal(size=(12, 5)):
            np.testing.assert_allclose(g(x), f(x), rtol=1e-12)


def test_the_disk_knows_the_ways(tmp_path, monkeypatch):
    from jitad.cache.keys.identity import unwrap
    from jitad.trace.record import record
    from jitad.trace.steps.known import covers, frozen, thawed

    loops = record(unwrap(programs.tank_in_arrays), (P, RAIN)).loops
    again = thawed(frozen(loops))
    assert covers(again, loops) and covers(loops, again)
    (known,) = again.values()
    assert known.walked and len(known.paths) >= 2
