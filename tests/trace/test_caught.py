"""Errors of Python's that recorded code catches: both ways are compiled, whichever was recorded first."""
from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest

import jitad
from jitad import CaptureError, ConcretizationError, MutationError, UnsupportedOperationError, jit, jit_grad

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning", "ignore::RuntimeWarning")

VALUES = (0.5, -0.5, 0.0, 1.0, -1.0, 700.0, 1e3, -2.0, 1e-310, 1.7e308, -1.7e308, math.nan, math.inf, -math.inf)
FUNCTIONS = [getattr(math, name) for name in (
    "sqrt log log1p log2 log10 acos asin atan acosh atanh gamma lgamma exp exp2 expm1 sin cos tan sinh cosh degrees "
    "radians cbrt fabs").split()]
ROUNDED = [v for v in VALUES if not 2.0**63 <= abs(v) < math.inf]
CASES = [(f.__name__, f, VALUES) for f in FUNCTIONS] + [
    (f.__name__, f, ROUNDED) for f in (math.floor, math.ceil, math.trunc, round, int)] + [
    ("fmod of", lambda v: math.fmod(v, 2.0), VALUES), ("fmod by", lambda v: math.fmod(2.0, v), VALUES),
    ("remainder", lambda v: math.remainder(2.0, v), VALUES), ("hypot", lambda v: math.hypot(v, v), VALUES),
    ("1/v", lambda v: math.pow(v, -1.0), VALUES), ("v^3", lambda v: math.pow(v, 3.0), VALUES),
    ("v^0.5", lambda v: math.pow(v, 0.5), VALUES), ("ldexp", lambda v: math.ldexp(v, 1000), VALUES),
    ("log to", lambda v: math.log(2.0, v), VALUES), ("log of", lambda v: math.log(v, 10), VALUES),
    ("isclose", lambda v: math.isclose(1.0, 1.1, rel_tol=v), VALUES)]


@pytest.mark.parametrize(("function", "values"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_exceptions_of_math_are_branches(function, values):
    def f(x):
        try:
            return function(x[0]) * 1.0
        except ValueError:
            return x[1] * 3.0
        except OverflowError:
            return x[1] * 5.0
        except ZeroDivisionError:
            return x[1] * 7.0

    points = sorted((np.array([v, 0.7]) for v in values), key=lambda p: f(p) not in (0.7 * 3.0, 0.7 * 5.0, 0.7 * 7.0))
    compiled = jit(lambda x: f(x))                               # what raises is recorded first
    np.testing.assert_allclose([compiled(p) for p in points], [f(p) for p in points], rtol=1e-14)


def test_gradients_on_both_sides_of_an_exception():
    def root(v):
        return math.sqrt(v)

    def f(x):
        try:
            return root(x[0])
        except Exception:
            return x[1] * 3.0

    for order in ((4.0, -4.0), (-4.0, 4.0)):
        jitad.cache.clear()
        g = jit_grad(lambda x: f(x))
        found = {v: g(np.array([v, 1.0])) for v in order}
        np.testing.assert_array_equal(found[4.0], [0.25, 0.0])
        np.testing.assert_array_equal(found[-4.0], [0.0, 3.0])


def test_exceptions_are_branches_for_each_element():
    def h(v):
        try:
            return math.log(v) + math.exp(v)
        except ValueError:
            return -v
        except OverflowError:
            return 0.0

    x = np.array([0.5, -2.0, 1e4])
    np.testing.assert_allclose(jit(lambda x: np.vectorize(h)(x))(x), [h(v) for v in x], rtol=1e-14)
    np.testing.assert_allclose(jit_grad(lambda x: np.sum(np.vectorize(h)(x)))(x), [2.0 + math.exp(0.5), -1.0, 0.0])


STATE: list[float] = []


class Slots:
    __slots__ = ("a",)


EMPTY = Slots()


def test_errors_of_the_recording_are_no_branches():
    def looks_up(x):
        try:
            return {x: 1.0}[x]
        except Exception:
            return x * 2.0

    def suppresses(x):
        with contextlib.suppress(TypeError):
            return {x: 1.0}
        return x * 2.0

    def appends(x):
        try:
            STATE.append(1.0)
        except TypeError:
            return x * 2.0
        return x

    def reads(x):
        try:
            return EMPTY.a * x
        except Exception:
            return x * 2.0

    def large(x):
        try:
            return int(x) * 1.0
        except Exception:
            return x * 2.0

    for f, error in ((looks_up, ConcretizationError), (suppresses, ConcretizationError), (appends, MutationError),
                     (reads, CaptureError), (large, UnsupportedOperationError)):
        with pytest.raises(error):
            jit(f)(1e30)


def test_a_mask_that_fits_no_other_is_guarded():
    def f(x):
        try:
            return np.sum(x[x > 0, np.array([0, 1])])
        except IndexError:
            return np.sum(x[0])

    rows = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2))]
    column = [np.array([1.0, 2.0, -1.0]), np.array([1.0, -2.0, -1.0]), np.array([-1.0, 2.0, 3.0])]

    def g(x):
        try:
            return np.sum(rows[0][x[:2] > 0, np.array([0, 1])]) + x[2]
        except IndexError:
            return x[2]

    assert f(rows[1]) == jit(f)(rows[1])
    for first in column:
        jitad.cache.clear()
        compiled = jit(lambda x: g(x))
        compiled(first)
        assert [compiled(x) for x in column] == [g(x) for x in column]


def test_round_gives_the_even_integer_or_raises():
    """Also in a later call, and for integers that no float64 holds."""
    rounded = jit(lambda x: round(x[0]) * x[1])
    assert [rounded(np.array([x, 3.0])) for x in (2.5, 3.5, -0.5, 2.0**62)] == [6.0, 12.0, 0.0, 3 * 2.0**62]
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        rounded(np.array([np.nan, 3.0]))
    for x in (np.inf, -np.inf):
        with pytest.raises(OverflowError, match=r"cannot convert float infinity to integer"):
            rounded(np.array([x, 3.0]))
    for x in (1e20, 2.0**63):
        with pytest.raises(UnsupportedOperationError, match=r"round\(\) at .* an integer beyond 64 bits"):
            rounded(np.array([x, 3.0]))
    assert jit(lambda x: round(x[0]) + 0)(np.array([2**62 + 1])) == 2**62 + 1
    assert jit(lambda x: np.float32([1, 2]) * round(x))(2.5).dtype == np.float32

    @jit
    def caught(x):
        try:
            return round(x[0]) * x[1]
        except ValueError:
            return -x[1]
    assert [caught(np.array([x, 3.0])) for x in (1.2, np.nan, 2.2)] == [3.0, -3.0, 6.0]
