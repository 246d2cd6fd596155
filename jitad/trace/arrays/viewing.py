"""NumPy's view functions on traced values, by NumPy itself.

`through_view(x, f)` applies `f` to an array of the shape of `x` whose memory is
never read and whose strides are the digits of a mixed radix system. The strides
and the offset of the result spell out which element of `x` each of its elements
is, and so the index map of a `view`. Shapes, axes and errors are NumPy's own.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitad.primitives.core import full
from jitad.primitives.view import Map, view
from jitad.tape.builder import Value
from jitad.trace.arrays.windows import check_shares

_BYTE = np.zeros(1, np.int8)


@lru_cache(maxsize=1024)
def _radix(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bases that hold the signed steps of each dimension, and the weight of each digit."""
    bases = tuple(2 * n + 3 for n in shape)
    return bases, tuple(math.prod(bases[d + 1:]) for d in range(len(shape)))


def _digits(number: int, bases: tuple[int, ...]) -> list[int]:
    digits = []
    for base in reversed(bases):
        digit = (number + base // 2) % base - base // 2
        digits.append(digit)
        number = (number - digit) // base
    return digits[::-1]


def through_view(x: Value, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function(x, *args, **kwargs)`` for a function that returns views (or a list of them) of its
    first argument, and never reads its elements."""
    def decode(result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return type(result)(map(decode, result))
        check_shares(result, dummy)
        return through_map_of(x, result.shape, _map_of(result, start, x.shape))

    dummy, start = _dummy(x.shape)
    return decode(function(dummy, *args, **kwargs))


def _dummy(shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """The array whose strides are the digits, and its address."""
    array = as_strided(_BYTE, shape, _radix(shape)[1], writeable=False)
    return array, array.__array_interface__["data"][0]


def _map_of(result: np.ndarray, start: int, shape: tuple[int, ...]) -> Map | None:
    """The index map of a view of the dummy of `shape`; None if it has no elements."""
    if result.size == 0:
        return None
    bases = _radix(shape)[0]
    offsets = _digits(result.__array_interface__["data"][0] - start, bases)
    steps = [_digits(s, bases) if n > 1 else None for n, s in zip(result.shape, result.strides, strict=True)]
    return tuple((offsets[k], tuple((d, step[k]) for d, step in enumerate(steps) if step and step[k]))
                 for k in range(len(shape)))


def through_map_of(x: Any, shape: tuple[int, ...], index: Map | None) -> Any:
    """The view of this map; a tracer's views share its storage."""
    if index is None:
        empty = full(x, 0, shape, x.dtype)
        if hasattr(empty, "home"):
            assert empty.home is not None                           # which makes it, for writes
        return empty
    derived = getattr(x, "derived", None)
    return view(x, shape, index) if derived is None else derived(shape, index)


@lru_cache(maxsize=4096)
def sliced(shape: tuple[int, ...], entries: tuple[Any, ...]) -> tuple[tuple[int, ...], Map | None]:
    """Shape and map of ``x[entries]`` for an `x` of that shape; slices are given as tuples of three."""
    dummy, start = _dummy(shape)
    result = dummy[tuple(slice(*e) if type(e) is tuple else e for e in entries)]
    check_shares(result, dummy)
    return result.shape, _map_of(result, start, shape)
