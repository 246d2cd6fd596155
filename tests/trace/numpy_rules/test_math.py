"""The functions of `math`, and Python's own `int` and `round`."""
from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

from jitad import (
    ConcretizationError,
    UnsupportedOperationError,
    jit,
    jit_grad,
    scan,
)
from jitad.trace.numpy_rules.elements.elementwise import rounded
from tests.helpers.public import compiling, fresh, same, x3  # noqa: F401

UNARY = [name for name in """exp expm1 exp2 log log2 log10 log1p sqrt cbrt sin cos tan asin acos atan sinh cosh tanh
asinh atanh fabs erf erfc gamma lgamma degrees radians isnan isinf isfinite floor ceil trunc""".split()
    if hasattr(math, name)]


def test_every_function_of_math_has_the_value_of_math():
    functions = [getattr(math, name) for name in UNARY]
    compiled = jit(lambda x: tuple(f(x) for f in functions))
    for x in (0.3, 0.75):
        for name, got, f in zip(UNARY, compiled(x), functions, strict=True):
            assert type(got) is type(f(x)), name
            np.testing.assert_allclose(got, f(x), rtol=2e-15, err_msg=name)
    assert np.isclose(jit(lambda x: math.acosh(x))(1.5), math.acosh(1.5), rtol=1e-15)


def test_functions_of_several_arguments():
    def f(x):
        return (math.pow(x, 3), math.fmod(x, 2), math.atan2(x, -1), math.copysign(2.0, x), math.hypot(x, 2.0, 3.0),
                math.dist((x, 1.0), (2.0, 4.0)), math.prod([x, 2.0, x]), math.log(x, 2.0), math.log(x, 10))
    for got, expected in zip(jit(f)(5.5), f(5.5), strict=True):
        np.testing.assert_allclose(got, expected, rtol=4e-15)
    for got, expected in zip(jit(f)(np.float64(5.5)), f(5.5), strict=True):
        np.testing.assert_allclose(got, expected, rtol=4e-15)


def test_parts_and_remainders():
    def f(x, y, k):
        return (*math.modf(x), math.remainder(x, y), math.ldexp(x, k), math.ldexp(1.5, math.floor(y)),
                math.isclose(x, y), math.isclose(x, y, rel_tol=0.3), math.isclose(x, y, rel_tol=0.0, abs_tol=3.0))
    g = jit(f)
    for x, y in ((5.5, 2.0), (-7.0, 2.0), (7.0, -2.0), (3e-310, 1.0), (1.0, 1 + 1e-10), (math.inf, math.inf)):
        if math.isinf(x):
            with pytest.raises(ValueError, match=r"math domain error"):
                g(x, y, 1)
        else:
            for k in (3, -1030, 1020):
                np.testing.assert_array_equal(g(x, y, k), f(x, y, k))
    assert jit(lambda x: math.isclose(x, math.inf))(math.inf)
    assert not jit(lambda x: math.isclose(x, 1.0))(math.inf)
    assert math.isnan(jit(lambda x: math.remainder(x, 2.0))(math.nan))
    assert jit_grad(lambda x: math.remainder(x, 1.0) * x)(2.75) == 2.5
    assert jit_grad(lambda y: math.remainder(2.75, y))(1.0) == -3.0
    assert jit_grad(lambda x: math.modf(x)[0] * math.ldexp(x, 1))(2.5) == 6.0
    assert jit(lambda x: np.ldexp(x, 2000))(1e-300) == np.ldexp(1e-300, 2000)
    with pytest.raises(TypeError, match=r"Expected an int as second argument"):
        jit(lambda x: math.ldexp(x, 2.0))(1.0)
    with pytest.raises(OverflowError, match=r"math range error"):
        jit(lambda x: math.ldexp(x, 2000))(1.0)
    with pytest.raises(ValueError, match=r"tolerances must be non-negative"):
        jit(lambda x: math.isclose(x, 1.0, rel_tol=-x))(1.0)


def test_int_of_what_no_integer_is():
    g = jit(lambda x: int(x) * 1.0)
    assert (g(2.5), g(-1.7)) == (2.0, -1.0)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"cannot convert float NaN to integer"):
            g(math.nan)
        with pytest.raises(OverflowError, match=r"cannot convert float infinity to integer"):
            g(math.inf)
        with pytest.raises(UnsupportedOperationError, match=r"int\(\) at .* an integer beyond 64 bits"):
            g(-1e30)
    assert g(2.25) == 2.0


def test_derivatives_through_math():
    for f, df in ((math.exp, math.exp), (math.log, lambda x: 1 / x), (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
                  (math.lgamma, scipy.special.digamma),
                  (math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x))):
        assert np.isclose(jit_grad(lambda x, f=f: f(x))(0.7), df(0.7), rtol=1e-13)
    assert jit_grad(lambda x: x * math.floor(x))(2.7) == 2.0
    from math import exp, pi
    assert np.isclose(jit_grad(lambda x: pi * exp(2 * x))(0.5), 2 * pi * math.e)
    def inside(x):
        import math as m
        return m.sin(x)
    assert np.isclose(jit_grad(inside)(0.0), 1.0)


