"""A C function that copies a vector, in the form in which samplers ask for what is to be kept of a draw.

``int64 f(uint64 dim, uint64 kept, double* x, double* out, void* data)``.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache as once
from typing import Any

from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import DOUBLE, INT64
from jitad.compile.llvm.native import compile_module

NAME = "jitad_copy"


@dataclass(frozen=True)
class Copying:
    """The address of the function, and what must live as long as it may be called."""

    address: int
    code: Any


@once
def copying() -> Copying:
    """The function, whose status is -1 unless `kept` is `dim`; made once for all models."""
    module = ir.Module()
    vector = DOUBLE.as_pointer()
    function = ir.IRFunction(module, INT64, [INT64, INT64, vector, vector, INT64.as_pointer()], NAME)
    dim, kept, x, out, _ = function.args
    entry = function.append_basic_block()
    builder = IRBuilder(function, entry)
    head, body, done, wrong = (builder.append_basic_block() for _ in range(4))
    builder.cbranch(builder.icmp_unsigned("==", dim, kept), head, wrong)
    builder.position_at_end(wrong)
    builder.ret(INT64(-1))
    builder.position_at_end(head)
    index = builder.phi(INT64)
    index.add_incoming(INT64(0), entry)
    builder.cbranch(builder.icmp_unsigned("<", index, dim), body, done)
    builder.position_at_end(body)
    builder.store(builder.load(builder.gep(x, [index])), builder.gep(out, [index]))
    index.add_incoming(builder.add(index, INT64(1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    builder.ret(INT64(0))
    native = compile_module(str(module))
    return Copying(native.address(NAME), native)
