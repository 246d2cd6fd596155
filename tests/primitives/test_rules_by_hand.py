"""Derivatives known on paper, at the points where rules go wrong."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from jitad import jit, jit_grad
from jitad.passes.differentiate.modes import pullback, pushforward
from jitad.primitives import linalg as linalg
from jitad.primitives.core import full, select
from jitad.primitives.reduce import contract, reduce_sum
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate
from jitad.tape.types import TABLE, Aval

INF, NAN = math.inf, math.nan


def op(name: str) -> Any:
    return TABLE[name]


def derivatives(f: Callable[..., Value], *args: Any, order: int = 1) -> list[list[float]]:
    """The gradients of the sum of ``f(*args)`` of the given order (repeatedly of the first argument's gradient),
    by the reverse mode; the forward mode must agree for one argument."""
    arrays = [np.asarray(a, np.float64) for a in args]
    builder = Builder()
    xs = [builder.input(Aval(a.shape, a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    gradients, y = [f(*xs)], f(*xs)
    for _ in range(order):
        y = gradients[0]
        gradients = pullback(builder, [y], [full(y, 1.0, y.shape, y.dtype)], xs)
    outputs = list(gradients)
    if len(xs) == 1:
        outputs += pushforward(builder, [y], xs, [full(xs[0], 1.0, xs[0].shape, xs[0].dtype)])
    values = evaluate(builder.finish(outputs), *arrays)
    if len(xs) == 1 and values[0].shape == values[1].shape:
        np.testing.assert_allclose(values[1], values[0], rtol=1e-12, err_msg="forward and reverse differ")
    return [v.tolist() for v in values[:len(xs)]]


def where_positive_log(x: Value) -> Value:
    return select(op("gt")(x, 0.0), op("log")(x), 0.0)


UNARY: dict[str, tuple[Callable[[Value], Value], list[float], list[float]]] = {
    "|x|": (op("abs"), [-2.0, -0.0, 0.0, 3.0], [-1, 0, 0, 1]),
    "sqrt": (op("sqrt"), [0.0, 4.0, INF], [INF, 0.25, 0]),
    "cbrt": (op("cbrt"), [0.0, 8.0, -8.0], [INF, 1 / 12, 1 / 12]),
    "x**0": (lambda x: x ** 0, [0.0, 2.0, -1.0], [0, 0, 0]),
    "x**1": (lambda x: x ** 1, [0.0, 2.0, -1.0], [1, 1, 1]),
    "x**2": (lambda x: x ** 2, [0.0, 2.0, -1.5], [0, 4, -3]),
    "x**3": (lambda x: x ** 3.0, [0.0, 2.0, -2.0], [0, 12, 12]),
    "x**0.5": (lambda x: x ** 0.5, [0.0, 4.0], [INF, 0.25]),
    "x**-1": (lambda x: x ** -1.0, [2.0, -2.0], [-0.25, -0.25]),
    "0**x": (lambda x: 0.0 ** x, [1.0, 2.0, 0.0], [0, 0, 0]),
    "2**x": (lambda x: 2.0 ** x, [0.0, 1.0], [math.log(2), 2 * math.log(2)]),
    "sign": (op("sign"), [-1.0, 0.0, 2.0], [0, 0, 0]),
    "floor": (op("floor"), [-1.5, 0.0, 2.0], [0, 0, 0]),
    "log": (op("log"), [0.0, 2.0, INF], [INF, 0.5, 0]),
    "log1p": (op("log1p"), [-1.0, 0.0], [INF, 1]),
    "where(x > 0, log(x), 0)": (where_positive_log, [0.0, -1.0, 2.0], [0, 0, 0.5]),
    "max(log(x), -10)": (lambda x: op("maximum")(op("log")(x), -10.0), [0.0, 2.0], [0, 0.5]),
    "min(sqrt(x), 1)": (lambda x: op("minimum")(op("sqrt")(x), 1.0), [4.0, 0.25], [0, 1]),
    "max(x, 0)": (lambda x: op("maximum")(x, 0.0), [-1.0, 0.0, 1.0], [0, 0.5, 1]),
    "max(x, x)": (lambda x: op("maximum")(x, x), [-1.0, 0.0, INF], [1, 1, 1]),
    "fmax(x, nan)": (lambda x: op("fmax")(x, NAN), [-1.0, 2.0], [1, 1]),
    "hypot(x, 0)": (lambda x: op("hypot")(x, 0.0), [0.0, 2.0, -2.0], [0, 1, -1]),
    "softplus": (lambda x: op("logaddexp")(x, 0.0), [-INF, -800.0, 0.0, 800.0, INF], [0, 0, 0.5, 1, 1]),
    "logaddexp(x, x)": (lambda x: op("logaddexp")(x, x), [-INF, 0.0, INF], [1, 1, 1]),
    "logaddexp2(x, 0)": (lambda x: op("logaddexp2")(x, 0.0), [0.0, 1.0, -2000.0], [0.5, 2 / 3, 0]),
    "log1p(exp(x))": (lambda x: op("log1p")(op("exp")(x)), [-800.0, 0.0], [0, 0.5]),
    "expit": (op("expit"), [-INF, 0.0, INF], [0, 0.25, 0]),
    "log_expit": (op("log_expit"), [-INF, -800.0, 0.0, 800.0, INF], [1, 1, 0.5, 0, 0]),
    "logit": (op("logit"), [0.0, 0.5, 1.0], [INF, 4, INF]),
    "erf": (op("erf"), [-INF, 0.0, INF], [0, 2 / math.sqrt(math.pi), 0]),
    "ndtr": (op("ndtr"), [-INF, 0.0, INF], [0, 1 / math.sqrt(2 * math.pi), 0]),
    "log_ndtr": (op("log_ndtr"), [-INF, INF], [INF, 0]),
    "digamma": (op("digamma"), [0.0, -1.0, INF, 1.0], [INF, INF, 0, math.pi**2 / 6]),
    "gammaln": (op("gammaln"), [1.0, 0.0, INF], [-np.euler_gamma, -INF, INF]),
    "arcsin": (op("arcsin"), [-1.0, 0.0, 1.0], [INF, 1, INF]),
    "arctanh": (op("arctanh"), [-1.0, 0.0, 1.0], [INF, 1, INF]),
    "arccosh": (op("arccosh"), [1.0, INF], [INF, 0]),
    "arcsinh": (op("arcsinh"), [0.0, 1e200, INF], [1, 1e-200, 0]),
    "tanh": (op("tanh"), [-INF, 0.0, INF], [0, 1, 0]),
    "copysign(x, -1)": (lambda x: op("copysign")(x, -1.0), [-2.0, 0.0, 2.0], [1, 0, -1]),
    "x % 3": (lambda x: op("remainder")(x, 3.0), [-1.0, 4.0], [1, 1]),
    "7 % x": (lambda x: op("remainder")(7.0, x), [3.0, -3.0, INF], [-2, 3, 0]),
    "fmod(-7, x)": (lambda x: op("fmod")(-7.0, x), [3.0, -3.0, INF], [2, -2, 0]),
    "x // 2": (lambda x: op("floor_divide")(x, 2.0), [-1.0, 4.0], [0, 0]),
    "xlogy(x, 0)": (lambda x: op("xlogy")(x, 2.0), [0.0, 3.0], [math.log(2)] * 2),
    "xlogy(0, x)": (lambda x: op("xlogy")(0.0, x), [0.0, 3.0], [0, 0]),
    "xlog1py(0, x)": (lambda x: op("xlog1py")(0.0, x), [-1.0, 3.0], [0, 0]),
    "float32 there and back": (lambda x: op("cast")(op("cast")(x, dtype="float32"), dtype="float64"), [1.5], [1]),
    "through an integer": (lambda x: op("cast")(op("cast")(x, dtype="int64"), dtype="float64"), [1.5], [0]),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    f, at, expected = UNARY[name]
    np.testing.assert_allclose(derivatives(f, at)[0], expected, rtol=1e-14, atol=1e-300)


BINARY: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "max ties": ("maximum", (2.0, 2.0), (0.5, 0.5)),
    "min ties": ("minimum", (2.0, 2.0), (0.5, 0.5)),
    "infinite ties": ("maximum", (INF, INF), (0.5, 0.5)),
    "hypot at the origin": ("hypot", (0.0, 0.0), (0, 0)),
    "hypot without overflow": ("hypot", (3e200, 4e200), (0.6, 0.8)),
    "arctan2": ("arctan2", (1.0, 0.0), (0, -1)),
    "arctan2 without overflow": ("arctan2", (3e200, 4e200), (1.6e-201, -1.2e-201)),
    "arctan2 without underflow": ("arctan2", (3e-200, 4e-200), (1.6e199, -1.2e199)),
    "arctan2 at the origin is undefined": ("arctan2", (0.0, 0.0), (NAN, NAN)),
    "xlogy(0, 0)": ("xlogy", (0.0, 0.0), (-INF, 0)),
    "pow(0, 0)": ("pow", (0.0, 0.0), (0, 0)),
    "pow(0, 2)": ("pow", (0.0, 2.0), (0, 0)),
    "pow(0, -1)": ("pow", (0.0, -1.0), (-INF, -INF)),
    "pow(-2, 3): not defined beside the integer": ("pow", (-2.0, 3.0), (12, NAN)),
    "float_power(2, 0)": ("float_power", (2.0, 0.0), (0, math.log(2))),
    "heaviside at 0": ("heaviside", (0.0, 0.5), (0, 1)),
    "heaviside": ("heaviside", (1.0, 0.5), (0, 0)),
    "division by infinity": ("div", (2.0, INF), (0, 0)),
    "1 / 0": ("div", (1.0, 0.0), (INF, -INF)),
    "equal infinities": ("logaddexp", (-INF, -INF), (0.5, 0.5)),
    "opposite infinities": ("logaddexp", (INF, -INF), (1, 0)),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    row, at, expected = BINARY[name]
    np.testing.assert_allclose(derivatives(op(row), *at), expected, rtol=1e-14)


SECOND: dict[str, tuple[Callable[[Value], Value], list[float], list[float]]] = {
    "x**2": (lambda x: x ** 2, [0.0, -1.0], [2, 2]),
    "x**3 at 0": (lambda x: x ** 3, [0.0], [0]),
    "softplus at a tie": (lambda x: op("logaddexp")(x, 0.0), [0.0], [0.25]),
    "expit": (op("expit"), [0.0, 800.0, -800.0], [0, 0, 0]),
    "max(x, 0)**2": (lambda x: op("square")(op("maximum")(x, 0.0)), [1.0, -1.0], [2, 0]),
    "where(x > 0, log(x), 0)": (where_positive_log, [0.0, 2.0], [0, -0.25]),
    "log_ndtr": (op("log_ndtr"), [-1e10, -1e5, 50.0, 0.0], [-1, -1 + 1e-10, 0, -2 / math.pi]),
    "gammaln": (op("gammaln"), [1.0, 0.5], [math.pi**2 / 6, math.pi**2 / 2]),
    "remainder": (lambda x: op("remainder")(op("square")(x), 3.0), [2.0], [2]),
    "hypot(x, 0)": (lambda x: op("hypot")(x, 0.0), [0.0, 2.0], [0, 0]),
}


@pytest.mark.parametrize("name", SECOND)
def test_second(name: str) -> None:
    f, at, expected = SECOND[name]
    np.testing.assert_allclose(derivatives(f, at, order=2)[0], expected, rtol=1e-12, atol=1e-300)


def exact(f: Callable[[Any], Any], xs: list[float]) -> list[float]:
    with mpmath.workdps(60):
        return [float(f(mpmath.mpf(x))) for x in xs]


def hazard(x: Any) -> Any:
    return mpmath.npdf(x) / mpmath.ncdf(x)


@pytest.mark.parametrize("x", [-1e300, -1e100, -1e5, -1000.0, -40.0, -30.1, -29.9, -10.0, -1.0, 0.0, 3.0, 10.0, 30.0])
def test_log_ndtr_is_stable(x: float) -> None:
    """First and second derivatives: h and -h (x + h), with the asymptotic value where mpmath's own range ends."""
    first, second = derivatives(op("log_ndtr"), x)[0], derivatives(op("log_ndtr"), x, order=2)[0]
    with mpmath.workdps(80):
        h = hazard(mpmath.mpf(x)) if x > -1e6 else -mpmath.mpf(x)
        slope = -h * (x + h) if x > -1e6 else mpmath.mpf(-1)
        np.testing.assert_allclose(first, float(h), rtol=4e-13, atol=1e-300)
        np.testing.assert_allclose(second, float(slope), rtol=2e-10, atol=1e-300)


@pytest.mark.parametrize("x", [-20.3, -1.5, -0.2, 1e-8, 0.3, 4.0, 1e8])
def test_derivatives_of_digamma(x: float) -> None:
    expected = exact(lambda v: mpmath.psi(1, v), [x]) + exact(lambda v: mpmath.psi(2, v), [x])
    got = [derivatives(op("digamma"), x)[0], derivatives(op("digamma"), x, order=2)[0]]
    np.testing.assert_allclose(got, expected, rtol=1e-11)


@pytest.mark.parametrize("x", [-30.0, -3.0, 0.5, 5.0, 26.0])
def test_derivatives_of_error_functions(x: float) -> None:
    slope = exact(lambda v: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-v * v), [x])
    np.testing.assert_allclose(derivatives(op("erf"), x), slope, rtol=2e-13, atol=1e-300)
    np.testing.assert_allclose(derivatives(op("erfc"), x), [-s for s in slope], rtol=2e-13, atol=1e-300)


