"""numpy.linalg of complex matrices, by real ones of twice the size.

``A = B + iC`` acts on pairs of real and imaginary parts as the real matrix ``[[B, -C], [C, B]]``; sums, products,
inverses, pseudoinverses and solutions agree, and its determinant is ``|det A|^2``. With the parts of each element side
by side it is lower triangular where A is, with a real diagonal, so that Cholesky factors agree too.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.linalg.spectral import column
from jitad.trace.complexes.functions import magnitude, prod, rule
from jitad.trace.dispatch import builder_in, call, order_of, refused
from jitad.trace.numpy_rules.algebra.factors import decomposed, singular_values
from jitad.trace.numpy_rules.algebra.linalg import check_square
from jitad.trace.values.pairs import Complex, as_complex, pack, pair, parts_of

_SlogdetResult = type(np.linalg.slogdet(np.eye(1)))
LARGEST_EXPANDED = 3            # determinants up to this size by their definition


def matrix(a: Any) -> Any:
    """An operand as a complex value."""
    builder = builder_in(a)
    return a if isinstance(a, Complex) else pair(*parts_of(builder, a))


def doubled(a: Complex) -> Any:
    """``[[B, -C], [C, B]]`` of each matrix."""
    top, bottom = np.concatenate([a.re, -a.im], axis=-1), np.concatenate([a.im, a.re], axis=-1)
    return np.concatenate([top, bottom], axis=-2)


def halved(e: Any, rows: int, columns: int) -> Complex:
    """The complex matrix of a real one of twice the size."""
    return pair(e[..., :rows, :columns], e[..., rows:, :columns])


def square(a: Any) -> Complex:
    a = matrix(a)
    check_square(a.re)
    return a


@rule(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    builder = builder_in(a, b)
    a, b = (x if isinstance(x, Complex) else pair(*parts_of(builder, x)) for x in (a, b))
    check_square(a.re)
    axis = -1 if b.ndim == 1 else -2
    x = call(np.linalg.solve, doubled(a), np.concatenate([b.re, b.im], axis=axis))
    n = a.shape[-1]
    return pair(x[..., :n], x[..., n:]) if axis == -1 else pair(x[..., :n, :], x[..., n:, :])


@rule(np.linalg.inv)
def inv(a: Any) -> Any:
    a = square(a)
    return halved(call(np.linalg.inv, doubled(a)), a.shape[-1], a.shape[-1])


@rule(np.linalg.pinv)
def pinv(a: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise refused(builder_in(a), "numpy.linalg.pinv of a complex matrix with options", "leave the options out")
    return halved(call(np.linalg.pinv, doubled(a)), a.shape[-1], a.shape[-2])


@rule(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    a = square(a)
    if upper:
        return np.conjugate(np.swapaxes(cholesky(np.conjugate(np.swapaxes(a, -1, -2))), -1, -2))
    n = a.shape[-1]
    rows = np.stack([np.stack([a.re, -a.im], axis=-1), np.stack([a.im, a.re], axis=-1)], axis=-3)
    factor = call(np.linalg.cholesky, rows.reshape((*a.shape[:-2], 2 * n, 2 * n)))
    factor = factor.reshape((*a.shape[:-2], n, 2, n, 2))
    return pair(factor[..., 0, :, 0], factor[..., 1, :, 0])


def factors_of(a: Complex) -> tuple[Complex, Any]:
    """Both LU factors in one matrix, and the order of rows."""
    packed = a.builder.value(pack(a).number)
    order = a.builder.value(rows.lu_order(packed, packed=True).number)
    both = rows.Pair.of(rows.clu(packed, order))
    return pair(both.re, both.im), order


@rule(np.linalg.det)
def det(a: Any) -> Any:
    a = square(a)
    if a.shape[-1] <= LARGEST_EXPANDED:
        return _expanded(a)
    pivots, sign = _pivots(a)
    return prod(pivots, -1) * sign


def _pivots(a: Complex) -> tuple[Any, Any]:
    """The diagonal of U, and the sign of the order of rows."""
    both, order = factors_of(a)
    moved = a.builder.value(rows.lu_pivots(order).number) != np.arange(a.shape[-1])
    return np.diagonal(both, axis1=-2, axis2=-1), 1.0 - 2.0 * (np.sum(moved, axis=-1) % 2)


def _expanded(a: Any) -> Any:
    n = a.shape[-1]
    if n == 0:
        return as_complex(np.sum(a.re, axis=(-2, -1)) + 1.0, a.dtype)
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    return (a[..., 0, 0] * (a[..., 1, 1] * a[..., 2, 2] - a[..., 1, 2] * a[..., 2, 1])
            - a[..., 0, 1] * (a[..., 1, 0] * a[..., 2, 2] - a[..., 1, 2] * a[..., 2, 0])
            + a[..., 0, 2] * (a[..., 1, 0] * a[..., 2, 1] - a[..., 1, 1] * a[..., 2, 0]))


@rule(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    a = square(a)
    logdet = 0.5 * call(np.linalg.slogdet, doubled(a))[1]
    if a.shape[-1] <= LARGEST_EXPANDED:
        return _SlogdetResult(np.sign(_expanded(a)), logdet)
    pivots, sign = _pivots(a)
    return _SlogdetResult(prod(np.sign(pivots), -1) * sign, logdet)


def _paired(values: Any) -> Any:
    """Eigenvalues or singular values of the doubled matrix, in order: each comes twice. Their mean is a symmetric
    function of the two, and so has the derivative that one of them alone has not."""
    count = values.shape[-1] // 2
    return call(np.mean, values.reshape((*values.shape[:-1], count, 2)), axis=-1)


@rule(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Of the Hermitian matrix whose triangle is read; its diagonal counts as real."""
    a, half = square(a), UPLO.upper()
    if half not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    strict = np.tril(a, -1) if half == "L" else np.triu(a, 1)
    diagonal = a.re * np.eye(a.shape[-1])
    whole = strict + np.conjugate(np.swapaxes(strict, -1, -2)) + diagonal
    return _paired(column(decomposed(doubled(whole), "L", paired=True), 0))


