"""Patterns: a set of columns for each element of an array. Elements with one set share it, so that what does not look
at sets is done on their numbers, and a result in which everything depends on everything costs one set.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Table = Any                                       # scipy.sparse.csr_array of booleans, a row for each set


@dataclass(frozen=True, eq=False)
class Pattern:
    """An array of the shape of a value with the row of `table` that has the columns of each element; row 0 is empty."""

    rows: np.ndarray
    table: Table

    def matrix(self) -> Table:
        """The sets as a boolean matrix: a row for each element in C order, a column for each column."""
        return self.table[self.rows.ravel()]

    def moved(self, rows: np.ndarray) -> Pattern:
        return Pattern(rows, self.table)


def units(shape: tuple[int, ...], first: int, width: int) -> Pattern:
    """The pattern of independent elements, which are the columns from `first` on, of `width`."""
    from scipy.sparse import csr_array

    size = int(np.prod(shape, dtype=np.int64))
    table = csr_array((np.ones(size, bool), np.arange(first, first + size), np.r_[0, np.arange(size + 1)]),
                      shape=(size + 1, width))
    return Pattern(np.arange(1, size + 1).reshape(shape), table)


def empty(width: int, count: int = 1) -> Table:
    """A table of `count` empty sets."""
    from scipy.sparse import csr_array

    return csr_array((count, width), dtype=bool)


def stacked(tables: Sequence[Table]) -> Table:
    from scipy.sparse import vstack

    return vstack(tables, format="csr", dtype=bool)


def of_matrix(matrix: Table, shape: tuple[int, ...]) -> Pattern | None:
    """The pattern of elements whose sets are the rows of a matrix."""
    if not matrix.nnz:
        return None
    table, rows = _distinct(stacked([empty(matrix.shape[1]), matrix]))
    return Pattern(rows[1:].reshape(shape), table)


def united(groups: np.ndarray, rows: np.ndarray, count: int, table: Table) -> tuple[np.ndarray, Table]:
    """For each of `count` groups the union of the sets that are in it: element k puts set ``rows[k]`` into group
    ``groups[k]``. Gives the number of the union for each group, and the table of the unions."""
    from scipy.sparse import csr_array

    sets = table.shape[0]
    some = rows != 0
    pairs = np.unique(groups[some].astype(np.int64) * sets + rows[some])
    inside, members = np.divmod(pairs, sets)
    choice = csr_array((np.ones(len(pairs), bool), (inside + 1, members)), shape=(count + 1, sets))
    merged, numbers = _distinct(choice @ table)
    return numbers[1:], merged


def _distinct(table: Table) -> tuple[Table, np.ndarray]:
    """The table with each set once, and where each row of the given one went; the first one, which is empty, stays."""
    table.sum_duplicates()
    table.sort_indices()
    starts, lengths = table.indptr[:-1], np.diff(table.indptr)
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_marks(table.shape[1])[table.indices], dtype=np.uint64)])
    keys = totals[table.indptr[1:]] - totals[starts]                   # sums that wrap: equal for equal sets
    _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)                                          # in the order in which they come
    first, numbers = first[order], np.argsort(order)[numbers]
    if len(first) == len(keys) or not _same(table, first[numbers], lengths):
        return table, np.arange(len(keys))
    return table[first], numbers


@lru_cache(maxsize=4)
def _marks(width: int) -> np.ndarray:
    """A random number for each column."""
    return np.random.default_rng(1).integers(1, 1 << 62, width, dtype=np.uint64)


def _same(table: Table, other: np.ndarray, lengths: np.ndarray) -> bool:
    """Whether each row is equal to row `other` of the table: sums could agree by chance."""
    if (lengths != lengths[other]).any():
        return False
    shift = np.repeat(table.indptr[other].astype(np.int64) - table.indptr[:-1], lengths)
    return bool((table.indices == table.indices[np.arange(len(table.indices)) + shift]).all())


def both(rows: Sequence[np.ndarray], table: Any) -> Pattern:
    """The union, element by element, of patterns of one shape."""
    kinds, shape = rows[0].ravel(), rows[0].shape
    members = [np.unique(kinds)]
    kinds = np.searchsorted(members[0], kinds)
    for more in rows[1:]:
        sets = table.shape[0]
        pairs, kinds = np.unique(kinds * sets + more.ravel(), return_inverse=True)
        members = [*(m[pairs // sets] for m in members), pairs % sets]
    count = len(members[0])
    numbers, merged = united(np.tile(np.arange(count), len(members)), np.concatenate(members), count, table)
    return Pattern(numbers[kinds].reshape(shape), merged)


def over(pattern: Pattern, axes: Sequence[int]) -> Pattern:
    """The union over some axes, which are lost."""
    rows = pattern.rows
    kept = [d for d in range(rows.ndim) if d not in axes]
    if len(kept) == rows.ndim:
        return pattern
    shape = tuple(rows.shape[d] for d in kept)
    count = int(np.prod(shape, dtype=np.int64))
    groups = np.arange(count).reshape([rows.shape[d] if d in kept else 1 for d in range(rows.ndim)])
    numbers, table = united(np.broadcast_to(groups, rows.shape).ravel(), rows.ravel(), count, pattern.table)
    return Pattern(numbers.reshape(shape), table)


def broadcast(pattern: Pattern, shape: tuple[int, ...]) -> Pattern:
    return pattern.moved(np.broadcast_to(pattern.rows, shape))
