"""The way from Python into a kernel of which only some inputs vary; the others are bound once.

The built-in function takes the free arguments alone and looks at those alone. The bound ones are words behind the
table of addresses: that of an array's data, or a number. What the kernel does not serve (other arguments, keywords, a
status) goes to a Python function.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitad.compile.emit.llvm import MEMORY, emit_llvm
from jitad.compile.entry.arguments import ArgumentType, argument_type, layout_of
from jitad.compile.entry.call import python_function
from jitad.compile.entry.emit import EntryWriter, declare_entry
from jitad.compile.entry.kernel import SWEEP, Kernel
from jitad.compile.entry.kernel_errors import KernelMiss
from jitad.compile.entry.layout import CELLS, WORD, UnknownLayout, layout
from jitad.compile.entry.relay import raising
from jitad.compile.llvm import ir
from jitad.compile.llvm.ir import INT64
from jitad.compile.llvm.native import Native
from jitad.compile.llvm.object_cache import compile_cached
from jitad.compile.loops import Buffer, Program
from jitad.compile.parallel.divide import program_for
from jitad.primitives.custom import has_code
from jitad.tape.tape import Tape


def word(x: Any) -> bytes:
    """How bound data is handed over: the address of an array's elements, or a number."""
    if isinstance(x, np.ndarray):
        return struct.pack("N", x.ctypes.data)
    return np.asarray(x).tobytes().ljust(WORD, b"\0")


def in_order(x: Any) -> Any:
    """An array that a kernel can read where it is: C or Fortran order; others are copied."""
    if not isinstance(x, np.ndarray) or (x.flags.aligned and (x.flags.c_contiguous or x.flags.f_contiguous)):
        return x
    return np.array(x, order="C")


def order_of(x: Any) -> str:
    """How bound data lies in memory, as the compiler wants to know it."""
    if not isinstance(x, np.ndarray):
        return "number"
    return "C" if x.flags.c_contiguous else "F"


class BoundKernel:
    """The compiled form of a tape whose `free` first inputs vary; `kinds` are those of all inputs.

    The code knows nothing of the bound data but shapes and order, so it serves any number of them. `parallel` as for
    `Kernel`.
    """

    saved = True

    def __init__(self, tape: Tape, kinds: tuple[ArgumentType, ...], free: int, name: str, parallel: bool = False):
        self.tape, self.kinds, self.free, self.name, self.parallel = tape, kinds, free, name, parallel
        self.program: Program = program_for(tape, tuple(map(layout_of, kinds)), parallel)

    @cached_property
    def _native(self) -> Native | None:
        try:
            at = layout()
        except UnknownLayout:
            return None
        module = ir.Module()
        sweep = emit_llvm(self.program, module, SWEEP)
        function = declare_entry(module)
        arrays = [self.tape.nodes[o].aval.ndim > 0 for o in self.tape.outputs]
        _BoundEntry(self.program, function, sweep, at, self.free).run(self.kinds, arrays)
        return compile_cached(module, self.name, self.tape.nodes)

    @property
    def nbytes(self) -> int:
        """Machine code and constants."""
        return self._native.nbytes if self._native is not None else 0

    def function(self, data: Sequence[Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel of the free inputs, with `data` for the others, which must not be written from now on;
        `otherwise` is called with what the kernel does not serve."""
        native = self._native
        if has_code(self.tape.nodes):
            otherwise = raising(otherwise, self.tape)
        if native is not None:
            return python_function(native, None, otherwise, data=(b"".join(map(word, data)), data))
        kernel = Kernel(self.tape, self.kinds, parallel=self.parallel).call

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if not kwargs and len(args) == self.free and argument_kinds(args) == self.kinds[:self.free]:
                    return kernel(*args, *data)
            except KernelMiss:
                pass
            return otherwise(*args, **kwargs)
        return call


def argument_kinds(values: Sequence[Any]) -> tuple[ArgumentType, ...] | None:
    """The kinds of arguments; None if there is one that no kernel takes."""
    try:
        return tuple(map(argument_type, values))
    except TypeError:
        return None


class _BoundEntry(EntryWriter):
    """An entry that takes the `free` first inputs as arguments and the others from behind the table."""

    def __init__(self, program: Program, function: ir.IRFunction, sweep: ir.IRFunction, at: Any, free: int):
        super().__init__(program, function, sweep, at)
        self.free = free

    def arguments(self, kinds: Sequence[ArgumentType]) -> list[Any]:
        self.counted(self.free)
        raw: list[Any] = []
        for number, (p, kind) in enumerate(zip(self.program.parameters, kinds, strict=True)):
            if number >= self.free:
                dtype = MEMORY[p.dtype].as_pointer() if isinstance(p, Buffer) else MEMORY[p[1]]
                place = self.at.table + WORD * (len(CELLS) + number - self.free)
                raw.append(self.load(self.holder, place, dtype))
                continue
            value = self.builder.load(self.builder.gep(self.args, [INT64(number)]))
            raw += self.array(value, kind, p) if isinstance(p, Buffer) else [self.number(value, kind, p[1])]
        return raw
