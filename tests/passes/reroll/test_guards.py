"""Re-rolling: guards, what must not be re-rolled, whole calls, random programs."""
from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.passes.reroll.reroll import reroll
from jitad.tape.builder import Builder
from jitad.tape.evaluate import GuardMiss, evaluate
from jitad.trace.record import record
from tests.passes.reroll.recurrences import Q, T, Y, garch_slots, hmm_vectors, kalman, rk4, rolled, scans

rng = np.random.default_rng(5)


# --- guards ------------------------------------------------------------------------------------

def clipped(q, y):
    x = q[0]
    for t in range(len(y)):
        x = 0.5 * x + q[1] * y[t]
        if x > 3.0:
            x = x - 3.0
    return x


def until_small(q, y):
    x, n = q[0], 0
    while x * x > 0.01:
        x = x * 0.8 + 0.001 * q[1] * y[n % T]
        n += 1
    return x * n


def counted(q, y):
    total = q[0]
    for t in range(len(y)):
        k = int(np.floor(3 * y[t]))
        total = np.sin(total) * (k + 0.5) + q[1]
    return total


def decisions(tape, *inputs):
    try:
        return evaluate(tape, *inputs)
    except GuardMiss:
        return None


@pytest.mark.parametrize(("f", "q"), [(clipped, Q), (until_small, np.array([1.0, 0.3, 0, 0])), (counted, Q)])
def test_guards_are_kept(f, q):
    recording, plain, short = rolled(f, q, Y)
    assert scans(short)
    assert len(short.guards) <= len(plain.guards)
    missed = 0
    for scale in (0.0, 0.01, 0.3, 1.0, 3.0, 9.0):
        for _ in range(10):
            inputs = [q + scale * rng.normal(size=4), Y + 0.1 * scale * rng.normal(size=T), *recording.captured]
            a, b = decisions(plain, *inputs), decisions(short, *inputs)
            assert (a is None) == (b is None)
            missed += a is None
            if a is not None:
                np.testing.assert_allclose(b[1], a[1], rtol=1e-11, atol=1e-13)
    assert bool(missed) == (f is not until_small)             # of which each number of steps is one loop


def test_guards_of_a_loop_are_few():
    _, plain, short = rolled(clipped, Q, Y)
    assert len(plain.guards) <= 1
    assert len(short.guards) <= 1


def test_a_step_that_ends_the_loop_does_not_what_comes_after_and_may_fail():
    def f(q):
        cov = np.eye(2)
        for t in range(30):
            cov = (0.9 - q[2] * t) * cov + 0.1 * np.outer(q[:2], q[:2])
            if cov[0, 0] < 0.1:
                return cov[1, 1]
            cov = np.linalg.inv(np.linalg.inv(cov) + np.eye(2) * 0.01)
        return np.sum(cov)
    g = jitad.jit(f)
    for q in ([1.0, 0.5, 0.0], [0.0, 0.0, 0.3], [0.0, 0.0, 0.9], [0.1, 0.2, 0.05]):
        np.testing.assert_allclose(g(np.array(q)), f(np.array(q)), rtol=1e-12, atol=1e-15)


# --- what is not re-rolled -----------------------------------------------------------------------

