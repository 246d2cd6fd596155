"""What raises an error of the user's again is run by Python, and raises what Python raises."""
from __future__ import annotations

import math
import traceback

import numpy as np
import pytest

from jitad import jit, value_and_grad
from jitad.errors import MutationError

Y = np.array([0.5, -1.0, 2.0])
ERRORS = (ValueError, AssertionError)
GOOD, BAD, WORSE = np.array([0.1, 2.0]), np.array([0.1, -2.0]), np.array([0.1, -3.0])


def scaled(q, y):
    if q[1] <= 0:
        raise ValueError(f"scale {q[1]} must be positive")
    return np.sum(((y - q[0]) / q[1]) ** 2)


def in_math(q, y):
    return math.log(q[1]) * np.sum(y) + q[0]


def asserted(q, y):
    def positive(x):
        assert x > 0, "not positive"
        return x
    return np.sum(y) * q[0] / positive(q[1])


def factored(q, y):
    return np.sum(np.linalg.cholesky(q[1] * np.eye(3))) * q[0] + y @ y


def nested(p, data):
    return scaled(p["q"], data[0])


CASES = {
    "raise": (scaled, lambda q: (q, Y)), "math": (in_math, lambda q: (q, Y)), "assert": (asserted, lambda q: (q, Y)),
    "cholesky": (factored, lambda q: (q, Y)), "nested": (nested, lambda q: ({"q": q}, [Y])),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("transform", [value_and_grad, jit])
def test_errors_are_those_of_python_each_time(name, transform, monkeypatch):
    f, arguments = CASES[name]
    g = transform(f)
    first = g(*arguments(GOOD))
    with pytest.raises(ERRORS):
        g(*arguments(BAD))
    monkeypatch.setattr("jitad.call.ladder.build", None)                     # nothing is recorded from now on
    monkeypatch.setattr("jitad.call.build.specialization.evaluate", None)
    for q in (BAD, WORSE, GOOD, BAD, BAD, GOOD, WORSE):
        if q is GOOD:
            np.testing.assert_equal(g(*arguments(q)), first)
            continue
        with pytest.raises(ERRORS) as found:
            g(*arguments(q))
        with pytest.raises(type(found.value)) as plain:
            f(*arguments(q))
        assert str(found.value) == str(plain.value)
        assert traceback.extract_tb(found.tb)[-1].line == traceback.extract_tb(plain.tb)[-1].line


def in_ways(q):
    if q[0] < 0:
        raise ValueError("negative")
    if q[0] > 9:
        q[0] = 9.0
    if q[0] > 5:
        raise ValueError("negative")
    return q @ q if q[0] > 1 else np.sum(q)


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
def test_another_way_after_an_error_is_recorded():
    g = value_and_grad(in_ways)
    for first, wanted in [(-1.0, ValueError), (0.5, 1.0), (-1.0, ValueError), (2.0, 4.0), (-2.0, ValueError),
                          (10.0, MutationError), (-2.0, ValueError), (7.0, ValueError), (0.5, 1.0), (3.0, 6.0)]:
        q = np.array([first])
        if isinstance(wanted, float):
            assert g(q)[1] == wanted
        else:
            with pytest.raises(wanted):
                g(q)
        assert q[0] == first, "what a caller gives is not written to"


def test_integers_are_floats_whether_python_would_raise_or_not():
    def whole(q, n):
        if (q / 2) * 2 != q or n < 0 or not np.issubdtype(np.asarray(q).dtype, np.floating):
            raise ValueError("not a whole one")
        return q * q
    g = value_and_grad(whole)
    for _ in range(2):
        with pytest.raises(ValueError, match="whole"):
            g(3.0, -1)
        assert g(3, 1) == (9.0, 6.0)
