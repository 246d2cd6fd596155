"""Products of matrices in parts: rows of the result, or terms of its sums.

Of those that are loops of our own; BLAS has threads itself. A part is the same product of fewer rows, which lie one
after the other in memory; what does not fill a part is done at the end.
"""
from __future__ import annotations

from dataclasses import dataclass

from jitad.compile.loops import CallRoutine
from jitad.compile.routines.products.gemm import NARROW
from jitad.tape.expr import Expr, const

FLOP = 0.1                       # ns of a term of a sum


@dataclass(frozen=True)
class MatrixProduct:
    """``out[m, n] = op(a)[m, k] @ op(b)[k, n]``; `statement` has the operands the other way round if flipped."""

    statement: CallRoutine
    m: int
    n: int
    k: int
    transposed_a: bool
    transposed_b: bool
    flipped: bool

    @classmethod
    def of(cls, s: CallRoutine) -> MatrixProduct | None:
        """The product that a statement is; None if it is none of our own loops."""
        if s.routine != "gemm":
            return None
        m, n, k, *rest = map(int, s.numbers)
        ours = m and n and k and (n <= min(m, NARROW) or m <= NARROW)
        return cls(s, m, n, k, *map(bool, rest)) if ours else None

    @property
    def time(self) -> float:
        """ns on one core."""
        return FLOP * self.m * self.n * self.k

    @property
    def by_rows(self) -> bool:
        """Whether parts have rows of the result: those of `a` lie one after the other, and are many."""
        return not self.transposed_a and self.m > NARROW * 4 and self.n <= NARROW

    @property
    def by_terms(self) -> bool:
        """Whether parts have terms of the sums: those of both operands lie one after the other."""
        return self.transposed_a and not self.transposed_b and self.k > self.m * self.n

    def part(self, first: Expr | int, rows: int, out: str, start: Expr | int) -> CallRoutine:
        """The product of `rows` rows of `a` from `first` on, to `start` of `out`."""
        begin = first if isinstance(first, Expr) else const(first, "i8")
        to = start if isinstance(start, Expr) else const(start, "i8")
        _, *given = self.statement.buffers
        if self.by_rows:
            m, k = rows, self.k
            a, b = (begin * self.k, rows * self.k), (const(0, "i8"), self.k * self.n)
        else:
            m, k = self.m, rows
            a, b = (begin * self.m, rows * self.m), (begin * self.n, rows * self.n)
        pieces = ((to, m * self.n), *((b, a) if self.flipped else (a, b)))
        numbers = (m, self.n, k, self.transposed_a, self.transposed_b, self.flipped)
        return CallRoutine("gemm", (out, *given), tuple(map(int, numbers)), pieces)
