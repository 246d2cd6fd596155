"""Factors of sparse matrices: against dense ones, with rows without gaps (a dense part) and with them."""
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from jitad.inference.laplace.sparse import SparsePattern


def _matrix(n: int, dense: int, rng: Any) -> Any:
    """Positive definite: few elements, and a dense part."""
    a = np.where(rng.random((n, n)) < 0.04, rng.normal(size=(n, n)), 0.0)
    a[:dense, :dense] = rng.normal(size=(dense, dense))
    found = csr_array(a @ a.T + 2.0 * np.eye(n))
    found.sort_indices()
    return found


@pytest.mark.parametrize(("n", "dense"), [(1, 1), (60, 0), (80, 30), (330, 300)])
def test_factor_and_inverse_are_those_of_the_dense_matrix(n: int, dense: int) -> None:
    rng = np.random.default_rng(n)
    matrix = _matrix(n, dense, rng)
    a, b = matrix.toarray(), rng.normal(size=(n, 2))
    factor = SparsePattern(matrix).factor(matrix.data)
    assert factor is not None
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    np.testing.assert_allclose(factor.inverse(), np.linalg.inv(a)[rows, matrix.indices], atol=1e-13)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(a, b), atol=1e-12)
    np.testing.assert_array_equal(factor.solve(b[:, 0]), factor.solve(b)[:, 0])
    np.testing.assert_allclose(factor.logdet(), np.linalg.slogdet(a)[1], rtol=1e-13)


def test_a_lattice_and_a_random_graph() -> None:
    """Groups of all widths, joined with zeros and without, whose rows are next to each other and apart."""
    rng = np.random.default_rng(5)
    line = np.eye(32, k=1) + np.eye(32, k=-1)
    lattice = np.kron(line, np.eye(32)) + np.kron(np.eye(32), line)
    graph = np.zeros((1000, 1000))
    graph[rng.integers(0, 1000, 1500), rng.integers(0, 60, 1500)] = rng.normal(size=1500)
    for edges in (lattice, graph + graph.T):
        a = edges + np.diag(abs(edges).sum(0) + 0.3)
        matrix = csr_array(a)
        factor = SparsePattern(matrix).factor(matrix.data)
        assert factor is not None
        z, x = np.linalg.inv(a), rng.normal(size=len(a))
        np.testing.assert_allclose(factor.inverse(), z[np.repeat(np.arange(len(a)), np.diff(matrix.indptr)),
                                                       matrix.indices], rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(factor.logdet(), np.linalg.slogdet(a)[1], rtol=1e-13)
        w = factor.spread(x)                                # w^T A w = x^T x
        np.testing.assert_allclose(w @ a @ w, x @ x, rtol=1e-11)
        for last in (-1.0, np.nan):
            worse = matrix.data.copy()
            worse[-1] = last
            assert SparsePattern(matrix).factor(worse) is None


def test_a_factor_serves_again_only_for_the_same_elements() -> None:
    matrix = _matrix(30, 5, np.random.default_rng(2))
    pattern = SparsePattern(matrix)
    first = pattern.factor(matrix.data)
    assert first is not None and pattern.factor(matrix.data.copy()) is first
    second = pattern.factor(2.0 * matrix.data)
    assert second is not None and second is not first
    np.testing.assert_allclose(second.inverse(), 0.5 * first.inverse(), rtol=1e-12)
    assert pattern.factor(-matrix.data) is None
    matrix.data[:] = np.nan
    assert pattern.factor(matrix.data) is None and pattern.factor(matrix.data) is None
