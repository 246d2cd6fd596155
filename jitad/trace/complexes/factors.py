"""QR and LU factors of complex matrices, triangular systems and those with factors, in NumPy and SciPy."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.trace.attempts import require_finite
from jitad.trace.complexes.functions import rule
from jitad.trace.complexes.linalg import cholesky, factors_of, matrix, square
from jitad.trace.complexes.spectra import form
from jitad.trace.dispatch import builder_in, refused
from jitad.trace.numpy_rules.algebra.factors import inverse_order, order_of_rows
from jitad.trace.values.pairs import Complex, pack, pair, parts_of

_QRResult = type(np.linalg.qr(np.eye(1)))


def _pair(z: Any) -> rows.Pair:
    return rows.Pair(z.re, z.im)


def _shown(z: rows.Pair) -> Any:
    return pair(z.re, z.im)


# --- QR ----------------------------------------------------------------------------------------

@rule(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    a = matrix(a)
    if mode in ("f", "full", "e", "economic", "raw"):
        raise refused(a.builder, f"numpy.linalg.qr of complex matrices with mode={mode!r}", "use 'reduced' or 'r'")
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    if mode == "complete" and a.shape[-2] > a.shape[-1]:
        raise refused(a.builder, "numpy.linalg.qr with mode='complete' of matrices with more rows than columns",
                      "use 'reduced': the columns beyond are any basis of what is left")
    q, r = _qr(a)
    return r if mode == "r" else _QRResult(q, r)  # type: ignore[arg-type]


def _qr(a: Complex) -> tuple[Any, Any]:
    """Q and R; of wide matrices from the square part on the left."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    m, n = a.shape[-2:]
    left = a.builder.value(pack(a[..., :m] if n > m else a).number)
    q, r = (_shown(part) for part in rows.cqr_parts(rows.cqr(left), left))
    if n > m:
        r = np.concatenate([r, np.conjugate(np.swapaxes(q, -1, -2)) @ a[..., m:]], axis=-1)
    return q, r


@form("qr")
def scipy_qr(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
             check_finite: bool = True) -> Any:
    a = matrix(a)
    require_finite(check_finite, a)
    if mode not in ("full", "qr", "r", "economic", "raw"):
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic', 'raw']")
    if pivoting or mode == "raw":
        raise refused(a.builder, f"scipy.linalg.qr with {'pivoting' if pivoting else 'mode=raw'}",
                      "use mode='economic'")
    if mode != "economic" and a.shape[-2] > a.shape[-1]:
        raise refused(a.builder, f"scipy.linalg.qr with mode={mode!r} of matrices with more rows than columns",
                      "use mode='economic': the columns beyond are any basis of what is left")
    q, r = _qr(a)
    return (r,) if mode == "r" else (q, r)


# --- LU ----------------------------------------------------------------------------------------

def _factored(a: Any, check_finite: bool) -> tuple[Complex, Any]:
    a = matrix(a)
    if a.ndim > 1 and a.shape[-1] != a.shape[-2]:
        raise refused(a.builder, "scipy.linalg.lu of matrices that are not square", "use square ones")
    a = square(a)
    require_finite(check_finite, a)
    return factors_of(a)


@form("lu")
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True,
       p_indices: bool = False) -> Any:
    both, order = _factored(a, check_finite)
    n = both.shape[-1]
    lower: Any = np.tril(both, -1) + np.eye(n)           # type: ignore[call-overload]
    upper = np.triu(both)                                # type: ignore[call-overload]
    if permute_l or p_indices:
        inverse: Any = inverse_order(order)
        if permute_l:
            return _shown(_pair(lower).each(lambda part: rows.permuted(part, inverse))), upper
        return inverse.astype(np.int32), lower, upper
    return (order[..., None, :] == np.arange(n)[:, None]).astype(both.re.dtype), lower, upper


@form("lu_factor")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    both, order = _factored(a, check_finite)
    return both, order.builder.value(rows.lu_pivots(order).number).astype(np.int32)


@form("lu_solve")
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    both, pivots = lu_and_piv
    builder = builder_in(both, b)
    both, b = (pair(*parts_of(builder, v)) for v in (both, b))
    require_finite(check_finite, b)
    if trans not in (0, 1, 2):
        raise ValueError(f"Illegal value encountered in trans={trans}")
    order = order_of_rows(both.builder, pivots)
    if trans == 1:                                       # the adjoint, between conjugates
        return np.conjugate(lu_solve((both, pivots), np.conjugate(b), 2, check_finite=False))
    right = b if b.ndim > 1 else b[..., None]
    if trans:
        inner = rows.solve_triangle(_pair(both), _pair(right), lower=False, adjoint=True)
        x = rows.solve_triangle(_pair(both), inner, lower=True, adjoint=True, unit=True)
        x = x.each(lambda part: rows.permuted(part, inverse_order(order)))
    else:
        inner = rows.solve_triangle(_pair(both), _pair(right).each(lambda part: rows.permuted(part, order)),
                                    lower=True, unit=True)
        x = rows.solve_triangle(_pair(both), inner, lower=False)
    return _shown(x) if b.ndim > 1 else _shown(x)[..., 0]


# --- triangles ---------------------------------------------------------------------------------

@form("solve_triangular")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
                     overwrite_b: bool = False, check_finite: bool = True) -> Any:
    builder = builder_in(a, b)
    a, b = square(a), pair(*parts_of(builder, b))
    require_finite(check_finite, a, b)
    if a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise ValueError(f"shapes of a {a.shape} and b {b.shape} are incompatible")
    trans = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    right = b if b.ndim > 1 else b[..., None]
    right = np.conjugate(right) if trans == 1 else right
    x = rows.solve_triangle(_pair(a), _pair(right), lower=bool(lower), adjoint=bool(trans), unit=bool(unit_diagonal))
    found = pair(x.re, -x.im if trans == 1 else x.im)
    return found if b.ndim > 1 else found[..., 0]


@form("cholesky")
def scipy_cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    require_finite(check_finite, a)
    return cholesky(a, upper=not lower)


@form("cho_factor")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The other triangle of the factor, which SciPy leaves undefined, is zero."""
    return scipy_cholesky(a, lower, check_finite=check_finite), bool(lower)


@form("cho_solve")
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    require_finite(check_finite, c, b)
    first = solve_triangular(c, b, trans="N" if lower else "C", lower=lower, check_finite=False)
    return solve_triangular(c, first, trans="C" if lower else "N", lower=lower, check_finite=False)


__all__ = ["cho_solve", "lu_solve", "qr"]
