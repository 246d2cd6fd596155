"""Sorting, elements by rank, and places of true elements.

A sort works on integer keys that have the order of the numbers, NaN last. Of a few elements each is put where as many
come before it, which is counted (no branch, all lanes busy). More are sorted by one digit of the keys after the other,
the least first, each time stably: eight passes at most, whatever the data.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.llvm.ir import DOUBLE, INT64
from jitad.compile.routines.code import BOOL, Index, RoutineCode, registered

FEW = 64                  # elements up to which counting is faster
DIGITS, BITS = 8, 8       # of a key
VALUES = 1 << BITS
FINE_BITS = 11            # of parts of many elements: the sign, and all but one bit of the exponent
PARTS = 1 << FINE_BITS


@registered
def argsort(code: RoutineCode, out: Any, x: Any, lines: int, n: int) -> None:
    """The places of the elements of each of the lines, in ascending order."""
    if not n or not lines:
        return
    sort = _Counting(code, n) if n <= FEW else _Digits(code, n)

    def line(i: Index) -> None:
        first = code.mul(i, n)
        sort.run(code.at(x, first), code.at(out, first))
    code.rolled(0, lines, line)


class _Counting:
    """The sort of short lines."""

    def __init__(self, code: RoutineCode, n: int):
        self.code, self.n, self.keys = code, n, code.work(n)

    def run(self, x: Any, out: Any) -> None:
        code, b, n = self.code, self.code.builder, self.n
        code.loop(0, n, lambda i: code.store(_key(code, code.load(x, i)), self.keys, i))

        def place(i: Index) -> None:
            mine = code.load(self.keys, i)

            def count(j: Index, before: Any) -> Any:
                other = code.load(self.keys, j)
                tie = b.and_(b.icmp_signed("==", other, mine), b.icmp_signed("<", j, i))
                return b.add(before, b.zext(b.or_(b.icmp_signed("<", other, mine), tie), INT64))
            code.store(i, out, code.folded(0, n, INT64(0), count))
        code.loop(0, n, place)


class _Digits:
    """The sort of long lines. A digit that all keys share is passed over."""

    def __init__(self, code: RoutineCode, n: int):
        self.code, self.n = code, n
        self.keys, self.spare = (code.work(n), code.work(n)), code.work(n)
        self.counts = code.work(DIGITS * VALUES)

    def run(self, x: Any, out: Any) -> None:
        code, b, n, counts = self.code, self.code.builder, self.n, self.counts
        code.loop(0, DIGITS * VALUES, lambda i: code.store(INT64(0), counts, i))

        def first(i: Any) -> None:
            key = b.xor(_key(code, code.load(x, i)), INT64(-(1 << 63)))      # unsigned order
            code.store(key, self.keys[0], i)
            code.store(i, out, i)
            for digit in range(DIGITS):
                at = b.add(self._value(key, INT64(BITS * digit)), INT64(VALUES * digit))
                code.store(b.add(code.load(counts, at), INT64(1)), counts, at)
        code.loop(0, n, first)
        moved = code.slot(BOOL)                                  # whether the elements are in the second arrays
        b.store(BOOL(0), moved)

        def by_digit(digit: Any) -> None:
            swapped = b.load(moved)
            source = b.select(swapped, self.keys[1], self.keys[0]), b.select(swapped, self.spare, out)
            target = b.select(swapped, self.keys[0], self.keys[1]), b.select(swapped, out, self.spare)
            shift, base = b.mul(digit, INT64(BITS)), code.at(counts, b.mul(digit, INT64(VALUES)))
            shared = b.icmp_signed("==", code.load(base, self._value(code.load(source[0]), shift)), INT64(n))

            def scatter() -> None:
                self._scatter(source, target, shift, base)
                b.store(b.not_(swapped), moved)
            code.branch(b.not_(shared), scatter)
        code.loop(0, DIGITS, by_digit)
        code.branch(b.load(moved), lambda: code.copy(out, self.spare, n))

    def _value(self, key: Any, shift: Any) -> Any:
        b = self.code.builder
        return b.and_(b.lshr(key, shift), INT64(VALUES - 1))

    def _scatter(self, source: Any, target: Any, shift: Any, base: Any) -> None:
        """Each element goes to the next place for its digit."""
        code, b = self.code, self.code.builder

        def start(value: Index, total: Any) -> Any:
            count = code.load(base, value)
            code.store(total, base, value)
            return b.add(total, count)
        code.folded(0, VALUES, INT64(0), start)

        def move(i: Any) -> None:
            key = code.load(source[0], i)
            value = self._value(key, shift)
            at = code.load(base, value)
            code.store(b.add(at, INT64(1)), base, value)
            code.store(key, target[0], at)
            code.store(code.load(source[1], i), target[1], at)
        code.loop(0, self.n, move)


def _key(code: RoutineCode, x: Any) -> Any:
    """An integer with the order of `x`: equal for both zeros, the largest for NaN."""
    b = code.builder
    if x.type == INT64:
        return x
    x = b.fadd(code.wide(x), DOUBLE(0.0))                            # -0.0 becomes 0.0
    bits = b.bitcast(x, INT64)
    below = b.lshr(b.ashr(bits, INT64(63)), INT64(1))                # all bits but the first, of negative numbers
    return b.select(b.fcmp_unordered("!=", x, x), INT64(2**63 - 1), b.xor(bits, below))


@registered
def select_places(code: RoutineCode, out: Any, x: Any, ranks: Any, lines: int, n: int, count: int, stride: int) -> None:
    """The places of the elements of these ranks (`count` for each line, the next line's `stride` further)."""
    if not n or not lines or not count:
        return
    selection = _Selection(code, n)

    def line(i: Index) -> None:
        selection.read(code.at(x, code.mul(i, n)))

        def rank(j: Index) -> None:
            wanted = code.greatest(code.least(code.load(ranks, code.add(code.mul(i, stride), j)), n - 1), 0)
            code.store(selection.run(wanted), out, code.add(code.mul(i, count), j))
        code.rolled(0, count, rank)
    code.rolled(0, lines, line)


class _Selection:
    """What a rank is: the elements that may have it are divided by the leading bits in which their keys differ, and
    those of the part in which the rank lies are left, until all are equal, or the first or the last of them is it. A
    part has `BITS` bits less, so that nine rounds are enough."""

    def __init__(self, code: RoutineCode, n: int):
        self.code, self.n = code, n
        self.keys, self.places = code.work(n, INT64), code.work(n, INT64)
        self.left = code.work(n, INT64), code.work(n, INT64)     # keys and places of those that may be it
        self.fine = n > PARTS
        self.counts = code.work(PARTS if self.fine else VALUES, INT64)
        self.number, self.rank, self.found, self.part, self.smaller = (code.slot(INT64) for _ in range(5))

    def read(self, x: Any) -> None:
        code = self.code

        def element(i: Index) -> None:
            code.store(_key(code, code.load(x, i)), self.keys, i)
            code.store(code.integer(i), self.places, i)
        code.loop(0, self.n, element)

    def run(self, rank: Any) -> Any:
        """The place of the element of this rank."""
        code, b = self.code, self.code.builder
        b.store(INT64(self.n), self.number)
        b.store(rank, self.rank)
        b.store(INT64(-1), self.found)

        def further(round_: Index) -> None:
            first = b.icmp_signed("==", code.integer(round_), INT64(0))
            source = b.select(first, self.keys, self.left[0]), b.select(first, self.places, self.left[1])
            code.branch(b.icmp_signed("<", b.load(self.found), INT64(0)), lambda: self._round(*source))
        code.rolled(0, DIGITS + 1, further)
        return b.load(self.found)

    def _round(self, keys: Any, places: Any) -> None:
        code, b = self.code, self.code.builder
        number, rank = b.load(self.number), b.load(self.rank)

        def extreme(order: str) -> Any:
            def step(i: Index, best: Any) -> Any:
                key = code.load(keys, i)
                return b.select(b.icmp_signed(order, key, best), key, best)
            return code.folded(0, number, code.load(keys), step)
        least, greatest = extreme("<"), extreme(">")

        def last(target: Any) -> None:
            """The last of those that equal `target`, which has the greatest place."""
            b.store(code.folded(0, number, INT64(0), lambda i, found: b.select(
                b.icmp_signed("==", code.load(keys, i), target), code.load(places, i), found)), self.found)

        def divide() -> None:
            code.branch(b.icmp_signed("==", rank, b.sub(number, INT64(1))), lambda: last(greatest),
                        lambda: self._divide(keys, places, least, b.sub(greatest, least)))
        code.branch(b.icmp_signed("==", least, greatest), lambda: b.store(code.load(places, rank), self.found), divide)

    def _divide(self, keys: Any, places: Any, least: Any, span: Any) -> None:
        """Keep the elements of the part in which the rank lies."""
        code, b = self.code, self.code.builder
        number, rank = b.load(self.number), b.load(self.rank)
        parts: Any = INT64(VALUES)
        bits: Any = INT64(BITS)
        if self.fine:
            many = b.icmp_signed(">", number, INT64(PARTS))
            parts, bits = b.select(many, INT64(PARTS), parts), b.select(many, INT64(FINE_BITS), bits)
        name = "llvm.ctlz.i64"
        count_zeros = code.module.globals.get(name) or code.module.declare(name, INT64, [INT64, BOOL])
        width = b.sub(INT64(64), b.call(count_zeros, [span, BOOL(0)]))
        shift = b.select(b.icmp_signed(">", width, bits), b.sub(width, bits), INT64(0))

        def part(i: Index) -> Any:
            return b.lshr(b.sub(code.load(keys, i), least), shift)
        code.loop(0, parts, lambda i: code.store(INT64(0), self.counts, i))

        def count(i: Index) -> None:
            at = part(i)
            code.store(b.add(code.load(self.counts, at), INT64(1)), self.counts, at)
        code.loop(0, number, count)
        for slot in (self.part, self.smaller):
            b.store(INT64(0), slot)

        def passed(at: Index, total: Any) -> Any:
            """The parts before that of the rank, and the elements in them."""
            total = b.add(total, code.load(self.counts, at))
            before = b.icmp_signed("<=", total, rank)
            b.store(b.add(b.load(self.part), b.zext(before, INT64)), self.part)
            b.store(b.select(before, total, b.load(self.smaller)), self.smaller)
            return total
        code.folded(0, parts, INT64(0), passed)
        mine = b.load(self.part)

        def keep(i: Index, kept: Any) -> Any:
            chosen = b.icmp_signed("==", part(i), mine)
            code.store(code.load(keys, i), self.left[0], kept)
            code.store(code.load(places, i), self.left[1], kept)
            return b.add(kept, b.zext(chosen, INT64))
        b.store(code.folded(0, number, INT64(0), keep), self.number)
        b.store(b.sub(rank, b.load(self.smaller)), self.rank)


@registered
def positions(code: RoutineCode, out: Any, mask: Any, n: int, count: int) -> None:
    """The places of the first `count` true elements, then zeros."""
    b, spare = code.builder, code.slot(INT64)

    def step(i: Index, found: Any) -> Any:
        room = b.icmp_signed("<", found, INT64(count))
        b.store(code.integer(i), b.select(room, code.at(out, b.select(room, found, INT64(0))), spare))
        return b.add(found, b.zext(b.trunc(code.load(mask, i), BOOL), INT64))
    found = code.folded(0, n, INT64(0), step)
    code.loop(code.least(found, count), count, lambda i: code.store(INT64(0), out, i))


__all__ = ["argsort", "positions", "select_places"]
