"""A kernel from an object file."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.entry.arguments import ArgumentType
from jitad.compile.entry.call import python_function
from jitad.compile.llvm import workspace  # noqa: F401  (tells how code finds its memory)
from jitad.compile.llvm.native import load_code
from jitad.compile.parallel import pool  # noqa: F401  (and its threads)


class StoredKernel:
    """What `Kernel` is to a call, without a tape. `exact` as there."""

    exact = saved = True
    quick = False
    seconds = 0.0
    tier = "kernel"

    def __init__(self, code: bytes, kinds: tuple[ArgumentType, ...], routines: bool):
        if routines:
            from jitad.compile.routines.table import register_symbols

            register_symbols()
        self.kinds, self.routines = kinds, routines
        self.native = load_code(code)
        self.call: Callable[..., Any] = python_function(self.native)

    def counting(self, *options: Any) -> Callable[..., Any]:
        """`call`, made again with options of `python_function`."""
        return python_function(self.native, *options)

    @property
    def nbytes(self) -> int:
        return self.native.nbytes
