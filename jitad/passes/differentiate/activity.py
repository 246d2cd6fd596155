"""What derivatives flow through: floats, and the bundles of loops, which depend on what is differentiated; and by
which rules.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jitad.primitives.core import FLOATS
from jitad.primitives.rules import Rules
from jitad.tape.types import Node, Primitive

VJPS: Rules[Callable[..., Sequence[Any]]] = Rules()
JVPS: Rules[Callable[..., Any]] = Rules()
"""Rules as those of the rows, of rows whose derivatives are made by differentiation itself."""
CARRYING = FLOATS | {"O"}                        # dtypes of what has derivatives


def vjp_of(prim: Primitive) -> Callable[..., Sequence[Any]] | None:
    return prim.vjp or VJPS.of(prim)


def jvp_of(prim: Primitive) -> Callable[..., Any] | None:
    return prim.jvp or JVPS.of(prim)


def active_nodes(nodes: Sequence[Node], sources: Iterable[int], first: int = 0,
                 last: int | None = None) -> set[int]:
    """The nodes from `first` to `last` that depend on the nodes `sources` differentiably, and these."""
    found = set(sources)
    for number in range(first, len(nodes) if last is None else last + 1):
        node = nodes[number]
        if node.aval.dtype.char in CARRYING and not node.prim.stops and not found.isdisjoint(node.inputs):
            found.add(number)
    return found
