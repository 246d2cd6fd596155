"""The expansions of `vectormath` as functions that numba-compiled code may call."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic as numba_intrinsic

from .scalar_llvm import call_by_name


@cache
def intrinsic(name: str) -> Callable[..., Any]:
    """The math function `name`, inlined where it is called.

    It computes in float64; float32 arguments alone give a float32 result,
    integers and booleans count as float64.
    """

    def typer(typingctx: Any, *arguments: Any) -> Any:
        kinds = [a if isinstance(a, types.Float) else types.float64 for a in arguments]
        if not all(isinstance(a, (types.Float, types.Integer, types.Boolean)) for a in arguments):
            return None
        result = types.float32 if all(k == types.float32 for k in kinds) else types.float64

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            packed = zip(cgutils.unpack_tuple(builder, values[0]), arguments, strict=True)
            doubles = [context.cast(builder, v, a, types.float64) for v, a in packed]
            return context.cast(builder, call_by_name(builder, name, doubles), types.float64, result)

        return result(types.StarArgTuple(arguments)), codegen

    typer.__name__ = typer.__qualname__ = name
    return numba_intrinsic(typer)
