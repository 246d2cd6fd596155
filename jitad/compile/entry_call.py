"""The entry of a kernel as a function of Python."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from jitad.compile.entry_layout import Holder, table
from jitad.compile.native import Native

ENTRY = "jitad_entry"


class _Definition(ctypes.Structure):
    """``PyMethodDef``"""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


_FASTCALL = 0x80
_DOC = b"A compiled kernel: takes the flat inputs by position, returns the outputs."


def python_function(native: Native) -> Callable[..., Any]:
    """The entry in `native` as a built-in function, which keeps the code alive."""
    holder = Holder(table())
    definition = _Definition(b"kernel", native.address(ENTRY), _FASTCALL, _DOC)
    holder.__dict__.update(native=native, definition=definition)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi))
    return make(ctypes.addressof(definition), holder, None)
