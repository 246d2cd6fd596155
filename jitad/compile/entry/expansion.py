"""What is kept of a draw, computed from the vector by compiled code: a C function for samplers in other languages.

``int64 f(uint64 dim, uint64 kept, double* x, double* out, void* data)``. Samplers pass the data of the density, so
the address of its own is in the code. Points that the kernel does not serve go through Python; where that raises, the
values are NaN and the error is printed, since C code cannot pass it on.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any

import numpy as np

from jitad.compile.entry.cfunction import (
    WRONG_LENGTH,
    Addressed,
    block_of,
    bound_words,
    in_orders,
    in_python,
    leave_unless,
    serve_otherwise,
    sweep_of,
)
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import DOUBLE, INT64
from jitad.compile.llvm.native import compile_module
from jitad.compile.llvm.object_cache import compile_cached
from jitad.compile.loops import Program
from jitad.tape.tape import Tape

NAME, COPY = "jitad_expansion", "jitad_copy"
_FALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_WHOLE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3)


class Expansion(Addressed):
    """`address` of the C function of a tape with one vector as output; `inputs` are the tape's, of which the first
    varies, ``otherwise(x)`` serves what the kernel does not. Must outlive every call."""

    def __init__(self, tape: Tape, inputs: Sequence[Any], otherwise: Callable[[np.ndarray], np.ndarray],
                 parallel: bool = False):
        vector, bound = in_orders(inputs)
        module = ir.Module()
        program, sweep = sweep_of(tape, [vector, *bound], module, parallel)
        kept = tape.nodes[tape.outputs[0]].aval.size
        self._kept = bound, tape
        self._otherwise = _FALLBACK(_filling(otherwise, vector.size, kept))
        self._block = block_of(self._otherwise, bound)
        _build(module, sweep, program, (vector.size, kept), ctypes.addressof(self._block))
        self._native = compile_module(str(module))
        self.address: int = self._native.address(NAME)


class PythonExpansion(Addressed):
    """The same through Python, for what is not compiled: ``call(x)`` gives `kept` numbers."""

    def __init__(self, length: int, kept: int, call: Callable[[np.ndarray], np.ndarray]):
        fill = _filling(call, length, kept)

        def function(dim: int, size: int, x: int, out: int, data: int) -> int:
            return fill(x, out) if (dim, size) == (length, kept) else WRONG_LENGTH
        self._function = _WHOLE(function)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0


class CopiedVector(Addressed):
    """Keeps the vector itself."""

    def __init__(self, native: Any):
        self._native, self.address = native, native.address(COPY)


def _filling(call: Callable[[np.ndarray], np.ndarray], length: int, kept: int) -> Callable[[int, int], int]:
    def fill(x: int, out: int) -> int:
        target = np.ctypeslib.as_array((ctypes.c_double * kept).from_address(out))
        try:
            target[:] = in_python(call, np.ctypeslib.as_array((ctypes.c_double * length).from_address(x)).copy())
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
        leave_unless(builder, builder.icmp_unsigned("==", given, INT64(wanted)), INT64(WRONG_LENGTH))
    status = builder.call(sweep, [x, *bound_words(builder, data, program), out])
    serve_otherwise(builder, status, data, [x, out])
    builder.ret(INT64(0))


@once
def copying() -> CopiedVector:
    """The function that keeps the vector itself; made once for all models."""
    module = ir.Module()
    vector = DOUBLE.as_pointer()
    function = ir.IRFunction(module, INT64, [INT64, INT64, vector, vector, INT64.as_pointer()], COPY)
    dim, kept, x, out, _ = function.args
    builder = IRBuilder(function, function.append_basic_block())
    leave_unless(builder, builder.icmp_unsigned("==", dim, kept), INT64(WRONG_LENGTH))
    entry = builder.block
    head, body, done = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
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
    return CopiedVector(compile_cached(module, "(copied vector)"))
