"""General systems, inverses and determinants, by LU factors with partial pivoting as in NumPy.

The factored copy is column-major, for LAPACK and for the loops of our own that small matrices run.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitad.compile.routines_code import BOOL, INT32, Code, Index
from jitad.compile.scalar_llvm import DOUBLE

LU_UNROLLED, LU_LOOPS = 2, 16                 # sides up to which code of our own is faster than LAPACK
SAFE = 1e-280, 1e280                          # partial products of pivots that have lost no digits


class Factors:
    """The LU factors of one matrix after another, in the same memory."""

    def __init__(self, code: Code, n: int):
        self.code, self.n = code, n
        self.own = n <= LU_LOOPS
        self.lu, self.pivots = code.work(n * n), code.work(n, INT32)
        self.regular = code.slot(BOOL)

    def factor(self, a: Any) -> Any:
        """Factor `a`; the value says whether all pivots are nonzero."""
        code, n = self.code, self.n
        code.transposed(self.lu, a, n, n)
        if not self.own:
            code.lapack("getrf", n, n, self.lu, n, self.pivots, code.info)
            return code.succeeded()
        code.builder.store(BOOL(1), self.regular)
        code.loop(0, n, self._column)
        return code.builder.load(self.regular)

    def _at(self, i: Index, j: Index) -> Index:
        return self.code.add(i, self.code.mul(j, self.n))

    def _column(self, j: Index) -> None:
        code, n, lu = self.code, self.n, self.lu

        def larger(i: Index, best: Any) -> Any:
            mine = code.magnitude(code.load(lu, self._at(i, j)))
            known = code.magnitude(code.load(lu, self._at(best, j)))
            return code.builder.select(code.builder.fcmp_ordered(">", mine, known), code.integer(i), best)

        following = code.add(j, 1)
        pivot = code.folded(following, n, code.integer(j), larger)
        code.store(code.builder.trunc(code.builder.add(pivot, code.integer(1)), INT32), self.pivots, j)
        code.loop(0, n, lambda c: _swap(code, lu, self._at(j, c), self._at(pivot, c)))
        head = code.load(lu, self._at(j, j))
        fine = code.builder.fcmp_unordered("!=", head, code.number(0.0))
        code.builder.store(code.builder.and_(fine, code.builder.load(self.regular)), self.regular)
        scale = code.over(code.number(1.0), head)
        code.loop(following, n, lambda i: code.store(
            code.times(code.load(lu, self._at(i, j)), scale), lu, self._at(i, j)))

        def update(c: Index) -> None:
            above = code.load(lu, self._at(j, c))
            code.loop(following, n, lambda i: code.store(code.minus(
                code.load(lu, self._at(i, c)), code.load(lu, self._at(i, j)), above), lu, self._at(i, c)))
        code.loop(following, n, update)

    def solve(self, x: Any, k: int) -> None:
        """Replace the row-major right-hand sides at `x`, `k` columns, by the solutions.

        Two triangular solves rather than LAPACK's getrs, which OpenBLAS runs in threads at any size."""
        code, n = self.code, self.n

        def each(i: Index) -> None:
            first, second = code.mul(i, k), code.mul(self._pivot(i), k)
            code.loop(0, k, lambda c: _swap(code, x, code.add(first, c), code.add(second, c)))
        code.loop(0, n, each)
        if self.own:
            self._substitute(x, k)
        elif k == 1:
            code.lapack("trsv", "L", "N", "U", n, self.lu, n, x, 1)
            code.lapack("trsv", "U", "N", "N", n, self.lu, n, x, 1)
        else:
            code.lapack("trsm", "R", "L", "T", "U", k, n, 1.0, self.lu, n, x, k)
            code.lapack("trsm", "R", "U", "T", "N", k, n, 1.0, self.lu, n, x, k)

    def _substitute(self, x: Any, k: int) -> None:
        code, n, lu = self.code, self.n, self.lu

        def take(i: Index, j: Index) -> None:
            factor, mine, row = code.load(lu, self._at(i, j)), code.mul(i, k), code.mul(j, k)
            code.loop(0, k, lambda c: code.store(code.minus(
                code.load(x, code.add(mine, c)), factor, code.load(x, code.add(row, c))), x, code.add(mine, c)))

        def back(step: Index) -> None:
            j = code.sub(n - 1, step)
            row, pivot = code.mul(j, k), code.load(lu, self._at(j, j))
            code.loop(0, k, lambda c: code.store(code.over(
                code.load(x, code.add(row, c)), pivot), x, code.add(row, c)))
            code.loop(0, j, lambda i: take(i, j))
        code.loop(0, n, lambda j: code.loop(code.add(j, 1), n, lambda i: take(i, j)))
        code.loop(0, n, back)

    def invert(self, x: Any) -> None:
        """Write the inverse, row-major."""
        code, n = self.code, self.n
        code.fill(x, n * n, 0.0)
        code.loop(0, n, lambda j: code.store(code.number(1.0), x, code.mul(j, n + 1)))
        self.solve(x, n)

    def _pivot(self, i: Index) -> Any:
        code = self.code
        return code.sub(code.builder.sext(code.load(self.pivots, i), code.integer(0).type), 1)

    def diagonal(self, i: Index) -> Any:
        """A pivot, as float64."""
        return self.code.wide(self.code.load(self.lu, self._at(i, i)))

    def parity(self) -> Any:
        """The sign of the permutation, as float64."""
        code = self.code

        def body(i: Index, sign: Any) -> Any:
            moved = code.builder.icmp_signed("!=", self._pivot(i), code.integer(i))
            return code.builder.select(moved, code.builder.fneg(sign), sign)
        return code.folded(0, self.n, DOUBLE(1.0), body)


