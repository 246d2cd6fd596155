"""What filters of signals and of images share: extensions at the ends, and weighted sums of neighbours."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.reduce import contract
from jitad.primitives.view import view
from jitad.trace.dispatch import as_value, builder_in

__all__ = ["along", "beyond", "extended", "normalized_axis", "windows_dot"]


def normalized_axis(axis: Any, ndim: int) -> int:
    return int(np.lib.array_utils.normalize_axis_index(int(axis), ndim))


def extended(x: Any, n: int, kind: Any) -> Any:
    """`x` with `n` more rows at both ends: mirrored about the end rows ('even'), turned about them ('odd'), their
    repetitions ('constant'), or zeros."""
    if n < 1 or kind is None:
        return x
    if kind in ("odd", "even") and n > x.shape[0] - 1:
        raise ValueError(f"The extension length n ({n}) is too big. It must not exceed x.shape[axis]-1, which is "
                         f"{x.shape[0] - 1}.")
    first, last = x[:1], x[-1:]
    if kind in ("zeros", "constant"):
        rows = (n, *x.shape[1:])
        left, right = (np.zeros(rows, x.dtype),) * 2 if kind == "zeros" else (
            np.broadcast_to(first, rows), np.broadcast_to(last, rows))
        return np.concatenate([left, x, right])
    left, right = x[n:0:-1], x[-2:-(n + 2):-1]
    if kind == "odd":
        left, right = 2 * first - left, 2 * last - right
    return np.concatenate([left, x, right])


def windows_dot(x: Any, weights: Any, axis: int = 0, step: int = 1) -> Any:
    """``y[i] = sum_j weights[j] x[step i + j]`` along an axis, where there are all of them."""
    builder = builder_in(x, weights)
    x, weights = as_value(builder, x), as_value(builder, weights)
    dtype = np.result_type(x.dtype, weights.dtype)
    x, weights = cast(x, dtype), cast(weights, dtype)
    count = (x.shape[axis] - weights.shape[0]) // step + 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1:], weights.shape[0])
    windows = view(x, shape, tuple((0, ((d, step), (x.ndim, 1)) if d == axis else ((d, 1),)) for d in range(x.ndim)))
    letters = "".join(chr(ord("a") + d) for d in range(x.ndim))
    return contract(windows, weights, f"{letters}z,z->{letters}")


def along(x: Any, b: Any) -> Any:
    """The full convolution of each line of `x` along the first axis with `b`."""
    m = b.shape[0]
    zeros = np.zeros((m - 1, *x.shape[1:]), x.dtype)
    return windows_dot(np.concatenate([zeros, x, zeros]) if m > 1 else x, b[::-1])


def beyond(x: Any, axis: int, before: int, after: int, mode: str, value: Any = 0.0) -> Any:
    """`x` with more elements at both ends of an axis, in one of NumPy's modes of padding."""
    n, lead = x.shape[axis], (slice(None),) * axis
    off = 1 if mode == "reflect" else 0
    if not before and not after:
        return x
    if mode not in ("symmetric", "reflect", "wrap") or max(before, after) > n - off:
        ends = [(0, 0)] * x.ndim
        ends[axis] = (before, after)
        return np.pad(x, ends, mode, **({"constant_values": value} if mode == "constant" else {}))   # type: ignore[call-overload]
    if mode == "wrap":
        first, last = slice(n - before, n), slice(0, after)
    else:                                                # slices, which cost less than positions
        first = slice(before - 1 + off, off - 1 if off else None, -1)
        last = slice(n - 1 - off, n - 1 - off - after if n - 1 - off - after >= 0 else None, -1)
    parts = [x[(*lead, first)] if before else None, x, x[(*lead, last)] if after else None]
    return np.concatenate([p for p in parts if p is not None], axis)
