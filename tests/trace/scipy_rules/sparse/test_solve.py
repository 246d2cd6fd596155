"""Sparse systems: solutions, log-determinants, and their derivatives of first and second order."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import factorized, splu, spsolve

from jitad import batch, grad, hessian, jacobian, jit, jvp, value_and_grad
from jitad.primitives.factors.sparse import SELECTED, SparseFactors
from tests.helpers.solvers import agrees, together

RNG = np.random.default_rng(9)
D, B = RNG.normal(size=10), RNG.normal(size=6)
ROWS, COLUMNS = np.array([0, 1, 2, 3, 4, 5, 0, 1, 5, 5]), np.array([0, 1, 2, 3, 4, 5, 3, 4, 0, 0])
MATRIX = sp.csr_array((D, (ROWS, COLUMNS))) + 5.0 * sp.eye_array(6)

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning", "ignore:spsolve", "ignore:splu")


def matrix(d):
    return sp.csc_matrix((d, (ROWS, COLUMNS))) + 5.0 * sp.identity(6)


def test_solutions():
    together([lambda d, b: spsolve(matrix(d), b), lambda d, b: splu(matrix(d).tocsc()).solve(b, "T"),
              lambda d, b: factorized(matrix(d).tocsc())(b), lambda d, b: spsolve(matrix(d), np.stack([b, d[:6]], 1)),
              lambda d, b: spsolve(matrix(d), b[:, None]), lambda d, b: spsolve(MATRIX, b) * spsolve(matrix(d), D[:6]),
              lambda d, b: spsolve(MATRIX.T, b * b)], D, B)


def test_logarithms_of_determinants():
    def by_pivots(d, b):
        lu = splu((matrix(d).T @ matrix(d) + sp.diags(np.exp(b))).tocsc())
        return np.sum(np.log(lu.L.diagonal())) + np.sum(np.log(np.abs(lu.U.diagonal()))) + b @ lu.solve(b)
    agrees(by_pivots, D, B)
    dense = (matrix(D).T @ matrix(D) + sp.diags(np.exp(B))).toarray()
    np.testing.assert_allclose(value_and_grad(by_pivots)(D, B)[0], np.linalg.slogdet(dense)[1] + B @ np.linalg.solve(
        dense, B))


def pivots(t):
    """Of a matrix without symmetry, whose rows SuperLU exchanges."""
    a = sp.csc_array((np.concatenate([t, [1.0, 2.0, 3.0]]), ([0, 1, 2, 0, 2, 1, 1], [0, 1, 2, 1, 0, 2, 0])))
    return np.sum(np.sin(splu(a).U.diagonal())) + np.sum(splu(a).solve(np.arange(3.0)) ** 2)


def test_second_derivatives():
    t, v = np.array([0.3, 1.7, 0.9, 1.2]), np.array([1.0, -0.5, 0.2, 2.0])
    agrees(pivots, t)
    slope, second = grad(pivots), hessian(pivots)(t)
    by_steps = [(slope(t + d) - slope(t - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(second, by_steps, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jacobian(slope)(t), second, rtol=1e-9)
    np.testing.assert_allclose(jvp(slope, (t,), (v,))[1], second @ v, rtol=1e-9)


def test_a_field_on_a_grid_takes_the_elements_of_the_inverse_on_the_pattern(monkeypatch):
    n = 12
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    grid = (sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)).tocsc()
    y = RNG.normal(size=n * n)
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}

    def logp(t):
        q = np.exp(t[0]) * (grid + np.exp(t[1]) * sp.eye_array(n * n))
        return 0.5 * np.sum(np.log(splu(q.tocsc(), **options).U.diagonal())) - 0.5 * y @ (q @ y)
    monkeypatch.setattr(SparseFactors, "inverses", lambda self: pytest.fail("full matrices for a gradient"))
    agrees(logp, np.array([0.1, -1.0]))


def test_factors_that_lost_elements_are_told(monkeypatch):
    """An element of a factor that is zero by chance may stand for none; the inverse is then a full matrix."""
    asked = []
    inverses = SparseFactors.inverses
    monkeypatch.setattr(SparseFactors, "inverses", lambda self: asked.append(1) or inverses(self))
    monkeypatch.setattr(SELECTED, "elements", lambda *given: None)
    slope = grad(lambda d: np.sum(np.log(np.abs(splu(matrix(d).tocsc()).U.diagonal()))))(D)
    inverse = np.linalg.inv(matrix(D).toarray())
    np.testing.assert_allclose(slope, inverse.T[ROWS, COLUMNS], rtol=1e-10)
    assert asked


def test_batches_and_single_precision():
    many = np.stack([B, 2.0 * B])
    np.testing.assert_allclose(batch(lambda b: spsolve(matrix(D), b), in_axes=0)(many)[1], spsolve(matrix(D), 2.0 * B))
    assert jit(lambda d, b: spsolve(matrix(D), b))(D, B.astype(np.float32)).dtype == np.float64


def test_singular_matrices():
    with pytest.raises(RuntimeError, match="singular"):
        jit(lambda x: splu(sp.diags(x * 0.0).tocsc()).solve(x))(B)
    assert np.isnan(jit(lambda x: spsolve(sp.diags(x * 0.0).tocsc(), x))(B)).all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: spsolve(sp.csr_array((x, ([0] * 6, range(6)))), x), "square"),
    (lambda x: spsolve(sp.diags(x), x[:4]), "dimension mismatch"),
    (lambda x: splu(sp.diags(x)).perm_r, r"\.perm_r of scipy.sparse.linalg.splu at .*test_solve"),
    (lambda x: splu(sp.diags(x)).U.toarray(), r"\.toarray of the factors L and U .*test_solve"),
    (lambda x: spsolve(sp.diags(x), sp.diags(x)), r"spsolve with a sparse right-hand side at .*test_solve")])
def test_what_is_refused(call, message):
    with pytest.raises(Exception, match=message):
        jit(call)(B)
