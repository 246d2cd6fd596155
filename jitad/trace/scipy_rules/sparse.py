"""Sparse arrays and matrices of SciPy in recorded code.

Recorded code gets a `TracedSparse` in the place of one that it captures, or that is a leaf of its arguments. Its
entries and their positions are inputs of the tape, so that what is written into them later is seen; the shape and the
class are guarded. Products with it are row loops; other operations than those on all entries are refused by name.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import gather, scatter
from jitad.primitives.sparse import sparse_columns, sparse_rows
from jitad.trace.arrays.indexing import boxed
from jitad.trace.dispatch import as_value, builder_in, detached, noted_line, plain, refused

__all__ = ["PARTS", "TracedSparse", "is_sparse"]

PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}


def is_sparse(value: Any) -> bool:
    """Whether `value` is one of SciPy's sparse arrays or matrices."""
    kind = type(value)
    if not any(c.__module__.startswith("scipy.sparse.") for c in kind.__mro__):
        return False
    return sys.modules["scipy.sparse"].issparse(value)               # type: ignore[no-any-return]


class TracedSparse:
    """A sparse array or matrix of the class `kind`, whose entries and their positions are traced."""

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
        return self._parts[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.data.dtype)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def nnz(self) -> int:
        return int(self.data.shape[0])

    size = nnz

    @property
    def T(self) -> TracedSparse:
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> TracedSparse:
        """The same entries as the rows of the other format."""
        data, *indices = self._parts
        home = sys.modules["scipy.sparse"]
        turned = {"csr": "csc", "csc": "csr", "coo": "coo"}[self.format]
        kind = getattr(home, f"{turned}_{'array' if self._is_array else 'matrix'}")
        indices = indices if turned != "coo" else indices[::-1]
        return TracedSparse(kind, self.shape[::-1], data, *indices)

    @property
    def _is_array(self) -> bool:
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
            raise refused(self._builder, "the product of two sparse matrices", "multiply them outside of the function")
        x = as_value(self._builder, other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            if not x.ndim:
                raise ValueError("Scalar operands are not allowed, use '*' instead")
            raise ValueError(f"matmul: dimension mismatch of {self.shape} and {x.shape}")
        with noted_line(self._builder):
            data, *indices = self._parts
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
        return builder_in(self._parts)

    # --- all entries -------------------------------------------------------------------------
    def _with(self, data: Any) -> TracedSparse:
        return TracedSparse(self._kind, self.shape, data, *self._parts[1:])

    def _scaled(self, other: Any) -> Any:
        other = plain(other)
        return self._with(self.data * other) if np.ndim(other) == 0 else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if np.ndim(plain(other)) and not self._is_array:
            return self._product(other)
        return self._whole(self._scaled(other), "*")

    def __rmul__(self, other: Any) -> Any:
        if np.ndim(plain(other)) and not self._is_array:
            return self.__rmatmul__(other)
        return self._whole(self._scaled(other), "*")

    def __truediv__(self, other: Any) -> Any:
        other = plain(other)
        return self._whole(self._with(self.data / other) if np.ndim(other) == 0 else NotImplemented, "/")

    def _whole(self, result: Any, operator: str) -> Any:
        if result is NotImplemented:
            raise refused(self._builder, f"`{operator}` of a {self._kind.__name__} and an array",
                          "use products (@) with vectors and matrices, or .toarray()")
        return result

    def __neg__(self) -> TracedSparse:
        return self._with(-self.data)

    def __abs__(self) -> TracedSparse:
        return self._with(abs(self.data))

    def copy(self) -> TracedSparse:
        return self._with(self.data.copy())

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> TracedSparse:
        return self._with(self.data.astype(dtype))

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The dense array, as a product with the unit matrix."""
        if out is not None:
            raise refused(self._builder, f"{self._kind.__name__}.toarray with out=", "use the returned array instead")
        return self._product(np.eye(self.shape[1], dtype=self.dtype))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all entries, or the vector of the sums along an axis."""
        if dtype is not None or out is not None or (axis is not None and not self._is_array):
            raise refused(self._builder, f"{self._kind.__name__}.sum called this way", "use products with ones")
        if axis is None:
            return self._product(np.ones(self.shape[1], self.dtype)).sum()
        side = self if axis in (1, -1) else self.T
        return side._product(np.ones(side.shape[1], self.dtype))

    def __getattr__(self, name: str) -> Any:
        names = PARTS[self.format]
        if name in names:
            return self._parts[names.index(name)]
        if name in (f"to{self.format}", "asformat", "tocsr", "tocsc", "tocoo") and not name.startswith("__"):
            return self._converted(name)
        if not hasattr(self._kind, name):
            raise AttributeError(f"{self._kind.__name__!r} object has no attribute {name!r}")
        raise refused(self._builder, f"the attribute .{name} of a {self._kind.__name__}",
                      "compute it outside of the function, or use .toarray()")

    def _converted(self, name: str) -> Callable[..., Any]:
        def convert(*args: Any, **kwargs: Any) -> TracedSparse:
            if (args[0] if name == "asformat" and args else name[2:]) != self.format:
                raise refused(self._builder, f"{self._kind.__name__}.{name}", "convert it outside of the function")
            return self
        return convert

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __repr__(self) -> str:
        return f"<traced {self._kind.__name__} of shape {self.shape}>"


def _refusing(name: str) -> Callable[..., Any]:
    def operator(self: TracedSparse, *args: Any) -> NoReturn:
        raise refused(self._builder, f"`{name}` of a {self._kind.__name__}",
                      "use products (@) with vectors and matrices, or .toarray()")
    return operator


for _name in "add radd sub rsub pow rpow rtruediv getitem setitem iter bool eq ne lt le gt ge imul iadd isub".split():
    setattr(TracedSparse, f"__{_name}__", _refusing(f"__{_name}__"))