def _swap(code: Code, p: Any, i: Index, j: Index) -> None:
    first, second = code.load(p, i), code.load(p, j)
    code.store(second, p, i)
    code.store(first, p, j)


def _each(code: Code, batch: int, n: int, body: Callable[[Index], None]) -> None:
    code.unrolled = n <= LU_UNROLLED
    code.rolled(0, batch, body)


def solve(code: Code, out: Any, a: Any, b: Any, batch: int, n: int, k: int) -> None:
    """``a @ out = b`` for each matrix."""
    if not n:
        return
    factors = Factors(code, n)

    def each(i: Index) -> None:
        x = code.at(out, code.mul(i, n * k))
        code.require(factors.factor(code.at(a, code.mul(i, n * n))))
        code.copy(x, code.at(b, code.mul(i, n * k)), n * k)
        if k:
            factors.solve(x, k)
    _each(code, batch, n, each)


def inv(code: Code, out: Any, a: Any, batch: int, n: int, strict: int = 1) -> None:
    """The inverse of each matrix; unless `strict`, NaN for those that have none."""
    if not n:
        return
    factors = Factors(code, n)

    def each(i: Index) -> None:
        regular = factors.factor(code.at(a, code.mul(i, n * n)))
        x = code.at(out, code.mul(i, n * n))
        if strict:
            code.require(regular)
            factors.invert(x)
        else:
            code.branch(regular, lambda: factors.invert(x), lambda: code.fill(x, n * n, math.nan))
    _each(code, batch, n, each)


def determinant(code: Code, factors: Factors) -> tuple[Any, Any]:
    """The product of the pivots as float64, and whether it has lost no digits to the range of floats."""
    safe, fabs = code.slot(BOOL), code.module.declare_intrinsic("llvm.fabs", [DOUBLE])
    code.builder.store(BOOL(1), safe)

    def multiply(j: Index, product: Any) -> Any:
        product = code.builder.fmul(product, factors.diagonal(j))
        size = code.builder.call(fabs, [product])
        inside = code.builder.and_(code.builder.fcmp_ordered(">", size, DOUBLE(SAFE[0])),
                                   code.builder.fcmp_ordered("<", size, DOUBLE(SAFE[1])))
        code.builder.store(code.builder.and_(inside, code.builder.load(safe)), safe)
        return product
    return code.folded(0, factors.n, factors.parity(), multiply), code.builder.load(safe)


def det(code: Code, out: Any, a: Any, batch: int, n: int) -> None:
    """The determinant of each matrix, zero where a pivot is zero; by logarithms where the product of pivots leaves
    the range of floats on the way."""
    factors, result = Factors(code, n), code.slot(DOUBLE)

    def by_logarithms() -> None:
        size = code.math("exp", log_of(code, factors))
        code.builder.store(code.builder.fmul(size, sign_of(code, factors)), result)

    def each(i: Index) -> None:
        regular = factors.factor(code.at(a, code.mul(i, n * n)))
        product, safe = determinant(code, factors)
        code.builder.store(code.builder.select(regular, product, DOUBLE(0.0)), result)
        code.branch(code.builder.and_(regular, code.builder.not_(safe)), by_logarithms)
        code.store(code.narrow(code.builder.load(result)), out, i)
    _each(code, batch, n, each)


def log_of(code: Code, factors: Factors) -> Any:
    """The sum of the logarithms of the pivots' magnitudes."""
    fabs = code.module.declare_intrinsic("llvm.fabs", [DOUBLE])

    def body(j: Index, total: Any) -> Any:
        return code.builder.fadd(total, code.math("log", code.builder.call(fabs, [factors.diagonal(j)])))
    return code.folded(0, factors.n, DOUBLE(0.0), body)


def sign_of(code: Code, factors: Factors) -> Any:
    def body(j: Index, sign: Any) -> Any:
        negative = code.builder.fcmp_ordered("<", factors.diagonal(j), DOUBLE(0.0))
        return code.builder.select(negative, code.builder.fneg(sign), sign)
    return code.folded(0, factors.n, factors.parity(), body)


def slogdet_sign(code: Code, out: Any, a: Any, batch: int, n: int) -> None:
    """The sign of each determinant."""
    _of_factors(code, out, a, batch, n, sign_of, 0.0)


def slogdet_log(code: Code, out: Any, a: Any, batch: int, n: int) -> None:
    """The logarithm of each determinant's magnitude."""
    _of_factors(code, out, a, batch, n, log_of, -math.inf)


def _of_factors(code: Code, out: Any, a: Any, batch: int, n: int, value: Callable[[Code, Factors], Any],
                singular: float) -> None:
    factors = Factors(code, n)

    def each(i: Index) -> None:
        regular = factors.factor(code.at(a, code.mul(i, n * n)))
        code.store(code.narrow(code.builder.select(regular, value(code, factors), DOUBLE(singular))), out, i)
    _each(code, batch, n, each)
