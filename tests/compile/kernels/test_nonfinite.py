"""Infinities, NaN and the signs of zeros, as machine code that fuses and reorders must keep them."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import jit


def test_equal_products_cancel() -> None:
    """A fused multiply-add left a rounding error, whose root was NaN."""
    x = np.random.default_rng(0).normal(size=64)
    np.testing.assert_array_equal(jit(lambda x, y: np.sqrt(x * x - y * y))(x, x.copy()), np.zeros(64))


@pytest.mark.parametrize("f", [lambda x: np.sum(x - x), lambda x: np.sum(0.0 * x), lambda x: np.sum(np.eye(4) * x)])
def test_a_sum_keeps_the_nan_of_an_infinity(f) -> None:
    """LLVM, told that the signs of zeros do not matter, took these terms for zero."""
    x = np.array([0.5, np.inf, 1.0, 2.0])
    assert np.isnan(jit(f)(x)) and np.isnan(f(x))


def test_a_sum_of_negative_zeros() -> None:
    assert not np.signbit(jit(lambda x: np.sum(x))(np.array([-0.0, -0.0])))


def test_isfinite_of_a_product() -> None:
    x = np.array([1.1, 1e200, np.nan, np.inf])
    np.testing.assert_array_equal(jit(lambda x, y: np.isfinite(x * y))(x, x.copy()), [True, False, False, False])
