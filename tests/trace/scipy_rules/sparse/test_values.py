"""Products with SciPy's sparse arrays and matrices."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sps

import jitad
from jitad import cache
from jitad.errors import CaptureError, MutationError, UnsupportedOperationError
from tests.helpers.recorded import Recorded

KINDS = [f"{form}_{kind}" for form in ("csr", "csc", "coo") for kind in ("array", "matrix")]
rng = np.random.default_rng(5)
x5, y7 = rng.normal(size=5), rng.normal(size=7)


def example(kind, rows=7, columns=5):
    return getattr(sps, kind)(sps.random_array((rows, columns), density=0.4, random_state=np.random.default_rng(3)))


@pytest.mark.parametrize("kind", KINDS)
def test_products_and_operations_are_those_of_scipy(kind):
    A, X, B = example(kind), rng.normal(size=(5, 3)), rng.normal(size=(2, 7))
    Recorded(lambda x: A @ x, x5).same(x5 * 2)
    Recorded(lambda x: A.dot(x), x5)
    Recorded(lambda x: A @ x, X)
    Recorded(lambda y: A.T @ y + y @ A, y7)
    Recorded(lambda y: y @ A, B)
    Recorded(lambda s: (s * A / 2.0) @ x5 - (-A).data.sum() * (A @ x5), 1.5)
    Recorded(lambda s: (abs(A).T * s).T.dot(np.ones(5)), 1.5)
    Recorded(lambda x: A.toarray() @ x + A.sum() + A.shape[0] + A.nnz + A.ndim, x5)
    Recorded(lambda x: (A.astype(float).copy().transpose() @ np.ones(7)) * x, x5)
    Recorded(lambda x: x * isinstance(A, (sps.sparray, sps.spmatrix)) * sps.issparse(A) * len(A.format), x5)
    if kind.endswith("array"):
        Recorded(lambda x: A.sum(axis=0) * x + A.sum(axis=1)[:5] + (A.dot(2.0) @ x)[:5], x5)
    else:
        Recorded(lambda x: (A * x)[:5] * x + y7 * A, x5)


@pytest.mark.parametrize("kind", ("csr_array", "csc_array", "coo_array"))
def test_gradients_and_hessians(kind):
    A = example(kind)
    dense = A.toarray()

    def loss(x):
        return 0.5 * np.sum((A @ x - y7) ** 2) + np.sum(np.exp(A @ x))
    eta = dense @ x5
    np.testing.assert_allclose(jitad.grad(loss)(x5), dense.T @ (eta - y7 + np.exp(eta)), rtol=1e-12)
    np.testing.assert_allclose(jitad.hessian(loss)(x5), dense.T @ np.diag(1 + np.exp(eta)) @ dense, rtol=1e-12)
    np.testing.assert_allclose(jitad.grad(lambda s: np.sum((s * A) @ x5))(2.0), np.sum(eta), rtol=1e-12)


@pytest.mark.parametrize("kind", ("csr_array", "csc_array", "coo_array"))
def test_kernels_of_vectors_and_matrices(kind):
    A = example(kind)
    X = rng.normal(size=(5, 3))

    @jitad.jit
    def f(x, X):
        z = A @ x
        return z, A @ X, A.T @ (A @ X), z @ A, (A.astype(np.float32) @ x.astype(np.float32)).astype(float)
    want = (A @ x5, A @ X, A.T @ (A @ X), (A @ x5) @ A, A @ x5)
    for got, expected, tolerance in zip(f(x5, X), want, (1e-13,) * 4 + (1e-5,), strict=True):
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_what_is_written_into_the_matrix_is_seen():
    A = example("csr_array")
    f = jitad.jit(lambda x: A @ x)
    np.testing.assert_allclose(f(x5), A @ x5)
    compiled = cache.info().compiles
    A.data *= 2.0
    A.indices[:] = A.indices[::-1].copy()
    np.testing.assert_allclose(f(x5), A @ x5)
    assert cache.info().compiles == compiled


def test_another_structure_compiles_again():
    holder = {"A": example("csr_array")}
    f = jitad.jit(lambda x: holder["A"] @ x)
    f(x5)
    holder["A"] = example("csr_array", rows=4)
    with pytest.warns(jitad.TapeMismatchWarning):
        np.testing.assert_allclose(f(x5), holder["A"] @ x5)
    holder["A"] = sps.csc_array(holder["A"])
    with pytest.warns(jitad.TapeMismatchWarning):
        np.testing.assert_allclose(f(x5), holder["A"] @ x5)


def test_integers_keep_their_dtype():
    A = sps.csr_array(np.array([[1, 0, 2], [0, 3, 0]]))
    for x in (np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0], np.float32), np.array([0.5, 1.0, 2.0])):
        got = jitad.jit(lambda x: A @ x)(x)
        assert got.dtype == (A @ x).dtype
        np.testing.assert_array_equal(got, A @ x)


A = example("csr_array")
BLOCKS = sps.bsr_array(np.eye(4))
TRUE = sps.csr_array(np.eye(5, dtype=bool))


def test_rows_columns_and_elements_are_picked():
    matrix = sps.csr_matrix(np.arange(12.0).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 2))

    def picked(A):
        return (A[1:, 1:] @ np.ones(3)).sum() + A[2, 3] * A[0, 1] + A[0, 0] + A.tocsc()[:, [3, 1]].toarray()[1, 0] + (
            A[np.array([True, False, True])].sum() + A[1].toarray().sum() + A[[0, 1], [1, 3]].sum())
    value, slope = jitad.value_and_grad(lambda p: picked(matrix * p))(2.0)
    step = picked(matrix * 2.001) - picked(matrix * 1.999)
    np.testing.assert_allclose([value, slope], [picked(matrix * 2.0), step / 0.002], rtol=1e-10)


@pytest.mark.parametrize(("words", "function"), [
    ("`/` of a csr_array", lambda x: A / x), ("__getitem__", lambda x: A[0] @ x),
    ("__getitem__", lambda x: (A * x[0])[x > 0] @ x),
    ("out=", lambda x: A.toarray(out=x)), (".tolil", lambda x: A.tolil() @ x),
    (".sum called", lambda x: A.sum(dtype=float) * x), ("Boolean", lambda x: TRUE @ (x > 0)),
])
def test_other_operations_are_refused_by_name(words, function):
    with pytest.raises(UnsupportedOperationError, match=f"{words}.*test_values.py:"):
        jitad.jit(function)(x5)


def test_errors():
    with pytest.raises(CaptureError, match=r"BLOCKS.*is a bsr_array: convert it with \.tocsr\(\)"):
        jitad.jit(lambda x: BLOCKS @ x)(x5[:4])
    with pytest.raises(ValueError, match="dimension mismatch"):
        jitad.jit(lambda x: A @ x)(y7)
    with pytest.raises(ValueError, match="Scalar operands"):
        jitad.jit(lambda x: A @ x[0])(x5)
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        jitad.jit(lambda x: A.foo)(x5)
    with pytest.raises(MutationError):
        jitad.jit(_written)(x5)


def _written(x):
    A.data[:] = x[0]
    return A @ x
