"""Sparse arrays and matrices of SciPy in recorded code.

Recorded code gets a `TracedSparse` in the place of one that it captures, that is a leaf of its arguments, or that it
makes. The entries and positions of the first two are inputs of the tape, so that what is written into them later is
seen; the shape and the class are guarded. Products with vectors and matrices are row loops. Sums and products of sparse
matrices are made of their places, which are plain numbers: of captured ones they are guarded. One that is made of
plain numbers does all that SciPy's does.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import gather, scatter
from jitad.primitives.sparse import sparse_columns, sparse_rows
from jitad.trace.arrays.indexing import boxed
from jitad.trace.dispatch import as_value, builder_in, detached, noted_line, plain, refused
from jitad.trace.scipy_rules.classes import lifted, this_recorder
from jitad.trace.scipy_rules.sparse.patterns import Places, compressed, expanded, joined, pairs, picked, stacked, taken

__all__ = ["PARTS", "TracedSparse", "as_sparse", "is_sparse", "kind_of", "made_of", "real_of"]

PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}


def is_sparse(value: Any) -> bool:
    """Whether `value` is one of SciPy's sparse arrays or matrices."""
    kind = type(value)
    if not any(c.__module__.startswith("scipy.sparse.") for c in kind.__mro__):
        return False
    return sys.modules["scipy.sparse"].issparse(value)               # type: ignore[no-any-return]


def kind_of(format_: str, is_array: bool) -> type:
    """``csr_array``."""
    return getattr(sys.modules["scipy.sparse"], f"{format_}_{'array' if is_array else 'matrix'}")  # type: ignore[no-any-return]


def made_of(format_: str, is_array: bool, places: Places, data: Any) -> TracedSparse:
    """The matrix in a format, each place once."""
    ordered, inverse = places.ordered(by_columns=format_ == "csc")
    data, kind = joined(data, inverse, len(ordered.rows)), kind_of(format_, is_array)
    if format_ not in ("csr", "csc"):
        return TracedSparse(kind, places.shape, data, ordered.rows, ordered.columns)
    major, minor = (ordered.columns, ordered.rows) if format_ == "csc" else (ordered.rows, ordered.columns)
    return TracedSparse(kind, places.shape, data, minor.astype(np.int32),
                        compressed(major, places.shape[format_ == "csc"]))


def as_sparse(value: Any) -> TracedSparse:
    """A sparse matrix, of SciPy's or a stand-in, as a stand-in."""
    if type(value) is TracedSparse:
        return value
    kept = value if value.format in PARTS else value.tocoo()
    kind = type(value) if value.format in (*PARTS, "dia") else type(kept)
    return TracedSparse(kind, value.shape, *(getattr(kept, name) for name in PARTS[kept.format]))


def real_of(value: Any) -> Any:
    """What SciPy's own functions get: a stand-in of plain numbers as the matrix that it stands for."""
    return value.real if type(value) is TracedSparse and not value.traced else value


