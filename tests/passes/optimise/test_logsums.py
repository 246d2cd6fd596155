"""Logarithms of sums of exponentials of sums: products where those lose nothing, else what the user has written."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import jitad
from jitad.call.build import specialize
from jitad.call.build.specialize import build
from jitad.passes.optimise import logsums
from jitad.tape.evaluate import evaluate
from tests.helpers.public import fresh  # noqa: F401

STATES, STEPS = 4, 40
rng = np.random.default_rng(16)
inf = np.inf


def forward(q, e):
    a = e[0]
    for t in range(1, len(e)):
        a = logsumexp(a[:, None] + q, axis=0) + e[t]
    return logsumexp(a)


def masked(q, e):
    found = forward(q, e)
    return np.where(np.isfinite(found), found, -1e3)


def by_hand(q, e):
    a = e[0]
    for t in range(1, len(e)):
        x = a[:, None] + q
        m = x.max(axis=0, keepdims=True)
        a = (m + np.log(np.exp(x - m).sum(axis=0, keepdims=True))).squeeze(0) + e[t]
    return a.sum()


def backward(q, e):
    b = np.zeros(len(q))
    for t in range(len(e) - 2, -1, -1):
        b = logsumexp(q + (e[t + 1] + b)[None, :], axis=1)
    return logsumexp(b + e[0])


def emission_within(q, e):
    a = e[0]
    for t in range(1, len(e)):
        a = logsumexp(a[:, None] + q + e[t][None, :], axis=0)
    return logsumexp(a)


def several(q, e):
    emissions = np.stack([e, 0.5 * e, e[::-1]], axis=1)
    a = emissions[0]
    for t in range(1, len(e)):
        a = np.logaddexp.reduce(a[:, :, None] + q, axis=1) + emissions[t]
    return np.sum(logsumexp(a, axis=1))


def nested(q, e):
    total = 0.0
    for s in range(3):
        a = e[s]
        for t in range(1, len(e)):
            a = logsumexp(a[:, None] + q, axis=0) + e[t] * (1 + s)
        total = total + logsumexp(a)
    return total


def matrices(q, e):
    return np.sum(np.tanh(logsumexp(e[:, :, None] + q[None], axis=1) / 10))


def data(name):
    q, e = rng.normal(size=(STATES, STATES)), rng.normal(size=(STEPS, STATES))
    if name == "far":                   # a state that is left for good is ever farther behind
        q[np.tril_indices(STATES, -1)] = -inf
        e *= 100
    elif name == "apart":               # the largest terms of the factors never meet
        q = np.where(np.eye(STATES) > 0, 0.0, -800.0)
        e = np.where(np.arange(STATES) == 2, 0.0, -100.0) + e
    elif name in ("-inf column", "-inf row"):
        q[(slice(None), 2) if name == "-inf column" else (2,)] = -inf
    elif name != "usual":
        e[4, 1] = {"-inf": -inf, "inf": inf, "nan": np.nan}[name]
    return q, e


def tape_of(transformed, *args):
    subject = transformed.subject
    return build(subject.target, subject.request, subject.arguments(args, {})).tape


def both(transformed, *args):
    """The tape with products, and the tape without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logsums, "LARGE", 0)
        tape = tape_of(transformed, *args)
        patch.setattr(specialize, "factored", lambda builder, values: values)
        written = tape_of(transformed, *args)
    assert "while" in str(tape) and "while" not in str(written)
    return tape, written


def same(tape, written, names):
    with np.errstate(all="ignore"):
        for given in map(data, names):
            for a, b in zip(evaluate(tape, *given), evaluate(written, *given), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


FUNCTIONS = (forward, masked, by_hand, backward, emission_within, several, nested, matrices)
DATA = ("usual", "far", "apart", "-inf column", "-inf row", "-inf", "inf", "nan")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_products_have_the_value_and_the_gradient_of_what_is_written(function):
    tape, written = both(jitad.value_and_grad(function, argnums=(0, 1)), *data("usual"))
    names = DATA if function is forward else ("usual", "far", "inf")
    same(tape, written, names)
    with np.errstate(all="ignore"):
        for given in map(data, names):
            np.testing.assert_allclose(evaluate(tape, *given)[0], function(*given), rtol=1e-13)


def test_second_derivatives():
    same(*both(jitad.hessian(forward), *data("usual")), ("usual", "far", "-inf column"))


def test_a_kernel_takes_the_product_or_what_is_written(monkeypatch):
    monkeypatch.setattr(logsums, "LARGE", 0)
    g, written = jitad.value_and_grad(forward), both(jitad.value_and_grad(forward), *data("usual"))[1]
    with np.errstate(all="ignore"):
        for given in map(data, ("usual", "far", "-inf column", "inf")):
            for a, b in zip(g(*given), evaluate(written, *given), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    assert jitad.cache.info(g).compiles == 1


@pytest.mark.parametrize("function", [
    lambda q, e: np.sum(logsumexp(np.outer(e, q).reshape(STEPS, STATES, -1), axis=1)),       # no factors
    lambda q, e: np.sum((m := (e[:, :, None] + q).max(axis=1)) ** 2                           # the maximum is used
                        + (m + np.log(np.sum(np.exp(e[:, :, None] + q - m[:, None]), axis=1))))])
def test_what_has_no_factors_or_is_used_elsewhere_stays(function, monkeypatch):
    monkeypatch.setattr(logsums, "LARGE", 0)
    assert "while" not in str(tape_of(jitad.value_and_grad(function), *data("usual")))
