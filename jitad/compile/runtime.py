"""From a program to something that runs: the only room that imports numba.

A kernel has up to three faces on one function: `call` allocates its results,
`into` writes into the caller's arrays, and `callback` is a C function for
samplers. Shapes are checked inside the kernel, types by numba's dispatcher, and
nothing else is on the warm path. All faces release the GIL and are re-entrant.
"""
from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from jitad.compile.emit_llvm import MEMORY, emit_llvm
from jitad.compile.emit_python import emit_python
from jitad.compile.fuse import fuse
from jitad.compile.loops import Buffer, Program
from jitad.compile.lower import lower
from jitad.compile.prepare import prepare
from jitad.tape import Tape

OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
_serial = itertools.count()


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
    _lock: Any = field(default_factory=lambda: __import__("threading").Lock(), repr=False)

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
        return self._compile(self._call_source(allocate=True), self.kinds)

    @cached_property
    def into(self) -> Callable[..., Any]:
        """As `call`, with one C-ordered array for each array output after the inputs."""
        outs = tuple(types.Array(numba.from_dtype(_dtype(b)), len(b.shape), "C") for b in self.program.outputs)
        return self._compile(self._call_source(allocate=False), (*self.kinds, *outs))

    def _call_source(self, allocate: bool) -> str:
        program = self.program
        names = [p.name if isinstance(p, Buffer) else p[0] for p in program.parameters]
        outs = [b.name for b in program.outputs]
        checked = [p for p in (*program.parameters, *(() if allocate else program.outputs)) if isinstance(p, Buffer)]
        tests = [f"{b.name}.shape[{d}] != {n}" for b in checked for d, n in enumerate(b.shape)]
        lines = [f"def call({', '.join(names + ([] if allocate else outs))}):"]
        if tests:
            lines += [f"    if {' or '.join(tests)}:", "        raise SignatureMiss"]
        if allocate:
            lines += [f"    {b.name} = np.empty({b.shape}, np.{_dtype(b)})" for b in program.outputs]
        lines += [f"    result = sweep({', '.join(names + outs)})", "    if result[0] != 0:",
                  "        raise StatusMiss"]
        arrays, scalars = iter(outs), itertools.count(1)
        returned = [next(arrays) if self.tape.nodes[o].aval.ndim else f"result[{next(scalars)}]"
                    for o in self.tape.outputs]
        lines.append(f"    return {returned[0]}" if len(returned) == 1 else f"    return ({', '.join(returned)})")
        return "\n".join(lines)

    def _compile(self, source: str, kinds: tuple[types.Type, ...]) -> Callable[..., Any]:
        start = time.perf_counter()
        namespace: dict[str, Any] = {"np": np, "SignatureMiss": SignatureMiss, "StatusMiss": StatusMiss,
                                     "sweep": _sweep(self.program)}
        exec(compile(source, "<jitad kernel>", "exec"), namespace)
        dispatcher: Dispatcher = numba.njit(**OPTIONS)(namespace["call"])
        dispatcher.compile(kinds)
        dispatcher._compile_for_args = _refuse       # exact types only: a mismatch is ours to handle
        self.seconds += time.perf_counter() - start
        return dispatcher


def _dtype(b: Buffer) -> str:
    from jitad.compile.loops import DTYPE_TAGS

    return {v: k for k, v in DTYPE_TAGS.items()}[b.dtype] if b.dtype != "b1" else "bool_"


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise SignatureMiss


def _sweep(program: Program) -> Any:
    """The program as a function for numba code: ``(status, *scalar results)``."""
    results = types.Tuple((types.int64, *(_number_type(r.dtype) for r in program.results)))
    name = f"jitad_sweep_{next(_serial)}"

    def sweep(typingctx: Any, *arguments: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            function = emit_llvm(program, builder.module, name)
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
