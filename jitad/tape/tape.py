"""The tape: an immutable list of primitive applications in SSA order."""
from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jitad.errors import TapeError
from jitad.tape.display import Page, describe, format_ends, format_nodes, inline
from jitad.tape.types import Guard, Node


@dataclass(frozen=True, eq=False)
class Tape:
    """Nodes in SSA order. `inputs` and `outputs` are node numbers; `names` are the inputs' names,
    `labels` the outputs'. Tapes that compute the same in the same way are equal, whatever their names
    and lines."""

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()

    def __len__(self) -> int:
        return len(self.nodes)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Tape) and self._hash == other._hash
                                 and self._content == other._content)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        nodes = tuple((n.prim, n.inputs, tuple(sorted(n.params.items())), n.aval) for n in self.nodes)
        return nodes, self.inputs, self.outputs, tuple(g[:2] for g in self.guards)

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    @property
    def named(self) -> dict[int, str]:
        """The names of the inputs by their numbers."""
        return dict(zip(self.inputs, self.names, strict=True))

    @cached_property
    def uses(self) -> tuple[tuple[int, ...], ...]:
        """For each node the nodes that read it."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for i in dict.fromkeys(node.inputs):
                users[i].append(number)
        return tuple(map(tuple, users))

    @cached_property
    def released(self) -> tuple[tuple[int, ...], ...]:
        """For each node the nodes that nothing reads after it: neither another node, nor a guard, nor the result."""
        last = {i: n for n, node in enumerate(self.nodes) for i in node.inputs}
        keep = {*self.outputs, *(g.node for g in self.guards)}
        found: list[list[int]] = [[] for _ in self.nodes]
        for i, n in last.items():
            if i not in keep:
                found[n].append(i)
        return tuple(map(tuple, found))

    def check(self) -> Tape:
        """Return the tape if it keeps its own rules, else raise `TapeError` with the node's surroundings."""
        for number, node in enumerate(self.nodes):
            if any(i >= number for i in node.inputs):
                raise TapeError(f"node %{number} reads a later node:\n{self.format(around=number)}")
            if node.is_leaf:
                continue
            expected = node.prim.infer(*(self.nodes[i].aval for i in node.inputs), **node.params)
            if (expected.shape, expected.dtype) != (node.aval.shape, node.aval.dtype):
                raise TapeError(f"node %{number} should be {expected}:\n{self.format(around=number)}")
        if any(not 0 <= o < len(self.nodes) for o in self.outputs):
            raise TapeError(f"an output is not on the tape: {self.outputs}")
        return self

    def format(self, around: int | None = None) -> str:
        """The tape as text, one node a line; with `around`, only the lines near that node."""
        near = range(len(self)) if around is None else range(max(around - 5, 0), min(around + 6, len(self)))
        shown = [n for n in near if not inline(self.nodes[n]) or n in self.outputs]
        return "\n".join([*format_nodes(self.nodes, self.named, shown),
                          *format_ends(self.nodes, self.named, self.outputs, self.labels,
                                       self.guards if around is None else ())])

    def describe(self, number: int) -> str:
        """What a node computes, shortened, on one line."""
        return describe(self.nodes, self.named, number)

    def page(self) -> Page:
        """The tape as text, which a notebook shows with colours."""
        return Page(self.format(), self.nodes)

    def __str__(self) -> str:
        return self.format()

    def _repr_html_(self) -> str:
        return self.page().html


def needed(nodes: Sequence[Node], wanted: Iterable[int], given: Container[int] = ()) -> bytearray:
    """For each node whether one of the `wanted` needs it; what the nodes `given` need is not needed for them."""
    found = bytearray(len(nodes))
    for number in wanted:
        found[number] = 1
    for number in range(len(nodes) - 1, -1, -1):
        if found[number] and number not in given:
            for i in nodes[number].inputs:
                found[i] = 1
    return found


def dependent(nodes: Sequence[Node], sources: Iterable[int]) -> set[int]:
    """The nodes that depend on the nodes `sources`, and these."""
    found = set(sources)
    for number, node in enumerate(nodes):
        if not found.isdisjoint(node.inputs):
            found.add(number)
    return found
