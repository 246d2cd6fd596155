"""The routines of `jitad.compile.routines.sparse` as plain Python on flat arrays: the same arguments, result first."""
from __future__ import annotations

from typing import Any

from jitad.compile.loops import STATUS_OK
from jitad.compile.reference.table import registered
from jitad.primitives import sparse


@registered
def sparse_rows(out: Any, data: Any, indices: Any, indptr: Any, x: Any, rows: int, width: int) -> int:
    out.reshape(rows, width)[:] = sparse.sparse_rows.evaluate(data, indices, indptr, x.reshape(-1, width))
    return STATUS_OK


@registered
def sparse_columns(out: Any, data: Any, indices: Any, indptr: Any, u: Any, rows: int, width: int, columns: int) -> int:
    out.reshape(columns, width)[:] = sparse.sparse_columns.evaluate(
        data, indices, indptr, u.reshape(rows, width), columns)
    return STATUS_OK


@registered
def sparse_entries(out: Any, u: Any, indices: Any, indptr: Any, x: Any, rows: int, width: int, count: int) -> int:
    out[:] = sparse.sparse_entries.evaluate(u.reshape(rows, width), indices, indptr, x.reshape(-1, width))
    return STATUS_OK
