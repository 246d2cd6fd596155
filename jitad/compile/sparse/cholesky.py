"""Factors L L^T of sparse symmetric matrices by panels (see `supernodes`), and elements of the inverse at their places.

The factorization looks left: a group takes from its panel the products of those before it that reach its columns, each
a product of full matrices, and is factored as one (E. Ng, B. Peyton, Block sparse Cholesky algorithms on advanced
uniprocessor computers, SIAM J. Sci. Comput. 14, 1993). The inverse Z comes from the last group to the first
(K. Takahashi, J. Fagan, M.-S. Chin, 1973): with J the columns of a group, R its rows beyond, Y = L[R, J] L[J, J]^-1::

    Z[R, J] = -Z[R, R] Y                    Z[J, J] = (L[J, J] L[J, J]^T)^-1 - Y^T Z[R, J]

Compiled by numba, once for all matrices, and kept on disk beside this file.
"""
from __future__ import annotations

import numpy as np
from numba import njit

from jitad.compile.sparse.blas import gemm, new_desk, potrf, potri, symm, trsm

FEW = 1000                   # multiplications below which loops take less time than a call of BLAS
WORD = 8                     # bytes of a number


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _subtract(blas: np.ndarray, desk: np.ndarray, panels: np.ndarray, into: int, into_width: int, place: np.ndarray,
              first: int, rows: np.ndarray, low: int, high: int, stop: int, tall: int, width: int,
              work: np.ndarray) -> None:
    """Takes from the panel at `into` the products of the lines at `tall`, whose rows are ``rows[low:stop]``, with those
    of ``rows[low:high]``."""
    size, narrow = stop - low, high - low
    if size * narrow * width < FEW:
        for r in range(size):
            line, one = into + place[rows[low + r]] * into_width - first, tall + r * width
            for q in range(min(r + 1, narrow)):
                total, other = 0.0, tall + q * width
                for k in range(width):
                    total += panels[one + k] * panels[other + k]
                panels[line + rows[low + q]] -= total
        return
    begin, there, lines = rows[low] - first, place[rows[low]], panels.ctypes.data + WORD * tall
    joined = rows[high - 1] - rows[low] == narrow - 1
    if joined and place[rows[stop - 1]] - there == size - 1:
        gemm(blas, desk, 1, 0, (narrow, size, width), -1.0, lines, width, lines, width, 1.0,
             panels.ctypes.data + WORD * (into + there * into_width + begin), into_width)
        return
    gemm(blas, desk, 1, 0, (narrow, size, width), 1.0, lines, width, lines, width, 0.0, work.ctypes.data, narrow)
    for r in range(size):
        line = into + place[rows[low + r]] * into_width
        if joined:
            for q in range(narrow):
                panels[line + begin + q] -= work[r * narrow + q]
        else:
            for q in range(narrow):
                panels[line + rows[low + q] - first] -= work[r * narrow + q]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _dense(blas: np.ndarray, desk: np.ndarray, panels: np.ndarray, begin: int, size: int, width: int) -> int:
    """The factor of the square at the top of a panel, and the rows below it solved with that; how many columns went
    well."""
    if size * width * width < FEW:
        for r in range(size):
            line = begin + r * width
            for j in range(min(r, width)):
                other, total = begin + j * width, panels[line + j]
                for k in range(j):
                    total -= panels[line + k] * panels[other + k]
                panels[line + j] = total / panels[other + j]
            if r < width:
                total = panels[line + r]
                for k in range(r):
                    total -= panels[line + k] * panels[line + k]
                if not total > 0.0:
                    return r
                panels[line + r] = np.sqrt(total)
        return width
    top = panels.ctypes.data + WORD * begin
    potrf(blas, desk, width, top)
    for r in range(width):
        if not panels[begin + r * (width + 1)] > 0.0:       # NaN too, which LAPACK may let pass
            return r
    if desk[0] != 0:
        return 0
    trsm(blas, desk, 1, width, size - width, top, top + WORD * width * width)
    return width


