"""How leaves of a call that no kernel takes become leaves that one takes: subclasses of arrays, and integers that are
differentiated. A shortcut does the same without a look at the rest of the call."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from jitad.compile.entry.kernel_errors import KernelMiss

Change = tuple[type, Any, Callable[[Any], Any]] | None
"""The class of what is given, its dtype where that matters, and what is made of it; None where it stays."""


def changes(given: Sequence[Any], leaves: Sequence[Any]) -> list[Change]:
    """How each leaf was made of what was given. Empty if all are the same, or if one was made in a way that is seldom:
    of foreign byte order, or not aligned."""
    found = [None if before is leaf else _change(before, leaf) for before, leaf in zip(given, leaves, strict=True)]
    return [] if _SELDOM in found or not any(found) else found


_SELDOM: Change = (object, None, np.asarray)


def _change(given: Any, leaf: Any) -> Change:
    cls = type(given)
    if cls is int:
        return cls, None, _whole
    integer = isinstance(given, (np.ndarray, np.generic)) and given.dtype.kind in "iu" and leaf.dtype.kind == "f"
    if isinstance(given, np.generic) and integer:
        return cls, None, np.float64
    if isinstance(given, np.ndarray) and given.flags.aligned and given.dtype is np.dtype(given.dtype.name):
        floats = _floats if cls is np.ndarray else _plain_floats
        return (cls, given.dtype, floats) if integer else (cls, None, np.asarray)
    return _SELDOM


def _whole(number: int) -> float:
    if not -2**63 <= number < 2**63:
        raise KernelMiss
    return float(number)


_floats = methodcaller("astype", np.dtype(np.float64))


def _plain_floats(array: np.ndarray) -> np.ndarray:
    return np.asarray(array).astype(np.float64)
