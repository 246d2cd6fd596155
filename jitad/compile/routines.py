"""Routines of the runtime: factorizations and BLAS on whole row-major arrays."""
from __future__ import annotations

from typing import Any


def build_routine(emitter: Any, name: str, pointers: list[Any], numbers: tuple[int, ...]) -> Any:
    """LLVM code for ``name(*pointers, *numbers)``; the value is the status."""
    raise NotImplementedError(name)