class TracedSparse:
    """A sparse array or matrix of the class `kind`, whose entries are traced, or plain with their positions."""

    __array_ufunc__ = None                       # an array on the left leaves operators to this
    __slots__ = ("_kind", "_parts", "shape")
    __hash__ = None                              # type: ignore[assignment]

    def __init__(self, kind: type, shape: tuple[int, int], data: Any, *indices: Any):
        self._kind, self.shape, self._parts = kind, shape, (data, *indices)

    @property                                                       # type: ignore[misc]
    def __class__(self) -> type:                                    # type: ignore[override]
        return self._kind

    @property
    def format(self) -> str:
        return self._kind.__name__[:3]

    @property
    def data(self) -> Any:
        if self.format == "dia":
            return self._other("data")
        return self._parts[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._parts[0].dtype)

    @property
    def traced(self) -> bool:
        """Whether it is made of anything traced."""
        return builder_in(self._parts) is not None

    @property
    def real(self) -> Any:
        """SciPy's own, of plain numbers."""
        data, first, second = self._parts
        if self.format in ("csr", "csc"):
            return self._kind((data, first, second), shape=self.shape)
        return kind_of("coo", self.is_array)((data, (first, second)), shape=self.shape).asformat(self.format)

    @property
    def places(self) -> Places:
        """Where its elements are, in the order of its parts; of traced positions, by a guard."""
        first, second = (p if isinstance(p, np.ndarray) else this_recorder().decide_all(p) for p in self._parts[1:])
        if self.format in ("csr", "csc"):
            lines, first = expanded(second), first[:second[-1]]
            return Places(self.shape, *((first, lines) if self.format == "csc" else (lines, first)))
        return Places(self.shape, first, second)

    @property
    def elements(self) -> Any:
        """Their values."""
        return self._parts[0]

    @property
    def ndim(self) -> int:
        return 2

    @property
    def nnz(self) -> int:
        return int(self._parts[0].shape[0])

    size = nnz

    @property
    def T(self) -> TracedSparse:
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> TracedSparse:
        """The same entries as the rows of the other format."""
        data, *indices = self._parts
        turned = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        indices = indices if turned in ("csr", "csc") else indices[::-1]
        return TracedSparse(kind_of(turned, self.is_array), self.shape[::-1], data, *indices)

    @property
    def is_array(self) -> bool:
        """Whether it is an array of SciPy's, not a matrix."""
        return issubclass(self._kind, sys.modules["scipy.sparse"].sparray)

    # --- products ----------------------------------------------------------------------------
    def __matmul__(self, other: Any) -> Any:
        return self._product(other)

    def __rmatmul__(self, other: Any) -> Any:
        other = plain(other)
        if np.ndim(other) > 1:
            other = other.T
        result = self.T._product(other)
        return result.T if np.ndim(result) > 1 else result

    def dot(self, other: Any) -> Any:
        return self._scaled(other) if np.ndim(plain(other)) == 0 else self._product(other)

    def _product(self, other: Any) -> Any:
        """``A @ other`` for a vector or a matrix."""
        if isinstance(other, TracedSparse) or is_sparse(other):
            return self._sparse_product(as_sparse(other))
        x = as_value(self._builder, other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            if not x.ndim:
                raise ValueError("Scalar operands are not allowed, use '*' instead")
            raise ValueError(f"matmul: dimension mismatch of {self.shape} and {x.shape}")
        with noted_line(self._builder):
            data, *indices = map(lifted, self._parts)
            dtype = np.result_type(data.dtype, x.dtype)
            if dtype.kind == "b":
                raise refused(self._builder, "a product of Boolean sparse matrices", "use .astype(float)")
            data, x = cast(data, dtype), cast(x, dtype)
            return detached(boxed(self._multiply(data, indices, x)), ())

    def _multiply(self, data: Any, indices: list[Any], x: Any) -> Any:
        if self.format == "csr":
            return sparse_rows(data, *indices, x)
        if self.format == "csc":
            return sparse_columns(data, *indices, x, columns=self.shape[0])
        row, column = indices
        terms = gather(x, column, axes=(0,))
        terms = data.reshape((-1,) + (1,) * (x.ndim - 1)) * terms
        return scatter(terms, row, axes=(0,), shape=(self.shape[0], *x.shape[1:]))

    @property
    def jitad_holds(self) -> tuple[Any, ...]:
        """What may be traced of it."""
        return self._parts

    @property
    def _builder(self) -> Any:
        return builder_in(self._parts) or this_recorder()

    # --- with other sparse matrices ------------------------------------------------------------
    def _sparse_product(self, other: TracedSparse) -> TracedSparse:
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"matmul: dimension mismatch of {self.shape} and {other.shape}")
        right, mine = other.tocsr(), self.places
        left, second = pairs(mine.columns, compressed(right.places.rows, right.shape[0]))
        places = Places((self.shape[0], other.shape[1]), mine.rows[left], right.places.columns[second])
        return made_of(self._result_format, self.is_array, places,
                       taken(self._parts[0], left) * taken(right.elements, second))

    @property
    def _result_format(self) -> str:
        return self.format if self.format in ("csr", "csc") else "csr"

    def _sum(self, other: Any, sign: int) -> Any:
        """``self + sign * other``."""
        other = plain(other)
        if not (type(other) is TracedSparse or is_sparse(other)):
            if np.ndim(other) == 0 and builder_in(other) is None and other == 0:
                return self.copy()
            if np.ndim(other) == 0:
                raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
            return self.toarray() + sign * as_value(self._builder, other)
        other = as_sparse(other)
        if self.shape != other.shape:
            raise ValueError(f"inconsistent shapes, {self.shape} and {other.shape}")
        both = self.places.and_then(other.places)
        its_data = other.elements if sign == 1 else -other.elements
        return made_of(self._result_format, self.is_array, both, stacked([self._parts[0], its_data]))

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._sum(other, 1)

    def multiply(self, other: Any) -> Any:
        """Element by element: with a number, an array that broadcasts, or a sparse matrix of this shape."""
        other = plain(other)
        if np.ndim(other) == 0 and not (type(other) is TracedSparse or is_sparse(other)):
            return self._scaled(other)
        places = self.places
        if type(other) is TracedSparse or is_sparse(other):
            other = as_sparse(other).tocsr()
            if other.shape != self.shape:
                raise ValueError("inconsistent shapes")
            mine = self.tocsr()
            keys = [m.places.rows * self.shape[1] + m.places.columns for m in (mine, other)]
            _, first, second = np.intersect1d(*keys, return_indices=True)
            places = Places(self.shape, mine.places.rows[first], mine.places.columns[first])
            return made_of("csr", self.is_array, places, taken(mine.elements, first) * taken(other.elements, second))
        dense = np.broadcast_to(as_value(self._builder, other), self.shape)
        return made_of(self._result_format, self.is_array, places, self._parts[0] * dense[places.rows, places.columns])

    def power(self, n: Any, dtype: Any = None) -> TracedSparse:
        return self._with(self._parts[0] ** n)

    def diagonal(self, k: int = 0) -> Any:
        """The elements on a diagonal, zeros where there are none."""
        count = max(0, min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0)))
        places = self.places
        on = np.flatnonzero(places.columns - places.rows == k)
        found = np.zeros(count, self.dtype)
        if not count:
            return found
        numbers = np.concatenate([places.rows[on] + min(k, 0), np.arange(count)])
        return joined(stacked([taken(self._parts[0], on), found]), numbers, count)

    def trace(self, offset: int = 0) -> Any:
        return np.sum(self.diagonal(offset))

    # --- all entries -------------------------------------------------------------------------
    def _with(self, data: Any) -> TracedSparse:
        return TracedSparse(self._kind, self.shape, data, *self._parts[1:])

    def _scaled(self, other: Any) -> Any:
        other = plain(other)
        return self._with(self._parts[0] * other) if np.ndim(other) == 0 else NotImplemented

    def __mul__(self, other: Any) -> Any:
        sparse = type(other) is TracedSparse or is_sparse(other)
        if (sparse or np.ndim(plain(other))) and not self.is_array:
            return self._product(other)
        if sparse or np.ndim(plain(other)):
            return self.multiply(other)
        return self._whole(self._scaled(other), "*")

    def __rmul__(self, other: Any) -> Any:
        if np.ndim(plain(other)):
            return self.multiply(other) if self.is_array else self.__rmatmul__(other)
        return self._whole(self._scaled(other), "*")

    def __truediv__(self, other: Any) -> Any:
        other = plain(other)
        return self._whole(self._with(self._parts[0] / other) if np.ndim(other) == 0 else NotImplemented, "/")

    def _whole(self, result: Any, operator: str) -> Any:
        if result is NotImplemented:
            raise refused(self._builder, f"`{operator}` of a {self._kind.__name__} and an array",
                          "use products (@) with vectors and matrices, or .toarray()")
        return result

    def __neg__(self) -> TracedSparse:
        return self._with(-self._parts[0])

    def __abs__(self) -> TracedSparse:
        return self._with(abs(self._parts[0]))

    def copy(self) -> TracedSparse:
        return self._with(self._parts[0].copy())

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> TracedSparse:
        return self._with(self._parts[0].astype(dtype))

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The dense array, as a product with the unit matrix."""
        if out is not None:
            raise refused(self._builder, f"{self._kind.__name__}.toarray with out=", "use the returned array instead")
        if not self.traced:
            return self.real.toarray()
        return self._product(np.eye(self.shape[1], dtype=self.dtype))

    def todense(self, order: Any = None, out: Any = None) -> Any:
        if not self.is_array:
            return self._other("todense")
        return self.toarray(order, out)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all entries, or the vector of the sums along an axis."""
        if dtype is not None or out is not None or (axis is not None and not self.is_array):
            raise refused(self._builder, f"{self._kind.__name__}.sum called this way", "use products with ones")
        if axis is None:
            return self._product(np.ones(self.shape[1], self.dtype)).sum()
        side = self if axis in (1, -1) else self.T
        return side._product(np.ones(side.shape[1], self.dtype))

    def __getattr__(self, name: str) -> Any:
        names = PARTS.get(self.format, ())
        if name in names:
            return self._parts[names.index(name)]
        if name in ("tocsr", "tocsc", "tocoo", "todia"):
            return lambda copy=False: self.asformat(name[2:])
        if not hasattr(self._kind, name) and not (name == "offsets" and self.format == "dia"):
            raise AttributeError(f"{self._kind.__name__!r} object has no attribute {name!r}")
        return self._other(name)

    def _other(self, name: str) -> Any:
        """An attribute that only a matrix of plain numbers has."""
        if self.traced:
            raise refused(self._builder, f"the attribute .{name} of a {self._kind.__name__}",
                          "compute it outside of the function, or use .toarray()")
        return getattr(self.real, name)

    def asformat(self, format: Any, copy: bool = False) -> Any:
        """The same elements in another format."""
        if format is None or format == self.format:
            return self
        if format not in (*PARTS, "dia"):
            return self._other("asformat")(format)
        if format == "coo":
            places = self.places
            return TracedSparse(kind_of("coo", self.is_array), self.shape, taken(self._parts[0], np.arange(
                len(places.rows))), places.rows, places.columns)
        return made_of(format, self.is_array, self.places, taken(self._parts[0], np.arange(len(self.places.rows))))

    def __getitem__(self, key: Any) -> Any:
        """The rows and columns of a plain key, as SciPy picks them."""
        able = self.traced and self.format in ("csr", "csc") and builder_in(plain(key)) is None
        found = picked(self.places, self._kind, plain(key)) if able else None
        if found is None:
            return _refusing("__getitem__")(self, key)
        positions, places = found
        data = taken(self._parts[0], positions)
        return made_of(self.format, self.is_array, places, data) if places is not None else lifted(data.sum())

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __repr__(self) -> str:
        return f"<traced {self._kind.__name__} of shape {self.shape}>"


def _refusing(name: str) -> Callable[..., Any]:
    def operator(self: TracedSparse, *args: Any) -> Any:
        if not self.traced and all(builder_in(plain(a)) is None and real_of(a) is not self for a in args):
            found = getattr(self.real, name)(*map(real_of, args))
            return as_sparse(found) if is_sparse(found) and found.ndim == 2 else found
        raise refused(self._builder, f"`{name}` of a {self._kind.__name__}",
                      "use products (@) with vectors and matrices, or .toarray()")
    return operator


for _name in "pow rpow rtruediv setitem iter bool eq ne lt le gt ge imul iadd isub".split():
    setattr(TracedSparse, f"__{_name}__", _refusing(f"__{_name}__"))
