"""What the rows of linear algebra share: matrices by their usual operations, shapes, batches.

The last two dimensions are a matrix, leading dimensions are a batch.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import reshape, tril, triu
from jitad.primitives.reduce import contract, restore
from jitad.primitives.view import broadcast_to, transpose
from jitad.tape.builder import Value
from jitad.tape.types import Aval, Primitive

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]

# --- matrices by their usual operations --------------------------------------------------------

def mT(a: Any) -> Any:
    """The transpose of each matrix: ``mT(a)[..., i, j] = a[..., j, i]``."""
    n = len(a.shape)
    return transpose(a, (*range(n - 2), n - 1, n - 2))


def matmul(a: Any, b: Any) -> Any:
    """``sum_j a[..., i, j] * b[..., j, k]`` for matrices, with broadcasting of the leading dimensions."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    letters = ascii_lowercase[:len(batch)]
    a, left = _batched(a, batch, letters)
    b, right = _batched(b, batch, letters)
    return contract(a, b, f"{left}xy,{right}yz->{letters}xz")


def _batched(a: Any, batch: tuple[int, ...], letters: str) -> tuple[Any, str]:
    """`a` with the letters of its leading dimensions; those of length one are repeated only if needed."""
    own = a.shape[:-2]
    if own == batch[len(batch) - len(own):]:
        return a, letters[len(batch) - len(own):]
    return broadcast_to(a, batch + a.shape[-2:]), letters


def inner(a: Value, b: Value) -> Value:
    """``sum_ij a[..., i, j] * b[..., i, j]``."""
    letters = ascii_lowercase[:a.ndim - 2]
    return contract(a, b, f"{letters}xy,{letters}xy->{letters}")


def trace_of(a: Value, b: Value) -> Value:
    """``trace(a @ b)``, kept as a matrix of one element that broadcasts: shape ``(..., n, n)``."""
    return spread_scalar(inner(a, mT(b)), a)


def spread_scalar(scalar: Value, like: Value) -> Value:
    return restore(scalar, like.shape, (like.ndim - 2, like.ndim - 1))


def triangle(a: Value, lower: bool, strict: bool = False) -> Value:
    """The lower or upper triangle of each matrix, without the diagonal if `strict`."""
    return tril(a, k=-1 if strict else 0) if lower else triu(a, k=1 if strict else 0)


def square_batch(a: Aval) -> tuple[int, ...]:
    """The batch shape of square matrices; NumPy's own errors otherwise."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return a.shape[:-2]


def same_shape(a: Aval, **params: Any) -> Aval:
    square_batch(a)
    return Aval(a.shape, a.dtype)


def one_number(a: Aval) -> Aval:
    return Aval(square_batch(a), a.dtype)


def regular(rng: np.random.Generator, *batch: int, n: int = 3) -> np.ndarray:
    """Well-conditioned square matrices for the tests."""
    return rng.normal(size=(*batch, n, n)) + 3.0 * np.eye(n)


def leading(prim: Primitive, operands: Sequence[tuple[Value, bool]], length: int, **params: Any) -> Value:
    """The rule of a batch for rows to which all leading dimensions are one: the batch is one more of them."""
    return prim(*(x if batched else broadcast_to(x, (length, *x.shape)) for x, batched in operands), **params)


def in_columns(prim: Primitive, operands: Sequence[tuple[Value, bool]], length: int, **params: Any) -> Value:
    """The same for systems; a batch of right sides of one matrix is one system of many columns."""
    (a, several), (b, _) = operands
    if several:
        return leading(prim, operands, length, **params)
    n = a.ndim
    columns = transpose(b, (*range(1, n), 0, n))
    solved = prim(a, reshape(columns, (*a.shape[:-1], length * b.shape[-1])), **params)
    return transpose(reshape(solved, columns.shape), (n - 1, *range(n - 1), n))


def rectangle(shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[float, ...]:
    """The numbers of a routine for matrices of any sides: the batch, both sides, parameters."""
    batch = int(np.prod(shapes[0][:-2], dtype=np.int64))
    return (batch, *shapes[0][-2:], *(params[k] for k in sorted(params)))


def routine_numbers(row: Primitive, shapes: Sequence[tuple[int, ...]], params: Any) -> tuple[float, ...]:
    """The numbers of the runtime's routine of a row: the batch, then sides, then flags."""
    sides_of = row.sides
    if sides_of is not None:
        return sides_of(shapes, params)
    batch = int(np.prod(shapes[0][:-2], dtype=np.int64))
    sides = shapes[0][-1:] if len(shapes) == 1 else (shapes[0][-1], shapes[1][-1])
    return (batch, *sides, *(int(params[k]) for k in sorted(params)))


def system(a: Any, b: Any) -> tuple[Any, Any]:
    """`a` and `b` with one batch shape and one dtype."""
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    a, b = (cast(x, dtype) if isinstance(x, Value) else np.asarray(x, dtype) for x in (a, b))
    if a.ndim < 2 or b.ndim < 2:
        return a, b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:])


def system_infer(a: Aval, b: Aval, **params: Any) -> Aval:
    batch = square_batch(a)
    if b.ndim < 2 or b.shape[:-1] != (*batch, a.shape[-1]) or a.dtype != b.dtype:
        raise ValueError(f"solve: a is {a} and b is {b}; b must be a matrix for each matrix of a, of the same dtype")
    return Aval(b.shape, b.dtype)


def over_batch(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """`function` of each pair of matrices."""
    if a.ndim == 2:
        return function(a, b)
    out = np.empty(b.shape, b.dtype)
    for i in np.ndindex(a.shape[:-2]):
        out[i] = function(a[i], b[i])
    return out
