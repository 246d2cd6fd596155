"""Functions that stand for matrices; eigenvalues and singular values of any sparse matrix."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from jitad import hessian, jit
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import together
from tests.programs.table import interpreted

RNG = np.random.default_rng(2)
WIDE = sp.csc_matrix(RNG.normal(size=(7, 4)))
WEIGHTS = np.cos(np.arange(28.0)).reshape(7, 4)
SQUARE = RNG.normal(size=(8, 8)) + 6.0 * np.eye(8)
D, B = 1.5 + RNG.uniform(size=8), RNG.normal(size=8)
SECOND = sp.diags([2.0, -1.0, -1.0], [0, 1, -1], shape=(8, 8)).tocsc()
OUTSIDE = LinearOperator((8, 8), matvec=lambda v: SQUARE @ v)
TIGHT = {"rtol": 1e-13}

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def stencil(d):
    """A matrix that is nowhere written out."""
    def product(v):
        w = np.concatenate([[0.0], v.ravel(), [0.0]])
        return d * w[1:-1] + 2.1 * w[1:-1] - w[:-2] - w[2:]
    return LinearOperator((8, 8), matvec=product, dtype=float)


def algebra(d, b):
    full = aslinearoperator(SQUARE * d)
    twice = full * 2.0 - stencil(d)
    return (twice @ stencil(d)).matvec(b) + full.T @ b + full.rmatvec(b) + twice.matmat(np.stack([b, d], 1))[:, 1]


def parts(d, b):
    u, s, vt = linalg.svds(WIDE * d[0] + WIDE.multiply(WIDE) * d[1], k=2)
    return np.sum((u * s) @ vt * WEIGHTS) + s * b[:2]


def test_operators_in_solvers():
    inverse = lambda d: LinearOperator((8, 8), matvec=lambda v: v.ravel() / (d + 2.1))
    together([lambda d, b: linalg.cg(stencil(d), b, M=inverse(d), **TIGHT)[0],
              lambda d, b: linalg.gmres(OUTSIDE, b * d, **TIGHT)[0],
              lambda d, b: linalg.gmres(aslinearoperator(sp.csr_matrix(SQUARE) * d[0]), b, **TIGHT)[0],
              lambda d, b: linalg.eigsh(stencil(d), k=2, return_eigenvectors=False), algebra], D, B, run=interpreted)


def test_eigenvalues_and_singular_values():
    mass = lambda d: sp.diags(d) + 0.1 * SECOND
    together([parts, lambda d, b: linalg.svds(WIDE * d[2], k=1, return_singular_vectors=False),
              lambda d, b: linalg.eigsh(SECOND * d[0], k=2, M=mass(d), return_eigenvectors=False),
              lambda d, b: linalg.eigsh(SECOND + sp.diags(d), k=2, sigma=1.0, return_eigenvectors=False),
              lambda d, b: np.abs(linalg.eigs(sp.csc_matrix(SQUARE) * d[0], k=2, which="SM")[0]),
              lambda d, b: np.abs(linalg.eigs(sp.csc_matrix(SQUARE), k=1, M=mass(d), which="LR")[1])[:, 0] * b], D, B,
             run=interpreted)


@pytest.mark.parametrize("which", ["LM", "SM", "LA", "SA", "BE"])
def test_the_order_of_values_without_vectors(which):
    """As ARPACK leaves them, which is another one than beside vectors."""
    wild = np.random.default_rng(4).normal(size=(9, 9))
    both = sp.csc_matrix(wild + wild.T)
    plain = lambda d: linalg.eigsh(both * d, k=4, which=which, return_eigenvectors=False)
    found = interpreted(jit(plain), (1.5,))
    np.testing.assert_allclose(found, plain(1.5), rtol=1e-10)


def test_second_derivatives_and_refusals():
    """det and trace of what a function stands for: (d + 2) (3 + 2) - 1."""
    first = lambda d: linalg.cg(LinearOperator((2, 2), matvec=lambda v: np.stack([
        (d + 2) * v[0] - v[1], 5 * v[1] - v[0]])), np.array([1.0, 0.0]), **TIGHT)[0][0]
    np.testing.assert_allclose(hessian(first)(1.0), 2 * 5 * 25 / 14**3, rtol=1e-8)
    for function, what in ((lambda d: linalg.cg(LinearOperator((5000, 5000), matvec=lambda v: d * v), np.ones(5000)),
                            "of 5000 rows or columns in a solver at"),
                           (lambda d: linalg.svds(WIDE * d, k=1, which="SM"), "svds with which='SM'"),
                           (lambda d: linalg.eigs(SECOND * d, k=2, Minv=SECOND), "eigs with Minv=")):
        with pytest.raises(UnsupportedOperationError, match=what):
            jit(lambda d, f=function: f(d)[0])(1.0)
    with pytest.raises(ValueError, match="dimension mismatch"):
        jit(lambda d: stencil(d).matvec(d[1:]))(D)
