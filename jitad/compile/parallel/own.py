"""Which arrays hold, in each step of a loop, nothing but what that step has written: each step may have its own.

The step is gone through with numbers: an index is an array with a dimension for each loop around it. What is written at
places that depend on a loop is there once that loop has ended.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitad.compile.loops import (
    Accumulator,
    Assign,
    CallRoutine,
    Combine,
    Fill,
    Let,
    Loop,
    Return,
    SetElement,
    Statement,
    Update,
)
from jitad.tape.expr import Expr

DEPTH = 8                       # loops within each other that are seen through
LARGEST, MOST = 1 << 22, 1 << 18        # elements of an array; places of one index
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide, "mod": np.mod,
              "min": np.minimum}


def written_first(loop: Loop, sizes: Mapping[str, int]) -> set[str]:
    """Those of the arrays, whose indices do not depend on the step, of which a step reads what it has written."""
    start, last = loop.start, loop.start + (loop.stop - loop.start - 1) // loop.step * loop.step   # type: ignore
    return _Step(loop, start, sizes).found & _Step(loop, last, sizes).found       # the last may be shorter


class _Step:
    def __init__(self, loop: Loop, value: Any, sizes: Mapping[str, int]):
        self.written = {name: np.zeros(size, bool) for name, size in sizes.items() if size <= LARGEST}
        self.found = set(self.written)
        self.values: dict[str, Any] = {loop.variable: np.full((1,) * DEPTH, value)}
        self.pending: list[list[tuple[str, Any]]] = []              # for each loop around
        self.here: list[list[tuple[str, Any]]] = [[]]               # written in this step of the innermost loop
        self._statements(loop.body)

    def _statements(self, body: list[Statement]) -> None:
        for s in body:
            if isinstance(s, (Let, Accumulator)):
                expr = s.expr if isinstance(s, Let) else s.first
                self._reads(expr)
                self.values[s.name] = self._value(expr) if isinstance(s, Let) else None
            elif isinstance(s, (Combine, Assign)):
                self._reads(s.expr)
            elif isinstance(s, (SetElement, Update)):
                for e in (*s.index, s.expr):
                    self._reads(e)
                index = self._value(s.index[0]) if s.index else np.zeros((1,) * DEPTH, int)
                if isinstance(s, Update):
                    self._read(s.buffer, index)
                self._write(s.buffer, index)
            elif isinstance(s, Fill):
                if s.buffer in self.written:
                    self.written[s.buffer][:] = True
            elif isinstance(s, CallRoutine):
                whole, *read = s.buffers
                for name in read:
                    self._read(name, None)
                if whole in self.written:
                    self.written[whole][:] = True
            elif isinstance(s, Loop):
                self._loop(s)
            elif isinstance(s, Return):
                self._reads(s.condition)

    def _loop(self, s: Loop) -> None:
        ends = [b if isinstance(b, int) else self._value(b) for b in (s.start, s.stop)]
        depth = len(self.pending)
        if any(b is None or np.size(b) != 1 for b in ends) or depth == DEPTH:
            self.found.clear()
            return
        for b in (s.start, s.stop):
            if isinstance(b, Expr):
                self._reads(b)
        start, stop = (int(np.reshape(b, ())) for b in ends)
        steps = np.arange(start, stop, s.step)
        if not steps.size:
            return
        self.values[s.variable] = steps.reshape((1,) * depth + (-1,) + (1,) * (DEPTH - depth - 1))
        self.pending.append([])
        self.here.append([])
        self._statements(s.body)
        self.here.pop()
        for name, index in self.pending.pop():
            self.written[name][index] = True
        self.values[s.variable] = None

    def _write(self, name: str, index: Any) -> None:
        if name not in self.found:
            return
        if not self._fits(name, index):
            self.found.discard(name)
            return
        self.here[-1].append((name, index))
        loops = [d for d, n in enumerate(index.shape) if n > 1]
        if loops:
            self.pending[loops[0]].append((name, index.ravel()))
        else:
            self.written[name][index.ravel()] = True

    def _fits(self, name: str, index: Any) -> bool:
        return index is not None and index.size <= MOST and index.min() >= 0 and index.max() < self.written[name].size

    def _reads(self, expr: Expr) -> None:
        stack, seen = [expr], {id(expr)}
        while stack:
            e = stack.pop()
            if e.op == "load" and e.args[0] in self.found:
                self._read(e.args[0], self._value(e.args[1]) if e.args[1:] else np.zeros((1,) * DEPTH, int))
            further = [a for a in e.args if isinstance(a, Expr) and id(a) not in seen]
            seen |= set(map(id, further))
            stack += further

    def _read(self, name: str, index: Any) -> None:
        if name not in self.found or self.written[name].all():
            return
        if self._fits(name, index) and (self.written[name][index.ravel()].all() or any(
                name == known and np.array_equal(index, place) for known, place in self.here[-1])):
            return
        self.found.discard(name)

    def _value(self, e: Expr) -> Any:
        """An integer as an array; None if it depends on more than loops."""
        if e.op == "const":
            return np.full((1,) * DEPTH, e.args[0]) if isinstance(e.args[0], int) else None
        if e.op == "var":
            return self.values.get(e.args[0])
        if e.op not in ARITHMETIC:
            return None
        a, b = (self._value(x) for x in e.args)
        return None if a is None or b is None else ARITHMETIC[e.op](a, b)
