"""Linear algebra over the last two dimensions; leading dimensions are a batch.

Every derivative is written with primitives, so that it can be differentiated again. The
formulas are those of M. B. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008), and for Cholesky of I. Murray,
"Differentiation of the Cholesky decomposition" (2016). Matrices that NumPy refuses raise
`numpy.linalg.LinAlgError` here too.
"""
from __future__ import annotations

from collections.abc import Callable
from string import ascii_lowercase
from typing import Any

import numpy as np

from jitad.primitives.core import Cotangents, Primitive, cast, zeros_like
from jitad.primitives.index import tril, triu
from jitad.primitives.reduce import contract, reduce_sum, restore
from jitad.primitives.view import broadcast_to, diagonal, transpose
from jitad.tape import Aval, Value

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]

# --- matrices by their usual operations --------------------------------------------------------

def mT(a: Any) -> Any:
    """The transpose of each matrix: ``mT(a)[..., i, j] = a[..., j, i]``."""
    n = len(a.shape)
    return transpose(a, (*range(n - 2), n - 1, n - 2))


def matmul(a: Any, b: Any) -> Any:
    """``sum_j a[..., i, j] * b[..., j, k]`` for matrices, with broadcasting of the leading dimensions."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    letters = ascii_lowercase[:len(batch)]
    a, left = _batched(a, batch, letters)
    b, right = _batched(b, batch, letters)
    return contract(a, b, f"{left}xy,{right}yz->{letters}xz")


def _batched(a: Any, batch: tuple[int, ...], letters: str) -> tuple[Any, str]:
    """`a` with the letters of its leading dimensions; those of length one are repeated only if needed."""
    own = a.shape[:-2]
    if own == batch[len(batch) - len(own):]:
        return a, letters[len(batch) - len(own):]
    return broadcast_to(a, batch + a.shape[-2:]), letters


def inner(a: Value, b: Value) -> Value:
    """``sum_ij a[..., i, j] * b[..., i, j]``."""
    letters = ascii_lowercase[:a.ndim - 2]
    return contract(a, b, f"{letters}xy,{letters}xy->{letters}")


def trace_of(a: Value, b: Value) -> Value:
    """``trace(a @ b)``, kept as a matrix of one element that broadcasts: shape ``(..., n, n)``."""
    return _spread_scalar(inner(a, mT(b)), a)


def _spread_scalar(scalar: Value, like: Value) -> Value:
    return restore(scalar, like.shape, (like.ndim - 2, like.ndim - 1))


def triangle(a: Value, lower: bool, strict: bool = False) -> Value:
    """The lower or upper triangle of each matrix, without the diagonal if `strict`."""
    return tril(a, k=-1 if strict else 0) if lower else triu(a, k=1 if strict else 0)


def _square(a: Aval) -> tuple[int, ...]:
    """The batch shape of square matrices; NumPy's own errors otherwise."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return a.shape[:-2]


def _same(a: Aval, **params: Any) -> Aval:
    _square(a)
    return Aval(a.shape, a.dtype)


def _scalar(a: Aval) -> Aval:
    return Aval(_square(a), a.dtype)


def _regular(rng: np.random.Generator, *batch: int, n: int = 3) -> np.ndarray:
    """Well-conditioned square matrices for the tests."""
    return rng.normal(size=(*batch, n, n)) + 3.0 * np.eye(n)


# --- Cholesky ----------------------------------------------------------------------------------

def _half_tril(a: Value) -> Value:
    """The lower triangle with half the diagonal."""
    return (triangle(a, lower=True) + triangle(a, lower=True, strict=True)) * 0.5


def _cholesky_vjp(ct: Value, y: Value, a: Value) -> tuple[Value]:
    """``a_bar = sym(L^-T P(L^T L_bar) L^-1)``."""
    middle = _half_tril(matmul(mT(y), ct))
    left = solve_triangular(y, middle, lower=True, trans=True)
    both = mT(solve_triangular(y, mT(left), lower=True, trans=True))
    return ((both + mT(both)) * 0.5,)


def _cholesky_jvp(tangents: Cotangents, y: Value, a: Value) -> Value | None:
    """``dL = L P(L^-1 sym(dA) L^-T)``."""
    t = tangents[0]
    if t is None:
        return None
    left = solve_triangular(y, (t + mT(t)) * 0.5, lower=True)
    return matmul(y, _half_tril(mT(solve_triangular(y, mT(left), lower=True))))


