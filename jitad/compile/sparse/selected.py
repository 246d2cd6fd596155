"""Elements of ``U^-1 D L^-1`` at the places of L and U, for factors of a sparse matrix and a diagonal matrix D.

With Z = U^-1 D L^-1, U Z is D L^-1, which is D on and zero above the diagonal, and Z L is U^-1 D, which is zero below
it. So rows and columns of Z follow from those after them at places where the factors have elements (K. Takahashi,
J. Fagan, M.-S. Chin, Formation of a sparse bus impedance matrix and its application to short circuit study, 1973). Here
J are columns that have elements in the same rows R of L and columns C of U, which are taken together as full matrices::

    Z[J, R] = -U[J, J]^-1 U[J, C] Z[C, R]                      Z[C, J] = -Z[C, R] L[R, J] L[J, J]^-1
    Z[J, J] = U[J, J]^-1 (D[J] L[J, J]^-1 - U[J, C] Z[C, J])

Compiled by numba, once for all matrices, and kept on disk beside this file.
"""
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _first_of_block(starts: np.ndarray, places: np.ndarray, last: int, other: np.ndarray,
                    others: np.ndarray) -> int:
    """The first of the lines up to `last` that have the same places beyond it, in both factors."""
    first = last
    while first > 0:
        c = first - 1
        size, size_other = starts[c + 1] - starts[c], other[c + 1] - other[c]
        if size == 0 or size_other == 0 or places[starts[c]] != first or others[other[c]] != first:
            break
        if size != starts[first + 1] - starts[first] + 1 or size_other != other[first + 1] - other[first] + 1:
            break
        first = c
    return first


