"""Variants of a step, joined: one value for what each way gives, chosen by the branches on it.

Ways that begin alike are alike up to the branch at which they part. What follows is computed side by side and chosen
by `select` where that is cheap and cannot fail; else each side is a loop of at most one step. Sides that do the same
with different values become one that does it with the chosen value: after the branch the ways are one again. A side
that no step has gone yet is a *miss*.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jitad.primitives.core import select, zeros_like
from jitad.primitives.scan import loop, transplant
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Aval, Node

__all__ = ["Joint", "joined"]

CHEAP = 200               # cost up to which both sides are computed, if they cannot fail
DEEP = 300                # nodes above each other that are looked at
Path = Sequence[tuple[int, Any]]


@dataclass
class Joint:
    """The numbers of the joined outputs; that of whether the step went a known way, None if there is no other; and
    whether something in the step may fail."""

    outputs: list[int]
    ok: int | None
    can_fail: bool


def joined(recorder: Any, paths: Sequence[Path], outputs: Sequence[Sequence[int]], lasts: Sequence[bool],
           since: int, safe: Callable[[int], bool]) -> Joint:
    """Join the outputs of variants by their paths; `lasts` are those with which the loop ends. Nodes from `since` on
    belong to the step; `safe` says of one that may fail whether it does not."""
    work = _Join(recorder, since, safe)
    true = recorder.const(True).number
    found = work.node([_Way(*way) for way in zip(paths, [[*o, true] for o in outputs], lasts, strict=True)], 0)[0]
    *numbers, ok = found
    known = recorder.nodes[ok].constant is not None
    return Joint(numbers, None if known else ok, work.fails(found))


@dataclass
class _Way:
    path: Path
    outputs: list[int]
    last: bool


class _Join:
    def __init__(self, recorder: Any, since: int, safe: Callable[[int], bool]) -> None:
        self.recorder, self.since, self.safe = recorder, since, safe

    # --- the trie ---------------------------------------------------------------------------------
    def node(self, ways: list[_Way], depth: int) -> tuple[list[int], bool]:
        """What variants give that are alike up to their branch number `depth`, and whether the loop ends with all."""
        if len(ways) == 1 and len(ways[0].path) == depth:
            return ways[0].outputs, ways[0].last
        branch = ways[0].path[depth:depth + 1]
        sides: dict[Any, list[_Way]] = {}
        for way in ways:
            if not branch or len(way.path) <= depth or way.path[depth][0] != branch[0][0]:
                raise ValueError("steps go different ways where nothing was asked")
            sides.setdefault(way.path[depth][1], []).append(way)
        made = {outcome: self.node(side, depth + 1) for outcome, side in sides.items()}
        asked = Value(self.recorder, branch[0][0])
        last = all(ends for _, ends in made.values())
        if asked.dtype == bool:
            if len(made) == 2:
                return self.chosen(asked, made[True], made[False]), last
            (outcome, (found, _)), = made.items()
            return [*found[:-1], self._and(asked if outcome else TABLE["logical_not"](asked), found[-1])], last
        rest: Any = None
        for outcome, (found, ends) in made.items():
            same = TABLE["eq"](asked, outcome)
            rest = ([*found[:-1], self._and(same, found[-1])], ends) if rest is None else (
                self.chosen(same, (found, ends), rest), ends and rest[1])
        return rest[0], last

    def _and(self, a: Value, ok: int) -> int:
        return a.number if self.recorder.nodes[ok].constant is not None else TABLE["logical_and"](
            a, Value(self.recorder, ok)).number

    # --- one of two -------------------------------------------------------------------------------
    def chosen(self, flag: Value, one: tuple[list[int], bool], other: tuple[list[int], bool]) -> list[int]:
        """The outputs of one side where the flag holds, else of the other. Side by side with one that ends the loop the
        other is computed once more than need be, whatever it costs."""
        (yes, yes_ends), (no, no_ends) = one, other
        if yes == no:
            return yes
        both = self.cone(yes) & self.cone(no) | self.cone([flag.number])
        plan = _Plan(self.recorder.nodes, self.since, both)
        ends = [plan.of(a, b, 0) for a, b in zip(yes, no, strict=True)]
        pairs = list(plan.pairs)
        always = self.cone([flag.number, *plan.same]) | (
            self.cone([a for a, _ in pairs]) & self.cone([b for _, b in pairs]))
        found = dict(zip(pairs, self.selected(flag, pairs, always, (no_ends, yes_ends)), strict=True))
        done: dict[Any, int] = {}
        return [self.build(end, found, done) for end in ends]

    def build(self, end: Any, found: dict[Any, int], done: dict[Any, int]) -> int:
        if type(end) is int:
            return end
        if end.pair in found:
            return found[end.pair]
        known = done.get(end.pair)
        if known is None:
            node = self.recorder.nodes[end.pair[0]]
            inputs = [self.build(x, found, done) for x in end.inputs]
            known = done[end.pair] = self.recorder.apply(node.prim, inputs, node.params, node.where)
        return known

    def selected(self, flag: Value, pairs: list[tuple[int, int]], always: set[int],
                 once: tuple[bool, bool]) -> list[int]:
        """The chosen ones of pairs; `once` says of each side whether it is computed in vain no more than once."""
        recorder = self.recorder
        yes, no = ([Value(recorder, pair[side]) for pair in pairs] for side in (0, 1))
        alone = [self.cone([v.number for v in side]) - always for side in (yes, no)]
        dear = [self.is_dear(*side) for side in zip(alone, once, strict=True)]
        if not any(dear):
            return [select(broadcast_to(flag, a.shape), a, b).number for a, b in zip(yes, no, strict=True)]
        if all(dear):
            zeros = [zeros_like(a) for a in yes]
            no = self.if_holds(TABLE["logical_not"](flag), no, zeros, alone[1])
            return [v.number for v in self.if_holds(flag, yes, no, alone[0])]
        if dear[0]:
            return [v.number for v in self.if_holds(flag, yes, no, alone[0])]
        return [v.number for v in self.if_holds(TABLE["logical_not"](flag), no, yes, alone[1])]

    def if_holds(self, flag: Value, values: list[Value], others: list[Value], inside: set[int]) -> list[Value]:
        """`values` where the flag holds, and else `others`: a loop of at most one step, in which the nodes `inside`
        are computed."""
        recorder, body = self.recorder, Builder()
        nodes = recorder.nodes
        for i, v in enumerate([flag, *values]):
            body.input(Aval(v.shape, v.dtype), f"result{i}")
        reads: dict[int, None] = {}
        for n in (*inside, *(v.number for v in values)):
            for read in nodes[n].inputs if n in inside else (n,):
                if read not in inside and (nodes[read].constant is None or nodes[read].aval.size > 1):
                    reads[read] = None
        leaves = {n: body.input(nodes[n].aval, f"{nodes[n].prim}_{n}") for n in sorted(reads)}
        made = transplant(nodes, leaves, [v.number for v in values], body)
        tape = body.finish([body.value(body.inputs[0]), *made])
        still = [Value(recorder, n) for n in sorted(reads)]
        return loop(recorder, tape, [flag, *others], [], still, 1, until=True)[0][1:]

    def is_dear(self, numbers: set[int], once: bool) -> bool:
        cost = 0
        for n in numbers:
            node = self.recorder.nodes[n]
            cost += node.prim.cost * node.aval.size
            if (node.can_fail and not self.safe(n)) or (cost > CHEAP and not once):
                return True
        return False

    def cone(self, ends: Sequence[int]) -> set[int]:
        """What these are made of, in the step."""
        nodes, seen, stack = self.recorder.nodes, set[int](), list(ends)
        while stack:
            n = stack.pop()
            if n >= self.since and n not in seen and not nodes[n].is_leaf:
                seen.add(n)
                stack += nodes[n].inputs
        return seen

    def fails(self, ends: Sequence[int]) -> bool:
        nodes = self.recorder.nodes
        return any(nodes[n].can_fail and not self.safe(n) for n in self.cone(ends))


@dataclass(frozen=True)
class _Merged:
    """One application of a row in place of two."""

    pair: tuple[int, int]
    inputs: tuple[Any, ...]


class _Plan:
    """Which values are chosen, so that what both sides do alike is done once: `pairs` are chosen, `same` are operands
    that both have."""

    def __init__(self, nodes: Sequence[Node], since: int, before: set[int]) -> None:
        self.nodes, self.since, self.before = nodes, since, before
        self.pairs: dict[tuple[int, int], None] = {}
        self.same: dict[int, None] = {}
        self.known: dict[tuple[int, int], Any] = {}

    def of(self, a: int, b: int, depth: int) -> Any:
        if a == b:
            self.same[a] = None
            return a
        pair = (a, b)
        if pair not in self.known:
            self.known[pair] = self.alike(pair, depth) or self.pair(pair)
        return self.known[pair]

    def pair(self, pair: tuple[int, int]) -> Any:
        self.pairs[pair] = None
        return _Merged(pair, ())

    def alike(self, pair: tuple[int, int], depth: int) -> Any:
        x, y = self.nodes[pair[0]], self.nodes[pair[1]]
        if depth > DEEP or x.is_leaf or len(x.inputs) != len(y.inputs) or (
                (x.prim, dict(x.params)) != (y.prim, dict(y.params))):
            return None
        if any(n < self.since or n in self.before for n in pair):
            return None
        operands = [(self.nodes[i].aval, self.nodes[j].aval) for i, j in zip(x.inputs, y.inputs, strict=True)]
        if any((s.shape, s.dtype) != (t.shape, t.dtype) for s, t in operands):
            return None
        bundles = [i != j and s.dtype == object for (s, _), i, j in zip(operands, x.inputs, y.inputs, strict=True)]
        if any(bundles):                                 # of two loops, which are one or are not
            inner = self.known.get((x.inputs[0], y.inputs[0])) or self.alike((x.inputs[0], y.inputs[0]), depth + 1)
            if inner is None:
                return None
            self.known[x.inputs[0], y.inputs[0]] = inner
        return _Merged(pair, tuple(self.of(i, j, depth + 1) for i, j in zip(x.inputs, y.inputs, strict=True)))
