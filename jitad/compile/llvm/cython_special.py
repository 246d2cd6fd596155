"""Functions of scipy.special that kernels call: those of `scipy.special.cython_special`, by address and without Python.

An operation ``special_gammainc`` is the function of that name; ``special_sici_1`` is the second result of a function
that has several. Machine code names them ``jitad_special_gammainc``; `register_named` tells LLVM the addresses of
what an object file names. The functions are free of state and take no lock.
"""
from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from jitad.compile.llvm.symbols import ADDRESSES
from jitad.primitives.scipy_ufuncs import load

PREFIX = "jitad_special_"
KINDS = frozenset({"double", "Py_ssize_t", "double *"})


@dataclass(frozen=True)
class CFunction:
    """A C function: its name among the capsules, which is also that of its symbol, and the types of its arguments."""

    symbol: str
    result: str
    kinds: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(k for k in self.kinds if k != "double *")


@cache
def functions() -> dict[str, list[CFunction]]:
    """The variants of each function for doubles and integers, that for doubles alone first."""
    variants: dict[str, list[CFunction]] = {}
    name_of = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
    for symbol, capsule in load("cython_special").__pyx_capi__.items():
        result, inside = name_of(capsule).decode()[:-1].split(" (")
        kinds = tuple(inside.removesuffix(", int __pyx_skip_dispatch").split(", "))
        if result in ("double", "void") and all(k in KINDS for k in kinds):
            name = re.sub(r"^__pyx_fuse_(\d+_)*\d+", "", symbol)
            variants.setdefault(name, []).append(CFunction(symbol, result, kinds))
    for listed in variants.values():
        listed.sort(key=lambda f: f.kinds.count("Py_ssize_t"))
    return variants


def _python(name: str, result: Any, *kinds: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, kinds
    return function


@cache
def found(op: str) -> tuple[str, int | None] | None:
    """The function behind an operation, and which of its results."""
    known, op = functions(), op.removeprefix("special_")
    if op in known:
        return (op, None) if known[op][0].result == "double" else None
    name, _, place = op.rpartition("_")
    return (name, int(place)) if name in known and place.isdigit() and known[name][0].result == "void" else None


def is_special(op: str) -> bool:
    """Whether `op` is a function of this module."""
    return op.startswith("special_") and found(op) is not None


@cache
def register(symbol: str) -> None:
    """Tell LLVM the address of a function."""
    capsule = load("cython_special").__pyx_capi__[symbol]
    name = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)(capsule)
    address = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(capsule, name)
    ADDRESSES[PREFIX + symbol] = address


def register_named(code: bytes) -> None:
    """The same for every function that an object file names; `KeyError` if this SciPy has it not."""
    for symbol in set(re.findall(rb"jitad_special_(\w+)", code)):
        register(symbol.decode())