@njit(cache=True)
def _block(starts: np.ndarray, data: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Of lines first .. last the elements at each other's places, and at those after them: a row for each line."""
    width, far = last - first + 1, starts[last + 1] - starts[last]
    near, beyond = np.zeros((width, width)), np.zeros((width, far))
    for a in range(width):
        begin, inner = starts[first + a], width - 1 - a
        for b in range(inner):
            near[a, a + 1 + b] = data[begin + b]
        for b in range(far):
            beyond[a, b] = data[begin + inner + b]
    return near, beyond


@njit(cache=True)
def _gathered(l_starts: np.ndarray, l_rows: np.ndarray, of_l: np.ndarray, u_starts: np.ndarray, u_columns: np.ndarray,
              of_u: np.ndarray, found: np.ndarray, last: int, in_l: np.ndarray,
              in_u: np.ndarray) -> tuple[np.ndarray, bool]:
    """Z[C, R], and whether all of it is known."""
    l_first, l_last, u_first, u_last = l_starts[last], l_starts[last + 1], u_starts[last], u_starts[last + 1]
    z, met = np.zeros((u_last - u_first, l_last - l_first)), 0
    for p in range(l_first, l_last):
        in_l[l_rows[p]] = p - l_first
    for q in range(u_first, u_last):
        in_u[u_columns[q]] = q - u_first
    for q in range(u_last - u_first):
        j = u_columns[u_first + q]
        if in_l[j] >= 0:
            met += 1
            z[q, in_l[j]] = found[j]
        for e in range(l_starts[j], l_starts[j + 1]):
            p = in_l[l_rows[e]]
            if p >= 0:
                met += 1
                z[q, p] = of_l[e]
    for p in range(l_last - l_first):
        k = l_rows[l_first + p]
        for e in range(u_starts[k], u_starts[k + 1]):
            q = in_u[u_columns[e]]
            if q >= 0:
                met += 1
                z[q, p] = of_u[e]
    for p in range(l_first, l_last):
        in_l[l_rows[p]] = -1
    for q in range(u_first, u_last):
        in_u[u_columns[q]] = -1
    return z, met == z.size


@njit(cache=True)
def _solve_rows(near: np.ndarray, diagonal: np.ndarray, right: np.ndarray) -> None:
    """Replaces `right` by the solution with the upper triangular matrix whose rows are `near` beyond `diagonal`."""
    for a in range(len(diagonal) - 1, -1, -1):
        for b in range(a + 1, len(diagonal)):
            factor = near[a, b]
            for k in range(right.shape[1]):
                right[a, k] -= factor * right[b, k]
        for k in range(right.shape[1]):
            right[a, k] /= diagonal[a]


@njit(cache=True)
def selected(l_starts: np.ndarray, l_rows: np.ndarray, l_data: np.ndarray, u_starts: np.ndarray, u_columns: np.ndarray,
             u_data: np.ndarray, diagonal: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray,
                                                                                      bool]:
    """Z at the places of L.T (in the order of the columns of L), at those of U.T (of the rows of U) and on the
    diagonal; L without its diagonal by columns, U without it by rows. And whether all elements that it takes are
    there, which they are unless the factors lost some that are zero by chance."""
    n, whole = len(diagonal), True
    of_l, of_u, found = np.zeros(len(l_rows)), np.zeros(len(u_columns)), np.zeros(n)
    in_l, in_u = np.full(n, -1), np.full(n, -1)
    last = n - 1
    while last >= 0:
        first = _first_of_block(l_starts, l_rows, last, u_starts, u_columns)
        width = last - first + 1
        z, known = _gathered(l_starts, l_rows, of_l, u_starts, u_columns, of_u, found, last, in_l, in_u)
        whole = whole and known
        l_near, l_far = _block(l_starts, l_data, first, last)        # L[J, J].T without its diagonal, L[R, J].T
        u_near, u_far = _block(u_starts, u_data, first, last)
        own, ones = diagonal[first:last + 1], np.ones(width)
        of_rows = -np.dot(u_far, z)                                 # Z[J, R]
        _solve_rows(u_near, own, of_rows)
        of_columns = -np.dot(l_far, np.ascontiguousarray(z.T))      # Z[C, J].T
        _solve_rows(l_near, ones, of_columns)
        middle = np.eye(width)                                      # L[J, J]^-1, transposed
        _solve_rows(l_near, ones, middle)
        middle = np.ascontiguousarray(middle.T)
        for a in range(width):
            for b in range(width):
                middle[a, b] *= weights[first + a]
        middle -= np.dot(u_far, np.ascontiguousarray(of_columns.T))
        _solve_rows(u_near, own, middle)
        for a in range(width):
            inner = width - 1 - a
            found[first + a] = middle[a, a]
            for b in range(inner):
                of_l[l_starts[first + a] + b] = middle[a, a + 1 + b]
                of_u[u_starts[first + a] + b] = middle[a + 1 + b, a]
            for b in range(z.shape[1]):
                of_l[l_starts[first + a] + inner + b] = of_rows[a, b]
            for b in range(z.shape[0]):
                of_u[u_starts[first + a] + inner + b] = of_columns[a, b]
        last = first - 1
    return of_l, of_u, found, whole


@njit(cache=True)
def places(l_starts: np.ndarray, l_rows: np.ndarray, u_starts: np.ndarray, u_columns: np.ndarray, rows: np.ndarray,
           columns: np.ndarray) -> np.ndarray:
    """Where Z[columns, rows] stands in what `selected` gives, one array after the other; -1 where it does not."""
    found = np.zeros(len(rows), np.int64)
    for e in range(len(rows)):
        i, j = rows[e], columns[e]
        if i == j:
            found[e] = len(l_rows) + len(u_columns) + i
            continue
        low, high = (l_starts[j], l_starts[j + 1]) if i > j else (u_starts[i], u_starts[i + 1])
        wanted, last = max(i, j), high
        while low < high:
            middle = (low + high) // 2
            if (l_rows[middle] if i > j else u_columns[middle]) < wanted:
                low = middle + 1
            else:
                high = middle
        there = low < last and (l_rows[low] if i > j else u_columns[low]) == wanted
        found[e] = (low if i > j else len(l_rows) + low) if there else -1
    return found
