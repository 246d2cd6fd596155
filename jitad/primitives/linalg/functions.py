"""Functions of matrices and linear matrix equations: exponential, square root, Sylvester, the orthogonal factor.

The derivative of a function of a matrix is a block of the function of ``[[A, E], [0, A]]`` (R. Mathias, 1996), or the
solution of a Sylvester equation (N. J. Higham, "Functions of Matrices", 2008, chapters 6, 8 and 10).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import zeros_like
from jitad.primitives.index import concatenate
from jitad.primitives.linalg.matrices import leading, matmul, mT, rectangle, regular, same_shape, square_batch
from jitad.primitives.linalg.systems import solve
from jitad.primitives.linear import Cotangents
from jitad.primitives.view import slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import Aval, Primitive


def _over_matrices(function: Callable[..., Any], shape: tuple[int, ...], *arrays: Any) -> Any:
    """`function` of each tuple of matrices."""
    out = np.empty(shape, arrays[0].dtype)
    for i in np.ndindex(shape[:-2]):
        out[i] = function(*(a[i] for a in arrays))
    return out


# --- the exponential ---------------------------------------------------------------------------

def _expm(a: Any) -> Any:
    from scipy.linalg import expm

    return expm(a).astype(a.dtype) if a.size else a


def _direction(a: Value, e: Value) -> Value:
    """The derivative of the exponential at `a` in the direction `e`."""
    n, axis = a.shape[-1], a.ndim - 1
    top, bottom = concatenate(a, e, axis=axis), concatenate(zeros_like(a), a, axis=axis)
    whole = expm(concatenate(top, bottom, axis=axis - 1))
    lead = (slice(None),) * (a.ndim - 2)
    return slice_dims(whole, (*lead, slice(0, n), slice(n, 2 * n)))


expm: Primitive = Primitive(
    "expm", evaluate=_expm, infer=same_shape, cost=1000, batch=leading,
    vjp=lambda ct, y, a: (_direction(mT(a), ct),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else _direction(a, tangents[0]),
    samples=lambda rng: [((rng.normal(size=(3, 3)),), {}), ((5 * rng.normal(size=(2, 2, 2)),), {})])
"""The exponential of each matrix."""


# --- Sylvester equations -----------------------------------------------------------------------

def _sylvester(a: Any, b: Any, q: Any) -> Any:
    from scipy.linalg import solve_sylvester

    return _over_matrices(solve_sylvester, q.shape, a, b, q) if q.size else q


def _sylvester_infer(a: Aval, b: Aval, q: Aval) -> Aval:
    batch = square_batch(a)
    if square_batch(b) != batch or q.shape != (*batch, a.shape[-1], b.shape[-1]):
        raise ValueError(f"sylvester: {a}, {b} and {q} do not fit together")
    return q


def _sylvester_vjp(ct: Value, y: Value, a: Value, b: Value, q: Value) -> tuple[Value, Value, Value]:
    s = sylvester(mT(a), mT(b), ct)
    return -matmul(s, mT(y)), -matmul(mT(y), s), s


def _sylvester_jvp(tangents: Cotangents, y: Value, a: Value, b: Value, q: Value) -> Value | None:
    da, db, right = tangents
    for t, product in ((da, lambda: matmul(da, y)), (db, lambda: matmul(y, db))):
        if t is not None:
            right = -product() if right is None else right - product()
    return None if right is None else sylvester(a, b, right)


sylvester: Primitive = Primitive(
    "sylvester", evaluate=_sylvester, infer=_sylvester_infer, vjp=_sylvester_vjp, jvp=_sylvester_jvp, cost=1000,
    batch=leading,
    samples=lambda rng: [((regular(rng), regular(rng, n=2), rng.normal(size=(3, 2))), {}),
                         ((regular(rng, 2), regular(rng, 2), rng.normal(size=(2, 3, 3))), {})])
"""The X of ``A @ X + X @ B = Q``."""


# --- the square root ---------------------------------------------------------------------------

def _sqrtm(a: Any) -> Any:
    from scipy.linalg import sqrtm

    def one(m: Any) -> Any:
        root = sqrtm(m)
        if np.iscomplexobj(root):
            raise np.linalg.LinAlgError("Matrix has no real square root (an eigenvalue is negative)")
        return root
    return _over_matrices(one, a.shape, a) if a.size else a


def _positive(rng: np.random.Generator, *batch: int) -> np.ndarray:
    a = regular(rng, *batch)
    return a @ np.swapaxes(a, -1, -2) + 0.3 * a + 2 * np.eye(3)


sqrtm = Primitive(
    "sqrtm", evaluate=_sqrtm, infer=same_shape, cost=1000, batch=leading,
    vjp=lambda ct, y, a: (sylvester(mT(y), mT(y), ct),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else sylvester(y, y, tangents[0]),
    samples=lambda rng: [((_positive(rng),), {}), ((_positive(rng, 2),), {})])
"""The real square root whose eigenvalues have positive real parts; LinAlgError where there is none."""


# --- the orthogonal factor ---------------------------------------------------------------------

def _orthogonal(a: Any) -> Any:
    u, _, vt = np.linalg.svd(a, full_matrices=False)
    return u @ vt


def _orthogonal_infer(a: Aval) -> Aval:
    if a.ndim < 2 or a.shape[-2] < a.shape[-1]:
        raise ValueError("orthogonal_factor: the row is for matrices with at least as many rows as columns")
    return Aval(a.shape, a.dtype)


def _skew_part(y: Value, a: Value, inside: Value) -> Value:
    """The X of ``X P + P X = M - M^T`` for the symmetric factor ``P = Y^T A``."""
    p = matmul(mT(y), a)
    p = (p + mT(p)) * 0.5
    return sylvester(p, p, inside - mT(inside))


def _orthogonal_vjp(ct: Value, y: Value, a: Value) -> tuple[Value]:
    """``Y X + (I - Y Y^T) Y_bar P^-1`` with X the skew part of ``Y^T Y_bar``."""
    inside = matmul(mT(y), ct)
    return (matmul(y, _skew_part(y, a, inside)) + _beside(ct, inside, y, a),)


def _orthogonal_jvp(tangents: Cotangents, y: Value, a: Value) -> Value | None:
    t = tangents[0]
    if t is None:
        return None
    inside = matmul(mT(y), t)
    return matmul(y, _skew_part(y, a, inside)) + _beside(t, inside, y, a)


def _beside(t: Value, inside: Value, y: Value, a: Value) -> Value:
    if a.shape[-2] == a.shape[-1]:
        return zeros_like(t)
    return mT(solve(matmul(mT(a), y), mT(t - matmul(y, inside))))


orthogonal_factor = Primitive(
    "orthogonal_factor", evaluate=_orthogonal, infer=_orthogonal_infer, vjp=_orthogonal_vjp, jvp=_orthogonal_jvp,
    sides=rectangle, cost=1000, batch=leading,
    samples=lambda rng: [((regular(rng),), {}), ((rng.normal(size=(2, 4, 3)),), {})])
"""The U of the polar decomposition ``A = U @ P``, for at least as many rows as columns."""

__all__ = ["expm", "orthogonal_factor", "sqrtm", "sylvester"]
