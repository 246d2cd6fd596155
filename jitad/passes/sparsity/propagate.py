"""Structural sparsity, read off the tape: which elements of a value may depend on which elements of others.

`propagate` walks the tape with a rule for each kind of row (`rules`, `custom`, `scan`); kinds without one are dense:
every element of the result may depend on all that any operand depends on. So a pattern is never too small, whatever
new rows there are.

The idea is that of propagating index sets (A. Griewank, A. Walther, "Evaluating Derivatives", 2nd ed. 2008, section
7.1).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.passes.differentiate.activity import CARRYING
from jitad.passes.sparsity.patterns import Pattern, Table, both, broadcast, over, stacked
from jitad.primitives.linalg.matrices import in_columns, leading
from jitad.primitives.rules import Rules
from jitad.tape.tape import Tape, needed
from jitad.tape.types import Node

Known = dict[int, "list[Pattern | None] | Pattern | None"]     # of a scan, a pattern for each output
Concrete = Callable[[int], "np.ndarray | None"]


@dataclass(frozen=True)
class Application:
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


Rule = Callable[[Application], "list[Pattern | None] | Pattern | None"]
rule: Rules[Rule] = Rules()


def propagate(nodes: Sequence[Node], wanted: Iterable[int], known: Mapping[int, Pattern],
              concrete: Concrete) -> list[Pattern | None]:
    """The patterns of the nodes `wanted`, where those of the nodes `known` are given and what does not depend on these
    is constant."""
    wanted = list(wanted)
    found: Known = dict(known)
    for number, matters in enumerate(needed(nodes, wanted, known)):
        node = nodes[number]
        if not matters or number in known or node.aval.dtype.char not in CARRYING or node.prim.stops:
            continue
        if node.picks is not None:
            found[number] = _output(found.get(node.inputs[0]), node)
            continue
        operands: Any = [found.get(i) for i in node.inputs]
        if any(p is not None for p in operands):
            found[number] = (rule.of(node.prim) or dense)(Application(node, nodes, operands, concrete))
    return [found.get(n) for n in wanted]                              # type: ignore[misc]


def _output(bundle: list[Pattern | None] | Pattern | None, pick: Node) -> Pattern | None:
    """That of one output of a bundle; of a dense one, what all depend on."""
    if isinstance(bundle, Pattern):
        return bundle.moved(np.full(pick.aval.shape, bundle.rows.flat[0]))
    return None if bundle is None else bundle[pick.picks]                   # type: ignore[index]


def constants_of(tape: Tape) -> Concrete:
    """The integers of a tape that are known: its constants."""
    return lambda number: tape.nodes[number].constant


def added(step: Application, parts: Sequence[Pattern | None]) -> Pattern | None:
    """The union of patterns of one shape."""
    some = [p for p in parts if p is not None]
    if len(some) < 2:
        return some[0] if some else None
    return both(*step.joint(some))


def dense(step: Application) -> Pattern | None:
    """Every element may depend on all that the operands depend on; example by example where the leading dimensions are
    a batch."""
    node, first = step.node, step.shapes[0]
    batch = first[:-node.prim.core] if node.prim.batch in (leading, in_columns) and node.aval.dtype != object else ()
    if any(shape[:len(batch)] != batch for shape in (*step.shapes, node.aval.shape)):
        batch = ()
    parts = [None if p is None else over(p, range(len(batch), p.rows.ndim)) for p in step.operands]
    found = added(step, parts)
    if found is None:
        return None
    return broadcast(found.moved(found.rows.reshape(batch + (1,) * (node.aval.ndim - len(batch)))), node.aval.shape)
