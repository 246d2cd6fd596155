"""`Transpose` in LLVM: square blocks in vector registers, eight (or four) rows in, as many columns out.

A block of side s takes log2(s) rounds of s shuffles: in the round of distance k, rows i and i + k exchange the
elements whose place has the bit k set in one and not in the other.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import DOUBLE, INT64, vector
from jitad.compile.loops import Transpose

SIDES = (8, 4)


def emit_transpose(builder: IRBuilder, s: Transpose, source: Any, target: Any, loop: Callable[..., None]) -> None:
    """`source` and `target` are where the matrices start; ``loop(start, stop, step, body)`` builds a loop."""
    columns_long = s.columns > s.rows
    long, short = (s.columns, s.rows) if columns_long else (s.rows, s.columns)
    strips = places(short, next((k for k in SIDES if short >= k), 1))
    step = strips[0][1]

    def strip(start: Any) -> None:
        for other, side in strips:
            row, column = (INT64(other), start) if columns_long else (start, INT64(other))
            _block(builder, source, target, s, (side, step) if columns_long else (step, side), row, column)
    loop(INT64(0), INT64(long - long % step), step, strip)
    if long % step:
        strip(INT64(long - step))


def places(length: int, side: int) -> list[tuple[int, int]]:
    """Where blocks start and their sides; the last one may be smaller, and may cover again what another has."""
    starts = [(start, side) for start in range(0, length - side + 1, side)]
    rest = length % side
    if rest:
        last = SIDES[1] if side == SIDES[0] and rest <= SIDES[1] else side
        starts.append((length - last, last))
    return starts


def _block(builder: IRBuilder, source: Any, target: Any, s: Transpose, sides: tuple[int, int], row: Any,
           column: Any) -> None:
    """A block of eight or four rows and columns. Vectors are stored whole, so that what loads them need not wait."""
    height, width = sides
    first = builder.add(builder.mul(row, INT64(s.columns)), column)
    rows = [builder.load(_vector(builder, source, first, i * s.columns, width), align=8) for i in range(height)]
    if height > width:                                       # two blocks, one below the other
        halves = [_transposed(builder, rows[:width]), _transposed(builder, rows[width:])]
        made = [builder.shuffle_vector(a, b, range(height)) for a, b in zip(*halves, strict=True)]
    elif width > height:
        made = [x for part in (range(height), range(height, width)) for x in _transposed(
            builder, [builder.shuffle_vector(r, r, part) for r in rows])]
    else:
        made = _transposed(builder, rows)
    first = builder.add(builder.mul(column, INT64(s.rows)), row)
    for j, x in enumerate(made):
        builder.store(x, _vector(builder, target, first, j * s.rows, height), align=8)


def _vector(builder: IRBuilder, base: Any, first: Any, further: int, side: int) -> Any:
    pointer = builder.gep(base, [builder.add(first, INT64(further))], inbounds=True)
    if side == 1:
        return pointer
    return builder.bitcast(pointer, vector(DOUBLE, side).as_pointer())


def _transposed(builder: IRBuilder, rows: list[Any]) -> list[Any]:
    rows, side = list(rows), len(rows)
    distance = side // 2
    while distance:
        upper = [j if not j & distance else side + (j ^ distance) for j in range(side)]
        lower = [j ^ distance if not j & distance else side + j for j in range(side)]
        for i in range(side):
            if not i & distance:
                a, b = rows[i], rows[i | distance]
                rows[i], rows[i | distance] = (builder.shuffle_vector(a, b, mask) for mask in (upper, lower))
        distance //= 2
    return rows
