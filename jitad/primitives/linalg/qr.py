"""QR and LU factors, and the pseudoinverse.

The formulas for QR are those of S. F. Walter et al., "Algorithmic differentiation of linear algebra functions"
(2010); for the pseudoinverse of G. H. Golub and V. Pereyra (1973), where the rank does not change.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.primitives.index import gather, scatter
from jitad.primitives.linalg.matrices import (
    leading,
    matmul,
    mT,
    rectangle,
    regular,
    same_shape,
    square_batch,
    triangle,
)
from jitad.primitives.linalg.spectral import columns, joined
from jitad.primitives.linalg.triangular import solve_triangular
from jitad.primitives.linear import Cotangents
from jitad.tape.builder import Value
from jitad.tape.types import Aval, Primitive

# --- QR ----------------------------------------------------------------------------------------

def _qr(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return np.concatenate([np.swapaxes(q, -1, -2), r], axis=-1)


def _qr_infer(a: Aval) -> Aval:
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError("qr: the row is for matrices with at least as many rows as columns")
    return Aval((*a.shape[:-2], n, m + n), a.dtype)


def qr_parts(y: Value, a: Value) -> tuple[Value, Value]:
    """The columns of Q as rows, and R, of the array of `qr`."""
    m, n = a.shape[-2:]
    return columns(y, 0, m), columns(y, m, m + n)


def _qr_vjp(ct: Value, y: Value, a: Value) -> tuple[Value]:
    """``(Q_bar + Q copyltu(M)) R^-T`` with ``M = R R_bar^T - Q_bar^T Q``; copyltu mirrors the lower triangle."""
    (q, r), (ct_q, ct_r) = qr_parts(y, a), qr_parts(ct, a)
    m = matmul(r, mT(triangle(ct_r, lower=False))) - matmul(ct_q, mT(q))
    mirrored = triangle(m, lower=True) + mT(triangle(m, lower=True, strict=True))
    moved = ct_q + matmul(mirrored, q)
    return (mT(solve_triangular(r, moved, lower=False)),)


def _qr_jvp(tangents: Cotangents, y: Value, a: Value) -> Value | None:
    """With ``X = dA R^-1`` and ``W = skew(tril(Q^T X, -1))``: ``dQ = X - Q (Q^T X - W)``, ``dR = (Q^T X - W) R``."""
    t = tangents[0]
    if t is None:
        return None
    q, r = qr_parts(y, a)
    x = solve_triangular(r, mT(t), lower=False, trans=True)
    inside = matmul(q, mT(x))
    below = triangle(inside, lower=True, strict=True)
    rest = inside - below + mT(below)
    return joined(x - matmul(mT(rest), q), matmul(rest, r))


qr = Primitive("qr", evaluate=_qr, infer=_qr_infer, vjp=_qr_vjp, jvp=_qr_jvp, cost=100, batch=leading,
               samples=lambda rng: [((regular(rng),), {}), ((rng.normal(size=(2, 4, 3)),), {}),
                                    ((rng.normal(size=(4, 1)),), {})], sides=rectangle)
"""Rows of a column of Q and a row of R, for at least as many rows as columns. Shape ``(..., n, m + n)``."""


# --- LU ----------------------------------------------------------------------------------------

def _each(function: Any, a: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    out = np.empty(shape, dtype)
    for i in np.ndindex(a.shape[:-2]):
        out[i] = function(a[i])
    return out


def _factored(a: Any) -> tuple[Any, Any]:
    """Both factors in one matrix, and the pivots."""
    from scipy.linalg import get_lapack_funcs

    factors, pivots, _ = get_lapack_funcs("getrf", (a,))(a)
    return factors, pivots


def order_of_pivots(pivots: Any) -> Any:
    """The order of rows after LAPACK's swaps: row i with row ``pivots[i]``, one after the other."""
    order = np.arange(len(pivots))
    for i, p in enumerate(pivots):
        order[[i, p]] = order[[p, i]]
    return order


def _pivots_of_order(order: Any) -> Any:
    """The swaps, of which each finds its row where the earlier ones have left it; one that is nowhere moves nothing."""
    rows, pivots = list(range(len(order))), np.empty(len(order), np.int64)
    for i, wanted in enumerate(order):
        pivots[i] = rows.index(wanted, i) if wanted in rows[i:] else i
        rows[pivots[i]] = rows[i]
    return pivots


def _halves(y: Value) -> tuple[Value, Value]:
    return triangle(y, lower=True, strict=True), triangle(y, lower=False)


def _lu_vjp(ct: Value, y: Value, a: Value, order: Value) -> tuple[Value, None]:
    """``P^T L^-T (tril(L^T L_bar, -1) + triu(U_bar U^T)) U^-T``."""
    lower, upper = _halves(y)
    ct_lower, ct_upper = _halves(ct)
    inside = (triangle(matmul(mT(lower), ct_lower) + ct_lower, lower=True, strict=True)
              + triangle(matmul(ct_upper, mT(upper)), lower=False))
    left = solve_triangular(y, inside, lower=True, trans=True, unit=True)
    moved = mT(solve_triangular(y, mT(left), lower=False))
    return permuted_back(moved, order), None


def _lu_jvp(tangents: Cotangents, y: Value, a: Value, order: Value) -> Value | None:
    """``dL = L tril(X, -1)`` and ``dU = triu(X) U`` for ``X = L^-1 P dA U^-1``."""
    t = tangents[0]
    if t is None:
        return None
    left = solve_triangular(y, permuted(t, order), lower=True, unit=True)
    x = mT(solve_triangular(y, mT(left), lower=False, trans=True))
    lower, upper = _halves(y)
    below = triangle(x, lower=True, strict=True)
    return matmul(lower, below) + below + matmul(triangle(x, lower=False), upper)