def _cholesky_samples(rng: np.random.Generator) -> Samples:
    return [((a @ np.swapaxes(a, -1, -2),), {}) for a in (_regular(rng), _regular(rng, 2), _regular(rng, n=1))]


cholesky = Primitive(
    "cholesky", evaluate=lambda a: np.linalg.cholesky(a), infer=_same, vjp=_cholesky_vjp, jvp=_cholesky_jvp,
    samples=_cholesky_samples, cost=100, info={"symmetric": (0,), "triangular": True})
"""The lower factor L of ``a = L @ L.T``. NumPy reads the lower triangle of `a` only; the derivative
is that of the function of the symmetric matrix: the cotangent is symmetric, and of a tangent
only the symmetric part counts."""


# --- triangular systems ------------------------------------------------------------------------

def _over_batch(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """`function` of each pair of matrices."""
    if a.ndim == 2:
        return function(a, b)
    out = np.empty(b.shape, b.dtype)
    for i in np.ndindex(a.shape[:-2]):
        out[i] = function(a[i], b[i])
    return out


def _solve_triangular(a: Any, b: Any, lower: bool, trans: bool, unit: bool) -> Any:
    from scipy.linalg import solve_triangular

    if b.size == 0:
        return np.zeros(b.shape, b.dtype)
    return _over_batch(lambda m, r: solve_triangular(
        m, r, trans=int(trans), lower=lower, unit_diagonal=unit, check_finite=False), a, b)


def _system_infer(a: Aval, b: Aval, **params: Any) -> Aval:
    batch = _square(a)
    if b.ndim < 2 or b.shape[:-1] != (*batch, a.shape[-1]) or a.dtype != b.dtype:
        raise ValueError(f"solve: a is {a} and b is {b}; b must be a matrix for each matrix of a, of the same dtype")
    return Aval(b.shape, b.dtype)


def _triangular_vjp(ct: Value, y: Value, a: Value, b: Value, lower: bool, trans: bool,
                    unit: bool) -> tuple[Value, Value]:
    """``b_bar = op(a)^-T ct`` and ``op(a)_bar = -b_bar y^T``, in the triangle that is read."""
    b_bar = solve_triangular(a, ct, lower=lower, trans=not trans, unit=unit)
    outer = matmul(y, mT(b_bar)) if trans else matmul(b_bar, mT(y))
    return -triangle(outer, lower, strict=unit), b_bar


def _triangular_jvp(tangents: Cotangents, y: Value, a: Value, b: Value, lower: bool, trans: bool,
                    unit: bool) -> Value | None:
    """``dy = op(a)^-1 (db - op(da) y)``."""
    da, db = tangents
    right = db
    if da is not None:
        da = triangle(da, lower, strict=unit)
        moved = matmul(mT(da) if trans else da, y)
        right = -moved if right is None else right - moved
    return None if right is None else solve_triangular(a, right, lower=lower, trans=trans, unit=unit)


def _triangular_samples(rng: np.random.Generator) -> Samples:
    return [((_regular(rng), rng.normal(size=(3, 2))), {"lower": True, "trans": False, "unit": False}),
            ((_regular(rng), rng.normal(size=(3, 1))), {"lower": True, "trans": True, "unit": False}),
            ((_regular(rng), rng.normal(size=(3, 2))), {"lower": False, "trans": False, "unit": True}),
            ((_regular(rng, 2), rng.normal(size=(2, 3, 2))), {"lower": False, "trans": True, "unit": False})]


_solve_triangular_prim = Primitive(
    "solve_triangular", evaluate=_solve_triangular, infer=_system_infer, vjp=_triangular_vjp, jvp=_triangular_jvp,
    samples=_triangular_samples, cost=100)


def solve_triangular(a: Any, b: Any, *, lower: bool = True, trans: bool = False, unit: bool = False) -> Any:
    """The x of ``op(a) @ x = b`` where op(a) is the lower or upper triangle of `a`, transposed if `trans`,
    with ones for the diagonal if `unit`. `b` has shape ``(..., n, k)``; leading dimensions broadcast.
    A zero on the diagonal raises LinAlgError."""
    a, b = _system(a, b)
    return _solve_triangular_prim(a, b, lower=bool(lower), trans=bool(trans), unit=bool(unit))


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
    "solve", evaluate=lambda a, b: np.linalg.solve(a, b), infer=_system_infer, vjp=_solve_vjp, jvp=_solve_jvp, cost=100,
    samples=lambda rng: [((_regular(rng), rng.normal(size=(3, 2))), {}),
                         ((_regular(rng, 2), rng.normal(size=(2, 3, 1))), {})])


