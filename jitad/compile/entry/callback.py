"""The kernel as a C function of one vector, with everything else bound: what samplers call.

``int64 f(uint64 dim, double* x, double* grad, double* logp, void* data)``. The callback serves the points that the
kernel does not (another way through the user's branches, say); it alone takes the GIL.
"""
from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
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
from jitad.compile.llvm.object_cache import compile_cached
from jitad.compile.loops import STATUS_LINALG, Program
from jitad.passes.optimise.guards import asks
from jitad.tape.tape import Tape

NAME = "jitad_callback"
RAISED, NOT_FINITE = -2, 1
_FALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Callback(Addressed):
    """`address` and `data` of the C function of a tape with outputs (value, gradient).

    `inputs` are the tape's inputs, of which the first is the one that varies;
    `otherwise(x) -> (value, gradient)` serves what the kernel does not, and `name` is the function's; `parallel` as for
    `Kernel`. The object keeps the code and the bound arrays alive; it must outlive every call. Of a batch there are
    several values, one for each example, and the array that varies has any shape.
    """

    def __init__(self, tape: Tape, inputs: Sequence[Any], otherwise: Callable[[np.ndarray], tuple[Any, np.ndarray]],
                 name: str, parallel: bool = False):
        vector, bound = in_orders(inputs)
        module = ir.Module()
        program, sweep = sweep_of(tape, [vector, *bound], module, parallel)
        values = tape.nodes[tape.outputs[0]].aval.size
        _build(module, sweep, program, vector.size, values, branches=asks(tape))
        self._native = compile_cached(module, name, tape.nodes)
        self._kept = bound
        self._tape = tape                                # and the Python code that it may call
        self._otherwise = _FALLBACK(_fallback(otherwise, vector.shape, values))
        self._block = block_of(self._otherwise, bound)
        self.address: int = self._native.address(NAME)
        self.data: int = ctypes.addressof(self._block)


class PythonCallback(Addressed):
    """The same for what is called through Python, whatever it is: ``call(x) -> (value, gradient)`` of a vector of
    `length`. It takes the GIL."""

    def __init__(self, length: int, call: Callable[[np.ndarray], tuple[Any, np.ndarray]]):
        serve = _fallback(call, (length,), 1)

        def function(dim: int, x: int, grad: int, value: int, data: int) -> int:
            return serve(x, grad, value) if dim == length else WRONG_LENGTH
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(function)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        self.data = 0


def _fallback(otherwise: Callable[[np.ndarray], tuple[Any, np.ndarray]], shape: tuple[int, ...],
              values: int) -> Callable[..., int]:
    """`otherwise` on raw pointers. Where the function refuses a point (`ValueError`, `ArithmeticError`,
    `LinAlgError`), it has no density there; any other error is printed and fatal."""
    def array(address: int, *sizes: int) -> np.ndarray:
        return np.ctypeslib.as_array((ctypes.c_double * math.prod(sizes)).from_address(address)).reshape(sizes)

    def call(x: int, grad: int, value: int) -> int:
        try:
            logp, gradient = in_python(otherwise, array(x, *shape).copy())
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return NOT_FINITE
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            return RAISED
        array(value, values)[:] = logp
        array(grad, *shape)[...] = gradient
        return 0 if np.isfinite(logp).all() and np.isfinite(gradient).all() else NOT_FINITE
    return call


def _build(module: ir.Module, sweep: ir.IRFunction, program: Program, length: int, values: int, branches: bool) -> None:
    """`branches`: a factorization that fails may be another way through the user's code."""
    vectors = DOUBLE.as_pointer()
    function = ir.IRFunction(module, INT64, [INT64, vectors, vectors, vectors, INT64.as_pointer()], NAME)
    dim, x, grad, value, data = function.args
    builder = IRBuilder(function, function.append_basic_block())
    leave_unless(builder, builder.icmp_unsigned("==", dim, INT64(length)), INT64(WRONG_LENGTH))
    results = [grad, value] if program.results else [value, grad]       # arrays in their order, then numbers
    status = builder.call(sweep, [x, *bound_words(builder, data, program), *results])
    if not branches:
        leave_unless(builder, builder.icmp_signed("!=", status, INT64(STATUS_LINALG)), INT64(NOT_FINITE))
    serve_otherwise(builder, status, data, [x, grad, value])
    found = _differences(builder, grad, length, _differences(builder, value, values, INT64(0)))
    builder.ret(builder.select(builder.icmp_signed("==", found, INT64(0)), INT64(0), INT64(NOT_FINITE)))


def _differences(builder: IRBuilder, array: Any, length: int, start: Any) -> Any:
    """The bits of `start` and of x - x for each x of an array: none is set if all are finite."""
    before = builder.block
    head, body, done = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    index, total = builder.phi(INT64), builder.phi(INT64)
    builder.cbranch(builder.icmp_signed("<", index, INT64(length)), body, done)
    builder.position_at_end(body)
    x = builder.load(builder.gep(array, [index]))
    following = builder.or_(total, builder.bitcast(builder.fsub(x, x), INT64))
    index.add_incoming(INT64(0), before)
    total.add_incoming(start, before)
    index.add_incoming(builder.add(index, INT64(1)), body)
    total.add_incoming(following, body)
    builder.branch(head)
    builder.position_at_end(done)
    return total
