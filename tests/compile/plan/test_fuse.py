"""Which values exist in memory: what is compared with elements of itself is computed once."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit


@pytest.mark.parametrize("size", [5, 9, 33])
@pytest.mark.parametrize("asked", [
    lambda a: np.sum((a[::-1] > a) * a), lambda a: np.sum(np.where(a[::-1] == a, a, 0.0)),
    lambda a: np.sum(a[::-1] - a != 0.0), lambda a: np.sum(a[:, None] <= a[None])])
def test_elements_that_are_equal_compare_so_wherever_they_are_read(asked, size):
    """Of a palindrome: an element computed twice, with other products rounded in between, was not equal to itself."""
    def f(x):
        return asked(np.log1p(np.abs(x)) / 3 + x * x)

    half = np.random.default_rng(size).normal(size=size)
    x = np.concatenate([half, half[::-1]])
    np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-12)
