"""Which elements sparse matrices have: plain numbers, of which the elements' values know nothing.

A *map* takes the elements of the operands to those of the result: an array of positions to gather, or, where several
go to one place, of positions to add up at.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.primitives.index import gather, scatter
from jitad.trace.dispatch import builder_in
from jitad.trace.scipy_rules.classes import lifted

__all__ = ["Places", "compressed", "expanded", "joined", "pairs", "stacked", "taken"]


@dataclass(frozen=True)
class Places:
    """Rows and columns of the elements of a matrix, in some order."""

    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray

    def and_then(self, other: Places) -> Places:
        """The places of both, one after the other."""
        return Places(self.shape, np.concatenate([self.rows, other.rows]),
                      np.concatenate([self.columns, other.columns]))

    def ordered(self, by_columns: bool) -> tuple[Places, np.ndarray]:
        """Each place once, by rows or by columns, and the number of each element's place."""
        major, minor = (self.columns, self.rows) if by_columns else (self.rows, self.columns)
        width = max(self.shape[0 if by_columns else 1], 1)
        keys, inverse = np.unique(major.astype(np.int64) * width + minor, return_inverse=True)
        first, second = keys // width, keys % width
        return Places(self.shape, *((second, first) if by_columns else (first, second))), inverse.reshape(-1)


def taken(data: Any, positions: np.ndarray) -> Any:
    """``data[positions]``, plain if `data` is."""
    if builder_in(data) is None:
        return np.asarray(data)[positions]
    if np.array_equal(positions, np.arange(data.shape[0])):
        return data
    return lifted(gather(data, lifted(positions), axes=(0,)))


def joined(data: Any, inverse: np.ndarray, count: int) -> Any:
    """The sums of the elements that have the same number in `inverse`."""
    if len(inverse) == count:
        order = np.empty(count, np.int64)
        order[inverse] = np.arange(count)
        return taken(data, order)
    if builder_in(data) is None:
        total = np.zeros(count, np.asarray(data).dtype)
        np.add.at(total, inverse, data)
        return total
    return lifted(scatter(data, lifted(inverse), axes=(0,), shape=(count,)))


def compressed(lines: np.ndarray, count: int) -> np.ndarray:
    """Where each of `count` lines begins, of elements in the order of their lines."""
    return np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=count))]).astype(np.int32)


def picked(places: Places, kind: type, key: Any) -> tuple[np.ndarray, Places | None] | None:
    """The numbers of the elements that a key picks, and their places, None of a number; of a sparse vector nothing."""
    from scipy.sparse import coo_array, issparse

    count = len(places.rows)
    if len(places.ordered(by_columns=False)[0].rows) < count:
        return None
    numbers = kind(coo_array((np.arange(1, count + 1), (places.rows, places.columns)), shape=places.shape))[key]
    if not issparse(numbers):
        found = np.asarray(numbers).reshape(-1)
        return found[found > 0] - 1, None
    if numbers.ndim != 2:
        return None
    found = numbers.tocoo()
    return found.data - 1, Places(found.shape, found.row, found.col)


def expanded(indptr: np.ndarray) -> np.ndarray:
    """The line of each element."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def pairs(columns: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each element of a left factor, in this column, and each element of the right one in that row, whose lines
    begin at `starts`: the numbers of both."""
    counts = np.diff(starts)[columns]
    left = np.repeat(np.arange(len(columns)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    return left, np.repeat(np.asarray(starts)[:-1][columns], counts) + np.arange(len(left)) - first


def stacked(parts: Sequence[Any]) -> Any:
    """The elements of several matrices one after the other."""
    if builder_in(list(parts)) is None:
        return np.concatenate([np.asarray(p) for p in parts]) if parts else np.zeros(0)
    return np.concatenate([lifted(p) for p in parts])
