"""Functions of scipy.special that kernels call: those of `scipy.special.cython_special`, by address and without Python.

An operation ``special_gammainc`` is the function of that name; ``special_sici_1`` is the second result of a function
that has several. Machine code names them ``jitad_special_gammainc``; `register_named` tells LLVM the addresses of
what an object file names. The functions are free of state and take no lock.
"""
from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import binding, ir

from jitad.primitives.scipy_ufuncs import load

PREFIX = "jitad_special_"
DOUBLE, INT64, INT32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
KINDS = {"double": DOUBLE, "Py_ssize_t": INT64, "double *": DOUBLE.as_pointer(), "int": INT32}


@dataclass(frozen=True)
class Function:
    """A C function: its name among the capsules, which is also that of its symbol, and the types of its arguments."""

    symbol: str
    result: str
    kinds: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(k for k in self.kinds if k != "double *")


@cache
def _functions() -> dict[str, list[Function]]:
    """The variants of each function for doubles and integers, that for doubles alone first."""
    found: dict[str, list[Function]] = {}
    name_of = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
    for symbol, capsule in load("cython_special").__pyx_capi__.items():
        result, inside = name_of(capsule).decode()[:-1].split(" (")
        kinds = tuple(inside.removesuffix(", int __pyx_skip_dispatch").split(", "))
        if result in ("double", "void") and all(k in KINDS for k in kinds):
            name = re.sub(r"^__pyx_fuse_(\d+_)*\d+", "", symbol)
            found.setdefault(name, []).append(Function(symbol, result, kinds))
    for variants in found.values():
        variants.sort(key=lambda f: f.kinds.count("Py_ssize_t"))
    return found


def _python(name: str, result: Any, *kinds: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, kinds
    return function


@cache
def _found(op: str) -> tuple[str, int | None] | None:
    """The function behind an operation, and which of its results."""
    known, op = _functions(), op.removeprefix("special_")
    if op in known:
        return (op, None) if known[op][0].result == "double" else None
    name, _, place = op.rpartition("_")
    return (name, int(place)) if name in known and place.isdigit() and known[name][0].result == "void" else None


def is_special(op: str) -> bool:
    """Whether `op` is a function of this module."""
    return op.startswith("special_") and _found(op) is not None


@cache
def register(symbol: str) -> None:
    """Tell LLVM the address of a function."""
    capsule = load("cython_special").__pyx_capi__[symbol]
    name = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)(capsule)
    address = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(capsule, name)
    binding.add_symbol(PREFIX + symbol, address)


def register_named(code: bytes) -> None:
    """The same for every function that an object file names; `KeyError` if this SciPy has it not."""
    for symbol in set(re.findall(rb"jitad_special_(\w+)", code)):
        register(symbol.decode())


def special_call(builder: ir.IRBuilder, op: str, values: list[Any]) -> Any:
    """``op(*values)`` of float64 and int64 values, as float64."""
    found = _found(op)
    assert found is not None
    name, place = found
    variants = _functions()[name]
    given = tuple("double" if v.type == DOUBLE else "Py_ssize_t" for v in values)
    function = next((f for f in variants if f.inputs == given), variants[0])
    values = [_converted(builder, v, KINDS[k]) for v, k in zip(values, function.inputs, strict=True)]
    register(function.symbol)
    if place is not None:
        return builder.call(_one_result(builder.module, function, place), values)
    outside = _declared(builder.module, function, [*function.kinds, "int"], DOUBLE)
    outside.attributes.add("readnone")
    return builder.call(outside, [*values, INT32(0)])


def _converted(builder: ir.IRBuilder, value: Any, kind: ir.Type) -> Any:
    if value.type == kind:
        return value
    return builder.sitofp(value, kind) if kind == DOUBLE else builder.fptosi(value, kind)


def _declared(module: ir.Module, function: Function, kinds: Sequence[str], result: ir.Type) -> ir.Function:
    known = module.globals.get(PREFIX + function.symbol)
    if known is None:
        known = ir.Function(module, ir.FunctionType(result, [KINDS[k] for k in kinds]), PREFIX + function.symbol)
        known.attributes.add("nounwind")
    return known


def _one_result(module: ir.Module, outside: Function, place: int) -> ir.Function:
    """A function of the module for one of the results of a function of SciPy."""
    label = f"jitad.special.{outside.symbol}.{place}"
    known = module.globals.get(label)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(DOUBLE, [KINDS[k] for k in outside.inputs]), label)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    slots = [builder.alloca(DOUBLE) for _ in outside.kinds[len(outside.inputs):]]
    builder.call(_declared(module, outside, outside.kinds, ir.VoidType()), [*function.args, *slots])
    builder.ret(builder.load(slots[place]))
    return function
