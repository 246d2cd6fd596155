"""Eigenvalues of symmetric matrices and singular values, with their vectors.

One array holds a decomposition, a row for each value: the value, then its vectors. The formulas are those of
M. B. Giles (2008) and J. Townsend, "Differentiating the singular value decomposition" (2016), the latter with
``1 / (t^2 - s^2)`` written as a product, so that what only depends on sums of singular values stays finite.

The derivative of a vector is undefined where its value is not simple. Where such a vector is used, the result is
NaN: what an invariant function of the vectors needs cannot be told from its cotangents. Where only values are used,
or other vectors, repeated values do no harm.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import select
from jitad.primitives.index import concatenate
from jitad.primitives.linalg.forms import support
from jitad.primitives.linalg.matrices import Samples, leading, matmul, mT, square_batch
from jitad.primitives.linear import Cotangents
from jitad.primitives.lowlevel import eigen_numbers, eigvalsh, singular_numbers, svdvals
from jitad.primitives.reduce import reduce_max
from jitad.primitives.view import broadcast_to, diagonal, expand_dims, slice_dims, spread
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive


def columns(x: Value, start: int, stop: int) -> Value:
    """``x[..., start:stop]``."""
    return slice_dims(x, (*(slice(None) for _ in range(x.ndim - 1)), slice(start, stop)))


def column(x: Value, place: int) -> Value:
    """``x[..., place]``."""
    return slice_dims(x, (*(slice(None) for _ in range(x.ndim - 1)), place))


def joined(*parts: Value) -> Value:
    """Vectors and matrices with the same number of rows, side by side."""
    return concatenate(*parts, axis=parts[-1].ndim - 1)


def as_column(x: Value) -> Value:
    return expand_dims(x, (x.ndim,))


def diagonal_matrix(x: Value) -> Value:
    d, n = x.ndim, x.shape[-1]
    lead = tuple((0, ((i, 1),)) for i in range(d - 1))
    last = (0, ((d - 1, 1),))
    return spread(x, (*x.shape, n), (*lead, last, last))


def _rows(x: Value, n: int) -> Value:
    """``y[..., i, j] = x[..., i]``."""
    return broadcast_to(as_column(x), (*x.shape, n))


def row_pairs(values: Value) -> tuple[Value, Value]:
    """For all pairs: the values of the row, and of the column."""
    rows = _rows(values, values.shape[-1])
    return rows, mT(rows)


def reciprocal(gaps: Value, values: Value, used: Any, width: int = 1) -> Value:
    """``1 / gaps`` off the diagonal, whose blocks have this `width`, and zero on it. Where a gap is zero but for
    rounding: NaN for pairs of which one is `used`, else zero."""
    n = values.shape[-1]
    block = np.arange(n) // width
    off = np.broadcast_to(block[:, None] != block, gaps.shape)
    size = reduce_max(TABLE["abs"](values), axes=(values.ndim - 1,))
    least = size * (8.0 * n * float(np.finfo(values.dtype).eps))
    least = broadcast_to(expand_dims(least, (least.ndim, least.ndim + 1)), gaps.shape)
    apart = TABLE["logical_and"](TABLE["gt"](TABLE["abs"](gaps), least), gaps.builder.const(off))
    filled = np.where(off & (used[..., :, None] | used[..., None, :]), np.nan, 0.0).astype(values.dtype)
    return select(apart, 1.0 / select(apart, gaps, 1.0), gaps.builder.const(filled))


def _all(values: Value) -> Any:
    return np.ones(values.shape, bool)


# --- symmetric eigenvalues ---------------------------------------------------------------------

def _eigh(a: Any, upper: bool = False, paired: bool = False) -> Any:
    w, v = np.linalg.eigh(a, UPLO="U" if upper else "L")
    return np.concatenate([w[..., None], np.swapaxes(v, -1, -2)], axis=-1)


def _eigh_infer(a: Aval, upper: bool = False, paired: bool = False) -> Aval:
    batch, n = square_batch(a), a.shape[-1]
    return Aval((*batch, n, n + 1), a.dtype)


def _eigh_vjp(ct: Value, y: Value, a: Value, upper: bool = False, paired: bool = False) -> tuple[Value]:
    """``V (diag(w_bar) + F * (V^T V_bar)) V^T`` with ``F_ij = 1 / (w_j - w_i)``, made symmetric."""
    values, rows = column(y, 0), columns(y, 1, y.shape[-1])
    inside = diagonal_matrix(column(ct, 0))
    used = support(columns(ct, 1, y.shape[-1])).any(axis=-1)
    if used.any():
        first, second = row_pairs(values)
        twist = matmul(rows, mT(columns(ct, 1, y.shape[-1])))
        inside = inside + (twist - mT(twist)) * 0.5 * reciprocal(second - first, values, used, 1 + paired)
    return (matmul(mT(rows), matmul(inside, rows)),)


def _eigh_jvp(tangents: Cotangents, y: Value, a: Value, upper: bool = False, paired: bool = False) -> Value | None:
    t = tangents[0]
    if t is None:
        return None
    values, rows = column(y, 0), columns(y, 1, y.shape[-1])
    inside = matmul(rows, matmul((t + mT(t)) * 0.5, mT(rows)))
    first, second = row_pairs(values)
    turned = mT(inside * reciprocal(second - first, values, _all(values), 1 + paired))
    return joined(as_column(diagonal(inside, 0, inside.ndim - 2, inside.ndim - 1)), matmul(turned, rows))


def _symmetric(rng: np.random.Generator, *batch: int) -> np.ndarray:
    a = rng.normal(size=(*batch, 3, 3))
    return a + np.swapaxes(a, -1, -2) + 3 * np.diag([1.0, 2.0, 4.0])


eigh = Primitive(
    "eigh", evaluate=_eigh, infer=_eigh_infer, vjp=_eigh_vjp, jvp=_eigh_jvp, cost=100, batch=leading,
    samples=lambda rng: [((_symmetric(rng),), {}), ((_symmetric(rng, 2),), {}), ((_symmetric(rng),), {"upper": True})],
    symmetric=(0,), sides=eigen_numbers, values=eigvalsh)
"""Rows of eigenvalue and eigenvector of a symmetric matrix, ascending; one triangle is read. Shape ``(..., n, 1 + n)``.
The derivative is that of the function of the symmetric matrix, as for `cholesky`. `paired`: the values come in equal
pairs by how the matrix is made, and all that is made of the vectors is the same for all bases of a pair's space."""


