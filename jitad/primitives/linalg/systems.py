"""Linear algebra over the last two dimensions; leading dimensions are a batch. Systems, inverses, determinants.

Every derivative is written with primitives, so that it can be differentiated again. The
formulas are those of M. B. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008). Matrices that NumPy refuses raise
`numpy.linalg.LinAlgError` here too.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import Cotangents, full, zeros_like
from jitad.primitives.linalg.banded import solve_banded, solveh_banded
from jitad.primitives.linalg.cholesky import cholesky, cholesky_cotangent, cholesky_inverse
from jitad.primitives.linalg.forms import positive_diagonal, triangles
from jitad.primitives.linalg.functions import expm, orthogonal_factor, sqrtm, sylvester
from jitad.primitives.linalg.matrices import (
    in_columns,
    inner,
    leading,
    matmul,
    mT,
    one_number,
    regular,
    same_shape,
    spread_scalar,
    system,
    system_infer,
    trace_of,
)
from jitad.primitives.linalg.qr import lu, lu_order, lu_pivots, order_of_pivots, permuted, pinv, qr, qr_parts
from jitad.primitives.linalg.spectral import column, columns, eigh, svd, svd_parts
from jitad.primitives.linalg.triangular import solve_triangular
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.view import diagonal
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Primitive

# --- general systems ---------------------------------------------------------------------------

def _solve_vjp(ct: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    b_bar = solve(mT(a), ct)
    return -matmul(b_bar, mT(y)), b_bar


def _solve_jvp(tangents: Cotangents, y: Value, a: Value, b: Value) -> Value | None:
    da, db = tangents
    right = db
    if da is not None:
        moved = matmul(da, y)
        right = -moved if right is None else right - moved
    return None if right is None else solve(a, right)


_solve_prim = Primitive(
    "solve", evaluate=lambda a, b: np.linalg.solve(a, b), infer=system_infer, vjp=_solve_vjp, jvp=_solve_jvp, cost=100,
    batch=in_columns,
    samples=lambda rng: [((regular(rng), rng.normal(size=(3, 2))), {}),
                         ((regular(rng, 2), rng.normal(size=(2, 3, 1))), {})])


def solve(a: Any, b: Any) -> Any:
    """The x of ``a @ x = b``. `b` has shape ``(..., n, k)``; leading dimensions broadcast. Where `a` is known to be
    triangular, it is a triangular system."""
    lower, upper = triangles(a) if isinstance(a, Value) else (False, False)
    if lower or upper:
        return solve_triangular(a, b, lower=lower)
    return _solve_prim(*system(a, b))


def _inv(a: Any, strict: bool = True) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        if strict:
            raise
        if a.ndim == 2:
            return np.full(a.shape, np.nan, a.dtype)
        return np.stack([_inv(m, strict) for m in a])


_inv_prim = Primitive(
    "inv", evaluate=_inv, infer=same_shape, cost=100, batch=leading,
    vjp=lambda ct, y, a, strict=True: (-matmul(mT(y), matmul(ct, mT(y))),),
    jvp=lambda tangents, y, a, strict=True: None if tangents[0] is None else -matmul(y, matmul(tangents[0], y)),
    samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2),), {"strict": False})])


def inv(a: Any, *, strict: bool = True) -> Any:
    """The inverse; a singular matrix raises LinAlgError, or gives NaN if not `strict`."""
    return _inv_prim(a) if strict else _inv_prim(a, strict=False)


# --- determinants ------------------------------------------------------------------------------

def _without(s: np.ndarray, *indices: int) -> np.ndarray:
    return np.prod(np.delete(s, indices, axis=-1), axis=-1)


def _svd(a: Any) -> tuple[Any, Any, Any, Any]:
    """``u, s, v.T`` of ``a = u @ diag(s) @ v.T``, and ``det(u) det(v)``, NaN for matrices that are not finite."""
    finite = np.isfinite(a).all(axis=(-1, -2))[..., None, None]
    u, s, vt = np.linalg.svd(np.where(finite, a, 0.0).astype(np.float64))
    sign = (np.linalg.det(u) * np.linalg.det(vt))[..., None, None]
    return u, s, vt, np.where(finite, sign, np.nan)


def _cofactor(a: Any) -> Any:
    if a.size == 0:
        return a
    u, s, vt, sign = _svd(a)
    rest = np.stack([_without(s, i) for i in range(s.shape[-1])], axis=-1)
    return (sign * ((u * rest[..., None, :]) @ vt)).astype(a.dtype)


def _cofactor_tangent(a: Any, e: Any) -> Any:
    if a.size == 0:
        return a
    u, s, vt, sign = _svd(a)
    n = s.shape[-1]
    pairs = np.zeros((*s.shape, n))
    for i in range(n):
        for j in range(i):
            pairs[..., i, j] = pairs[..., j, i] = _without(s, i, j)
    inside = np.swapaxes(u, -1, -2) @ e @ np.swapaxes(vt, -1, -2)
    moved = -pairs * np.swapaxes(inside, -1, -2)
    at = np.arange(n)
    moved[..., at, at] = (pairs @ np.diagonal(inside, axis1=-2, axis2=-1)[..., None])[..., 0]
    return (sign * (u @ moved @ vt)).astype(a.dtype)


def _tangent_vjp(ct: Value, y: Value, a: Value, e: Value) -> tuple[Value, Value]:
    return _third(a, e, ct), cofactor_tangent(a, ct)


def _tangent_jvp(tangents: Cotangents, y: Value, a: Value, e: Value) -> Value | None:
    da, de = tangents
    terms = [_third(a, e, da)] if da is not None else []
    terms += [cofactor_tangent(a, de)] if de is not None else []
    return sum(terms[1:], terms[0]) if terms else None


def _third(a: Value, e: Value, f: Value) -> Value:
    """The third derivative of det in the directions e and f, a matrix; NaN where `a` is singular."""
    g = inv(a, strict=False)
    ge, gf = matmul(g, e), matmul(g, f)
    te, tf = (spread_scalar(reduce_sum(diagonal(m, 0, m.ndim - 2, m.ndim - 1), (m.ndim - 2,)), m) for m in (ge, gf))
    geg, gfg = matmul(ge, g), matmul(gf, g)
    bracket = (te * tf - trace_of(ge, gf)) * g - tf * geg - te * gfg + matmul(ge, gfg) + matmul(gf, geg)
    return spread_scalar(det(a), a) * mT(bracket)


cofactor = Primitive(
    "cofactor", evaluate=_cofactor, infer=same_shape, cost=1000, batch=leading,
    vjp=lambda ct, y, a: (cofactor_tangent(a, ct),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else cofactor_tangent(a, tangents[0]),
    samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2, n=2),), {})])
"""The derivative of `det`: ``det(a) * inv(a).T``, by singular values, so that it holds for singular `a`."""

cofactor_tangent: Primitive = Primitive(
    "cofactor_tangent", evaluate=_cofactor_tangent, infer=lambda a, e: same_shape(a), cost=1000,
    batch=leading,
    vjp=_tangent_vjp, jvp=_tangent_jvp,
    samples=lambda rng: [((regular(rng), rng.normal(size=(3, 3))), {}),
                         ((regular(rng, 2, n=2), rng.normal(size=(2, 2, 2))), {})])
"""The derivative of `cofactor` in the direction `e`, also for singular `a`; its own derivative is NaN there."""

det = Primitive(
    "det", evaluate=lambda a: np.linalg.det(a), infer=one_number, cost=100, batch=leading,
    vjp=lambda ct, y, a: (spread_scalar(ct, a) * cofactor(a),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else inner(cofactor(a), tangents[0]),
    samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2),), {}),
                         ((np.outer(rng.normal(size=3), rng.normal(size=3)) + np.diag([1.0, 0, 0]),), {})])
"""The determinant. First and second derivatives hold for singular matrices, third ones are NaN there."""

slogdet_sign = Primitive(
    "slogdet_sign", evaluate=lambda a: np.linalg.slogdet(a)[0], infer=one_number, cost=100, batch=leading,
    vjp=lambda ct, y, a: (None,), jvp=lambda tangents, y, a: zeros_like(y),
    samples=lambda rng: [((regular(rng),), {}), ((-regular(rng, 2),), {})])
"""The sign of the determinant; 0 for a singular matrix. Piecewise constant."""

slogdet_log = Primitive(
    "slogdet_log", evaluate=lambda a: np.linalg.slogdet(a)[1], infer=one_number, cost=100, batch=leading,
    vjp=lambda ct, y, a: (spread_scalar(ct, a) * mT(inv(a, strict=False)),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else inner(mT(inv(a, strict=False)), tangents[0]),
    samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2),), {})])
"""The logarithm of the absolute determinant; of a singular matrix -inf with derivative NaN."""


def slogdet(a: Value) -> tuple[Value, Value]:
    """The sign of the determinant and the logarithm of its magnitude; of triangular matrices by their diagonals."""
    if triangles(a) == (False, False):
        return slogdet_sign(a), slogdet_log(a)
    pivots = diagonal(a, 0, a.ndim - 2, a.ndim - 1)
    if positive_diagonal(a):
        return one_everywhere(a), reduce_sum(TABLE["log"](pivots), (pivots.ndim - 1,))
    return slogdet_sign(a), reduce_sum(TABLE["log"](TABLE["abs"](pivots)), (pivots.ndim - 1,))


def one_everywhere(a: Value) -> Value:
    return full(a, 1, a.shape[:-2], a.dtype)


__all__ = [
    "cholesky", "cholesky_cotangent", "cholesky_inverse", "cofactor", "cofactor_tangent", "column", "columns",
    "det", "eigh", "expm", "inv", "lu", "lu_order", "lu_pivots", "mT", "matmul", "order_of_pivots",
    "orthogonal_factor", "permuted", "pinv", "qr", "qr_parts", "slogdet", "slogdet_log", "slogdet_sign", "solve",
    "solve_banded", "solve_triangular", "solveh_banded", "sqrtm", "svd", "svd_parts", "sylvester"]
