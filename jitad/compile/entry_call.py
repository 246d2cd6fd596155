"""The entry of a kernel as a function of Python."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from jitad.compile.entry_layout import Holder, table
from jitad.compile.native import Native

ENTRY = "jitad_entry"


class _Definition(ctypes.Structure):
    """``PyMethodDef``"""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


_FASTCALL, _KEYWORDS = 0x80, 0x02
_DOC = b"A compiled kernel: takes the flat inputs by position, returns the outputs."


def python_function(native: Native, words: bytes = b"", kept: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The entry in `native` as a built-in function, which keeps the code alive.

    An entry with bound data (`entry_bound`) finds them in `words`, behind the table, and takes keyword arguments; it
    keeps alive what is `kept`.
    """
    holder = Holder(table() + words)
    definition = _Definition(b"kernel", native.address(ENTRY), _FASTCALL | (_KEYWORDS if words else 0), _DOC)
    holder.__dict__.update(kept or {}, native=native, definition=definition)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi))
    return make(ctypes.addressof(definition), holder, None)
