"""General systems, inverses and determinants, from a matrix or from factors that several of them share."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitad.compile.llvm.ir import DOUBLE
from jitad.compile.routines.code import BOOL, Index, RoutineCode, registered
from jitad.compile.routines.lu import LU_UNROLLED, Factors

SAFE = 1e-280, 1e280                          # partial products of pivots that have lost no digits


def _each(code: RoutineCode, batch: int, n: int, body: Callable[[Index], None]) -> None:
    code.unrolled = n <= LU_UNROLLED
    code.rolled(0, batch, body)


@registered
def solve(code: RoutineCode, out: Any, a: Any, b: Any, batch: int, n: int, k: int) -> None:
    """``a @ out = b`` for each matrix."""
    _solve(code, out, a, b, batch, n, k, FactorSource(code, n))


@registered
def inv(code: RoutineCode, out: Any, a: Any, batch: int, n: int, strict: int = 1) -> None:
    """The inverse of each matrix; unless `strict`, NaN for those that have none."""
    _inv(code, out, a, batch, n, strict, FactorSource(code, n))


@registered
def det(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """The determinant of each matrix, zero where a pivot is zero."""
    _det(code, out, a, batch, n, FactorSource(code, n))


@registered
def slogdet_sign(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """The sign of each determinant."""
    _of_factors(code, out, a, batch, n, sign_of, 0.0, FactorSource(code, n))


@registered
def slogdet_log(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """The logarithm of each determinant's magnitude."""
    _of_factors(code, out, a, batch, n, log_of, -math.inf, FactorSource(code, n))


@registered
def factor(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """Factors of each matrix, for `solve_factored` and the like."""
    if not n:
        return
    factors = Factors(code, n, given=True)

    def each(i: Index) -> None:
        factors.at(code.at(out, code.mul(i, n * (n + Factors.LENGTH))))
        factors.factor(code.at(a, code.mul(i, n * n)))
        factors.keep()
    _each(code, batch, n, each)


@registered
def solve_factored(code: RoutineCode, out: Any, f: Any, b: Any, batch: int, n: int, k: int, trans: int) -> None:
    """``op(a) @ out = b`` for the factors of each a."""
    _solve(code, out, f, b, batch, n, k, FactorSource(code, n, True), bool(trans))


@registered
def inv_factored(code: RoutineCode, out: Any, f: Any, batch: int, n: int, strict: int) -> None:
    _inv(code, out, f, batch, n, strict, FactorSource(code, n, True))


@registered
def det_factored(code: RoutineCode, out: Any, f: Any, batch: int, n: int) -> None:
    _det(code, out, f, batch, n, FactorSource(code, n, True))


@registered
def slogdet_sign_factored(code: RoutineCode, out: Any, f: Any, batch: int, n: int) -> None:
    _of_factors(code, out, f, batch, n, sign_of, 0.0, FactorSource(code, n, True))


@registered
def slogdet_log_factored(code: RoutineCode, out: Any, f: Any, batch: int, n: int) -> None:
    _of_factors(code, out, f, batch, n, log_of, -math.inf, FactorSource(code, n, True))


class FactorSource:
    """Where factors come from: made of a matrix, or kept."""

    def __init__(self, code: RoutineCode, n: int, kept: bool = False):
        self.code, self.n, self.kept = code, n, kept
        self.factors = Factors(code, n, given=kept)

    def take(self, pointer: Any, i: Index) -> Any:
        """Have the factors of the i-th matrix; the value says whether all pivots are nonzero."""
        rows = self.n + (Factors.LENGTH if self.kept else 0)
        here = self.code.at(pointer, self.code.mul(i, self.n * rows))
        if not self.kept:
            return self.factors.factor(here)
        self.factors.at(here)
        return self.factors.recall()


def _solve(code: RoutineCode, out: Any, a: Any, b: Any, batch: int, n: int, k: int, source: FactorSource,
           trans: bool = False) -> None:
    if not n:
        return

    def each(i: Index) -> None:
        x = code.at(out, code.mul(i, n * k))
        code.require(source.take(a, i))
        code.copy(x, code.at(b, code.mul(i, n * k)), n * k)
        if k:
            source.factors.solve(x, k, trans)
    _each(code, batch, n, each)


def _inv(code: RoutineCode, out: Any, a: Any, batch: int, n: int, strict: int, source: FactorSource) -> None:
    if not n:
        return

    def each(i: Index) -> None:
        regular = source.take(a, i)
        x = code.at(out, code.mul(i, n * n))
        if strict:
            code.require(regular)
            source.factors.invert(x)
        else:
            code.branch(regular, lambda: source.factors.invert(x), lambda: code.fill(x, n * n, math.nan))
    _each(code, batch, n, each)


def determinant(code: RoutineCode, factors: Factors) -> tuple[Any, Any]:
    """The product of the pivots as float64, and whether it has lost no digits to the range of floats."""
    safe, fabs = code.slot(BOOL), code.module.intrinsic("fabs", DOUBLE)
    code.builder.store(BOOL(1), safe)

    def multiply(j: Index, product: Any) -> Any:
        product = code.builder.fmul(product, factors.diagonal(j))
        size = code.builder.call(fabs, [product])
        inside = code.builder.and_(code.builder.fcmp_ordered(">", size, DOUBLE(SAFE[0])),
                                   code.builder.fcmp_ordered("<", size, DOUBLE(SAFE[1])))
        code.builder.store(code.builder.and_(inside, code.builder.load(safe)), safe)
        return product
    return code.folded(0, factors.n, factors.parity(), multiply), code.builder.load(safe)


def _det(code: RoutineCode, out: Any, a: Any, batch: int, n: int, source: FactorSource) -> None:
    """By logarithms where the product of pivots leaves the range of floats on the way."""
    factors, result = source.factors, code.slot(DOUBLE)

    def by_logarithms() -> None:
        size = code.math("exp", log_of(code, factors))
        code.builder.store(code.builder.fmul(size, sign_of(code, factors)), result)

    def each(i: Index) -> None:
        regular = source.take(a, i)
        product, safe = determinant(code, factors)
        code.builder.store(code.builder.select(regular, product, DOUBLE(0.0)), result)
        code.branch(code.builder.and_(regular, code.builder.not_(safe)), by_logarithms)
        code.store(code.narrow(code.builder.load(result)), out, i)
    _each(code, batch, n, each)


def log_of(code: RoutineCode, factors: Factors) -> Any:
    """The sum of the logarithms of the pivots' magnitudes."""
    fabs = code.module.intrinsic("fabs", DOUBLE)

    def body(j: Index, total: Any) -> Any:
        return code.builder.fadd(total, code.math("log", code.builder.call(fabs, [factors.diagonal(j)])))
    return code.folded(0, factors.n, DOUBLE(0.0), body)


def sign_of(code: RoutineCode, factors: Factors) -> Any:
    def body(j: Index, sign: Any) -> Any:
        negative = code.builder.fcmp_ordered("<", factors.diagonal(j), DOUBLE(0.0))
        return code.builder.select(negative, code.builder.fneg(sign), sign)
    return code.folded(0, factors.n, factors.parity(), body)


def _of_factors(code: RoutineCode, out: Any, a: Any, batch: int, n: int, value: Callable[[RoutineCode, Factors], Any],
                singular: float, source: FactorSource) -> None:
    def each(i: Index) -> None:
        regular = source.take(a, i)
        found = value(code, source.factors)
        code.store(code.narrow(code.builder.select(regular, found, DOUBLE(singular))), out, i)
    _each(code, batch, n, each)
