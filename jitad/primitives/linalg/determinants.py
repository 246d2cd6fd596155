"""Determinants of matrices, their logarithms and derivatives."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import full, zeros_like
from jitad.primitives.linalg.forms import positive_diagonal, triangles
from jitad.primitives.linalg.matrices import (
    inner,
    leading,
    matmul,
    mT,
    one_number,
    regular,
    same_shape,
    spread_scalar,
    trace_of,
)
from jitad.primitives.linalg.systems import inv
from jitad.primitives.linear import Cotangents
from jitad.primitives.lowlevel import det_factored, slogdet_log_factored, slogdet_sign_factored
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.view import diagonal
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Primitive


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
    factored=lambda params, transposed: (det_factored, {}),
    vjp=lambda ct, y, a: (spread_scalar(ct, a) * cofactor(a),),
    jvp=lambda tangents, y, a: None if tangents[0] is None else inner(cofactor(a), tangents[0]),
    samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2),), {}),
                         ((np.outer(rng.normal(size=3), rng.normal(size=3)) + np.diag([1.0, 0, 0]),), {})])
"""The determinant. First and second derivatives hold for singular matrices, third ones are NaN there."""

slogdet_sign = Primitive(
    "slogdet_sign", evaluate=lambda a: np.linalg.slogdet(a)[0], infer=one_number, cost=100, batch=leading,
    factored=lambda params, transposed: (slogdet_sign_factored, {}),
    vjp=lambda ct, y, a: (None,), jvp=lambda tangents, y, a: zeros_like(y),
    samples=lambda rng: [((regular(rng),), {}), ((-regular(rng, 2),), {})])
"""The sign of the determinant; 0 for a singular matrix. Piecewise constant."""

slogdet_log = Primitive(
    "slogdet_log", evaluate=lambda a: np.linalg.slogdet(a)[1], infer=one_number, cost=100, batch=leading,
    factored=lambda params, transposed: (slogdet_log_factored, {}),
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
