"""Matrices of scipy.linalg that have a structure: Toeplitz, circulant, Hankel, blocks, bands."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.core import cast, full
from jitad.primitives.index import concatenate
from jitad.primitives.linalg.banded import shifted_rows
from jitad.primitives.view import broadcast_to, expand_dims
from jitad.primitives.view import squeeze as drop
from jitad.trace.attempts import require_finite
from jitad.trace.dispatch import as_value, builder_in, lift_all, lift_with, refused
from jitad.trace.numpy_rules.shapes.shape import ravel
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import as_float


def _at_least(x: Any, ndim: int) -> Any:
    return expand_dims(x, tuple(range(ndim - x.ndim))) if x.ndim < ndim else x


@substitute("scipy.linalg", "toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    c = _at_least(lift_with(c, r), 1)
    r = c if r is None else _at_least(as_value(c.builder, r), 1)
    if c.ndim > 1 or r.ndim > 1:
        raise refused(c, "scipy.linalg.toeplitz of arrays with several dimensions", "pass vectors")
    dtype = np.result_type(c.dtype, r.dtype)
    values: Any = np.concatenate([cast(c[::-1], dtype), cast(r[1:], dtype)])
    return values[np.arange(c.shape[0])[::-1, None] + np.arange(r.shape[0])]


@substitute("scipy.linalg", "hankel")
def hankel(c: Any, r: Any = None) -> Any:
    c = ravel(lift_with(c, r))
    r = full(c, 0, c.shape, c.dtype) if r is None else ravel(as_value(c.builder, r))
    dtype = np.result_type(c.dtype, r.dtype)
    values: Any = np.concatenate([cast(c, dtype), cast(r[1:], dtype)])
    return values[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])]


@substitute("scipy.linalg", "circulant")
def circulant(c: Any) -> Any:
    c = _at_least(lift_all(c)[0], 1)
    numbers = np.arange(c.shape[-1])
    return c[..., (numbers[:, None] - numbers) % max(c.shape[-1], 1)]


@substitute("scipy.linalg", "block_diag")
def block_diag(*arrs: Any) -> Any:
    blocks = [_at_least(a, 2) for a in lift_all(*arrs)]
    dtype = np.result_type(*(b.dtype for b in blocks))
    batch = np.broadcast_shapes(*(b.shape[:-2] for b in blocks))
    width, before, parts = sum(b.shape[-1] for b in blocks), 0, []
    for block in blocks:
        block = broadcast_to(cast(block, dtype), batch + block.shape[-2:])
        after = width - before - block.shape[-1]
        sides = [full(block, 0, (*block.shape[:-1], n), dtype) for n in (before, after)]
        parts.append(concatenate(sides[0], block, sides[1], axis=block.ndim - 1))
        before += block.shape[-1]
    return concatenate(*parts, axis=len(batch)) if len(parts) > 1 else parts[0]


@substitute("scipy.linalg", "solve_banded")
def solve_banded(l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False,
                 check_finite: bool = True) -> Any:
    lower, upper = map(int, l_and_u)
    ab, b, vector = _operands(ab, b, "solve_banded")
    require_finite(check_finite, ab, b)
    if ab.shape[-1] != b.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    if lower + upper + 1 != ab.shape[0]:
        raise ValueError(f"invalid values for the number of lower and upper diagonals: l+u+1 ({lower + upper + 1}) "
                         f"does not equal ab.shape[0] ({ab.shape[0]})")
    result = rows.solve_banded(ab, b, lower=lower, upper=upper)
    return drop(result, (1,)) if vector else result


@substitute("scipy.linalg", "solveh_banded")
def solveh_banded(ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
                  check_finite: bool = True) -> Any:
    ab, b, vector = _operands(ab, b, "solveh_banded")
    require_finite(check_finite, ab, b)
    if ab.shape[-1] != b.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    result = rows.solveh_banded(ab if lower else shifted_rows(ab), b)
    return drop(result, (1,)) if vector else result


def _operands(ab: Any, b: Any, name: str) -> tuple[Any, Any, bool]:
    ab, b = lift_all(ab, b)
    if ab.ndim != 2 or b.ndim not in (1, 2):
        raise refused(ab, f"scipy.linalg.{name} of a batch", "call it for each matrix")
    dtype = np.result_type(as_float(ab).dtype, as_float(b).dtype)
    vector = b.ndim == 1
    b = cast(b, dtype)
    return cast(ab, dtype), expand_dims(b, (1,)) if vector else b, vector


# --- what is made of vectors -------------------------------------------------------------------

@substitute("scipy.linalg", "companion")
def companion(a: Any) -> Any:
    a, = lift_all(a)
    if a.ndim != 1:
        raise refused(a, "scipy.linalg.companion of arrays with several dimensions", "pass a vector")
    if a.shape[0] < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    if a[0] == 0:
        raise ValueError("The first coefficient(s) of `a` (i.e. elements of `a[..., 0]`) must not be zero.")
    x: Any = as_float(a)
    return np.concatenate([(-x[1:] / x[0])[None], np.eye(x.shape[0] - 1, dtype=x.dtype)[:-1]], axis=0)


@substitute("scipy.linalg", "convolution_matrix")
def convolution_matrix(a: Any, n: Any, mode: str = "full") -> Any:
    a, = lift_all(a)
    if n <= 0:
        raise ValueError("n must be a positive integer.")
    if mode not in ("full", "valid", "same"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    if a.ndim != 1:
        raise refused(a, "scipy.linalg.convolution_matrix of arrays with several dimensions", "pass a vector")
    m, n = a.shape[0], int(n)
    whole = toeplitz(np.concatenate([a, np.zeros(n - 1, a.dtype)]), np.concatenate([a[:1], np.zeros(n - 1, a.dtype)]))
    if mode == "full":
        return whole
    cut = min(m, n) - 1
    if mode == "valid":
        return whole[cut:m + n - 1 - cut]
    return whole[cut // 2:cut // 2 + max(m, n)]


@substitute("scipy.linalg", "khatri_rao")
def khatri_rao(a: Any, b: Any) -> Any:
    a, b = lift_all(a, b)
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("The both arrays should be 2-dimensional.")
    if a.shape[1] != b.shape[1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    return (a[:, None, :] * b).reshape((-1, a.shape[1]))


@substitute("scipy.linalg", "leslie")
def leslie(f: Any, s: Any) -> Any:
    f, s = lift_all(f, s)
    if f.ndim != 1 or s.ndim != 1:
        raise refused(f, "scipy.linalg.leslie of arrays with several dimensions", "pass vectors")
    if f.shape[0] != s.shape[0] + 1:
        raise ValueError("The length of s must be one less than the length of f.")
    dtype = np.result_type(f.dtype, s.dtype)
    first: Any = cast(f, dtype)
    rest: Any = cast(s, dtype)
    return np.concatenate([first[None], np.eye(s.shape[0], f.shape[0], dtype=dtype) * rest[:, None]])


@substitute("scipy.linalg", "fiedler")
def fiedler(a: Any) -> Any:
    x: Any = _at_least(lift_all(a)[0], 1)
    return np.absolute(x[..., :, None] - x[..., None, :])


def _column_and_row(c_or_cr: Any) -> Any:
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


@substitute("scipy.linalg", "solve_toeplitz")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """By a general factorization, in cubic time."""
    lifted = _finite(check_finite, c_or_cr, b)
    matrix = _column_and_row(c_or_cr) if builder_in(c_or_cr) is not None else as_value(
        lifted.builder, _plain_toeplitz(c_or_cr))
    return np.linalg.solve(matrix, lifted)


def _finite(check: bool, c_or_cr: Any, b: Any) -> Any:
    """The right side on the tape; ValueError unless it and the matrix are finite, if that is asked."""
    parts = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    lifted = lift_with(b, *parts)
    require_finite(check, lifted, *(as_value(lifted.builder, part) for part in parts))
    return lifted


def _plain_toeplitz(c_or_cr: Any) -> Any:
    from scipy.linalg import toeplitz as original

    return original(*c_or_cr) if isinstance(c_or_cr, tuple) else original(c_or_cr)


@substitute("scipy.linalg", "matmul_toeplitz")
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    lifted = _finite(check_finite, c_or_cr, x)
    matrix = _column_and_row(c_or_cr) if builder_in(c_or_cr) is not None else _plain_toeplitz(c_or_cr)
    return matrix @ lifted


@substitute("scipy.linalg", "eigvalsh_tridiagonal")
def eigvalsh_tridiagonal(d: Any, e: Any, select: str = "a", select_range: Any = None, **options: Any) -> Any:
    d, e = lift_all(d, e)
    if select not in ("a", 0, "all"):
        raise refused(d, "scipy.linalg.eigvalsh_tridiagonal of some of the values", "choose among all of them")
    return np.linalg.eigvalsh(np.diag(as_float(d)) + np.diag(as_float(e), -1) + np.diag(as_float(e), 1))


@substitute("scipy.linalg", "pinvh")
def pinvh(a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False,
          check_finite: bool = True) -> Any:
    a, = lift_all(a)
    if atol is not None or rtol is not None or return_rank or not lower:
        raise refused(a, "scipy.linalg.pinvh with options", "use numpy.linalg.pinv(a, hermitian=True)")
    require_finite(check_finite, a)
    return np.linalg.pinv(a, hermitian=True)