@njit(cache=True)
def factored(heads: np.ndarray, of: np.ndarray, begins: np.ndarray, rows: np.ndarray, at: np.ndarray,
             blas: np.ndarray, panels: np.ndarray) -> int:
    """Replaces panels of a matrix by those of its factor. Gives how many columns went well: all of them if the matrix
    is positive definite."""
    total, n = len(heads) - 1, heads[-1]
    waiting, following, reached = np.full(total, -1), np.full(total, -1), np.zeros(total, np.int64)
    place, work, desk = np.zeros(n, np.int64), np.zeros(np.max(np.diff(at)) + 1), new_desk()
    for s in range(total):
        first, last, begin, end = heads[s], heads[s + 1], begins[s], begins[s + 1]
        own = last - first
        if waiting[s] >= 0:
            for c in range(own):
                place[first + c] = c
            for r in range(begin, end):
                place[rows[r]] = own + r - begin
        k = waiting[s]
        while k >= 0:                                       # groups before that have rows among these columns
            after, low, stop, width = following[k], reached[k], begins[k + 1], heads[k + 1] - heads[k]
            high = low
            while high < stop and rows[high] < last:
                high += 1
            tall = at[k] + (width + low - begins[k]) * width
            _subtract(blas, desk, panels, at[s], own, place, first, rows, low, high, stop, tall, width, work)
            if high < stop:
                reached[k], above = high, of[rows[high]]
                following[k] = waiting[above]
                waiting[above] = k
            k = after
        fine = _dense(blas, desk, panels, at[s], own + end - begin, own)
        if fine < own:
            return first + fine
        if begin < end:
            reached[s], above = begin, of[rows[begin]]
            following[s] = waiting[above]
            waiting[above] = s
    return n


@njit(cache=True)
def forward(heads: np.ndarray, begins: np.ndarray, rows: np.ndarray, at: np.ndarray, panels: np.ndarray,
            x: np.ndarray) -> None:
    """Replaces `x` by the solution of L z = x."""
    for s in range(len(heads) - 1):
        first, width, p = heads[s], heads[s + 1] - heads[s], at[s]
        for r in range(width):
            total = x[first + r]
            for k in range(r):
                total -= panels[p + k] * x[first + k]
            x[first + r] = total / panels[p + r]
            p += width
        for r in range(begins[s], begins[s + 1]):
            total = 0.0
            for k in range(width):
                total += panels[p + k] * x[first + k]
            x[rows[r]] -= total
            p += width


@njit(cache=True)
def backward(heads: np.ndarray, begins: np.ndarray, rows: np.ndarray, at: np.ndarray, panels: np.ndarray,
             x: np.ndarray) -> None:
    """Replaces `x` by the solution of L^T z = x."""
    for s in range(len(heads) - 2, -1, -1):
        first, width = heads[s], heads[s + 1] - heads[s]
        p = at[s] + width * width
        for r in range(begins[s], begins[s + 1]):
            there = x[rows[r]]
            for k in range(width):
                x[first + k] -= panels[p + k] * there
            p += width
        for r in range(width - 1, -1, -1):
            line = at[s] + r * width
            x[first + r] /= panels[line + r]
            for k in range(r):
                x[first + k] -= panels[line + k] * x[first + r]


