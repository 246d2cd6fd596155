"""What the tests of the public face share: data, an empty cache for each test, counts of compiles, strict equality."""
from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest

import jitad
from jitad import cache

x3 = np.array([1.0, 2.0, 3.0])
y3 = np.array([4.0, 5.0, 6.0])


@pytest.fixture(autouse=True)
def fresh():
    """Each test starts with an empty cache, and recompiles without a warning unless it says otherwise."""
    cache.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jitad.TapeMismatchWarning)
        yield


@contextlib.contextmanager
def compiling(number):
    before = cache.info().compiles
    yield
    assert cache.info().compiles - before == number


def same(got, expected, rtol=1e-12):
    """Same values, shape, dtype and kind: array, NumPy scalar or Python number."""
    assert type(got) is type(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(got, expected, rtol=rtol, strict=True)


def quadratic(x, y):
    return np.sum(x * x * y)
