"""The expansions of `jitad.compile.math` as functions that numba-compiled code may call."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic as numba_intrinsic

from jitad.compile.llvm.ir import FunctionType, Global
from jitad.compile.scalar.expressions import expansion

KINDS: dict[str, ir.Type] = {"double": ir.DoubleType(), "i64": ir.IntType(64), "i32": ir.IntType(32),
                             "ptr": ir.DoubleType().as_pointer(), "void": ir.VoidType()}


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
            value = builder.call(_known(builder.module, name, len(doubles)), doubles)
            return context.cast(builder, value, types.float64, result)

        return result(types.StarArgTuple(arguments)), codegen

    typer.__name__ = typer.__qualname__ = name
    return numba_intrinsic(typer)


class _Written:
    """What a module of numba's holds as text."""

    lines: str

    def __str__(self) -> str:
        return self.lines


class _Function(_Written, ir.Function):
    pass


class _Constant(_Written, ir.GlobalVariable):
    pass


def _known(module: ir.Module, name: str, arity: int) -> ir.Function:
    """The math function `name` in a module of numba's."""
    for known in expansion(name, arity, True):
        if known.name not in module.globals:
            _add(module, known)
    return module.globals[f"jitad.{name}" if f"jitad.{name}" in module.globals else f"jitad.{name}.call"]


def _add(module: ir.Module, known: Global) -> None:
    kind = known.type.pointee
    if not isinstance(kind, FunctionType):
        _Constant(module, ir.IntType(8), known.name).lines = known.lines
        return
    signature = ir.FunctionType(KINDS[kind.result.text], [KINDS[k.text] for k in kind.kinds])
    if known.name.startswith("llvm."):
        module.declare_intrinsic(known.name, fnty=signature)
    else:
        _Function(module, signature, known.name).lines = known.lines