@rule(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return _paired(singular_values(doubled(matrix(x)), paired=True))


@rule(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    a, n = square(a), int(n)
    if n == 0:
        return as_complex(0.0 * a.re + np.eye(a.shape[-1]), a.dtype)
    base = inv(a) if n < 0 else a
    result, left = None, abs(n)
    while left:
        if left & 1:
            result = base if result is None else result @ base
        left >>= 1
        base = base @ base if left else base
    return result


def _norms(function: Any, entrywise: Callable[..., bool]) -> None:
    @rule(function)
    def norm(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not entrywise(np.ndim(x), *args, **kwargs):
            given = dict(zip(("ord", "axis", "keepdims"), args, strict=False)) | kwargs
            order, axis = order_of(given.get("ord")), given.get("axis")
            if order in (2, -2, "nuc") and (np.ndim(x) == 2 if axis is None else tuple(axis) == (-2, -1)):
                return _of_values(x, order, given.get("keepdims", False))
            raise refused(builder_in(x), f"{function.__module__}.{function.__name__} of complex values with this order",
                          "use a vector norm, the Frobenius norm, or the orders 1 and infinity")
        return call(function, magnitude(x), *args, **kwargs)


def _of_values(x: Any, order: Any, keepdims: bool) -> Any:
    """A norm that is made of singular values."""
    values = svdvals(matrix(x))
    reductions: dict[Any, Any] = {2: np.max, -2: np.min, "nuc": np.sum}
    result = reductions[order](values, axis=-1)
    return np.expand_dims(result, (-2, -1)) if keepdims else result


def _by_elements(ndim: int, ord: Any = None, axis: Any = None, keepdims: bool = False) -> bool:
    """Whether a norm depends on the moduli of the elements alone."""
    vector = isinstance(axis, (int, np.integer)) or (axis is None and ndim == 1) or ord is None
    return vector or ord in ("fro", 1, -1, np.inf, -np.inf)


_norms(np.linalg.norm, _by_elements)
_norms(np.linalg.vector_norm, lambda ndim, **options: True)
_norms(np.linalg.matrix_norm, lambda ndim, keepdims=False, ord="fro": _by_elements(2, ord))
