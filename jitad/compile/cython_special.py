"""Functions of scipy.special that kernels call: those of `scipy.special.cython_special`, by address and without Python.

An operation ``special_gammainc`` is the function of that name; ``special_sici_1`` is the second result of a function
that has several. Machine code names them ``jitad_special_gammainc``; `register_named` tells LLVM the addresses of
what an object file names. The functions are free of state and take no lock.
"""
from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

from llvmlite import binding, ir

from jitad.primitives.scipy_ufuncs import load

PREFIX = "jitad_special_"
DOUBLE, INT64, INT32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
KINDS = {"double": DOUBLE, "Py_ssize_t": INT64, "double *": DOUBLE.as_pointer()}


@cache
def _capsules() -> dict[str, tuple[str, str, Any]]:
    """(symbol, signature, capsule) by the name of the function: the variant for doubles."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found: dict[str, tuple[str, str, Any]] = {}
    for full, capsule in load("cython_special").__pyx_capi__.items():
        signature = name_of(capsule).decode()
        name = re.sub(r"^__pyx_fuse_(\d+_)*\d+", "", full)
        result, inside = signature[:-1].split(" (")
        kinds = inside.removesuffix(", int __pyx_skip_dispatch").split(", ")
        if result not in ("double", "void") or not all(k in KINDS for k in kinds):
            continue
        if name not in found or "Py_ssize_t" not in kinds:
            found[name] = (result, ", ".join(kinds), capsule)
    return found


@cache
def _found(op: str) -> tuple[str, int | None] | None:
    """The function behind an operation, and which of its results."""
    known, op = _capsules(), op.removeprefix("special_")
    if op in known:
        return (op, None) if known[op][0] == "double" else None
    name, _, place = op.rpartition("_")
    return (name, int(place)) if name in known and place.isdigit() and known[name][0] == "void" else None


def is_special(op: str) -> bool:
    """Whether `op` is a function of this module."""
    return op.startswith("special_") and _found(op) is not None


@cache
def register(name: str) -> None:
    """Tell LLVM the address of the function `name`."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsule = _capsules()[name][2]
    binding.add_symbol(PREFIX + name, get(capsule, name_of(capsule)))


def register_named(code: bytes) -> None:
    """The same for every function that an object file names; `KeyError` if this SciPy has it not."""
    for name in set(re.findall(rb"jitad_special_(\w+)", code)):
        register(name.decode())


def special_call(builder: ir.IRBuilder, op: str, values: list[Any]) -> Any:
    """``op(*values)`` of float64 values."""
    found = _found(op)
    assert found is not None
    name, place = found
    register(name)
    result, text, _ = _capsules()[name]
    kinds = [KINDS[k] for k in text.split(", ")]
    inputs = [k for k in kinds if k != KINDS["double *"]]
    values = [v if k == DOUBLE else builder.fptosi(v, k) for v, k in zip(values, inputs, strict=True)]
    function = builder.module.globals.get(PREFIX + name)
    if place is None:
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(DOUBLE, [*kinds, INT32]), PREFIX + name)
            function.attributes.add("readnone")
            function.attributes.add("nounwind")
        return builder.call(function, [*values, INT32(0)])
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), kinds), PREFIX + name)
        function.attributes.add("nounwind")
        function.attributes.add("argmemonly")
    with builder.goto_entry_block():
        slots = [builder.alloca(DOUBLE) for _ in kinds[len(values):]]
    builder.call(function, [*values, *slots])
    return builder.load(slots[place])
