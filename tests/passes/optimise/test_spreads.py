"""Sums of spread arrays that are spread in turn go to where they end at once."""
import numpy as np
import pytest

import jitad


def written_out(q):
    return np.sum((q[2:] - 2 * q[1:-1] + q[:-2]) ** 2)


CASES = {
    "second differences": (lambda q: np.sum(np.diff(q, 2) ** 2), (9,)),
    "along the first axis": (lambda q: np.sum(np.sin(np.diff(q, 2, axis=0))), (6, 3)),
    "along both axes": (lambda q: np.sum(np.diff(np.diff(q, axis=0), axis=1) ** 2), (5, 4)),
    "third differences": (lambda q: np.sum(np.diff(q, 3) ** 3), (9,)),
    "backwards, every second": (lambda q: np.sum((q[::-1][2:] - q[:-2])[::2][1:] ** 2), (11,)),
    "one array in three places": (lambda q: np.sum(((q[1:] + q[:-1])[1:] * (q[1:] + q[:-1])[:-1] - q[2:]) ** 2), (8,)),
    "a window of windows": (lambda q: np.sum(np.exp(((q[2:] + q[1:-1] + q[:-2])[1:] - q[3:])[:-1])), (9,)),
    "transposed": (lambda q: np.sum(((q[1:] - q[:-1]).T[1:] * 2.0) ** 2), (4, 5)),
    "read also as a whole": (lambda q: np.sum(np.diff(q, 2) ** 2) + np.sum(np.diff(q) ** 4), (7,)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name):
    f, shape = CASES[name]
    rng = np.random.default_rng(3)
    q, v, h = rng.normal(size=shape), rng.normal(size=shape), 1e-6
    slope = (f(q + h * v) - f(q - h * v)) / (2 * h)
    np.testing.assert_allclose(np.sum(jitad.grad(f)(q) * v), slope, rtol=1e-7)
    change = (jitad.grad(f)(q + h * v) - jitad.grad(f)(q - h * v)) / (2 * h)
    np.testing.assert_allclose(jitad.hvp(f)(q, v), change, rtol=1e-6, atol=1e-7)


def test_second_differences_are_the_loop_that_one_writes_out():
    q = np.arange(30.0)
    source = jitad.grad(lambda q: np.sum(np.diff(q, 2) ** 2)).compile(q).source
    assert "work" not in source and source.count("for ") == jitad.grad(written_out).compile(q).source.count("for ") == 1
