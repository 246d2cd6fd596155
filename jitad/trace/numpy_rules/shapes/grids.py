"""Grids and ranges whose ends are traced, index objects (``np.r_``, ``np.mgrid``), and walks over elements."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import (
    SHARING,
    SOMETIMES,
    as_value,
    builder_in,
    detached,
    implements,
    lift_all,
    noted_line,
    plain,
    refused,
    stand_in,
)
from jitad.trace.numpy_rules.elements.elementwise import result_dtype_key
from jitad.trace.numpy_rules.shapes.shape import at_least, ravel
from jitad.trace.substitutes import SUBSTITUTES, substitute
from jitad.trace.ufuncs import as_float
from jitad.trace.values.local import local


def _count(num: Any) -> int:
    number = operator.index(num)
    if number < 0:
        raise ValueError(f"Number of samples, {number}, must be non-negative.")
    return number


def _ends(*ends: Any) -> list[Any]:
    """The ends as floating values; Python numbers stay weak, as in NumPy."""
    builder = builder_in(*ends)
    dtype = np.result_type(*(result_dtype_key(e) if isinstance(e, Value) else e for e in ends), 0.0)
    return [cast(as_value(builder, e), dtype) for e in ends]


@implements(np.linspace)
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0, *, device: Any = None) -> Any:
    num = _count(num)
    parts = (num - 1) if endpoint else num
    start, stop = _ends(start, stop)
    delta = stop - start
    steps = as_value(start.builder, np.arange(num, dtype=start.dtype).reshape((-1,) + (1,) * delta.ndim))
    if parts > 0:
        step = delta / parts
        y = choose(step == 0, steps / parts * delta, steps * step)       # a step too small for a floating number
    else:
        step = start * np.nan
        y = steps * delta
    y = y + start
    if endpoint and num > 1:
        y = np.concatenate([y[:-1], np.broadcast_to(stop, y.shape[1:])[None]], axis=0)
    y = np.moveaxis(y, 0, axis) if axis != 0 else y
    if dtype is not None and np.dtype(dtype).kind in "iu":
        y = np.floor(y)
    y = y if dtype is None else y.astype(dtype)
    return (y, step) if retstep else y


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
             axis: int = 0) -> Any:
    builder = builder_in(start, stop, base)
    if np.ndim(base) > 0:
        start, stop, base = np.broadcast_arrays(*(as_value(builder, v) for v in (start, stop, base)))
        base = np.expand_dims(base, axis)
    y = linspace(*(as_value(builder, v) for v in (start, stop)), num=num, endpoint=endpoint, axis=axis)
    y = np.power(base, y)
    return y if dtype is None else y.astype(dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    num = _count(num)
    start, stop = _ends(start, stop)
    if (start == 0).any() or (stop == 0).any():                     # recorded branches
        raise ValueError("Geometric sequence cannot include zero")
    start, stop = np.broadcast_arrays(start, stop)
    sign = np.sign(start)
    first, last = start / sign, stop / sign
    y = logspace(np.log10(first), np.log10(last), num, endpoint, 10.0)
    ends = [first[None]] if num else []
    if num > 1 and endpoint:
        y = np.concatenate([*ends, y[1:-1], last[None]], axis=0)
    elif num:
        y = np.concatenate([*ends, y[1:]], axis=0)
    y = y * sign
    y = np.moveaxis(y, 0, axis) if axis != 0 else y
    return y if dtype is None else y.astype(dtype)


@substitute(np.arange)
def arange(*args: Any, start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, device: Any = None,
           like: Any = None) -> Any:
    """The length is a recorded number; the elements move with the ends."""
    if args:
        given = dict(zip(("stop",) if len(args) == 1 else ("start", "stop", "step", "dtype"), args, strict=False))
        start, stop = given.get("start", start), given.get("stop", stop)
        step, dtype = given.get("step", step), given.get("dtype", dtype)
    start, step = 0 if start is None else start, 1 if step is None else step
    builder = builder_in(start, stop, step)
    ends = [as_value(builder, e) for e in (start, stop, step)]
    kind = np.result_type(*(np.dtype(e.dtype) for e in ends)) if dtype is None else np.dtype(dtype)
    if all(e.dtype.kind in "iub" for e in ends):
        return np.arange(*(int(e) for e in ends), dtype=kind)
    start, stop, step = (as_float(e) for e in ends)
    count = max(int(np.ceil((stop - start) / step)), 0)             # a recorded branch
    return cast(start + as_value(builder, np.arange(count, dtype=np.float64)) * step, kind)


def _whole(x: Any) -> Any:
    return operator.index(x) if isinstance(x, Value) and x.dtype.kind in "iu" else x  # type: ignore[arg-type]


def _of_sizes(function: Any) -> None:
    @substitute(function)
    def rule(*args: Any, **kwargs: Any) -> Any:
        """Traced whole numbers are recorded as they are; NumPy refuses others."""
        sizes = [_whole(a) for a in args]
        kwargs = {k: _whole(a) for k, a in kwargs.items()}
        if builder_in(sizes, kwargs) is not None:
            raise TypeError(f"{function.__name__} takes whole numbers, not traced floating ones")
        return function(*sizes, **kwargs)


for _function in (np.tri, np.tril_indices, np.triu_indices, np.diag_indices, np.bartlett, np.blackman, np.hamming,
                  np.hanning):
    _of_sizes(_function)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    builder, n = builder_in(xi), len(xi)
    dims = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    grids = [ravel(as_value(builder, x)).reshape((1,) * dims[i] + (-1,) + (1,) * (n - 1 - dims[i]))
             for i, x in enumerate(xi)]
    grids = grids if sparse else list(np.broadcast_arrays(*grids))
    return tuple(g.copy() for g in grids) if copy else tuple(grids)


SOMETIMES[np.meshgrid] = lambda *xi, copy=True, **options: not copy
SHARING.add(np.ix_)


@implements(np.ix_)
def ix_(*args: Any) -> Any:
    builder, n, found = builder_in(args), len(args), []
    for k, x in enumerate(args):
        x = as_value(builder, x)
        if x.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if x.dtype.kind == "b":
            x, = np.nonzero(x)
        found.append(x.reshape((1,) * k + (x.size,) + (1,) * (n - k - 1)))
    return tuple(found)


def _indices_from(function: Any, plain_function: Any) -> None:
    @implements(function)
    def rule(arr: Any, k: int = 0) -> Any:
        if arr.ndim != 2:
            raise ValueError("input array must be 2-d")
        return plain_function(arr.shape[-2], k=k, m=arr.shape[-1])


_indices_from(np.tril_indices_from, np.tril_indices)
_indices_from(np.triu_indices_from, np.triu_indices)


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    return np.diag_indices_from(stand_in(arr.shape))


def _watched(original: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `substitute`, for what keeps hold of an array: a local array is to know that."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original, updated=())
        def replacement(*args: Any, **kwargs: Any) -> Any:
            builder = builder_in(plain(args), plain(kwargs))
            if builder is None:
                return original(*args, **kwargs)
            with noted_line(builder):
                return impl(*plain(args), **plain(kwargs))
        SUBSTITUTES[original] = replacement
        return impl
    return enter


# --- walks over elements -----------------------------------------------------------------------------

@_watched(np.ndenumerate)
def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    arr, = lift_all(arr)
    return ((at, arr[at]) for at in np.ndindex(arr.shape))


@_watched(np.nditer)
def nditer(*args: Any, **kwargs: Any) -> Any:
    raise refused(builder_in(args, kwargs), "numpy.nditer", "loop over np.ndindex(x.shape) and index with it")


@_watched(np.broadcast)
def broadcast(*args: Any) -> np.broadcast:
    """Shapes alone: its iterator is not that of the values."""
    return np.broadcast(*(stand_in(np.shape(a)) for a in args))


# --- index objects -----------------------------------------------------------------------------------

class Joiner:
    """``np.r_`` and ``np.c_`` in recorded code."""

    def __init__(self, real: Any):
        self._jitad_real = real

    def __getitem__(self, key: Any) -> Any:
        key = plain(key)
        parts = key if isinstance(key, tuple) else (key,)
        builder = builder_in(*(_inside(p) for p in parts))
        if builder is None:
            return local(self._jitad_real[key])
        return local(detached(self._joined(builder, parts), parts))

    def _joined(self, builder: Any, parts: tuple[Any, ...]) -> Any:
        real = self._jitad_real
        axis, ndmin, first_dim = real.axis, real.ndmin, real.trans1d
        if parts and isinstance(parts[0], str):
            text, parts = parts[0], parts[1:]
            try:
                numbers = [int(n) for n in text.split(",")]
            except ValueError:
                raise refused(builder, f"numpy.r_[{text!r}, ...]", "use np.concatenate") from None
            numbers += [axis, ndmin, first_dim][len(numbers):]
            axis, ndmin, first_dim = numbers
        return np.concatenate([self._part(builder, p, ndmin, first_dim) for p in parts], axis)

    def _part(self, builder: Any, part: Any, ndmin: int, first_dim: int) -> Any:
        if isinstance(part, slice):
            part = self._range(builder, part)
        part = as_value(builder, part)
        ndim, part = part.ndim, at_least(part, ndmin)
        if first_dim != -1 or ndim >= ndmin:
            order = list(range(ndmin))
            first = first_dim if first_dim >= 0 else first_dim + ndmin - ndim + 1
            if ndim < ndmin:
                rest = order[:ndmin - ndim]
                part = part.transpose(rest[:first] + order[ndmin - ndim:] + rest[first:])
        return part

    @staticmethod
    def _range(builder: Any, part: slice) -> Any:
        start, stop, step = part.start or 0, part.stop, 1 if part.step is None else part.step
        if isinstance(step, complex):
            ends = (start, stop)
            make: Any = linspace if builder_in(ends) is not None else np.linspace
            return make(*ends, num=int(abs(step)))
        return arange(start, stop, step) if builder_in(start, stop, step) is not None else np.arange(start, stop, step)


class Grid:
    """``np.mgrid`` and ``np.ogrid`` in recorded code: of plain numbers."""

    def __init__(self, real: Any, name: str):
        self._jitad_real, self._name = real, name

    def __getitem__(self, key: Any) -> Any:
        builder = builder_in(*(_inside(p) for p in (key if isinstance(key, tuple) else (key,))))
        if builder is not None:
            raise refused(builder, f"numpy.{self._name} with traced ends", "use np.meshgrid of np.linspace")
        return local(self._jitad_real[key])


def _inside(part: Any) -> Any:
    return (part.start, part.stop, part.step) if isinstance(part, slice) else part


INDEXERS: dict[int, Any] = {id(np.r_): Joiner(np.r_), id(np.c_): Joiner(np.c_), id(np.mgrid): Grid(np.mgrid, "mgrid"),
                            id(np.ogrid): Grid(np.ogrid, "ogrid")}

__all__ = ["INDEXERS"]
