"""Products of a wide matrix and a narrow one, whose few columns are the lanes of vectors.

``out[., y] = sum of wide[., .] * narrow[., y]``: an element of the wide matrix is read once, spread over all lanes, and
meets a row of the narrow one. So the wide matrix may lie as it likes and is never copied; it is read along its rows,
eight at a time. If that is along the sum, the sums of eight rows of the result stay in registers (`_dots`); if it is
along the result, eight rows of the narrow matrix do, and each row of the result is fetched and put back once for eight
additions (`_additions`).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import CONTRACT
from jitad.compile.llvm.ir import DOUBLE
from jitad.compile.llvm.native import processor
from jitad.compile.routines.code import Index, RoutineCode

REGISTERS = {64: 24, 32: 10}                 # for sums, of vectors of so many bytes
ROWS = 8


def narrow_product(code: RoutineCode, out: Any, wide: Any, narrow: Any, rows: int, columns: int, width: int,
                   along: bool, narrow_turned: bool, out_turned: bool) -> None:
    """`wide` has `rows` rows of `columns` elements; the sum is `along` its rows or across them, and the narrow matrix
    has a row of `width` numbers for each of its terms. Turned matrices lie by columns."""
    terms, results = (columns, rows) if along else (rows, columns)
    lanes = _lanes(width, _bytes() // (8 if code.kind is DOUBLE else 4))
    padded = sum(lanes)
    product = _Product(code, wide, rows, columns, lanes)
    if narrow_turned or padded != width:
        table = code.work(terms * padded)
        _pack(code, table, narrow, terms, width, padded, narrow_turned)
        narrow = table
    direct = not out_turned and (along or padded == width)
    target = out if direct else code.work(results * padded)
    if along:
        product.dots(target, narrow, width if direct else padded)
    else:
        code.fill(target, results * padded, 0.0)
        product.additions(target, narrow)
    if not direct:
        _unpack(code, out, target, results, width, padded, out_turned)


def _bytes() -> int:
    """The length of a vector."""
    return 64 if "+avx512f" in processor()[1] else 32


def _lanes(width: int, most: int) -> list[int]:
    """The vectors that hold a row: whole ones, and a shorter one for the rest."""
    lanes = [most] * (width // most)
    rest = width % most
    return [*lanes, 1 << (rest - 1).bit_length()] if rest else lanes


def _pack(code: RoutineCode, table: Any, narrow: Any, terms: int, width: int, padded: int, turned: bool) -> None:
    """The rows of the narrow matrix, filled up with zeros."""
    step, across = (1, terms) if turned else (width, 1)

    def row(i: Index) -> None:
        for y in range(padded):
            value = code.load(narrow, code.add(code.mul(i, step), y * across)) if y < width else code.number(0.0)
            code.store(value, table, code.add(code.mul(i, padded), y))
    code.rolled(0, terms, row)


def _unpack(code: RoutineCode, out: Any, table: Any, results: int, width: int, padded: int, turned: bool) -> None:
    step, across = (1, results) if turned else (width, 1)

    def row(i: Index) -> None:
        for y in range(width):
            value = code.load(table, code.add(code.mul(i, padded), y))
            code.store(value, out, code.add(code.mul(i, step), y * across))
    code.rolled(0, results, row)


class _Product:
    """The loops over one wide matrix."""

    def __init__(self, code: RoutineCode, wide: Any, rows: int, columns: int, lanes: Sequence[int]):
        self.code, self.wide, self.rows, self.columns = code, wide, rows, columns
        self.kinds = [ir.vector(code.kind, n) for n in lanes]
        self.starts = [sum(lanes[:v]) for v in range(len(lanes))]
        self.padded = sum(lanes)
        self.many = max(1, min(ROWS, REGISTERS[_bytes()] // len(lanes)))

    def dots(self, target: Any, narrow: Any, stride: int) -> None:
        """Rows of the result, of `stride` elements, one after the other."""
        def block(first: Index, count: int) -> None:
            sums = [[self.code.slot(kind) for kind in self.kinds] for _ in range(count)]
            for row in sums:
                for kind, slot in zip(self.kinds, row, strict=True):
                    self.code.builder.store(_zero(kind), slot)

            def term(p: Index) -> None:
                vectors = self._vectors(narrow, self.code.mul(p, self.padded))
                for t, row in enumerate(sums):
                    self._add(row, vectors, self._element(self.code.add(first, t), p))
            self.code.loop(0, self.columns, term)
            for t, row in enumerate(sums):
                place = self.code.mul(self.code.add(first, t), stride)
                for start, kind, slot in zip(self.starts, self.kinds, row, strict=True):
                    self._put(self.code.builder.load(slot), target, self.code.add(place, start),
                              min(stride - start, kind.count))
        self._blocks(block)

    def additions(self, target: Any, narrow: Any) -> None:
        """What each block of rows adds to the results."""
        code = self.code

        def block(first: Index, count: int) -> None:
            factors = [self._vectors(narrow, code.mul(code.add(first, t), self.padded)) for t in range(count)]

            def result(c: Index) -> None:
                place = code.mul(c, self.padded)
                totals = self._vectors(target, place)
                for t in range(count):
                    one = self._element(code.add(first, t), c)
                    totals = [self._fma(one, f, total) for f, total in zip(factors[t], totals, strict=True)]
                for start, kind, total in zip(self.starts, self.kinds, totals, strict=True):
                    self._put(total, target, code.add(place, start), kind.count)
            code.loop(0, self.columns, result)
        self._blocks(block)

    def _blocks(self, block: Any) -> None:
        many, rest = self.many, self.rows % self.many
        self.code.loop(0, self.rows - rest, lambda first: block(first, many), step=many)
        if rest:
            block(self.rows - rest, rest)

    # --- vectors -----------------------------------------------------------------------------
    def _element(self, row: Index, column: Index) -> Any:
        code = self.code
        at = code.add(code.mul(row, self.columns), column) if not isinstance(column, int) else code.add(
            column, code.mul(row, self.columns))
        return code.load(self.wide, at)

    def _vectors(self, base: Any, place: Index) -> list[Any]:
        code = self.code
        size = 8 if code.kind is DOUBLE else 4
        return [code.builder.load(code.builder.bitcast(code.at(base, code.add(place, start)), kind.as_pointer()),
                                  align=size) for start, kind in zip(self.starts, self.kinds, strict=True)]

    def _add(self, slots: list[Any], vectors: list[Any], one: Any) -> None:
        for slot, vector in zip(slots, vectors, strict=True):
            self.code.builder.store(self._fma(one, vector, self.code.builder.load(slot)), slot)

    def _fma(self, one: Any, vector: Any, total: Any) -> Any:
        builder = self.code.builder
        product = builder.fmul(builder.splat(one, vector.type.count), vector, flags=CONTRACT)
        return builder.fadd(total, product, flags=CONTRACT)

    def _put(self, vector: Any, base: Any, place: Index, count: int) -> None:
        """The first `count` lanes, by vectors of powers of two."""
        code, builder, first = self.code, self.code.builder, 0
        size = 8 if code.kind is DOUBLE else 4
        while first < count:
            part = 1 << (count - first).bit_length() - 1
            some = vector if part == vector.type.count else builder.shuffle_vector(
                vector, vector, range(first, first + part))
            pointer = builder.bitcast(code.at(base, code.add(place, first)), some.type.as_pointer())
            builder.store(some, pointer, align=size)
            first += part


def _zero(kind: Any) -> Any:
    return kind([0.0] * kind.count)
