"""Systems of banded matrices, which are stored by diagonals as in `scipy.linalg.solve_banded`."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.index import concatenate
from jitad.primitives.linear import Cotangents
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.view import expand_dims, slice_dims, spread, squeeze
from jitad.tape.builder import Value
from jitad.tape.types import Aval, Primitive

# --- diagonals: row r of `ab` holds a[i, j] with i - j = r - upper at place j ----------------------

def _shifted(x: Value, by: int) -> Value:
    """``y[i] = x[i + by]`` along the first dimension, zero outside."""
    n = x.shape[0]
    if abs(by) >= n:
        return x * 0.0
    part = slice_dims(x, (slice(max(by, 0), n + min(by, 0)), *(slice(None),) * (x.ndim - 1)))
    index = tuple((max(-by, 0) if d == 0 else 0, ((d, 1),)) for d in range(x.ndim))
    return spread(part, x.shape, index)


def _stacked(rows: list[Value]) -> Value:
    return concatenate(*(expand_dims(r, (0,)) for r in rows), axis=0)


def _row(ab: Value, r: int) -> Value:
    return squeeze(slice_dims(ab, (slice(r, r + 1), slice(None))), (0,))


def transposed_band(ab: Value, lower: int, upper: int) -> Value:
    """The diagonals of the transpose, which has `upper` of them below the main one."""
    return _stacked([_shifted(_row(ab, upper + k), -k) for k in range(lower, -upper - 1, -1)])


def _outer_band(s: Value, x: Value, lower: int, upper: int) -> Value:
    """The diagonals of ``s @ x.T``: for place j those of row ``j + k``."""
    return _stacked([reduce_sum(_shifted(s, k) * x, (1,)) for k in range(-upper, lower + 1)])


def _banded_product(ab: Value, x: Value, lower: int, upper: int) -> Value:
    """``a @ x``."""
    total = None
    for k in range(-upper, lower + 1):
        term = _shifted(expand_dims(_row(ab, upper + k), (1,)) * x, -k)
        total = term if total is None else total + term
    assert total is not None
    return total


def shifted_rows(ab: Value) -> Value:
    """The main and lower diagonals of a symmetric matrix, given the upper and main ones."""
    k = ab.shape[0] - 1
    return _stacked([_shifted(_row(ab, k - d), d) for d in range(k + 1)])


# --- general bands -----------------------------------------------------------------------------

def _solve(ab: Any, b: Any, lower: int, upper: int) -> Any:
    from scipy.linalg import solve_banded

    return np.asarray(solve_banded((lower, upper), ab, b), b.dtype) if b.size else b


def _infer(ab: Aval, b: Aval, lower: int, upper: int) -> Aval:
    if ab.ndim != 2 or b.ndim != 2 or ab.shape != (lower + upper + 1, b.shape[0]):
        raise ValueError(f"solve_banded: {ab} does not hold {lower} and {upper} diagonals of a matrix that fits {b}")
    return b


def _vjp(ct: Value, y: Value, ab: Value, b: Value, lower: int, upper: int) -> tuple[Value, Value]:
    s = solve_banded(transposed_band(ab, lower, upper), ct, lower=upper, upper=lower)
    return -_outer_band(s, y, lower, upper), s


def _jvp(tangents: Cotangents, y: Value, ab: Value, b: Value, lower: int, upper: int) -> Value | None:
    da, right = tangents
    if da is not None:
        moved = _banded_product(da, y, lower, upper)
        right = -moved if right is None else right - moved
    return None if right is None else solve_banded(ab, right, lower=lower, upper=upper)


def _band(rng: np.random.Generator, rows: int, main: int, n: int = 4) -> np.ndarray:
    ab = rng.normal(size=(rows, n))
    ab[main] += 5.0
    return ab


solve_banded: Primitive = Primitive(
    "solve_banded", evaluate=_solve, infer=_infer, vjp=_vjp, jvp=_jvp, cost=100,
    samples=lambda rng: [((_band(rng, 4, 1), rng.normal(size=(4, 2))), {"lower": 2, "upper": 1}),
                         ((_band(rng, 3, 1), rng.normal(size=(4, 1))), {"lower": 1, "upper": 1}),
                         ((_band(rng, 2, 1), rng.normal(size=(4, 1))), {"lower": 0, "upper": 1})])
"""The x of ``a @ x = b`` for the matrix whose diagonals are the rows of `ab`, the highest first."""


# --- symmetric positive definite bands -----------------------------------------------------------

def _solve_definite(ab: Any, b: Any) -> Any:
    from scipy.linalg import solveh_banded

    return np.asarray(solveh_banded(ab, b, lower=True), b.dtype) if b.size else b


def _definite_infer(ab: Aval, b: Aval) -> Aval:
    if ab.ndim != 2 or b.ndim != 2 or ab.shape[1] != b.shape[0]:
        raise ValueError(f"solveh_banded: {ab} does not hold diagonals of a matrix that fits {b}")
    return b


def _full_band(ab: Value) -> Value:
    """All diagonals of the symmetric matrix whose lower ones are given."""
    above = [_shifted(_row(ab, k), -k) for k in range(ab.shape[0] - 1, 0, -1)]
    return _stacked([*above, *(_row(ab, k) for k in range(ab.shape[0]))])


def _definite_vjp(ct: Value, y: Value, ab: Value, b: Value) -> tuple[Value, Value]:
    s, k = solveh_banded(ab, ct), ab.shape[0] - 1
    both, mirrored = _outer_band(s, y, k, 0), _outer_band(y, s, k, 0)
    if k == 0:
        return -both, s
    first = slice_dims(both, (slice(0, 1), slice(None)))
    rest = [slice_dims(x, (slice(1, None), slice(None))) for x in (both, mirrored)]
    return -concatenate(first, rest[0] + rest[1], axis=0), s


def _definite_jvp(tangents: Cotangents, y: Value, ab: Value, b: Value) -> Value | None:
    da, right = tangents
    if da is not None:
        moved = _banded_product(_full_band(da), y, ab.shape[0] - 1, ab.shape[0] - 1)
        right = -moved if right is None else right - moved
    return None if right is None else solveh_banded(ab, right)


solveh_banded: Primitive = Primitive(
    "solveh_banded", evaluate=_solve_definite, infer=_definite_infer, vjp=_definite_vjp, jvp=_definite_jvp, cost=100,
    sides=lambda shapes, params: (1, *shapes[0], shapes[1][-1]),
    samples=lambda rng: [((_band(rng, 3, 0), rng.normal(size=(4, 2))), {}),
                         ((_band(rng, 1, 0), rng.normal(size=(4, 1))), {})])
"""The same for a symmetric positive definite matrix, of which the main diagonal and those below it are given."""

__all__ = ["shifted_rows", "solve_banded", "solveh_banded", "transposed_band"]
