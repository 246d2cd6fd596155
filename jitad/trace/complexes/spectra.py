"""Eigenvalues, singular values and functions of complex matrices, in NumPy and SciPy.

Functions of a matrix are those of the real matrix of twice the size (`complexes.linalg`): the principal square root and
the exponential of ``[[B, -C], [C, B]]`` have that form too.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.trace.attempts import require_finite
from jitad.trace.complexes.functions import rule
from jitad.trace.complexes.linalg import doubled, halved, matrix, square, svdvals
from jitad.trace.dispatch import builder_in, call, refused
from jitad.trace.numpy_rules.algebra.factors import EighResult, SVDResult, eigen_pairs, eigen_values, only_right
from jitad.trace.values.pairs import Complex, pack, pair, parts_of

FORMS: dict[str, Callable[..., Any]] = {}
"""What functions of scipy.linalg are of complex arguments, by name."""
DOUBLED = frozenset("expm sqrtm logm signm cosm sinm tanm coshm sinhm tanhm fractional_matrix_power".split())
"""Those that are of the real matrix of twice the size."""


def form(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        FORMS[name] = impl
        return impl
    return enter


def substitute(original: Any, impl: Callable[..., Any]) -> Callable[..., Any]:
    """What the rule `impl` of a function of SciPy is where something is complex: another, or itself."""
    name = getattr(original, "__name__", "") if getattr(original, "__module__", "").startswith("scipy.linalg") else ""
    return partial(_of_doubled, impl) if name in DOUBLED else FORMS.get(name, impl)


def _of_doubled(impl: Callable[..., Any], A: Any, *args: Any, **options: Any) -> Any:
    a = square(A)
    return halved(impl(doubled(a), *args, **options), a.shape[-1], a.shape[-1])


def _traced(builder: Any, packed: Any) -> Any:
    return builder.value(packed.number)


# --- eigenvalues -------------------------------------------------------------------------------

@rule(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    a = square(a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    y = rows.heigh(_traced(a.builder, pack(a)), upper=True) if UPLO.upper() == "U" else rows.heigh(
        _traced(a.builder, pack(a)))
    vectors = rows.vectors(y, 1, a.shape[-1])
    return EighResult(rows.column(y, 0), pair(vectors.re, vectors.im))  # type: ignore[arg-type]


@form("eigh")
def scipy_eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, check_finite: bool = True,
               **options: Any) -> Any:
    a = matrix(a)
    if b is not None or any(v is not None for k, v in options.items() if not k.startswith("overwrite") and k != "type"):
        raise refused(builder_in(a, b), "scipy.linalg.eigh of complex matrices with b or a subset",
                      "use numpy.linalg.eigh, and choose among its values")
    require_finite(check_finite, a.re, a.im)
    values, vectors = eigh(a, "L" if lower else "U")
    return values if eigvals_only else (values, vectors)


@form("eigvalsh")
def scipy_eigvalsh(a: Any, b: Any = None, **options: Any) -> Any:
    return scipy_eigh(a, b, eigvals_only=True, **options)


@rule(np.linalg.eig)
def eig(a: Any) -> Any:
    a = square(a)
    return eigen_pairs(rows.eig(_traced(a.builder, pack(a)), packed=True), real=False)


@rule(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    a = square(a)
    return eigen_values(rows.eig(_traced(a.builder, pack(a)), packed=True), real=False)


@form("eig")
def scipy_eig(a: Any, b: Any = None, left: bool = False, right: bool = True, *,
              check_finite: bool = True, **options: Any) -> Any:
    only_right(builder_in(a, b), b, left, options)
    require_finite(check_finite, a)
    values, vectors = eig(matrix(a))
    return (values, vectors) if right else values


@form("eigvals")
def scipy_eigvals(a: Any, b: Any = None, *, check_finite: bool = True, **options: Any) -> Any:
    only_right(builder_in(a, b), b, False, options)
    require_finite(check_finite, a)
    return eigvals(matrix(a))


# --- singular values ---------------------------------------------------------------------------

@rule(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = matrix(a)
    if hermitian:
        raise refused(a.builder, "numpy.linalg.svd of complex matrices with hermitian=True",
                      "leave the option out, or use numpy.linalg.eigh")
    if not compute_uv:
        return svdvals(a)
    m, n = a.shape[-2:]
    if full_matrices and m != n:
        raise refused(a.builder, "numpy.linalg.svd with full_matrices=True of matrices that are not square",
                      "pass full_matrices=False: the vectors beyond are any basis of what is left")
    packed = _traced(a.builder, pack(a))
    s, left, right = rows.csvd_parts(rows.csvd(packed), packed)
    return SVDResult(pair(left.re, left.im), s, pair(right.H.re, right.H.im))  # type: ignore[arg-type]


@form("svd")
def scipy_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, *, check_finite: bool = True,
              **options: Any) -> Any:
    require_finite(check_finite, a)
    result = svd(a, full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


@rule(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    if p not in (None, 2, -2):
        return call(np.linalg.norm, x, p, (-2, -1)) * call(np.linalg.norm, call(np.linalg.inv, x), p, (-2, -1))
    values = svdvals(matrix(x))
    first, last = values[..., 0], values[..., -1]
    return last / first if p == -2 else first / last


@rule(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    builder = builder_in(a, b)
    a, b = (x if isinstance(x, Complex) else pair(*parts_of(builder, x)) for x in (a, b))
    axis, n = -1 if b.ndim == 1 else -2, a.shape[-1]
    x, residuals, rank, values = call(np.linalg.lstsq, doubled(a), np.concatenate([b.re, b.im], axis=axis), rcond)
    return pair(x[:n], x[n:]), residuals, rank // 2, values[::2]


# --- functions of SciPy that mean what NumPy's do --------------------------------------------------

def _as_numpy(function: Any, count: int = 1) -> None:
    @form(function.__name__)
    def same(*args: Any, check_finite: bool = True, overwrite_a: bool = False, overwrite_b: bool = False,
             **options: Any) -> Any:
        if len(args) > count or any(v is not None for v in options.values()):
            name = function.__name__
            raise refused(builder_in(args, options), f"scipy.linalg.{name} of complex matrices with options",
                          f"use numpy.linalg.{name}")
        require_finite(check_finite, *(x for x in args if np.ndim(x)))
        return call(function, *args)


for _function, _count in ((np.linalg.inv, 1), (np.linalg.det, 1), (np.linalg.solve, 2), (np.linalg.svdvals, 1),
                          (np.linalg.pinv, 1), (np.linalg.norm, 2)):
    _as_numpy(_function, _count)
