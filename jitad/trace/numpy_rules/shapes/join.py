"""NumPy functions that put arrays together."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.primitives import index
from jitad.primitives.core import cast
from jitad.primitives.view import expand_dims, transpose, view
from jitad.trace.dispatch import implements, lift_all, stand_in
from jitad.trace.numpy_rules.shapes.shape import at_least, atleast_3d, ravel


def _parts(arrays: Any) -> list[Any]:
    return lift_all(*arrays)


def _common_dtype(parts: Sequence[Any], dtype: Any, casting: Any) -> np.dtype[Any]:
    if dtype is None:
        return np.result_type(*(p.dtype for p in parts))
    for part in parts:
        if not np.can_cast(part.dtype, dtype, casting):
            raise TypeError(f"Cannot cast array data from {part.dtype!r} to {np.dtype(dtype)!r} according to the rule "
                            f"{casting!r}")
    return np.dtype(dtype)


@implements(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
                casting: Any = "same_kind") -> Any:
    parts = _parts(arrays)
    if axis is None:
        parts, axis = [ravel(p) for p in parts], 0
    np.concatenate([stand_in(p.shape) for p in parts], axis)        # NumPy's own errors
    axis = axis % parts[0].ndim
    common = _common_dtype(parts, dtype, casting)
    parts = [cast(p, common) for p in parts]
    return parts[0] if len(parts) == 1 else index.concatenate(*parts, axis=axis)


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = _parts(arrays)
    if len({p.shape for p in parts}) > 1:
        raise ValueError("all input arrays must have the same shape")
    if not parts[0].ndim and axis in (0, -1):                       # a list of numbers, the short way
        common = _common_dtype(parts, dtype, casting)
        parts = [view(cast(p, common), (1,), ()) for p in parts]
        return parts[0] if len(parts) == 1 else index.concatenate(*parts, axis=0)
    axis = np.lib.array_utils.normalize_axis_index(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(p, (axis,)) for p in parts], axis, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [at_least(p, 1) for p in _parts(tup)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    return concatenate([at_least(p, 2) for p in _parts(tup)], 0, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    return concatenate([atleast_3d(p) for p in _parts(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    return concatenate([p if p.ndim >= 2 else transpose(at_least(p, 2), (1, 0)) for p in _parts(tup)], 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    arr, values = lift_all(arr, values)
    if axis is None:
        arr, values, axis = ravel(arr), ravel(values), 0
    return concatenate([arr, values], axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    depth = _depth(arrays)
    leaves = lift_all(*_leaves(arrays))
    ndim = max(depth, *(a.ndim for a in leaves))
    remaining = iter([at_least(a, ndim) for a in leaves])

    def join(tree: Any, level: int) -> Any:
        if level == depth:
            return next(remaining)
        return concatenate([join(t, level + 1) for t in tree], ndim - depth + level)
    return join(arrays, 0)


def _depth(tree: Any) -> int:
    if not isinstance(tree, list):
        return 0
    depths = {_depth(t) for t in tree}
    if len(depths) != 1:
        raise ValueError("List depths are mismatched")
    return 1 + depths.pop()


def _leaves(tree: Any) -> list[Any]:
    return [leaf for t in tree for leaf in _leaves(t)] if isinstance(tree, list) else [tree]
