"""Scalar functions over arrays, and `numpy.vectorize`."""
from __future__ import annotations

import math

import numpy as np
import pytest

import jitad
from jitad import (
    ArgumentTypeError,
    ConcretizationError,
    OutputError,
    UnsupportedOperationError,
    batch,
    elementwise,
    hessian,
    jacobian,
    jit,
    jit_grad,
    scan,
)
from jitad.testing.checks import check_grads
from tests.helpers.public import compiling, fresh, same, x3  # noqa: F401

points = np.array([[-3.0, -1.0, -0.3], [0.2, 1.0, 2.5]])


@elementwise
def huber(r, delta):
    if abs(r) <= delta:
        return 0.5 * r * r
    return delta * (abs(r) - 0.5 * delta)


def numpy_huber(r, delta):
    return np.where(np.abs(r) <= delta, 0.5 * r * r, delta * (np.abs(r) - 0.5 * delta))


@elementwise
def log_or_zero(x):
    if x > 0:
        return math.log(x)
    return 0


@elementwise
def pieces(x, y):
    """Chained comparisons, `and`, `or`, `not`, min, max and nested branches."""
    if 0 < x < 1 and not y > 2:
        return max(x, y), x * y
    if x < -1 or y == 1.0:
        return min(x, y) ** 2, -x
    while y > 100.0:
        return 0.0, 0.0
    return (x if y < 0 else y), 1


# --- jitad.elementwise ----------------------------------------------------------------------------------

def test_values_are_those_of_the_function_called_for_each_element():
    y = np.array([[0.5], [3.0]])
    for f, args in ((huber, (points, 1.0)), (huber, (points, np.array([[0.5], [2.0]]))), (log_or_zero, (points,)),
                    (pieces, (points, 1.0)), (pieces, (points, y)), (pieces, (points, np.array([1.0, -1.0, 2.5])))):
        plain, compiled = f(*args), jit(lambda *a, f=f: f(*a))(*args)
        for p, c in zip(*((r if isinstance(r, tuple) else (r,)) for r in (plain, compiled)), strict=True):
            same(c, p)
    np.testing.assert_array_equal(huber(points, 1.0), numpy_huber(points, 1.0))


def test_numbers_give_numbers():
    assert huber(3.0, 1.0) == 2.5 and isinstance(huber(3.0, 1.0), float)
    assert jit(huber)(3.0, 1.0) == 2.5
    assert jit(lambda x: elementwise(lambda t, how: t * 2 if how == "twice" else t)(x, "twice"))(2.0) == 4.0


def test_derivatives_of_every_way():
    np.testing.assert_array_equal(jit_grad(lambda r: np.sum(huber(r, 1.0)))(points), np.clip(points, -1, 1))
    np.testing.assert_allclose(jit_grad(lambda d: np.sum(huber(points, d)))(1.0), 2.0 + 1.5)
    check_grads(lambda r: huber(r, 1.1) * r, (points,), order=2)
    check_grads(lambda x: pieces(x, 0.5)[0] * pieces(x, 1.5)[1], (points + 0.01,), order=1)
    np.testing.assert_array_equal(hessian(lambda r: np.sum(huber(r, 1.5)))(points[1]), np.diag([1.0, 1.0, 0.0]))
    slopes = jacobian(lambda r: huber(r, 1.5), mode="forward")(points[1])
    np.testing.assert_array_equal(slopes, np.diag([0.2, 1.0, 1.5]))


def test_a_way_that_is_not_taken_does_no_harm():
    root = elementwise(lambda x: math.sqrt(x) if x > 0 else 0.0)
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(root(x)))(np.array([0.0, 4.0, -1.0])), [0.0, 0.25, 0.0])
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(log_or_zero(x)))(np.array([0.0, 4.0, -1.0])), [0, 0.25, 0])


def test_nan_is_not_greater():
    x = np.array([np.nan, 1.0])
    sign = elementwise(lambda x: 1.0 if x > 0 else -1.0)
    np.testing.assert_array_equal(jit(lambda x: sign(x))(x), [-1.0, 1.0])
    truth = elementwise(lambda x: 1.0 if x else 2.0)
    np.testing.assert_array_equal(jit(lambda x: truth(x))(np.array([np.nan, 0.0, -0.0, 3.0])), [1.0, 2.0, 2.0, 1.0])


