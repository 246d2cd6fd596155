"""Products with matrices in compressed rows (see `jitad.primitives.sparse`)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.llvm.builder import CONTRACT
from jitad.compile.llvm.ir import INT64, Integer
from jitad.compile.routines.code import Index, RoutineCode, registered


class _Rows:
    """The entries of the rows of a matrix, for arrays of `width` numbers a row."""

    def __init__(self, code: RoutineCode, indices: Any, indptr: Any, rows: int, width: int):
        self.code, self.indices, self.indptr, self.rows, self.width = code, indices, indptr, rows, width

    def index(self, pointer: Any, place: Index) -> Any:
        value = self.code.load(pointer, place)
        return value if value.type == INT64 else self.code.builder.sext(value, INT64)

    def each(self, body: Callable[[Any, Any, Any], None]) -> None:
        """``body(row, first entry, last entry + 1)`` for each row."""
        self.code.loop(0, self.rows, lambda i: body(i, self.index(self.indptr, i),
                                                    self.index(self.indptr, self.code.add(i, 1))))

    def column(self, entry: Any) -> Any:
        return self.index(self.indices, entry)

    def of(self, pointer: Any, row: Any) -> Any:
        """Where a row of a matrix of this width begins."""
        return self.code.at(pointer, self.code.mul(row, self.width))


def _nothing(kind: Any) -> Any:
    return kind(0)


def _plus(code: RoutineCode, total: Any, a: Any, b: Any) -> Any:
    """``total + a * b``."""
    if isinstance(a.type, Integer):
        return code.builder.add(total, code.builder.mul(a, b))
    return code.builder.fadd(total, code.builder.fmul(a, b, flags=CONTRACT), flags=CONTRACT)


def _add_row(code: RoutineCode, target: Any, factor: Any, source: Any, width: int) -> None:
    """``target += factor * source`` for `width` numbers."""
    code.loop(0, width, lambda k: code.store(
        _plus(code, code.load(target, k), factor, code.load(source, k)), target, k))


@registered
def sparse_rows(code: RoutineCode, out: Any, data: Any, indices: Any, indptr: Any, x: Any, rows: int,
                width: int) -> None:
    """``out[i] = sum_p data[p] * x[indices[p]]``."""
    matrix, nothing = _Rows(code, indices, indptr, rows, width), _nothing(code.kind)

    def number(i: Index, first: Any, last: Any) -> None:
        total = code.folded(first, last, nothing, lambda p, total: _plus(
            code, total, code.load(data, p), code.load(x, matrix.column(p))))
        code.store(total, out, i)

    def row(i: Index, first: Any, last: Any) -> None:
        target = matrix.of(out, i)
        code.loop(0, width, lambda k: code.store(nothing, target, k))
        code.loop(first, last, lambda p: _add_row(
            code, target, code.load(data, p), matrix.of(x, matrix.column(p)), width))
    matrix.each(number if width == 1 else row)


@registered
def sparse_columns(code: RoutineCode, out: Any, data: Any, indices: Any, indptr: Any, u: Any, rows: int, width: int,
                   columns: int) -> None:
    """``out[indices[p]] += data[p] * u[row of p]``, from zeros."""
    matrix, nothing = _Rows(code, indices, indptr, rows, width), _nothing(code.kind)
    code.loop(0, columns * width, lambda i: code.store(nothing, out, i))

    def number(i: Index, first: Any, last: Any) -> None:
        factor = code.load(u, i)

        def entry(p: Index) -> None:
            target = code.at(out, matrix.column(p))
            code.store(_plus(code, code.load(target), factor, code.load(data, p)), target)
        code.loop(first, last, entry)

    def row(i: Index, first: Any, last: Any) -> None:
        code.loop(first, last, lambda p: _add_row(
            code, matrix.of(out, matrix.column(p)), code.load(data, p), matrix.of(u, i), width))
    matrix.each(number if width == 1 else row)


@registered
def sparse_entries(code: RoutineCode, out: Any, u: Any, indices: Any, indptr: Any, x: Any, rows: int, width: int,
                   count: int) -> None:
    """``out[p] = u[row of p] . x[indices[p]]``; zeros where no row has an entry."""
    matrix, nothing = _Rows(code, indices, indptr, rows, width), _nothing(code.kind)

    def row(i: Index, first: Any, last: Any) -> None:
        a = matrix.of(u, i)

        def entry(p: Index) -> None:
            b = matrix.of(x, matrix.column(p))
            code.store(code.folded(0, width, nothing, lambda k, total: _plus(
                code, total, code.load(a, k), code.load(b, k))), out, p)
        code.loop(first, last, entry)
    matrix.each(row)
    code.loop(matrix.index(indptr, rows), count, lambda p: code.store(nothing, out, p))


__all__ = ["sparse_columns", "sparse_entries", "sparse_rows"]
