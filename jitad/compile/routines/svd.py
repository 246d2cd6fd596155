"""The derivatives of the determinant, by singular values so that they hold for singular matrices.

All in float64. Large well-conditioned matrices take the shorter way by the inverse.
"""
from __future__ import annotations

import math
from typing import Any

from jitad.compile.llvm.ir import DOUBLE
from jitad.compile.routines.code import INT32, Index, RoutineCode, registered
from jitad.compile.routines.general import determinant, sign_of
from jitad.compile.routines.lu import Factors
from jitad.compile.routines.products.gemm import gemm

WELL_CONDITIONED = 1e4                        # product of Frobenius norms up to which the inverse is as good


class _Values:
    """Memory for ``a = u @ diag(s) @ vt`` of one matrix after another."""

    def __init__(self, code: RoutineCode, n: int):
        self.code, self.n = code, n
        self.a, self.u, self.vt = (code.work(n * n) for _ in range(3))
        self.s, self.rest = code.work(n), code.work(n)
        self.length = 4 * n * n + 64 * n + 64
        self.scratch, self.integers = code.work(self.length), code.work(8 * n, INT32)
        self.factors = Factors(code, n)

    def decompose(self, a: Any) -> Any:
        """Decompose `a`; the value is whether that succeeded. To LAPACK u is v.T and v.T is u."""
        code, n = self.code, self.n
        code.copy(self.a, a, n * n)
        code.lapack("gesdd", "A", n, n, self.a, n, self.s, self.vt, n, self.u, n, self.scratch, self.length,
                    self.integers, code.info)
        return code.succeeded()

    def sign(self) -> Any:
        """The determinant of ``u @ vt``."""
        self.factors.factor(self.u)
        first = sign_of(self.code, self.factors)
        self.factors.factor(self.vt)
        return self.code.times(first, sign_of(self.code, self.factors))

    def without(self, i: Index, j: Index) -> Any:
        """The product of the singular values other than `i` and `j`."""
        code = self.code

        def body(at: Index, product: Any) -> Any:
            first, second = (code.builder.icmp_signed("==", code.integer(at), code.integer(x)) for x in (i, j))
            used = code.builder.or_(first, second)
            return code.builder.select(used, product, code.times(product, code.load(self.s, at)))
        return code.folded(0, self.n, code.number(1.0), body)

    def cofactor(self, out: Any, a: Any) -> None:
        code, n = self.code, self.n

        def fine() -> None:
            sign = self.sign()
            code.loop(0, n, lambda i: code.store(code.times(sign, self.without(i, i)), self.rest, i))
            code.loop(0, n, lambda i: code.loop(0, n, lambda j: self._scale(code.add(code.mul(i, n), j), j)))
            gemm(code, out, self.u, self.vt, n, n, n, 0, 0, 0)
        code.branch(self.decompose(a), fine, lambda: code.fill(out, n * n, math.nan))

    def _scale(self, place: Index, j: Index) -> None:
        code = self.code
        code.store(code.times(code.load(self.u, place), code.load(self.rest, j)), self.u, place)

    def tangent(self, out: Any, a: Any, e: Any, inside: Any) -> None:
        """The derivative of the cofactors in the direction `e`; `inside` is memory for a matrix."""
        code, n = self.code, self.n

        def fine() -> None:
            sign = self.sign()
            gemm(code, self.a, self.u, e, n, n, n, 1, 0, 0)
            gemm(code, inside, self.a, self.vt, n, n, n, 0, 1, 0)
            code.loop(0, n, lambda i: code.loop(0, n, lambda j: self._moved(inside, i, j, sign)))
            gemm(code, inside, self.u, self.a, n, n, n, 0, 0, 0)
            gemm(code, out, inside, self.vt, n, n, n, 0, 0, 0)
        code.branch(self.decompose(a), fine, lambda: code.fill(out, n * n, math.nan))

    def _moved(self, inside: Any, i: Index, j: Index, sign: Any) -> None:
        """``-pairs * inside.T`` off the diagonal, and on it the sums of ``pairs * diag(inside)``."""
        code, n = self.code, self.n

        def term(k: Index, total: Any) -> Any:
            product = code.times(self.without(i, k), code.load(inside, code.mul(k, n + 1)))
            same = code.builder.icmp_signed("==", code.integer(k), code.integer(i))
            return code.builder.fadd(total, code.builder.select(same, code.number(0.0), product))

        place = code.add(code.mul(i, n), j)

        def diagonal() -> None:
            code.store(code.times(sign, code.folded(0, n, code.number(0.0), term)), self.a, place)

        def off() -> None:
            across = code.load(inside, code.add(code.mul(j, n), i))
            code.store(code.times(code.builder.fneg(sign), code.times(self.without(i, j), across)), self.a, place)
        code.branch(code.builder.icmp_signed("==", code.integer(i), code.integer(j)), diagonal, off)


