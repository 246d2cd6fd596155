"""Iterative solvers, a few eigenvalues, and the exponential of a sparse matrix times a vector."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg

from jitad import hessian, jit, jvp, value_and_grad
from jitad.errors import UnsupportedOperationError
from jitad.trace.scipy_rules.sparse.iterative import SOLVERS
from tests.helpers.solvers import differences, together

RNG = np.random.default_rng(1)
D, B = 0.3 * RNG.normal(size=8), RNG.normal(size=8)
TIGHT = {"rtol": 1e-13}

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def symmetric(d):
    return sp.diags([2.5 + d**2, -1 + 0.1 * d[:-1], -1 + 0.1 * d[:-1]], [0, 1, -1]).tocsr()


def general(d):
    return sp.diags([2.5 + d**2, -1 + 0.1 * d[:-1], -0.5 + 0.1 * d[1:]], [0, 1, -1]).tocsc()


def by_cg(d, b):
    found, info = linalg.cg(symmetric(d), b, M=sp.diags(1 / symmetric(d).diagonal()), **TIGHT)
    return found + info


def lowest(d, b):
    values, vectors = linalg.eigsh(symmetric(d), k=2, which="SA")
    return np.sum(b[:2] * values) + np.sum(b[:, None] * vectors**2 * np.array([1.0, 2.0]))


def test_iterative_solutions():
    together([by_cg, lambda d, b: linalg.gmres(general(d), b, x0=b * d, restart=8, **TIGHT)[0],
              lambda d, b: linalg.minres(symmetric(d), b, **TIGHT)[0],
              lambda d, b: linalg.bicgstab(general(d).tocsr(), b[:, None], M=sp.identity(8), **TIGHT)[0],
              lambda d, b: linalg.cg(np.diag(1 + d * d), b, **TIGHT)[0]], D, B)


def test_each_solver_is_entered():
    assert set(SOLVERS) <= set(linalg.__all__)
    rough = jit(lambda d: linalg.cg(symmetric(d), B, maxiter=1)[1])
    assert rough(D) == linalg.cg(symmetric(D), B, maxiter=1)[1] == 1


def test_eigenvalues():
    together([lowest, lambda d, b: linalg.eigsh(symmetric(d), k=3, return_eigenvectors=False),
              lambda d, b: linalg.eigsh(symmetric(d).tocsc(), k=2, sigma=0, return_eigenvectors=False)], D, B)


def test_higher_orders_and_both_modes():
    both = lambda d: lowest(d, B) + np.sum(np.sin(by_cg(d, B)))
    slope = value_and_grad(both)
    np.testing.assert_allclose(hessian(both)(D)[0], differences(lambda d: slope(d)[1][0], (D,))[0], atol=1e-6)
    np.testing.assert_allclose(jvp(both, (D,), (B,))[1], slope(D)[1] @ B, rtol=1e-9)


def test_exponentials():
    together([lambda d, b: linalg.expm_multiply(general(d) * b[0] * 3, b),
              lambda d, b: linalg.expm_multiply(-general(d), np.stack([b, d], 1), start=0.0, stop=2.0, num=3)], D, B)


@pytest.mark.parametrize(("function", "says"), [
    (lambda d: linalg.cg(symmetric(d), B, callback=print)[0], "cg with callback="),
    (lambda d: linalg.minres(symmetric(d), B, shift=1.0)[0], "minres with shift="),
    (lambda d: linalg.eigsh(symmetric(d), k=2, Minv=sp.identity(8))[0], "eigsh with Minv="),
    (lambda d: linalg.cg(linalg.aslinearoperator(np.eye(8)), d)[0], "cg of a .*Operator")])
def test_refusals(function, says):
    with pytest.raises(UnsupportedOperationError, match=says):
        jit(function)(D)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="expected square matrix"):
        jit(lambda d: linalg.cg(d[:, None], B)[0])(D)
    with pytest.raises(ValueError, match="are incompatible"):
        jit(lambda d: linalg.cg(symmetric(d), B[:3])[0])(D)
