"""Structural sparsity, read off the tape: which elements of a value may depend on which elements of others.

A `Pattern` has a set of columns for each element of a value. Elements with one set share it, so that what does not
look at sets (views, gathers, joins) is done by the row of the table itself on their numbers, and a result in which
everything depends on everything costs one set. `propagate` walks the tape with a rule for each kind of row
(`rules`); kinds without one are dense: every element of the result may depend on all that any operand
depends on. So a pattern is never too small, whatever new rows there are.

The idea is that of propagating index sets (A. Griewank, A. Walther, "Evaluating Derivatives", 2nd ed. 2008, section
7.1).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from jitad.passes.differentiate.modes import CARRYING
from jitad.tape.types import Node

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


Known = dict[int, "list[Pattern | None] | Pattern | None"]     # of a scan, a pattern for each output
Concrete = Callable[[int], "np.ndarray | None"]


@dataclass(frozen=True)
class Step:
    """A node with the patterns of its operands, None where nothing is depended upon; `index` gives the values of an
    operand that holds places, or None if these are not known."""

    node: Node
    nodes: Sequence[Node]
    operands: list[Pattern | None]
    concrete: Concrete

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [self.nodes[i].aval.shape for i in self.node.inputs]

    def index(self, first: int) -> list[np.ndarray] | None:
        """The values of the operands from `first` on; None unless all are known."""
        found = [self.concrete(i) for i in self.node.inputs[first:]]
        return None if any(x is None for x in found) else found         # type: ignore[return-value]

    def joint(self, operands: Sequence[Pattern | None] | None = None) -> tuple[list[np.ndarray], Table]:
        """The rows of operands as rows of one table, one 0 for what depends on nothing."""
        operands = self.operands if operands is None else operands
        starts: dict[int, int] = {}
        tables, count = [], 0
        for p in operands:
            if p is not None and id(p.table) not in starts:
                starts[id(p.table)] = count
                tables.append(p.table)
                count += p.table.shape[0]
        rows = [np.zeros((), np.int64) if p is None else np.where(p.rows, p.rows + starts[id(p.table)], 0)
                for p in operands]
        return rows, tables[0] if len(tables) == 1 else stacked(tables)


def propagate(nodes: Sequence[Node], wanted: Iterable[int], known: Mapping[int, Pattern],
              concrete: Concrete) -> list[Pattern | None]:
    """The patterns of the nodes `wanted`, where those of the nodes `known` are given and what does not depend on these
    is constant."""
    from jitad.passes.sparsity.rules import rule_for

    wanted = list(wanted)
    found: Known = dict(known)
    for number in _needed(nodes, wanted, known):
        node = nodes[number]
        if node.aval.dtype.char not in CARRYING:
            continue
        if node.prim.kind == "pick":
            found[number] = _output(found.get(node.inputs[0]), node)
            continue
        operands: Any = [found.get(i) for i in node.inputs]
        if any(p is not None for p in operands):
            found[number] = rule_for(node)(Step(node, nodes, operands, concrete))
    return [found.get(n) for n in wanted]                              # type: ignore[misc]


def _output(bundle: list[Pattern | None] | Pattern | None, pick: Node) -> Pattern | None:
    """That of one output of a bundle; of a dense one, what all depend on."""
    if isinstance(bundle, Pattern):
        return bundle.moved(np.full(pick.aval.shape, bundle.rows.flat[0]))
    return None if bundle is None else bundle[pick.params["index"]]


def _needed(nodes: Sequence[Node], wanted: Iterable[int], known: Mapping[int, Any]) -> list[int]:
    """What is between the nodes that are known and those that are wanted, in order."""
    live: set[int] = set()
    stack = [n for n in wanted if n not in known]
    while stack:
        number = stack.pop()
        if number not in live:
            live.add(number)
            stack += [i for i in nodes[number].inputs if i not in known]
    return sorted(live)


# --- sets ------------------------------------------------------------------------------------------------

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


__all__ = ["Concrete", "Pattern", "Step", "Table", "empty", "of_matrix", "propagate", "stacked", "united", "units"]
