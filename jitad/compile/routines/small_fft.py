"""What Fourier transforms are made of: roots of unity, complex numbers in memory, lanes, small transforms."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.compile.llvm.builder import CONTRACT
from jitad.compile.llvm.ir import DOUBLE, array, vector
from jitad.compile.routines.code import Index, RoutineCode

Pair = tuple[Any, Any]
PRIMES = (3, 5, 7, 11, 13)
LANES = (8, 4, 2)
LONGEST_TABLE = 1 << 13          # roots of unity in one table; beyond, products of two


# --- roots of unity ----------------------------------------------------------------------------

def roots(places: Any, n: int) -> Any:
    """``exp(-2 pi i k / n)`` to the last bit but one: angles are taken within an eighth of a turn."""
    k = np.asarray(places, dtype=object) % n if n > 1 << 30 else np.asarray(places, np.int64) % n
    octant, rest = np.divmod(8 * k, n)
    odd = octant % 2 == 1
    rest = np.where(odd, n - rest, rest).astype(np.float64)
    angle = rest * (math.pi / 4 / n)
    c, s = np.cos(angle), np.sin(angle)
    turn = octant.astype(np.int64)
    cosine = np.choose(turn, [c, s, -s, -c, -c, -s, s, c])
    sine = np.choose(turn, [s, c, c, s, -s, -c, -c, -s])
    return cosine - 1j * sine


def factors(n: int) -> list[int] | None:
    """The factors of the stages in order, those of two first; None if there are large primes."""
    twos, odd = 0, []
    while n % 2 == 0:
        n, twos = n // 2, twos + 1
    for p in PRIMES:
        while n % p == 0:
            n //= p
            odd.append(p)
    if n > 1:
        return None
    even = {0: [], 1: [2], 2: [4]}.get(twos)
    if even is None:
        even = [8] * (twos // 3) if twos % 3 == 0 else [8] * (twos // 3 - 1) + [4, 4] if twos % 3 == 1 else [8] * (
            twos // 3) + [4]
    return even + odd


def convolution_length(n: int) -> int:
    """The least product of 2, 3 and 5 from ``2n - 1`` on."""
    best = 1 << (2 * n - 2).bit_length()
    for five in (1, 5, 25):
        for three in (1, 3, 9):
            size = five * three
            while size < 2 * n - 1:
                size *= 2
            best = min(best, size)
    return best


# --- where complex numbers lie -----------------------------------------------------------------

class Parts:
    """Real and imaginary parts in two arrays."""

    def __init__(self, writer: LaneArithmetic, re: Any, im: Any):
        self.writer, self.re, self.im = writer, re, im

    def swapped(self) -> Parts:
        return Parts(self.writer, self.im, self.re)

    def load(self, i: Index, lanes: int) -> Pair:
        return self.writer.load(self.re, i, lanes), self.writer.load(self.im, i, lanes)

    def store(self, z: Pair, i: Index, lanes: int) -> None:
        self.writer.store(z[0], self.re, i, lanes)
        self.writer.store(z[1], self.im, i, lanes)


class Pairs:
    """Complex numbers as pairs of elements of one array, of the kernel's dtype. With `swap` the second is real."""

    def __init__(self, writer: LaneArithmetic, pointer: Any, swap: bool = False, limit: int | None = None):
        self.writer, self.pointer, self.swap, self.limit = writer, pointer, swap, limit

    def load(self, i: Index, lanes: int) -> Pair:
        code, b = self.writer.code, self.writer.code.builder
        at = code.mul(i, 2)
        if lanes == 1:
            pair = (code.wide(code.load(self.pointer, at)), code.wide(code.load(self.pointer, code.add(at, 1))))
        else:
            both = self.writer.load(self.pointer, at, 2 * lanes)
            even, odd = (b.shuffle_vector(both, both, range(start, 2 * lanes, 2)) for start in (0, 1))
            pair = even, odd
        return pair[::-1] if self.swap else pair

    def store(self, z: Pair, i: Index, lanes: int) -> None:
        code, b = self.writer.code, self.writer.code.builder
        at = code.mul(i, 2)
        first, second = z[::-1] if self.swap else z
        if lanes == 1:
            self.writer.store(first, self.pointer, at, 1)
            self.writer.store(second, self.pointer, code.add(at, 1), 1)
        else:
            order = [lane + half for lane in range(lanes) for half in (0, lanes)]
            self.writer.store(b.shuffle_vector(first, second, order), self.pointer, at, 2 * lanes)


class Reals:
    """Real numbers, as complex ones to read and without imaginary part to write."""

    def __init__(self, writer: LaneArithmetic, pointer: Any):
        self.writer, self.pointer = writer, pointer

    def load(self, i: Index, lanes: int) -> Pair:
        return self.writer.load(self.pointer, i, lanes), self.writer.constant(0.0, lanes)

    def store(self, z: Pair, i: Index, lanes: int) -> None:
        self.writer.store(z[0], self.pointer, i, lanes)


# --- arithmetic --------------------------------------------------------------------------------

