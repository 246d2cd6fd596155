"""Factors L D L^T of sparse symmetric matrices, and of their inverse the elements at the places of L.

The factorization goes row by row along the elimination tree (T. A. Davis, Algorithm 849, ACM TOMS 31, 2005); the
elements of the inverse come column by column from the last (K. Takahashi, J. Fagan, M.-S. Chin, 1973): with
Z = A^-1, Z = D^-1 L^-1 + (I - L^T) Z, of which only elements at places of L are needed. Compiled by numba, once for all
matrices, and kept on disk beside this file.
"""
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def symbolic(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elimination tree of a symmetric matrix in CSR, and where the columns of L begin."""
    n = len(indptr) - 1
    parent, mark, count = np.full(n, -1), np.full(n, -1), np.zeros(n, np.int64)
    for k in range(n):
        mark[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            if i < k:
                while mark[i] != k:
                    if parent[i] == -1:
                        parent[i] = k
                    count[i] += 1
                    mark[i] = k
                    i = parent[i]
    starts = np.zeros(n + 1, np.int64)
    for k in range(n):
        starts[k + 1] = starts[k] + count[k]
    return parent, starts


@njit(cache=True)
def numeric(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, parent: np.ndarray, starts: np.ndarray,
            rows: np.ndarray, below: np.ndarray, diagonal: np.ndarray) -> int:
    """Fills `rows` and `below`, the places and elements of L by columns, and `diagonal`. Gives how many rows went
    well: all of them if the matrix is positive definite."""
    n = len(indptr) - 1
    row, mark, filled = np.zeros(n), np.full(n, -1), np.zeros(n, np.int64)
    path, stack = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        top = n
        mark[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            if i <= k:
                row[i] += data[p]
                length = 0
                while mark[i] != k:
                    path[length] = i
                    length += 1
                    mark[i] = k
                    i = parent[i]
                while length > 0:
                    length -= 1
                    top -= 1
                    stack[top] = path[length]
        pivot = row[k]
        row[k] = 0.0
        for s in range(top, n):
            i = stack[s]
            value = row[i]
            row[i] = 0.0
            end = starts[i] + filled[i]
            begin, size = starts[i], filled[i]
            if size and rows[end - 1] - rows[begin] == size - 1:           # rows without a gap: a dense part
                there, column = row[rows[begin]:], below[begin:end]
                for q in range(size):                                      # from 0, so that it is vectorised
                    there[q] -= column[q] * value
            else:
                for p in range(begin, end):
                    row[rows[p]] -= below[p] * value
            factor = value / diagonal[i]
            pivot -= factor * value
            rows[end] = k
            below[end] = factor
            filled[i] += 1
        if not pivot > 0.0:
            return k
        diagonal[k] = pivot
    return n


@njit(cache=True)
def solved(starts: np.ndarray, rows: np.ndarray, below: np.ndarray, diagonal: np.ndarray, x: np.ndarray) -> None:
    """Replaces `x` by the solution of L D L^T z = x."""
    n = len(diagonal)
    for j in range(n):
        for p in range(starts[j], starts[j + 1]):
            x[rows[p]] -= below[p] * x[j]
    for j in range(n - 1, -1, -1):
        total = x[j] / diagonal[j]
        for p in range(starts[j], starts[j + 1]):
            total -= below[p] * x[rows[p]]
        x[j] = total


@njit(cache=True)
def spread(starts: np.ndarray, rows: np.ndarray, below: np.ndarray, diagonal: np.ndarray, x: np.ndarray) -> None:
    """Replaces independent standard normal numbers `x` by such as have the inverse of L D L^T as covariance."""
    for j in range(len(diagonal) - 1, -1, -1):
        total = x[j] / np.sqrt(diagonal[j])
        for p in range(starts[j], starts[j + 1]):
            total -= below[p] * x[rows[p]]
        x[j] = total


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def inverse(starts: np.ndarray, rows: np.ndarray, below: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """The elements of the inverse at the places of L, by columns, and then its diagonal."""
    n, count = len(diagonal), len(rows)
    found, place, sums = np.zeros(count + n), np.full(n, -1), np.zeros(n)
    for j in range(n - 1, -1, -1):
        begin, size = starts[j], starts[j + 1] - starts[j]
        for a in range(size):
            place[rows[begin + a]] = a
            sums[a] = 0.0
        for a in range(size):
            k, factor = rows[begin + a], below[begin + a]
            total, first, rest = factor * found[count + k], starts[k], starts[k + 1] - starts[k]
            if rest == size - a - 1:                        # the rows of column k are those of column j below k
                into, column, known = sums[a + 1:], below[begin + a + 1:], found[first:]
                for q in range(rest):
                    into[q] += factor * known[q]
                    total += column[q] * known[q]
            else:
                for p in range(first, first + rest):
                    b = place[rows[p]]
                    if b >= 0:
                        sums[b] += factor * found[p]
                        total += below[begin + b] * found[p]
            sums[a] += total
        total = 1.0 / diagonal[j]
        for a in range(size):
            found[begin + a] = -sums[a]
            total += below[begin + a] * sums[a]
            place[rows[begin + a]] = -1
        found[count + j] = total
    return found


@njit(cache=True)
def positions(starts: np.ndarray, rows: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Where in what `inverse` gives the elements (i, j) are."""
    found = np.zeros(len(i), np.int64)
    for e in range(len(i)):
        row, column = max(i[e], j[e]), min(i[e], j[e])
        if row == column:
            found[e] = len(rows) + row
            continue
        low, high = starts[column], starts[column + 1]
        while low < high:
            middle = (low + high) // 2
            if rows[middle] < row:
                low = middle + 1
            else:
                high = middle
        found[e] = low
    return found