def irregular(q, y):
    x = q[0]
    for t in range(60):
        x = (np.sin, np.cos, np.tanh)[(t * t * 7 + t // 5 + (t ** 3) % 11) % 3](x) * q[1]
    return x


def doubling(q, y):
    x = [q[0], q[1]]
    for t in range(2, 60):
        x.append(np.sin(x[t // 2]) + x[t - 1])
    return x[-1]


def growing(q, y):
    x = [q[0]]
    for _ in range(12):
        x.append(np.sum(np.array(x) ** 2) * 0.1 + q[1])
    return x[-1]


@pytest.mark.parametrize("f", [irregular, doubling, growing])
def test_what_does_not_repeat_stays(f):
    recording, plain, short = rolled(f, Q, Y)
    assert not scans(short)
    inputs = [Q, Y, *recording.captured]
    assert evaluate(plain, *inputs)[0] == evaluate(short, *inputs)[0]


def test_short_tapes_are_the_same_builder():
    recording = record(unwrap(garch_slots), (Q, Y[:8]))
    values = reroll(recording.builder, recording.outputs)
    assert values[0].builder is recording.builder


def test_an_empty_builder():
    assert reroll(Builder(), []) == []


def test_the_work_is_linear():
    def steps(count):
        def f(q, y):
            x = q[0]
            for _ in range(count):
                x = np.sin(x) * q[1] + x
            return x
        recording = record(unwrap(f), (Q, Y))
        calls = 0

        def count_call(frame, event, arg):
            nonlocal calls
            calls += 1
        sys.setprofile(count_call)
        try:
            reroll(recording.builder, [*recording.argument_inputs, *recording.outputs])
        finally:
            sys.setprofile(None)
        return calls
    small, large = steps(400), steps(1600)
    assert large < 4.5 * small


# --- whole calls -----------------------------------------------------------------------------------

LONG = 0.3 * rng.normal(size=60)


@pytest.mark.parametrize("f", [garch_slots, hmm_vectors, kalman, rk4], ids=lambda f: f.__name__)
def test_calls_agree_with_numpy_and_finite_differences(f):
    g = jitad.value_and_grad(f)
    value, gradient = g(Q, LONG)
    assert scans(g.compile(Q, LONG).tape)
    np.testing.assert_allclose(value, f(Q, LONG), rtol=1e-10)
    other = Q + 0.05
    value, gradient = g(other, LONG)
    np.testing.assert_allclose(value, f(other, LONG), rtol=1e-10)
    h = 1e-5
    expected = [(f(other + h * e, LONG) - f(other - h * e, LONG)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=1e-6)


def test_a_branch_in_a_long_loop_records_anew():
    g = jitad.value_and_grad(clipped)
    y = np.tile(Y, 8)
    np.testing.assert_allclose(g(Q, y)[0], clipped(Q, y), rtol=1e-12)
    assert len(g.compile(Q, y).tape.guards) < 10
    other = np.array([0.3, 5.0, 0.5, 0.2])
    with pytest.warns(jitad.TapeMismatchWarning):
        value, _ = g(other, y)
    np.testing.assert_allclose(value, clipped(other, y), rtol=1e-12)


# --- random programs ---------------------------------------------------------------------------------

UNARY = [np.sin, np.tanh, lambda x: x * 0.5, lambda x: -x, np.square, np.cos]
BINARY = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - 0.5 * b, np.maximum, np.arctan2]


@st.composite
def programs(draw):
    """A loop over lists: each statement combines operands at lags, elements of y, parameters and constants."""
    states = draw(st.integers(1, 3))
    operand = st.one_of(
        st.tuples(st.just("state"), st.integers(0, states - 1), st.integers(1, 3)),
        st.tuples(st.just("now"), st.integers(0, states - 1), st.just(0)),
        st.tuples(st.just("y"), st.integers(-2, 2), st.integers(1, 2)),
        st.tuples(st.just("q"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("cycle"), st.integers(0, 3), st.integers(2, 4)),
        st.tuples(st.just("const"), st.integers(1, 3), st.integers(0, 1)),
        st.tuples(st.just("array"), st.just(0), st.just(0)))
    statement = st.tuples(st.integers(0, len(BINARY) - 1), st.integers(0, len(UNARY) - 1), operand, operand)
    body = draw(st.lists(statement, min_size=states, max_size=states + 2))
    return {"states": states, "body": body, "steps": draw(st.integers(5, 14)), "slots": draw(st.booleans()),
            "odd": draw(st.sampled_from([None, "first", "middle", "last"])), "nest": draw(st.integers(1, 3)),
            "result": draw(st.sampled_from(["last", "all", "some", "loop"]))}


def operand_of(kind, states, t, q, y):
    name, i, j = kind
    if name in ("state", "now"):
        history = states[i]
        return history[max(len(history) - 1 - max(j - 1, 0), 0)]
    if name == "y":
        return y[min(max(j * t + i, 0), len(y) - 1)]
    if name == "q":
        return q[i]
    if name == "cycle":
        return q[(t * i) % j]
    return float(t * i + 1) if name == "const" and j else 0.3 * i if name == "const" else np.sum(y[:3] * q[1:])


def interpreted(program):
    def f(q, y):
        states = [[q[i] * 0.5] for i in range(program["states"])]
        if program["slots"]:
            kept = np.zeros(program["steps"] * program["nest"] + 1)
        n = 0
        for t in range(program["steps"]):
            for _ in range(program["nest"]):
                for s, (b, u, left, right) in enumerate(program["body"]):
                    x = BINARY[b](operand_of(left, states, t, q, y), operand_of(right, states, t, q, y))
                    states[s % len(states)].append(np.tanh(UNARY[u](x)))
                if program["slots"]:
                    kept[n] = states[0][-1]
                n += 1
            at = {"first": 0, "middle": program["steps"] // 2, "last": program["steps"] - 1}.get(program["odd"])
            if t == at:
                states[0].append(np.exp(states[0][-1]) * q[3])
        result = q[0] * 0
        if program["result"] == "all":
            result = sum(np.sum(np.array(s)) for s in states)
        elif program["result"] == "some":
            result = states[0][1] * states[-1][-2]
        elif program["result"] == "loop":
            for a, b in zip(states[0][1:], states[-1], strict=False):
                result = 0.9 * result + a * b
        if program["slots"]:
            result = result + np.sum(kept**2)
        return result + states[0][-1]
    return f


@given(programs(), st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_random_loops(program, seed):
    f = interpreted(program)
    recording, plain, short = rolled(f, Q, Y, least=6)
    draw = np.random.default_rng(seed)
    inputs = [Q + 0.3 * draw.normal(size=4), Y + draw.normal(size=T), *recording.captured]
    a, b = evaluate(plain, *inputs), evaluate(short, *inputs)
    np.testing.assert_allclose(b[0], a[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(b[1], a[1], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(b[0], f(*inputs[:2]), rtol=1e-9, atol=1e-12)
