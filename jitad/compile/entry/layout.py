"""What compiled code must know of Python's and NumPy's objects: where their fields lie, and the table of addresses.

Nothing here is assumed: every offset is compared with what Python says of a known object, and where one differs
(`layout` raises `UnknownLayout`), kernels are called through numba instead. No address ends up in the code: it reads
them from a table in the `bytes` object that is bound to the built-in function, so that it can be stored and used in
another process with the same `Layout`.
"""
from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from jitad.compile.entry.arguments import scalar_types
from jitad.compile.entry.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.loops import DTYPE_TAGS

WORD = 8
NEW_ARRAY = 94                                         # PyArray_NewFromDescr in NumPy's table; number 2 is the class
FUNCTIONS = ("PyErr_SetNone", "Py_IncRef", "Py_DecRef", "PyLong_AsLongLongAndOverflow", "PyFloat_FromDouble",
             "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong", "PyBool_FromLong", "PyTuple_New", "PyTuple_SetItem",
             "PyEval_SaveThread", "PyEval_RestoreThread", "PyObject_Vectorcall",
             "PyDict_GetItemWithError", "PyErr_Occurred", "PyErr_Clear")
OBJECTS = {"ndarray": np.ndarray, "float": float, "int": int, "bool": bool, "True": True,
           "SignatureMiss": SignatureMiss, "StatusMiss": StatusMiss,
           **{f"{name}.dtype": np.dtype(name) for name in DTYPE_TAGS},
           **{f"{name}.type": scalar_types(name)[0] for name in DTYPE_TAGS},
           **{f"{name}.alias": scalar_types(name)[-1] for name in DTYPE_TAGS}}
OWN = ("hits", "otherwise", "guards", "guards_end")    # of one built-in function: see `call`
CELLS = {name: number for number, name in enumerate(("new_array", *FUNCTIONS, *OBJECTS, *OWN))}
_SPELLED = b"<" if sys.byteorder == "little" else b">"
_NATIVE = {1: "|"}                                     # NumPy's sign for the byte order of one byte; "=" for more


class UnknownLayout(Exception):
    """This interpreter or NumPy keeps its objects in another way than is known here."""


class Layout(NamedTuple):
    """Offsets in bytes; also the key under which object code may be stored. `code` is that of a function's code, `cell`
    that of what a cell has. `dtypes` has for each dtype the bytes that tell its descriptor (as integers: a mask, and
    one or two values)."""

    table: int
    type: int
    number: int
    data: int
    ndim: int
    shape: int
    strides: int
    descriptor: int
    flags: int
    signature: int
    code: int
    cell: int
    dtypes: tuple[tuple[str, int, tuple[int, ...]], ...]


class Holder(bytes):
    """The table, and what must live as long as the code that reads it: kept in attributes."""


