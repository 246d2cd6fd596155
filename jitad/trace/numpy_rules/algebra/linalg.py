"""numpy.linalg, diagonals, triangles."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.core import cast
from jitad.primitives.view import broadcast_to, expand_dims, spread
from jitad.primitives.view import squeeze as drop
from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.arrays.choice import choose
from jitad.trace.arrays.viewing import through_view
from jitad.trace.dispatch import SOMETIMES, as_value, builder_in, implements, lift_all, order_of, refused
from jitad.trace.numpy_rules.algebra.contract import matmul
from jitad.trace.numpy_rules.reductions.reduce import axes_of, keep, max_, min_, root, sum_
from jitad.trace.numpy_rules.shapes.shape import frozen, ravel
from jitad.trace.ufuncs import as_float

_SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


# --- diagonals and triangles -------------------------------------------------------------------

@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    v, = lift_all(v)
    if v.ndim == 2:
        return frozen(through_view(v, np.diagonal, k))
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = v.shape[0] + abs(k)
    return spread(v, (n, n), ((max(-k, 0), ((0, 1),)), (max(k, 0), ((0, 1),))))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(lift_all(v)[0]), k)


def _triangle(function: Any, row: str) -> None:
    @implements(function)
    def triangle(m: Any, k: int = 0) -> Any:
        m, = lift_all(m)
        if m.ndim == 0:
            function(np.zeros(()), k)                               # raises NumPy's own message
        if m.ndim == 1:
            m = broadcast_to(m, (m.shape[0], m.shape[0]))
        return TABLE[row](m, k=int(k))


_triangle(np.tril, "tril")
_triangle(np.triu, "triu")


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    a, = lift_all(a)
    return sum_(through_view(a, np.diagonal, offset, axis1, axis2), -1, dtype)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


# --- solvers -----------------------------------------------------------------------------------

def row(name: str) -> Any:
    """A primitive of primitives/linalg.py."""
    return TABLE[name]


def check_square(a: Any) -> Any:
    """`a` in a floating dtype, if it is a stack of square matrices."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return as_float(a)


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    a = check_square(lift_all(a)[0])
    return rows.mT(rows.cholesky(a, upper=True)) if upper else rows.cholesky(a)


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    return row("inv")(check_square(lift_all(a)[0]))


@implements(np.linalg.det)
def det(a: Any) -> Any:
    return row("det")(check_square(lift_all(a)[0]))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    a = check_square(lift_all(a)[0])
    return _SlogdetResult(*rows.slogdet(a))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    a, b = lift_all(a, b)
    a = check_square(a)
    return with_columns(rows.solve, a, b, b.ndim == 1)


def with_columns(operation: Any, a: Any, b: Any, vector: bool) -> Any:
    """``operation(a, b)`` on matrices `b` with common leading dimensions and dtype; a vector is one column."""
    dtype = np.result_type(a.dtype, as_float(b).dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    if vector:
        b = expand_dims(b, (b.ndim,))
    if b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        np.linalg.solve(np.broadcast_to(np.eye(a.shape[-1]), a.shape), np.zeros(b.shape))    # NumPy's own message
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = operation(broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:]))
    return drop(result, (result.ndim - 1,)) if vector else result


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    a = lift_all(a)[0]
    check_square(a)
    if builder_in(n) is not None:
        raise refused(a, "numpy.linalg.matrix_power with a traced exponent", "pass the exponent as a static value")
    n = int(n)
    if n == 0:
        return as_value(a.builder, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))
    base, n = (inv(a), -n) if n < 0 else (a, n)
    result = None
    while n:
        if n % 2:
            result = base if result is None else matmul(result, base)
        n //= 2
        base = matmul(base, base) if n else base
    return result


SOMETIMES[np.linalg.matrix_power] = lambda a, n: builder_in(n) is None and n == 1        # the matrix itself


# --- norms -------------------------------------------------------------------------------------

@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = as_float(lift_all(x)[0])
    if axis is None and (ord is None or (x.ndim == 2 and ord in ("fro", "f")) or (
            x.ndim == 1 and builder_in(ord) is None and ord == 2)):
        axes = tuple(range(x.ndim))
        return keep(root(sum_(np.square(x))), axes, keepdims, x.ndim)
    axes = tuple(range(x.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if builder_in(ord) is not None:
        if ord == 0:
            raise refused(x, "numpy.linalg.norm with a traced order that is 0", "pass the order as a static value")
        return _power_norm(x, ord, axes, keepdims)
    if ord is None or ord == 2:
        return root(sum_(np.square(x), axes, keepdims=keepdims))
    if ord == np.inf:
        return max_(np.absolute(x), axes, keepdims=keepdims)
    if ord == -np.inf:
        return min_(np.absolute(x), axes, keepdims=keepdims)
    if ord == 0:
        return sum_(cast(x != 0, x.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum_(np.absolute(x), axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return _power_norm(x, float(ord), axes, keepdims)


def _power_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    total = sum_(np.absolute(x) ** ord, axes, keepdims=keepdims)
    return total ** (1.0 / ord) if ord < 0 else choose(total == 0, 0.0, total ** (1.0 / ord))


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    ord = order_of(ord)
    if ord in (None, "fro", "f"):
        return root(sum_(np.square(x), axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        return _spectral_norm(x, ord, axes, keepdims)
    inner = {1: 0, -1: 0, np.inf: 1, -np.inf: 1}.get(ord)
    if inner is None:
        raise ValueError("Invalid norm order for matrices.")
    sums = sum_(np.absolute(x), axes[inner], keepdims=True)
    extremum = max_ if ord > 0 else min_
    result = extremum(sums, axes[1 - inner], keepdims=True)
    return result if keepdims else drop(result, axes)


def _spectral_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The largest, the smallest or the sum of the singular values."""
    s = np.linalg.svdvals(np.moveaxis(x, axes, (-2, -1)))
    result = sum_(s, -1) if ord == "nuc" else max_(s, -1) if ord == 2 else min_(s, -1)
    return keep(result, tuple(sorted(axes)), keepdims, x.ndim)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    x = as_float(lift_all(x)[0])
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if axis is not None:
        x_moved = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
        flat = x_moved.reshape((*x_moved.shape[:x.ndim - len(axes)], -1))
    else:
        flat = ravel(x)
    return keep(_vector_norm(flat, ord, (flat.ndim - 1,), False), axes, keepdims, x.ndim)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    x = as_float(lift_all(x)[0])
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


__all__ = ["Value", "check_square", "row", "with_columns"]
