"""Computed indices that are out of bounds: a branch where they are caught, NumPy's error where they are not."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitad import jit
from tests.helpers.failures import follows
from tests.helpers.public import fresh  # noqa: F401


def test_an_index_out_of_bounds() -> None:
    def f(x: Any) -> Any:
        try:
            return x[np.argmin(np.abs(x[:3] - 2.0)) + 2] ** 2
        except IndexError:
            return -x[1]
    inside, outside = np.array([2.0, 5.0, 7.0, 1.0]), np.array([9.0, 5.0, 2.1, 1.0])
    follows(f, [inside, outside, inside + 0.1, outside + 0.1])


def test_index_arrays_and_assignment_out_of_bounds() -> None:
    def f(x: Any) -> Any:
        places = np.argsort(x) + np.argmax(x) - 1
        try:
            y = np.zeros(3)
            y[places] = x * x
            return np.sum(y * np.array([1.0, 2.0, 3.0])) + np.sum(np.take(x, places) * x)
        except IndexError:
            return x[1] ** 2
    follows(f, [np.array([1.0, 5.0, 2.0]), np.array([1.0, 2.0, 5.0]), np.array([2.0, 6.0, 1.0])])


def test_indices_in_a_loop_inside_of_a_try() -> None:
    def f(x: Any) -> Any:
        total, at = 0.0, np.argmin(x)
        try:
            for t in range(80):
                total = total + x[at + (t % 2)] * x[(at + t % 3) % 3] * (1.0 + 0.01 * t)
        except IndexError:
            return x[0] ** 2
        return total
    follows(f, [np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]), np.array([2.0, 1.0, 3.0])])


def _stored(x: Any, i: Any) -> Any:
    a = np.zeros(3)
    a[i] = 1.0
    a[:] = x
    return np.sum(a)


def _in_a_loop(x: Any, i: Any) -> Any:
    total = 0.0
    for t in range(60):
        x[i[t % 2]], x[i[t % 2] // 2]
        total = 0.9 * total + x[t % 3]
    return total


@pytest.mark.parametrize("f", [lambda x, i: np.sum(x[i]), lambda x, i: x[0] * x[i].size, lambda x, i: x[i][:0].sum(),
                               lambda x, i: (np.take(x, i), x[0])[1], _stored, _in_a_loop],
                         ids=["read", "size", "nothing", "unread", "stored", "loop"])
def test_an_index_out_of_bounds_that_nothing_catches(f: Any) -> None:
    x, fine, bad = np.array([3.0, 1.0, 2.0]), np.array([0, 2]), np.array([1, 3])
    for order in ((fine, bad, fine), (bad, fine)):
        g = jit(f)
        for i in order:
            if i is fine:
                assert g(x, i) == pytest.approx(f(x, i), rel=1e-14)
                continue
            with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
                g(x, i)
