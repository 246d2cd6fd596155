"""Leaves of arguments, captures and results: which are data of a tape, with what `Aval`, and which are refused."""
from __future__ import annotations

import enum
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from jitad.primitives.core import SUPPORTED
from jitad.tape import Aval

__all__ = ["aval_of", "is_complex", "is_dynamic", "odd_arrays", "packed", "packed_all", "refusal"]

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
        return value[..., None].view(_HALF[value.dtype])
    return np.array([value.real, value.imag], _HALF[np.asarray(value).dtype])


def packed_all(values: Iterable[Any]) -> list[Any]:
    """Inputs of a kernel: `values`, the complex ones packed."""
    return [packed(v) if is_complex(v) else v for v in values]


def odd_arrays() -> tuple[type, ...]:
    """Subclasses of arrays whose operations are not those of arrays; of numpy.ma, slow to import, if it is there."""
    return np.matrix, getattr(sys.modules.get("numpy.ma"), "MaskedArray", np.matrix)


def refusal(value: Any) -> str | None:
    """Why an array or number cannot be an input of a tape, and what to do; None when it can."""
    if isinstance(value, odd_arrays()):
        return f"is a {type(value).__name__}, whose operations are not those of arrays; pass np.asarray of it"
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
