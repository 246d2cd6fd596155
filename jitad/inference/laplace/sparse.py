"""Sparse positive definite matrices of one pattern: factor, solve, log-determinant, elements of the inverse."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.compile.entry import ldl


class SparsePattern:
    """What all matrices of a pattern share: an order of elimination with little fill (minimum degree, by SciPy's
    SuperLU), the elimination tree, the places of the factor. `matrix` is a canonical symmetric `csr_array` that has its
    whole diagonal."""

    def __init__(self, matrix: Any):
        from scipy.sparse import csr_array

        self.indptr, self.indices, n = matrix.indptr, matrix.indices, matrix.shape[0]
        self.place = _order(matrix)                              # of each row in the order of elimination
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        self.i, self.j = self.place[rows], self.place[matrix.indices]
        numbered = csr_array((np.arange(1.0, matrix.nnz + 1), (self.i, self.j)), shape=(n, n))
        numbered.sort_indices()
        self.source = numbered.data.astype(np.int64) - 1         # the element of the matrix for each permuted one
        self.starts_of_rows, self.columns = numbered.indptr.astype(np.int64), numbered.indices.astype(np.int64)
        self.parent, self.starts = ldl.symbolic(self.starts_of_rows, self.columns)
        self.diagonal = np.flatnonzero(rows == matrix.indices)
        self.positions: np.ndarray | None = None
        self.last: tuple[np.ndarray, Factor] | None = None

    def factor(self, data: np.ndarray) -> Factor | None:
        """The factor of the matrix with these elements; None unless it is positive definite. That of the matrix before
        serves where this one is the same, as in each step of Newton's method on a normal density."""
        permuted, last = data[self.source], self.last
        if last is not None and np.array_equal(last[0], permuted):
            return last[1]
        n, count = len(self.place), int(self.starts[-1])
        rows, below, diagonal = np.zeros(count, np.int64), np.zeros(count), np.zeros(n)
        done = ldl.numeric(self.starts_of_rows, self.columns, permuted, self.parent, self.starts, rows, below, diagonal)
        if done < n:
            return None
        factor = Factor(self, rows, below, diagonal)
        self.last = permuted, factor
        return factor


class Factor:
    """L D L^T of a matrix in the order of its pattern."""

    def __init__(self, pattern: SparsePattern, rows: np.ndarray, below: np.ndarray, diagonal: np.ndarray):
        self.pattern, self.rows, self.below, self.diagonal = pattern, rows, below, diagonal

    def logdet(self) -> float:
        return float(np.sum(np.log(self.diagonal)))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution for a vector, or for each column of a matrix."""
        if b.ndim == 2:
            return np.stack([self.solve(column) for column in b.T], axis=1) if b.size else np.zeros(b.shape)
        x = np.empty(len(b))
        x[self.pattern.place] = b
        ldl.solved(self.pattern.starts, self.rows, self.below, self.diagonal, x)
        return x[self.pattern.place]

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Standard normal numbers made into such as have the inverse of the matrix as covariance."""
        x = z.astype(np.float64)
        ldl.spread(self.pattern.starts, self.rows, self.below, self.diagonal, x)
        return x[self.pattern.place]

    def inverse(self) -> np.ndarray:
        """The elements of the inverse at the places of the matrix, in the order of its `data`."""
        pattern = self.pattern
        if pattern.positions is None:
            pattern.positions = ldl.positions(pattern.starts, self.rows, pattern.i, pattern.j)
        return ldl.inverse(pattern.starts, self.rows, self.below, self.diagonal)[pattern.positions]


def _order(matrix: Any) -> np.ndarray:
    """The place of each row in an order of minimum degree."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    dominant = csc_array((np.full(matrix.nnz, -1.0), matrix.indices, matrix.indptr), shape=matrix.shape)
    dominant.setdiag(np.diff(matrix.indptr) + 1.0)
    return splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                options={"SymmetricMode": True}).perm_c.astype(np.int64)
