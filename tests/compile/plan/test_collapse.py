"""Loops over several dimensions that are one walk through memory."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitad

M, N = 6, 35
X = np.linspace(-1.0, 1.0, M * N).reshape(M, N)
CUBE = np.linspace(0.5, 2.0, 4 * 5 * 9).reshape(4, 5, 9)
ROWS = np.linspace(0.5, 1.5, M)
COLUMNS = np.linspace(-0.5, 1.5, N)
BEFORE, AFTER = np.zeros((1, N)), np.ones((2, N))

ONE_WALK: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...], int]] = [
    ("matrix", lambda x: np.sum(np.exp(x) * x), (X,), M * N),
    ("two matrices", lambda x, y: np.sum(np.exp(x) * y), (X, X + 1), M * N),
    ("number", lambda x, s: np.sum(np.log1p(np.exp(x)) * s), (X, np.asarray(0.3)), M * N),
    ("cube", lambda x: np.sum(np.sin(x)), (CUBE,), CUBE.size),
    ("columns apart", lambda x: np.sum(np.exp(x[:, ::2])), (np.ones((M, 10)),), M * 5),
    ("rows in the middle", lambda x: np.sum(np.sin(x[1:4])), (X,), 3 * N),
    ("inner two", lambda x, a: np.sum(np.sum(np.exp(x), axis=(1, 2)) * a), (CUBE, np.ones(4)), 45),
    ("constants", lambda x: np.sum(np.cos(x) * X), (X + 2,), M * N),
]
SEVERAL: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
    ("effect of rows", lambda x, a: np.sum(np.exp(x) * a[:, None]), (X, ROWS)),
    ("effect of columns", lambda x, a: np.sum(np.exp(x) * a), (X, COLUMNS)),
    ("sums of rows", lambda x: np.sum(np.sin(np.sum(np.exp(x), axis=1))), (X,)),
    ("transposed", lambda x, y: np.sum(np.exp(x) * y.T), (X, np.ascontiguousarray(X.T) + 1)),
    ("reversed rows", lambda x: np.sum(np.exp(x) * x[::-1]), (X,)),
    ("reversed columns", lambda x: np.sum(np.exp(x) * x[:, ::-1]), (X,)),
    ("part of the columns", lambda x: np.sum(np.exp(x[:, 1:]) * x[:, :-1]), (X,)),
    ("triangle", lambda x: np.sum(np.tril(np.exp(x)) * 2.0), (X,)),
    ("counted", lambda x: np.sum(np.exp(x) * np.arange(M)[:, None]), (X,)),
    ("gathered rows", lambda x, i: np.sum(np.exp(x[i]) * x[i]), (X, np.array([3, 0, 3, 1]))),
    ("outer", lambda a, b: np.sum(np.exp(a[:, None] * b)), (ROWS, COLUMNS)),
    ("stored by columns", lambda x, y: np.sum(np.exp(x) * y), (np.asfortranarray(X), X + 1)),
    ("running", lambda x: np.sum(np.cumsum(np.exp(x), axis=1) * x), (X,)),
    ("parts", lambda x: np.sum(np.sin(np.concatenate([BEFORE, x, AFTER]))), (X,)),
]


def check(f: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> str:
    """Value against NumPy and gradient against differences, on new data of the same layout; the source."""
    g = jitad.jit_grad(f, on_mismatch="silent")
    source = str(g.value_and_grad.source(*arguments))
    later = tuple(a if a.dtype.kind == "i" else (a * 0.9 + 0.05).astype(a.dtype) for a in arguments)
    value, gradient = g.value_and_grad(*later)
    np.testing.assert_allclose(value, f(*later), rtol=1e-12)
    rng = np.random.default_rng(0)
    direction, step = rng.normal(size=later[0].shape), 1e-6
    ends = [f(later[0] + sign * step * direction, *later[1:]) for sign in (1, -1)]
    np.testing.assert_allclose(np.sum(gradient * direction), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6)
    return source


@pytest.mark.parametrize(("f", "arguments", "length"), [pytest.param(*c, id=name) for name, *c in ONE_WALK])
def test_one_walk_is_one_loop(f: Callable[..., Any], arguments: tuple[np.ndarray, ...], length: int) -> None:
    source = check(f, arguments)
    assert f"range({length})" in source
    assert f"range({N})" not in source


@pytest.mark.parametrize(("f", "arguments"), [pytest.param(*c, id=name) for name, *c in SEVERAL])
def test_what_is_not_one_walk_is_right(f: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    check(f, arguments)


def test_memory_by_columns_keeps_its_loops() -> None:
    source = check(lambda x, y: np.sum(np.exp(x) * y), (np.asfortranarray(X), X + 1))
    assert re.search(rf"range\({M}\)", source) and re.search(rf"range\({N}\)", source)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 3, 4, 5), (0, 7), (7, 0)])
def test_shapes(shape: tuple[int, ...], dtype: str) -> None:
    x = np.linspace(0.1, 1.0, int(np.prod(shape))).reshape(shape).astype(dtype)
    value, gradient = jitad.value_and_grad(lambda x: np.sum(np.exp(x) * x), on_mismatch="silent")(x)
    np.testing.assert_allclose(value, np.sum(np.exp(x) * x), rtol=1e-5)
    np.testing.assert_allclose(gradient, np.exp(x) * (x + 1), rtol=1e-5)
