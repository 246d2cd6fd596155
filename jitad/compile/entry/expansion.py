"""What is kept of a draw, computed from the vector by compiled code: a C function for samplers in other languages.

``int64 f(uint64 dim, uint64 kept, double* x, double* out, void* data)``. Samplers pass the data of the density, so
the address of its own is in the code. Points that the kernel does not serve go through Python; where that raises, the
values are NaN and the error is printed, since C code cannot pass it on.
"""
from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.compile.emit.llvm import MEMORY, emit_llvm
from jitad.compile.entry.bound import in_order, order_of, word
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import DOUBLE, INT64
from jitad.compile.llvm.native import compile_module
from jitad.compile.loops import Buffer, Program
from jitad.compile.lower.lower import program_of
from jitad.tape.tape import Tape

NAME = "jitad_expansion"
WRONG_LENGTH = -1
_FALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_WHOLE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3)


class Expansion:
    """`address` of the C function of a tape with one vector as output; `inputs` are the tape's, of which the first
    varies, ``otherwise(x)`` serves what the kernel does not. Must outlive every call."""

    def __init__(self, tape: Tape, inputs: Sequence[Any], otherwise: Callable[[np.ndarray], np.ndarray]):
        vector, *bound = (in_order(x) for x in inputs)
        program = program_of(tape, tuple(map(order_of, [vector, *bound])))
        module = ir.Module()
        sweep = emit_llvm(program, module, "jitad_sweep")
        sweep.linkage = "internal"
        kept = tape.nodes[tape.outputs[0]].aval.size
        self._kept = bound, tape
        self._otherwise = _FALLBACK(_filling(otherwise, vector.size, kept))
        words = struct.pack("N", ctypes.cast(self._otherwise, ctypes.c_void_p).value or 0) + b"".join(map(word, bound))
        self._block = ctypes.create_string_buffer(words, len(words))
        _build(module, sweep, program, (vector.size, kept), ctypes.addressof(self._block))
        self._native = compile_module(str(module))
        self.address: int = self._native.address(NAME)


class PythonExpansion:
    """The same through Python, for what is not compiled: ``call(x)`` gives `kept` numbers."""

    def __init__(self, length: int, kept: int, call: Callable[[np.ndarray], np.ndarray]):
        fill = _filling(call, length, kept)

        def function(dim: int, size: int, x: int, out: int, data: int) -> int:
            return fill(x, out) if (dim, size) == (length, kept) else WRONG_LENGTH
        self._function = _WHOLE(function)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0


def _filling(call: Callable[[np.ndarray], np.ndarray], length: int, kept: int) -> Callable[[int, int], int]:
    def fill(x: int, out: int) -> int:
        target = np.ctypeslib.as_array((ctypes.c_double * kept).from_address(out))
        try:
            target[:] = call(np.ctypeslib.as_array((ctypes.c_double * length).from_address(x)).copy())
        except Exception as error:
            target[:] = np.nan
            error.add_note("while the variables to store were computed; they are NaN in this draw")
            sys.excepthook(type(error), error, error.__traceback__)
        return 0
    return fill


def _build(module: ir.Module, sweep: ir.IRFunction, program: Program, sizes: tuple[int, int], block: int) -> None:
    vectors = DOUBLE.as_pointer()
    function = ir.IRFunction(module, INT64, [INT64, INT64, vectors, vectors, INT64.as_pointer()], NAME)
    dim, size, x, out, _ = function.args
    builder = IRBuilder(function, function.append_basic_block())
    data = builder.inttoptr(INT64(block), INT64.as_pointer())
    for given, wanted in zip((dim, size), sizes, strict=True):
        fine, wrong = builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.icmp_unsigned("==", given, INT64(wanted)), fine, wrong)
        builder.position_at_end(wrong)
        builder.ret(INT64(WRONG_LENGTH))
        builder.position_at_end(fine)
    arguments: list[Any] = [x]
    for number, p in enumerate(program.parameters[1:], 1):
        kind = MEMORY[p.dtype].as_pointer() if isinstance(p, Buffer) else MEMORY[p[1]]
        address = builder.gep(data, [INT64(number)])
        arguments.append(builder.load(builder.bitcast(address, kind.as_pointer())))
    status = builder.call(sweep, [*arguments, out])
    fine, otherwise = builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("==", status, INT64(0)), fine, otherwise)
    builder.position_at_end(otherwise)
    fallback = ir.FunctionType(INT64, [vectors, vectors]).as_pointer()
    builder.ret(builder.call(builder.inttoptr(builder.load(data), fallback), [x, out]))
    builder.position_at_end(fine)
    builder.ret(INT64(0))
