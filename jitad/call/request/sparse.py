"""Sparse matrices as results: a kernel gives the elements, and the rest is known since it was compiled."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jitad.cache.keys.fingerprint import register


@dataclass(frozen=True)
class Matrix:
    """A matrix in CSR without its elements: `shape`, and the bytes of `indices` and `indptr`, integers of `dtype`. The
    place in a frame that stands for one output."""

    shape: tuple[int, int]
    dtype: str
    indices: bytes
    indptr: bytes

    @classmethod
    def of(cls, pattern: Any) -> Matrix:
        """That of a pattern, a canonical CSR array."""
        rows, columns = pattern.shape
        dtype: np.dtype[Any] = np.dtype(np.int32 if max(rows, columns, pattern.nnz) < 1 << 31 else np.int64)
        return cls((int(rows), int(columns)), dtype.name, pattern.indices.astype(dtype).tobytes(),
                   pattern.indptr.astype(dtype).tobytes())

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        return np.frombuffer(self.indices, self.dtype), np.frombuffer(self.indptr, self.dtype)

    def build(self, parts: Sequence[Any]) -> Any:
        """The `scipy.sparse.csr_array` of these elements, with arrays of its own."""
        from scipy.sparse import csr_array

        indices, indptr = self._places
        found = csr_array((parts[0], indices.copy(), indptr.copy()), shape=self.shape)
        found.has_canonical_format = True
        return found

    def pattern(self) -> Any:
        return self.build([np.ones(len(self._places[0]), bool)])


def elements(result: Any) -> np.ndarray:
    """The numbers of a result; of a sparse matrix those that are stored."""
    return result.data if hasattr(result, "indptr") else np.asarray(result)


register(Matrix, "csr", lambda m: (m.shape, m.dtype, m.indices, m.indptr), Matrix)

__all__ = ["Matrix", "elements"]
