"""What a kernel must know of an argument before the call: its class, dtype and place in memory."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitad.compile.loops import DTYPE_TAGS

C_ORDER, F_ORDER, ALIGNED = 0x1, 0x2, 0x100            # of NumPy's flags


class ArgumentType(NamedTuple):
    """The kind of one argument. A kernel takes what has exactly its kinds (and the tape's shapes).

    `kind` is ``array``, ``float``, ``int``, ``bool`` (Python's) or ``scalar`` (NumPy's); `dtype` a name. For arrays,
    `order` is C, F (not C too) or A (neither). Subclasses have no kind: they may mean something else by their
    operations, which is for Python to find out before a kernel sees the data.
    """

    kind: str
    dtype: str
    ndim: int = 0
    order: str = ""
    aligned: bool = True


_ORDERS = {C_ORDER: "C", C_ORDER | F_ORDER: "C", F_ORDER: "F", 0: "A"}
_ARRAYS = {(dtype, flags | aligned): (name, order, bool(aligned))
           for name in DTYPE_TAGS for dtype in (np.dtype(name),)
           for flags, order in _ORDERS.items() for aligned in (0, ALIGNED)}
_NUMBERS = {kind: ArgumentType(kind.__name__, dtype)
            for kind, dtype in ((float, "float64"), (int, "int64"), (bool, "bool"))}


def argument_type(value: Any) -> ArgumentType:
    """The kind of an array or number. Raises `TypeError` for what no kernel takes.

    >>> argument_type(np.zeros((2, 3)).T)
    ArgumentType(kind='array', dtype='float64', ndim=2, order='F', aligned=True)
    """
    kind = type(value)
    plain = _NUMBERS.get(kind)
    if plain is not None:
        return plain
    if kind is np.ndarray:
        found = _ARRAYS.get((value.dtype, value.flags.num & (C_ORDER | F_ORDER | ALIGNED)))
        if found is not None:
            name, order, aligned = found
            return ArgumentType("array", name, value.ndim, order, aligned)
    elif isinstance(value, np.generic) and value.dtype.name in DTYPE_TAGS and kind in scalar_types(value.dtype.name):
        return ArgumentType("scalar", value.dtype.name)
    raise TypeError(f"no kernel takes a {kind.__name__}" + (f" of {value.dtype}" if hasattr(value, "dtype") else ""))


def layout_of(kind: ArgumentType) -> str:
    """How an argument lies in memory, as the compiler wants to know it: C, F, A or ``number``."""
    return kind.order or "number"


def scalar_types(name: str) -> tuple[type, ...]:
    """The classes of NumPy scalars of a dtype: there may be two, as C has two names for some integers."""
    dtype = np.dtype(name)
    return tuple(dict.fromkeys([dtype.type, *(np.dtype(c).type for c in "lLqQiI" if np.dtype(c) == dtype)]))
