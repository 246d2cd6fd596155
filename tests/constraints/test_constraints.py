"""Every constraint: its log-Jacobian is that of its map, its inverse undoes it, nothing overflows."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import jitad
from jitad import constraints as c
from jitad.errors import ConstraintError

EARLIER = {"s": 1.3, "t": np.array([0.5, 2.0])}


def lower_triangle(x, k=0):
    return x[..., *np.tril_indices(x.shape[-1], k)]


# A constraint, and the elements of its value on which the log-Jacobian is; None where lengths are kept (Gram).
CASES = {
    "real": (c.real(3, 2), lambda x: x),
    "positive": (c.positive(2, 2), lambda x: x),
    "lower": (c.lower(1.5, 3), lambda x: x),
    "lower by function": (c.lower(lambda p: p["t"], 2), lambda x: x),
    "upper": (c.upper([1.0, -2.0]), lambda x: x),
    "interval": (c.interval([-1.0, 0.0], 2.0), lambda x: x),
    "interval by functions": (c.interval(lambda p: p["s"], lambda p: p["s"] + p["t"], 2), lambda x: x),
    "offset_scale": (c.offset_scale(1.0, 2.5, 3), lambda x: x),
    "offset_scale by functions": (c.offset_scale(lambda p: p["t"], lambda p: p["s"], 2), lambda x: x),
    "ordered": (c.ordered(4), lambda x: x),
    "ordered batch": (c.ordered(3, batch=2), lambda x: x),
    "positive_ordered": (c.positive_ordered(4), lambda x: x),
    "simplex": (c.simplex(5), lambda x: x[..., :-1]),
    "simplex batch": (c.simplex(3, batch=(2,)), lambda x: x[..., :-1]),
    "stick_breaking": (c.stick_breaking(5), lambda x: x[..., :-1]),
    "stochastic_rows": (c.stochastic_rows(3, 4), lambda x: x[..., :-1]),
    "sum_to_zero": (c.sum_to_zero(4), None),
    "cholesky_corr": (c.cholesky_corr(4), lambda x: lower_triangle(x, -1)),
    "cholesky_corr batch": (c.cholesky_corr(3, batch=2), lambda x: lower_triangle(x, -1)),
    "corr": (c.corr(4), lambda x: lower_triangle(x, -1)),
    "cholesky_cov": (c.cholesky_cov(3), lower_triangle),
    "cov": (c.cov(3), lower_triangle),
    "cov batch": (c.cov(2, batch=3), lower_triangle),
}


@pytest.mark.parametrize("name", CASES)
def test_log_jacobian_round_trip_and_kernel(name):
    constraint, elements = CASES[name]
    u = np.random.default_rng(len(name)).normal(size=constraint.size)

    def forward(u):
        return constraint.forward(u, EARLIER)

    value, log_jacobian = forward(u)
    assert value.shape == constraint.shape
    np.testing.assert_allclose(constraint.inverse(value, EARLIER), u, rtol=1e-9, atol=1e-10)
    (compiled, compiled_log), jacobian = jitad.value_and_jacobian(forward, on_mismatch="silent")(u)
    np.testing.assert_allclose(compiled, value, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(compiled_log, log_jacobian, rtol=1e-12, atol=1e-14)
    moved = np.moveaxis(jacobian[0], -1, 0)
    if elements is None:
        columns = moved.reshape(constraint.size, -1)
        expected = 0.5 * np.linalg.slogdet(columns @ columns.T)[1]
    else:
        columns = np.array([elements(column).ravel() for column in moved])
        expected = np.linalg.slogdet(columns)[1]
    np.testing.assert_allclose(log_jacobian, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("far", [-700.0, 700.0])
def test_nothing_overflows_far_out(name, far):
    constraint, _ = CASES[name]
    far = far / 2.1 if name.startswith("cov") else far       # of which a covariance matrix has the square
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, log_jacobian = constraint.forward(np.full(constraint.size, far), EARLIER)
    assert np.isfinite(log_jacobian) and np.isfinite(value).all()
    gradient = jitad.grad(lambda u: constraint.forward(u, EARLIER)[1], on_mismatch="silent")
    assert np.isfinite(gradient(np.full(constraint.size, far))).all()


def test_unit_vector_keeps_the_direction():
    constraint, u = c.unit_vector(3), np.array([1.0, 2.0, -2.0])
    value, log_jacobian = constraint.forward(u, {})
    np.testing.assert_allclose(value, u / 3)
    assert log_jacobian == -4.5
    np.testing.assert_allclose(constraint.forward(constraint.inverse(value, {}), {})[0], value)


# --- Stan's definitions, written out from the manual by other ways -------------------------------------------------

def test_order_of_the_free_numbers_of_correlations():
    """`cholesky_factor_corr` goes by rows of the lower triangle, `corr_matrix` by rows of the upper: with all partial
    correlations zero but one, that one is the correlation itself."""
    u = np.zeros(6)
    u[2] = np.arctanh(0.5)                                   # third: (2, 1) below, (0, 3) above
    factor = c.cholesky_corr(4).forward(u, {})[0]
    np.testing.assert_allclose((factor @ factor.T)[2, 1], 0.5)
    matrix = c.corr(4).forward(u, {})[0]
    np.testing.assert_allclose(matrix[3, 0], 0.5)
    assert abs(matrix - np.eye(4)).sum() == pytest.approx(1.0)


def test_cholesky_of_correlations_by_the_recursion_of_the_manual():
    u, k = np.random.default_rng(1).normal(size=6), 4
    z, x = np.zeros((k, k)), np.zeros((k, k))
    z[np.tril_indices(k, -1)] = np.tanh(u)
    x[0, 0] = 1
    for i in range(1, k):
        for j in range(i):
            x[i, j] = z[i, j] * np.sqrt(1 - np.sum(x[i, :j] ** 2))
        x[i, i] = np.sqrt(1 - np.sum(x[i, :i] ** 2))
    np.testing.assert_allclose(c.cholesky_corr(4).forward(u, {})[0], x, rtol=1e-12, atol=1e-15)


def test_simplexes_by_the_recursions_of_the_manual():
    u = np.array([0.3, -0.7, 1.1])
    x = np.zeros(4)
    for k in range(3):
        x[k] = (1 - x[:k].sum()) * expit(u[k] - np.log(3 - k))
    x[3] = 1 - x[:3].sum()
    np.testing.assert_allclose(c.stick_breaking(4).forward(u, {})[0], x)
    basis = np.zeros((4, 3))                                 # orthonormal, its columns sum to zero
    for n in range(1, 4):
        basis[:n, n - 1], basis[n, n - 1] = 1 / np.sqrt(n * (n + 1)), -n / np.sqrt(n * (n + 1))
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(c.sum_to_zero(4).forward(u, {})[0], basis @ u, atol=1e-15)
    new, log_jacobian = c.simplex(4).forward(u, {})
    np.testing.assert_allclose(new, np.exp(basis @ u) / np.exp(basis @ u).sum())
    assert log_jacobian == pytest.approx(0.5 * np.log(4) + np.log(new).sum())


def test_rows_of_a_stochastic_matrix_are_read_by_columns():
    u = np.arange(6.0) / 10
    value, _ = c.stochastic_rows(2, 4).forward(u, {})
    for row in range(2):
        np.testing.assert_allclose(value[row], c.simplex(4).forward(u[row::2], {})[0])


def test_covariance_carries_k_log_2():
    assert c.cov(3).forward(np.zeros(6), {})[1] == pytest.approx(3 * np.log(2))
    assert c.cholesky_cov(3).forward(np.zeros(6), {})[1] == 0


def test_shapes_and_infinite_bounds():
    assert c.real().forward(np.array([2.0]), {}) == (2.0, 0.0)
    assert c.positive((2, 3)).shape == (2, 3) and c.lower(np.zeros(4)).shape == (4,)
    assert c.cov(3, batch=2).size == 12 and c.simplex(1).size == 0
    np.testing.assert_array_equal(c.simplex(1).forward(np.zeros(0), {})[0], [1.0])
    assert c.interval(-np.inf, np.inf, 2).forward(np.array([1.0, 2.0]), {})[1] == 0
    np.testing.assert_allclose(c.interval(0.0, np.inf).forward(np.array([1.0]), {})[0], np.e)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: c.positive(-1), "a size in the shape of positive must be an integer, 0 or more, not -1"),
    (lambda: c.real(2.5), "not 2.5"),
    (lambda: c.simplex(0), "number of elements of simplex"),
    (lambda: c.interval(1.0, 1.0), "not below the upper bound"),
    (lambda: c.lower("a"), "a bound must be a number"),
    (lambda: c.lower([0.0, -np.inf]), "finite, or all of them infinite"),
    (lambda: c.lower(np.inf), "nothing is beyond the bound inf"),
    (lambda: c.upper([-np.inf, -np.inf]), "nothing is beyond the bound"),
    (lambda: c.lower([0.0, 1.0], 3), "do not fit the shape"),
    (lambda: c.offset_scale(0.0, -1.0), "scale must be positive"),
    (lambda: c.positive(2).inverse([1.0, -1.0], {}), "is not positive"),
    (lambda: c.positive(2).inverse([1.0], {}), r"has shape \(2,\), and the value has shape \(1,\)"),
    (lambda: c.real(1).inverse([np.nan], {}), "not finite"),
    (lambda: c.lower(2.0).inverse(1.0, {}), "above 2.0"),
    (lambda: c.upper(2.0).inverse(3.0, {}), "below 2.0"),
    (lambda: c.interval(0.0, 1.0).inverse(2.0, {}), "between 0.0 and 1.0"),
    (lambda: c.ordered(2).inverse([1.0, 0.0], {}), "increasing"),
    (lambda: c.positive_ordered(2).inverse([-1.0, 0.0], {}), "positive and increasing"),
    (lambda: c.simplex(2).inverse([0.5, 0.6], {}), "sum one"),
    (lambda: c.stick_breaking(2).inverse([0.5, 0.6], {}), "sum one"),
    (lambda: c.sum_to_zero(2).inverse([1.0, 1.0], {}), "sum zero"),
    (lambda: c.unit_vector(2).inverse([1.0, 1.0], {}), "length one"),
    (lambda: c.cholesky_corr(2).inverse(np.ones((2, 2)), {}), "lower triangular"),
    (lambda: c.cholesky_corr(2).inverse(2 * np.eye(2), {}), "rows of length one"),
    (lambda: c.cholesky_cov(2).inverse(-np.eye(2), {}), "positive diagonal"),
    (lambda: c.corr(2).inverse(2 * np.eye(2), {}), "diagonal one"),
    (lambda: c.cov(2).inverse([[1.0, 2.0], [2.0, 1.0]], {}), "positive definite"),
    (lambda: c.cov(2).inverse([[1.0, 2.0], [0.0, 1.0]], {}), "symmetric"),
])
def test_what_makes_no_sense_is_named(make, words):
    with pytest.raises(ConstraintError, match=words):
        make()
