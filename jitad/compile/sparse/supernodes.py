"""Where the elements of a sparse Cholesky factor are: its columns in groups, a full matrix (a *panel*) for each group.

Columns that have elements in the same rows below them stand next to each other once the elimination tree is in
postorder. They are a group, and so are those that nearly do: few zeros more, and far fewer groups (C. Ashcraft,
R. Grimes, The influence of relaxed supernode partitions on the multifrontal method, ACM TOMS 15, 1989). The panel of a
group has a row for each of its own columns, then one for each row beyond; ``at`` says where each panel begins,
``begins`` where its rows beyond do. Compiled by numba, once for all matrices, and kept on disk beside this file.
"""
from __future__ import annotations

import numpy as np
from numba import njit

WIDEST = 128                 # columns of a group: what a step of the dense factorization takes at once


@njit(cache=True)
def tree(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elimination tree of a symmetric matrix in CSR (a parent for each column, -1 for a root), and how many
    elements its factor has below the diagonal of each column."""
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
    return parent, count


@njit(cache=True)
def postorder(parent: np.ndarray) -> np.ndarray:
    """The place of each column in an order in which the columns of each subtree are neighbours."""
    n = len(parent)
    child, sibling, place, stack = np.full(n, -1), np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for j in range(n - 1, -1, -1):
        if parent[j] >= 0:
            sibling[j] = child[parent[j]]
            child[parent[j]] = j
    done = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        height, stack[0] = 1, root
        while height > 0:
            j = stack[height - 1]
            if child[j] >= 0:
                stack[height] = child[j]
                child[j] = sibling[child[j]]
                height += 1
            else:
                place[j] = done
                done += 1
                height -= 1
    return place


@njit(cache=True)
def _cost(width: int, beyond: int) -> float:
    """About the nanoseconds that a group takes: to begin, to move its elements, to multiply them."""
    size = width + beyond
    return 60.0 + size * size * (0.7 + 0.1 * width) + 1.0 * size * min(width, 16) ** 2


@njit(cache=True)
def groups(parent: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first column of each group, and of the one past the last; and how many rows beyond each group has."""
    n = len(parent)
    heads, total = np.zeros(n + 1, np.int64), 0
    for j in range(n):
        if j == 0 or parent[j - 1] != j or count[j - 1] != count[j] + 1:
            heads[total] = j
            total += 1
    of = np.zeros(n, np.int64)
    for s in range(total):
        for j in range(heads[s], heads[s + 1] if s + 1 < total else n):
            of[j] = s
    width, beyond, up = np.zeros(total, np.int64), np.zeros(total, np.int64), np.full(total, -1)
    for s in range(total):
        last = (heads[s + 1] if s + 1 < total else n) - 1
        width[s], beyond[s] = last + 1 - heads[s], count[last]
        if parent[last] >= 0:
            up[s] = of[parent[last]]
    merged = np.full(total, -1)
    for s in range(total - 2, -1, -1):                      # a group and the next one, if that is its parent
        above = up[s]
        while above >= 0 and merged[above] >= 0:
            above = merged[above]
        if above != s + 1:
            continue
        both = width[s] + width[s + 1]
        if _cost(both, beyond[s + 1]) <= _cost(width[s], beyond[s]) + _cost(width[s + 1], beyond[s + 1]):
            merged[s + 1], width[s], beyond[s], up[s] = s, both, beyond[s + 1], up[s + 1]
    begins, rows, kept = np.zeros(n + 1, np.int64), np.zeros(n, np.int64), 0
    for s in range(total):
        if merged[s] >= 0:
            continue
        parts = (width[s] + WIDEST - 1) // WIDEST
        for k in range(parts):
            begins[kept] = heads[s] + width[s] * k // parts
            rows[kept] = beyond[s] + width[s] - width[s] * (k + 1) // parts
            kept += 1
    begins[kept] = n
    return begins[:kept + 1].copy(), rows[:kept].copy()


@njit(cache=True)
def rows_beyond(indptr: np.ndarray, indices: np.ndarray, heads: np.ndarray, begins: np.ndarray) -> tuple[
        np.ndarray, np.ndarray]:
    """The group of each column, and the rows beyond each group, in order: where the matrix has elements, and where
    the groups that are its children have rows."""
    n, total = heads[-1], len(heads) - 1
    of, rows, mark = np.zeros(n, np.int64), np.zeros(begins[-1], np.int64), np.full(n, -1)
    child, sibling = np.full(total, -1), np.full(total, -1)
    for s in range(total):
        of[heads[s]:heads[s + 1]] = s
    for s in range(total):
        last, found = heads[s + 1], begins[s]
        for p in range(indptr[heads[s]], indptr[last]):
            i = indices[p]
            if i >= last and mark[i] != s:
                mark[i] = s
                rows[found] = i
                found += 1
        k = child[s]
        while k >= 0:
            for p in range(begins[k], begins[k + 1]):
                i = rows[p]
                if i >= last and mark[i] != s:
                    mark[i] = s
                    rows[found] = i
                    found += 1
            k = sibling[k]
        rows[begins[s]:found] = np.sort(rows[begins[s]:found])
        if found > begins[s]:
            above = of[rows[begins[s]]]
            sibling[s] = child[above]
            child[above] = s
    return of, rows


@njit(cache=True)
def positions(heads: np.ndarray, of: np.ndarray, begins: np.ndarray, rows: np.ndarray, at: np.ndarray, i: np.ndarray,
              j: np.ndarray) -> np.ndarray:
    """Where in the panels the elements (i, j) are, or their mirror images below the diagonal."""
    found = np.zeros(len(i), np.int64)
    for e in range(len(i)):
        row, column = max(i[e], j[e]), min(i[e], j[e])
        s = of[column]
        width = heads[s + 1] - heads[s]
        if row < heads[s + 1]:
            place = row - heads[s]
        else:
            place = width + np.searchsorted(rows[begins[s]:begins[s + 1]], row)
        found[e] = at[s] + place * width + column - heads[s]
    return found
