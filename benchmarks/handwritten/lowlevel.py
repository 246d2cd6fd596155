"""What the hand-written kernels need below plain numba: compiler settings and five small intrinsics.

``error_model='numpy'`` matters as much as the fast-math flags: with numba's default every division carries a branch to
ZeroDivisionError, and a loop with such an exit is not vectorised.
"""

import os
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

#: Decorator of elementary functions. They are inlined into loops with looser flags and keep their own.
strict = njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
#: Decorator of kernels. Without ``reassoc`` LLVM does not vectorise a reduction.
loop = njit(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
#: The same for pieces that several kernels share.
piece = njit(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy", forceinline=True)

#: Whether to ask LLVM for 512-bit vectors, which its tuning for most server processors avoids.
WIDE = os.environ.get("JITAD_BENCH_WIDE", "0") == "1"

#: Number of doubles in a ``stack_buffer``.
BUFFER = 512


@intrinsic
def as_bits(typingctx: Any, x: Any) -> Any:
    """The 64 bits of a double."""
    return types.int64(types.float64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def as_float(typingctx: Any, bits: Any) -> Any:
    """The double with these 64 bits."""
    return types.float64(types.int64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


@intrinsic
def stack_buffer(typingctx: Any) -> Any:
    """A pointer to ``BUFFER`` doubles on the stack.

    LLVM knows that no array overlaps them, and vectorises a loop that stores there while it gathers elsewhere.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        block = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), BUFFER))
        return builder.bitcast(block, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(), codegen


@intrinsic
def widen(typingctx: Any) -> Any:
    """Mark the surrounding function for 512-bit vectors if ``WIDE``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if WIDE:  # llvmlite's own add() knows only attributes without a value
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen


@intrinsic
def call_address(typingctx: Any, address: Any, dim: Any, x: Any, grad: Any, value: Any, data: Any) -> Any:
    """Call ``int64 f(uint64 dim, double* x, double* grad, double* value, void* data)`` at an address.

    Pointers travel as integers.
    """
    word = ir.IntType(64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.FunctionType(word, [word] * 5).as_pointer())
        return builder.call(pointer, args[1:])

    return types.int64(*[types.int64] * 6), codegen
