"""Fast Fourier transforms: Stockham's algorithm with factors 8, 4, 2 and odd primes up to 13, Bluestein's for others.

A stage of factor r takes elements ``x[q + s (p + m j)]``, j < r, transforms them, multiplies by ``w^(p k)`` and
stores them as ``y[q + s (r p + k)]``; s, the product of the factors before, grows, and the loop over q runs in lanes
(P. N. Swarztrauber, Parallel Computing 1 (1984) 45). Real transforms of even length are complex ones of half the
length; those of length n are done by a convolution of length 2n - 1 or more when n has a large prime factor
(L. I. Bluestein, IEEE Trans. AU 18 (1970) 451). In between, real and imaginary parts are in arrays of their own.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.compile.llvm.ir import DOUBLE
from jitad.compile.routines.code import Index, RoutineCode, registered
from jitad.compile.routines.small_fft import (
    LANES,
    LONGEST_TABLE,
    LaneArithmetic,
    Pair,
    Pairs,
    Parts,
    Reals,
    convolution_length,
    factors,
    roots,
    small,
)

# --- transforms --------------------------------------------------------------------------------

class Transform:
    """The forward transform of length n, from something that can be loaded to something that can be stored."""

    def __init__(self, writer: LaneArithmetic, n: int):
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

@registered
def dft(code: RoutineCode, out: Any, x: Any, lines: int, n: int) -> None:
    _complex(code, out, x, lines, n, swap=False)


@registered
def idft(code: RoutineCode, out: Any, x: Any, lines: int, n: int) -> None:
    """The forward transform with real and imaginary parts exchanged before and after."""
    _complex(code, out, x, lines, n, swap=True)


def _complex(code: RoutineCode, out: Any, x: Any, lines: int, n: int, swap: bool) -> None:
    if not lines or not n:
        return
    w = LaneArithmetic(code)
    transform = Transform(w, n)

    def line(i: Index) -> None:
        at = code.mul(i, 2 * n)
        transform.run(Pairs(w, code.at(x, at), swap), Pairs(w, code.at(out, at), swap))
    code.rolled(0, lines, line)


@registered
def rdft(code: RoutineCode, out: Any, x: Any, lines: int, n: int) -> None:
    """Of even length by the complex transform Z of pairs: ``X[k] = (Z[k] + Z*[h-k]) / 2 + w^k (Z[k] - Z*[h-k]) / 2i``,
    h = n / 2."""
    if not lines:
        return
    w, half, count = LaneArithmetic(code), n // 2, n // 2 + 1
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


@registered
def irdft(code: RoutineCode, out: Any, x: Any, lines: int, n: int) -> None:
    """Of even length backwards: ``Z[k] = (X[k] (1 + i w^-k) + X*[h-k] (1 - i w^-k)) / 2``."""
    if not lines:
        return
    w, half, count = LaneArithmetic(code), n // 2, n // 2 + 1
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
