"""Faults that reviews have found: the smallest program that shows each, and the right value."""
from __future__ import annotations

import numpy as np
import pytest

import jitad.primitives  # noqa: F401  (fills the table)
from jitad import jit, jit_grad
from jitad.passes.differentiate.modes import pushforward
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.core import select
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval

N = 200


def indices(seed: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, n)


# --- sums of several roots -----------------------------------------------------------------------

def test_a_product_of_one_element_adds_to_a_scatter() -> None:
    """It was stored over what the scatter had added."""
    def f(x, matrix, index):
        return np.sum(x[index] ** 2) + np.sum((matrix @ x) ** 2)

    gradient = jit_grad(f)(np.array([2.0]), np.array([[3.0]]), np.zeros(5, int))
    np.testing.assert_allclose(gradient, [5 * 4.0 + 9 * 4.0])


@pytest.mark.filterwarnings("ignore:.*is compiled again")
@pytest.mark.parametrize("n", [N, 300])
def test_two_scatters_into_one_small_array(n: int) -> None:
    """Their lanes were one array, in one group (n alike) and in two, and were summed twice."""
    rng = np.random.default_rng(0)
    i, j, a, b = indices(1), indices(2, n), rng.normal(size=N), rng.normal(size=n)
    gradient = jit_grad(lambda x, i, j, a, b: np.sum(x[i] * a) + np.sum(x[j] * b))(np.zeros(4), i, j, a, b)
    np.testing.assert_allclose(gradient, np.bincount(i, a, 4) + np.bincount(j, b, 4), rtol=1e-12)


# --- names ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["part_1", "within_2", "work_f8", "work_hours", "x_at", "step_1_", "exp", "select",
                                  "accumulate", "block", "i_8", "c1", *(f"exp_{n}" for n in range(8)),
                                  *(f"mul_{n}" for n in range(8))])
def test_arguments_may_be_called_what_the_kernel_calls_its_own(name: str) -> None:
    """The first three made the compiler wait for ever."""
    made: dict = {}
    exec(f"def f({name}, other):\n    a = np.cumsum(np.exp({name}) * other) * {name}\n"
         "    return np.sum(np.maximum(a * a, other))", {"np": np}, made)
    x, y = np.linspace(-1, 1, 6), np.linspace(0.5, 2, 6)
    assert jit(made["f"])(x, y) == pytest.approx(made["f"](x, y), rel=1e-13)
    module: dict = {}
    exec(jit(made["f"]).compile(x, y).source, module)
    assert module["sweep"](x, y)[1] == pytest.approx(made["f"](x, y), rel=1e-13)


def test_more_than_eight_loops() -> None:
    x = np.arange(512.0).reshape((2,) * 9)
    np.testing.assert_array_equal(jit(lambda x: x * 2 + x.T)(x), x * 2 + x.T)


# --- values that rewrites and fused operations must keep ------------------------------------------------

@pytest.mark.parametrize("f, x", [
    (lambda x, y: x * (y * 0.5), (1e308, 2.0)),
    (lambda x, y: x * (y * 2.0**-29), (1e300, 1e10)),
    (lambda x, y: x * (y * 2.0**29), (1e-160, 1.2345678e-160)),
    (lambda x, y: (x * 1e306) * 1024 + y, (1e-10, 0.0)),
    (lambda x, y: (x * 1.2345678e-305) / 1024 + y, (1e20, 0.0)),
    (lambda x, y: x**-2.0 + y, (1e160, 0.0)),
    (lambda x, y: x**-2.0 + y, (1e-310, 0.0)),
])
def test_no_overflow_or_underflow_that_numpy_does_not_have(f, x) -> None:
    a, b = (np.array([v]) for v in x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(jit(f)(a, b), f(a, b), rtol=1e-15)


def test_a_sum_of_nothing_is_zero() -> None:
    builder = Builder()
    x = builder.input(Aval((), np.dtype(float)), "x")
    tape = builder.finish([reduce_sum(broadcast_to(x, (0,)), (0,))])
    assert evaluate(optimise(tape), np.inf)[0] == 0


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


def test_a_tangent_that_is_structurally_zero_meets_no_infinity() -> None:
    builder = Builder()
    x, t = (builder.input(Aval((3,), np.dtype(float)), name) for name in "xt")
    tangent, = pushforward(builder, [TABLE["sqrt"](select(x > 0.0, x, 0.0))], [x], [t])
    result, = evaluate(builder.finish([tangent]), np.array([-1.0, 0.0, 4.0]), np.ones(3))
    np.testing.assert_array_equal(result, [0.0, 0.0, 0.25])


# --- Python numbers -------------------------------------------------------------------------------

def test_a_python_number_that_was_in_an_array_has_a_dtype() -> None:
    """Read again, it was taken for a Python number, which goes along with any dtype, and overflowed there."""
    def f(small, n):
        a = np.zeros(3, int)
        a[1:] = n
        first, _ = np.array([n, 1])
        numbers = [a[1], first, np.array(n)[()], np.full(3, n)[-1], np.concatenate([[n], [1]])[0], np.repeat(n, 2)[0],
                   np.sum(n), np.copy(n), ~(a[1] > 0) * 1]
        return [small * number for number in numbers]

    small = np.array([100], "i1")
    for got, expected in zip(jit(f)(small, 2), f(small, 2), strict=True):
        assert got == expected and got.dtype == expected.dtype == np.int64
