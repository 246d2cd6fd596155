"""The routines of `jitad.compile.routines.table` as plain Python on flat row-major arrays: the same arguments,
result first, and the same status."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.compile.loops import STATUS_LINALG, STATUS_OK
from jitad.compile.reference.table import ROUTINES, registered
from jitad.primitives.linalg.failures import FAILS


def _put(out: Any, evaluate: Callable[[], Any]) -> int:
    """Write the value into `out`, or tell that LAPACK refused."""
    try:
        value = evaluate()
    except np.linalg.LinAlgError:
        return STATUS_LINALG
    out.reshape(-1)[:] = np.reshape(value, -1)
    return STATUS_OK


@registered
def cholesky(out: Any, a: Any, batch: int, n: int, upper: int = 0) -> int:
    matrices = a.reshape(batch, n, n)
    return _put(out, lambda: np.linalg.cholesky(np.swapaxes(matrices, 1, 2) if upper else matrices))


@registered
def cholesky_inverse(out: Any, factor: Any, batch: int, n: int) -> int:
    from jitad.primitives.linalg.cholesky import cholesky_inverse as row

    return _put(out, lambda: row.evaluate(factor.reshape(batch, n, n)))


@registered
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


@registered
def solve(out: Any, a: Any, b: Any, batch: int, n: int, k: int) -> int:
    return _put(out, lambda: np.linalg.solve(a.reshape(batch, n, n), b.reshape(batch, n, k)))


@registered
def inv(out: Any, a: Any, batch: int, n: int, strict: int = 1) -> int:
    matrices = a.reshape(batch, n, n)
    if strict:
        return _put(out, lambda: np.linalg.inv(matrices))
    for target, matrix in zip(out.reshape(batch, n, n), matrices, strict=True):
        if inv(target, matrix, 1, n, 1) != STATUS_OK:
            target[:] = np.nan
    return STATUS_OK


@registered
def det(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.det(a.reshape(batch, n, n)))


@registered
def slogdet_sign(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.slogdet(a.reshape(batch, n, n))[0])


@registered
def slogdet_log(out: Any, a: Any, batch: int, n: int) -> int:
    return _put(out, lambda: np.linalg.slogdet(a.reshape(batch, n, n))[1])


@registered
def cofactor(out: Any, a: Any, batch: int, n: int) -> int:
    from jitad.primitives.linalg.determinants import cofactor as row

    return _put(out, lambda: row.evaluate(a.reshape(batch, n, n)))


@registered
def cofactor_tangent(out: Any, a: Any, e: Any, batch: int, n: int, _: int) -> int:
    from jitad.primitives.linalg.determinants import cofactor_tangent as row

    return _put(out, lambda: row.evaluate(a.reshape(batch, n, n), e.reshape(batch, n, n)))


@registered
def gemm(out: Any, a: Any, b: Any, m: int, n: int, k: int, transposed_a: int, transposed_b: int, flipped: int) -> int:
    """``out[m, n] = op(a)[m, k] @ op(b)[k, n]``; the operands are given as (b, a) if `flipped`."""
    a, b = (x.ravel("K") for x in ((b, a) if flipped else (a, b)))
    left = a.reshape(k, m).T if transposed_a else a.reshape(m, k)
    right = b.reshape(n, k).T if transposed_b else b.reshape(k, n)
    return _put(out, lambda: left @ right)


@registered
def factor(out: Any, a: Any, batch: int, n: int) -> int:
    """The matrices themselves, which the plain versions of what reads factors take."""
    out.reshape(batch, n + 2, n)[:, :n] = a.reshape(batch, n, n)
    return STATUS_OK


def _matrices(f: Any, batch: int, n: int) -> Any:
    return np.ascontiguousarray(f.reshape(batch, n + 2, n)[:, :n])


@registered
def solve_factored(out: Any, f: Any, b: Any, batch: int, n: int, k: int, trans: int) -> int:
    matrices = _matrices(f, batch, n)
    return solve(out, np.swapaxes(matrices, 1, 2) if trans else matrices, b, batch, n, k)


@registered
def inv_factored(out: Any, f: Any, batch: int, n: int, strict: int) -> int:
    return inv(out, _matrices(f, batch, n), batch, n, strict)


@registered
def det_factored(out: Any, f: Any, batch: int, n: int) -> int:
    return det(out, _matrices(f, batch, n), batch, n)


@registered
def slogdet_sign_factored(out: Any, f: Any, batch: int, n: int) -> int:
    return slogdet_sign(out, _matrices(f, batch, n), batch, n)


@registered
def slogdet_log_factored(out: Any, f: Any, batch: int, n: int) -> int:
    return slogdet_log(out, _matrices(f, batch, n), batch, n)


def _of_row(name: str, **params: Any) -> Callable[..., int]:
    """The row `name` of the table on flat arrays with their shapes."""
    def evaluate(out: Any, *operands: tuple[Any, tuple[int, ...]]) -> int:
        from jitad.tape.types import TABLE

        return _put(out, lambda: TABLE[name].evaluate(*(a.reshape(shape) for a, shape in operands), **params))
    return evaluate


@registered
def cholesky_cotangent(out: Any, factor: Any, ct: Any, batch: int, n: int) -> int:
    return _of_row("cholesky_cotangent")(out, (factor, (batch, n, n)), (ct, (batch, n, n)))


@registered
def eigh(out: Any, a: Any, batch: int, n: int, upper: int = 0) -> int:
    return _of_row("eigh", upper=bool(upper))(out, (a, (batch, n, n)))


@registered
def heigh(out: Any, h: Any, batch: int, n: int, upper: int = 0) -> int:
    return _of_row("heigh", upper=bool(upper))(out, (h, (batch, n, n, 2)))


@registered
def csvd(out: Any, a: Any, batch: int, m: int, n: int) -> int:
    return _of_row("csvd")(out, (a, (batch, m, n, 2)))


@registered
def cqr(out: Any, a: Any, batch: int, m: int, n: int) -> int:
    return _of_row("cqr")(out, (a, (batch, m, n, 2)))


@registered
def clu(out: Any, a: Any, order: Any, batch: int, n: int) -> int:
    return _of_row("clu")(out, (a, (batch, n, n, 2)), (order, (batch, n)))


@registered
def eig(out: Any, a: Any, batch: int, n: int, packed: int = 0) -> int:
    return _of_row("eig", packed=bool(packed))(out, (a, (batch, n, n, 2) if packed else (batch, n, n)))


@registered
def eigvalsh(out: Any, a: Any, batch: int, n: int, upper: int = 0) -> int:
    return _put(out, lambda: np.linalg.eigvalsh(a.reshape(batch, n, n), "U" if upper else "L"))


@registered
def svd(out: Any, a: Any, batch: int, m: int, n: int) -> int:
    return _of_row("svd")(out, (a, (batch, m, n)))


@registered
def svdvals(out: Any, a: Any, batch: int, m: int, n: int) -> int:
    return _put(out, lambda: np.linalg.svdvals(a.reshape(batch, m, n)))


@registered
def pinv(out: Any, a: Any, batch: int, m: int, n: int, rcond: float) -> int:
    return _of_row("pinv", rcond=rcond)(out, (a, (batch, m, n)))


@registered
def orthogonal_factor(out: Any, a: Any, batch: int, m: int, n: int) -> int:
    return _of_row("orthogonal_factor")(out, (a, (batch, m, n)))


@registered
def qr(out: Any, a: Any, batch: int, m: int, n: int) -> int:
    return _of_row("qr")(out, (a, (batch, m, n)))


@registered
def lu(out: Any, a: Any, order: Any, batch: int, n: int) -> int:
    return _of_row("lu")(out, (a, (batch, n, n)), (order, (batch, n)))


@registered
def lu_order(out: Any, a: Any, batch: int, n: int, packed: int = 0) -> int:
    return _of_row("lu_order", packed=bool(packed))(out, (a, (batch, n, n, 2) if packed else (batch, n, n)))


@registered
def lu_pivots(out: Any, order: Any, batch: int, n: int) -> int:
    return _of_row("lu_pivots")(out, (order, (batch, n)))


@registered
def expm(out: Any, a: Any, batch: int, n: int) -> int:
    return _of_row("expm")(out, (a, (batch, n, n)))


@registered
def sqrtm(out: Any, a: Any, batch: int, n: int) -> int:
    return _of_row("sqrtm")(out, (a, (batch, n, n)))


@registered
def sylvester(out: Any, a: Any, b: Any, q: Any, batch: int, n: int, k: int) -> int:
    return _of_row("sylvester")(out, (a, (batch, n, n)), (b, (batch, k, k)), (q, (batch, n, k)))


@registered
def solve_banded(out: Any, ab: Any, b: Any, _: int, n: int, k: int, lower: int, upper: int) -> int:
    return _of_row("solve_banded", lower=lower, upper=upper)(out, (ab, (lower + upper + 1, n)), (b, (n, k)))


@registered
def solveh_banded(out: Any, ab: Any, b: Any, _: int, rows: int, n: int, k: int) -> int:
    return _of_row("solveh_banded")(out, (ab, (rows, n)), (b, (n, k)))


def _failing(routine: Callable[..., int]) -> Callable[..., int]:
    """Whether `routine` fails, for each example."""
    def evaluate(out: Any, *rest: Any) -> int:
        operands = [x for x in rest if isinstance(x, np.ndarray)]
        count, size, *others = rest[len(operands):]
        sizes, numbers = others[:len(operands)], others[len(operands):]
        for i in range(count):
            given = [x.reshape(-1)[i * n:(i + 1) * n] for x, n in zip(operands, sizes, strict=True)]
            out.reshape(-1)[i] = routine(np.empty(size, operands[0].dtype), *given, *numbers) != STATUS_OK
        return STATUS_OK
    return evaluate


ROUTINES.update({fails.name: _failing(ROUTINES[row.name]) for row, fails in FAILS.items()})