class LaneArithmetic:
    """Arithmetic on float64 numbers or lanes of them; memory may be float32."""

    def __init__(self, code: RoutineCode):
        self.code = code

    def constant(self, x: float, lanes: int) -> Any:
        return DOUBLE(x) if lanes == 1 else vector(DOUBLE, lanes)([x] * lanes)

    def splat(self, x: Any, lanes: int) -> Any:
        return x if lanes == 1 else self.code.builder.splat(x, lanes)

    def load(self, pointer: Any, i: Index, lanes: int) -> Any:
        code, b = self.code, self.code.builder
        if lanes == 1:
            return code.wide(code.load(pointer, i))
        element = pointer.type.pointee
        value = b.load(b.bitcast(code.at(pointer, i), vector(element, lanes).as_pointer()),
                       align=8 if element is DOUBLE else 4)
        return value if element is DOUBLE else b.fpext(value, vector(DOUBLE, lanes))

    def store(self, value: Any, pointer: Any, i: Index, lanes: int) -> None:
        code, b = self.code, self.code.builder
        element = pointer.type.pointee
        if element is not DOUBLE:
            value = b.fptrunc(value, element if lanes == 1 else vector(element, lanes))
        if lanes == 1:
            code.store(value, pointer, i)
            return
        b.store(value, b.bitcast(code.at(pointer, i), vector(element, lanes).as_pointer()),
                align=8 if element is DOUBLE else 4)

    def add(self, a: Any, b: Any) -> Any:
        return self.code.builder.fadd(a, b, flags=CONTRACT)

    def sub(self, a: Any, b: Any) -> Any:
        return self.code.builder.fsub(a, b, flags=CONTRACT)

    def mul(self, a: Any, b: Any) -> Any:
        return self.code.builder.fmul(a, b, flags=CONTRACT)

    def plus(self, a: Pair, b: Pair) -> Pair:
        return self.add(a[0], b[0]), self.add(a[1], b[1])

    def minus(self, a: Pair, b: Pair) -> Pair:
        return self.sub(a[0], b[0]), self.sub(a[1], b[1])

    def times(self, a: Pair, b: Pair) -> Pair:
        return (self.sub(self.mul(a[0], b[0]), self.mul(a[1], b[1])),
                self.add(self.mul(a[0], b[1]), self.mul(a[1], b[0])))

    def by_minus_i(self, a: Pair) -> Pair:
        return a[1], self.code.builder.fneg(a[0])

    def table(self, z: Any) -> Parts:
        """Complex constants."""
        return Parts(self, *(self.numbers(part) for part in (z.real, z.imag)))

    def roots(self, n: int, count: int) -> Callable[[Index], Pair]:
        """The first `count` roots of unity of order n, by place: from one table, or as products from two."""
        code = self.code
        if count <= LONGEST_TABLE:
            known = self.table(roots(np.arange(count), n))
            return lambda place: known.load(place, 1)
        step = 1 << (count.bit_length() // 2)
        fine, coarse = self.table(roots(np.arange(step), n)), self.table(roots(np.arange(-(-count // step)) * step, n))

        def product(place: Index) -> Pair:
            place, by = code.integer(place), code.integer(step)
            high, low = code.builder.udiv(place, by), code.builder.urem(place, by)
            return self.times(fine.load(low, 1), coarse.load(high, 1))
        return product

    def numbers(self, values: Any) -> Any:
        module = self.code.module
        variable = module.constant(module.unique("jitad.roots"), array(DOUBLE, len(values))(values))
        return self.code.slots.bitcast(variable, DOUBLE.as_pointer())


# --- small transforms --------------------------------------------------------------------------

def small(w: LaneArithmetic, a: list[Pair], lanes: int) -> list[Pair]:
    """The transform of a few numbers."""
    r = len(a)
    if r == 2:
        return [w.plus(a[0], a[1]), w.minus(a[0], a[1])]
    if r == 4:
        even, odd = small(w, a[0::2], lanes), small(w, a[1::2], lanes)
        turned = w.by_minus_i(odd[1])
        return [w.plus(even[0], odd[0]), w.plus(even[1], turned), w.minus(even[0], odd[0]), w.minus(even[1], turned)]
    if r == 8:
        even, odd = small(w, a[0::2], lanes), small(w, a[1::2], lanes)
        half = w.constant(math.sqrt(0.5), lanes)
        one, three = odd[1], odd[3]
        odd[1] = w.mul(w.add(one[0], one[1]), half), w.mul(w.sub(one[1], one[0]), half)
        odd[2] = w.by_minus_i(odd[2])
        odd[3] = w.mul(w.sub(three[1], three[0]), half), w.mul(w.add(three[0], three[1]), w.constant(
            -math.sqrt(0.5), lanes))
        return [w.plus(e, o) for e, o in zip(even, odd, strict=True)] + [
            w.minus(e, o) for e, o in zip(even, odd, strict=True)]
    return _odd(w, a, lanes)


def _odd(w: LaneArithmetic, a: list[Pair], lanes: int) -> list[Pair]:
    """An odd number: cosines of sums, sines of differences."""
    r, half = len(a), len(a) // 2
    root = roots(np.arange(r), r)
    sums = [w.plus(a[j], a[r - j]) for j in range(1, half + 1)]
    differences = [w.minus(a[j], a[r - j]) for j in range(1, half + 1)]
    result: list[Any] = [a[0]] * r
    for s in sums:
        result[0] = w.plus(result[0], s)
    for k in range(1, half + 1):
        even, odd = a[0], None
        for j in range(1, half + 1):
            z = root[j * k % r]
            c, s = w.constant(z.real, lanes), w.constant(-z.imag, lanes)
            even = tuple(w.add(e, w.mul(x, c)) for e, x in zip(even, sums[j - 1], strict=True))
            term = tuple(w.mul(x, s) for x in differences[j - 1])
            odd = term if odd is None else tuple(w.add(o, t) for o, t in zip(odd, term, strict=True))
        assert odd is not None
        result[k] = w.add(even[0], odd[1]), w.sub(even[1], odd[0])
        result[r - k] = w.sub(even[0], odd[1]), w.add(even[1], odd[0])
    return result


