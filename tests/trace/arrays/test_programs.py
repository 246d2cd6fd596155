"""Small random programs of assignments, views and reads, against the same program in plain NumPy."""
from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitad import cache, value_and_grad
from jitad.cache.keys.identity import unwrap
from jitad.errors import MutationError
from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record

X = np.array([0.3, 1.2, -0.7, 2.1, 0.9])
STARTS = [lambda x: np.zeros(6), lambda x: np.ones((3, 4)), lambda x: x.copy(), lambda x: np.outer(x[:3], x),
          lambda x: np.zeros((2, 3, 2)), lambda x: np.arange(12.0).reshape((3, 4), order="F"),
          lambda x: np.array([x[0], 2.0, x[1]])]


def pick(run, n):
    """Draws decide what the program does; the same draws give the same program."""
    run["at"] += 1
    choices = run["choices"]
    return choices[run["at"]] % n if run["at"] < len(choices) else 0


def draw_slice(run, n):
    start, length, step = pick(run, n + 1), pick(run, n + 1), (1, 2, -1)[pick(run, 3)]
    return slice(None, None, step) if step < 0 else slice(start, start + length, step)


def draw_index(run, a):
    kind = pick(run, 6)
    if a.ndim == 0:
        return ...
    n = a.shape[0]
    if n == 0:
        return slice(None)
    if kind == 0:
        return pick(run, n)
    if kind == 1:
        return tuple([pick(run, m) if pick(run, 2) and m else draw_slice(run, m) for m in a.shape])
    if kind == 2:
        return [pick(run, n) - pick(run, 2) * n for _ in range(pick(run, 3) + 1)]
    if kind == 3:
        return np.array([bool(pick(run, 2)) for _ in range(n)])
    if kind == 4:
        return (..., draw_slice(run, a.shape[-1]))
    return draw_slice(run, n)


def draw_value(run, shape):
    kind, x, arrays = pick(run, 5), run["x"], run["arrays"]
    if kind == 0:
        return x[pick(run, 5)]
    if kind == 1:
        return 2.5
    if kind == 2:
        return np.sum(arrays[pick(run, len(arrays))]) * 0.1
    width = shape[-1] if shape else 1
    if kind == 3 and shape:
        return np.concatenate([x] * 3)[:width] if width <= 15 else 1.0
    size = 1
    for n in shape:
        size *= n
    return x[pick(run, 5)] * np.arange(1.0, 1 + size).reshape(shape)


def draw_view(run, a):
    kind = pick(run, 7)
    if kind == 0:
        return a[draw_index(run, a)]
    if kind == 1:
        return a.T
    if kind == 2:
        return a.reshape(-1)
    if kind == 3:
        return a.copy()
    if kind == 4:
        return a * run["x"][0]
    return a[..., None][..., 0] if kind == 5 else np.flip(a)


def step(run):
    arrays = run["arrays"]
    a = arrays[pick(run, len(arrays))]
    kind = pick(run, 8)
    if kind <= 2:
        index = draw_index(run, a)
        value = draw_value(run, np.zeros(a.shape)[index].shape)
        if kind == 2:
            a[index] += value
        else:
            a[index] = value
    elif kind == 3:
        a *= draw_value(run, ())
    elif kind == 4:
        np.add.at(a, draw_index(run, a), 0.5 * run["x"][pick(run, 5)])
    else:
        new = draw_view(run, a)
        if np.ndim(new):
            arrays.append(new)


def program(choices, steps):
    def f(x):
        run = {"choices": choices, "at": -1, "x": x, "arrays": []}
        run["arrays"].append(STARTS[pick(run, len(STARTS))](x))
        for _ in range(steps):
            step(run)
        total = 0.0
        for i, a in enumerate(run["arrays"]):
            total += np.sum(a * np.cos(np.arange(a.size)).reshape(a.shape) * (i + 1)) + np.sum(a**2)
        return total
    return f


def gradient(tape, x):
    builder = Builder()
    inputs = [builder.input(tape.nodes[i].aval, "x") for i in tape.inputs]
    outputs = builder.replay(tape, inputs)
    return evaluate(builder.finish(pullback(builder, outputs, [builder.const(np.ones(()))], inputs)), x)[0]


def check(f):
    try:
        expected = f(X)
    except ValueError as error:              # an in-place operator between views that NumPy cannot broadcast
        assert "broadcast" in str(error) or "read-only" in str(error)
        return None
    h = 1e-5
    slopes = np.array([(f(X + h * e) - f(X - h * e)) / (2 * h) for e in np.eye(5)])
    try:
        tape = record(unwrap(f), (X,), {}).tape()
    except MutationError as error:
        assert "may or may not share" in str(error)
        return None
    np.testing.assert_allclose(evaluate(tape, X)[0], expected, rtol=1e-9)
    scale = 1 + np.abs(slopes).max() + abs(expected)
    np.testing.assert_allclose(gradient(tape, X) / scale, slopes / scale, atol=1e-5)
    return expected, slopes, scale


CHOICES = st.lists(st.integers(0, 41), min_size=1, max_size=60)
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(QUIET, max_examples=150)
@given(CHOICES, st.integers(1, 8))
def test_programs(choices, steps):
    check(program(choices, steps))


@settings(QUIET, max_examples=8)
@given(CHOICES, st.integers(1, 6))
def test_compiled_programs(choices, steps):
    cache.clear()
    f = program(choices, steps)
    found = check(f)
    if found is not None:
        expected, slopes, scale = found
        value, slope = value_and_grad(f)(X)
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        np.testing.assert_allclose(slope / scale, slopes / scale, atol=1e-5)
