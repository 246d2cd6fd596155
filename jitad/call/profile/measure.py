"""A kernel with a clock in it is run, and what the clock says is brought to the user's lines.

What is measured are the groups of the plan: loops, calls of routines, loops of the user's. What shares a loop has no
time of its own; there the time is divided by what the operations cost by the table of primitives, times how often they
are done.
"""
from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jitad.call.profile.hints import advice
from jitad.compile.entry.arguments import argument_type
from jitad.compile.entry.timed import TimedKernel, routines_in
from jitad.compile.plan.fuse import FusionPlan, Group
from jitad.compile.plan.roots import Root
from jitad.tape.tape import Tape
from jitad.tape.types import DerivedWhere, Node, Where

LEAST, MOST, PATIENCE = 5, 2000, 0.3         # runs, and seconds of running from which on there are no more


class Work(NamedTuple):
    """A line of the user's code, None where none is known, in one of the sweeps."""

    where: Where | None
    derivative: bool


@dataclass(frozen=True)
class KernelPart:
    """A piece of a kernel that was measured: a loop, a call, or what is no loop.

    `operations` are the rows that share it, and how many of each; `lanes` the numbers that are computed at once;
    `shares` the fractions of its time by line; `nbytes` what is read and written.
    """

    kind: str
    steps: int
    seconds: float
    operations: tuple[str, ...]
    lanes: int
    routines: tuple[str, ...]
    nbytes: int
    shares: dict[Work, float]

    @property
    def places(self) -> list[Where]:
        """The lines, those with most of the time first."""
        ordered = sorted(self.shares, key=lambda work: -self.shares[work])
        return list(dict.fromkeys(work.where for work in ordered if work.where is not None))


class Measured(NamedTuple):
    """The parts of a kernel, how often it has run, the bytes of the arrays that each line makes, hints."""

    parts: list[KernelPart]
    runs: int
    memory: Counter[Work]
    hints: list[str]


def measured(tape: Tape, inputs: Sequence[Any], varying: Iterable[int], name: str) -> Measured:
    """Compile the tape with a clock, and run it; `varying` are the inputs that are differentiated."""
    kernel = TimedKernel(tape, tuple(map(argument_type, inputs)))
    seconds, runs = _timed(lambda: kernel.call(*inputs))
    reader = _Reader(kernel.plan)
    parts = [reader.part(group, *found) for group, *found in zip(
        kernel.plan.groups, seconds, kernel.lanes(), kernel.parts, strict=True)]
    memory = reader.memory(n for n in kernel.plan.materialised if kernel.plan.roots.get(n))
    hints = advice(kernel.plan, [part.seconds for part in parts], [part.lanes for part in parts],
                   {tape.inputs.index(n) for n in varying}, name)
    return Measured(parts, runs, memory, hints)


def _timed(call: Callable[[], Any]) -> tuple[np.ndarray, int]:
    """The seconds of each part, in the mean of the faster half of the runs, and how many runs there were."""
    call()
    before: list[int] = []
    ticks: list[np.ndarray] = []
    start = time.perf_counter()
    while len(ticks) < LEAST or (len(ticks) < MOST and time.perf_counter() - start < PATIENCE):
        before.append(time.perf_counter_ns())
        found = call()
        ticks.append(found[-1] if isinstance(found, tuple) else found)
    clock = np.array(ticks)
    rate = 1e-9 * (before[-1] - before[0]) / max(int(clock[-1, 0] - clock[0, 0]), 1)
    parts = np.diff(clock, axis=1)
    fast = np.argsort(parts.sum(axis=1), kind="stable")[:(len(parts) + 1) // 2]
    return parts[fast].mean(axis=0) * rate, len(parts)


class _Reader:
    """What the groups of a plan do."""

    def __init__(self, plan: FusionPlan):
        self.tape, self.made = plan.tape, plan.materialised

    def part(self, group: Group, seconds: float, lanes: int, statements: Sequence[Any]) -> KernelPart:
        weights: Counter[Work] = Counter()
        names: Counter[str] = Counter()
        for root in group.roots:
            for work, weight, name in self._done(root):
                weights[work] += weight                                  # type: ignore[assignment]
                names[name] += 1
        total = sum(weights.values())
        shares = {work: weight / total if total else 1.0 / len(weights) for work, weight in weights.items()}
        operations = tuple(f"{count} {name}" if count > 1 else name for name, count in names.items())
        steps = group.length or max((self._steps(root) for root in group.roots), default=0)
        return KernelPart(group.kind, steps, float(seconds), operations, lanes, tuple(routines_in(statements)),
                    self._bytes(group), shares or {Work(None, False): 1.0})

    def memory(self, made: Iterable[int]) -> Counter[Work]:
        """The bytes of the arrays that exist, by line."""
        found: Counter[Work] = Counter()
        for number in made:
            node = self.tape.nodes[number]
            if node.aval.ndim and not node.is_leaf and node.picks is None:
                found[self._work(node)] += _size(node) if node.body is None else 0
            elif node.picks is not None and node.aval.ndim:
                found[self._work(self.tape.nodes[node.inputs[0]])] += _size(node)
        return found

    def _work(self, node: Node, around: Work | None = None) -> Work:
        if node.where is None:                                           # what sums up derivatives of an argument
            return around or Work(None, True)
        return Work(Where(*node.where), isinstance(node.where, DerivedWhere) or bool(around and around.derivative))

    def _done(self, root: Root) -> Iterator[tuple[Work, float, str]]:
        """What a root computes: of each operation the line, the cost, and the name of its row."""
        own = root.node if isinstance(root.node, int) else root.node[1]
        nodes, points = self.tape.nodes, math.prod(root.extents)
        if nodes[own].body is not None:
            yield from self._in_loop(nodes[own], self._work(nodes[own]), 1.0)
            return
        done = sorted({n for n, _ in root.evaluated if n not in self.made and not nodes[n].is_leaf})
        if nodes[own].where is not None or (not done and not nodes[own].is_leaf):     # else it adds up what these give
            done.append(own)
        for number in done:
            yield self._work(nodes[number]), points * nodes[number].prim.cost, str(nodes[number].prim)

    def _in_loop(self, loop: Node, around: Work, times: float) -> Iterator[tuple[Work, float, str]]:
        times *= max(int(loop.params["length"]), 1)
        for node in loop.body.nodes:
            work = self._work(node, around)
            if node.body is not None:
                yield from self._in_loop(node, work, times)
            elif not node.is_leaf and node.picks is None:
                yield work, times * node.prim.cost * max(node.aval.size, 1), str(node.prim)

    def _steps(self, root: Root) -> int:
        node = self.tape.nodes[root.node] if isinstance(root.node, int) else None
        return int(node.params["length"]) if node is not None and node.body is not None else 0

    def _bytes(self, group: Group) -> int:
        """What is read and written, each element once."""
        nodes, moved = self.tape.nodes, dict[int, int]()
        for root in group.roots:
            points = math.prod(root.extents)
            if isinstance(root.node, int):
                node = nodes[root.node]
                for i in (root.node, *(node.inputs if group.kind in ("call", "scan") else ())):
                    moved[i] = _size(nodes[i])
                if node.body is not None:
                    moved.update((n, _size(nodes[n])) for n in self.tape.uses[root.node])
            for number, _ in root.reads:
                if isinstance(number, int):
                    aval = nodes[number].aval
                    moved[number] = max(moved.get(number, 0), min(aval.size, points) * aval.dtype.itemsize)
        return sum(moved.values())


def _size(node: Node) -> int:
    return node.aval.size * node.aval.dtype.itemsize if node.aval.ndim and node.aval.dtype != object else 0