def _places(order: Value, shape: tuple[int, ...]) -> tuple[list[Any], tuple[int, ...]]:
    """Integer arrays with which rows are picked: batches and the order of rows."""
    batch = shape[:-2]
    arrays = [order.builder.const(np.broadcast_to(np.arange(n).reshape((-1,) + (1,) * (len(batch) - d)), order.shape))
              for d, n in enumerate(batch)]
    return [*arrays, order], tuple(range(len(batch) + 1))


def permuted(x: Value, order: Value) -> Value:
    """``x[..., order, :]``, each matrix by its own order."""
    arrays, axes = _places(order, x.shape)
    return gather(x, *arrays, axes=axes)


def permuted_back(x: Value, order: Value) -> Value:
    arrays, axes = _places(order, x.shape)
    return scatter(x, *arrays, axes=axes, shape=x.shape)


def _lu_order(a: Any, packed: bool = False) -> Any:
    a = a[..., 0] + 1j * a[..., 1] if packed else a
    return _each(lambda m: order_of_pivots(_factored(m)[1]), a, a.shape[:-1], np.int64)


def _lu_order_infer(a: Aval, packed: bool = False) -> Aval:
    a = Aval(a.shape[:-1], a.dtype) if packed else a
    return Aval((*square_batch(a), a.shape[-1]), np.dtype(np.int64))


def _lu_order_sides(shapes: Any, params: Any) -> tuple[float, ...]:
    packed = int(params.get("packed", 0))
    shape = shapes[0][:-1] if packed else shapes[0]
    return (math.prod(shape[:-2]), shape[-1], packed)


lu_order = Primitive(
    "lu_order", evaluate=_lu_order, infer=_lu_order_infer, cost=100, batch=leading, sides=_lu_order_sides,
    samples=lambda rng: [((regular(rng)[::-1],), {}), ((regular(rng, 2),), {}),
                         ((rng.normal(size=(2, 3, 3, 2)),), {"packed": True})])
"""The order of rows p with which ``a[p] = L @ U``, by partial pivoting; of a complex matrix, if it is `packed`."""

lu_pivots = Primitive(
    "lu_pivots", evaluate=lambda order: np.reshape(
        [_pivots_of_order(line) for line in order.reshape(-1, order.shape[-1])], order.shape).astype(np.int64),
    infer=lambda order: order, cost=20, batch=leading,
    numbers=lambda order, out: (math.prod(order.shape[:-1]), order.shape[-1]),
    samples=lambda rng: [((rng.permutation(7),), {}), ((np.array([[2, 0, 1], [0, 1, 2]]),), {})])
"""The pivots that give an order of rows, as LAPACK counts them: row i was swapped with row ``pivots[i]``."""

lu: Primitive = Primitive(
    "lu", evaluate=lambda a, order: _each(lambda m: _factored(m)[0], a, a.shape, a.dtype),
    infer=lambda a, order: same_shape(a), vjp=_lu_vjp, jvp=_lu_jvp, cost=100, batch=leading,
    sides=lambda shapes, params: rectangle(shapes, params)[:2],
    samples=lambda rng: [(_with_order(regular(rng)[::-1]), {}), (_with_order(regular(rng, 2)), {})])
"""``L`` without its diagonal of ones and ``U`` in one matrix, for ``a[order] = L @ U`` with the order of `lu_order`."""


def _with_order(a: np.ndarray) -> tuple[Any, Any]:
    return a, lu_order.evaluate(a)


# --- the pseudoinverse -------------------------------------------------------------------------

def _pinv_infer(a: Aval, rcond: float) -> Aval:
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return Aval((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)


def _pinv_vjp(ct: Value, y: Value, a: Value, rcond: float) -> tuple[Value]:
    """``-Y^T C Y^T + (I - A Y) C^T Y Y^T + Y^T Y C^T (I - Y A)`` for ``Y = pinv(A)`` and the cotangent C."""
    yt, ct_t = mT(y), mT(ct)
    outer, inner = matmul(ct_t, matmul(y, yt)), matmul(matmul(yt, y), ct_t)
    return (-matmul(yt, matmul(ct, yt)) + (outer - matmul(a, matmul(y, outer)))
            + (inner - matmul(matmul(inner, y), a)),)


def _pinv_jvp(tangents: Cotangents, y: Value, a: Value, rcond: float) -> Value | None:
    """``-Y dA Y + Y Y^T dA^T (I - A Y) + (I - Y A) dA^T Y^T Y``."""
    t = tangents[0]
    if t is None:
        return None
    yt, tt = mT(y), mT(t)
    first, second = matmul(matmul(y, yt), tt), matmul(tt, matmul(yt, y))
    return (-matmul(y, matmul(t, y)) + (first - matmul(matmul(first, a), y))
            + (second - matmul(y, matmul(a, second))))


pinv = Primitive(
    "pinv", evaluate=lambda a, rcond: np.linalg.pinv(a, rcond), infer=_pinv_infer, vjp=_pinv_vjp, jvp=_pinv_jvp,
    cost=100, batch=leading, sides=rectangle,
    samples=lambda rng: [((rng.normal(size=s) + 3 * np.eye(*s[-2:]),), {"rcond": 1e-15})
                         for s in ((4, 2), (2, 2, 4), (3, 3))])
"""The pseudoinverse; singular values up to `rcond` times the largest count as zero, and stay so."""

__all__ = ["lu", "lu_order", "lu_pivots", "order_of_pivots", "permuted", "permuted_back", "pinv", "qr", "qr_parts"]
