"""``a.flat``: the elements of an array in C order, to read and to write."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["FlatElements"]


class FlatElements:
    """What ``a.flat`` gives."""

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        return np.ravel(self.array)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        where = np.arange(self.array.size)[index]
        if np.size(where):
            np.put(self.array, where, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.ravel(self.array))

    def __len__(self) -> int:
        return int(self.array.size)

    def copy(self) -> Any:
        """The elements as a vector of their own."""
        return np.ravel(self.array).copy()
