"""Sorting and places of true elements.

A sort works on integer keys that have the order of the numbers, NaN last. Lines are cut into runs of a few elements,
each of which is sorted by counting for every element how many come before it (no branch, all lanes busy); then runs are
merged in pairs, stably. Two runs of one length are merged from both ends at once, each end giving as many elements as
a run has: neither can run out before, so that there is nothing to check, and the two chains overlap in time.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.routines_code import BOOL, Code, Index
from jitad.compile.scalar_llvm import DOUBLE, INT64

RUN = 32                  # elements of a run that is sorted by counting


def argsort(code: Code, out: Any, x: Any, lines: int, n: int) -> None:
    """The places of the elements of each of the lines, in ascending order."""
    if not n or not lines:
        return
    levels = max(-(-n // RUN) - 1, 0).bit_length()
    sort = _Sort(code, n, levels)

    def line(i: Index) -> None:
        first = code.mul(i, n)
        sort.run(code.at(x, first), code.at(out, first))
    code.rolled(0, lines, line)


class _Sort:
    """The work memory for the sort of one line after another."""

    def __init__(self, code: Code, n: int, levels: int):
        self.code, self.n, self.levels = code, n, levels
        self.keys = code.work(n), code.work(n)
        self.spare = code.work(n if levels else 0)

    def run(self, x: Any, out: Any) -> None:
        code, n = self.code, self.n
        here, there = (self.keys[0], out), (self.keys[1], self.spare)
        if self.levels % 2:                              # then the last merge ends in `out`
            here, there = there, here
        code.loop(0, n, lambda i: code.store(_key(code, code.load(x, i)), there[0], i))
        code.loop(0, n, lambda start: self._counted(there[0], here, start, code.least(code.add(start, RUN), n)),
                  step=RUN)
        if self.levels:
            code.loop(0, self.levels, lambda level: self._merged(here, there, level))

    def _counted(self, keys: Any, target: Any, start: Index, stop: Index) -> None:
        """Put each element of a run where as many come before it."""
        code, b = self.code, self.code.builder

        def place(i: Index) -> None:
            mine = code.load(keys, i)

            def count(j: Index, before: Any) -> Any:
                other = code.load(keys, j)
                tie = b.and_(b.icmp_signed("==", other, mine), b.icmp_signed("<", j, i))
                return b.add(before, b.zext(b.or_(b.icmp_signed("<", other, mine), tie), INT64))
            at = code.folded(start, stop, start, count)
            code.store(mine, target[0], at)
            code.store(i, target[1], at)
        code.loop(start, stop, place)

    # --- merging -------------------------------------------------------------------------------
    def _merged(self, even: Any, odd: Any, level: Any) -> None:
        """All pairs of runs of one level, from the one pair of arrays to the other."""
        code, b, n = self.code, self.code.builder, self.n
        swapped = b.trunc(level, BOOL)
        source = [b.select(swapped, o, e) for e, o in zip(even, odd, strict=True)]
        target = [b.select(swapped, e, o) for e, o in zip(even, odd, strict=True)]
        width = b.shl(INT64(RUN), level)
        double = b.shl(width, INT64(1))
        pairs = b.udiv(INT64(n), double)
        code.loop(0, pairs, lambda pair: self._pair(source, target, b.mul(pair, double), width))
        rest = b.mul(pairs, double)
        self._tail(source, target, rest, code.least(b.add(rest, width), n))

    def _move(self, source: Any, target: Any, condition: Any, first: Any, second: Any, keys: Any, to: Any) -> None:
        code, b = self.code, self.code.builder
        code.store(b.select(condition, *keys), target[0], to)
        code.store(code.load(source[1], b.select(condition, first, second)), target[1], to)

    def _pair(self, source: Any, target: Any, start: Any, width: Any) -> None:
        """Two runs of one length, from both ends."""
        code, b = self.code, self.code.builder
        middle = b.add(start, width)
        last = b.sub(b.add(middle, width), INT64(1))
        front, back = code.slot(INT64), code.slot(INT64)             # how many of the left run were taken; of the right
        b.store(INT64(0), front)
        b.store(INT64(0), back)

        def step(t: Any) -> None:
            taken = b.load(front)
            i = b.add(start, taken)
            j = b.add(middle, b.sub(t, taken))
            left, right = code.load(source[0], i), code.load(source[0], j)
            as_small = b.icmp_signed("<=", left, right)
            self._move(source, target, as_small, i, j, (left, right), b.add(start, t))
            b.store(b.add(taken, b.zext(as_small, INT64)), front)
            taken = b.load(back)
            j = b.sub(last, taken)
            i = b.sub(b.sub(middle, INT64(1)), b.sub(t, taken))
            left, right = code.load(source[0], i), code.load(source[0], j)
            as_large = b.icmp_signed("<=", left, right)
            self._move(source, target, as_large, j, i, (right, left), b.sub(last, t))
            b.store(b.add(taken, b.zext(as_large, INT64)), back)
        code.loop(0, width, step)

    def _tail(self, source: Any, target: Any, start: Any, middle: Any) -> None:
        """A run and a shorter one, perhaps empty, up to the end of the line."""
        code, b, n = self.code, self.code.builder, self.n
        front = code.slot(INT64)
        b.store(start, front)

        def step(t: Any) -> None:
            i = b.load(front)
            j = b.add(middle, b.sub(t, i))
            some_left, some_right = b.icmp_signed("<", i, middle), b.icmp_signed("<", j, INT64(n))
            i_read = b.select(some_left, i, start)
            j_read = b.select(some_right, j, start)
            left, right = code.load(source[0], i_read), code.load(source[0], j_read)
            as_small = b.and_(some_left, b.or_(b.not_(some_right), b.icmp_signed("<=", left, right)))
            self._move(source, target, as_small, i_read, j_read, (left, right), t)
            b.store(b.add(i, b.zext(as_small, INT64)), front)
        code.loop(start, n, step)


def _key(code: Code, x: Any) -> Any:
    """An integer with the order of `x`: equal for both zeros, the largest for NaN."""
    b = code.builder
    if x.type == INT64:
        return x
    x = b.fadd(code.wide(x), DOUBLE(0.0))                            # -0.0 becomes 0.0
    bits = b.bitcast(x, INT64)
    below = b.lshr(b.ashr(bits, INT64(63)), INT64(1))                # all bits but the first, of negative numbers
    return b.select(b.fcmp_unordered("!=", x, x), INT64(2**63 - 1), b.xor(bits, below))


def positions(code: Code, out: Any, mask: Any, n: int, count: int) -> None:
    """The places of the first `count` true elements, then zeros."""
    b, spare = code.builder, code.slot(INT64)

    def step(i: Index, found: Any) -> Any:
        room = b.icmp_signed("<", found, INT64(count))
        b.store(code.integer(i), b.select(room, code.at(out, b.select(room, found, INT64(0))), spare))
        return b.add(found, b.zext(b.trunc(code.load(mask, i), BOOL), INT64))
    found = code.folded(0, n, INT64(0), step)
    code.loop(code.least(found, count), count, lambda i: code.store(INT64(0), out, i))


__all__ = ["argsort", "positions"]
