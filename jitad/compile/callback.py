"""The kernel as a C function of one vector, with everything else bound: what samplers call.

``int64 f(uint64 dim, double* x, double* grad, double* logp, void* data)``. `data` points to
the address of a Python callback and one word for each bound input: the address of an array,
or a number. The callback serves the points that the kernel does not (another way through
the user's branches, say); it alone takes the GIL.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from jitad.compile.emit_llvm import MEMORY, emit_llvm
from jitad.compile.loops import STATUS_LINALG, Buffer, Program
from jitad.compile.lower import program_of
from jitad.compile.native import compile_module
from jitad.tape import Tape

NAME = "jitad_callback"
INT64, DOUBLE = ir.IntType(64), ir.DoubleType()
WRONG_LENGTH, RAISED, NOT_FINITE = -1, -2, 1
_FALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Callback:
    """`address` and `data` of the C function of a tape with outputs (value, gradient).

    `inputs` are the tape's inputs, of which number `vector` is the one that varies;
    `otherwise(x) -> (value, gradient)` serves what the kernel does not. The object keeps
    the code and the bound arrays alive; it must outlive every call.
    """

    def __init__(self, tape: Tape, inputs: Sequence[Any], vector: int,
                 otherwise: Callable[[np.ndarray], tuple[float, np.ndarray]]):
        bound = [np.ascontiguousarray(x) if isinstance(x, np.ndarray) and x.ndim else x for x in inputs]
        layouts = tuple("C" if isinstance(x, np.ndarray) else "number" for x in bound)
        program = program_of(tape, layouts)
        module = ir.Module(name="jitad")
        sweep = emit_llvm(program, module, "jitad_sweep")
        sweep.linkage = "internal"
        _build(module, sweep, program, vector, len(bound[vector]))
        self._native = compile_module(module, straight=program.straight or program.sequential)
        self._kept = [x for i, x in enumerate(bound) if i != vector]
        self._otherwise = _FALLBACK(_fallback(otherwise, len(bound[vector])))
        words = [ctypes.cast(self._otherwise, ctypes.c_void_p).value or 0, *(_word(x) for x in self._kept)]
        self._block = (ctypes.c_uint64 * len(words))(*words)
        self.address: int = self._native.address(NAME)
        self.data: int = ctypes.addressof(self._block)


def _fallback(otherwise: Callable[[np.ndarray], tuple[float, np.ndarray]], length: int) -> Callable[..., int]:
    """`otherwise` on raw pointers. Where the function refuses a point (`ValueError`, `ArithmeticError`,
    `LinAlgError`), it has no density there; any other error is printed and fatal."""
    def vector(address: int) -> np.ndarray:
        return np.ctypeslib.as_array((ctypes.c_double * length).from_address(address))

    def call(x: int, grad: int, value: int) -> int:
        try:
            logp, gradient = otherwise(vector(x).copy())
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return NOT_FINITE
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            return RAISED
        ctypes.c_double.from_address(value).value = logp
        vector(grad)[:] = gradient
        return 0 if np.isfinite(logp) and np.isfinite(gradient).all() else NOT_FINITE
    return call


def _word(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return x.ctypes.data
    number = np.asarray(x)
    return int.from_bytes(number.tobytes().ljust(8, b"\0"), "little")


def _build(module: ir.Module, sweep: ir.Function, program: Program, vector: int, length: int) -> None:
    vectors = DOUBLE.as_pointer()
    kind = ir.FunctionType(INT64, [INT64, vectors, vectors, vectors, INT64.as_pointer()])
    function = ir.Function(module, kind, NAME)
    dim, x, grad, value, data = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    _leave_unless(builder, builder.icmp_unsigned("==", dim, INT64(length)), INT64(WRONG_LENGTH))
    arguments: list[Any] = []
    place = 1
    for number, p in enumerate(program.parameters):
        if number == vector:
            arguments.append(x)
            continue
        word = builder.load(builder.gep(data, [INT64(place)]))
        place += 1
        arguments.append(_from_word(builder, word, p))
    status = builder.call(sweep, [*arguments, grad, value])
    _leave_unless(builder, builder.icmp_signed("!=", status, INT64(STATUS_LINALG)), INT64(NOT_FINITE))
    fine, otherwise = builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("==", status, INT64(0)), fine, otherwise)
    builder.position_at_end(otherwise)
    fallback = ir.FunctionType(INT64, [vectors, vectors, vectors]).as_pointer()
    builder.ret(builder.call(builder.inttoptr(builder.load(data), fallback), [x, grad, value]))
    builder.position_at_end(fine)
    builder.ret(builder.select(_all_finite(builder, value, grad, length), INT64(0), INT64(NOT_FINITE)))


def _from_word(builder: ir.IRBuilder, word: Any, p: Buffer | tuple[str, str]) -> Any:
    if isinstance(p, Buffer):
        return builder.inttoptr(word, MEMORY[p.dtype].as_pointer())
    kind = MEMORY[p[1]]
    if kind == DOUBLE:
        return builder.bitcast(word, kind)
    bits = 32 if kind == ir.FloatType() else kind.width
    narrow = builder.trunc(word, ir.IntType(bits)) if bits < 64 else word
    return builder.bitcast(narrow, kind) if kind == ir.FloatType() else narrow


def _leave_unless(builder: ir.IRBuilder, condition: Any, status: Any) -> None:
    fine, failed = builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(condition, fine, failed)
    builder.position_at_end(failed)
    builder.ret(status)
    builder.position_at_end(fine)


def _all_finite(builder: ir.IRBuilder, value: Any, grad: Any, length: int) -> Any:
    """x - x is zero for finite x alone; the sum of these is zero if all are."""
    first = builder.load(value)
    before = builder.block
    head, body, done = (builder.append_basic_block() for _ in range(3))
    start = builder.fsub(first, first)
    builder.branch(head)
    builder.position_at_end(head)
    index, total = builder.phi(INT64), builder.phi(DOUBLE)
    builder.cbranch(builder.icmp_signed("<", index, INT64(length)), body, done)
    builder.position_at_end(body)
    g = builder.load(builder.gep(grad, [index]))
    following = builder.fadd(total, builder.fsub(g, g), flags=("reassoc",))
    index.add_incoming(INT64(0), before)
    total.add_incoming(start, before)
    index.add_incoming(builder.add(index, INT64(1)), body)
    total.add_incoming(following, body)
    builder.branch(head)
    builder.position_at_end(done)
    return builder.fcmp_ordered("==", total, DOUBLE(0))
