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
from jitad.trace.dispatch import as_value, lift_all, lift_with, refused
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