def test_it_is_one_fused_expression():
    tape = jit(lambda x: np.sum(huber(x, 1.0))).compile(points).tape
    assert {n.prim.kind for n in tape.nodes} <= {"input", "const", "view", "elementwise", "reduce"}
    assert not tape.guards


def test_captured_arrays_and_loops_of_fixed_length():
    coefficients = np.array([1.0, -2.0, 0.5])

    @elementwise
    def polynomial(x):
        total = 0.0
        for c in coefficients:
            total = total * x + c
        return total if x < 2 else math.nan
    g = jit(lambda x: polynomial(x))
    np.testing.assert_allclose(g(points)[0], np.polyval(coefficients, points[0]))
    assert np.isnan(g(points)[1, 2])
    with compiling(0):
        coefficients[0] = 3.0
        np.testing.assert_allclose(g(points)[0], np.polyval(coefficients, points[0]))


def test_an_index_into_a_table_is_a_loop():
    levels = np.array([1.0, 2.0, 4.0])
    pick = elementwise(lambda x, i: x * levels[i] if x > 0 else -levels[i])
    i = np.array([0, 1, 2])
    np.testing.assert_array_equal(jit(lambda x: pick(x, i))(points), np.where(points > 0, points * levels, -levels))
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(pick(x, i)))(points), np.where(points > 0, levels, 0.0))


def test_in_batches_loops_and_each_other():
    np.testing.assert_array_equal(batch(jit_grad(lambda r: np.sum(huber(r, 1.0))))(points), np.clip(points, -1, 1))
    steps = jit_grad(lambda x: scan(lambda c, t: (c + huber(t * c, 1.0), None), 1.0, x)[0])
    def plain(x):
        c = 1.0
        for i in range(3):
            c = c + numpy_huber(x[i] * c, 1.0)
        return c
    np.testing.assert_allclose(steps(points[1]), jit_grad(plain)(points[1]))
    outer = elementwise(lambda x: huber(x, 1.0) * 2 if x > -2 else x)
    np.testing.assert_array_equal(jit(lambda x: outer(x))(points), np.where(points > -2, 2 * numpy_huber(points, 1.0),
                                                                           points))


def test_dtypes():
    same(jit(lambda x: huber(x, np.float32(1)))(points.astype(np.float32)),
         numpy_huber(points.astype(np.float32), np.float32(1)), rtol=1e-6)
    step = elementwise(lambda x: 1 if x > 0 else 0)
    same(jit(lambda x: step(x))(points), (points > 0).astype(float))
    same(step(points), (points > 0).astype(float))
    same(jit(lambda x: step(x))(np.arange(3)), np.array([0, 1, 1]))
    same(jit(lambda x: elementwise(lambda t: t > 0)(x))(points), points > 0)
    same(step(np.zeros((0, 2))), np.zeros((0, 2)))
    same(jit(lambda x: step(x))(np.zeros((0, 2))), np.zeros((0, 2)))


def test_a_way_that_raises():
    @elementwise
    def f(x):
        if x < -5:
            raise LookupError("too small")
        return x * x
    g = jit_grad(lambda x: np.sum(f(x)))
    np.testing.assert_array_equal(g(points), 2 * points)
    for _ in range(2):
        with pytest.raises(LookupError, match=r"too small"):
            g(points * 2)
    with compiling(0):
        np.testing.assert_array_equal(g(points), 2 * points)


def test_math_raises_for_the_elements_that_come_to_it():
    g = jit_grad(lambda x: np.sum(log_or_zero(x)))
    f = elementwise(lambda x: math.log(x) if x > -2 else 0.0)
    h = jit_grad(lambda x: np.sum(f(x)))
    np.testing.assert_array_equal(h(np.array([2.0, -3.0])), [0.5, 0.0])
    with pytest.raises(ValueError, match=r"math domain error"):
        h(np.array([2.0, -1.0]))
    with pytest.raises(ValueError, match=r"math domain error"):
        jit(lambda x: f(x))(np.array([2.0, 0.0]))
    np.testing.assert_array_equal(g(np.array([2.0, -1.0])), [0.5, 0.0])


