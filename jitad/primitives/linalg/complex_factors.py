"""QR and LU factors of complex matrices, and triangular systems of them, in real numbers.

A complex matrix is *packed*, as in `complexes`. The derivatives are those of `qr` with adjoints in place of
transposes: the diagonal of R is real, as LAPACK has it, so that of ``S = Q^H dA R^-1`` the turn of Q takes the lower
triangle and the imaginary part of the diagonal. Of singular matrices they are NaN.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import select
from jitad.primitives.index import concatenate, reshape
from jitad.primitives.linalg.complexes import Pair, complex_of, packed_samples
from jitad.primitives.linalg.matrices import leading, triangle
from jitad.primitives.linalg.qr import lu_order, permuted, permuted_back
from jitad.primitives.linalg.spectral import columns, diagonal_matrix, joined
from jitad.primitives.linalg.triangular import solve_triangular
from jitad.primitives.linear import Cotangents
from jitad.primitives.view import diagonal, expand_dims, slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive


def _halves(x: Pair, lower: bool, strict: bool = False) -> Pair:
    return x.each(lambda part: triangle(part, lower, strict))


def _main(x: Value) -> Value:
    return diagonal(x, 0, x.ndim - 2, x.ndim - 1)


# --- triangular systems ------------------------------------------------------------------------

def _interleaved(a: Pair) -> Value:
    """The real matrix with ``[[re, -im], [im, re]]`` in the place of each element: triangular where `a` is so with a
    real diagonal."""
    re, im, n = a.re, a.im, a.re.ndim
    across = lambda p, q: joined(expand_dims(p, (n,)), expand_dims(q, (n,)))
    both = concatenate(*(expand_dims(v, (n - 1,)) for v in (across(re, -im), across(im, re))), axis=n - 1)
    return reshape(both, (*re.shape[:-2], 2 * re.shape[-2], 2 * re.shape[-1]))


def _stacked(b: Pair) -> Value:
    n = b.re.ndim
    both = concatenate(expand_dims(b.re, (n - 1,)), expand_dims(b.im, (n - 1,)), axis=n - 1)
    return reshape(both, (*b.re.shape[:-2], 2 * b.re.shape[-2], b.re.shape[-1]))


def _unstacked(x: Value, n: int) -> Pair:
    apart, lead = reshape(x, (*x.shape[:-2], n, 2, x.shape[-1])), (slice(None),) * (x.ndim - 1)
    return Pair(*(slice_dims(apart, (*lead, part, slice(None))) for part in (0, 1)))


def solve_triangle(a: Pair, b: Pair, lower: bool, adjoint: bool = False, unit: bool = False,
                   strict: bool = True) -> Pair:
    """The x of ``op(a) x = b`` where op(a) is a triangle of `a`, or the adjoint of that, with ones for the diagonal if
    `unit`. With the phases p of the diagonal, ``a = p a'`` has a real diagonal in a'. A zero there raises LinAlgError,
    or, unless `strict`, gives NaN."""
    n = a.re.shape[-1]
    inside = _halves(a, lower, strict=True)
    if unit:
        solved = solve_triangular(_interleaved(inside), _stacked(b), lower=lower, trans=adjoint, unit=True)
        return _unstacked(solved, n)
    pivots = Pair(_main(a.re), _main(a.im))
    size = TABLE["hypot"](pivots.re, pivots.im)
    none = TABLE["eq"](size, 0.0)
    safe = select(none, 1.0, size)
    phases = Pair(select(none, 1.0, pivots.re / safe), select(none, 0.0, pivots.im / safe)).each(_of_rows)
    back = Pair(phases.re, -phases.im)
    turned = back.times(inside)
    real = Pair(turned.re + diagonal_matrix(size if strict else select(none, np.nan, size)), turned.im)
    right = b if adjoint else back.times(b)
    result = _unstacked(solve_triangular(_interleaved(real), _stacked(right), lower=lower, trans=adjoint), n)
    return phases.times(result) if adjoint else result


def _of_rows(x: Value) -> Value:
    return expand_dims(x, (x.ndim,))


# --- QR ----------------------------------------------------------------------------------------

def _parts(z: Any) -> list[Any]:
    return [z.real, z.imag]


def _cqr(a: Any) -> Any:
    q, r = np.linalg.qr(complex_of(a))
    return np.concatenate([*_parts(np.swapaxes(q, -1, -2)), *_parts(r)], axis=-1).astype(a.dtype)


def _cqr_infer(a: Aval) -> Aval:
    m, n = a.shape[-3:-1]
    if m < n:
        raise ValueError("cqr: the row is for matrices with at least as many rows as columns")
    return Aval((*a.shape[:-3], n, 2 * (m + n)), a.dtype)


def cqr_parts(y: Value, a: Value) -> tuple[Pair, Pair]:
    """Q and R, of the array of `cqr`."""
    m, n = a.shape[-3:-1]
    cut = lambda first, length: columns(y, first, first + length)
    q = Pair(cut(0, m), -cut(m, m))
    return q.H, Pair(cut(2 * m, n), cut(2 * m + n, n))


def _with_real_diagonal(x: Pair) -> Pair:
    strict = _halves(x, lower=False, strict=True)
    return Pair(strict.re + diagonal_matrix(_main(x.re)), strict.im)


def _cqr_vjp(ct: Value, y: Value, a: Value) -> tuple[Value]:
    """``(Q_bar + Q Y) R^-H`` with Y Hermitian, of the upper triangle of ``R_bar R^H - Q^H Q_bar``."""
    (q, r), (ct_q, ct_r) = cqr_parts(y, a), cqr_parts(ct, a)
    m = _with_real_diagonal((_halves(ct_r, lower=False) @ r.H).minus(q.H @ ct_q))
    whole = m.plus(_halves(m, lower=False, strict=True).H)
    moved = ct_q.plus(q @ whole)
    return (solve_triangle(r, moved.H, lower=False, strict=False).H.packed,)


def _cqr_jvp(tangents: Cotangents, y: Value, a: Value) -> Value | None:
    """With ``X = dA R^-1``, ``S = Q^H X`` and T what of S and its adjoint is upper triangular with a real diagonal:
    ``dQ = X - Q T``, ``dR = T R``."""
    if tangents[0] is None:
        return None
    t, (q, r) = Pair.of(tangents[0]), cqr_parts(y, a)
    x = solve_triangle(r, t.H, lower=False, adjoint=True, strict=False).H
    s = q.H @ x
    upper = _with_real_diagonal(s).plus(_halves(s, lower=True, strict=True).H)
    dq, dr = x.minus(q @ upper).H, upper @ r
    return joined(dq.re, -dq.im, dr.re, dr.im)


cqr = Primitive("cqr", evaluate=_cqr, infer=_cqr_infer, vjp=_cqr_vjp, jvp=_cqr_jvp, cost=100, batch=leading, core=3,
                samples=packed_samples((3, 3), (4, 2), (2, 3, 2)),
                sides=lambda shapes, params: (int(np.prod(shapes[0][:-3])), *shapes[0][-3:-1]))
"""Rows of a column of Q and a row of R of a packed matrix with at least as many rows as columns, real parts before
imaginary ones. Shape ``(..., n, 2 (m + n))``."""


# --- LU ----------------------------------------------------------------------------------------

def _clu(a: Any, order: Any) -> Any:
    from scipy.linalg import get_lapack_funcs

    z = complex_of(a)
    factor, = get_lapack_funcs(("getrf",), (z,))
    out = np.empty_like(z)
    for i in np.ndindex(a.shape[:-3]):
        out[i] = factor(z[i])[0]
    return np.stack(_parts(out), -1).astype(a.dtype)


def _clu_infer(a: Aval, order: Aval) -> Aval:
    if a.shape[-3] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return Aval(a.shape, a.dtype)


def _clu_vjp(ct: Value, y: Value, a: Value, order: Value) -> tuple[Value, None]:
    """``P^T L^-H (tril(L^H L_bar, -1) + triu(U_bar U^H)) U^-H``."""
    both, given = Pair.of(y), Pair.of(ct)
    lower, upper = _halves(both, True, strict=True), _halves(both, False)
    ct_lower = _halves(given, True, strict=True)
    inside = _halves((lower.H @ ct_lower).plus(ct_lower), True, strict=True).plus(
        _halves(_halves(given, False) @ upper.H, False))
    left = solve_triangle(both, inside, lower=True, adjoint=True, unit=True)
    moved = solve_triangle(both, left.H, lower=False, strict=False).H
    return moved.each(lambda x: permuted_back(x, order)).packed, None


def _clu_jvp(tangents: Cotangents, y: Value, a: Value, order: Value) -> Value | None:
    """``dL = L tril(X, -1)`` and ``dU = triu(X) U`` for ``X = L^-1 P dA U^-1``."""
    if tangents[0] is None:
        return None
    both, t = Pair.of(y), Pair.of(tangents[0]).each(lambda x: permuted(x, order))
    left = solve_triangle(both, t, lower=True, unit=True)
    x = solve_triangle(both, left.H, lower=False, adjoint=True, strict=False).H
    below = _halves(x, True, strict=True)
    moved = (_halves(both, True, strict=True) @ below).plus(below)
    return moved.plus(_halves(x, False) @ _halves(both, False)).packed


clu = Primitive(
    "clu", evaluate=_clu, infer=_clu_infer, vjp=_clu_vjp, jvp=_clu_jvp, cost=200, batch=leading, core=3,
    sides=lambda shapes, params: (int(np.prod(shapes[0][:-3])), shapes[0][-2]),
    samples=lambda rng: [((a, lu_order.evaluate(a, packed=True)), {}) for ((a,), _) in packed_samples(
        (3, 3), (2, 2, 2))(rng)])
"""`lu` of a packed matrix, packed, for the order of ``lu_order(a, packed=True)``."""

__all__ = ["clu", "cqr", "cqr_parts", "solve_triangle"]
