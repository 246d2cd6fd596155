"""From a program to something that Python calls: the only room that imports numba.

The sweep itself is compiled by LLVM alone. Around it numba compiles a thin function
that takes the arrays apart, checks their shapes, allocates the results and
calls the sweep; types are checked by numba's dispatcher, and nothing else is on
the warm path. Kernels release the GIL and are re-entrant.
"""
from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from jitad.compile.emit_llvm import MEMORY, emit_llvm, function_type
from jitad.compile.emit_python import emit_python
from jitad.compile.fuse import fuse
from jitad.compile.loops import Buffer, Program
from jitad.compile.lower import lower
from jitad.compile.native import Native, compile_module
from jitad.compile.prepare import prepare
from jitad.tape import Tape

SWEEP = "jitad_sweep"


class Miss(Exception):
    """A kernel does not serve this call; the caller looks further."""


class SignatureMiss(Miss):
    """Another shape or type of an argument."""


class StatusMiss(Miss):
    """The kernel stopped: an index out of bounds or a factorization that failed."""


def argument_type(value: Any) -> types.Type:
    """numba's type of an argument: dtype, dimensions, layout and whether it may be written."""
    return numba.typeof(value)


def layout_of(kind: types.Type) -> str:
    return kind.layout if isinstance(kind, types.Array) else "number"


@dataclass(eq=False)
class Kernel:
    """The compiled form of one tape for arguments of one layout.

    `call(*inputs)` returns the outputs (arrays fresh, 0-d ones as numbers), a tuple if
    there are several. Raises `Miss` if an argument's type or shape is not the tape's.
    """

    tape: Tape
    kinds: tuple[types.Type, ...]
    seconds: float = 0.0

    @cached_property
    def program(self) -> Program:
        layouts = tuple(map(layout_of, self.kinds))
        prepared = prepare(self.tape, layouts)
        return lower(fuse(prepared, layouts), layouts)

    @cached_property
    def source(self) -> str:
        """The kernel as Python source, to be read; runs as plain Python too."""
        return emit_python(self.program)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The kernel as Python calls it: a numba dispatcher for exactly the types `kinds`."""
        start = time.perf_counter()
        namespace: dict[str, Any] = {"np": np, "SignatureMiss": SignatureMiss, "StatusMiss": StatusMiss,
                                     "sweep": _sweep(self.program, self.native)}
        exec(compile(self._call_source(), "<jitad kernel>", "exec"), namespace)
        dispatcher = numba.njit(nogil=True, error_model="numpy")(namespace["call"])
        dispatcher.compile(self.kinds)
        dispatcher._compile_for_args = _refuse       # exact types only: a mismatch is ours to handle
        self.seconds = time.perf_counter() - start
        return dispatcher

    @cached_property
    def native(self) -> Native:
        """The machine code of the sweep."""
        module = ir.Module(name="jitad")
        emit_llvm(self.program, module, SWEEP)
        return compile_module(module)

    def _call_source(self) -> str:
        program = self.program
        names = [p.name if isinstance(p, Buffer) else p[0] for p in program.parameters]
        arrays = [p for p in program.parameters if isinstance(p, Buffer)]
        tests = [f"{b.name}.shape[{d}] != {n}" for b in arrays for d, n in enumerate(b.shape)]
        lines = [f"def call({', '.join(names)}):"]
        if tests:
            lines += [f"    if {' or '.join(tests)}:", "        raise SignatureMiss"]
        lines += [f"    {b.name} = np.empty({b.shape}, np.{_dtype(b)})" for b in program.outputs]
        lines += [f"    result = sweep({', '.join([*names, *(b.name for b in program.outputs)])})",
                  "    if result[0] != 0:", "        raise StatusMiss"]
        outs, scalars = iter(program.outputs), itertools.count(1)
        returned = [next(outs).name if self.tape.nodes[o].aval.ndim else f"result[{next(scalars)}]"
                    for o in self.tape.outputs]
        lines.append(f"    return {returned[0]}" if len(returned) == 1 else f"    return ({', '.join(returned)})")
        return "\n".join(lines)



def _dtype(b: Buffer) -> str:
    from jitad.compile.loops import DTYPE_TAGS

    return {v: k for k, v in DTYPE_TAGS.items()}[b.dtype] if b.dtype != "b1" else "bool_"


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise SignatureMiss


def _sweep(program: Program, native: Native) -> Any:
    """The program as a function for numba code: ``(status, *scalar results)``."""
    results = types.Tuple((types.int64, *(_number_type(r.dtype) for r in program.results)))
    address = native.address(SWEEP)

    def sweep(typingctx: Any, *arguments: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pointer = function_type(program).as_pointer()
            function = builder.inttoptr(ir.Constant(ir.IntType(64), address), pointer)
            raw = _raw_arguments(context, builder, program, arguments,
                                 cgutils.unpack_tuple(builder, values[0]))
            slots = [cgutils.alloca_once(builder, MEMORY[r.dtype]) for r in program.results]
            status = builder.call(function, [*raw, *slots])
            found = [status] + [_from_memory(builder, builder.load(s), r.dtype)
                                for s, r in zip(slots, program.results, strict=True)]
            return context.make_tuple(builder, signature.return_type, found)

        return results(types.StarArgTuple(arguments)), codegen

    return intrinsic(sweep)


def _number_type(dtype: str) -> types.Type:
    return {"f8": types.float64, "f4": types.float32, "b1": types.boolean}.get(
        dtype) or getattr(types, {"i": "int", "u": "uint"}[dtype[0]] + str(8 * int(dtype[1])))


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
