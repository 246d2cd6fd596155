"""The entry of a kernel as a function of Python."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from jitad.cache.keys.places import Place
from jitad.compile.entry.layout import Holder, layout, table
from jitad.compile.llvm.native import Native

ENTRY = "jitad_entry"


class _Definition(ctypes.Structure):
    """``PyMethodDef``"""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


_FASTCALL, _KEYWORDS = 0x80, 0x02
_DOC = b"A compiled kernel: takes the flat inputs by position, returns the outputs."
_made: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi))


def python_function(native: Native, hits: ctypes.c_int64 | None = None,
                    otherwise: Callable[..., Any] | None = None, guards: Sequence[Place] = (),
                    data: tuple[bytes, Sequence[Any]] = (b"", ())) -> Callable[..., Any]:
    """The entry in `native` as a built-in function, which keeps alive the code and all that is given here.

    What the kernel does not serve is a `Miss`, or for `otherwise`, which is called instead. It does not serve any call
    once another object is found at a place of the `guards`. Calls that it serves are counted in `hits`. An entry with
    bound data (`bound`) finds them as words behind the table.
    """
    hits = ctypes.c_int64() if hits is None else hits
    rows = b"".join(map(_row, guards))
    first = ctypes.create_string_buffer(rows, len(rows))
    start = ctypes.addressof(first)
    own = struct.pack("4N", ctypes.addressof(hits), 0 if otherwise is None else id(otherwise), start,
                      start + len(rows))
    holder = Holder(table() + own + data[0])
    definition = _Definition(b"kernel", native.address(ENTRY), _FASTCALL | _KEYWORDS, _DOC)
    holder.__dict__.update(native=native, definition=definition, otherwise=otherwise, hits=hits, first=first,
                           guards=tuple(guards), data=tuple(data[1]))
    return _made(ctypes.addressof(definition), holder, None)                    # type: ignore[no-any-return]


def _row(place: Place) -> bytes:
    """Three words: a dict and its key, or the address of a reference and nothing; then what has to be there."""
    at, home, there = layout(), id(place.home), id(place.there[0]) if place.there else 0
    if place.kind == "item":
        return struct.pack("3N", home, id(place.key), there)
    return struct.pack("3N", home + (at.code if place.kind == "code" else at.cell), 0, there)
