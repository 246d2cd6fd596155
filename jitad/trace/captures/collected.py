"""Captured containers beyond lists, tuples, sets and dicts: of `collections`, arrays of records, polynomials, and
functions that choose by the class of an argument."""
from __future__ import annotations

import functools
from collections import ChainMap, Counter, deque
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.trace.captures.introspection import class_of
from jitad.trace.captures.notes import Notes
from jitad.trace.captures.objects.classes import original_of
from jitad.trace.dispatch import as_value, builder_in, plain

__all__ = ["TAKERS", "is_dispatching", "take_dispatching", "take_records"]


def take_deque(captures: Notes, value: deque[Any], path: Path) -> deque[Any]:
    """A copy, item by item, which the code must not change."""
    captures.guard(type(value), path.step("type"))
    captures.guard(value.maxlen, path.step("attr", "maxlen"))
    captures.guard(len(value), path.step("len"))
    copy = deque((captures.take(item, path.step("item", i)) for i, item in enumerate(value)), value.maxlen)
    captures.watched.append((copy, list(copy), path))
    return copy


def take_counter(captures: Notes, value: Counter[Any], path: Path) -> Counter[Any]:
    """A copy, item by item, which the code must not change."""
    captures.guard(type(value), path.step("type"))
    captures.guard(tuple(value), path.step("keys"))
    copy = Counter({key: captures.take(count, path.step("item", key)) for key, count in value.items()})
    captures.watched.append((copy, list(copy.items()), path))
    return copy


def take_chain(captures: Notes, value: ChainMap[Any, Any], path: Path) -> ChainMap[Any, Any]:
    """A chain of what stands for the dicts."""
    captures.guard(type(value), path.step("type"))
    maps = path.step("attr", "maps")
    captures.guard(len(value.maps), maps.step("len"))
    return ChainMap(*(captures.take(inner, maps.step("item", i)) for i, inner in enumerate(value.maps)))


def take_polynomial(captures: Notes, value: np.poly1d, path: Path) -> np.poly1d:
    """The polynomial of the captured coefficients."""
    captures.guard(type(value), path.step("type"))
    captures.guard(value.variable, path.step("attr", "variable"))
    made = object.__new__(np.poly1d)
    made.__dict__.update(coeffs=captures.take(value.coeffs, path.step("attr", "coeffs")), _variable=value.variable)
    return made


# --- records ---------------------------------------------------------------------------------

class Records:
    """A captured array with fields: each field is a capture when it is read, by ``r["t"]`` or, of a recarray, ``r.t``.
    What picks elements picks them of every field."""

    __class__ = property(lambda self: self._kind)                   # type: ignore[assignment]

    def __init__(self, kind: type, read: Callable[[str], Any], shape: tuple[int, ...], dtype: np.dtype[Any],
                 index: tuple[Any, ...] = ()) -> None:
        self._kind, self._read, self._index = kind, read, index
        self.dtype, self.shape = dtype, shape

    def __getitem__(self, index: Any) -> Any:
        names = self.dtype.names or ()
        if isinstance(index, str):
            return self._field(index)
        if isinstance(index, list) and index and all(isinstance(name, str) for name in index):
            some = np.dtype([(name, self.dtype[name]) for name in index])
            return Records(self._kind, self._read, self.shape, some, self._index)
        if isinstance(index, int) and not self.shape:
            return self._field(names[index])
        index = plain(index)
        shape = np.shape(self._picked(index))
        return Records(self._kind, self._read, shape, self.dtype, (*self._index, index))

    def _picked(self, index: Any) -> Any:
        """An array of zeros where `index` picks; a traced one says itself how many elements."""
        builder = builder_in(index)
        zeros = np.zeros(self.shape)
        return zeros[index] if builder is None else as_value(builder, zeros)[index]

    def _field(self, name: str) -> Any:
        if name not in (self.dtype.names or ()):
            raise ValueError(f"no field of name {name}")
        found = self._read(name)
        for index in self._index:
            found = found[index]
        return found

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and issubclass(self._kind, np.recarray) and name in (self.dtype.names or ()):
            return self._field(name)
        raise AttributeError(f"{name!r} of an array with fields is not followed; read its fields, r['t'], and go on "
                             "with those")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    def __len__(self) -> int:
        return self.shape[0] if self.shape else len(self.dtype.names or ())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def take_records(captures: Notes, value: np.ndarray, path: Path) -> Records:
    """What stands for an array with fields."""
    captures.guard(type(value), path.step("type"))
    captures.guard(value.dtype, path.step("attr", "dtype"))
    captures.guard(value.shape, path.step("attr", "shape"))
    return Records(type(value), functools.lru_cache(maxsize=None)(
        lambda name: captures.take(value[name], path.step("item", name))), value.shape, value.dtype)


# --- by the class of an argument -----------------------------------------------------------------

_DISPATCHING = functools.singledispatch(lambda x: x).__code__       # type: ignore[attr-defined]


def is_dispatching(function: Any) -> bool:
    """Whether this is what `functools.singledispatch` makes."""
    return type(function) is FunctionType and function.__code__ is _DISPATCHING


def take_dispatching(captures: Notes, value: Any, path: Path) -> Callable[..., Any]:
    """The choice among copies of the registered functions, by the class that an argument has in recorded code."""
    captures.guard(tuple(value.registry), path.step("attr", "registry").step("keys"))

    @functools.wraps(value, updated=())
    def choose(*args: Any, **kwargs: Any) -> Any:
        if not args:
            raise TypeError(f"{value.__name__} requires at least 1 positional argument")
        cls = original_of(class_of(args[0]))
        chosen = value.dispatch(getattr(cls, "jitad_kind", cls))
        key = next(key for key, function in value.registry.items() if function is chosen)
        return captures.take(chosen, path.step("attr", "registry").step("item", key))(*args, **kwargs)
    return choose


TAKERS: dict[type, Callable[..., Any]] = {
    deque: take_deque, Counter: take_counter, ChainMap: take_chain, np.poly1d: take_polynomial}