@pytest.mark.parametrize(("f", "good", "bad"), [
    (lambda x: math.log(x), 2.0, 0.0), (lambda x: math.log(x), 2.0, -1.0), (lambda x: math.sqrt(x), 2.0, -1.0),
    (lambda x: math.exp(x), 2.0, 1000.0), (lambda x: math.sin(x), 2.0, math.inf), (lambda x: math.gamma(x), 2.0, -1.0),
    (lambda x: math.lgamma(x), 2.0, 0.0), (lambda x: math.pow(x, 0.5), 2.0, -1.0),
    (lambda x: math.pow(x, -1.0), 2.0, 0.0), (lambda x: math.floor(x) * 1.0, 2.0, math.nan),
    (lambda x: math.ceil(x) * 1.0, 2.0, math.inf), (lambda x: math.fmod(x, 1.0), 2.0, math.inf),
    (lambda x: math.acos(x), 0.5, 2.0), (lambda x: math.log1p(x), 0.5, -1.0), (lambda x: math.cosh(x), 0.5, 1000.0)])
def test_math_raises_what_it_raises(f, good, bad):
    with pytest.raises((ValueError, OverflowError)) as expected:
        f(bad)
    g = jit(f)
    assert np.isclose(g(good), f(good))
    for _ in range(2):
        with pytest.raises(type(expected.value)) as found:
            g(bad)
        assert str(found.value) == str(expected.value)
    with compiling(0):
        assert np.isclose(g(good), f(good))


def test_nan_and_infinity_go_through_where_math_lets_them():
    g = jit(lambda x: (math.exp(x), math.atan(x), math.fabs(x), math.isnan(x)))
    for x in (math.nan, math.inf, -math.inf):
        np.testing.assert_array_equal(g(x), (math.exp(x), math.atan(x), math.fabs(x), math.isnan(x)))


def test_what_math_refuses():
    with pytest.raises(TypeError, match=r"only 0-dimensional arrays"):
        jit(lambda x: math.exp(x))(x3)
    with pytest.raises(TypeError):
        jit(lambda x: math.exp(x, 2))(1.0)
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: math.log(2.0, x))(1.0)
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: math.log(x, 1.0))(2.0)
    with pytest.raises(UnsupportedOperationError, match=r"math.floor at .* gives an integer beyond 64 bits"):
        jit(lambda x: math.floor(x) * 1.0)(1e30)
    with pytest.raises(ValueError, match=r"same number of dimensions"):
        jit(lambda x: math.dist((x,), (1.0, 2.0)))(1.0)
    with pytest.raises(ConcretizationError, match=r"math.log at .*in the body of a scan or loop.*use NumPy's function"):
        jit(lambda x: scan(lambda c, t: (c + math.log(t), None), 0.0, x)[0])(x3)
    with pytest.raises(OverflowError, match=r"intermediate overflow in fsum"):
        jit(lambda x: math.fsum([x, 1e308, 1e308]))(1e308)
    with pytest.raises(ValueError, match=r"-inf \+ inf in fsum"):
        jit(lambda x: math.fsum([x, -math.inf]))(math.inf)


def test_python_rounds_a_float_by_its_exact_value():
    """NumPy, and its numbers, round the product with a power of ten: 2.55 and 2.675 lie below what they look like."""
    rng = np.random.default_rng(0)
    for n in range(1, 8):
        x = np.concatenate([(rng.integers(0, 10**8, 300) + 0.5) / 10.0**n, rng.integers(0, 10**5, 300) / 2.0**12,
                            rng.normal(size=300) * 10 ** rng.uniform(-9, 12, 300), [0.0, -0.0, 1e300, 2.0**52 + 0.5]])
        x = np.concatenate([x, np.nextafter(x, np.inf), -x])
        want = np.array([round(v, n) for v in x.tolist()])
        np.testing.assert_array_equal(rounded(x, n), want)
        np.testing.assert_array_equal(np.signbit(rounded(x, n)), np.signbit(want))
    g = jit(lambda x: (round(x, 2), round(np.float64(x), 2), round(x, 0), round(float(np.sin(x)), 1)))
    for x in (2.675, 1.005, -0.125, 2.5):
        assert g(x) == (round(x, 2), round(np.float64(x), 2), round(x, 0), round(float(np.sin(x)), 1))
    for digits in (-1, 8):
        with pytest.raises(UnsupportedOperationError, match=r"use np\.round\(x, "):
            jit(lambda x, n=digits: round(x, n))(25.5)
        assert jit(lambda x, n=digits: np.round(x, n))(25.5) == np.round(25.5, digits)