@cache
def layout() -> Layout:
    """The layout of this process. Raises `UnknownLayout`."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
        raise UnknownLayout("an interpreter with other rules for references")
    if ctypes.sizeof(ctypes.c_void_p) != WORD or ctypes.sizeof(ctypes.c_ssize_t) != WORD:
        raise UnknownLayout("not a 64-bit machine")
    header = object.__basicsize__
    found = Layout(bytes.__basicsize__ - 1, header - WORD, header, header, header + 8, header + 16, header + 24,
                   header + 40, header + 48, header + 8, _code(), header, _dtypes(header))
    _check_numbers(found)
    _check_arrays(found)
    _check_functions(found)
    holder = Holder(table())
    _require(ctypes.string_at(id(holder) + found.table, len(holder)) == bytes(holder), "bytes")
    return found


@cache
def table() -> bytes:
    """The addresses of functions and objects, in the order of `CELLS`, without `OWN`. The objects live as long as the
    process."""
    functions = [_address(getattr(ctypes.pythonapi, name)) for name in FUNCTIONS]
    return struct.pack(f"{len(CELLS) - len(OWN)}N", _numpy_table()[NEW_ARRAY], *functions, *map(id, OBJECTS.values()))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpy_table() -> Any:
    capsule = import_module("numpy._core._multiarray_umath")._ARRAY_API
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    return (ctypes.c_size_t * (NEW_ARRAY + 1)).from_address(pointer_of(capsule, None))


# --- the checks ------------------------------------------------------------------------------------
def _require(condition: bool, what: str) -> None:
    if not condition:
        raise UnknownLayout(what)


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _dtypes(header: int) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
    """Of a descriptor, after the header and one word: kind, character, byte order, flags, and a 32-bit number."""
    mask = int.from_bytes(b"\xff\0\xff\0\xff\xff\xff\xff", sys.byteorder)
    found = []
    for name in DTYPE_TAGS:
        values = []
        for kind in scalar_types(name):
            dtype = np.dtype(kind)
            raw = ctypes.string_at(id(dtype) + header + WORD, 8)
            number = int.from_bytes(raw[4:], sys.byteorder)
            order = _NATIVE.get(dtype.itemsize, "=")
            _require((raw[0], raw[1], raw[2], number) == (ord(dtype.kind), ord(dtype.char), ord(order), dtype.num),
                     f"descriptor of {name}")
            values.append(int.from_bytes(raw, sys.byteorder) & mask)
            if order == "=":                            # the machine's own order, spelled out: ctypes makes such arrays
                spelled = raw[:2] + _SPELLED + raw[3:]
                values.append(int.from_bytes(spelled, sys.byteorder) & mask)
        found.append((name, mask, tuple(values)))
    return tuple(found)


def _code() -> int:
    """Where a function has its code: at another place in each version of Python."""
    found = [offset for offset in range(0, FunctionType.__basicsize__, WORD)
             if _word(id(_code) + offset) == id(_code.__code__)]
    _require(len(found) == 1, "function")
    return found[0]


def _check_functions(at: Layout) -> None:
    def one() -> Any:
        return one

    def two() -> Any:
        return two
    for function in (one, two):
        (cell,) = function.__closure__ or ()
        _require(_word(id(function) + at.code) == id(function.__code__), "function")
        _require(_word(id(cell) + at.cell) == id(function), "cell")
    two.__code__ = one.__code__
    _require(_word(id(two) + at.code) == id(one.__code__), "function")


def _check_numbers(at: Layout) -> None:
    number = 1.7
    _require(float.__basicsize__ == at.number + 8 and _word(id(number) + at.type) == id(float), "float")
    _require(ctypes.c_double.from_address(id(number) + at.number).value == number, "float")
    for name in DTYPE_TAGS:
        for kind in scalar_types(name):
            scalar = kind(1)
            size = scalar.itemsize
            _require(kind.__basicsize__ >= at.number + size and _word(id(scalar) + at.type) == id(kind), name)
            _require(ctypes.string_at(id(scalar) + at.number, size) == scalar.tobytes(), name)


def _check_arrays(at: Layout) -> None:
    _require(np.ndarray.__basicsize__ >= at.flags + 4 and _numpy_table()[2] == id(np.ndarray), "NumPy's table")
    base = np.arange(720.0).reshape(2, 3, 4, 5, 6)
    for array in (base, base.T, base[:, ::2, 1:3, ::-1], base[0], np.ones((3, 2), np.int8, order="F"), np.zeros(())):
        start = id(array)
        integer = ctypes.c_int32.from_address
        _require(_word(start + at.type) == id(np.ndarray) and _word(start + at.data) == array.ctypes.data
                 and integer(start + at.ndim).value == array.ndim and integer(start + at.flags).value == array.flags.num
                 and _word(start + at.descriptor) == id(array.dtype), "ndarray")
        if array.ndim:
            vector = ctypes.c_ssize_t * array.ndim
            for place, numbers in ((at.shape, array.shape), (at.strides, array.strides)):
                _require(tuple(vector.from_address(_word(start + place))) == numbers, "ndarray")
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                                  ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    dtype = np.dtype(np.float32)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
    shape = (ctypes.c_ssize_t * 2)(2, 3)
    new = prototype(_numpy_table()[NEW_ARRAY])
    made = new(id(np.ndarray), id(dtype), 2, ctypes.addressof(shape), None, None, 0, None)
    _require(type(made) is np.ndarray and made.shape == (2, 3) and made.dtype is dtype and made.flags.carray,
             "NewFromDescr")
