"""Sparse matrices made inside of a function: of traced elements at constant places, and their algebra."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from jitad import batch, grad, jit
from tests.helpers.solvers import together

RNG = np.random.default_rng(8)
D, B = RNG.normal(size=10), RNG.normal(size=6)
ROWS, COLUMNS = np.array([0, 1, 2, 3, 4, 5, 0, 1, 5, 5]), np.array([0, 1, 2, 3, 4, 5, 3, 4, 0, 0])
INSIDE = np.array([1.0, -2.0, 0.5])

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def test_constructors_and_formats():
    together([*(lambda d, b, k=k: getattr(sp, k)((d, (ROWS, COLUMNS)), shape=(6, 7)).toarray() for k in (
        "csc_matrix", "csr_array", "coo_matrix", "coo_array")),
        lambda d, b: sp.csr_array((d[:4], [0, 2, 1, 0], [0, 2, 3, 4]), shape=(3, 3)) @ b[:3],
        lambda d, b: sp.dia_array((np.stack([b, 2 * b]), [0, 1]), shape=(6, 6)).toarray(),
        lambda d, b: sp.diags([b[:5], d[0], 2.0], [-1, 0, 2], shape=(6, 6)).tocsc() @ b,
        lambda d, b: sp.diags(b) @ b, lambda d, b: sp.diags_array([b], offsets=[1]).toarray(),
        lambda d, b: sp.spdiags(np.stack([b, b * b]), [0, -1], 6, 6).T @ b,
        lambda d, b: sp.csc_array(np.outer(b, b)).tocoo().tocsr().data], D, B)


def test_algebra():
    def matrices(d, b):
        return sp.csr_matrix((d, (ROWS, COLUMNS))), sp.diags([b[1:], b, b[:5]], [-1, 0, 1]).tocsc()
    together([lambda d, b: (matrices(d, b)[0] + 2.0 * sp.identity(6) - b[0] * matrices(d, b)[1]).toarray(),
              lambda d, b: (matrices(d, b)[0] @ matrices(d, b)[1]).T @ b, lambda d, b: matrices(d, b)[0] * b,
              lambda d, b: (matrices(d, b)[1] * matrices(d, b)[1]).diagonal(1),
              lambda d, b: matrices(d, b)[0].multiply(matrices(d, b)[1]).toarray(),
              lambda d, b: matrices(d, b)[0].multiply(b[:, None]).toarray() + matrices(d, b)[1].power(2).toarray(),
              lambda d, b: matrices(d, b)[0].trace() + matrices(d, b)[1].sum(),
              lambda d, b: sp.csr_array(matrices(d, b)[0]).sum(axis=1) + (sp.eye_array(6) * b[0]) @ b,
              lambda d, b: (np.ones((6, 6)) + sp.csr_array(matrices(d, b)[0])) @ b,
              lambda d, b: (sp.eye(6) - b[1] * matrices(INSIDE[ROWS % 3], b)[0]).toarray()], D, B)


def test_blocks_and_products_of_kronecker():
    def small(d):
        return sp.csr_array(d[:4].reshape(2, 2))
    together([lambda d, b: sp.kron(sp.diags_array(b), small(d)).diagonal(), lambda d, b: sp.kronsum(small(d), sp.diags(
        b[:3])).toarray(), lambda d, b: sp.bmat([[small(d), None], [None, sp.diags(b)]], format="csc") @ np.arange(8.0),
        lambda d, b: sp.block_array([[small(d), 2 * small(d)]]).toarray(), lambda d, b: sp.hstack([small(d), sp.eye(
            2)]).toarray(), lambda d, b: sp.vstack([small(d), small(d) * b[0]]) @ b[:2],
        lambda d, b: sp.block_diag([small(d), sp.diags(b)]).sum(axis=0), lambda d, b: sp.triu(small(d)).toarray(),
        lambda d, b: sp.tril(small(d), -1, "csr").toarray()], D, B)


def test_constant_ones_do_what_scipy_does():
    def f(x):
        w = sp.eye(4).tolil()
        w[0, 1] = 2.0
        a = sp.csr_array(w)
        assert isinstance(a, sp.csr_array) and sp.issparse(a) and a.nnz == 5 and (a != a).nnz == 0
        assert a[0, 1] == 2.0 and type(sp.linalg.norm(a)) is np.float64
        return sp.csr_matrix(a) @ x + (a + sp.identity(4)).toarray() @ x
    np.testing.assert_allclose(jit(f)(B[:4]), f(B[:4]))


def test_single_precision_and_batches():
    def f(d):
        return sp.csr_array((d, (ROWS, COLUMNS))) @ np.ones(6, d.dtype)
    single = jit(f)(D.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, f(D), rtol=1e-5)
    many = np.stack([D, 2.0 * D])
    np.testing.assert_allclose(batch(grad(lambda d: np.sum(f(d) ** 2)), in_axes=0)(many)[1], grad(
        lambda d: np.sum(f(d) ** 2))(2.0 * D))


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: sp.csr_array((x, ([0, 1], [0, 1]))), "same length"),
    (lambda x: sp.csr_array((x, (np.arange(6), np.arange(6))), shape=(3, 3)), "exceeds"),
    (lambda x: sp.diags([x, x], [0, 1], shape=(9, 9)), "does not agree"),
    (lambda x: sp.diags(x) + 1.0, "nonzero scalar"), (lambda x: sp.diags(x) @ sp.eye(5), "dimension mismatch"),
    (lambda x: sp.diags(x) - sp.eye(5), "inconsistent shapes"),
    (lambda x: sp.diags(x).data, r"\.data of a dia_matrix at .*test_build"),
    (lambda x: sp.linalg.inv(sp.diags(x).tocsc()), r"scipy.sparse.linalg.inv at .*test_build")])
def test_what_is_refused(call, message):
    with pytest.raises(Exception, match=message):
        jit(call)(B)
