"""`check_finite` of SciPy's functions: NaN and infinities raise what they raise there, caught or not."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.linalg as sl
import scipy.stats as st
from numpy.linalg import LinAlgError

import jitad
from jitad import batch, jit, jit_grad
from tests.helpers.failures import ends, follows, slope
from tests.helpers.public import compiling, fresh  # noqa: F401

EYE, B = np.eye(3), np.array([1.0, -2.0, 0.5])


def matrix(x: Any) -> Any:
    """Symmetric and definite for small x[0]; what is not finite stands in its upper triangle alone."""
    return 4.0 * EYE + np.diag([0.5, 1.0, 2.0]) + x[0] * np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


FUNCTIONS = {
    "cholesky": lambda x: sl.cholesky(matrix(x), lower=True) ** 2,
    "cho_factor": lambda x: sl.cho_factor(matrix(x), lower=True)[0].diagonal(),
    "cho_solve": lambda x: sl.cho_solve((2.0 * EYE, True), x),
    "solve a": lambda x: sl.solve(matrix(x), B), "solve b": lambda x: sl.solve(2.0 * EYE, x),
    "solve_triangular": lambda x: sl.solve_triangular(matrix(x), B, lower=True),
    "solve_triangular b": lambda x: sl.solve_triangular(2.0 * EYE, x, lower=True),
    "inv": lambda x: sl.inv(matrix(x)), "det": lambda x: sl.det(matrix(x)),
    "eigh": lambda x: sl.eigh(matrix(x))[0], "eigvalsh": lambda x: sl.eigvalsh(matrix(x)),
    "eigh of a pair": lambda x: sl.eigh(2.0 * EYE, matrix(x), eigvals_only=True),
    "svd": lambda x: sl.svd(matrix(x), compute_uv=False), "svdvals": lambda x: sl.svdvals(matrix(x)),
    "pinv": lambda x: sl.pinv(matrix(x)), "lstsq": lambda x: sl.lstsq(matrix(x), B)[0],
    "qr": lambda x: sl.qr(matrix(x), mode="economic")[1] ** 2, "lu": lambda x: sl.lu(matrix(x))[2],
    "lu_factor": lambda x: sl.lu_solve(sl.lu_factor(matrix(x)), B), "norm": lambda x: sl.norm(x),
    "polar": lambda x: sl.polar(matrix(x))[0],
    "solve_banded": lambda x: sl.solve_banded((1, 1), np.stack([x * 0.1, np.full(3, 4.0), x * 0.2]), B),
    "solveh_banded": lambda x: sl.solveh_banded(np.stack([x * 0.1, np.full(3, 4.0)]), B),
    "solve_toeplitz": lambda x: sl.solve_toeplitz(x * np.array([4.0, 0.5, 0.2]), B),
    "solve_toeplitz b": lambda x: sl.solve_toeplitz(([3.0, 1.0, 0.0], [3.0, 0.5, 0.0]), x),
    "solve_sylvester": lambda x: sl.solve_sylvester(matrix(x), EYE, EYE),
    "solve_continuous_lyapunov": lambda x: sl.solve_continuous_lyapunov(EYE, matrix(x)),
    "solve_discrete_lyapunov": lambda x: sl.solve_discrete_lyapunov(0.1 * EYE, matrix(x)),
    "multivariate_normal": lambda x: st.multivariate_normal.logpdf(B, B * 0.5, matrix(x) + matrix(x).T),
    "multivariate_normal, diagonal": lambda x: st.multivariate_normal.logpdf(B, B * 0.5, x * x + 1.0),
    "multivariate_t": lambda x: st.multivariate_t.logpdf(B, B * 0.5, matrix(x) + matrix(x).T, 3.0),
    "wishart": lambda x: st.wishart.logpdf(EYE, 4, matrix(x) + matrix(x).T),
}
if np.lib.NumpyVersion(scipy.__version__) < "1.17.0":      # whose solve does not look at its right side
    del FUNCTIONS["solve b"], FUNCTIONS["solve_discrete_lyapunov"]
FINE, ALSO_FINE = np.array([0.3, 1.5, 2.0]), np.array([0.2, 1.4, 1.0])
NAN, INF = np.array([np.nan, 1.5, 2.0]), np.array([np.inf, 1.5, 2.0])


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_raised_as_scipy_raises_it(function: Any) -> None:
    """Nothing in the functions catches it; it is raised by the first call and by one that has its kernel."""
    def f(x: Any) -> Any:
        return np.sum(function(x))
    assert ends(f, NAN) == (ValueError, "array must not contain infs or NaNs")
    follows(f, [FINE, NAN, INF, ALSO_FINE], ways=1)


@pytest.mark.parametrize("name", ["cholesky", "cho_solve", "solve a", "eigvalsh", "norm", "multivariate_normal"])
def test_caught(name: str) -> None:
    def f(x: Any) -> Any:
        try:
            y = FUNCTIONS[name](x)
        except ValueError:
            return -x[1] ** 2
        return np.sum(y) + x[1]
    for order in ([FINE, NAN, ALSO_FINE, INF], [NAN, FINE, INF, ALSO_FINE]):
        jitad.cache.clear()
        g = jit_grad(f)
        with compiling(2):
            for x in (*order, *order):
                value, gradient = g.value_and_grad(x)
                np.testing.assert_allclose(value, f(x), rtol=1e-12)
                np.testing.assert_allclose(gradient, slope(f, x) if np.isfinite(x[0]) else [0.0, -3.0, 0.0], rtol=1e-6,
                                           atol=1e-6)


def test_without_the_check_numbers_pass() -> None:
    def f(x: Any) -> Any:
        return np.sum(sl.solve_triangular(2.0 * EYE, x, lower=True, check_finite=False))
    assert np.isnan(jit(f)(NAN)) and not jit(f).compile(FINE).tape.guards


def test_numpy_does_not_check() -> None:
    assert np.isnan(jit(lambda x: np.sum(np.linalg.solve(2.0 * EYE, x)))(NAN))


def test_captured_arrays() -> None:
    bad = np.array([np.nan, 1.0, 1.0])
    with pytest.raises(ValueError, match="infs or NaNs"):
        jit(lambda x: np.sum(sl.solve_triangular(2.0 * EYE, bad, lower=True) * x))(FINE)
    with pytest.raises(ValueError, match="infs or NaNs"):
        jit(lambda x: np.sum(sl.solve_triangular(2.0 * EYE, np.array([np.inf, 1.0, 1.0]), lower=True) * x))(FINE)


def test_a_factor_of_what_was_checked_is_not_checked_again() -> None:
    def f(x: Any) -> Any:
        c = sl.cho_factor(matrix(x), lower=True)
        return sl.cho_solve(c, B) @ sl.cho_solve(c, x)
    guards = jit(f).compile(FINE).tape.guards
    assert len(guards) == 3                              # the matrix, the captured B and x, each once


def filtered(x: Any) -> Any:
    p, total = EYE, 0.0
    for t in range(60):
        p = p * x[1] + EYE * (1.0 + x[0] * t)
        c = sl.cho_factor(p, lower=True)
        total = total + B @ sl.cho_solve(c, x) + np.sum(np.log(np.diag(c[0])))
        p = EYE - 0.1 * sl.cho_solve(c, p)
    return total


def test_a_loop_is_still_a_loop() -> None:
    compiled = jit_grad(filtered).compile(FINE)
    assert len(compiled.tape) < 200
    follows(filtered, [FINE, NAN, ALSO_FINE], ways=1)


def test_c_functions_and_batches() -> None:
    def f(x: Any) -> Any:
        return np.sum(sl.solve_triangular(2.0 * EYE, x * x, lower=True))
    c = jit_grad(f).compile(FINE).cfunc
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(c.address)
    gradient, value = np.zeros(3), np.zeros(1)
    for x, status in ((FINE.copy(), 0), (NAN.copy(), 1), (ALSO_FINE.copy(), 0)):
        assert call(3, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, c.data) == status
    np.testing.assert_allclose(gradient, ALSO_FINE)
    g = batch(jit_grad(f))
    np.testing.assert_allclose(g(np.stack([FINE, ALSO_FINE])), [FINE, ALSO_FINE])
    with pytest.raises(ValueError, match="infs or NaNs"):
        g(np.stack([FINE, NAN]))


def test_in_the_body_of_a_loop_there_is_no_check() -> None:
    def f(x: Any) -> Any:
        def step(s: Any, e: Any) -> Any:
            return s + sl.solve_triangular(2.0 * EYE, e * x, lower=True), None
        return jitad.scan(step, x, np.ones((4, 3)))[0]
    np.testing.assert_allclose(jit(f)(FINE), FINE * 3.0)
    assert np.isnan(jit(f)(NAN)[0])


def by_class(x: Any) -> Any:
    try:
        return st.multivariate_normal.logpdf(x[:2], x[1:], np.array([[1.0, x[0]], [x[0], 1.0]]))
    except LinAlgError:
        return x[1] ** 2
    except ValueError:
        return x[2] * 3.0


def test_a_covariance_that_is_refused() -> None:
    """SciPy raises ValueError for negative eigenvalues, LinAlgError for zero ones."""
    points = [np.array([a, 0.5, 2.0]) for a in (0.5, 2.0, 1.0, 0.2, 3.0)]
    for order in (points, points[::-1]):
        jitad.cache.clear()
        g = jit(by_class)
        with compiling(3):
            np.testing.assert_allclose([g(x) for x in order], [by_class(x) for x in order], rtol=1e-12)


def test_complex_matrices():
    for function in (sl.eig, sl.eigvals, sl.svd, sl.svdvals, sl.inv, sl.det, sl.pinv, sl.norm):
        compiled = jit(lambda t, f=function: np.sum(np.abs(f((1 + 0.5j) * t * B[:, None] * B + EYE)[0] if f in (
            sl.eig, sl.svd) else f((1 + 0.5j) * t * B[:, None] * B + EYE))))
        assert np.isfinite(compiled(1.0))
        with pytest.raises(ValueError, match="infs or NaNs"):
            compiled(np.nan)
