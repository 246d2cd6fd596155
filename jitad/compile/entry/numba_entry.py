"""The way into a kernel where the layout of Python's objects is not known (see `layout`): through numba.

numba compiles a thin function that takes the arrays apart, checks their shapes, allocates the results and
calls the sweep. Slower to compile and to call; nothing else imports numba to run a kernel.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from jitad.compile.entry.arguments import ArgumentType, argument_type
from jitad.compile.entry.kernel_errors import SignatureMiss, StatusMiss
from jitad.compile.loops import DTYPE_TAGS, Buffer, Program

INT64 = ir.IntType(64)
MEMORY: dict[str, ir.Type] = {"f8": ir.DoubleType(), "f4": ir.FloatType(), "b1": ir.IntType(8), **{
    f"{sign}{size}": ir.IntType(8 * size) for sign in "iu" for size in (1, 2, 4, 8)}}


def numba_function(program: Program, kinds: tuple[ArgumentType, ...], outputs: Sequence[bool],
                   address: int) -> Callable[..., Any]:
    """The sweep at `address` as a Python function; `outputs` says of each output whether it is an array."""
    namespace: dict[str, Any] = {"np": np, "SignatureMiss": SignatureMiss, "StatusMiss": StatusMiss,
                                 "sweep": _sweep(program, address)}
    exec(compile(_source(program, outputs), "<jitad kernel>", "exec"), namespace)
    dispatcher = numba.njit(nogil=True, error_model="numpy")(namespace["call"])
    dispatcher.compile(tuple(map(_numba_type, kinds)))
    dispatcher.disable_compile()                     # and let it convert: all arrays are taken as read-only

    def call(*values: Any) -> Any:
        if kinds != tuple(map(_kind, values)):
            raise SignatureMiss
        return dispatcher(*values)
    return call


def _kind(value: Any) -> ArgumentType | None:
    try:
        if isinstance(value, int):
            return argument_type(value) if -2**63 <= value < 2**63 else None
        return argument_type(value)
    except TypeError:
        return None


def _numba_type(kind: ArgumentType) -> types.Type:
    element, order = numba.from_dtype(np.dtype(kind.dtype)), cast(Any, kind.order)
    return types.Array(element, kind.ndim, order, readonly=True, aligned=kind.aligned) if order else element


def _source(program: Program, outputs: Sequence[bool]) -> str:
    names = [p.name if isinstance(p, Buffer) else p[0] for p in program.parameters]
    arrays = [p for p in program.parameters if isinstance(p, Buffer)]
    tests = [f"{b.name}.shape[{d}] != {n}" for b in arrays for d, n in enumerate(b.shape)]
    lines = [f"def call({', '.join(names)}):"]
    if tests:
        lines += [f"    if {' or '.join(tests)}:", "        raise SignatureMiss"]
    lines += [f"    {b.name} = np.empty({b.shape}, np.{_NAMES[b.dtype]})" for b in program.outputs]
    lines += [f"    result = sweep({', '.join([*names, *(b.name for b in program.outputs)])})",
              "    if result[0] != 0:", "        raise StatusMiss"]
    outs, scalars = iter(program.outputs), itertools.count(1)
    returned = [next(outs).name if is_array else f"result[{next(scalars)}]" for is_array in outputs]
    lines.append(f"    return {returned[0]}" if len(returned) == 1 else f"    return ({', '.join(returned)})")
    return "\n".join(lines)


_NAMES = {tag: "bool_" if name == "bool" else name for name, tag in DTYPE_TAGS.items()}


def _sweep(program: Program, address: int) -> Any:
    """The program as a function for numba code: ``(status, *scalar results)``."""
    results = types.Tuple((types.int64, *(numba.from_dtype(np.dtype(_NAMES[r.dtype])) for r in program.results)))

    def sweep(typingctx: Any, *arguments: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            raw = _raw_arguments(context, builder, program, arguments,
                                 cgutils.unpack_tuple(builder, values[0]))
            slots = [cgutils.alloca_once(builder, MEMORY[r.dtype]) for r in program.results]
            pointer = ir.FunctionType(INT64, [v.type for v in (*raw, *slots)]).as_pointer()
            status = builder.call(builder.inttoptr(INT64(address), pointer), [*raw, *slots])
            found = [status] + [_from_memory(builder, builder.load(s), r.dtype)
                                for s, r in zip(slots, program.results, strict=True)]
            return context.make_tuple(builder, signature.return_type, found)

        return results(types.StarArgTuple(arguments)), codegen

    return intrinsic(sweep)


def _from_memory(builder: Any, value: Any, dtype: str) -> Any:
    return builder.icmp_unsigned("!=", value, value.type(0)) if dtype == "b1" else value


def _raw_arguments(context: Any, builder: Any, program: Program, kinds: Sequence[types.Type],
                   values: Sequence[Any]) -> list[Any]:
    """Pointers, and strides where the program wants them, of numba's arrays."""
    raw: list[Any] = []
    for p, kind, value in zip((*program.parameters, *program.outputs), kinds, values, strict=True):
        if not isinstance(p, Buffer):
            raw.append(builder.zext(value, MEMORY["b1"]) if p[1] == "b1" and value.type.width == 1 else value)
            continue
        array = context.make_array(kind)(context, builder, value)
        raw.append(array.data)
        if p.order == "A":
            raw += cgutils.unpack_tuple(builder, array.strides)
    return raw
