"""Calls of the functions of `cython_special` as LLVM IR."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.cython_special import PREFIX, CFunction, found, functions, register
from jitad.compile.llvm.ir import DOUBLE, INT32, INT64

KINDS = {"double": DOUBLE, "Py_ssize_t": INT64, "double *": DOUBLE.as_pointer(), "int": INT32}


def special_call(builder: IRBuilder, op: str, values: list[Any]) -> Any:
    """``op(*values)`` of float64 and int64 values, as float64."""
    known = found(op)
    assert known is not None
    name, place = known
    variants = functions()[name]
    given = tuple("double" if v.type is DOUBLE else "Py_ssize_t" for v in values)
    function = next((f for f in variants if f.inputs == given), variants[0])
    values = [_converted(builder, v, KINDS[k]) for v, k in zip(values, function.inputs, strict=True)]
    register(function.symbol)
    if place is not None:
        return builder.call(_one_result(builder.module, function, place), values)
    outside = _declared(builder.module, function, [*function.kinds, "int"], DOUBLE, " readnone")
    return builder.call(outside, [*values, INT32(0)])


def _converted(builder: IRBuilder, value: Any, kind: ir.Type) -> Any:
    return builder.sitofp(value, kind) if kind is DOUBLE else builder.fptosi(value, kind)


def _declared(module: ir.Module, function: CFunction, kinds: Sequence[str], result: ir.Type,
              further: str = "") -> ir.Global:
    return module.declare(PREFIX + function.symbol, result, [KINDS[k] for k in kinds], after=f"nounwind{further}")


def _one_result(module: ir.Module, outside: CFunction, place: int) -> ir.Global:
    """A function of the module for one of the results of a function of SciPy."""
    label = f"jitad.special.{outside.symbol}.{place}"
    known = module.globals.get(label)
    if known is not None:
        return known
    function = ir.IRFunction(module, DOUBLE, [KINDS[k] for k in outside.inputs], label, linkage="internal")
    builder = IRBuilder(function, function.append_basic_block("entry"))
    slots = [builder.alloca(DOUBLE) for _ in outside.kinds[len(outside.inputs):]]
    builder.call(_declared(module, outside, outside.kinds, ir.VOID), [*function.args, *slots])
    builder.ret(builder.load(slots[place]))
    return function
