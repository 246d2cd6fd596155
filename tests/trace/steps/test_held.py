"""Lists, dicts, deques and objects that go from step to step."""
from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import jitad

from .test_programs import differs, slopes

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
P, X = np.array([0.7, 0.5, 0.9]), np.random.default_rng(0).normal(size=14)


def best_way_to_each(p, x):
    lp = [0.0, np.log(p[0])]
    for o in x:
        new = []
        for k in range(2):
            best, other = lp[k], lp[1 - k] - p[1]
            if other > best:
                best = other
            new.append(best - 0.5 * (o - p[2] * k) ** 2)
        lp = new
    return max(lp) + new[0]


def two_rows(p, x):
    above, row = [0.0] * 3, [j * p[0] for j in range(3)]
    for v in x:
        above, row = row, above
        row[0] = above[0] + p[0]
        for j in range(1, 3):
            row[j] = min(above[j] + p[0], row[j - 1] + p[2], above[j - 1] + p[1] * (v - j) ** 2)
    return row[2]


def waiting_line(p, x):
    line, total = deque([p[0], 0.0, 0.0]), 0.0
    for v in x:
        line.append(v * p[0])
        first = line.popleft()
        total += first * p[1] if first > p[1] else -0.1 * first
    return total + sum(line)


def states_in_a_dict(p, x):
    state = {"level": 1.0, "count": 0, "rows": [[0.0, p[0]], [1.0, 2.0]], "name": "tank"}
    same = state
    for v in x:
        if state["level"] > p[1]:
            state["level"] -= p[0] * same["rows"][0][1]
            state["count"] += 1
        elif v > 0:
            state["rows"][1] = [v, state["rows"][0][0]]
        else:
            state["level"] += abs(v)
            state["rows"][0][0] += v
    return same["level"] + 0.1 * state["count"] + state["rows"][0][0] * state["rows"][1][0]


class Node:
    def __init__(self, v):
        self.v, self.kids, self.hits = v, [0.0, v], 0

    def hit(self, v):
        self.hits += 1
        self.kids[0] += v
        if v > self.v:
            self.v = v
        else:
            self.kids = [self.kids[0], self.kids[1] + v]


def objects(p, x):
    one = Node(p[0])
    nodes = [one, Node(p[1])]

    def walk(nodes):
        for v in x:
            nodes[0 if v < p[1] else 1].hit(v)
    walk(nodes)
    return one.v + one.hits * one.kids[1] + nodes[1].kids[0] + nodes[1].hits


def until_it_is_large(p, x):
    q = [p[0], 0.0, 1.0]
    while q[0] < 6.0:
        if q[0] > 2 * p[1]:
            q[1] += q[0] * 0.1
        q[0] += p[2]
        q.insert(0, q.pop())
        q.append(q.pop(0))
    return q[0] * q[1]


def rows_filled_after_they_are_appended(p, x):
    rows, s = [], p[0]
    for v in x:
        row = []
        rows.append(row)
        s = s * 0.9 if s > v else s + v
        row.append(s)
    return sum(r[0] ** 2 for r in rows)


@pytest.mark.parametrize("f", [best_way_to_each, two_rows, waiting_line, states_in_a_dict, objects, until_it_is_large,
                               rows_filled_after_they_are_appended], ids=lambda f: f.__name__)
def test_containers_go_from_step_to_step(f):
    g, rng = jitad.value_and_grad(f), np.random.default_rng(5)
    for k in range(25):
        p = P * (1 + 0.2 * (k > 0) * rng.standard_normal(3))
        value, slope = g(p, X)
        np.testing.assert_allclose(value, f(p, X), rtol=1e-10)
        if k < 6 and not differs(f, p, X):
            np.testing.assert_allclose(slope, slopes(f, p, X), rtol=2e-4, atol=1e-4)
    assert jitad.cache.info(g).compiles <= 3
    jitad.cache.clear(g)


# --- with two names, where a step is not alone in what it writes ---------------------------------------
def rebound_in_some_steps(p, x):
    a = [p[0], 1.0]
    b = a
    for v in x:
        if v > 0:
            a[0] = a[0] * 0.5 + v
        else:
            a = [a[0] * p[1], a[1]]
    return b[0] + 2 * b[1] + a[0]


def rebound_and_written_after(p, x):
    a = [p[0], 1.0]
    b = a
    for v in x:
        if v * p[0] > 1:
            a = [a[0] * p[1], v]
    a[0] = 100.0
    return b[0] + a[1]


def exchanged(p, x):
    a, b = [p[0], 1.0], [2.0, p[1]]
    c = a
    for v in x:
        if v > p[0] * 0.1:
            a, b = b, a
        a[0] = a[0] * 0.9 + v
    return c[0] + 2 * a[1] + 3 * b[0]


def of_the_caller(p, x):
    a = [p[0], 1.0]

    def run(inner):
        for v in x:
            inner[0] = inner[0] + v
            if v > p[1]:
                inner = [inner[0], inner[1] * 0.9]
        return inner[1]
    return run(a) + a[0] * a[1]


def row_with_a_name(p, x):
    rows = [[p[0], 1.0], [0.0, 2.0]]
    row = rows[0]
    for v in x:
        if v > p[1]:
            rows[0] = [v, rows[1][0]]
        else:
            rows[1][0] += v
    return row[0] + rows[0][0] + rows[0][1] * rows[1][0]


def in_a_list_and_written_after(p, x):
    seen, s = [], [p[0], 1.0]
    for v in x:
        s = [s[0] + v, s[1]] if v > p[1] else [s[0], s[1] * 0.9]
        seen.append(s)
    s[0] = 50.0
    return sum(o[0] for o in seen) + seen[3][1]


def in_a_list_and_written_later(p, x):
    seen, s = [], [p[0], 1.0]
    for v in x:
        s[1] += v
        if v > p[1]:
            s = [s[0] + v, s[1]]
        seen.append(s)
    return sum(o[1] for o in seen)


def one_after_some_steps(p, x):
    last = [p[0], 1.0]
    for v in x:
        new = [last[0] * 0.9 + v, v]
        if new[0] > p[1]:
            last = new
    new[0] = 7.0
    return last[0] + new[1] + last[1]


def one_after_each_step(p, x):
    last = [p[0], 1.0]
    for v in x:
        new = [last[0] * 0.9, v]
        if new[0] > p[1]:
            new[1] = last[0]
        last = new
    new[0] = 7.0
    return last[0] + new[1]


def walked_and_written(p, x):
    q, s = [p[0], p[1], 0.3, 0.2, 0.1], 0.0
    for v in q:
        if v > p[2] * 0.3:
            s += v
        q[-1] = s
    return s + q[-1]


def new_keys(p, x):
    c = {}
    for v in x:
        key = "up" if v > p[1] else "down"
        c[key] = c.get(key, 0.0) + v
    return c.get("up", 1.0) * c.get("down", 2.0) * p[0]


@pytest.mark.parametrize("f", [
    rebound_in_some_steps, rebound_and_written_after, exchanged, of_the_caller, row_with_a_name,
    in_a_list_and_written_after, in_a_list_and_written_later, one_after_some_steps, one_after_each_step,
    walked_and_written, new_keys], ids=lambda f: f.__name__)
def test_a_container_with_two_names(f):
    g = jitad.jit(f)
    for x in (X, -X, np.abs(X)):
        np.testing.assert_allclose(g(P, x), f(P, x), rtol=1e-12)
    jitad.cache.clear(g)
