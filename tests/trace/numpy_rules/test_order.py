"""Sorting, searching, quantiles and counting on traced values against NumPy: value, dtype, shape, gradient, guards."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder
from jitad.tape.evaluate import GuardMiss, evaluate
from tests.helpers.cases.order import FREE, GUARDED, numbers, tape_of

TABLE = [(f"{family} {label}", f, shape) for family, rows in FREE.items() for label, f, shape in rows]
ALL = TABLE + [(f"guarded {label}", f, shape) for label, f, shape in GUARDED]


def flat(result):
    return [part for r in result for part in flat(r)] if isinstance(result, tuple) else [np.asarray(result)]


def plain(function, x):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flat(function(x))


KINDS = ("float64", "float32", "int64", "ties", "nan", "infinite")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("label", "function", "shape"), ALL, ids=[row[0] for row in ALL])
def test_value(label, function, shape, kind):
    x = numbers(shape, kind)
    try:
        expected = plain(function, x)
    except Exception as error:
        with pytest.raises(type(error)):
            tape_of(function, x)
        return
    got = evaluate(tape_of(function, x), x)
    rtol = 2e-5 if kind == "float32" else 1e-12
    for g, e in zip(got, expected, strict=True):
        assert (g.shape, g.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(g, e, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("kind", ["float64", "ties", "int64"])
@pytest.mark.parametrize(("label", "function", "shape"), TABLE, ids=[row[0] for row in TABLE])
def test_one_tape_serves_all_data(label, function, shape, kind):
    """No guard, and the tape recorded on other data gives NumPy's value."""
    tape = tape_of(function, numbers(shape, kind))
    if label.split(" ", 1)[1] in ("choose clip", "searchsorted sorter"):
        return
    assert tape.guards == () or "traced q" in label or "weights" in label
    for seed in range(1, 5):
        x = numbers(shape, kind, seed)
        for g, e in zip(evaluate(tape, x), plain(function, x), strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("label", "function", "shape"), GUARDED, ids=[row[0] for row in GUARDED])
def test_a_guarded_tape_is_right_or_refuses(label, function, shape):
    tape, served = tape_of(function, numbers(shape, "float64")), 0
    for seed in range(30):
        x = numbers(shape, "float64", seed)
        try:
            got = evaluate(tape, x)
        except GuardMiss:
            continue
        served += 1
        for g, e in zip(got, plain(function, x), strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-12, atol=1e-12)
    assert served >= (1 if label in ("sorted", "max") else 2), served


def gradients(tape, x, weights):
    builder = Builder()
    value = builder.input(tape.nodes[tape.inputs[0]].aval, "x")
    outputs = builder.replay(tape, [value])
    chosen = [o for o in outputs if o.dtype.kind == "f"]
    seeds = [builder.const(w) for w, o in zip(weights, outputs, strict=True) if o.dtype.kind == "f"]
    found, = evaluate(builder.finish(pullback(builder, chosen, seeds, [value])), x)
    return found


@pytest.mark.parametrize(("label", "function", "shape"), ALL, ids=[row[0] for row in ALL])
def test_gradient(label, function, shape):
    x = numbers(shape, "float64", 2)
    expected = plain(function, x)
    rng = np.random.default_rng(1)
    weights = [np.asarray(rng.normal(size=e.shape)) for e in expected]
    direction, h = np.asarray(rng.normal(size=shape)), 1e-6

    def objective(t):
        return sum(float(np.sum(r * w)) for r, w in zip(plain(function, x + t * direction), weights, strict=True)
                   if r.dtype == np.float64)
    if not any(e.dtype == np.float64 for e in expected):
        return
    found = float(np.sum(gradients(tape_of(function, x), x, weights) * direction))
    slope = (8 * (objective(h) - objective(-h)) - (objective(2 * h) - objective(-2 * h))) / (12 * h)
    assert found == pytest.approx(slope, rel=1e-6, abs=1e-7)
