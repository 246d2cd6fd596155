"""scipy.linalg by eigenvalues, singular values, QR, LU, and its functions of matrices."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.core import cast
from jitad.primitives.linalg.matrices import matmul, mT, triangle
from jitad.primitives.view import expand_dims
from jitad.primitives.view import squeeze as drop
from jitad.trace.attempts import require_finite
from jitad.trace.dispatch import as_value, lift_all, lift_with, refused
from jitad.trace.numpy_rules.algebra.factors import (
    decomposed,
    eigen_pairs,
    eigen_values,
    eps,
    inverse_order,
    least_squares,
    matrices,
    only_right,
    order_of_rows,
    pinv_of,
    qr_of,
    static,
    svdvals,
)
from jitad.trace.numpy_rules.algebra.factors import svd as numpy_svd
from jitad.trace.numpy_rules.algebra.linalg import check_square, norm, with_columns
from jitad.trace.scipy_rules.linalg import CHECKS_RIGHT
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import as_float

# --- eigenvalues -------------------------------------------------------------------------------

@substitute("scipy.linalg", "eigh")
def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
         overwrite_b: bool = False, type: int = 1, check_finite: bool = True, subset_by_index: Any = None,
         subset_by_value: Any = None, driver: Any = None) -> Any:
    """A pair (a, b) by the Cholesky factor of b, as LAPACK has it. Of one matrix the signs of vectors are NumPy's:
    those of SciPy's default algorithm follow from rounding errors."""
    a = lift_with(a, b)
    if subset_by_value is not None:
        raise refused(a, "scipy.linalg.eigh with subset_by_value", "choose among the eigenvalues yourself")
    if type not in (1, 2, 3):
        raise ValueError('"type" keyword only accepts 1, 2, and 3.')
    require_finite(check_finite, a)
    factor = None
    if b is None:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError('expected square "a" matrix')
        y = decomposed(a, "L" if lower else "U")
    else:
        b = as_value(a.builder, b)
        require_finite(check_finite, b)
        a, factor = _standard(a, b, lower, type)
        y = decomposed(a, "L" if lower else "U")
    first, last = (0, y.shape[-2] - 1) if subset_by_index is None else map(int, subset_by_index)
    if not 0 <= first <= last < max(y.shape[-2], 1):
        raise ValueError(f"Requested eigenvalue indices are not valid. Valid range is [0, {y.shape[-2] - 1}] and "
                         f"start <= end, but start={first}, end={last} is given")
    y = y[..., first:last + 1, :]
    values = rows.column(y, 0)
    if eigvals_only:
        return values
    vectors = mT(rows.columns(y, 1, y.shape[-1]))
    if factor is not None:
        vectors = matmul(factor, vectors) if type == 3 else rows.solve_triangular(factor, vectors, trans=True)
    return values, vectors


def _standard(a: Any, b: Any, lower: bool, type: int) -> tuple[Any, Any]:
    """The matrix of the ordinary problem, and the Cholesky factor of b."""
    a, b = check_square(a), check_square(b)
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    if a.shape != b.shape:
        raise ValueError(f"wrong b dimensions {b.shape}, should be {a.shape}")
    a = triangle(a, lower) + mT(triangle(a, lower, strict=True))
    factor = rows.cholesky(b) if lower else rows.cholesky(b, upper=True)
    if type != 1:
        return matmul(mT(factor), matmul(a, factor)), factor
    half = rows.solve_triangular(factor, a)
    return rows.solve_triangular(factor, mT(half)), factor


@substitute("scipy.linalg", "eigvalsh")
def eigvalsh(a: Any, b: Any = None, **options: Any) -> Any:
    return eigh(a, b, eigvals_only=True, **options)


@substitute("scipy.linalg", "eig")
def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, **options: Any) -> Any:
    """The values are complex, as SciPy has them."""
    only_right(lift_with(a, b), b, left, options)
    y = _general(a)
    values = eigen_values(y, real=False)
    if not right:
        return values
    vectors = eigen_pairs(y)[1]
    return values, vectors


@substitute("scipy.linalg", "eigvals")
def eigvals(a: Any, b: Any = None, **options: Any) -> Any:
    only_right(lift_with(a, b), b, False, options)
    return eigen_values(_general(a), real=False)


