"""Where a tape takes the logarithm of a sum of exponentials: ``log(sum(exp(x - m))) + m`` with m the maximum of x."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.tape.types import TABLE, Node

ROWS = {TABLE[name]: name for name in ("add", "eq", "exp", "isfinite", "log", "reduce_max", "reduce_sum", "select",
                                       "stop_gradient", "sub")}


@dataclass(frozen=True)
class LogSum:
    """Node `result` is the logarithm of the sum of the exponentials of node `terms` over `axes`. Where the sum is zero
    it is -inf if `guarded`, else NaN as infinities are. `keep` are shape and map of a view in which it is seen."""

    result: int
    terms: int
    axes: tuple[int, ...]
    guarded: bool
    keep: tuple[tuple[int, ...], Any] | None


class Uses:
    """Nodes and what reads them; `kept` are read from elsewhere, and `numbers` are inputs that are numbers."""

    def __init__(self, nodes: Sequence[Node], order: Sequence[int], kept: Collection[int],
                 numbers: Mapping[int, float]):
        self.nodes, self.order, self.numbers = nodes, order, numbers
        self.readers: dict[int, set[int]] = {n: {-1} for n in kept}
        for number in order:
            for i in nodes[number].inputs:
                self.readers.setdefault(i, set()).add(number)

    def only(self, number: int, *readers: int) -> bool:
        return self.readers.get(number, set()) <= set(readers)

    def made_by(self, number: int, name: str) -> Node | None:
        """The node, if it is of this row."""
        node = self.nodes[number]
        return node if ROWS.get(node.prim) == name else None

    def number(self, number: int) -> float | None:
        """The number that a node is everywhere."""
        node = self.nodes[number]
        if node.index_map is not None:
            number = node.inputs[0]
            node = self.nodes[number]
        known = self.numbers.get(number)
        if known is None and node.constant is not None and node.constant.shape == ():
            return float(node.constant)
        return known


def found_in(uses: Uses) -> dict[int, LogSum]:
    """The logarithms by their results."""
    found = (_at(uses, number) for number in uses.order if uses.made_by(number, "reduce_sum"))
    return {f.result: f for f in found if f is not None}


def _at(uses: Uses, total: int) -> LogSum | None:
    """That of the sum `total`."""
    node = uses.nodes[total]
    exp = node.inputs[0]
    if not uses.made_by(exp, "exp") or not uses.only(exp, total):
        return None
    below = uses.nodes[exp].inputs[0]
    if not uses.made_by(below, "sub") or not uses.only(below, exp):
        return None
    terms, shown = uses.nodes[below].inputs
    axes, shape = node.params["axes"], uses.nodes[terms].aval.shape
    lost = tuple((0, ((d, 1),) if shape[d] > 1 else ()) for d in range(len(shape)) if d not in axes)
    if uses.nodes[shown].index_map != lost or not uses.only(shown, below):
        return None
    top = uses.nodes[shown].inputs[0]
    guarded = _maximum(uses, top, terms, axes)
    if guarded is None:
        return None
    return _result(uses, total, LogSum(-1, terms, axes, guarded, None), top, shown)


def _maximum(uses: Uses, top: int, terms: int, axes: tuple[int, ...]) -> bool | None:
    """None unless `top` is the maximum of the terms; else whether it is 0 where that is infinite."""
    guarded = uses.made_by(top, "select")
    largest = top
    if guarded:
        finite, largest, zero = guarded.inputs
        if not uses.made_by(finite, "isfinite") or uses.nodes[finite].inputs[0] != largest or (
                uses.number(zero) != 0.0 or not uses.only(finite, top) or not uses.only(largest, finite, top)):
            return None
    node = uses.made_by(largest, "reduce_max")
    if node is None or node.params["axes"] != axes:
        return None
    of = node.inputs[0]
    if uses.made_by(of, "stop_gradient"):
        of = uses.nodes[of].inputs[0]
    return bool(guarded) if of == terms else None


def _result(uses: Uses, total: int, found: LogSum, top: int, shown: int) -> LogSum | None:
    """The sum's logarithm and the maximum added up, if nothing else comes of either."""
    readers = uses.readers[total]
    zeros = [r for r in readers if r >= 0 and uses.made_by(r, "eq")]
    rest = [r for r in readers if r not in zeros]
    if len(zeros) != found.guarded or len(rest) != 1 or rest[0] < 0:
        return None
    seen, keep = total, None
    if uses.nodes[rest[0]].index_map is not None and len(uses.readers.get(rest[0], ())) == 1:
        seen, = rest
        keep = (uses.nodes[seen].aval.shape, uses.nodes[seen].index_map)
        rest = list(uses.readers[seen])
    if rest[0] < 0 or not uses.made_by(rest[0], "log") or len(uses.readers[rest[0]]) != 1:
        return None
    log, (result,) = rest[0], uses.readers[rest[0]]
    if result < 0 or not uses.made_by(result, "add"):
        return None
    other = next((i for i in uses.nodes[result].inputs if i != log), None)
    if other is None or not _is_top(uses, other, top, keep, result):
        return None
    if not uses.only(top, shown, result if keep is None else other):
        return None
    if found.guarded:
        zero, (chosen,) = zeros[0], uses.readers[result] if len(uses.readers[result]) == 1 else (-1,)
        if chosen < 0 or keep is not None or not _is_guard(uses, zero, chosen, total, result):
            return None
        result = chosen
    return LogSum(result, found.terms, found.axes, found.guarded, keep)


def _is_top(uses: Uses, other: int, top: int, keep: Any, result: int) -> bool:
    """Whether `other` is the maximum, seen as the sum is seen."""
    if keep is None:
        return other == top
    node = uses.nodes[other]
    return (node.index_map is not None and node.inputs[0] == top and uses.only(other, result)
            and (node.aval.shape, node.index_map) == keep)


def _is_guard(uses: Uses, zero: int, chosen: int, total: int, result: int) -> bool:
    """Whether `chosen` is -inf where the sum is zero, else `result`."""
    choice = uses.made_by(chosen, "select")
    if choice is None or choice.inputs[0] != zero or choice.inputs[2] != result or not uses.only(zero, chosen):
        return False
    other = [i for i in uses.nodes[zero].inputs if i != total]
    return len(other) == 1 and uses.number(other[0]) == 0.0 and uses.number(choice.inputs[1]) == -np.inf


__all__ = ["LogSum", "Uses", "found_in"]
