"""Cholesky factors, and inverses from them.

Arrays are row-major, LAPACK's are column-major: it sees each matrix transposed, so that a lower triangle is an
upper one to it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.routines.code import Index, RoutineCode, registered

CHOLESKY_UNROLLED = 8                        # sides up to which it is unrolled; at 12 still faster, but slow to compile
INVERSE_BASE = 64                            # sides up to which LAPACK inverts triangles faster than products do


@registered
def cholesky(code: RoutineCode, out: Any, a: Any, batch: int, n: int, upper: int = 0) -> None:
    """The lower factor of each matrix, from its lower or upper triangle."""
    code.unrolled = n <= CHOLESKY_UNROLLED
    write = _cholesky_loops if code.unrolled else _cholesky_lapack
    size = n * n
    if n:
        code.rolled(0, batch, lambda i: write(code, code.at(out, code.mul(i, size)), code.at(a, code.mul(i, size)), n,
                                              upper))


def _cholesky_loops(code: RoutineCode, out: Any, a: Any, n: int, upper: int) -> None:
    """Row by row; each row costs as many dot products as it has elements."""
    inverse = code.work(n)

    def row(i: Index) -> None:
        start = code.mul(i, n)

        def element(j: Index) -> Any:
            above = code.mul(j, n)
            done = code.dot(0, j, lambda k: (code.load(out, code.add(start, k)), code.load(out, code.add(above, k))))
            return code.builder.fsub(code.load(a, code.add(above, i) if upper else code.add(start, j)), done)

        def left(j: Index) -> None:
            code.store(code.times(element(j), code.load(inverse, j)), out, code.add(start, j))
        code.loop(0, i, left)
        square = element(i)
        code.require(code.builder.fcmp_unordered(">", square, code.number(0.0)))
        root = code.sqrt(square)
        code.store(root, out, code.add(start, i))
        code.store(code.over(code.number(1.0), root), inverse, i)
        code.loop(code.add(i, 1), n, lambda j: code.store(code.number(0.0), out, code.add(start, j)))
    code.loop(0, n, row)


def _cholesky_lapack(code: RoutineCode, out: Any, a: Any, n: int, upper: int) -> None:
    if upper:
        code.transposed(out, a, n, n)

    def row(i: Index) -> None:
        start = code.mul(i, n)
        if not upper:
            code.loop(0, code.add(i, 1),
                      lambda j: code.store(code.load(a, code.add(start, j)), out, code.add(start, j)))
        code.loop(code.add(i, 1), n, lambda j: code.store(code.number(0.0), out, code.add(start, j)))
    code.loop(0, n, row)
    code.lapack("potrf", "U", n, out, n, code.info)
    code.require(code.succeeded())


@registered
def cholesky_inverse(code: RoutineCode, out: Any, factor: Any, batch: int, n: int) -> None:
    """``inv(L @ L.T)`` for each lower factor L."""
    if not n:
        return
    code.unrolled = n <= CHOLESKY_UNROLLED
    size = n * n
    work = code.work(size) if code.unrolled else None

    def each(i: Index) -> None:
        target, source = code.at(out, code.mul(i, size)), code.at(factor, code.mul(i, size))
        if work is not None:
            return _inverse_loops(code, target, source, work, n)
        code.copy(target, source, size)
        return invert_definite(code, target, n)
    code.rolled(0, batch, each)


def _inverse_loops(code: RoutineCode, out: Any, factor: Any, work: Any, n: int) -> None:
    """By the inverse W of the factor, row by row: ``W.T @ W``."""
    def at(i: Index, j: Index) -> Index:
        return code.add(code.mul(i, n), j)

    def row(i: Index) -> None:
        pivot = code.load(factor, at(i, i))
        code.require(code.builder.fcmp_unordered("!=", pivot, code.number(0.0)))
        scale = code.over(code.number(1.0), pivot)
        code.store(scale, work, at(i, i))

        def left(j: Index) -> None:
            done = code.dot(j, i, lambda k: (code.load(factor, at(i, k)), code.load(work, at(k, j))))
            code.store(code.times(code.builder.fneg(done), scale), work, at(i, j))
        code.loop(0, i, left)

    def product(i: Index) -> None:
        def left(j: Index) -> None:
            value = code.dot(i, n, lambda k: (code.load(work, at(k, i)), code.load(work, at(k, j))))
            code.store(value, out, at(i, j))
            code.store(value, out, at(j, i))
        code.loop(0, code.add(i, 1), left)
    code.loop(0, n, row)
    code.loop(0, n, product)


def invert_definite(code: RoutineCode, x: Any, n: int) -> None:
    """The lower factor at `x` becomes the inverse of its matrix: LAPACK's potri, but for the inverse of the triangle,
    which OpenBLAS makes at half the speed of products."""
    invert_upper(code, x, n, n, code.require)
    code.lapack("lauum", "U", n, x, n, code.info)
    mirror(code, x, n)


def invert_upper(code: RoutineCode, x: Any, n: int, stride: int, require: Callable[[Any], None]) -> None:
    """The column-major upper triangle at `x` becomes its inverse: the halves' inverses A and C, and ``-A B C``."""
    if n <= INVERSE_BASE:
        code.lapack("trtri", "U", "N", n, x, stride, code.info)
        require(code.succeeded())
        return
    half = n // 16 * 8
    rest = n - half
    corner, last = code.at(x, half * stride), code.at(x, half * (stride + 1))
    invert_upper(code, x, half, stride, require)
    invert_upper(code, last, rest, stride, require)
    code.lapack("trmm", "L", "U", "N", "N", half, rest, -1.0, x, stride, corner, stride)
    code.lapack("trmm", "R", "U", "N", "N", half, rest, 1.0, last, stride, corner, stride)


def mirror(code: RoutineCode, x: Any, n: int) -> None:
    """Fill the row-major upper triangle from the lower one, a few rows at a time, which fill lines of the cache."""
    def block(first: Index) -> None:
        end = code.least(code.add(first, 8), n)

        def column(j: Index) -> None:
            start = code.greatest(first, code.add(j, 1))
            code.loop(start, end, lambda i: code.store(
                code.load(x, code.add(code.mul(i, n), j)), x, code.add(code.mul(j, n), i)))
        code.loop(0, end, column)
    code.loop(0, n, block, step=8)


__all__ = ["CHOLESKY_UNROLLED", "cholesky", "cholesky_inverse", "invert_definite", "invert_upper", "mirror"]
