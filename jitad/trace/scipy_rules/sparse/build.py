"""How recorded code makes sparse matrices: of traced elements at places that are plain numbers.

What is made of plain numbers alone is a stand-in as well, so that it may be added to another.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, refused
from jitad.trace.recorder import current
from jitad.trace.scipy_rules.classes import CLASSES, ClassRule, lifted, this_recorder
from jitad.trace.scipy_rules.sparse.patterns import Places, stacked
from jitad.trace.scipy_rules.sparse.values import TracedSparse, as_sparse, is_sparse, kind_of, made_of, real_of
from jitad.trace.substitutes import substitute
from jitad.trace.watched import traced_in

__all__ = ["maker", "numbers", "plain_args", "stood"]

MODULE = "scipy.sparse"


def numbers(value: Any) -> np.ndarray:
    """Whole numbers that decide on a pattern; of traced ones, by a guard."""
    if isinstance(value, Value):
        return this_recorder().decide_all(value)
    if isinstance(value, (list, tuple)) and builder_in(value) is not None:
        return this_recorder().decide_all(as_value(builder_in(value), value))
    return np.asarray(value)


def plain_args(value: Any) -> Any:
    """Arguments as SciPy's own functions get them."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain_args, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {k: plain_args(v) for k, v in value.items()}
    return real_of(value)


def stood(found: Any) -> Any:
    """A result of SciPy's, as recorded code gets it."""
    return as_sparse(found) if is_sparse(found) and found.ndim == 2 else found


