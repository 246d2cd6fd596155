"""Cholesky factors, and the inverse from such a factor.

The general derivative is that of I. Murray, "Differentiation of the Cholesky decomposition" (2016):
``A_bar = sym(L^-T P(L^T L_bar) L^-1)``, where P takes the lower triangle with half the diagonal. What a Gaussian
density leaves of it is cheaper (see `_closed`).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.linalg.forms import Form, Polynomial, coefficient_of, equal, form_of, plus, scaled, times
from jitad.primitives.linalg.matrices import Samples, leading, matmul, mT, rectangle, regular, same_shape, triangle
from jitad.primitives.linalg.triangular import solve_triangular
from jitad.primitives.linear import Cotangents
from jitad.primitives.reduce import parse
from jitad.primitives.view import diagonal, view
from jitad.tape.builder import Value
from jitad.tape.types import Primitive

HALF: Polynomial = {(): 0.5}
Pairs = dict[tuple[int, int], Polynomial]


def _half_tril(a: Value) -> Value:
    """The lower triangle with half the diagonal."""
    return (triangle(a, lower=True) + triangle(a, lower=True, strict=True)) * 0.5


def _cholesky_vjp(ct: Value, y: Value, a: Value, upper: bool = False) -> tuple[Value]:
    """``a_bar = sym(L^-T P(L^T L_bar) L^-1)``."""
    closed = _closed(ct, y)
    if closed is not None:
        return (closed,)
    return (cholesky_cotangent(y, ct),)


def _between(y: Value, t: Value) -> Value:
    """``L^-1 sym(t) L^-T``."""
    left = solve_triangular(y, (t + mT(t)) * 0.5, lower=True)
    return mT(solve_triangular(y, mT(left), lower=True))


def _cholesky_jvp(tangents: Cotangents, y: Value, a: Value, upper: bool = False) -> Value | None:
    """``dL = L P(L^-1 sym(dA) L^-T)``."""
    t = tangents[0]
    return None if t is None else matmul(y, _half_tril(_between(y, t)))


def _cholesky_samples(rng: np.random.Generator) -> Samples:
    matrices = [a @ np.swapaxes(a, -1, -2) for a in (regular(rng), regular(rng, 2), regular(rng, n=1))]
    return [*(((a,), {}) for a in matrices), ((matrices[0],), {"upper": True})]


def _cholesky(a: Any, upper: bool = False) -> Any:
    return np.linalg.cholesky(np.swapaxes(a, -1, -2) if upper else a)


cholesky = Primitive(
    "cholesky", evaluate=_cholesky, infer=same_shape, vjp=_cholesky_vjp, jvp=_cholesky_jvp,
    samples=_cholesky_samples, cost=100, batch=leading, symmetric=(0,))
"""The lower factor L of ``a = L @ L.T``. The lower triangle of `a` is read, or the upper one if `upper`; the
derivative is that of the function of the symmetric matrix: the cotangent is symmetric, and of a tangent
only the symmetric part counts."""


# --- the general cotangent -----------------------------------------------------------------------

def _cotangent(factor: Any, ct: Any) -> Any:
    def lower(x: Any) -> Any:
        return np.tril(x) - 0.5 * x * np.eye(x.shape[-1], dtype=x.dtype)

    middle = lower(np.swapaxes(np.tril(factor), -1, -2) @ np.tril(ct))
    left = solve_triangular(factor, middle + np.swapaxes(middle, -1, -2), lower=True, trans=True)
    both = solve_triangular(factor, np.swapaxes(left, -1, -2), lower=True, trans=True) * 0.5
    return ((both + np.swapaxes(both, -1, -2)) * 0.5).astype(ct.dtype)


def _cotangent_vjp(ct: Value, y: Value, factor: Value, bar: Value) -> tuple[Value, Value]:
    """For the symmetric part S of `ct`, with ``H = L^-1 S L^-T``: ``tril(bar P(H)^T - 2 y S L^-T)`` and
    ``tril(L P(H))``."""
    middle = _half_tril(_between(factor, ct))
    moved = mT(solve_triangular(factor, matmul(ct + mT(ct), y), lower=True))
    by_factor = matmul(triangle(bar, lower=True), mT(middle)) - moved
    return triangle(by_factor, lower=True), triangle(matmul(triangle(factor, lower=True), middle), lower=True)


def _cotangent_jvp(tangents: Cotangents, y: Value, factor: Value, bar: Value) -> Value | None:
    """``-L^-T dL^T y`` and its transpose, and the rule itself for ``dL_bar + L^-T dL^T tril(L_bar)``."""
    t, moving = tangents
    if t is None:
        return None if moving is None else cholesky_cotangent(factor, moving)
    t = triangle(t, lower=True)
    pushed = solve_triangular(factor, matmul(mT(t), y), lower=True, trans=True)
    extra = solve_triangular(factor, matmul(mT(t), triangle(bar, lower=True)), lower=True, trans=True)
    return cholesky_cotangent(factor, extra if moving is None else extra + moving) - pushed - mT(pushed)


cholesky_cotangent: Primitive = Primitive(
    "cholesky_cotangent", evaluate=_cotangent, infer=lambda factor, ct: same_shape(ct), vjp=_cotangent_vjp,
    jvp=_cotangent_jvp, cost=100, batch=leading, sides=lambda shapes, params: rectangle(shapes, params)[:2],
    samples=lambda rng: [((regular(rng), rng.normal(size=(3, 3))), {}),
                         ((regular(rng, 2), rng.normal(size=(2, 3, 3))), {})])
"""The symmetric cotangent of a matrix, given its lower factor and the factor's cotangent: ``sym(L^-T P(L^T ct) L^-1)``;
of both only the lower triangles count."""


# --- the cotangents of densities -----------------------------------------------------------------

def _closed(ct: Value, y: Value) -> Value | None:
    """The cotangent of the matrix, where that of its factor consists of

    - ``c / L[i, i]`` on the diagonal, from the logarithm of the determinant: ``P`` is c/2 times the identity, and the
      result ``c/2 * inv(A)``;
    - ``tril(p @ q.T)`` with ``p = L^-T r``, from systems: ``L^T L_bar`` has the lower triangle of ``r @ q.T``, and if
      the sum of these is symmetric, as that of a quadratic form is, P is half of it and the result
      ``(L^-T r) (L^-T q)^T / 2``.

    None if there is anything else in it.
    """
    form = form_of(ct, 2)
    if form is None:
        return None
    on_diagonal: Polynomial = {}
    pairs: Pairs = {}
    for number, coefficient in form.items():
        part = ct.builder.value(number)
        constant = _over_diagonal(part, y)
        if constant is not None:
            on_diagonal = plus(on_diagonal, times(constant, coefficient))
        elif not _add_pairs(pairs, part, y, coefficient):
            return None
    if any(not equal(c, pairs.get((q, r), {})) for (r, q), c in pairs.items()):
        return None
    terms = [_half_outer(y, r, q, c) for (r, q), c in pairs.items() if r <= q]
    if on_diagonal:
        terms.append(scaled(cholesky_inverse(y), times(on_diagonal, HALF)))
    return sum(terms[1:], terms[0]) if terms else None


def _over_diagonal(part: Value, y: Value) -> Polynomial | None:
    """The c of a matrix that is zero but for ``c / L[i, i]``."""
    node, last = part.node, part.ndim - 2
    if node.prim.kind != "spread":
        return None
    values = part.builder.value(node.inputs[0])
    every = tuple((0, ((d, 1),)) for d in (*range(last), last, last))
    if values.shape != part.shape[:-1] or node.params["index"] != every:
        return None
    form = form_of(values, 1)
    pivots = diagonal(y, 0, y.ndim - 2, y.ndim - 1)
    total: Polynomial = {}
    for number, coefficient in (form or {}).items():
        numerator = _numerator(part.builder.value(number), pivots)
        if numerator is None:
            return None
        total = plus(total, times(numerator, coefficient))
    return total or None


def _numerator(quotient: Value, pivots: Value) -> Polynomial | None:
    """The number that is divided by `pivots`."""
    node = quotient.node
    if node.prim.name == "reciprocal" and node.inputs[0] == pivots.number:
        return {(): 1.0}
    if node.prim.name == "div" and node.inputs[1] == pivots.number:
        return coefficient_of(quotient.builder.value(node.inputs[0]), 1)
    return None


def _add_pairs(pairs: Pairs, part: Value, y: Value, scale: Polynomial) -> bool:
    """Enter ``tril(p @ q.T)`` as pairs (r, q) with ``p = L^-T r``, if it is that."""
    value = part.builder.value
    if part.node.prim.name != "tril" or part.node.params["k"] != 0:
        return False
    product = value(part.node.inputs[0])
    if product.node.prim.kind != "contract":
        return False
    left, right, out = parse(product.node.params["spec"])
    batch = out[:-2]
    if (left[:-2], right[:-2]) != (batch, batch) or (left[-2], left[-1], right[-1]) != (out[-2], right[-2], out[-1]):
        return False
    first, second = value(product.node.inputs[0]), mT(value(product.node.inputs[1]))
    left_form, right_form = form_of(first, 2), form_of(second, 2)
    roots = _roots(left_form or {}, y)
    if not roots or right_form is None:
        return False
    for r, c in roots.items():
        for q, d in right_form.items():
            pairs[r, q] = plus(pairs.get((r, q), {}), times(times(c, d), scale))
    return True


def _roots(form: Form, y: Value) -> Form | None:
    """The form of ``L^T @ x``, given that of x, if x consists of solutions of systems with ``L.T``."""
    result: Form = {}
    for number, coefficient in form.items():
        node = y.builder.nodes[number]
        transposed = {"lower": True, "trans": True, "unit": False}
        if node.prim.name != "solve_triangular" or node.inputs[0] != y.number or dict(node.params) != transposed:
            return None
        result[node.inputs[1]] = coefficient
    return result


def _half_outer(y: Value, r: int, q: int, coefficient: Polynomial) -> Value:
    """Half of ``(L^-T r) (L^-T q)^T`` plus, if `r` and `q` are two, its transpose."""
    first, second = (solve_triangular(y, y.builder.value(i), lower=True, trans=True) for i in (r, q))
    product = _outer(first, second)
    if r != q:
        product = product + mT(product)
    elif first.shape[-1] > 1:
        product = (product + mT(product)) * 0.5
    return scaled(product, times(coefficient, HALF))


def _outer(a: Value, b: Value) -> Value:
    """``a @ b.T``; of single columns as a product of views, which costs no memory."""
    if a.shape[-1] != 1:
        return matmul(a, mT(b))
    n, d = a.shape[-2], a.ndim
    shape = (*a.shape[:-1], n)
    lead = tuple((0, ((i, 1),)) for i in range(d - 2))
    return view(a, shape, (*lead, (0, ((d - 2, 1),)), (0, ()))) * view(b, shape, (*lead, (0, ((d - 1, 1),)), (0, ())))


# --- the inverse -----------------------------------------------------------------------------------

def _inverse(factor: Any) -> Any:
    n = factor.shape[-1]
    lower = solve_triangular(factor, np.broadcast_to(np.eye(n, dtype=factor.dtype), factor.shape), lower=True)
    return np.swapaxes(lower, -1, -2) @ lower


def _inverse_vjp(ct: Value, y: Value, factor: Value) -> tuple[Value]:
    """``-tril(Y (ct + ct^T) L^-T)`` for ``Y = L^-T L^-1``."""
    inside = matmul(y, ct + mT(ct))
    return (-triangle(mT(solve_triangular(factor, mT(inside), lower=True)), lower=True),)


def _inverse_jvp(tangents: Cotangents, y: Value, factor: Value) -> Value | None:
    """``-L^-T (L^-1 dL + (L^-1 dL)^T) L^-1``."""
    t = tangents[0]
    if t is None:
        return None
    moved = solve_triangular(factor, triangle(t, lower=True), lower=True)
    left = solve_triangular(factor, moved + mT(moved), lower=True, trans=True)
    return -mT(solve_triangular(factor, mT(left), lower=True, trans=True))


cholesky_inverse = Primitive(
    "cholesky_inverse", evaluate=_inverse, infer=same_shape, vjp=_inverse_vjp, jvp=_inverse_jvp, cost=100,
    batch=leading, samples=lambda rng: [((regular(rng),), {}), ((regular(rng, 2),), {}), ((regular(rng, n=1),), {})])
"""``inv(L @ L.T)``, given the lower factor L; a symmetric matrix."""

__all__ = ["cholesky", "cholesky_cotangent", "cholesky_inverse"]
