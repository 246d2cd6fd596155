"""The routines of `jitad.compile.routines` as plain Python on flat row-major arrays: the same arguments,
result first, and the same status."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.compile.loops import STATUS_LINALG, STATUS_OK


def _put(out: Any, evaluate: Callable[[], Any]) -> int:
    """Write the value into `out`, or tell that LAPACK refused."""
    try:
        value = evaluate()
    except np.linalg.LinAlgError:
        return STATUS_LINALG
    out.reshape(-1)[:] = np.reshape(value, -1)
    return STATUS_OK


def cholesky(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.cholesky(a.reshape(batch, n, n)))


def solve_triangular(out: Any, a: Any, b: Any, batch: int, n: int, k: int, lower: int, trans: int, unit: int) -> int:
    from scipy.linalg import solve_triangular as solve_one

    matrices, right = a.reshape(batch, n, n), b.reshape(batch, n, k)
    if not unit and (np.diagonal(matrices, axis1=1, axis2=2) == 0).any():
        return STATUS_LINALG
    if not right.size:
        return STATUS_OK
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                # SciPy warns of ill-conditioned matrices
        return _put(out, lambda: [solve_one(m, r, trans=trans, lower=bool(lower), unit_diagonal=bool(unit),
                                            check_finite=False) for m, r in zip(matrices, right, strict=True)])


def solve(out: Any, a: Any, b: Any, batch: int, n: int, k: int) -> int:
    return _put(out, lambda: np.linalg.solve(a.reshape(batch, n, n), b.reshape(batch, n, k)))


def inv(out: Any, a: Any, batch: int, n: int, strict: int = 1) -> int:
    matrices = a.reshape(batch, n, n)
    if strict:
        return _put(out, lambda: np.linalg.inv(matrices))
    for target, matrix in zip(out.reshape(batch, n, n), matrices, strict=True):
        if inv(target, matrix, 1, n, 1) != STATUS_OK:
            target[:] = np.nan
    return STATUS_OK


def det(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.det(a.reshape(batch, n, n)))


def slogdet_sign(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.slogdet(a.reshape(batch, n, n))[0])


def slogdet_log(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.slogdet(a.reshape(batch, n, n))[1])


def cofactor(out: Any, a: Any, batch: int, n: int) -> int:
    from jitad.primitives.linalg import cofactor as row

    return _put(out, lambda: row.evaluate(a.reshape(batch, n, n)))


def cofactor_tangent(out: Any, a: Any, e: Any, batch: int, n: int, _: int) -> int:
    from jitad.primitives.linalg import cofactor_tangent as row

    return _put(out, lambda: row.evaluate(a.reshape(batch, n, n), e.reshape(batch, n, n)))


def gemm(out: Any, a: Any, b: Any, m: int, n: int, k: int, transposed_a: int, transposed_b: int, flipped: int) -> int:
    """``out[m, n] = op(a)[m, k] @ op(b)[k, n]``; the operands are given as (b, a) if `flipped`."""
    if flipped:
        a, b = b, a
    left = a.reshape(k, m).T if transposed_a else a.reshape(m, k)
    right = b.reshape(n, k).T if transposed_b else b.reshape(k, n)
    return _put(out, lambda: left @ right)


__all__ = ["cholesky", "cofactor", "cofactor_tangent", "det", "gemm", "inv", "slogdet_log", "slogdet_sign", "solve",
           "solve_triangular"]
