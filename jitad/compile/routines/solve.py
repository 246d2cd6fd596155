"""Triangular systems.

Arrays are row-major, LAPACK's are column-major: it sees each matrix transposed, so that a
lower triangle is an upper one to it and ``a @ x = b`` is ``x.T @ a.T = b.T``.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.routines.code import Index, RoutineCode, registered

TRIANGULAR_UNROLLED = 150                    # multiplications up to which substitution is unrolled
TRIANGULAR_LOOPS = 32                        # and the side and columns up to which it is our own


@registered
def solve_triangular(code: RoutineCode, out: Any, a: Any, b: Any, batch: int, n: int, k: int, lower: int, trans: int,
                     unit: int) -> None:
    """``op(a) @ out = b`` for each matrix."""
    if not n:
        return
    code.unrolled = n * n * k <= TRIANGULAR_UNROLLED

    def each(i: Index) -> None:
        matrix, x = code.at(a, code.mul(i, n * n)), code.at(out, code.mul(i, n * k))
        if not unit:
            code.loop(0, n, lambda j: code.require(code.builder.fcmp_unordered(
                "!=", code.load(matrix, code.mul(j, n + 1)), code.number(0.0))))
        code.copy(x, code.at(b, code.mul(i, n * k)), n * k)
        if not k:
            return
        if n <= TRIANGULAR_LOOPS and k <= TRIANGULAR_LOOPS:
            substitution(code, x, matrix, n, k, bool(lower), bool(trans), bool(unit))
        elif k == 1:
            code.lapack("trsv", "UL"[not lower], "TN"[trans], "NU"[unit], n, matrix, n, x, 1)
        else:
            code.lapack("trsm", "R", "UL"[not lower], "NT"[trans], "NU"[unit], k, n, 1.0, matrix, n, x, k)
    code.rolled(0, batch, each)


def substitution(code: RoutineCode, x: Any, a: Any, n: int, k: int, lower: bool, trans: bool, unit: bool) -> None:
    """Rows of `x` in the order of the triangle. Each finished row is taken from the rest; a single column with
    rows of `a` at hand runs by dot products instead."""
    down = lower != trans

    def place(step: Index) -> Index:
        return step if down else code.sub(n - 1, step)

    def entry(i: Index, j: Index) -> Any:
        i, j = (j, i) if trans else (i, j)
        return code.load(a, code.add(code.mul(i, n), j))

    def by_dots(step: Index) -> None:
        i = place(step)
        first = code.load(x, i)
        done = code.dot(0, step, lambda s: (entry(i, place(s)), code.load(x, place(s))))
        value = code.builder.fsub(first, done)
        code.store(value if unit else code.over(value, entry(i, i)), x, i)

    def by_rows(step: Index) -> None:
        i = place(step)
        if not unit:
            code.loop(0, k, lambda c: _divide(code, x, code.add(code.mul(i, k), c), entry(i, i)))

        def rest(s: Index) -> None:
            j = place(s)
            factor = entry(j, i)

            def column(c: Index) -> None:
                mine = code.add(code.mul(j, k), c)
                code.store(code.minus(code.load(x, mine), factor, code.load(x, code.add(code.mul(i, k), c))), x, mine)
            code.loop(0, k, column)
        code.loop(code.add(step, 1), n, rest)
    code.loop(0, n, by_dots if k == 1 and not trans else by_rows)


def _divide(code: RoutineCode, x: Any, index: Index, divisor: Any) -> None:
    code.store(code.over(code.load(x, index), divisor), x, index)