# --- structure ---------------------------------------------------------------------------------------------

def test_extrema_over_an_axis_share_between_ties() -> None:
    x = [[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]
    assert derivatives(lambda v: op("reduce_max")(v, axes=(1,)), x) == [[[0, 0.5, 0.5], [1, 0, 0]]]
    assert derivatives(lambda v: op("reduce_min")(v, axes=(0,)), x) == [[[1, 0, 0], [0, 1, 1]]]


def test_what_the_maximum_does_not_see_may_have_an_infinite_slope() -> None:
    assert derivatives(lambda v: op("reduce_max")(op("log")(v), axes=(0,)), [0.0, 2.0]) == [[0, 0.5]]


@pytest.mark.parametrize(("spec", "a", "b"), [
    ("ii,i->i", (3, 3), (3,)), ("ii,jj->", (2, 2), (3, 3)), ("iij,j->i", (2, 2, 3), (3,)), ("iii,i->", (2, 2, 2), (2,)),
    ("ij,ij->ij", (1, 3), (2, 3)), ("ij,jk->ik", (2, 1), (3, 2)), ("ij,kl->ik", (2, 3), (2, 4)), ("i,i->", (3,), (3,)),
    ("ij,ji->ji", (2, 3), (3, 2)), (",->", (), ()), ("bij,bjk->bik", (2, 2, 3), (2, 3, 1)),
    ("ij,jk->ki", (0, 3), (3, 2)),
])
def test_contractions(spec: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Value and gradient against einsum; the product is linear in each operand, so one difference is exact."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=a), rng.normal(size=b)
    builder = Builder()
    xs = [builder.input(Aval(x.shape, x.dtype), n) for x, n in ((left, "a"), (right, "b"))]
    y = contract(*xs, spec)
    seed = rng.normal(size=y.shape)
    gradients = pullback(builder, [y], [builder.const(seed)], xs)
    value, *got = evaluate(builder.finish([y, *gradients]), left, right)
    np.testing.assert_allclose(value, np.einsum(spec, left, right), rtol=1e-12, atol=1e-14)
    dl, dr = rng.normal(size=a), rng.normal(size=b)
    np.testing.assert_allclose(np.sum(got[0] * dl), np.sum(seed * np.einsum(spec, dl, right)), rtol=1e-12)
    np.testing.assert_allclose(np.sum(got[1] * dr), np.sum(seed * np.einsum(spec, left, dr)), rtol=1e-12)


def test_contraction_of_integers_and_floats_is_of_floats() -> None:
    builder = Builder()
    a, b = builder.input(Aval((2, 2), np.dtype(int)), "a"), builder.input(Aval((2,), np.dtype(float)), "b")
    value = evaluate(builder.finish([contract(a, b, "ij,j->i")]), [[1, 2], [3, 4]], [0.5, 0.25])[0]
    assert value.tolist() == [1.0, 2.5]


def test_contraction_of_sizes_that_do_not_match_is_refused() -> None:
    builder = Builder()
    a, b = (builder.input(Aval(s, np.dtype(float)), n) for s, n in (((2, 3), "a"), ((2, 4), "b")))
    with pytest.raises(ValueError):
        contract(a, b, "ij,kj->ik")


# --- linear algebra ------------------------------------------------------------------------------------------

def test_determinant_of_singular_matrices() -> None:
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(derivatives(op("det"), a)[0], [[4.0, -2.0], [-2.0, 1.0]], rtol=1e-14)
    np.testing.assert_allclose(derivatives(op("det"), np.zeros((2, 2)))[0], np.zeros((2, 2)), atol=0)
    rank_one = np.ones((3, 3))
    np.testing.assert_allclose(derivatives(op("det"), rank_one)[0], np.zeros((3, 3)), atol=1e-14)
    assert derivatives(op("det"), [[5.0]]) == [[[1.0]]]


def test_second_derivative_of_the_determinant_at_zero() -> None:
    """det of 2 x 2 is a d - b c: the derivative of its summed gradient is [[1, -1], [-1, 1]] everywhere."""
    np.testing.assert_allclose(derivatives(op("det"), np.zeros((2, 2)), order=2)[0], [[1, -1], [-1, 1]], rtol=1e-14)


def test_one_bad_matrix_of_a_batch_leaves_the_others() -> None:
    a = np.stack([np.full((2, 2), NAN), np.diag([2.0, 3.0])])
    value = np.array(derivatives(op("det"), a)[0])
    assert np.isnan(value[0]).all()
    np.testing.assert_allclose(value[1], np.diag([3.0, 2.0]), rtol=1e-14)


def test_slogdet_of_a_singular_matrix_is_minus_infinity_with_nan() -> None:
    assert np.isnan(derivatives(op("slogdet_log"), np.ones((2, 2)))[0]).all()
    assert op("slogdet_log")(np.ones((2, 2))) == -INF
    assert op("slogdet_sign")(np.ones((2, 2))) == 0


def test_cholesky_is_that_of_the_symmetric_matrix() -> None:
    """L11 = sqrt(a11), L21 = a21 / L11; the upper triangle is not read, the cotangent is symmetric."""
    a = np.array([[4.0, 777.0], [2.0, 5.0]])
    np.testing.assert_allclose(op("cholesky")(a), [[2.0, 0.0], [1.0, 2.0]])
    symmetric = np.array([[4.0, 2.0], [2.0, 5.0]])
    gradient = np.array(derivatives(lambda v: reduce_sum(op("cholesky")(v), (0, 1)), symmetric)[0])
    # d(L11 + L21 + L22): da11/4 + (da21/2 - da11/8) + (da22 - 2 L21 dL21)/4 with dL21 = da21/2 - da11/8
    np.testing.assert_allclose(gradient, [[3 / 16, 1 / 8], [1 / 8, 1 / 4]], rtol=1e-14)


@pytest.mark.parametrize(("row", "inputs"), [
    ("cholesky", (-np.eye(2),)), ("solve", (np.ones((2, 2)), np.ones((2, 1)))), ("inv", (np.zeros((2, 2)),)),
    ("solve_triangular", (np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones((2, 1)))),
    ("solve_triangular", (np.zeros((2, 2, 2)), np.ones((2, 2, 1)))),
])
def test_matrices_that_numpy_refuses(row: str, inputs: tuple[Any, ...]) -> None:
    function = getattr(linalg, row)
    with pytest.raises(np.linalg.LinAlgError):
        function(*inputs)
    with pytest.raises(np.linalg.LinAlgError):
        derivatives(function, *inputs)


def test_shapes_that_numpy_refuses() -> None:
    builder = Builder()
    a, b = (builder.input(Aval(s, np.dtype(float)), n) for s, n in (((2, 3), "a"), ((4, 1), "b")))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        linalg.inv(a)
    with pytest.raises(np.linalg.LinAlgError):
        op("det")(b)
    with pytest.raises(ValueError, match="solve"):
        linalg.solve(contract(a, a, "ij,kj->ik"), b)


def test_batches_broadcast_and_may_be_empty() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 2)) + 3 * np.eye(2), rng.normal(size=(3, 2, 1))
    for f, expected in ((linalg.solve, np.linalg.solve), (linalg.matmul, np.matmul)):
        builder = Builder()
        xs = [builder.input(Aval(x.shape, x.dtype), n) for x, n in ((a, "a"), (b, "b"))]
        np.testing.assert_allclose(evaluate(builder.finish([f(*xs)]), a, b)[0], expected(a, b), rtol=1e-13)
        gradient = derivatives(f, a, b)
        assert np.shape(gradient[0]) == (2, 2) and np.shape(gradient[1]) == (3, 2, 1)
    for row in ("cholesky", "inv", "det", "cofactor", "slogdet_log", "slogdet_sign"):
        assert op(row)(np.zeros((0, 2, 2))).shape[0] == 0
    assert linalg.solve_triangular(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)


def test_the_fraction_moves_with_the_number_at_whole_numbers_too():
    x = np.array([1.5, -1.5, 0.0, -0.0, 3.0, -3.0, np.inf, -np.inf])
    parts = jit(lambda x: np.modf(x))(x)
    for got, expected in zip(parts, np.modf(x), strict=True):
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    np.testing.assert_array_equal(jit_grad(lambda x: np.sum(np.modf(x)[0]))(x), [1, 1, 1, 1, 1, 1, 0, 0])
