"""What recorded code compares by ``is``: truth values are what they are in Python, captured objects themselves."""
from __future__ import annotations

import math
import operator

import numpy as np
import pytest
import scipy.linalg

import jitad
from jitad import jit, jit_grad
from tests.helpers.public import x3

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
YES = np.True_


def kept(flag):
    return flag is True


def local(x):
    y = np.zeros(2)
    y[0] = x[0]
    return (y[0] > 0) is np.True_


TRUTHS = {
    "number": lambda x: (x[0] > 0) is np.True_, "alias": lambda x: (x[0] > 0) is YES,
    "all": lambda x: (x > 0).all() is np.True_, "any": lambda x: np.any(x < 0) is np.True_,
    "ufunc": lambda x: np.isfinite(x[0]) is np.True_, "element": lambda x: (x > 0)[0] is np.True_,
    "and": lambda x: (x[0] > 0 and x[1] > 0) is np.True_, "not": lambda x: np.logical_not(x[0] > 0) is np.False_,
    "operator": lambda x: operator.is_(x[0] > 0, np.True_), "is not": lambda x: (x[0] > 0) is not np.False_,
    "math": lambda x: math.isnan(x[0]) is False, "of Python": lambda x: (x[0] > 0) is True,
    "bool": lambda x: bool(x[0] > 0) is True, "helper": lambda x: kept(x[0] > 0), "equal": lambda x: (x[0] == 1) is YES,
    "made": local}


@pytest.mark.parametrize("said", TRUTHS.values(), ids=list(TRUTHS))
def test_truth_values_are_told_by_identity(said):
    def f(x):
        return np.sum(x * x) if said(x) else np.sum(x)

    points = [np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, 3.0]), np.array([0.5, 2.0, -3.0])]
    for first in (0, 1):
        jitad.cache.clear()
        g = jit(f)
        g(points[first])
        assert [g(p) for p in points] == [f(p) for p in points]


def test_flags_that_are_arguments():
    def f(x, flag, other=np.True_):
        if flag is True:
            return np.sum(x)
        return np.sum(2 * x) if other is np.False_ else np.sum(3 * x)

    def g(x, n):
        return np.sum(x) if (n > 1) is True else -np.sum(x)

    def h(x, flag):
        return f(x, flag=flag)

    compiled, gradient, through = jit(f), jit_grad(f), jit(h)
    for flag in (True, False, np.True_):
        for other in (np.True_, np.False_):
            assert compiled(x3, flag, other) == f(x3, flag, other)
        assert gradient(x3, flag)[0] == f(x3, flag) / 6
        assert through(x3, flag) == f(x3, flag)
    assert [jit(g)(x3, n) for n in (2.0, 0.0, 3)] == [g(x3, n) for n in (2.0, 0.0, 3)]


P = np.ones(3)
TABLE = {"p": P, "q": np.ones(3)}
Q = TABLE["q"]


def test_captured_objects_that_are_compared_by_identity():
    table = {"p": P, "q": np.ones(3)}

    def f(x):
        return np.sum(x * table["p"]) if table["p"] is table["q"] else np.sum(x)

    g = jit(f)
    assert g(2 * x3) == f(2 * x3) == 12.0
    table["q"] = P.copy()
    assert g(2 * x3) == 12.0
    table["q"] = table["p"] = 2 * P
    assert g(x3) == f(x3) == 2.0 * np.sum(x3 * P)
    table["p"] = P
    assert g(x3) == f(x3) == np.sum(x3)


class Holder:
    first = second = np.array([1.0, 2.0])

    def __init__(self):
        self.a = self.b = np.array([1.0, 2.0, 3.0])
        self.c = [self.a, self.a]


HOLDER = SAME = Holder()
RATE = STANDARD = 2.5


@pytest.mark.parametrize("said", [
    lambda: TABLE["q"] is Q, lambda: operator.is_(Q, TABLE["q"]), lambda q=Q: q is Q, lambda: HOLDER.a is HOLDER.b,
    lambda: HOLDER.c[0] is HOLDER.c[1], lambda: any(v is HOLDER.a for v in HOLDER.c), lambda: HOLDER is SAME,
    lambda: RATE is STANDARD, lambda: np.asarray(P) is P, lambda: Holder.first is Holder.second,
    lambda: TABLE["p"] is not TABLE["q"]])
def test_an_object_found_in_two_ways_is_one(said):
    def f(x):
        return np.sum(x * HOLDER.a) * RATE if said() else np.sum(x)

    assert jit(f)(x3) == f(x3) == 2.5 * np.sum(x3 * HOLDER.a)


def test_an_object_is_no_longer_the_same():
    g = jit(lambda x: x[0] * (1.0 if HOLDER.a is HOLDER.b else 3.0) * HOLDER.b[1])
    assert g(x3) == 2.0 * x3[0]
    before, HOLDER.b = HOLDER.b, HOLDER.b * 2
    try:
        assert g(x3) == 12.0 * x3[0]
    finally:
        HOLDER.b = before
    assert g(x3) == 2.0 * x3[0]


class Species:
    pass


FOX, HARE = Species(), Species()
RATES = {FOX: np.array([1.0, 2.0]), HARE: np.array([5.0, 7.0])}


@pytest.mark.parametrize("weight", [
    lambda s: RATES[s][0], lambda s: RATES.get(s, 0.0)[0], lambda s: {FOX: 1.0, HARE: 5.0}[s],
    lambda s: 5.0 if s in {HARE} else 1.0, lambda s: 1.0 if s != HARE else 5.0,
    lambda s: (1.0, 5.0)[[FOX, HARE].index(s)]])
def test_an_object_that_is_a_key_is_known_by_itself(weight):
    def weighed(species):
        return jit(lambda x: np.sum(x) * weight(species))
    for species, expected in [(FOX, 1.0), (HARE, 5.0), (FOX, 1.0), (HARE, 5.0)]:
        assert weighed(species)(x3) == expected * np.sum(x3)


def test_functions_that_one_decorator_has_made_are_different_ones():
    """Functions of scipy.linalg share the code of a wrapper."""
    matrix = np.array([[1.0, 0.2], [0.3, 2.0]])
    for function in (scipy.linalg.cosm, scipy.linalg.sinm, scipy.linalg.tanm):
        np.testing.assert_allclose(jit(lambda t, f=function: f(matrix * t))(0.5), function(matrix * 0.5), rtol=1e-12)
