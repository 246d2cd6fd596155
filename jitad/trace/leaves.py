"""Leaves of arguments, captures and results: which are data of a tape, with what `Aval`, and which are refused."""
from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jitad.cache.keys.signature import SCALARS
from jitad.primitives.core import SUPPORTED
from jitad.tape.types import Aval

__all__ = ["altered", "as_plain", "aval_of", "is_complex", "is_dynamic", "is_plain", "packed", "packed_all", "refusal"]

_PLAIN = SCALARS | {np.ndarray, float, int, bool, complex}
_LIKE_ARRAYS = (np.memmap, np.recarray)          # what these alter gives the same elements, of the dtypes that we take
_HARMLESS = frozenset(                           # what a class may have of its own and still compute as its base does
    "__new__ __init__ __init_subclass__ __class_getitem__ __subclasshook__ __doc__ __repr__ __str__ __format__ __dir__ "
    "__hash__ __sizeof__ __setattr__ __delattr__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ "
    "__copy__ __deepcopy__ __array_finalize__ __array_priority__ dump dumps tofile".split())
_seen: WeakKeyDictionary[type, str] = WeakKeyDictionary()

_HALF: dict[Any, np.dtype[Any]] = {np.dtype(c): np.dtype(f) for c, f in (("c16", "f8"), ("c8", "f4"))}


def is_dynamic(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an input of the tape (an array or a number) or a static value."""
    kind = type(leaf)
    return kind is np.ndarray or kind in (float, int, bool) or (
        isinstance(leaf, (np.ndarray, np.generic, float, int, complex)) and not isinstance(leaf, enum.Enum))


def is_complex(x: Any) -> bool:
    """Whether `x` is a complex number or array."""
    return isinstance(x, (complex, np.complexfloating)) or (isinstance(x, np.ndarray) and x.dtype.kind == "c")


def aval_of(value: Any) -> Aval:
    """Shape and dtype of an array or number whose dtype is supported; of what is complex, those of `packed`."""
    dtype = np.asarray(value).dtype
    if dtype in _HALF:
        return Aval((*np.shape(value), 2), _HALF[dtype])
    return Aval(np.shape(value), dtype, type(value) in (int, float, bool))


def packed(value: Any) -> np.ndarray:
    """A complex number or array as a real array with the parts along a new last dimension; no copy of an array.
    Raises for everything else."""
    if isinstance(value, np.ndarray):
        array = value if type(value) is np.ndarray else np.asarray(value)
        return array[..., None].view(_HALF[value.dtype])
    return np.array([value.real, value.imag], _HALF[np.asarray(value).dtype])


def packed_all(values: Iterable[Any]) -> list[Any]:
    """Inputs of a kernel, which takes no subclasses: `values` without them, the complex ones packed."""
    return [packed(v) if is_complex(v) else as_plain(v) for v in values]


def is_plain(value: Any) -> bool:
    """Whether the class of an array or number is Python's or NumPy's own, and no subclass of that."""
    return type(value) in _PLAIN


def as_plain(value: Any) -> Any:
    """An array or number without a subclass: a view of the array; a NumPy scalar, as NumPy takes a subclass of float
    for a float64. It is for the caller to know that the class has nothing `altered`."""
    if is_plain(value):
        return value
    array = np.asarray(value)
    return array if isinstance(value, np.ndarray) else array[()]


def altered(cls: type) -> str:
    """An operation of arrays or numbers that a subclass has otherwise, by name; empty if there is none. Looked up once:
    what is done to the class later is not seen."""
    if cls in _PLAIN:
        return ""
    known = _seen.get(cls)
    if known is None:
        known = _seen[cls] = next(_overridden(cls), "")
    return known


def _overridden(cls: type) -> Iterator[str]:
    base = next((c for c in cls.__mro__ if c in _PLAIN), None)
    if base is None:
        return
    matter = {*dir(base)} - _HARMLESS
    for c in cls.__mro__[:cls.__mro__.index(base)]:
        if c not in _LIKE_ARRAYS:
            yield from (name for name, value in vars(c).items() if name in matter and value is not getattr(base, name))


def refusal(value: Any) -> str | None:
    """Why an array or number cannot be an input of a tape, and what to do; None when it can."""
    if name := altered(type(value)):
        kind = "arrays" if isinstance(value, np.ndarray) else "numbers"
        cure = "np.asarray" if isinstance(value, (np.ndarray, np.generic)) else next(
            c.__name__ for c in (int, float, complex) if isinstance(value, c))
        return (f"is a {type(value).__name__}, whose operations are not those of {kind} (`{name}` is its own); "
                f"pass {cure} of it")
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        return "is an integer beyond 64 bits; pass it as a float"
    dtype = np.asarray(value).dtype
    if dtype.name not in SUPPORTED and dtype.newbyteorder("=") not in _HALF:
        if dtype.kind == "c":
            return f"has dtype {dtype}, which is not supported; convert it to complex128 or complex64"
        if dtype.kind == "O":
            return "is an object array; convert it with .astype(float)"
        return f"has dtype {dtype}, which is not supported; convert it to float64, float32, an integer or bool"
    if not dtype.isnative:
        return f"is in foreign byte order ({dtype.str}); convert it with .astype({dtype.name!r})"
    return None
