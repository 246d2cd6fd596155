"""Calls of the functions of `cython_special` as LLVM IR."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from jitad.compile.cython_special import PREFIX, Function, found, functions, register

DOUBLE, INT64, INT32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
KINDS = {"double": DOUBLE, "Py_ssize_t": INT64, "double *": DOUBLE.as_pointer(), "int": INT32}


def special_call(builder: ir.IRBuilder, op: str, values: list[Any]) -> Any:
    """``op(*values)`` of float64 and int64 values, as float64."""
    known = found(op)
    assert known is not None
    name, place = known
    variants = functions()[name]
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