def test_what_cannot_be_elementwise():
    def halves(x):
        while x > 1:
            x = x / 2
        return x
    with pytest.raises(UnsupportedOperationError, match=r"`halves` has more than 64 decisions in a row.*while_loop"):
        jit(elementwise(halves))(x3)
    def wide(x):
        return sum(1.0 if x > k else 0.0 for k in range(7))
    with pytest.raises(UnsupportedOperationError, match=r"`wide` has more than 64 ways"):
        jit(elementwise(wide))(x3)
    with pytest.raises(ConcretizationError, match=r"integer that is another one for every element \(for range"):
        jit(elementwise(lambda x: sum(x for _ in range(int(x)))))(x3)
    with pytest.raises(OutputError, match=r"returns an array for one element"):
        jit(elementwise(lambda x: np.ones(2) * x))(x3)
    with pytest.raises(OutputError, match=r"returned a ndarray for one element"):
        elementwise(lambda x: np.ones(2) * x)(x3)
    with pytest.raises(OutputError, match=r"other containers, or more values"):
        jit(elementwise(lambda x: (x, x) if x > 1.5 else x))(x3)
    with pytest.raises(OutputError, match=r"other containers, or more values"):
        elementwise(lambda x: (x, x) if x > 1.5 else x)(x3)
    with pytest.raises(OutputError, match=r"returns a NoneType on one way"):
        jit(elementwise(lambda x: x if x > 0 else None))(x3)
    with pytest.raises(ArgumentTypeError, match=r"takes its arguments by position"):
        jit(lambda x: huber(x, delta=1.0))(x3)
    with pytest.raises(ArgumentTypeError, match=r"takes its arguments by position"):
        huber(x3, delta=1.0)


def test_a_function_that_is_not_pure():
    turn = iter(range(100))
    with pytest.raises((UnsupportedOperationError, jitad.JitadError)):
        jit(elementwise(lambda x: 1.0 if x > next(turn) else (2.0 if x > 3 else 0.0)))(x3)


# --- numpy.vectorize ----------------------------------------------------------------------------------------

def test_vectorize():
    difference = np.vectorize(lambda a, b: a - b if a > b else a + b)
    same(jit(lambda a: difference(a, 0.5))(points), difference(points, 0.5))
    same(jit(lambda a: np.vectorize(lambda t: t if t > 0 else 0.0)(a))(points), np.maximum(points, 0.0))
    same(jit(lambda a: np.vectorize(lambda t: t if t > 0 else 0, otypes=[float])(a))(points), np.maximum(points, 0.0))
    same(jit(lambda a: np.vectorize(otypes=["d"])(lambda t: 2 * t)(a))(points), 2 * points)
    two = np.vectorize(lambda t: (t + 1, t > 0))
    for got, expected in zip(jit(lambda a: two(a))(points), two(points), strict=True):
        same(got, expected)
    np.testing.assert_allclose(jit_grad(lambda a: np.sum(difference(a, 0.5) * a))(points),
                               np.where(points > 0.5, 2 * points - 0.5, 2 * points + 0.5))
    assert jit(lambda a: difference(3.0, 1.0) + a)(1.0) == 3.0
    factor = 2.0
    scaled = np.vectorize(lambda t: t * factor)
    g = jit(lambda a: scaled(a))
    same(g(points), 2 * points)
    with compiling(0):
        factor = 3.0
        same(g(points), 3 * points)


def test_vectorize_refuses_what_depends_on_the_first_element():
    with pytest.raises(UnsupportedOperationError, match=r"numpy.vectorize gives float64 or int64.*otypes=\[float\]"):
        jit(lambda a: np.vectorize(lambda t: t if t > 0 else 0)(a))(points)
    same(jit(lambda a: np.vectorize(lambda t: t)(t=a))(points), points)
    with pytest.raises(UnsupportedOperationError, match=r"numpy.vectorize of float32"):
        jit(lambda a: np.vectorize(lambda t: t)(a))(points.astype(np.float32))
    with pytest.raises(ValueError, match=r"cannot call `vectorize` on size 0 inputs"):
        jit(lambda a: np.vectorize(lambda t: t)(a))(np.zeros(0))
    with pytest.raises(ValueError, match=r"gives 1 results and otypes says 2"):
        jit(lambda a: np.vectorize(lambda t: t, otypes="dd")(a))(points)
