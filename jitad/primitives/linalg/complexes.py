"""Eigenvalues of general matrices, and decompositions of complex ones, in real numbers.

A complex matrix is *packed*: its last dimension has the real and the imaginary part. One array holds a decomposition, a
row for each value: the value, then its vectors, the real parts of a vector before the imaginary ones.

The derivatives are those of `spectral` with adjoints in place of transposes; for general matrices see M. B. Giles
(2008). Up to a factor of modulus 1 the vectors are those of every implementation. That factor is LAPACK's: of a vector
of `eig` the largest component is real and the length 1; of one of `heigh` the component of the corner at which
Householder's reduction ends is real; of singular vectors the first component on the shorter side. What depends on the
factor is differentiated so too; where the component is zero, NaN, unless nothing depends on the factor.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitad.primitives.core import select
from jitad.primitives.index import concatenate
from jitad.primitives.linalg.forms import support
from jitad.primitives.linalg.matrices import Samples, leading, matmul, mT
from jitad.primitives.linalg.spectral import as_column, column, columns, diagonal_matrix, joined, reciprocal, row_pairs
from jitad.primitives.linalg.systems import inv
from jitad.primitives.linear import Cotangents
from jitad.primitives.reduce import reduce_max, reduce_sum
from jitad.primitives.view import broadcast_to, diagonal, expand_dims, slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive


class Pair(NamedTuple):
    """Complex matrices by their real and imaginary parts."""

    re: Value
    im: Value

    @classmethod
    def of(cls, packed: Value) -> Pair:
        return cls(column(packed, 0), column(packed, 1))

    @property
    def packed(self) -> Value:
        return joined(as_column(self.re), as_column(self.im))

    @property
    def H(self) -> Pair:
        return Pair(mT(self.re), -mT(self.im))

    def each(self, function: Any) -> Pair:
        return Pair(function(self.re), function(self.im))

    def plus(self, other: Pair) -> Pair:
        return Pair(self.re + other.re, self.im + other.im)

    def minus(self, other: Pair) -> Pair:
        return Pair(self.re - other.re, self.im - other.im)

    def times(self, other: Pair) -> Pair:
        """Element by element."""
        return Pair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __matmul__(self, other: Pair) -> Pair:
        return Pair(matmul(self.re, other.re) - matmul(self.im, other.im),
                    matmul(self.re, other.im) + matmul(self.im, other.re))

    def hermitian(self) -> Pair:
        return self.plus(self.H).each(lambda x: x * 0.5)

    def skew(self) -> Pair:
        return self.minus(self.H).each(lambda x: x * 0.5)

    def inverse(self) -> Pair:
        n = self.re.shape[-1]
        rows = [joined(self.re, -self.im), joined(self.im, self.re)]
        whole = inv(concatenate(*rows, axis=self.re.ndim - 2))
        lead = (slice(None),) * (self.re.ndim - 2)
        return Pair(slice_dims(whole, (*lead, slice(0, n), slice(0, n))),
                    slice_dims(whole, (*lead, slice(n, 2 * n), slice(0, n))))


def _diagonal(x: Value) -> Value:
    return diagonal(x, 0, x.ndim - 2, x.ndim - 1)


def _over_rows(x: Value, n: int) -> Value:
    """``y[..., i, k] = x[..., k]``."""
    return broadcast_to(expand_dims(x, (x.ndim - 1,)), (*x.shape[:-1], n, x.shape[-1]))


def _total(x: Value) -> Value:
    """Sums of columns."""
    return reduce_sum(x, axes=(x.ndim - 2,))


def _phases(*sides: tuple[Pair, Pair]) -> Value:
    """What a turn ``exp(i t)`` of each column changes, of vectors with their cotangents; 0 where it is rounding."""
    turned: Any = None
    size: Any = None
    for v, ct in sides:
        turn = _total(ct.im * v.re - ct.re * v.im)
        most = _total(TABLE["abs"](ct.re) + TABLE["abs"](ct.im))
        turned, size = (turn, most) if turned is None else (turned + turn, size + most)
    eps = 64.0 * float(np.finfo(turned.dtype).eps)
    return select(TABLE["gt"](TABLE["abs"](turned), size * eps), turned, 0.0)


def _fixed(turned: Value, component: Value) -> Value:
    """The turn over the real component that stands for the factor."""
    none = TABLE["eq"](turned, 0.0)
    return select(none, 0.0, turned / select(none, 1.0, component))


def _at(component: Any, like: Value) -> Value:
    """A mask of the component among rows."""
    n, k = like.shape[-2:]
    mask = np.zeros((n, k), like.dtype)
    mask[component] = 1.0
    return broadcast_to(like.builder.const(mask), like.shape)


# --- Hermitian matrices ------------------------------------------------------------------------

def complex_of(packed: Any) -> Any:
    return packed[..., 0] + 1j * packed[..., 1]


def _heigh(h: Any, upper: bool = False) -> Any:
    w, v = np.linalg.eigh(complex_of(h), UPLO="U" if upper else "L")
    rows = np.swapaxes(v, -1, -2)
    return np.concatenate([w[..., None], rows.real, rows.imag], axis=-1).astype(h.dtype)


def _heigh_infer(h: Aval, upper: bool = False) -> Aval:
    n = h.shape[-2]
    return Aval((*h.shape[:-3], n, 1 + 2 * n), h.dtype)


def vectors(y: Value, first: int, n: int) -> Pair:
    """The vectors of length n that begin at `first` of each row, as columns."""
    return Pair(mT(columns(y, first, first + n)), mT(columns(y, first + n, first + 2 * n)))


def _heigh_vjp(ct: Value, y: Value, h: Value, upper: bool = False) -> tuple[Value]:
    n = h.shape[-2]
    values, v, g = column(y, 0), vectors(y, 1, n), vectors(ct, 1, n)
    inside = Pair(diagonal_matrix(column(ct, 0)), 0.0 * diagonal_matrix(column(ct, 0)))
    used = support(columns(ct, 1, 1 + 2 * n)).any(axis=-1)
    if used.any():
        place = n - 1 if upper else 0
        fixed = _fixed(_phases((v, g)), _total(v.re * _at(place, v.re)))
        g = Pair(g.re, g.im - _over_rows(fixed, n) * _at(place, v.re))
        first, second = row_pairs(values)
        gaps = reciprocal(second - first, values, used)
        inside = inside.plus((v.H @ g).each(lambda x: x * gaps))
    whole = (v @ inside @ v.H).hermitian()
    strict, eye = _halves(whole.re, upper)
    return (Pair(whole.re * (strict * 2.0 + eye), whole.im * strict * 2.0).packed,)


def _halves(x: Value, upper: bool) -> tuple[Value, Value]:
    """Masks of the triangle that is read, without the diagonal, and of that."""
    n = x.shape[-1]
    strict = np.triu(np.ones((n, n), x.dtype), 1)
    masks = (strict if upper else strict.T, np.eye(n, dtype=x.dtype))
    return broadcast_to(x.builder.const(masks[0]), x.shape), broadcast_to(x.builder.const(masks[1]), x.shape)


def _heigh_jvp(tangents: Cotangents, y: Value, h: Value, upper: bool = False) -> Value | None:
    if tangents[0] is None:
        return None
    n, place = h.shape[-2], h.shape[-2] - 1 if upper else 0
    values, v = column(y, 0), vectors(y, 1, n)
    t = Pair.of(tangents[0])
    strict, eye = _halves(t.re, upper)
    half = t.each(lambda x: x * strict)
    inside = v.H @ half.plus(half.H).plus(Pair(t.re * eye, 0.0 * t.im)) @ v
    first, second = row_pairs(values)
    gaps = reciprocal(second - first, values, np.ones(values.shape, bool))
    moved = v @ inside.each(lambda x: x * gaps)
    mask = _at(place, v.re)
    turn = -_fixed(_total(moved.im * mask), _total(v.re * mask))
    moved = moved.plus(_turned(v, turn))
    return joined(as_column(_diagonal(inside.re)), mT(moved.re), mT(moved.im))


def _turned(v: Pair, turn: Value) -> Pair:
    """``i t v`` for each column."""
    turns = _over_rows(turn, v.re.shape[-2])
    return Pair(-v.im * turns, v.re * turns)


def packed_samples(*shapes: tuple[int, ...]) -> Any:
    return lambda rng: [((rng.normal(size=(*s, 2)) + 2.0 * np.eye(s[-2], s[-1])[..., None] * np.arange(
        1.0, s[-1] + 1.0)[:, None],), {}) for s in shapes]


heigh = Primitive("heigh", evaluate=_heigh, infer=_heigh_infer, vjp=_heigh_vjp, jvp=_heigh_jvp, cost=200,
                  batch=leading, core=3, samples=packed_samples((3, 3), (2, 2, 2)),
                  sides=lambda shapes, params: (
                      int(np.prod(shapes[0][:-3])), shapes[0][-2], int(params.get("upper", 0))))
"""Rows of eigenvalue and eigenvector of a packed Hermitian matrix, ascending; one triangle is read, and the diagonal
counts as real. Shape ``(..., n, 1 + 2n)``."""


# --- singular values ---------------------------------------------------------------------------

def _csvd(a: Any) -> Any:
    u, s, vh = np.linalg.svd(complex_of(a), full_matrices=False)
    left = np.swapaxes(u, -1, -2)
    return np.concatenate([s[..., None], left.real, left.imag, vh.real, vh.imag], axis=-1).astype(a.dtype)


def _csvd_infer(a: Aval) -> Aval:
    m, n = a.shape[-3:-1]
    return Aval((*a.shape[:-3], min(m, n), 1 + 2 * m + 2 * n), a.dtype)


def csvd_parts(y: Value, a: Value) -> tuple[Value, Pair, Pair]:
    """Singular values, and the vectors on the left and on the right as columns, of the array of `csvd`."""
    m, n = a.shape[-3:-1]
    right = vectors(y, 1 + 2 * m, n)
    return column(y, 0), vectors(y, 1, m), Pair(right.re, -right.im)


def _csvd_vjp(ct: Value, y: Value, a: Value) -> tuple[Value]:
    """As in `spectral`; the diagonal of ``(P - Q)``, which is imaginary, is divided by 2 s."""
    (s, u, v), (ct_s, ct_u, ct_v) = csvd_parts(y, a), csvd_parts(ct, a)
    m, n = a.shape[-3:-1]
    inside = Pair(diagonal_matrix(ct_s), 0.0 * diagonal_matrix(ct_s))
    used = support(columns(ct, 1, 1 + 2 * (m + n))).any(axis=-1)
    if not used.any():
        return ((u @ inside @ v.H).packed,)
    turned = _phases((u, ct_u), (v, ct_v))
    if m >= n:
        fixed = _over_rows(_fixed(turned, _total(v.re * _at(0, v.re))), n) * _at(0, v.re)
        ct_v = Pair(ct_v.re, ct_v.im - fixed)
    else:
        fixed = _over_rows(_fixed(turned, _total(u.re * _at(0, u.re))), m) * _at(0, u.re)
        ct_u = Pair(ct_u.re, ct_u.im - fixed)
    first, second = row_pairs(s)
    p, q = (u.H @ ct_u).skew(), (v.H @ ct_v).skew()
    apart, together = reciprocal(second - first, s, used), _sums(first + second, s, used)
    inside = inside.plus(p.plus(q).each(lambda x: x * apart)).plus(p.minus(q).each(lambda x: x * together))
    result = u @ inside @ v.H
    inverse = select(s.builder.const(used), 1.0 / s, 0.0)
    if m > n:
        result = result.plus(_beyond(ct_u, u, inverse) @ v.H)
    if n > m:
        result = result.plus(u @ _beyond(ct_v, v, inverse).H)
    return (result.packed,)


def _sums(sums: Value, s: Value, used: Any) -> Value:
    """``1 / (s_i + s_j)``, on the diagonal too."""
    return reciprocal(sums, s, used) + diagonal_matrix(select(s.builder.const(used), 0.5 / s, 0.0))


def _beyond(g: Pair, basis: Pair, factors: Value) -> Pair:
    """The part of each column outside of the space that the columns of `basis` span, times its factor."""
    rest = g.minus(basis @ (basis.H @ g))
    return rest.each(lambda x: x * _over_rows(factors, x.shape[-2]))


def _csvd_jvp(tangents: Cotangents, y: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    t, (s, u, v), (m, n) = Pair.of(tangents[0]), csvd_parts(y, a), a.shape[-3:-1]
    inside, known = u.H @ t @ v, np.ones(s.shape, bool)
    first, second = row_pairs(s)
    apart, sums = reciprocal(second - first, s, known), _sums(first + second, s, known)
    together, other = inside.hermitian().each(lambda x: x * apart), inside.skew().each(lambda x: x * sums)
    du, dv = u @ together.plus(other), v @ together.minus(other)
    if m > n:
        du = du.plus(_beyond(t @ v, u, 1.0 / s))
    if n > m:
        dv = dv.plus(_beyond(t.H @ u, v, 1.0 / s))
    side, moved = (v, dv) if m >= n else (u, du)
    mask = _at(0, side.re)
    turn = -_fixed(_total(moved.im * mask), _total(side.re * mask))
    du, dv = du.plus(_turned(u, turn)), dv.plus(_turned(v, turn))
    return joined(as_column(_diagonal(inside.re)), mT(du.re), mT(du.im), mT(dv.re), -mT(dv.im))


csvd = Primitive("csvd", evaluate=_csvd, infer=_csvd_infer, vjp=_csvd_vjp, jvp=_csvd_jvp, cost=200, batch=leading,
                 core=3, samples=packed_samples((3, 3), (4, 2), (2, 2, 3)),
                 sides=lambda shapes, params: (int(np.prod(shapes[0][:-3])), *shapes[0][-3:-1]))
"""Rows of singular value, vector on the left and conjugate vector on the right of a packed matrix, descending. Shape
``(..., k, 1 + 2m + 2n)``."""


# --- general matrices --------------------------------------------------------------------------

def _eig(a: Any, packed: bool = False) -> Any:
    """In double precision, so that rounding does not decide the signs of real vectors, which no convention fixes."""
    w, v = np.linalg.eig(np.asarray(complex_of(a) if packed else a, complex if packed else float))
    rows = np.swapaxes(v, -1, -2)
    return np.concatenate([np.stack([w.real, w.imag], -1), rows.real, rows.imag], axis=-1).astype(a.dtype)


def _eig_infer(a: Aval, packed: bool = False) -> Aval:
    shape = a.shape[:-1] if packed else a.shape
    return Aval((*shape[:-1], 2 + 2 * shape[-1]), a.dtype)


def _gaps(values: Pair, used: Any) -> Pair:
    """``1 / (w_j - w_i)`` off the diagonal; NaN where a gap is zero but for rounding, of pairs of which one is `used`.
    """
    n = values.re.shape[-1]
    (re, re_t), (im, im_t) = row_pairs(values.re), row_pairs(values.im)
    d = Pair(re_t - re, im_t - im)
    size, squares = TABLE["hypot"](values.re, values.im), d.re * d.re + d.im * d.im
    least = reduce_max(size, axes=(size.ndim - 1,)) * (8.0 * n * float(np.finfo(size.dtype).eps))
    least = broadcast_to(expand_dims(least * least, (least.ndim, least.ndim + 1)), squares.shape)
    off = np.broadcast_to(~np.eye(n, dtype=bool), squares.shape)
    apart = TABLE["logical_and"](TABLE["gt"](squares, least), squares.builder.const(off))
    filled = squares.builder.const(np.where(
        off & (used[..., :, None] | used[..., None, :]), np.nan, 0.0).astype(size.dtype))
    safe = select(apart, squares, 1.0)
    return Pair(select(apart, d.re / safe, filled), select(apart, -d.im / safe, filled))


def _largest(v: Pair) -> Value:
    """Weights of the component that is largest and real in each column."""
    squares = v.re * v.re + v.im * v.im
    most = reduce_max(squares, axes=(squares.ndim - 2,))
    at = TABLE["logical_and"](TABLE["ge"](squares, _over_rows(most, squares.shape[-2])), TABLE["eq"](v.im, 0.0))
    mask = select(at, 1.0 + 0.0 * squares, 0.0)
    count = _total(mask)
    return mask / _over_rows(select(TABLE["gt"](count, 0.0), count, 1.0), squares.shape[-2])


def eig_parts(y: Value, n: int) -> tuple[Pair, Pair]:
    """Values, and vectors as columns, of the array of `eig`."""
    return Pair(column(y, 0), column(y, 1)), vectors(y, 2, n)


def _eig_vjp(ct: Value, y: Value, a: Value, packed: bool = False) -> tuple[Value]:
    n = y.shape[-2]
    (values, v), (ct_values, g) = eig_parts(y, n), eig_parts(ct, n)
    inside = ct_values.each(diagonal_matrix)
    used = support(columns(ct, 2, 2 + 2 * n)).any(axis=-1)
    if used.any():
        mask = _largest(v)
        length = _over_rows(_total(v.re * g.re + v.im * g.im), n)
        fixed = _over_rows(_fixed(_phases((v, g)), _total(v.re * mask)), n) * mask
        g = Pair(g.re - length * v.re, g.im - length * v.im - fixed)
        gaps = _gaps(values, used)
        inside = inside.plus(Pair(gaps.re, -gaps.im).times(v.H @ g))
    result = v.inverse().H @ inside @ v.H
    return (result.packed if packed else result.re,)


def _eig_jvp(tangents: Cotangents, y: Value, a: Value, packed: bool = False) -> Value | None:
    if tangents[0] is None:
        return None
    n = y.shape[-2]
    values, v = eig_parts(y, n)
    t = Pair.of(tangents[0]) if packed else Pair(tangents[0], 0.0 * tangents[0])
    inside = v.inverse() @ t @ v
    moved = v @ inside.times(_gaps(values, np.ones(values.re.shape, bool)))
    mask = _largest(v)
    length = -_over_rows(_total(v.re * moved.re + v.im * moved.im), n)
    turn = -_fixed(_total(moved.im * mask), _total(v.re * mask))
    moved = moved.plus(v.each(lambda x: x * length)).plus(_turned(v, turn))
    return joined(as_column(_diagonal(inside.re)), as_column(_diagonal(inside.im)), mT(moved.re), mT(moved.im))


def _eig_samples(rng: np.random.Generator) -> Samples:
    complex_ones = packed_samples((3, 3))(rng)
    return [((rng.normal(size=(3, 3)),), {}), ((rng.normal(size=(2, 2, 2)),), {}),
            *((args, {"packed": True}) for args, _ in complex_ones)]


def _eig_sides(shapes: Any, params: Any) -> tuple[int, ...]:
    shape = shapes[0][:-1] if params.get("packed") else shapes[0]
    return int(np.prod(shape[:-2])), shape[-1], int(bool(params.get("packed")))


eig = Primitive("eig", evaluate=_eig, infer=_eig_infer, vjp=_eig_vjp, jvp=_eig_jvp, cost=300, batch=leading,
                samples=_eig_samples, sides=_eig_sides)
"""Rows of real and imaginary part of an eigenvalue, and of its vector, of a real matrix or a packed one, in LAPACK's
order. Shape ``(..., n, 2 + 2n)``."""

__all__ = ["Pair", "csvd", "csvd_parts", "eig", "eig_parts", "heigh", "vectors"]
