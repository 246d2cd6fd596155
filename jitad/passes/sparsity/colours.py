"""Colourings: which columns of a sparse matrix one direction may compute together.

A library would be welcome; those that there are (asdex, sparsejac) are for JAX, and SciPy's `group_columns` is private
and colours columns alone. Both algorithms are greedy, take the vertices with most neighbours first, and are described
in A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian? Graph coloring for computing derivatives",
SIAM Review 47 (2005).
"""
from __future__ import annotations

from typing import Any

import numpy as np


def columns_apart(pattern: Any) -> np.ndarray:
    """A colour for each column of a boolean matrix, such that two columns with an element in one row have different
    colours: the partial distance-2 colouring of the paper, section 3.

    >>> from scipy.sparse import csr_array
    >>> columns_apart(csr_array([[True, True, False], [False, True, True]])).tolist()
    [1, 0, 1]
    """
    by_column = pattern.tocsc()
    starts, rows = by_column.indptr.tolist(), by_column.indices.tolist()
    weights = np.diff(pattern.indptr)
    reach = np.add.reduceat(np.append(weights[by_column.indices], 0), by_column.indptr[:-1]) if rows else np.zeros(
        pattern.shape[1])
    reach[np.diff(by_column.indptr) == 0] = 0
    taken = [0] * pattern.shape[0]                    # the colours in each row, as bits
    colours = np.zeros(pattern.shape[1], np.int64)
    for column in np.argsort(-reach, kind="stable").tolist():
        own, forbidden = rows[starts[column]:starts[column + 1]], 0
        for row in own:
            forbidden |= taken[row]
        bit = ~forbidden & (forbidden + 1)            # the lowest that is free
        for row in own:
            taken[row] |= bit
        colours[column] = bit.bit_length() - 1
    return colours


def star(pattern: Any) -> np.ndarray:
    """A colour for each column of a symmetric boolean matrix, such that neighbours have different colours and no path
    of four vertices has only two: the star colouring of the paper, section 4.

    Each element can then be read off the products with the colours' sums of columns, in its own row or in that of its
    mirror image: see `single`.

    >>> from scipy.sparse import csr_array
    >>> arrow = csr_array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]], dtype=bool)
    >>> star(arrow).tolist()
    [0, 1, 1, 1]
    """
    starts, others = pattern.indptr.tolist(), pattern.indices.tolist()
    count = pattern.shape[0]
    colours = [-1] * count
    near: list[dict[int, int]] = [{} for _ in range(count)]    # colours of neighbours: one with it, -1 for several
    ends: list[set[int]] = [set() for _ in range(count)]       # of neighbours that are the middle of a star with this
    for v in np.argsort(-np.diff(pattern.indptr), kind="stable").tolist():
        around = [w for w in others[starts[v]:starts[v + 1]] if w != v]
        forbidden = set(near[v])
        for w in around:
            if colours[w] >= 0:
                forbidden |= ends[w]                           # v, w, the middle, another end
                if near[v][colours[w]] < 0:
                    forbidden.update(near[w])                  # an end, v, w, what is next to w
        colour = next(c for c in range(len(forbidden) + 1) if c not in forbidden)
        colours[v] = colour
        for w in around:
            if colours[w] >= 0 and near[v][colours[w]] < 0:
                ends[w].add(colour)
        for w in around:
            _joined(near, ends, colours, v, w)
    return np.array(colours, np.int64)


def _joined(near: list[dict[int, int]], ends: list[set[int]], colours: list[int], v: int, w: int) -> None:
    """Note that `v`, a neighbour of `w`, has a colour now."""
    colour, known = colours[v], near[w].get(colours[v])
    if known is None:
        near[w][colour] = v
        return
    near[w][colour] = -1
    if colours[w] >= 0:
        ends[v].add(colours[w])
        if known >= 0:
            ends[known].add(colours[w])


def single(pattern: Any, colours: np.ndarray) -> np.ndarray:
    """For each element of a matrix, whether its column is the only one of its colour in its row."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    keys = rows * (int(colours.max(initial=0)) + 1) + colours[pattern.indices]
    _, back, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[back] == 1


__all__ = ["columns_apart", "single", "star"]
