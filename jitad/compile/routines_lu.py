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
        """Replace the `k` columns of length n at `x` by the solutions."""
        code, n = self.code, self.n
        if self.own:
            code.loop(0, k, lambda c: self._solve_column(code.at(x, code.mul(c, n))))
        else:
            code.lapack("getrs", "N", n, k, self.lu, n, self.pivots, x, n, code.info)

    def invert(self, columns: Any) -> None:
        """Write the columns of the inverse."""
        code, n = self.code, self.n
        code.fill(columns, n * n, 0.0)
        code.loop(0, n, lambda j: code.store(code.number(1.0), columns, code.mul(j, n + 1)))
        self.solve(columns, n)

    def _solve_column(self, x: Any) -> None:
        code, n, lu = self.code, self.n, self.lu
        code.loop(0, n, lambda i: _swap(code, x, i, self._pivot(i)))

        def take(target: Index, source: Index) -> None:
            value = code.minus(code.load(x, target), code.load(lu, self._at(target, source)), code.load(x, source))
            code.store(value, x, target)

        def back(step: Index) -> None:
            j = code.sub(n - 1, step)
            code.store(code.over(code.load(x, j), code.load(lu, self._at(j, j))), x, j)
            code.loop(0, j, lambda i: take(i, j))
        code.loop(0, n, lambda j: code.loop(code.add(j, 1), n, lambda i: take(i, j)))
        code.loop(0, n, back)

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
    columns = code.work(n * k) if k > 1 else None

    def each(i: Index) -> None:
        right, x = code.at(b, code.mul(i, n * k)), code.at(out, code.mul(i, n * k))
        code.require(factors.factor(code.at(a, code.mul(i, n * n))))
        if k == 1:
            code.copy(x, right, n)
            factors.solve(x, 1)
        elif k:
            code.transposed(columns, right, n, k)
            factors.solve(columns, k)
            code.transposed(x, columns, k, n)
    _each(code, batch, n, each)


def inv(code: Code, out: Any, a: Any, batch: int, n: int, strict: int) -> None:
    """The inverse of each matrix; unless `strict`, NaN for those that have none."""
    if not n:
        return
    factors, columns = Factors(code, n), code.work(n * n)

    def inverted(x: Any) -> None:
        factors.invert(columns)
        code.transposed(x, columns, n, n)

    def each(i: Index) -> None:
        regular = factors.factor(code.at(a, code.mul(i, n * n)))
        x = code.at(out, code.mul(i, n * n))
        if strict:
            code.require(regular)
            inverted(x)
        else:
            code.branch(regular, lambda: inverted(x), lambda: code.fill(x, n * n, math.nan))
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
