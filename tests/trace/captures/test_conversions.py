"""Captured objects that turn themselves into a truth, a number or an array."""
import numpy as np
import pytest

import jitad
from jitad import UnsupportedOperationError, jit_grad

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


class Threshold:
    """An object whose truth and number depend on a captured float."""

    def __init__(self, level):
        self.level = level

    def __bool__(self):
        return self.level > 1

    def __float__(self):
        return self.level


def test_the_truth_of_a_captured_object_is_a_branch():
    threshold = Threshold(2.0)
    g = jit_grad(lambda x: x * x if threshold else x)
    assert g(3.0) == 6.0
    threshold.level = 0.5
    assert g(3.0) == 1.0


def test_a_captured_object_that_turns_itself_into_a_number_is_refused():
    threshold = Threshold(2.0)
    with pytest.raises(jitad.ConcretizationError, match=r"float\(\) .* at .*test_conversions.py"):
        jit_grad(lambda x: x * float(threshold))(3.0)


class Series:
    """Looks like a column of a table: an array by request, without arithmetic of its own."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_a_captured_object_that_turns_itself_into_an_array_is_refused():
    series = Series([1.0, 2.0])
    with pytest.raises(UnsupportedOperationError,
                       match=r"operand of type Series, whose __array__ .* at .*test_conversions.py.* pass the array"):
        jit_grad(lambda x: np.sum(x * series))(np.ones(2))
