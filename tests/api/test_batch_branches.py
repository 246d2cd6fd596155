"""`jitad.batch` where the code branches, and inside of functions that are recorded."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import jitad
from jitad import TapeMismatchError, TapeMismatchWarning, batch, jit, jit_grad
from jitad.errors import ConcretizationError
from tests.helpers.public import fresh  # noqa: F401

rng = np.random.default_rng(11)


def logistic(theta: Any, X: Any, y: Any) -> Any:
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta))) - 0.5 * theta @ theta


SMALL = rng.normal(size=3), (rng.normal(size=(30, 3)), rng.integers(0, 2, 30).astype(float))


# --- branches --------------------------------------------------------------------------------------

def test_examples_that_take_one_way() -> None:
    def f(x: Any) -> Any:
        return x * x if x > 0 else -x
    g = batch(jit_grad(f))
    assert g(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.warns(TapeMismatchWarning, match="another way is taken"):
        assert g(np.array([-1.0, -2.0])).tolist() == [-1.0, -1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert g(np.array([3.0, 4.0])).tolist() == [6.0, 8.0]


def test_examples_that_take_different_ways_are_computed_in_turn() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"a": x * y if x > 0 else -x, "b": x}
    g = batch(f, in_axes=(0, None), out_axes={"a": 0, "b": 0})
    with pytest.warns(TapeMismatchWarning, match=r"different ways at .*_branches.py:\d+; .* np.where") as caught:
        found = g(np.array([1.0, -2.0, 3.0]), 2.0)
    assert found["a"].tolist() == [2.0, 2.0, 6.0] and found["b"].tolist() == [1.0, -2.0, 3.0] and len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert g(np.array([-1.0, 2.0, 3.0]), 2.0)["a"].tolist() == [1.0, 4.0, 6.0]
        assert g(np.array([1.0, 2.0, 3.0]), 2.0)["a"].tolist() == [2.0, 4.0, 6.0]
    strict = batch(f, in_axes=(0, None), on_mismatch="error")
    with pytest.raises(TapeMismatchError, match="the examples of a batch for `f` take different ways"):
        strict(np.array([1.0, -2.0, 3.0]), 2.0)


def test_branches_on_what_all_share_cost_nothing() -> None:
    g = batch(lambda x, n: x * 2 if n > 1 else x, in_axes=(0, None))
    assert g(np.arange(2.0), 3).tolist() == [0.0, 2.0]
    assert not any(guard for guard in g.compile(np.arange(2.0), 3).tape.guards if guard.expected is not True)


# --- in functions that are recorded ----------------------------------------------------------------

def test_inside_of_another_function() -> None:
    theta, data = SMALL
    chains = theta + rng.normal(size=(4, 3))
    w = rng.normal(size=4)
    gradients = batch(jit_grad(logistic), (0, None, None))

    def f(t: Any, w: Any) -> Any:
        return np.sum(w[:, None] * gradients(t, *data)) + np.sum(batch(lambda a, b: a @ a * b)(t, w))
    found = jit_grad(f)(chains, w)
    for i, chain in enumerate(chains):
        expected = w[i] * jitad.hessian(logistic)(chain, *data).sum(0) + 2 * w[i] * chain
        np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-10)


def test_inside_with_axes_and_trees() -> None:
    inner = batch(lambda p, s: {"y": p["a"] * s, "s": s}, in_axes=({"a": 1}, None), out_axes={"y": -1, "s": None})

    def f(a: Any, s: Any) -> Any:
        found = inner({"a": a}, s)
        return found["y"], found["s"] + 1
    a = rng.normal(size=(2, 3))
    y, s = jit(f)(a, 2.0)
    np.testing.assert_allclose(y, 2 * a)
    assert s == 3.0


def test_branches_inside_must_agree() -> None:
    step = batch(lambda x: x * 2 if x > 0 else x)
    f = jit(lambda x: np.sum(step(x)))
    assert f(np.array([1.0, 2.0])) == 6.0
    with pytest.warns(TapeMismatchWarning, match="another way"):
        assert f(np.array([-1.0, -2.0])) == -3.0
    with pytest.raises(ConcretizationError, match=r"examples of a batch take different ways at .*_branches.py"):
        f(np.array([1.0, -2.0]))


def test_inside_of_a_loop() -> None:
    step = batch(lambda x, y: x * np.exp(-y))

    def f(x: Any, ys: Any) -> Any:
        return np.sum(jitad.scan(lambda c, y: (step(c, y), None), x, ys)[0])
    x, ys = rng.normal(size=3), rng.uniform(size=(4, 3))
    np.testing.assert_allclose(jit_grad(f)(x, ys), np.exp(-ys.sum(0)))
