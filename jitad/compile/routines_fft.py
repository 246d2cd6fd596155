"""Fast Fourier transforms: Stockham's algorithm with factors 8, 4, 2 and odd primes up to 13, Bluestein's for others.

A stage of factor r takes elements ``x[q + s (p + m j)]``, j < r, transforms them, multiplies by ``w^(p k)`` and
stores them as ``y[q + s (r p + k)]``; s, the product of the factors before, grows, and the loop over q runs in lanes
(P. N. Swarztrauber, Parallel Computing 1 (1984) 45). Real transforms of even length are complex ones of half the
length; those of length n are done by a convolution of length 2n - 1 or more when n has a large prime factor
(L. I. Bluestein, IEEE Trans. AU 18 (1970) 451). In between, real and imaginary parts are in arrays of their own.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from jitad.compile.routines_code import CONTRACT, Code, Index
from jitad.compile.scalar_llvm import DOUBLE

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

    def __init__(self, writer: _Writer, re: Any, im: Any):
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

    def __init__(self, writer: _Writer, pointer: Any, swap: bool = False, limit: int | None = None):
        self.writer, self.pointer, self.swap, self.limit = writer, pointer, swap, limit

    def load(self, i: Index, lanes: int) -> Pair:
        code, b = self.writer.code, self.writer.code.builder
        at = code.mul(i, 2)
        if lanes == 1:
            pair = (code.wide(code.load(self.pointer, at)), code.wide(code.load(self.pointer, code.add(at, 1))))
        else:
            both = self.writer.load(self.pointer, at, 2 * lanes)
            pair = tuple(b.shuffle_vector(both, both, _mask(range(start, 2 * lanes, 2))) for start in (0, 1))
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
            self.writer.store(b.shuffle_vector(first, second, _mask(order)), self.pointer, at, 2 * lanes)


def _mask(places: Any) -> ir.Constant:
    places = list(places)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)


class Reals:
    """Real numbers, as complex ones to read and without imaginary part to write."""

    def __init__(self, writer: _Writer, pointer: Any):
        self.writer, self.pointer = writer, pointer

    def load(self, i: Index, lanes: int) -> Pair:
        return self.writer.load(self.pointer, i, lanes), self.writer.constant(0.0, lanes)

    def store(self, z: Pair, i: Index, lanes: int) -> None:
        self.writer.store(z[0], self.pointer, i, lanes)


# --- arithmetic --------------------------------------------------------------------------------

class _Writer:
    """Arithmetic on float64 numbers or lanes of them; memory may be float32."""

    def __init__(self, code: Code):
        self.code = code

    def constant(self, x: float, lanes: int) -> Any:
        return DOUBLE(x) if lanes == 1 else ir.Constant(ir.VectorType(DOUBLE, lanes), [x] * lanes)

    def splat(self, x: Any, lanes: int) -> Any:
        if lanes == 1:
            return x
        b, kind = self.code.builder, ir.VectorType(DOUBLE, lanes)
        one = b.insert_element(ir.Constant(kind, ir.Undefined), x, ir.IntType(32)(0))
        return b.shuffle_vector(one, one, _mask([0] * lanes))

    def load(self, pointer: Any, i: Index, lanes: int) -> Any:
        code, b = self.code, self.code.builder
        if lanes == 1:
            return code.wide(code.load(pointer, i))
        value = b.load(b.bitcast(code.at(pointer, i), ir.VectorType(pointer.type.pointee, lanes).as_pointer()))
        value.align = 8 if pointer.type.pointee == DOUBLE else 4
        return value if pointer.type.pointee == DOUBLE else b.fpext(value, ir.VectorType(DOUBLE, lanes))

    def store(self, value: Any, pointer: Any, i: Index, lanes: int) -> None:
        code, b = self.code, self.code.builder
        element = pointer.type.pointee
        if element != DOUBLE:
            value = b.fptrunc(value, element if lanes == 1 else ir.VectorType(element, lanes))
        if lanes == 1:
            code.store(value, pointer, i)
            return
        stored = b.store(value, b.bitcast(code.at(pointer, i), ir.VectorType(element, lanes).as_pointer()))
        stored.align = 8 if element == DOUBLE else 4

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
        kind = ir.ArrayType(DOUBLE, len(values))
        variable = ir.GlobalVariable(module, kind, module.get_unique_name("jitad.roots"))
        variable.linkage, variable.global_constant = "internal", True
        variable.initializer = ir.Constant(kind, [DOUBLE(float(v)) for v in values])
        return self.code.slots.bitcast(variable, DOUBLE.as_pointer())


# --- small transforms --------------------------------------------------------------------------

def small(w: _Writer, a: list[Pair], lanes: int) -> list[Pair]:
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


def _odd(w: _Writer, a: list[Pair], lanes: int) -> list[Pair]:
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


# --- transforms --------------------------------------------------------------------------------

class Transform:
    """The forward transform of length n, from something that can be loaded to something that can be stored."""

    def __init__(self, writer: _Writer, n: int):
        self.writer, self.n = writer, n
        self.stages = factors(n)
        code = writer.code
        if self.stages is None:
            self._prepare_convolution()
            return
        count = min(max(len(self.stages) - 1, 0), 2)
        self.between = [Parts(writer, code.work(n, DOUBLE), code.work(n, DOUBLE)) for _ in range(count)]
        self.twiddles: list[Callable[..., Pair]] = []
        s = 1
        for r in self.stages:
            self.twiddles.append(self._twiddles(r, n // (s * r), n // s))
            s *= r

    def _twiddles(self, r: int, m: int, n: int) -> Callable[..., Pair]:
        """``twiddle(p, k, lanes)``: the roots ``w^(p k)`` for p and the next ones, of order n."""
        w, code = self.writer, self.writer.code
        if m == 1:
            return lambda p, k, lanes: None                         # type: ignore[return-value]
        if n <= LONGEST_TABLE:
            p, k = np.meshgrid(np.arange(m), np.arange(1, r))
            known = w.table(roots((p * k).ravel(), n))
            return lambda p, k, lanes: known.load(code.add(p, (k - 1) * m), lanes)
        root = w.roots(n, n)
        return lambda p, k, lanes: root(code.mul(p, k))

    def run(self, source: Any, target: Any) -> None:
        if self.stages is None:
            self._convolve(source, target)
            return
        if not self.stages:
            target.store(source.load(0, 1), 0, 1)
            return
        s = 1
        for number, r in enumerate(self.stages):
            last = number == len(self.stages) - 1
            out = target if last else self.between[number % 2]
            self._stage(source, out, r, s, self.n // (s * r), self.twiddles[number])
            source, s = out, s * r

    def _stage(self, source: Any, target: Any, r: int, s: int, m: int, twiddle: Callable[..., Pair]) -> None:
        code, w = self.writer.code, self.writer
        lanes = next((n for n in LANES if s % n == 0), 1)

        def block(p: Index) -> None:
            factor = [twiddle(p, k, 1) for k in range(1, r)] if m > 1 else []
            spread = [tuple(w.splat(x, lanes) for x in f) for f in factor]

            def element(q: Index) -> None:
                taken = [source.load(code.add(code.mul(code.add(p, m * j), s), q), lanes) for j in range(r)]
                for k, z in enumerate(small(w, taken, lanes)):
                    if k and m > 1:
                        z = w.times(z, spread[k - 1])               # type: ignore[arg-type]
                    target.store(z, code.add(code.mul(code.add(code.mul(p, r), k), s), q), lanes)
            if s == lanes:
                element(0)
            else:
                code.loop(0, s, element, step=lanes)
        if m == 1:
            block(0)
        else:
            code.loop(0, m, block)

    # --- Bluestein ---------------------------------------------------------------------------
    def _prepare_convolution(self) -> None:
        n, w, code = self.n, self.writer, self.writer.code
        size = self.size = convolution_length(n)
        self.inner = Transform(w, size)
        places = np.arange(n, dtype=np.int64)
        chirp = roots(places * places % (2 * n), 2 * n)
        kernel = np.zeros(size, complex)
        kernel[:n] = chirp.conj()
        kernel[size - n + 1:] = chirp[:0:-1].conj()
        self.chirp, self.kernel = w.table(chirp), w.table(np.fft.fft(kernel) / size)
        self.first = Parts(w, code.work(size, DOUBLE), code.work(size, DOUBLE))
        self.second = Parts(w, code.work(size, DOUBLE), code.work(size, DOUBLE))

    def _convolve(self, source: Any, target: Any) -> None:
        n, w, code = self.n, self.writer, self.writer.code
        zero = w.constant(0.0, 1)
        code.loop(0, n, lambda i: self.first.store(w.times(source.load(i, 1), self.chirp.load(i, 1)), i, 1))
        code.loop(n, self.size, lambda i: self.first.store((zero, zero), i, 1))
        self.inner.run(self.first, self.second)
        code.loop(0, self.size, lambda i: self.first.store(
            w.times(self.second.load(i, 1), self.kernel.load(i, 1)), i, 1))
        self.inner.run(self.first.swapped(), self.second.swapped())
        code.loop(0, n, lambda i: target.store(w.times(self.second.load(i, 1), self.chirp.load(i, 1)), i, 1))


# --- the routines ------------------------------------------------------------------------------

def dft(code: Code, out: Any, x: Any, lines: int, n: int) -> None:
    _complex(code, out, x, lines, n, swap=False)


def idft(code: Code, out: Any, x: Any, lines: int, n: int) -> None:
    """The forward transform with real and imaginary parts exchanged before and after."""
    _complex(code, out, x, lines, n, swap=True)


def _complex(code: Code, out: Any, x: Any, lines: int, n: int, swap: bool) -> None:
    if not lines or not n:
        return
    w = _Writer(code)
    transform = Transform(w, n)

    def line(i: Index) -> None:
        at = code.mul(i, 2 * n)
        transform.run(Pairs(w, code.at(x, at), swap), Pairs(w, code.at(out, at), swap))
    code.rolled(0, lines, line)


def rdft(code: Code, out: Any, x: Any, lines: int, n: int) -> None:
    """Of even length by the complex transform Z of pairs: ``X[k] = (Z[k] + Z*[h-k]) / 2 + w^k (Z[k] - Z*[h-k]) / 2i``,
    h = n / 2."""
    if not lines:
        return
    w, half, count = _Writer(code), n // 2, n // 2 + 1
    transform = Transform(w, half if n % 2 == 0 else n)
    size = half if n % 2 == 0 else n
    whole = Parts(w, code.work(size, DOUBLE), code.work(size, DOUBLE))
    turn = w.roots(n, half) if n % 2 == 0 else None

    def line(i: Index) -> None:
        source, target = code.at(x, code.mul(i, n)), Pairs(w, code.at(out, code.mul(i, 2 * count)))
        if turn is None:
            transform.run(Reals(w, source), whole)
            code.loop(0, count, lambda k: target.store(whole.load(k, 1), k, 1))
            return
        transform.run(Pairs(w, source), whole)
        re, im = whole.load(0, 1)
        zero, by_half = w.constant(0.0, 1), w.constant(0.5, 1)
        target.store((w.add(re, im), zero), 0, 1)
        target.store((w.sub(re, im), zero), half, 1)

        def element(k: Index) -> None:
            a, b = whole.load(k, 1), whole.load(code.sub(half, k), 1)
            even = w.mul(w.add(a[0], b[0]), by_half), w.mul(w.sub(a[1], b[1]), by_half)
            odd = w.mul(w.add(a[1], b[1]), by_half), w.mul(w.sub(b[0], a[0]), by_half)
            target.store(w.plus(even, w.times(odd, turn(k))), k, 1)
        code.loop(1, half, element)
    code.rolled(0, lines, line)


def irdft(code: Code, out: Any, x: Any, lines: int, n: int) -> None:
    """Of even length backwards: ``Z[k] = (X[k] (1 + i w^-k) + X*[h-k] (1 - i w^-k)) / 2``."""
    if not lines:
        return
    w, half, count = _Writer(code), n // 2, n // 2 + 1
    even = n % 2 == 0
    size = half if even else n
    transform = Transform(w, size)
    whole = Parts(w, code.work(size, DOUBLE), code.work(size, DOUBLE))
    turn = w.roots(n, half) if even else None
    zero, by_half = w.constant(0.0, 1), w.constant(0.5, 1)

    def line(i: Index) -> None:
        source = Pairs(w, code.at(x, code.mul(i, 2 * count)))
        target = code.at(out, code.mul(i, n))
        if turn is None:
            code.loop(0, count, lambda k: whole.store(source.load(k, 1), k, 1))
            code.loop(count, n, lambda k: whole.store((zero, zero), k, 1))
            transform.run(whole.swapped(), Swapped(w, target))
            return
        first, last = source.load(0, 1)[0], source.load(half, 1)[0]
        whole.store((w.add(first, last), w.sub(first, last)), 0, 1)

        def element(k: Index) -> None:
            a, b = source.load(k, 1), source.load(code.sub(half, k), 1)
            b = b[0], code.builder.fneg(b[1])
            z = w.plus(w.plus(a, b), w.times(w.minus(a, b), turn(k)[::-1]))      # i w^-k
            whole.store((w.mul(z[0], by_half), w.mul(z[1], by_half)), k, 1)
        code.loop(1, half, element)
        transform.run(whole.swapped(), Pairs(w, target, swap=True))
    code.rolled(0, lines, line)


class Swapped(Reals):
    """Real numbers to write, of which the transform gives the imaginary parts."""

    def store(self, z: Pair, i: Index, lanes: int) -> None:
        self.writer.store(z[1], self.pointer, i, lanes)


__all__ = ["dft", "idft", "irdft", "rdft"]