# --- singular values ---------------------------------------------------------------------------

def _svd(a: Any, paired: bool = False) -> Any:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([s[..., None], np.swapaxes(u, -1, -2), vt], axis=-1)


def _svd_infer(a: Aval, paired: bool = False) -> Aval:
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    m, n = a.shape[-2:]
    return Aval((*a.shape[:-2], min(m, n), 1 + m + n), a.dtype)


def svd_parts(y: Value, a: Value) -> tuple[Value, Value, Value]:
    """Singular values, and the vectors on the left and on the right as rows, of the array of `svd`."""
    m, n = a.shape[-2:]
    return column(y, 0), columns(y, 1, 1 + m), columns(y, 1 + m, 1 + m + n)


def _svd_vjp(ct: Value, y: Value, a: Value, paired: bool = False) -> tuple[Value]:
    """``U (diag(s_bar) + G) V^T`` and what lies outside of the spaces of U and V; with the skew parts P of
    ``U^T U_bar`` and Q of ``V^T V_bar``, ``G_ij = (P + Q)_ij / (s_j - s_i) + (P - Q)_ij / (s_j + s_i)``."""
    (s, left, right), (ct_s, ct_left, ct_right) = svd_parts(y, a), svd_parts(ct, a)
    inside = diagonal_matrix(ct_s)
    used = support(ct_left).any(axis=-1) | support(ct_right).any(axis=-1)
    if not used.any():
        return (matmul(mT(left), matmul(inside, right)),)
    first, second = row_pairs(s)
    skew = [(m - mT(m)) * 0.5 for m in (matmul(left, mT(ct_left)), matmul(right, mT(ct_right)))]
    inside = (inside + (skew[0] + skew[1]) * reciprocal(second - first, s, used, 1 + paired)
              + (skew[0] - skew[1]) * reciprocal(second + first, s, used))
    result = matmul(mT(left), matmul(inside, right))
    inverse = select(s.builder.const(used), 1.0 / s, 0.0)
    if left.shape[-1] > s.shape[-1]:
        result = result + matmul(mT(_outside(ct_left, left, inverse)), right)
    if right.shape[-1] > s.shape[-1]:
        result = result + matmul(mT(left), _outside(ct_right, right, inverse))
    return (result,)


def _outside(rows: Value, basis: Value, factors: Value) -> Value:
    """The part of each row outside of the space that the rows of `basis` span, times its factor."""
    rest = rows - matmul(matmul(rows, mT(basis)), basis)
    return rest * _rows(factors, rows.shape[-1])


def _svd_jvp(tangents: Cotangents, y: Value, a: Value, paired: bool = False) -> Value | None:
    t = tangents[0]
    if t is None:
        return None
    s, left, right = svd_parts(y, a)
    inside = matmul(left, matmul(t, mT(right)))
    first, second = row_pairs(s)
    together = (inside + mT(inside)) * 0.5 * reciprocal(second - first, s, _all(s), 1 + paired)
    apart = (inside - mT(inside)) * 0.5 * reciprocal(second + first, s, _all(s))
    turns = (together + apart, together - apart)
    moved = [matmul(mT(turn), basis) for turn, basis in zip(turns, (left, right), strict=True)]
    if left.shape[-1] > s.shape[-1]:
        moved[0] = moved[0] + _outside(matmul(right, mT(t)), left, 1.0 / s)
    if right.shape[-1] > s.shape[-1]:
        moved[1] = moved[1] + _outside(matmul(left, t), right, 1.0 / s)
    return joined(as_column(diagonal(inside, 0, inside.ndim - 2, inside.ndim - 1)), *moved)


def _svd_samples(rng: np.random.Generator) -> Samples:
    return [((rng.normal(size=s),), {}) for s in ((3, 3), (4, 2), (2, 2, 4), (1, 1))]


svd = Primitive("svd", evaluate=_svd, infer=_svd_infer, vjp=_svd_vjp, jvp=_svd_jvp, cost=100, batch=leading,
                samples=_svd_samples, sides=singular_numbers, values=svdvals)
"""Rows of singular value, vector on the left and vector on the right, descending. Shape ``(..., k, 1 + m + n)``.
`paired` as for `eigh`."""

__all__ = ["as_column", "column", "columns", "diagonal_matrix", "eigh", "joined", "reciprocal", "row_pairs", "svd",
           "svd_parts"]
