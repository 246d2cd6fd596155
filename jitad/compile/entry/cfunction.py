"""C functions that samplers call: what those for values and gradients and those for what is kept of a draw share.

Bound inputs lie behind the address of a Python callback, one word each: the address of an array, or a number. The
callback serves what the kernel does not.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.compile.emit.llvm import MEMORY, emit_llvm
from jitad.compile.entry.bound import in_order, order_of, word
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import INT64
from jitad.compile.loops import Buffer, Program
from jitad.compile.lower.lower import program_of
from jitad.compile.routines.opaque import taken
from jitad.tape.tape import Tape

WRONG_LENGTH = -1


class Addressed:
    """`address` of a C function, which must outlive every call."""

    address: int

    def __reduce__(self) -> Any:
        raise TypeError("a C function belongs to its process and is not copied or pickled; pickle the compiled tape, "
                        "and take its `cfunc` there")


def sweep_of(tape: Tape, inputs: Sequence[Any], module: ir.Module) -> tuple[Program, ir.IRFunction]:
    """The program of a tape for inputs that lie in memory as these do, and its function in a module."""
    program = program_of(tape, tuple(map(order_of, inputs)))
    sweep = emit_llvm(program, module, "jitad_sweep")
    sweep.linkage = "internal"
    return program, sweep


def in_orders(inputs: Sequence[Any]) -> tuple[np.ndarray, list[Any]]:
    """The input that varies, in C order, and the others so that a kernel can read them."""
    vector, *bound = (in_order(x) for x in inputs)
    return np.ascontiguousarray(vector), bound


def block_of(otherwise: Any, bound: Sequence[Any]) -> Any:
    """The words of the callback and of the bound inputs."""
    words = struct.pack("N", ctypes.cast(otherwise, ctypes.c_void_p).value or 0) + b"".join(map(word, bound))
    return ctypes.create_string_buffer(words, len(words))


def bound_words(builder: IRBuilder, data: Any, program: Program) -> list[Any]:
    """The arguments of a sweep but the first, read from the block."""
    found = []
    for number, p in enumerate(program.parameters[1:], 1):
        address = builder.gep(data, [INT64(number)])
        kind = MEMORY[p.dtype].as_pointer() if isinstance(p, Buffer) else MEMORY[p[1]]
        found.append(builder.load(builder.bitcast(address, kind.as_pointer())))
    return found


def leave_unless(builder: IRBuilder, condition: Any, status: Any) -> None:
    """End with a status unless the condition holds."""
    fine, failed = builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(condition, fine, failed)
    builder.position_at_end(failed)
    builder.ret(status)
    builder.position_at_end(fine)


def serve_otherwise(builder: IRBuilder, status: Any, data: Any, arguments: Sequence[Any]) -> None:
    """End with what the callback gives of the arguments, unless the status of the sweep is 0."""
    fine, otherwise = builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("==", status, INT64(0)), fine, otherwise)
    builder.position_at_end(otherwise)
    fallback = ir.FunctionType(INT64, [x.type for x in arguments]).as_pointer()
    builder.ret(builder.call(builder.inttoptr(builder.load(data), fallback), list(arguments)))
    builder.position_at_end(fine)


def in_python(call: Callable[..., Any], *args: Any) -> Any:
    """``call(*args)`` for a kernel that stopped; raises what Python code that it called has raised, if it did."""
    raised = taken()
    if raised is not None:
        raise raised
    return call(*args)
