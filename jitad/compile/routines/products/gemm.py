"""Products of matrices: our own loops where one side is short, else BLAS.

Arrays are row-major, those of BLAS column-major: it sees each matrix transposed.
"""
from __future__ import annotations

from typing import Any

from jitad.compile.routines.code import RoutineCode, registered
from jitad.compile.routines.products.narrow import narrow_product

NARROW = 20                                  # columns, or rows, up to which loops of our own are faster


@registered
def gemm(code: RoutineCode, out: Any, a: Any, b: Any, m: int, n: int, k: int, transposed_a: int, transposed_b: int,
         flipped: int) -> None:
    """``out[m, n] = op(a)[m, k] @ op(b)[k, n]``; the operands are given as (b, a) if `flipped`."""
    if flipped:
        a, b = b, a
    if k == 0:
        code.fill(out, m * n, 0.0)
    elif not (m and n):
        return
    elif n <= min(m, NARROW):
        rows, columns = (k, m) if transposed_a else (m, k)
        narrow_product(code, out, a, b, rows, columns, n, not transposed_a, bool(transposed_b), False)
    elif m <= NARROW:
        rows, columns = (n, k) if transposed_b else (k, n)
        narrow_product(code, out, b, a, rows, columns, m, bool(transposed_b), not transposed_a, True)
    else:
        code.lapack("gemm", "NT"[transposed_b], "NT"[transposed_a], n, m, k, 1.0, b, k if transposed_b else n,
                    a, m if transposed_a else k, 0.0, out, n)
