"""Products with a matrix in compressed rows, as row loops.

The entries of row i of the matrix A are ``data[p]`` in the columns ``indices[p]`` for `p` from ``indptr[i]`` up to
``indptr[i + 1]``; entries of one place add up. Three rows of the table, each linear in its two arrays of numbers,
are each other's derivatives::

    sparse_rows      y = A x           y[i] = sum_p data[p] x[indices[p]]
    sparse_columns   y = A.T u         y[j] = sum over p with indices[p] = j of data[p] u[row of p]
    sparse_entries   the cotangent of data:  y[p] = u[row of p] . x[indices[p]]

`x` and `u` are vectors or matrices. Indices are trusted, as SciPy trusts them; the rows say so in
`trusts`, since a file must not be.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.primitives.linear import Cotangents, linear
from jitad.tape.builder import Value
from jitad.tape.types import Aval


def _row_of(indptr: Any) -> np.ndarray:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _products(data: Any, x: Any) -> Any:
    return data.reshape(-1, *(1,) * (x.ndim - 1)) * x


def _rows(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    y = np.zeros((len(indptr) - 1, *x.shape[1:]), x.dtype)
    stop = indptr[-1]
    np.add.at(y, _row_of(indptr), _products(data[:stop], x[indices[:stop]]))
    return y


def _columns(data: Any, indices: Any, indptr: Any, u: Any, columns: int) -> Any:
    y = np.zeros((columns, *u.shape[1:]), u.dtype)
    stop = indptr[-1]
    np.add.at(y, indices[:stop], _products(data[:stop], u[_row_of(indptr)]))
    return y


def _entries(u: Any, indices: Any, indptr: Any, x: Any) -> Any:
    y = np.zeros(indices.shape, x.dtype)
    stop = indptr[-1]
    product = u[_row_of(indptr)] * x[indices[:stop]]
    y[:stop] = product.reshape(stop, math.prod(x.shape[1:])).sum(axis=1)
    return y


def _width(x: Any) -> int:
    return math.prod(x.shape[1:])


def _rows_vjp(ct: Value, y: Value, data: Value, indices: Value, indptr: Value, x: Value) -> Cotangents:
    return (sparse_entries(ct, indices, indptr, x), None, None,
            sparse_columns(data, indices, indptr, ct, columns=x.shape[0]))


def _columns_vjp(ct: Value, y: Value, data: Value, indices: Value, indptr: Value, u: Value,
                 columns: int) -> Cotangents:
    return sparse_entries(u, indices, indptr, ct), None, None, sparse_rows(data, indices, indptr, ct)


def _entries_vjp(ct: Value, y: Value, u: Value, indices: Value, indptr: Value, x: Value) -> Cotangents:
    return (sparse_rows(ct, indices, indptr, x), None, None,
            sparse_columns(ct, indices, indptr, u, columns=x.shape[0]))


def _pattern(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of entries, one of them twice, one row without any."""
    counts = rng.integers(1, 4, rows)
    counts[0] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = rng.integers(0, columns, indptr[-1])
    indices[-1] = indices[indptr[-2]]
    return indices, indptr


def _samples(kind: str) -> Any:
    def samples(rng: np.random.Generator) -> list[Any]:
        found = []
        for width, integer in (((), np.int64), ((2,), np.int32)):
            indices, indptr = (a.astype(integer) for a in _pattern(rng, 4, 3))
            data, x, u = (rng.normal(size=s) for s in (len(indices), (3, *width), (4, *width)))
            found.append({"rows": ((data, indices, indptr, x), {}), "entries": ((u, indices, indptr, x), {}),
                          "columns": ((data, indices, indptr, u), {"columns": 3})}[kind])
        return found
    return samples


sparse_rows = linear(
    "sparse_rows", _rows, lambda data, indices, indptr, x: Aval((indptr.shape[0] - 1, *x.shape[1:]), x.dtype),
    _rows_vjp, slots=(0, 3), samples=_samples("rows"),
    trusts="a product with a sparse matrix",
    numbers=lambda data, indices, indptr, x, out: (indptr.shape[0] - 1, _width(x)))

sparse_columns = linear(
    "sparse_columns", _columns,
    lambda data, indices, indptr, u, columns: Aval((columns, *u.shape[1:]), u.dtype),
    _columns_vjp, slots=(0, 3), samples=_samples("columns"),
    trusts="a product with a sparse matrix",
    numbers=lambda data, indices, indptr, u, out: (indptr.shape[0] - 1, _width(u), out.shape[0]))

sparse_entries = linear(
    "sparse_entries", _entries, lambda u, indices, indptr, x: Aval(indices.shape, x.dtype),
    _entries_vjp, slots=(0, 3), samples=_samples("entries"),
    trusts="a product with a sparse matrix",
    numbers=lambda u, indices, indptr, x, out: (indptr.shape[0] - 1, _width(x), out.shape[0]))

__all__ = ["sparse_columns", "sparse_entries", "sparse_rows"]