@njit(cache=True)
def _gathered(s: int, heads: np.ndarray, of: np.ndarray, begins: np.ndarray, rows: np.ndarray, at: np.ndarray,
              found: np.ndarray, z: np.ndarray) -> None:
    """Z[R, R] of the rows beyond a group, on and below the diagonal."""
    begin, end = begins[s], begins[s + 1]
    size, low = end - begin, begin
    while low < end:
        t = of[rows[low]]
        first, width, last, high, p = heads[t], heads[t + 1] - heads[t], heads[t + 1], low, begins[t]
        while high < end and rows[high] < last:
            high += 1
        for r in range(low, end):
            row = rows[r]
            if row < last:
                line = row - first
            else:
                while rows[p] < row:
                    p += 1
                line = width + p - begins[t]
            line, into = at[t] + line * width - first, (r - begin) * size - begin
            for q in range(low, min(high, r + 1)):
                z[into + q] = found[line + rows[q]]
        low = high


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _own(blas: np.ndarray, desk: np.ndarray, panels: np.ndarray, begin: int, size: int, width: int, y: np.ndarray,
         inner: np.ndarray, found: np.ndarray) -> None:
    """Fills y, L[R, J] L[J, J]^-1, and the top of the panel in `found`, (L[J, J] L[J, J]^T)^-1, by way of `inner`,
    L[J, J]^-1."""
    square = width * width
    for e in range(size * width):
        y[e] = panels[begin + square + e]
    if (size + width) * square >= FEW:
        for e in range(square):
            found[begin + e] = panels[begin + e]
        potri(blas, desk, width, found.ctypes.data + WORD * begin)
        for r in range(width):
            for c in range(r):
                found[begin + c * width + r] = found[begin + r * width + c]
        trsm(blas, desk, 0, width, size, panels.ctypes.data + WORD * begin, y.ctypes.data)
        return
    for r in range(width):                                  # L[J, J]^-1 by rows
        line, row = begin + r * width, r * width
        for c in range(width):
            inner[row + c] = 0.0
        inner[row + r] = 1.0
        for k in range(r):
            for c in range(k + 1):
                inner[row + c] -= panels[line + k] * inner[k * width + c]
        for c in range(r + 1):
            inner[row + c] /= panels[line + r]
    for r in range(width):
        for c in range(r + 1):
            total = 0.0
            for k in range(r, width):
                total += inner[k * width + r] * inner[k * width + c]
            found[begin + r * width + c] = total
            found[begin + c * width + r] = total
    for r in range(size):
        row = r * width
        for j in range(width - 1, -1, -1):
            line = begin + j * width
            y[row + j] /= panels[line + j]
            for k in range(j):
                y[row + k] -= y[row + j] * panels[line + k]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _finished(blas: np.ndarray, desk: np.ndarray, z: np.ndarray, y: np.ndarray, size: int, width: int,
              found: np.ndarray, top: int) -> None:
    """Fills the panel at `top` below its own columns, -Z[R, R] y, and takes the product of that with y from these."""
    below = top + width * width
    if size * size * width < FEW:
        for r in range(size):
            line = below + r * width
            for p in range(size):
                factor = z[r * size + p] if p <= r else z[p * size + r]
                for c in range(width):
                    found[line + c] -= factor * y[p * width + c]
        for r in range(size):
            line = below + r * width
            for a in range(width):
                factor = y[r * width + a]
                for c in range(width):
                    found[top + a * width + c] -= factor * found[line + c]
        return
    into = found.ctypes.data
    symm(blas, desk, width, size, -1.0, z.ctypes.data, y.ctypes.data, into + WORD * below)
    gemm(blas, desk, 0, 1, (width, width, size), -1.0, into + WORD * below, width, y.ctypes.data, width, 1.0,
         into + WORD * top, width)


@njit(cache=True)
def inverse(heads: np.ndarray, of: np.ndarray, begins: np.ndarray, rows: np.ndarray, at: np.ndarray, blas: np.ndarray,
            panels: np.ndarray) -> np.ndarray:
    """The elements of the inverse at the places of the factor, in panels as it has them."""
    found, desk = np.zeros(len(panels)), new_desk()
    widest, longest = np.max(np.diff(heads)), np.max(np.diff(begins))
    z, y, inner = np.zeros(longest * longest), np.zeros(longest * widest), np.zeros(widest * widest)
    for s in range(len(heads) - 2, -1, -1):
        width, size = heads[s + 1] - heads[s], begins[s + 1] - begins[s]
        _own(blas, desk, panels, at[s], size, width, y, inner, found)
        if size > 0:
            _gathered(s, heads, of, begins, rows, at, found, z)
            _finished(blas, desk, z, y, size, width, found, at[s])
    return found
