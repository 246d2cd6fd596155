"""Branches that only assign numbers, ``min`` and ``max``: no branches, where loops have some."""
from __future__ import annotations

import numpy as np
import pytest

import jitad

from .test_programs import differs, slopes

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
P, X = np.array([0.7, 0.5, 0.9]), np.random.default_rng(0).normal(size=10)


def edit_distance(p, x):
    prev = [j * p[0] for j in range(5)]
    for i in range(1, 8):
        cur = [i * p[0]]
        for j in range(1, 5):
            cost = 0.0 if x[i] > 0.1 * j else p[1]
            best = prev[j - 1] + cost
            if prev[j] + p[0] < best:
                best = prev[j] + p[0]
            if cur[j - 1] + p[2] < best:
                best = cur[j - 1] + p[2]
            cur.append(best)
        prev = cur
    return prev[-1]


def warped(p, x):
    d = [[np.inf] * 6 for _ in range(6)]
    d[0][0] = 0.0
    for i in range(1, 6):
        for j in range(1, 6):
            d[i][j] = abs(p[0] * x[i] - x[j + 4]) + p[1] + min(d[i - 1][j], d[i][j - 1], d[i - 1][j - 1])
    return d[-1][-1]


def limited(p, x):
    s, low = 1.0, np.inf
    for v in x:
        s += v
        if s < 0:
            s = 0
        q = p[0] * (s - p[1]) if s > p[1] else 0.0
        s -= q
        low = min(low, s, 3)
        if s > 2:
            s -= p[2]
    return s + max((low, p[1], s)) + min(w for w in (s, p[0]))


def without_data_of_a_list(p, x):
    data, s = [0.1 * i for i in range(30)], p[0]
    for t in range(30):
        s = s * 0.5 if s > data[t] else s + p[1] * x[t % 10]
    return s


@pytest.mark.parametrize("f", [edit_distance, warped, limited, without_data_of_a_list], ids=lambda f: f.__name__)
def test_choices_compile_once(f):
    g, rng = jitad.value_and_grad(f), np.random.default_rng(5)
    for k in range(12):
        p, x = P * (1 + 0.2 * (k > 0) * rng.standard_normal(3)), X if k < 6 else rng.normal(size=10)
        value, slope = g(p, x)
        np.testing.assert_allclose(value, f(p, x), rtol=1e-10)
        if k < 8 and not differs(f, p, x):
            np.testing.assert_allclose(slope, slopes(f, p, x), rtol=2e-4, atol=1e-4)
    assert jitad.cache.info(g).compiles == 1
    jitad.cache.clear(g)


# --- where both sides cannot be computed ----------------------------------------------------------------
def out_of_bounds(p, x):
    pair, s = [p[0], p[1]], 0.0
    for i in range(10):
        if x[i] > 100:
            s = pair[5]
        if x[i] > 0:
            s = s + pair[0]
        t = p[0]
        if x[i] > 0:
            t = x[i - 9] * p[1]
        s = s - t
    return s


def not_set_yet(p, x):
    s = p[0]
    for i in range(10):
        if x[i] > 9:
            s = last + s                                 # noqa: F821
        last = x[i]
    return s * last


def of_another_kind(p, x):
    s, a, n, rows = 0.0, p, 0, [p[0]]
    for v in x:
        if v > p[0]:
            n = n + 1
        if v > 0:
            a = p * 2
        if v > 1:
            rows = [*rows, v]
        if v < 0:
            s = a[0] + rows[-1]
    return s * n + len(rows)


def asked_for_its_class(p, x):
    s = 0
    for v in x:
        if v > p[0]:
            s = 1.5
        t = 2 if isinstance(s, float) else 3
    return s + t * p[0]


def caught(p, x):
    pair, s = [p[0]], 0.0
    for i in range(3):
        try:
            if x[i] > -50:
                s = pair[i] + s
        except IndexError:
            s = s + 10
    return s * p[0]


def not_a_number(p, x):
    top = -np.inf
    for v in x:
        top = max(top, v * p[0])
        if v == x[3]:
            top = np.nan
    return top if top == top else p[1]


@pytest.mark.parametrize("f", [out_of_bounds, not_set_yet, of_another_kind, asked_for_its_class, caught, not_a_number],
                         ids=lambda f: f.__name__)
def test_what_cannot_be_chosen_is_a_branch(f):
    g = jitad.jit(f)
    for x in (X, -X, np.abs(X)):
        np.testing.assert_allclose(g(P, x), f(P, x), rtol=1e-12)
    jitad.cache.clear(g)
