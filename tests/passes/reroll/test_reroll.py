"""Loops written in Python become scans: the same values, gradients and guards as the recording itself."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import value_and_grad
from jitad.cache.keys.identity import unwrap
from jitad.passes.reroll.reroll import reroll
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record
from tests.passes.reroll.recurrences import Q, T, Y, garch_slots, hmm_vectors, kalman, rk4, rng, rolled, scans

GROUPS = [0, 2, 1, 2, 0, 1, 1, 2, 0, 3] * 3
SORTED = sorted(GROUPS)


def ar2(q, y):
    lp = 0.0
    for t in range(2, len(y)):
        lp = lp - 0.5 * (y[t] - q[0] * y[t - 1] - q[1] * y[t - 2]) ** 2
    return lp


def ar_states(q, y):
    x = [q[0], q[1]]
    for t in range(2, len(y)):
        x.append(q[2] * x[t - 1] - 0.5 * x[t - 2] + np.sin(y[t]))
    return np.sum(np.array(x) ** 2)


def seasonal(q, y):
    x = [q[0] * (i + 1) for i in range(5)]
    for t in range(5, len(y)):
        x.append(0.5 * x[t - 5] + q[1] * x[t - 1] * y[t])
    return sum(x)


def garch_list(q, y):
    h = [np.exp(q[0])]
    for t in range(1, len(y)):
        h.append(np.exp(q[1]) + 0.3 * y[t - 1] ** 2 + q[2] ** 2 * h[-1])
    return -0.5 * np.sum(np.log(np.array(h))) - 0.5 * np.sum(y**2 / np.array(h))


def every_other_slot(q, y):
    a = np.ones(2 * len(y))
    for t in range(len(y)):
        a[2 * t + 1] = np.cos(q[0] * y[t]) + 0.1 * (a[2 * t - 1] if t else q[1])
    return np.sum(a**2 * np.arange(len(a)))


def rows(q, y):
    a = np.zeros((len(y), 2))
    a[0] = q[:2]
    for t in range(1, len(y)):
        a[t, 0] = a[t - 1, 1] * q[2] + y[t]
        a[t, 1] = np.tanh(a[t - 1, 0])
    return np.sum(a * a[::-1])


def hmm_scalars(q, y):
    a, b = -0.5 * (y[0] - q[0]) ** 2, -0.5 * (y[0] - q[1]) ** 2
    for t in range(1, len(y)):
        ea, eb = -0.5 * (y[t] - q[0]) ** 2, -0.5 * (y[t] - q[1]) ** 2
        a, b = np.logaddexp(a + q[2], b + q[3]) + ea, np.logaddexp(a - q[2], b - q[3]) + eb
    return np.logaddexp(a, b)


def euler(q, y):
    z = q[:2]
    for _ in range(40):
        z = z + 0.05 * np.array([z[1], q[2] * z[0] - q[3] * z[1]])
    return np.sum(z**2)


def grid(q, y):
    total, table = 0.0, y.reshape(5, 5)
    for i in range(5):
        row = q[0]
        for j in range(5):
            row = np.sin(row) * table[i, j] + q[1]
            total = total + row * table[j, i]
        total = total * 0.9
    return total


def cumulative(q, y):
    c = np.zeros(len(y))
    c[0] = y[0] * q[0]
    for t in range(1, len(y)):
        c[t] = c[t - 1] + y[t] * q[0]
    return np.sum(np.exp(-c**2))


def fixed_point(q, y):
    x = q[0]
    for _ in range(50):
        x = np.cos(x) * q[1]
    return x


def constants(q, y):
    x = q[0]
    for t in range(1, 40):
        x = np.sin(x / t) + q[1] * np.sqrt(t) + (t % 7) * 0.1
    return x


def backwards(q, y):
    x = q[0]
    for t in range(len(y) - 1, -1, -1):
        x = np.tanh(x * q[1] + y[t])
    return x


def two_loops(q, y):
    h = [q[0]]
    for t in range(1, len(y)):
        h.append(np.sin(h[t - 1]) * q[1] + y[t])
    lp = 0.0
    for t in range(len(y)):
        lp = lp - np.log(1 + h[t] ** 2) * q[2]
    return lp


def backward_pass(q, y):
    """A filter and a smoother that goes back over what the filter has made."""
    m = [q[0]]
    for t in range(1, len(y)):
        m.append(0.9 * m[-1] + np.sin(q[1] * y[t]))
    s = m[-1]
    for t in range(len(y) - 2, -1, -1):
        s = m[t] + q[2] * (s - m[t + 1])
    return s * m[3]


def windows(q, y):
    x = q[0]
    for t in range(3, len(y)):
        x = np.sin(x) + np.sum(y[t - 3:t] * q[:3])
    return x


def groups(q, y):
    total = q[0]
    for t, g in enumerate(GROUPS[:T]):
        total = np.sin(total) + q[g] * y[t]
    return total


def sorted_groups(q, y):
    total = q[0]
    for t, g in enumerate(SORTED[:T]):
        total = np.sin(total) + q[g] * y[t]
    return total


def odd_ends(q, y):
    x = np.exp(q[0]) * y[3]
    for t in range(30):
        if t == 0:
            x = x + 1
        x = np.cos(x) * q[1] + y[min(t, 24)]
        if t == 29:
            x = x * q[2]
    return x


def branch_on_data(q, y):
    x = q[0]
    for t in range(40):
        if t % 2:
            x = np.sin(x) * q[1]
        else:
            x = x * x - q[2]
    return x


def last_inside(q, y):
    for t in range(30):
        inner = np.exp(q[0] * y[t % T]) + (inner if t else 0.0)                 # noqa: F821
        outer = np.sin(inner) * q[1]
    return outer


def matrices(q, y):
    m = np.outer(q, q)
    for t in range(30):
        m = 0.5 * m @ np.diag(q) + y[t % 20] * m.T
    return np.trace(m)


def integers(q, y):
    x, n = q[0], 0
    for t in range(30):
        n = n + t
        x = x * 0.5 + n * q[1]
    return x


def every_third(q, y):
    x = q[3]
    for t in range(240):
        x = np.sin(x) + t % 7 * q[0] if t % 3 else x * 0.9
    return x


def weekdays(q, y):
    x = 0.0
    for t in range(120):
        x = 0.9 * x + q[t % 4] * q[1] * y[t % len(y)] if t >= 40 else x + q[t % 4]
        if t % 2 == 0:
            x = np.sin(x)
    return x


LOOPS = [ar2, ar_states, seasonal, garch_list, garch_slots, every_other_slot, rows, hmm_scalars, hmm_vectors, kalman,
         euler, rk4, grid, cumulative, fixed_point, constants, backwards, two_loops, backward_pass, windows, groups,
         sorted_groups, odd_ends, branch_on_data, last_inside, matrices, integers,
         every_third, weekdays]


def nodes_of(tape):
    return sum(1 + (nodes_of(n.params["body"]) if n.prim.kind == "scan" else 0) for n in tape.nodes)


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_a_loop_becomes_a_scan_that_gives_the_same(f):
    recording, plain, short = rolled(f, Q, Y)
    assert scans(short)
    assert nodes_of(short) < 0.8 * nodes_of(plain)
    for _ in range(3):
        inputs = [Q + 0.1 * rng.normal(size=4), Y + 0.2 * rng.normal(size=T), *recording.captured]
        for a, b in zip(evaluate(plain, *inputs), evaluate(short, *inputs), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-13)


def test_values_that_come_again_and_again_are_stacked_once():
    """The length of a loop does not show on the tape, nor on that of its derivative."""
    def steps(q, y, count):
        x = q[3]
        for t in range(count):
            x = np.sin(x) + t % 7 * q[0] if t % 3 else x * 0.9
        return x

    tapes = [value_and_grad(steps, on_mismatch="silent").compile(Q, Y, count).tape for count in (210, 840)]
    assert len(tapes[0]) == len(tapes[1]) < 200


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_values_are_the_recorded_ones_to_the_last_bit(f):
    recording = record(unwrap(f), (Q, Y))
    values = reroll(recording.builder, [*recording.argument_inputs, *recording.captured_inputs, *recording.outputs], 20)
    inputs = [Q, Y, *recording.captured]
    assert evaluate(values[-1].builder.finish(values[-1:]), *inputs) == evaluate(recording.tape(), *inputs)


def riccati(q, y):
    A, P = np.diag(q[:3]) + 0.1, np.eye(3)
    for _ in range(12):
        P = A @ P @ A.T - A @ P @ np.linalg.inv(P + np.eye(3)) @ P @ A.T + np.eye(3)
    return np.trace(P) * y[0]


def short(q, y):
    s = q[:3]
    for _ in range(12):
        s = np.sin(s) + y[0] * s
    return np.sum(s)


def test_factorizations_make_a_loop_of_few_steps_worth_while():
    _, flat, tape = rolled(riccati, Q, Y, least=200)
    assert scans(tape) and not scans(flat)
    np.testing.assert_allclose(evaluate(tape, Q, Y)[0], riccati(Q, Y), rtol=1e-13)
    assert not scans(rolled(short, Q, Y, least=200)[2])
