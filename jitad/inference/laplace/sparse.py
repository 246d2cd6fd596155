"""Sparse positive definite matrices of one pattern: factor, solve, log-determinant, elements of the inverse."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from jitad.compile.llvm.symbols import ADDRESSES
from jitad.compile.routines.table import register_symbols
from jitad.compile.sparse import cholesky, supernodes
from jitad.compile.sparse.blas import NAMES


class SparsePattern:
    """What all matrices of a pattern share: an order of elimination with little fill (minimum degree, by SciPy's
    SuperLU), the groups of columns of the factor and their places. `matrix` is a canonical symmetric `csr_array` that
    has its whole diagonal."""

    def __init__(self, matrix: Any):
        n = matrix.shape[0]
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        self.place = _order(matrix)                              # of each row in the order of elimination
        parent, count = supernodes.tree(*_permuted(matrix, rows, self.place))
        post = supernodes.postorder(parent)
        self.place, old = post[self.place], np.argsort(post)
        parent, count = np.append(post, -1)[parent[old]], count[old]
        heads, beyond = supernodes.groups(parent, count)
        begins, widths = np.append(0, np.cumsum(beyond)), np.diff(heads)
        of, below = supernodes.rows_beyond(*_permuted(matrix, rows, self.place), heads, begins)
        at = np.append(0, np.cumsum(widths * (widths + beyond)))
        self.parts = heads, of, begins, below, at
        i, j = self.place[rows], self.place[matrix.indices]
        self.positions = supernodes.positions(*self.parts, i, j)
        self.lower = np.flatnonzero(i >= j)
        self.diagonal = np.flatnonzero(rows == matrix.indices)
        self.pivots = np.empty(n, np.int64)                      # where the panels have the diagonal
        self.pivots[self.place] = self.positions[self.diagonal]
        self.last: tuple[np.ndarray, Factor] | None = None

    def factor(self, data: np.ndarray) -> Factor | None:
        """The factor of the matrix with these elements; None unless it is positive definite. That of the matrix before
        serves where this one is the same, as in each step of Newton's method on a normal density."""
        last = self.last
        if last is not None and np.array_equal(last[0], data):
            return last[1]
        panels = np.zeros(self.parts[-1][-1])
        panels[self.positions[self.lower]] = data[self.lower]
        if cholesky.factored(*self.parts, _addresses(), panels) < len(self.place):
            return None
        factor = Factor(self, panels)
        self.last = data.copy(), factor
        return factor


class Factor:
    """L L^T of a matrix in the order of its pattern."""

    def __init__(self, pattern: SparsePattern, panels: np.ndarray):
        self.pattern, self.panels = pattern, panels
        heads, _, begins, below, at = pattern.parts
        self.whole = heads, begins, below, at, panels

    def logdet(self) -> float:
        return 2.0 * float(np.sum(np.log(self.panels[self.pattern.pivots])))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution for a vector, or for each column of a matrix."""
        if b.ndim == 2:
            return np.stack([self.solve(column) for column in b.T], axis=1) if b.size else np.zeros(b.shape)
        x = np.empty(len(b))
        x[self.pattern.place] = b
        cholesky.forward(*self.whole, x)
        cholesky.backward(*self.whole, x)
        return x[self.pattern.place]

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Standard normal numbers made into such as have the inverse of the matrix as covariance."""
        x = z.astype(np.float64)
        cholesky.backward(*self.whole, x)
        return x[self.pattern.place]

    def inverse(self) -> np.ndarray:
        """The elements of the inverse at the places of the matrix, in the order of its `data`."""
        return cholesky.inverse(*self.pattern.parts, _addresses(), self.panels)[self.pattern.positions]


@cache
def _addresses() -> np.ndarray:
    register_symbols()
    return np.array([ADDRESSES[f"jitad_d{name}"] for name in NAMES])


def _permuted(matrix: Any, rows: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the elements of the matrix are in another order of its rows and columns, as a CSR matrix has it."""
    n = len(place)
    keys = np.sort(place[rows] * n + place[matrix.indices])
    return np.searchsorted(keys, np.arange(n + 1) * n), keys % n


def _order(matrix: Any) -> np.ndarray:
    """The place of each row in an order of minimum degree."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    dominant = csc_array((np.full(matrix.nnz, -1.0), matrix.indices, matrix.indptr), shape=matrix.shape)
    dominant.setdiag(np.diff(matrix.indptr) + 1.0)
    return splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                options={"SymmetricMode": True}).perm_c.astype(np.int64)
