"""SciPy's BLAS and LAPACK for code that numba compiles, by address, so that this code can be kept on disk.

Matrices are given by address, too. One that lies in C order is its own transpose to them: all of what is said here is
of transposes. `desk` is where a call's numbers lie, which Fortran takes by address.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

NAMES = "gemm", "trsm", "potrf", "potri", "symm"      # whose addresses a `blas` has, in this order
GEMM, TRSM, POTRF, POTRI, SYMM = range(5)
LETTERS, REALS = 8, 16       # where the desk has letters and real numbers
N, T, L, R, U = range(LETTERS, LETTERS + 5)


def _call(context: Any, address: Any, arguments: Any) -> Any:
    """Calls the function at an address with the addresses of its arguments."""
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        values = [builder.inttoptr(builder.extract_value(given[1], k), byte) for k in range(len(signature.args[1]))]
        kind = ir.FunctionType(ir.VoidType(), [byte] * len(values))
        builder.call(builder.inttoptr(given[0], kind.as_pointer()), values)
        return context.get_dummy_value()
    return types.void(address, arguments), code


_called: Any = intrinsic(_call)


@njit(cache=True)
def new_desk() -> np.ndarray:
    desk = np.zeros(REALS + 2, np.int64)
    for k, letter in enumerate((78, 84, 76, 82, 85)):
        desk[LETTERS + k] = letter
    return desk


@njit(cache=True)
def gemm(blas: np.ndarray, desk: np.ndarray, first: int, second: int, sizes: tuple[int, int, int], alpha: float,
         a: int, lda: int, b: int, ldb: int, beta: float, c: int, ldc: int) -> None:
    """c = alpha a b + beta c, in which `first` and `second` say whether a and b are transposed."""
    desk[0], desk[1], desk[2], desk[3], desk[4], desk[5] = sizes[0], sizes[1], sizes[2], lda, ldb, ldc
    reals = desk[REALS:].view(np.float64)
    reals[0], reals[1] = alpha, beta
    d = desk.ctypes.data
    _called(blas[GEMM], (d + 8 * (N + first), d + 8 * (N + second), d, d + 8, d + 16, d + 8 * REALS, a,
                         d + 24, b, d + 32, d + 8 * REALS + 8, c, d + 40))


@njit(cache=True)
def trsm(blas: np.ndarray, desk: np.ndarray, transposed: int, m: int, n: int, a: int, b: int) -> None:
    """Replaces b, of m rows and n columns, by the solution with the upper triangle of `a`, or with its transpose."""
    desk[0], desk[1] = m, n
    desk[REALS:].view(np.float64)[0] = 1.0
    d = desk.ctypes.data
    _called(blas[TRSM], (d + 8 * L, d + 8 * U, d + 8 * (N + transposed), d + 8 * N, d, d + 8, d + 8 * REALS,
                         a, d, b, d))


@njit(cache=True)
def potrf(blas: np.ndarray, desk: np.ndarray, n: int, a: int) -> None:
    """Replaces the upper triangle of `a` by its factor; ``desk[0]`` is LAPACK's word on it."""
    desk[0], desk[1] = 0, n
    d = desk.ctypes.data
    _called(blas[POTRF], (d + 8 * U, d + 8, a, d + 8, d))


@njit(cache=True)
def potri(blas: np.ndarray, desk: np.ndarray, n: int, a: int) -> None:
    """Replaces such a factor by the upper triangle of the inverse."""
    desk[0], desk[1] = 0, n
    d = desk.ctypes.data
    _called(blas[POTRI], (d + 8 * U, d + 8, a, d + 8, d))


@njit(cache=True)
def symm(blas: np.ndarray, desk: np.ndarray, m: int, n: int, alpha: float, a: int, b: int,
         c: int) -> None:
    """c = alpha b a with a symmetric `a`, of which the upper triangle is read; b has m rows and n columns."""
    desk[0], desk[1] = m, n
    reals = desk[REALS:].view(np.float64)
    reals[0], reals[1] = alpha, 0.0
    d = desk.ctypes.data
    _called(blas[SYMM], (d + 8 * R, d + 8 * U, d, d + 8, d + 8 * REALS, a, d + 8, b, d,
                         d + 8 * REALS + 8, c, d))