def _in_double(code: RoutineCode, out: Any, operands: tuple[Any, ...], batch: int, n: int, write: Any) -> None:
    """Run ``write(out, *operands)`` for each matrix, on float64 copies where the arrays are of another type."""
    narrow = out.type.pointee
    same = narrow == DOUBLE
    copies = [None if same else code.work(n * n) for _ in (out, *operands)]

    def each(i: Index) -> None:
        here = [code.at(p, code.mul(i, n * n)) for p in (out, *operands)]
        if same:
            write(*here)
            return
        for copy, source in zip(copies[1:], here[1:], strict=True):
            _convert(code, copy, source, n * n)
        write(*copies)
        code.loop(0, n * n, lambda j: code.store(code.builder.fptrunc(code.load(copies[0], j), narrow), here[0], j))
    code.rolled(0, batch, each)


def _convert(code: RoutineCode, target: Any, source: Any, count: int) -> None:
    code.loop(0, count, lambda i: code.store(code.wide(code.load(source, i)), target, i))


@registered
def cofactor(code: RoutineCode, out: Any, a: Any, batch: int, n: int) -> None:
    """The derivative of `det`: ``det(a) * inv(a).T``."""
    if n == 0:
        return
    code.compute_in_double()
    if n <= 3:
        code.unrolled = True
        _in_double(code, out, (a,), batch, n, lambda y, x: _minors(code, y, x, n))
        return
    values, inverse = _Values(code, n), code.work(n * n)
    _in_double(code, out, (a,), batch, n, lambda y, x: _cofactor(code, values, inverse, y, x))


def _minors(code: RoutineCode, out: Any, a: Any, n: int) -> None:
    """Products of entries, for sides up to three."""
    if n == 1:
        return code.store(code.number(1.0), out)
    entries = [[code.load(a, i * n + j) for j in range(n)] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if n == 2:
                minor = entries[1 - i][1 - j]
                value = code.builder.fneg(minor) if i != j else minor
            else:
                (p, q), (r, s) = ([entries[(i + d) % 3][(j + c) % 3] for c in (1, 2)] for d in (1, 2))
                value = code.builder.fsub(code.times(p, s), code.times(q, r))
            code.store(value, out, i * n + j)
    return None


def _cofactor(code: RoutineCode, values: _Values, inverse: Any, out: Any, a: Any) -> None:
    """By the inverse where it is accurate, else by singular values."""
    n, factors = values.n, values.factors
    regular = factors.factor(a)
    size, safe = determinant(code, factors)
    factors.invert(inverse)

    def norm(x: Any) -> Any:
        return code.sqrt(code.dot(0, n * n, lambda j: (code.load(x, j),) * 2))
    condition = code.times(norm(a), norm(inverse))
    good = code.builder.fcmp_ordered("<", condition, code.number(WELL_CONDITIONED))

    def by_inverse() -> None:
        code.transposed(out, inverse, n, n)
        code.loop(0, n * n, lambda j: code.store(code.times(size, code.load(out, j)), out, j))
    code.branch(code.builder.and_(code.builder.and_(regular, safe), good), by_inverse, lambda: values.cofactor(out, a))


@registered
def cofactor_tangent(code: RoutineCode, out: Any, a: Any, e: Any, batch: int, n: int, _: int) -> None:
    """The derivative of `cofactor` in the direction `e`."""
    if n == 0:
        return
    code.compute_in_double()
    values, inside = _Values(code, n), code.work(n * n)
    _in_double(code, out, (a, e), batch, n, lambda y, x, d: values.tangent(y, x, d, inside))
