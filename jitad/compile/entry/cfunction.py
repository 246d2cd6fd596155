"""C functions that samplers call: what those for values and gradients and those for what is kept of a draw share.

Bound inputs lie behind the address of a Python callback, one word each: the address of an array, or a number. The
callback serves what the kernel does not.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.compile.emit.llvm import MEMORY, emit_llvm
from jitad.compile.entry.bound import in_order, order_of, word
from jitad.compile.llvm import ir
from jitad.compile.llvm.builder import IRBuilder
from jitad.compile.llvm.ir import DOUBLE, INT8, INT64
from jitad.compile.llvm.native import object_file
from jitad.compile.llvm.symbols import named_in
from jitad.compile.llvm.workspace import standalone
from jitad.compile.loops import Buffer, Program
from jitad.compile.parallel.divide import program_for
from jitad.compile.routines.opaque import taken
from jitad.errors import UnsupportedOperationError
from jitad.primitives.custom import has_code
from jitad.tape.tape import Tape

WRONG_LENGTH = -1


class Addressed:
    """`address` of a C function, which must outlive every call."""

    address: int

    def __reduce__(self) -> Any:
        raise TypeError("a C function belongs to its process and is not copied or pickled; pickle the compiled tape, "
                        "and take its `cfunc` there")


def sweep_of(tape: Tape, inputs: Sequence[Any], module: ir.Module, parallel: bool) -> tuple[Program, ir.IRFunction]:
    """The program of a tape for inputs that lie in memory as these do, and its function in a module."""
    program = program_for(tape, tuple(map(order_of, inputs)), parallel)
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


# --- functions that need no Python ----------------------------------------------------------------------------

def object_code(functions: Mapping[str, tuple[Tape, Sequence[Any]]], linked: Collection[str] = ()) -> bytes:
    """An object file with a C function for each tape with its inputs, of which the first varies:
    ``int64 name(double* x, double* output, ...)``, its outputs in the order of the tape's. The other inputs are
    constants in the file. The status is 0, or that of the kernel.

    Raises `UnsupportedOperationError` for what calls code of this process, Python, SciPy, LAPACK, unless it is `linked`
    to the file.
    """
    module = ir.Module()
    for name, (tape, inputs) in functions.items():
        if has_code(tape.nodes):
            raise UnsupportedOperationError(f"`{name}` calls Python code (opaque functions), which an object file "
                                            "cannot have; write it in NumPy")
        _standalone(module, name, tape, inputs)
    ours = standalone()
    code = object_file(module, ours)
    foreign = sorted(named_in(code).keys() - ours.keys() - set(linked))
    if foreign or module.held:
        raise UnsupportedOperationError(
            f"the code calls {', '.join(foreign) or 'pieces of its own'}, which live in this process: an object file "
            "cannot have LAPACK's QR, eigenvalues and singular values, some of SciPy's functions, a kernel in pieces "
            "or, without a C compiler, large products, Cholesky and LU factors. There, call `cfunc` in Python")
    return code


def _standalone(module: ir.Module, name: str, tape: Tape, inputs: Sequence[Any]) -> None:
    vector, bound = in_orders(inputs)
    program = program_for(tape, tuple(map(order_of, (vector, *bound))), parallel=False)
    sweep = emit_llvm(program, module, f"{name}_sweep")
    sweep.linkage = "internal"
    outputs = [DOUBLE.as_pointer()] * len(tape.outputs)
    function = ir.IRFunction(module, INT64, [DOUBLE.as_pointer(), *outputs], name)
    builder = IRBuilder(function, function.append_basic_block())
    x, *given = function.args
    constants = [_constant(module, builder, f"{name}_data", parameter, value)
                 for parameter, value in zip(program.parameters[1:], bound, strict=False)]
    numbers = {output for output in tape.outputs if not tape.nodes[output].aval.shape} if program.results else set()
    ordered = sorted(range(len(given)), key=lambda i: tape.outputs[i] in numbers)       # arrays, then numbers
    builder.ret(builder.call(sweep, [x, *constants, *(given[i] for i in ordered)]))


def _constant(module: ir.Module, builder: IRBuilder, name: str, parameter: Any, value: Any) -> Any:
    """Bound data as a constant: the address of an array's elements, or a number."""
    kind = MEMORY[parameter.dtype if isinstance(parameter, Buffer) else parameter[1]]
    if not isinstance(parameter, Buffer):
        return kind(np.asarray(value).item())
    content = value.tobytes("A") or bytes(8)
    text = "".join(f"\\{byte:02x}" for byte in content)
    known = module.constant(module.unique(name), ir.IRConstant(ir.array(INT8, len(content)), f'c"{text}"', content), 64)
    return builder.bitcast(known, kind.as_pointer())
