"""`ravel`: a tree of numbers as one vector, and back."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.pytree import leaves_of, unflatten

__all__ = ["ravel"]


def ravel(tree: Any) -> tuple[np.ndarray, Callable[[Any], Any]]:
    """A vector of all numbers of a tree, and the function that makes such a tree of a vector.

    Parameters
    ----------
    tree
        Dicts, tuples, lists, named tuples and dataclasses of arrays and numbers. Arrays are taken in C order.

    Returns
    -------
    vector
        float64, of shape ``(n,)``.
    unravel
        ``unravel(vector)`` has the structure of `tree`, of views of the vector and, for what has the shape (), numbers.
        It may be called in functions that are recorded; raises `ValueError` for a vector of another length.

    Raises `TypeError` or `ValueError` for what is not a tree of numbers.

    >>> import numpy as np, jitad
    >>> vector, unravel = jitad.ravel({"mu": 1.0, "eta": np.array([2.0, 3.0])})
    >>> vector
    array([1., 2., 3.])
    >>> unravel(vector * 2)
    {'mu': np.float64(2.0), 'eta': array([4., 6.])}
    """
    leaves, structure = leaves_of(tree)
    arrays = [np.asarray(leaf, dtype=np.float64) for leaf in leaves]
    shapes = [array.shape for array in arrays]
    vector = np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)
    size = vector.size

    def unravel(vector: Any) -> Any:
        if vector.shape != (size,):
            raise ValueError(f"a vector of shape ({size},) is needed, not {vector.shape}")
        found, begin = [], 0
        for shape in shapes:
            end = begin + math.prod(shape)
            found.append(vector[begin:end].reshape(shape) if shape else vector[begin])
            begin = end
        return unflatten(structure, found)
    return vector, unravel
