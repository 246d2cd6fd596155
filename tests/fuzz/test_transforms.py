"""Pairs of transformations, and batches of 1 to 17: each against the same done one at a time."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitad import (
    batch,
    hessian,
    hvp,
    jacobian,
    jit,
    jit_grad,
    jvp,
    linearize,
    vjp,
)

W = np.array([[0.3, -0.8, 0.5, 1.1], [0.9, 0.2, -0.4, 0.6], [-0.7, 0.1, 0.8, -0.2]])
TRIANGLE = np.triu_indices(4)


def loop(x: Any) -> Any:
    s, out = 0.2, np.zeros(4)
    for i in range(12):
        s = np.tanh(s + x[i % 4]) * 0.8
        out[i % 4] += s
    return out


def assigned(x: Any) -> Any:
    a = np.zeros((2, 4))
    a[0] = x ** 2
    a[1, ::-1] = np.sin(x)
    a[:, 1] *= x[0]
    return a.sum(axis=0)


def chosen(x: Any) -> Any:
    return np.where(x > 0.1, np.log1p(np.abs(x)), x * x[::-1])


def solved(x: Any) -> Any:
    return np.linalg.solve(np.eye(4) * 4.0 + np.outer(x, x), x)


def joined(x: Any) -> Any:
    return np.concatenate([np.cumsum(x), np.sort(x), [x.max(), np.prod(np.cos(x))]])


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.exp(-x ** 2) * np.cos(x[0]) / (1.5 + np.sin(x)),
    "product": lambda x: W @ np.tanh(x),
    "outer gather": lambda x: np.outer(x, x)[TRIANGLE],
    "product gather": lambda x: (x[:, None] * np.cos(x))[[0, 3, 1], [2, 2, 0]],
    "chosen": chosen, "loop": loop, "assigned": assigned, "solved": solved, "joined": joined,
    "scattered": lambda x: np.bincount(np.array([0, 2, 2, 1]), weights=x * x, minlength=4),
    "views": lambda x: (x.reshape(2, 2).T @ x.reshape(2, 2)[::-1]).ravel() * x[1],
    "statistics": lambda x: np.array([x.mean(), x.std(), np.median(x) * x[2], np.linalg.norm(x)]),
}
POINT = np.array([0.6, -0.9, 0.35, 1.2])
CASES = pytest.mark.parametrize("f", list(FUNCTIONS.values()), ids=list(FUNCTIONS))


def scalar(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(np.sin(f(x)))


def by_differences(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The Jacobian, by central differences extrapolated once."""
    def ends(step: float, i: int) -> Any:
        move = np.eye(len(x))[i] * step
        return (f(x + move) - f(x - move)) / (2 * step)
    return np.stack([(4 * ends(5e-4, i) - ends(1e-3, i)) / 3 for i in range(len(x))], axis=-1)


@CASES
def test_first_derivatives_agree(f: Callable[[Any], Any]) -> None:
    expected = by_differences(f, POINT)
    forward, reverse = jacobian(f, mode="forward")(POINT), jacobian(f, mode="reverse")(POINT)
    np.testing.assert_allclose(forward, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11, atol=1e-12)
    value, pullback = vjp(f, POINT)
    seed = np.linspace(-1, 1, value.size)
    np.testing.assert_allclose(pullback(seed)[0], seed @ forward, rtol=1e-11, atol=1e-12)
    _, pushforward = linearize(f, POINT)
    np.testing.assert_allclose(pushforward(W[0]), forward @ W[0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(jvp(f, (POINT,), (W[1],))[1], forward @ W[1], rtol=1e-11, atol=1e-12)


@CASES
def test_pairs_of_derivatives_agree(f: Callable[[Any], Any]) -> None:
    """The second derivative, by every pair of transformations that gives it."""
    g = scalar(f)
    expected = by_differences(lambda x: jit_grad(g)(x), POINT)
    pairs = {
        "hessian": hessian(g)(POINT),
        "forward over reverse": jacobian(jit_grad(g), mode="forward")(POINT),
        "reverse over reverse": jacobian(jit_grad(g), mode="reverse")(POINT),
        "reverse over forward": jacobian(lambda x: jacobian(g, mode="forward")(x), mode="reverse")(POINT),
        "jvp over grad": np.stack([jvp(jit_grad(g), (POINT,), (e,))[1] for e in np.eye(4)], axis=-1),
        "vjp over grad": np.stack([vjp(jit_grad(g), POINT)[1](e)[0] for e in np.eye(4)]),
        "hvp": np.stack([hvp(g)(POINT, e) for e in np.eye(4)], axis=-1),
        "batched hvp": batch(hvp(g), in_axes=(None, 0))(POINT, np.eye(4)),
        "grad of a product": np.stack([jit_grad(lambda x, e=e: np.dot(jit_grad(g)(x), e))(POINT) for e in np.eye(4)]),
        "inside jit": jit(lambda x: hessian(g)(x))(POINT),
    }
    for name, found in pairs.items():
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=name)
        np.testing.assert_allclose(found, pairs["hessian"], rtol=1e-10, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("count", range(1, 18))
@pytest.mark.parametrize("name", ["outer gather", "product gather", "loop", "assigned", "solved", "joined"])
def test_a_batch_is_its_examples(name: str, count: int) -> None:
    f, examples = FUNCTIONS[name], np.random.default_rng(count).normal(size=(count, 4))
    if count % 2:
        found = batch(f)(examples)
        np.testing.assert_allclose(found, np.stack([f(x) for x in examples]), rtol=1e-11, atol=1e-12)
    else:
        gradient = jit_grad(scalar(f))
        expected = np.stack([gradient(x) for x in examples])
        np.testing.assert_allclose(batch(gradient)(examples), expected, rtol=1e-11, atol=1e-12)
