"""The cotangent of a Cholesky factorization, by blocks of columns (I. Murray, 2016, the blocked reverse mode).

Five products and solves for each block, all of them by BLAS, and the closed formula for the blocks on the diagonal.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.routines.cholesky import CHOLESKY_UNROLLED
from jitad.compile.routines.code import Index, RoutineCode, registered
from jitad.compile.routines.solve import TRIANGULAR_LOOPS, substitution

BLOCK = 64


@registered
def cholesky_cotangent(code: RoutineCode, out: Any, factor: Any, ct: Any, batch: int, n: int) -> None:
    """The symmetric cotangent of each matrix."""
    if not n:
        return
    code.unrolled = n <= CHOLESKY_UNROLLED
    side = n if n <= TRIANGULAR_LOOPS else min(n, BLOCK)
    work, other = code.work(side * side), code.work(side * side)

    def each(i: Index) -> None:
        target, lower, bar = (code.at(p, code.mul(i, n * n)) for p in (out, factor, ct))
        if n <= TRIANGULAR_LOOPS:
            _small(code, target, lower, bar, work, other, n)
            return
        code.copy(target, bar, n * n)
        for start in reversed(range(0, n, BLOCK)):
            _block(code, target, lower, work, n, start, min(start + BLOCK, n))
        _halved(code, target, n)
    code.rolled(0, batch, each)


def _small(code: RoutineCode, out: Any, factor: Any, ct: Any, work: Any, other: Any, n: int) -> None:
    def place(i: Index, j: Index) -> Index:
        return code.add(code.mul(i, n), j)

    def element(i: Index, j: Index) -> None:
        dot = code.dot(i, n, lambda k: (code.load(factor, place(k, i)), code.load(ct, place(k, j))))
        half = code.times(dot, code.number(0.5))
        code.store(half, work, place(i, j))
        code.store(half, work, place(j, i))
    code.loop(0, n, lambda i: code.loop(0, code.add(i, 1), lambda j: element(i, j)))
    substitution(code, work, factor, n, n, True, True, False)
    code.transposed(other, work, n, n)
    substitution(code, other, factor, n, n, True, True, False)
    code.loop(0, n, lambda i: code.loop(0, n, lambda j: code.store(code.times(code.number(0.5), code.builder.fadd(
        code.load(other, place(i, j)), code.load(other, place(j, i)))), out, place(i, j))))


def _product(code: RoutineCode, c: Any, a: Any, b: Any, m: int, n: int, k: int, stride: int, trans: str, scale: float,
             a_stride: int | None = None) -> None:
    """``c += scale * op(a) @ b`` for row-major parts of matrices whose rows are `stride` apart."""
    if m and n and k:
        code.lapack("gemm", "N", trans, n, m, k, scale, b, stride, a, a_stride or stride, 1.0, c, stride)


def _block(code: RoutineCode, x: Any, factor: Any, work: Any, n: int, start: int, stop: int) -> None:
    """One block of columns: B C are the rows below, R D those of the block, of the factor; bars are in `x`."""
    side, below = stop - start, n - stop

    def part(p: Any, row: int, column: int) -> Any:
        return code.at(p, row * n + column)
    d, r, c, b = part(factor, start, start), part(factor, start, 0), part(factor, stop, start), part(factor, stop, 0)
    d_bar, r_bar, c_bar, b_bar = part(x, start, start), part(x, start, 0), part(x, stop, start), part(x, stop, 0)
    if below:
        code.lapack("trsm", "L", "U", "N", "N", side, below, 1.0, d, n, c_bar, n)
        _product(code, b_bar, c_bar, r, below, start, side, n, "N", -1.0)
        _product(code, r_bar, c_bar, b, side, start, below, n, "T", -1.0)
        _product(code, d_bar, c_bar, c, side, side, below, n, "T", -1.0)
    _diagonal(code, d_bar, d, work, n, side)
    _product(code, r_bar, work, r, side, start, side, n, "N", -2.0, side)


def _diagonal(code: RoutineCode, d_bar: Any, d: Any, work: Any, n: int, side: int) -> None:
    """The closed formula for a block; `work` has the symmetric result, `d_bar` twice that off the diagonal."""
    def fill(i: Index) -> None:
        row, source = code.mul(i, side), code.mul(i, n)
        code.loop(0, code.add(i, 1), lambda j: code.store(
            code.load(d_bar, code.add(source, j)), work, code.add(row, j)))
        code.loop(code.add(i, 1), side, lambda j: code.store(code.number(0.0), work, code.add(row, j)))

    def symmetric(i: Index) -> None:
        def element(j: Index) -> None:
            half = code.times(code.load(work, code.add(code.mul(i, side), j)), code.number(0.5))
            code.store(half, work, code.add(code.mul(i, side), j))
            code.store(half, work, code.add(code.mul(j, side), i))
        code.loop(0, code.add(i, 1), element)

    def back(i: Index) -> None:
        row, target = code.mul(i, side), code.mul(i, n)
        code.loop(0, i, lambda j: code.store(code.times(
            code.number(2.0), code.load(work, code.add(row, j))), d_bar, code.add(target, j)))
        code.store(code.load(work, code.add(row, i)), d_bar, code.add(target, i))
    code.loop(0, side, fill)
    code.lapack("trmm", "R", "U", "T", "N", side, side, 1.0, d, n, work, side)
    code.loop(0, side, symmetric)
    code.lapack("trsm", "L", "U", "N", "N", side, side, 1.0, d, n, work, side)
    code.lapack("trsm", "R", "U", "T", "N", side, side, 1.0, d, n, work, side)
    code.loop(0, side, back)


def _halved(code: RoutineCode, x: Any, n: int) -> None:
    """Each of the two halves of the matrix gets half of what is below the diagonal; a few rows at a time."""
    def block(first: Index) -> None:
        end = code.least(code.add(first, 8), n)

        def column(j: Index) -> None:
            def element(i: Index) -> None:
                place = code.add(code.mul(i, n), j)
                half = code.times(code.load(x, place), code.number(0.5))
                code.store(half, x, place)
                code.store(half, x, code.add(code.mul(j, n), i))
            code.loop(code.greatest(first, code.add(j, 1)), end, element)
        code.loop(0, end, column)
    code.loop(0, n, block, step=8)
