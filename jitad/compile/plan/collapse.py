"""Loops over several dimensions that walk through memory as one loop would.

``n * a + b`` over two matrices stored by rows needs no loop for each dimension: one loop over all elements has longer
vectors and a single rest.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jitad.compile.plan.index import Affine, Indices, flattened
from jitad.compile.plan.pull import Pull
from jitad.compile.plan.roots import Root
from jitad.tape.tape import Tape


@dataclass(frozen=True)
class Addressing:
    """What tells how elements are found. `flat(node)`: whether an existing value is addressed by the flat index."""

    tape: Tape
    pull: Pull
    flat: Callable[[int], bool]


def collapse(roots: Sequence[Root], memory: Addressing) -> None:
    """Merge neighbouring loops of `roots`, which have the same loops, where that is the same walk for all of them."""
    if not all(root.kind in ("map", "reduce", "update") and root.factor is None and not root.separate
               and isinstance(root.node, int) for root in roots):
        return
    place = len(roots[0].order) - 2
    while place >= 0:
        if all(_mergeable(root, place, memory) for root in roots):
            for root in roots:
                _merge(root, place)
        place -= 1


def _merge(root: Root, place: int) -> None:
    """Let the inner dimension run over both; the outer index stays 0."""
    outer, inner = root.order[place: place + 2]
    extents = list(root.extents)
    extents[outer], extents[inner] = 1, extents[outer] * extents[inner]
    root.extents = tuple(extents)
    root.order = (*root.order[:place], *root.order[place + 1:])
    if root.axis == outer:
        root.axis = inner


def _mergeable(root: Root, place: int, memory: Addressing) -> bool:
    """Whether one step outside is, for all that the root reads and writes, as far as a whole inner loop."""
    outer, inner = root.order[place: place + 2]
    length = root.extents[inner]
    names = {d: f"d{d}" for d in root.order}
    tape = memory.tape

    def steady(at: Indices, shape: tuple[int, ...], flat: bool) -> bool:
        if not all(isinstance(i, Affine) for i in at):
            return False
        steps = dict(flattened(at, shape).terms)                    # type: ignore[union-attr]
        if not flat and any(names[d] in i.variables for d in (outer, inner) for i in at):    # type: ignore[union-attr]
            return False
        return steps.get(names[outer], 0) == length * steps.get(names[inner], 0)

    assert isinstance(root.node, int)
    if any(tape.nodes[number].prim.counting for number in (root.node, *(n for n, _ in root.evaluated))):
        return False
    target = root.target(memory.pull, root.at(names))
    return steady(target, tape.nodes[root.node].aval.shape, True) and all(
        isinstance(number, int) and steady(at, tape.nodes[number].aval.shape, memory.flat(number))
        for number, at in root.reads)
