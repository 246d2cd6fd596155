"""Windows: which elements of a storage an array shows, by NumPy's own rules.

A storage is a contiguous array; a window is what NumPy calls offset, shape and strides, counted in elements. NumPy
itself makes windows out of windows: its view functions and basic indices are applied to a dummy array whose memory
is never read.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitad.errors import TapeError
from jitad.primitives.core import full
from jitad.primitives.index import reshape
from jitad.primitives.view import Map, view
from jitad.tape.builder import Value

_BYTE = np.zeros(1, np.int8)
_NO_COPY = {"copy": False} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}


class Window(NamedTuple):
    """Element (i, j, ...) is number ``offset + i * strides[0] + j * strides[1] + ...`` of the storage."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def essence(self) -> tuple[tuple[int, int], ...]:
        """(length, stride) of the dimensions that are longer than one."""
        return tuple(pair for pair in zip(self.shape, self.strides, strict=True) if pair[0] != 1)

    @property
    def contiguous(self) -> bool:
        return self.lies_in("C")

    def lies_in(self, order: str) -> bool:
        """Whether the elements follow one another in C or in F order."""
        expected, pairs = 1, self.essence
        for n, stride in pairs if order == "F" else reversed(pairs):
            if stride != expected:
                return self.size == 0
            expected *= n
        return True


def weights(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array in C order, in elements."""
    result, stride = [], 1
    for n in reversed(shape):
        result.append(stride)
        stride *= n
    return tuple(reversed(result))


@lru_cache(maxsize=1024)
def whole(shape: tuple[int, ...]) -> Window:
    return Window(0, shape, weights(shape))


def dummy(window: Window) -> np.ndarray:
    """An array of the window's shape and strides, a byte for each element, whose memory must not be read."""
    return as_strided(_BYTE, window.shape, window.strides, writeable=False)


def owner(array: Any) -> Any:
    """Whose memory an array shows: that of which it is a view, of a view, ..."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def check_shares(result: Any, array: np.ndarray) -> None:
    """Raise `TapeError` unless `result` shows memory of `array`: places in a copy say nothing of it."""
    if owner(result) is not owner(array):
        raise TapeError(f"NumPy gave a copy ({type(result).__name__}) where it should give a view")


def window_of(array: np.ndarray, start: int, itemsize: int, offset: int = 0) -> Window:
    """The window that an array shows of a storage, whose element number `offset` lies at the address `start`."""
    where = array.__array_interface__["data"][0] - start
    return Window(offset + where // itemsize, array.shape,
                  tuple(s // itemsize if n > 1 else 0 for n, s in zip(array.shape, array.strides, strict=True)))


def narrowed(window: Window, function: Callable[[np.ndarray], np.ndarray]) -> Window:
    """The window that `function`, which takes and gives views, makes of a window."""
    array = dummy(window)
    result = function(array)
    check_shares(result, array)
    return window_of(result, array.__array_interface__["data"][0], 1, window.offset)


def reshaped(window: Window, shape: tuple[int, ...], order: str) -> Window | None:
    """The window in another shape, if NumPy gives a view and not a copy."""
    array = dummy(window)
    start = array.__array_interface__["data"][0]
    try:
        if _NO_COPY:
            array = array.reshape(shape, order=order, **_NO_COPY)  # type: ignore[call-overload]
        elif order == "F":
            array = array.T
            array.shape = shape[::-1]
            array = array.T
        else:
            array.shape = shape
    except (ValueError, AttributeError):
        return None
    return window_of(array, start, 1, window.offset)


def through_map(window: Window, shape: tuple[int, ...], index: Map) -> Window:
    """The window of `shape` that an index map shows of a window."""
    offset, strides = window.offset, [0] * len(shape)
    for (start, terms), stride in zip(index, window.strides, strict=True):
        offset += start * stride
        for d, step in terms:
            strides[d] += step * stride
    return Window(offset, shape, tuple(strides))


def positions(window: Window) -> np.ndarray:
    """The element numbers that the window shows."""
    result: Any = np.full(window.shape, window.offset, np.int64)
    for d, (n, stride) in enumerate(zip(window.shape, window.strides, strict=True)):
        result += (np.arange(n) * stride).reshape((n,) + (1,) * (len(window.shape) - 1 - d))
    return result


def look(array: np.ndarray, window: Window) -> np.ndarray:
    """The window on an array of one dimension that holds a number for each element of the storage."""
    step = array.itemsize
    return np.ndarray(window.shape, array.dtype, array, window.offset * step, [s * step for s in window.strides])


def affine(numbers: np.ndarray) -> Window | None:
    """The window that shows these element numbers, if there is one."""
    first = int(numbers.flat[0])
    origin = (0,) * numbers.ndim
    strides = tuple(int(numbers[(*origin[:d], 1, *origin[d + 1:])]) - first if n > 1 else 0
                    for d, n in enumerate(numbers.shape))
    window = Window(first, numbers.shape, strides)
    return window if np.array_equal(positions(window), numbers) else None


def map_of(window: Window, shape: tuple[int, ...]) -> Map | None:
    """The index map of the window on an array of `shape`, if each of its dimensions can be told apart."""
    steps = weights(shape)
    for share in (_truncated, _nearest):
        digits = [share(stride, steps) if n > 1 else [0] * len(shape)
                  for n, stride in zip(window.shape, window.strides, strict=True)]
        result, rest = [], window.offset
        for k, n in enumerate(shape):
            start, rest = divmod(rest, steps[k]) if steps[k] else (0, rest)
            ends = [d[k] * (length - 1) for d, length in zip(digits, window.shape, strict=True)]
            if start + sum(e for e in ends if e < 0) < 0 or start + sum(e for e in ends if e > 0) >= n:
                break
            result.append((start, tuple((d, c[k]) for d, c in enumerate(digits) if c[k])))
        else:
            return tuple(result)
    return None


def _truncated(stride: int, steps: tuple[int, ...]) -> list[int]:
    digits = []
    for step in steps:
        digits.append(int(math.copysign(abs(stride) // step, stride)))
        stride -= digits[-1] * step
    return digits


def _nearest(stride: int, steps: tuple[int, ...]) -> list[int]:
    digits = []
    for step in steps:
        digits.append((2 * stride + step) // (2 * step))
        stride -= digits[-1] * step
    return digits


def show(value: Value, window: Window) -> Value:
    """What the window shows of an array on the tape."""
    shape = value.shape
    if window.size == 0:
        return full(value, 0, window.shape, value.dtype)
    node = value.node
    if shape and window.size == 1 and node.constant is not None:
        number = node.constant.ravel()[window.offset]
        return value.builder.const(np.full(window.shape, number, value.dtype))
    index = map_of(window, shape)
    if index is None:
        value = reshape(value, (value.aval.size,))
        index = ((window.offset, tuple((d, s) for d, s in enumerate(window.strides) if s)),)
    return view(value, window.shape, index)
