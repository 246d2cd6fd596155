"""From a program to something that Python calls.

The sweep and the built-in function around it, which takes the arguments apart and makes the results, are one module,
compiled by LLVM. The function checks types, layouts and shapes itself; nothing else is on the warm path. Kernels are
re-entrant, and release the GIL where the work is worth it.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jitad.compile.emit.llvm import emit_llvm
from jitad.compile.emit.python import emit_python
from jitad.compile.entry.arguments import ArgumentType, layout_of
from jitad.compile.entry.call import python_function
from jitad.compile.entry.emit import emit_entry
from jitad.compile.entry.layout import Layout, UnknownLayout, layout
from jitad.compile.entry.relay import relaying
from jitad.compile.llvm.ir import Module
from jitad.compile.llvm.native import Native, compile_module
from jitad.compile.loops import CallRoutine, Calls, Loop, Program, Statement
from jitad.compile.outline.outline import outlined
from jitad.compile.parallel.divide import program_for
from jitad.primitives.custom import has_code
from jitad.tape.tape import Tape

SWEEP = "jitad_sweep"


@dataclass(eq=False)
class Kernel:
    """The compiled form of one tape for arguments of one layout.

    It is `quick` to compile, or its long loops run on several cores (`parallel`).
    `call(*inputs)` returns the outputs (arrays fresh, 0-d ones as numbers), a tuple if
    there are several. Raises `kernel_errors.Miss` if an argument's type or shape is not the tape's.
    """

    tape: Tape
    kinds: tuple[ArgumentType, ...]
    seconds: float = 0.0
    saved: bool = False
    quick: bool = False
    parallel: bool = False

    @property
    def tier(self) -> str:
        return "machine" if self.quick else "kernel"

    @cached_property
    def program(self) -> Program:
        layouts = tuple(map(layout_of, self.kinds))
        return outlined(self.tape, layouts) if self.quick else program_for(self.tape, layouts, self.parallel)

    @cached_property
    def source(self) -> str:
        """The kernel as Python source, to be read; runs as plain Python too."""
        return emit_python(self.program)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The kernel as Python calls it."""
        start = time.perf_counter()
        if self._layout is not None:
            made = python_function(self.native)
        else:
            from jitad.compile.entry.numba_entry import numba_function

            made = numba_function(self.program, self.kinds, self.arrays, self.native.address(SWEEP))
        self.seconds = time.perf_counter() - start
        return relaying(made, self.tape) if has_code(self.tape.nodes) else made

    def counting(self, *options: Any) -> Callable[..., Any] | None:
        """`call`, made again with options of `python_function`; None where it is not the machine code alone."""
        return python_function(self.native, *options) if self.exact and not has_code(self.tape.nodes) else None

    @cached_property
    def native(self) -> Native:
        """The machine code: the sweep, and the way in from Python where objects are as we know them."""
        module = Module()
        sweep = emit_llvm(self.program, module, SWEEP)
        if self._layout is not None:
            emit_entry(self.program, self.kinds, self.arrays, sweep, self._layout)
        return self.compiled_from(module)

    def compiled_from(self, module: Module) -> Native:
        return compile_module(module)

    @cached_property
    def _layout(self) -> Layout | None:
        try:
            return layout()
        except UnknownLayout:
            return None

    @property
    def operations(self) -> int:
        """How many calls of pieces there are."""
        return sum(len(s.rows) for s in self.program.body if isinstance(s, Calls))

    @property
    def routines(self) -> bool:
        """Whether the code calls LAPACK or BLAS."""
        return _calls(self.program.body)

    @property
    def exact(self) -> bool:
        """Whether `call` tells subclasses of arrays, and kinds of numbers, by itself."""
        return self._layout is not None

    @property
    def nbytes(self) -> int:
        """Machine code and constants."""
        return self.native.nbytes

    @property
    def arrays(self) -> list[bool]:
        """For each output whether it is an array; the others are numbers."""
        return [self.tape.nodes[o].aval.ndim > 0 for o in self.tape.outputs]


def _calls(body: Iterable[Statement]) -> bool:
    return any(isinstance(s, CallRoutine) or (isinstance(s, Loop) and _calls(s.body)) or (
        isinstance(s, Calls) and any(_calls(p.body) for p in s.pieces)) for s in body)
