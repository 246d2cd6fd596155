"""What a function does not use has derivative zero, however infinite the derivatives of it are; what NumPy shows of NaN
and infinity in the value is shown. Values and derivatives are known on paper."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, xlog1py, xlogy

import jitad
from jitad import jit, jit_grad, value_and_grad
from jitad.passes.differentiate.modes import pushforward
from jitad.primitives.core import select
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval
from tests.helpers.public import fresh  # noqa: F401

inf, nan, log, sqrt = np.inf, np.nan, np.log, np.sqrt
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# --- functions with statements --------------------------------------------------------------------

def masked_store(x):
    out = np.zeros(2)
    inside = x > 0
    out[inside] = np.log(x)[inside]
    return np.sum(out)


def overwritten(x):
    y = np.log(x)
    y[0] = 0.0
    return np.sum(y)


def overwritten_by_mask(x):
    y = np.log(x)
    y[x <= 0] = 0
    return np.sum(y)


def overwritten_by_indices(x):
    y = np.log(x)
    y[np.array([0, 2])] = 0
    return np.sum(y)


def constant_part(x):
    y = np.zeros(3)
    y[1:] = x
    z = np.sqrt(y)
    z[0] = 1
    return np.sum(z)


def unit_rows(x):
    r = np.linalg.norm(x, axis=1, keepdims=True)
    return np.sum(np.where(r > 0, x / r, 0.0))


def unit_rows_by_hand(x):
    r = np.sqrt(np.sum(x * x, axis=1))
    return np.sum(np.where((r > 0)[:, None], x / r[:, None], 0.0))


def branches(x):
    total = 0.0
    for t in range(len(x)):
        if x[t] > 0:
            total = total + np.log(x[t])
    return total


def two_choices(x):
    s = np.sqrt(np.sum(x * x))
    return np.sum(np.where(np.array([False, False]), x / s, 0.0)) + np.sum(np.where(x > 1, x * s, 0.0))


def scale_of_an_untaken_branch(x):
    y = np.array([1.0, 2.0])
    return np.sum(np.where(y > 5, y / np.sqrt(x[0]), x[1]))


def overwritten_carry(x):
    """The carry is a root at step 1 and forgotten at step 2."""
    def step(c, t):
        return np.where(t == 1, np.sqrt(c), np.where(t == 2, 1.0, c)), None
    return jitad.scan(step, x[0], np.arange(1.0, 4.0))[0] + x[1]


def forgotten_rows(x):
    def step(c, t):
        y = np.where(t < 2, np.sqrt(c), 2.0 * t)
        return y, y
    c, ys = jitad.scan(step, x[0], np.arange(1.0, 4.0))
    return c + np.sum(ys[1:]) + x[1]


def untaken_loop(x):
    total, rows = jitad.scan(lambda c, t: (c + np.log(t), np.log(t)), 0.0, x)
    return np.where(x[0] > 0, total, x[1]) + np.sum(np.where(x > 0, rows, 0.0))


def elements_of_a_carry(x):
    def step(c, t):
        y = np.sqrt(c)
        return np.where(np.arange(2) == t, y, 1.0), y
    c, ys = jitad.scan(step, x, np.array([0, 1, 0]))
    return np.sum(c) + np.sum(np.where(ys > 0, ys, 0.0)) + x[0]


def factors_along_a_carry(x):
    def step(c, t):
        return np.where(t > 0, c * x[2], t), None
    return jitad.scan(step, x[1], np.array([1.0, -1.0, 0.0]))[0] + x[0]


unit = [[0, 0], [1 / 5 - 1.4 * 3 / 25, 1 / 5 - 1.4 * 4 / 25]]
CASES = {  # f, x, value, gradient
    "where of log": (lambda x: np.sum(np.where(x > 0, np.log(x), 0)), [1, 0, 4, -1], log(4), [1, 0, 0.25, 0]),
    "where of log, array": (lambda x: np.sum(np.where(x > 0, np.log(x), 0 * x)), [1, 0, 4], log(4), [1, 0, 0.25]),
    "where of sqrt(-x)": (lambda x: np.sum(np.where(x >= 0, x, np.sqrt(-x))), [4, 0, -4], 6, [1, 1, -0.25]),
    "norm": (lambda x: np.linalg.norm(x), [0, 0, 0], 0, [0, 0, 0]),
    "where of norm": (lambda x: np.where(np.sum(x**2) > 0, np.linalg.norm(x), 0.0), [0, 0], 0, [0, 0]),
    "where of sqrt(sum)": (lambda x: np.where(np.sum(x**2) > 0, np.sqrt(np.sum(x**2)), 0.0), [0, 0], 0, [0, 0]),
    "where of 1 / sqrt(sum)": (lambda x: np.where(np.any(x != 0), 1 / np.sqrt(np.sum(x**2)), 1.0), [0, 0], 1, [0, 0]),
    "where of x / sqrt(sum)": (lambda x: np.sum(np.where(x != 0, x / np.sqrt(np.sum(x * x)), 0.0)), [0, 0], 0, [0, 0]),
    "where of sqrt(x @ x)": (lambda x: np.where(x @ x > 0, np.sqrt(x @ x), 0.0), [0, 0], 0, [0, 0]),
    "norms of rows": (lambda x: np.sum(np.linalg.norm(x, axis=1)), [[0, 0], [3, 4]], 5, [[0, 0], [0.6, 0.8]]),
    "unit rows": (unit_rows, [[0, 0], [3, 4]], 1.4, unit),
    "unit rows by hand": (unit_rows_by_hand, [[0, 0], [3, 4]], 1.4, unit),
    "std": (lambda x: np.where(np.std(x) > 0, np.std(x), 0.0), [1, 1], 0, [0, 0]),
    "xlogy": (lambda x: np.sum(xlogy(x, x)), [0, 1], 0, [-inf, 1]),
    "xlogy of zero": (lambda x: np.sum(xlogy(np.array([0.0, 2.0]), x)), [0, 1], 0, [0, 2]),
    "xlog1py of zero": (lambda x: np.sum(xlog1py(np.array([0.0, 2.0]), x)), [-1, 0], 0, [0, 2]),
    "xlogy in x": (lambda x: np.sum(xlogy(x, np.array([2.0, 3.0]))), [0, 1], log(3), [log(2), log(3)]),
    "where of x log x": (lambda x: np.sum(np.where(x == 0, 0.0, x * np.log(x))), [0, 1], 0, [0, 1]),
    "sum(where=)": (lambda x: np.sum(x * np.log(x), where=x > 0), [0, 1], 0, [0, 1]),
    "mean(where=)": (lambda x: np.mean(np.log(x), where=x > 0), [0, 4], log(4), [0, 0.25]),
    "select": (lambda x: np.sum(np.select([x > 0, x < -5], [np.log(x), x], 0.0)), [-1, 0, 4, -6], log(4) - 6,
               [0, 0, 0.25, 1]),
    "log of clip": (lambda x: np.sum(np.log(np.clip(x, 1e-3, None))), [0, 1, -2], 2 * log(1e-3), [0, 1, 0]),
    "clip of log": (lambda x: np.sum(np.clip(np.log(x), -5, 5)), [0, 1], -5, [0, 1]),
    "maximum of log": (lambda x: np.sum(np.maximum(np.log(x), -5)), [0, 1], -5, [0, 1]),
    "minimum of 1 / x": (lambda x: np.sum(np.minimum(1 / x, 5)), [0, 1], 6, [0, -1]),
    "fmax of log": (lambda x: np.sum(np.fmax(np.log(x), -5)), [0, 1, -1], -10, [0, 1, 0]),
    "max": (lambda x: np.max(np.sqrt(x)), [0, 4], 2, [0, 0.25]),
    "min": (lambda x: np.min(-np.log(x)), [0, 1, 4], -log(4), [0, 0, -0.25]),
    "elements by a mask": (lambda x: np.sum(np.log(x[x > 0])), [0, 4], log(4), [0, 0.25]),
    "of log by a mask": (lambda x: np.sum(np.log(x)[x > 0]), [0, 4], log(4), [0, 0.25]),
    "a slice": (lambda x: np.sum(np.log(x)[1:]), [0, 4], log(4), [0, 0.25]),
    "an element": (lambda x: np.sqrt(x)[1], [0, 4], 2, [0, 0.25]),
    "indices": (lambda x: np.sum(np.sqrt(x)[np.array([1, 1])]), [0, 4], 4, [0, 0.5]),
    "take": (lambda x: np.sum(np.take(np.sqrt(x), [1, 2, 2])), [0, 1, 4], 5, [0, 0.5, 0.5]),
    "roll": (lambda x: np.sum(np.roll(np.sqrt(x), 1)[:2]), [4, 0, 1], 3, [0.25, 0, 0.5]),
    "diff": (lambda x: np.sum(np.diff(np.log(x))[1:]), [0, 0.5, 2], log(4), [0, -2, 0.5]),
    "cumsum": (lambda x: np.cumsum(np.log(x)[::-1])[1], [0, 1, 2], log(2), [0, 1, 0.5]),
    "tril": (lambda x: np.sum(np.tril(np.log(x))), [[1, 0], [2, 4]], log(8), [[1, 0], [0.5, 0.25]]),
    "diagonal": (lambda x: np.sum(np.diag(np.log(x))), [[1, 0], [0, 4]], log(4), [[1, 0], [0, 0.25]]),
    "a row": (lambda x: np.sum(np.log(x).T[1]), [[0, 1], [0, 2]], log(2), [[0, 1], [0, 0.5]]),
    "reshape": (lambda x: np.sum(np.log(x).reshape(4)[1:]), [[0, 1], [1, 2]], log(2), [[0, 1], [1, 0.5]]),
    "concatenate": (lambda x: np.sum(np.concatenate([np.log(x), x])[2:]), [0, 2], 2, [1, 1]),
    "masked store": (masked_store, [0, 4], log(4), [0, 0.25]),
    "overwritten": (overwritten, [0, 1, 2], log(2), [0, 1, 0.5]),
    "overwritten by mask": (overwritten_by_mask, [0, 1, 2], log(2), [0, 1, 0.5]),
    "overwritten by indices": (overwritten_by_indices, [0, 1, 0], 0, [0, 1, 0]),
    "constant part": (constant_part, [1, 4], 4, [0.5, 0.25]),
    "where in where": (lambda x: np.sum(np.where(x > 0, np.where(x < 1, np.log(x), 0.0), 0.0)), [0, 0.5, 2], log(0.5),
                       [0, 2, 0]),
    "where of exp of where": (
        lambda x: np.sum(np.where(x > 0, np.exp(np.where(x > 1, np.log(x - 1), 0.0)), 0.0)), [1, 5, 0], 5, [0, 1, 0]),
    "where broadcast": (lambda x: np.sum(np.where((x > 0)[:, None], np.log(x)[:, None] * np.ones(3), 0.0)), [0, 4],
                        3 * log(4), [0, 0.75]),
    "two choices": (two_choices, [0, 0], 0, [0, 0]),
    "scale of an untaken branch": (scale_of_an_untaken_branch, [0, 3], 6, [0, 2]),
    "infinite factor in an untaken branch": (lambda x: np.sum(np.where(x > 5, np.inf * x[1] + 1.0, x)), [1, 2], 3,
                                             [1, 1]),
    "infinite factor, broadcast": (lambda x: np.sum(np.where(x[:2] > 5, x[2] * x[1], x[:2])), [1, 2, inf], 3,
                                   [1, 1, 0]),
    "infinite square, broadcast": (lambda x: np.sum(np.where(x[:2] > 5, x[2] ** 2 * np.cosh(x[2]), x[:2])),
                                   [1, 2, inf], 3, [1, 1, 0]),
    "infinite column, two ways": (lambda x: np.sum(np.where(x[:2, None] > 5, (x[2] * x)[None, :], 1.0) * x[0]),
                                  [1, 2, inf], 6, [6, 0, 0]),
    "overwritten carry": (overwritten_carry, [0, 2], 3, [0, 1]),
    "forgotten rows": (forgotten_rows, [0, 2], 18, [0, 1]),
    "untaken loop": (untaken_loop, [0, 2, 4], 2 + log(8), [0, 1.5, 0.25]),
    "elements of a carry": (elements_of_a_carry, [0, 0], 5, [1, 0]),
    "factors along a carry": (factors_along_a_carry, [1, 2, inf], 1, [1, 0, 0]),
    "product in an untaken branch": (lambda x: np.sum(np.where(x > 5, np.ones((2, 2)) @ np.sqrt(x), 0.0)), [0, 4], 0,
                                     [0, 0]),
    "logaddexp": (lambda x: np.logaddexp(np.where(x[0] > 0, np.log(x[0]), -np.inf), x[1]), [0, 2], 2, [0, 1]),
    "logsumexp": (lambda x: logsumexp(np.stack([np.where(x[0] > 0, np.log(x[0]), -np.inf), x[1]])), [0, 2], 2, [0, 1]),
    "power": (lambda x: np.sum(np.where(x > 0, x**0.5, 0.0)), [0, 4], 2, [0, 0.25]),
    "power by array": (lambda x: np.sum(np.where(x > 0, x ** (0.5 * np.ones(2)), 0.0)), [0, 4], 2, [0, 0.25]),
    "root of abs": (lambda x: np.sum(np.where(x == 0, 0.0, np.sqrt(np.abs(x)))), [0, 4, -4], 4, [0, 0.25, -0.25]),
    "arctan2": (lambda x: np.where((x[0] != 0) | (x[1] != 0), np.arctan2(x[1], x[0]), 0.0), [0, 0], 0, [0, 0]),
    "sin(x) / x": (lambda x: np.sum(np.where(x != 0, np.sin(x) / x, 1.0)), [0, np.pi / 2], 1 + 2 / np.pi,
                   [0, -4 / np.pi**2]),
    "a number": (lambda x: np.where(x[0] > 0, np.log(x[0]), 0.0) + x[1], [0, 4], 4, [0, 1]),
    "if": (branches, [0, 0.5, 2], 0, [0, 2, 0.5]),
    # what NumPy shows
    "log(0)": (lambda x: np.sum(np.log(x)), [0, 1], -inf, [inf, 1]),
    "sqrt(-1)": (lambda x: np.sum(np.sqrt(x)), [-1, 1], nan, [nan, 0.5]),
    "0 log(0)": (lambda x: np.sum(x * np.log(x)), [0, 1], nan, [nan, 1]),
    "a taken branch": (lambda x: np.sum(np.where(x >= 0, np.log(x), 0.0)), [0, 1], -inf, [inf, 1]),
    "a taken choice": (lambda x: np.sum(np.select([x < -5, x > 0], [np.sqrt(x), np.log(x)], 0.0)), [4, 0, -6], nan,
                       [0.25, 0, nan]),
}
EVERY = list(CASES)


def array(x, dtype=np.float64):
    return np.array(x, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EVERY)
def test_by_the_interpreter(name, dtype):
    f, x, value, gradient = CASES[name]
    g = value_and_grad(f)
    arguments = g.subject.arguments((array(x, dtype),), {})
    entry = g.specialized(arguments)
    got, slope = entry.interpret([*arguments.inputs, *entry.captured(g.subject.target)])
    rtol = 1e-12 if dtype is np.float64 else 2e-6
    np.testing.assert_allclose(got, f(array(x, dtype)), rtol=rtol)
    np.testing.assert_allclose(got, value, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(slope, gradient, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("part", range(3))
def test_by_kernels(part):
    """Many functions in one kernel, each differentiated on its own."""
    names = EVERY[part::3]
    parts = [value_and_grad(CASES[name][0]) for name in names]

    def all_of(*xs):
        return [part(x) for part, x in zip(parts, xs, strict=True)]
    found = jit(all_of)(*[array(CASES[name][1]) for name in names])
    for name, (value, slope) in zip(names, found, strict=True):
        np.testing.assert_allclose(value, CASES[name][2], rtol=1e-12, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(slope, CASES[name][3], rtol=1e-12, atol=1e-12, err_msg=name)


SECOND = {  # f, x, the sum of the columns of the Hessian
    "where of log": (CASES["where of log"][0], [0, 2], [0, -0.25]),
    "where of sqrt": (lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), [0, 4], [0, -1 / 32]),
    "where of sqrt(sum)": (CASES["where of sqrt(sum)"][0], [0, 0], [0, 0]),
    "overwritten": (overwritten, [0, 1, 2], [0, -1, -0.25]),
    "log of clip": (CASES["log of clip"][0], [0, 2], [0, -0.25]),
    "maximum of log": (CASES["maximum of log"][0], [0, 4], [0, -1 / 16]),
    "xlogy of zero": (CASES["xlogy of zero"][0], [0, 2], [0, -0.5]),
    "select": (lambda x: np.sum(np.select([x > 0], [x**1.5], 0.0)), [0, 4], [0, 0.375]),
    "of log by a mask": (CASES["of log by a mask"][0], [0, 4], [0, -1 / 16]),
}


def test_second_order():
    def twice(f):
        return jit_grad(lambda x: np.sum(jit_grad(f)(x)))
    parts = [twice(f) for f, _, _ in SECOND.values()]
    found = jit(lambda *xs: [part(x) for part, x in zip(parts, xs, strict=True)])(
        *[array(x) for _, x, _ in SECOND.values()])
    for name, slope in zip(SECOND, found, strict=True):
        np.testing.assert_allclose(slope, SECOND[name][2], rtol=1e-12, err_msg=name)


# --- loops ----------------------------------------------------------------------------------------

def test_in_a_loop_that_is_rolled_up():
    def f(x):
        total = 0.0
        for t in range(300):
            total = total * 0.5 + np.where(x[t] > 0, np.log(x[t]), 0.0)
        return total
    x = np.ones(300)
    x[[3, 299]] = 0
    g = value_and_grad(f)
    assert "scan" in g.tape(x)
    value, slope = g(x)
    weights = 0.5 ** np.arange(300)[::-1]
    weights[[3, 299]] = 0
    assert value == 0
    np.testing.assert_allclose(slope, weights, rtol=1e-12)


# --- powers ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("exponent", [0.5, np.float64(0.5), np.array(0.5), -0.5, 2.0])
def test_powers_at_the_ends_are_those_of_numpy(exponent):
    """A root for arrays, ``pow`` for numbers and arrays of exponents: they differ at -inf and -0.0."""
    x = np.array([-np.inf, -0.0, 4.0, 0.0, np.nan, -3.0])

    def powers(x, e):
        return [x**e, np.power(x, e), x**0.5, x ** np.float64(0.5), x ** np.full(6, 0.5), x[0] ** 0.5, x[1] ** 0.5,
                x[0] ** e, x[1] ** e, x[0] ** -0.5, x[1] ** -0.5, x**-0.5, np.array([2.0, -0.0]) ** e]
    g = jit(powers)
    for dtype in (np.float64, np.float32):
        a = x.astype(dtype)
        for found in (g(a, exponent), g.compile(a, exponent).interpret(a, exponent)):
            for got, expected in zip(found, powers(a, exponent), strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-6)
                real = ~np.isnan(expected)
                np.testing.assert_array_equal(np.signbit(got) & real, np.signbit(expected) & real)


def test_the_derivative_of_a_power_in_its_exponent():
    x = np.array([4.0, 2.0])
    slope, by_exponent = jitad.jit_grad(lambda x, e: np.sum(x**e), argnums=(0, 1))(x, 0.5)
    np.testing.assert_allclose(slope, 0.5 / np.sqrt(x), rtol=1e-14)
    np.testing.assert_allclose(by_exponent, np.sum(np.sqrt(x) * np.log(x)), rtol=1e-14)


def test_a_tangent_that_is_structurally_zero_meets_no_infinity() -> None:
    builder = Builder()
    x, t = (builder.input(Aval((3,), np.dtype(float)), name) for name in "xt")
    tangent, = pushforward(builder, [TABLE["sqrt"](select(x > 0.0, x, 0.0))], [x], [t])
    result, = evaluate(builder.finish([tangent]), np.array([-1.0, 0.0, 4.0]), np.ones(3))
    np.testing.assert_array_equal(result, [0.0, 0.0, 0.25])


INFINITE = np.array([[1.0, 2.0, -1.0], [3.0, np.inf, np.nan]])
A2 = np.array([[1.0, -2.0], [0.3, 0.7]])


@pytest.mark.parametrize("f", [
    lambda x: (INFINITE @ np.append(x, 1.0))[0],
    lambda x: np.sum((x @ INFINITE)[:1]) ** 2,
    lambda x: np.sum(np.outer(x, INFINITE[0])[::-1][:1] @ np.ones(3)),
    lambda x: np.einsum("ij,i->j", INFINITE, x * x)[0] * 3.0,
    lambda x: np.sin((x @ INFINITE)[0]) + np.tensordot(INFINITE[:, :1], x, axes=(0, 0))[0],
    lambda x: (np.outer(x, x) @ INFINITE)[1, 0],
    lambda x: np.sum((INFINITE.T @ np.outer(x, x))[0, ::-1]),
    lambda x: np.trace(np.outer(x, x**2) @ np.array([[1.0, 2.0], [0.5, 3.0]])) + np.diag(np.outer(x, x) @ A2)[1],
    lambda x: np.sum((A2 @ np.outer(x, x))[::-1, 1:] * x[:, None]) + (np.outer(x, x).T @ A2)[-1:, 0].sum(),
], ids=range(9))
def test_what_a_slice_of_a_product_leaves_out_meets_no_infinity(f):
    x, h = np.array([0.3, 0.7]), 1e-6
    slopes = lambda g: np.array([(g(x + h * e) - g(x - h * e)) / (2 * h) for e in np.eye(2)])
    with np.errstate(invalid="ignore"):
        expected = slopes(f)
    np.testing.assert_allclose(jitad.grad(f)(x), expected, rtol=1e-8)
    np.testing.assert_allclose(jitad.hessian(f)(x), slopes(jitad.grad(f)), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jitad.jacobian(lambda x: f(x) * np.ones(2))(x), [expected] * 2, rtol=1e-8)