def solve(a: Any, b: Any) -> Any:
    """The x of ``a @ x = b``. `b` has shape ``(..., n, k)``; leading dimensions broadcast."""
    return _solve_prim(*_system(a, b))


def _system(a: Any, b: Any) -> tuple[Any, Any]:
    """`a` and `b` with one batch shape and one dtype."""
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    a, b = (cast(x, dtype) if isinstance(x, Value) else np.asarray(x, dtype) for x in (a, b))
    if a.ndim < 2 or b.ndim < 2:
        return a, b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:])


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
    "inv", evaluate=_inv, infer=_same, cost=100,
    vjp=lambda ct, y, a, strict=True: (-matmul(mT(y), matmul(ct, mT(y))),),
    jvp=lambda tangents, y, a, strict=True: None if tangents[0] is None else -matmul(y, matmul(tangents[0], y)),
    samples=lambda rng: [((_regular(rng),), {}), ((_regular(rng, 2),), {"strict": False})])


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
    te, tf = (_spread_scalar(reduce_sum(diagonal(m, 0, m.ndim - 2, m.ndim - 1), (m.ndim - 2,)), m) for m in (ge, gf))
    geg, gfg = matmul(ge, g), matmul(gf, g)
    bracket = (te * tf - trace_of(ge, gf)) * g - tf * geg - te * gfg + matmul(ge, gfg) + matmul(gf, geg)
    return _spread_scalar(det(a), a) * mT(bracket)


cofactor = Primitive(
    "cofactor", evaluate=_cofactor, infer=_same, cost=1000,
    vjp=lambda ct, y, a: (cofactor_tangent(a, ct),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else cofactor_tangent(a, tangents[0]),
    samples=lambda rng: [((_regular(rng),), {}), ((_regular(rng, 2, n=2),), {})])
"""The derivative of `det`: ``det(a) * inv(a).T``, by singular values, so that it holds for singular `a`."""

cofactor_tangent: Primitive = Primitive(
    "cofactor_tangent", evaluate=_cofactor_tangent, infer=lambda a, e: _same(a), cost=1000,
    vjp=_tangent_vjp, jvp=_tangent_jvp,
    samples=lambda rng: [((_regular(rng), rng.normal(size=(3, 3))), {}),
                         ((_regular(rng, 2, n=2), rng.normal(size=(2, 2, 2))), {})])
"""The derivative of `cofactor` in the direction `e`, also for singular `a`; its own derivative is NaN there."""

det = Primitive(
    "det", evaluate=lambda a: np.linalg.det(a), infer=_scalar, cost=100,
    vjp=lambda ct, y, a: (_spread_scalar(ct, a) * cofactor(a),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else inner(cofactor(a), tangents[0]),
    samples=lambda rng: [((_regular(rng),), {}), ((_regular(rng, 2),), {}),
                         ((np.outer(rng.normal(size=3), rng.normal(size=3)) + np.diag([1.0, 0, 0]),), {})])
"""The determinant. First and second derivatives hold for singular matrices, third ones are NaN there."""

slogdet_sign = Primitive(
    "slogdet_sign", evaluate=lambda a: np.linalg.slogdet(a)[0], infer=_scalar, cost=100,
    vjp=lambda ct, y, a: (None,), jvp=lambda tangents, y, a: zeros_like(y),
    samples=lambda rng: [((_regular(rng),), {}), ((-_regular(rng, 2),), {})])
"""The sign of the determinant; 0 for a singular matrix. Piecewise constant."""

slogdet_log = Primitive(
    "slogdet_log", evaluate=lambda a: np.linalg.slogdet(a)[1], infer=_scalar, cost=100,
    vjp=lambda ct, y, a: (_spread_scalar(ct, a) * mT(inv(a, strict=False)),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else inner(mT(inv(a, strict=False)), tangents[0]),
    samples=lambda rng: [((_regular(rng),), {}), ((_regular(rng, 2),), {})])
"""The logarithm of the absolute determinant; of a singular matrix -inf with derivative NaN."""

__all__ = ["cholesky", "cofactor", "cofactor_tangent", "det", "inv", "mT", "matmul", "slogdet_log", "slogdet_sign",
           "solve", "solve_triangular"]