def maker(name: str, module: str = MODULE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as the rule of the function of that name, for traced arguments."""
    def enter(rule: Callable[..., Any]) -> Callable[..., Any]:
        def either(*args: Any, **kwargs: Any) -> Any:
            if traced_in(args, kwargs) is not None:
                return rule(*args, **kwargs)
            import importlib

            found = getattr(importlib.import_module(module), name)(*plain_args(args), **plain_args(kwargs))
            return found if current() is None else stood(found)
        substitute(module, name, always=True)(either)
        return rule
    return enter


def _elements(value: Any) -> Any:
    """Elements in a vector, plain or traced."""
    if builder_in(value) is None:
        return np.atleast_1d(value)
    return np.atleast_1d(lifted(value))


# --- classes -------------------------------------------------------------------------------------------

def _constructor(format_: str, is_array: bool) -> Callable[..., Any]:
    def make(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **options: Any) -> TracedSparse:
        if options:
            name = kind_of(format_, is_array).__name__
            raise refused(this_recorder(), f"{name} with {min(options)}=", "leave it out")
        found = _made(format_, is_array, arg1, shape)
        return found if dtype is None else found.astype(dtype)
    return make


def _made(format_: str, is_array: bool, arg1: Any, shape: Any) -> TracedSparse:
    if type(arg1) is TracedSparse or is_sparse(arg1):
        found = as_sparse(arg1).asformat(format_)
        return TracedSparse(kind_of(format_, is_array), found.shape, *found.jitad_holds)
    shape = None if shape is None else tuple(int(n) for n in numbers(shape))
    if isinstance(arg1, tuple) and len(arg1) == 2 and format_ == "dia":
        if shape is None:
            raise ValueError("expected a shape argument")
        return _from_dia(is_array, *arg1, shape)
    if isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], (tuple, list)) and len(arg1[1]) == 2:
        rows, columns = (np.atleast_1d(numbers(i)).astype(np.int64) for i in arg1[1])
        data = _elements(arg1[0])
        if not len(rows) == len(columns) == data.shape[0]:
            raise ValueError("all index and data arrays must have the same length")
        if shape is None:
            shape = (int(rows.max()) + 1, int(columns.max()) + 1)
        if len(rows) and (rows.max() >= shape[0] or columns.max() >= shape[1] or min(rows.min(), columns.min()) < 0):
            raise ValueError("an index is negative or exceeds the matrix dimensions")
        if format_ == "coo":
            return TracedSparse(kind_of("coo", is_array), shape, data, rows, columns)
        return made_of(format_, is_array, Places(shape, rows, columns), data)
    if isinstance(arg1, tuple) and len(arg1) == 3 and format_ in ("csr", "csc"):
        data, indices, indptr = _elements(arg1[0]), numbers(arg1[1]), numbers(arg1[2])
        if shape is None:
            lines, across = len(indptr) - 1, int(indices.max()) + 1 if len(indices) else 0
            shape = (lines, across) if format_ == "csr" else (across, lines)
        kind_of(format_, is_array)((np.zeros(data.shape), indices, indptr), shape=shape)      # SciPy's own errors
        return TracedSparse(kind_of(format_, is_array), shape, data, indices, indptr)
    dense = lifted(arg1)
    if dense.ndim != 2:
        raise refused(this_recorder(), f"{kind_of(format_, is_array).__name__} of an array of {dense.ndim} dimensions",
                      "pass (data, (rows, columns))")
    rows, columns = (i.reshape(-1) for i in np.indices(dense.shape))
    return made_of(format_, is_array, Places(dense.shape, rows, columns), dense.reshape(-1))


def _from_dia(is_array: bool, data: Any, offsets: Any, shape: tuple[int, int]) -> TracedSparse:
    """Of the format of diagonals, in which column j of the data belongs to column j of the matrix."""
    data = np.atleast_2d(lifted(data))
    parts, rows, columns = [], [], []
    for line, k in enumerate(np.atleast_1d(numbers(offsets)).tolist()):
        j = np.arange(max(k, 0), min(shape[0] + k, shape[1], data.shape[1]))
        parts.append(data[line, j[0]:j[-1] + 1] if len(j) else data[line, :0])
        rows.append(j - k)
        columns.append(j)
    return made_of("dia", is_array, Places(shape, np.concatenate(rows), np.concatenate(columns)), stacked(parts))


for _format in ("csr", "csc", "coo", "dia"):
    for _is_array in (True, False):
        CLASSES[f"{MODULE}.{_format}_{'array' if _is_array else 'matrix'}"] = ClassRule(
            _constructor(_format, _is_array), stood, (), whole=True)


# --- diagonals -----------------------------------------------------------------------------------------

def _diagonals(is_array: bool, diagonals: Any, offsets: Any, shape: Any, format_: Any, dtype: Any) -> TracedSparse:
    offsets = numbers(offsets)
    if not offsets.ndim:
        several = isinstance(diagonals, (list, tuple)) and len(diagonals) and any(np.ndim(_elements(d)) and (
            isinstance(d, (list, tuple)) or getattr(d, "ndim", 0)) for d in diagonals)
        if several and len(diagonals) != 1:
            raise ValueError("Different number of diagonals and offsets.")
        lines = [_elements(diagonals[0] if several else diagonals)]
        lines = [lines[0].reshape(-1)] if lines[0].ndim > 1 and lines[0].shape[0] == 1 else lines
    else:
        lines = [_elements(d) for d in diagonals]
    offsets = np.atleast_1d(offsets).tolist()
    if len(lines) != len(offsets):
        raise ValueError("Different number of diagonals and offsets.")
    if shape is None:
        n = lines[0].shape[0] + abs(offsets[0])
        shape = (n, n)
    m, n = (int(k) for k in numbers(shape))
    parts, rows = [], []
    for place, (line, k) in enumerate(zip(lines, offsets, strict=True)):
        count = min(m + k, n - k, m, n)
        if count < 0:
            raise ValueError(f"Offset {k} (index {place}) out of bounds")
        if line.shape[0] not in (1, count) and line.shape[0] < count:
            raise ValueError(f"Diagonal length (index {place}: {line.shape[0]} at offset {k}) does not agree with "
                             f"array size ({m}, {n}).")
        parts.append(np.broadcast_to(line, (count,)) if line.shape[0] == 1 else line[:count])
        rows.append(np.arange(count) + max(0, -k))
    columns = np.concatenate([r + k for r, k in zip(rows, offsets, strict=True)])
    found = made_of(format_ or "dia", is_array, Places((m, n), np.concatenate(rows), columns), stacked(parts))
    return found if dtype is None else found.astype(dtype)


@maker("diags")
def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> Any:
    return _diagonals(False, diagonals, offsets, shape, format, dtype)


@maker("diags_array")
def diags_array(diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: Any = None,
                dtype: Any = None) -> Any:
    return _diagonals(True, diagonals, offsets, shape, format, dtype)


@maker("spdiags")
def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    shape = m if n is None and m is not None else (len(data[0]),) * 2 if m is None else (m, n)
    rows, columns = (int(k) for k in shape)
    return _from_dia(False, data, diags, (rows, columns)).asformat(format)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise refused(this_recorder(), f"{MODULE}.{name} with a traced argument", "pass plain numbers")
    return refuse


for _name in ("eye", "eye_array", "identity"):
    maker(_name)(_refusing(_name))


# --- of other matrices ------------------------------------------------------------------------------------

def _operand(value: Any) -> TracedSparse:
    return as_sparse(value) if type(value) is TracedSparse or is_sparse(value) else _made("coo", False, value, None)


def _arrays(values: Sequence[Any]) -> bool:
    """Whether the result is an array: where one of the operands is."""
    return any((type(v) is TracedSparse and v.is_array) or type(v).__name__.endswith("_array") for v in values)


@maker("kron")
def kron(A: Any, B: Any, format: Any = None) -> Any:
    a, b = _operand(A), _operand(B)
    (m, n), p, q = b.shape, a.places, b.places
    rows = np.add.outer(p.rows.astype(np.int64) * m, q.rows).reshape(-1)
    columns = np.add.outer(p.columns.astype(np.int64) * n, q.columns).reshape(-1)
    data = (a.elements[:, None] * b.elements[None, :]).reshape(-1)
    return made_of(format or "coo", _arrays((A, B)), Places((a.shape[0] * m, a.shape[1] * n), rows, columns), data)


@maker("kronsum")
def kronsum(A: Any, B: Any, format: Any = None) -> Any:
    a, b = _operand(A), _operand(B)
    if a.shape[0] != a.shape[1] or b.shape[0] != b.shape[1]:
        raise ValueError("A is not square" if a.shape[0] != a.shape[1] else "B is not square")
    left, right = (as_sparse(_unit(k.shape[0], _arrays((A, B)))) for k in (b, a))
    return (kron(left, a, "csr") + kron(b, right, "csr")).asformat(format or "csr")


def _unit(n: int, is_array: bool) -> Any:
    return kind_of("coo", is_array)((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, n))


def _blocks(blocks: Sequence[Sequence[Any]], format_: Any, dtype: Any) -> TracedSparse:
    rows = [[None if b is None else _operand(b) for b in line] for line in blocks]
    if len({len(line) for line in rows}) != 1:
        raise ValueError("blocks must be 2-D")
    heights = [_size([b.shape[0] for b in line if b is not None]) for line in rows]
    widths = [_size([line[k].shape[1] for line in rows if line[k] is not None])            # type: ignore[union-attr]
              for k in range(len(rows[0]))]
    parts, where = [], []
    for line, top in zip(rows, np.cumsum(heights) - heights, strict=True):
        for block, left in zip(line, np.cumsum(widths) - widths, strict=True):
            if block is not None:
                places = block.places
                parts.append(block.elements)
                where.append((places.rows + top, places.columns + left))
    shape = int(sum(heights)), int(sum(widths))
    is_array = _arrays([b for line in blocks for b in line])
    whole = Places(shape, np.concatenate([r for r, _ in where]), np.concatenate([c for _, c in where]))
    found = made_of(format_ or "coo", is_array, whole, stacked(parts))
    return found if dtype is None else found.astype(dtype)


def _size(sizes: list[int]) -> int:
    if not sizes:
        raise ValueError("blocks must not be None in a whole row or column")
    if len(set(sizes)) > 1:
        raise ValueError("blocks of one row or column have incompatible dimensions")
    return sizes[0]


@maker("block_array")
def block_array(blocks: Any, *, format: Any = None, dtype: Any = None) -> Any:
    found = _blocks(blocks, format, dtype)
    return TracedSparse(kind_of(found.format, True), found.shape, *found.jitad_holds)


@maker("bmat")
def bmat(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    return _blocks(blocks, format, dtype)


@maker("hstack")
def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    return _blocks([list(blocks)], format, dtype)


@maker("vstack")
def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
    return _blocks([[b] for b in blocks], format, dtype)


@maker("block_diag")
def block_diag(mats: Any, format: Any = None, dtype: Any = None) -> Any:
    mats = list(mats)
    return _blocks([[b if i == j else None for j in range(len(mats))] for i, b in enumerate(mats)], format, dtype)


def _triangle(name: str, lower: bool) -> None:
    @maker(name)
    def triangle(A: Any, k: int = 0, format: Any = None) -> Any:
        a = _operand(A).asformat("coo")
        places = a.places
        keep = np.flatnonzero(places.columns - places.rows <= k if lower else places.columns - places.rows >= k)
        return made_of(format or "coo", _arrays((A,)), Places(a.shape, places.rows[keep], places.columns[keep]),
                       a.elements[keep])


_triangle("tril", True)
_triangle("triu", False)