def _general(a: Any) -> Any:
    a = as_float(lift_all(a)[0])
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError("expected square matrix")
    require_finite(True, a)
    return rows.eig(a)


# --- singular values ---------------------------------------------------------------------------

@substitute("scipy.linalg", "svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
        check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:
    a, = lift_all(a)
    require_finite(check_finite, a)
    result: Any = numpy_svd(a, full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


@substitute("scipy.linalg", "svdvals")
def svdvals_(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    require_finite(check_finite, *lift_all(a))
    return svdvals(a)


@substitute("scipy.linalg", "norm")
def norm_(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    a, = lift_all(a)
    require_finite(check_finite, a)
    result = norm(a, ord, axis, keepdims)
    by_lapack = axis is None and not keepdims and ord in {1: (None, 2), 2: (1, np.inf)}.get(a.ndim, ())
    return cast(result, np.float64) if by_lapack else result         # a Python number in SciPy, also of float32


@substitute("scipy.linalg", "pinv")
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    a = matrices(a)
    require_finite(check_finite, a)
    static((atol, rtol), a, "scipy.linalg.pinv with a traced tolerance")
    if (atol or 0.0) < 0 or (rtol or 0.0) < 0:
        raise ValueError("atol and rtol values must be positive.")
    if atol:
        raise refused(a, "scipy.linalg.pinv with atol", "use rtol")
    rtol = max(a.shape) * eps(a) if rtol is None else float(rtol)
    result = pinv_of(a, rtol)
    return (result, np.linalg.matrix_rank(a, rtol=rtol)) if return_rank else result


@substitute("scipy.linalg", "lstsq")
def lstsq(a: Any, b: Any, cond: Any = None, overwrite_a: bool = False, overwrite_b: bool = False,
          check_finite: bool = True, lapack_driver: Any = None) -> Any:
    a, b = lift_all(a, b)
    if a.ndim != 2:
        raise ValueError("Input array a should be 2D")
    if a.shape[0] != b.shape[0]:
        raise ValueError("Shape mismatch: a and b should have the same number of rows "
                         f"({a.shape[0]} != {b.shape[0]}).")
    require_finite(check_finite, a, b)
    if lapack_driver == "gelsy":
        raise refused(a, "scipy.linalg.lstsq with lapack_driver='gelsy'", "leave the option out")
    dtype = np.result_type(as_float(a).dtype, as_float(b).dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    cond = static(eps(a) if cond is None else cond, a, "scipy.linalg.lstsq with a traced cond")
    return least_squares(a, b, float(cond), vector_residuals=False)


@substitute("scipy.linalg", "polar")
def polar(a: Any, side: str = "right") -> Any:
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    a = matrices(a)
    require_finite(True, a)
    wide = a.shape[-2] < a.shape[-1]
    u = rows.orthogonal_factor(mT(a) if wide else a)
    u = mT(u) if wide else u
    p = matmul(mT(u), a) if side == "right" else matmul(a, mT(u))
    return u, (p + mT(p)) * 0.5


# --- QR and LU -----------------------------------------------------------------------------------

@substitute("scipy.linalg", "qr")
def qr(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
       check_finite: bool = True) -> Any:
    a = matrices(a)
    require_finite(check_finite, a)
    if mode not in ("full", "qr", "r", "economic", "raw"):
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic', 'raw']")
    if pivoting or mode == "raw":
        raise refused(a, f"scipy.linalg.qr with {'pivoting' if pivoting else 'mode=raw'}", "use mode='economic'")
    if mode != "economic" and a.shape[-2] > a.shape[-1]:
        raise refused(a, f"scipy.linalg.qr with mode={mode!r} of matrices with more rows than columns",
                      "use mode='economic': the columns beyond are any basis of what is left")
    q, r = qr_of(a)
    return (r,) if mode == "r" else (q, r)


def factored(a: Any, name: str, check_finite: bool) -> tuple[Any, Any]:
    """Both LU factors in one matrix, and the order of rows. The order follows from as many columns as there are steps;
    a wide matrix has its further columns divided by L, a tall one its further rows by U."""
    a = matrices(a)
    require_finite(check_finite, a)
    m, n = a.shape[-2:]
    if m < n:
        both, order = factored(a[..., :m], name, False)
        lower = triangle(both, lower=True, strict=True) + np.eye(m, dtype=both.dtype)
        further = rows.solve_triangular(lower, rows.permuted(a[..., m:], order), lower=True)
        return np.concatenate([both, further], -1), order
    order = rows.lu_order(a if m == n else np.concatenate([a, np.zeros((*a.shape[:-1], m - n), a.dtype)], -1))
    if m == n:
        return rows.lu(a, order), order
    a = rows.permuted(a, order)
    top = rows.lu(a[..., :n, :], rows.lu_order(a[..., :n, :]))
    below = rows.solve_triangular(triangle(top, lower=False), mT(a[..., n:, :]), lower=False, trans=True)
    return np.concatenate([top, mT(below)], -2), order


@substitute("scipy.linalg", "lu")
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True,
       p_indices: bool = False) -> Any:
    both, order = factored(a, "lu", check_finite)
    m, n = both.shape[-2:]
    k = min(m, n)
    lower = np.tril(both[..., :k], -1) + np.eye(m, k, dtype=both.dtype)
    upper = np.triu(both[..., :k, :])
    if permute_l or p_indices:
        inverse = inverse_order(order)
        return (rows.permuted(lower, inverse), upper) if permute_l else (cast(inverse, np.int32), lower, upper)
    p = expand_dims(order, (order.ndim - 1,)) == np.arange(m)[:, None]
    return cast(p, both.dtype), lower, upper


@substitute("scipy.linalg", "lu_factor")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    both, order = factored(a, "lu_factor", check_finite)
    pivots: Any = cast(rows.lu_pivots(order), np.int32)
    return both, pivots[..., :min(both.shape[-2:])]


@substitute("scipy.linalg", "lu_solve")
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    both, pivots = lu_and_piv
    both, b = lift_all(both, b)
    require_finite(check_finite, b)
    if trans not in (0, 1, 2):
        raise ValueError(f"Illegal value encountered in trans={trans}")
    order = order_of_rows(both.builder, pivots)

    def solved(p: Any, q: Any) -> Any:
        if trans:
            inner = rows.solve_triangular(p, q, lower=False, trans=True)
            return rows.permuted(rows.solve_triangular(p, inner, unit=True, trans=True), inverse_order(order))
        return rows.solve_triangular(p, rows.solve_triangular(p, rows.permuted(q, order), unit=True), lower=False)
    return with_columns(solved, check_square(both), b, b.ndim == 1)


# --- matrix equations ----------------------------------------------------------------------------

@substitute("scipy.linalg", "solve_sylvester")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    a, b, q = lift_all(a, b, q)
    dtype = np.result_type(*(as_float(x).dtype for x in (a, b, q)))
    require_finite(True, a, b)
    return rows.sylvester(*(cast(x, dtype) for x in (check_square(a), check_square(b), q)))


@substitute("scipy.linalg", "solve_continuous_lyapunov")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    a, q = lift_all(a, q)
    require_finite(True, a, q)
    return solve_sylvester(a, mT(check_square(a)), q)


@substitute("scipy.linalg", "solve_discrete_lyapunov")
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """``X = A X A^T + Q``: for sides below 10 as one system, else as a continuous equation."""
    a, q = lift_all(a, q)
    a, n = check_square(a), a.shape[-1]
    direct = (str(method).lower() if method is not None else "direct" if n < 10 else "bilinear") == "direct"
    require_finite(True, a, *((q,) if CHECKS_RIGHT or not direct else ()))
    dtype = np.dtype(np.float64)                                   # SciPy's, also of float32
    a, q = cast(a, dtype), cast(q, dtype)
    if method is not None and str(method).lower() not in ("bilinear", "direct"):
        raise ValueError(f"Unknown solver {method}")
    if direct:
        whole = np.eye(n * n, dtype=dtype) - np.kron(a, a)
        return drop(rows.solve(whole, expand_dims(q.reshape(n * n), (1,))), (1,)).reshape(n, n)
    one = np.eye(n, dtype=dtype)
    inverse = rows.inv(mT(a) + one)
    b = matmul(mT(a) - one, inverse)
    right = matmul(matmul(rows.inv(a + one) * 2.0, q), inverse)
    return rows.sylvester(mT(b), b, -right)


__all__ = ["eigh", "lu_factor", "lu_solve"]
