"""Generated source, run as it is and compiled by plain numba, to check the LLVM emitter."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from jitad.compile.emit.python import emit_python
from jitad.compile.llvm.builder import FREE_ORDER
from jitad.compile.loops import Program
from jitad.compile.reference import functions
from jitad.compile.reference.table import ROUTINES
from tests.helpers.numba_math import intrinsic

STATEMENTS = frozenset({"select", "logical_not", "quotient", "maximum", "minimum"})


def load_python(program: Program) -> Callable[..., Any]:
    """The program as a plain Python function over NumPy arrays."""
    namespace: dict[str, Any] = {}
    exec(compile(emit_python(program), "<jitad source>", "exec"), namespace)
    return namespace["sweep"]


def compile_python(program: Program) -> Callable[..., Any]:
    """The same source compiled by numba."""
    sweep = load_python(program)
    for name in sweep.__code__.co_names:
        if callable(sweep.__globals__.get(name)):
            sweep.__globals__[name] = _compiled(name)
    return numba.njit(error_model="numpy", nogil=True)(sweep)


def _compiled(name: str) -> Any:
    """numba's code for a function of `jitad.compile.reference.functions`."""
    if name in ROUTINES:
        return _called_back(ROUTINES[name])
    if name == "accumulate":
        return numba.njit(fastmath=set(FREE_ORDER.split()))(functions.accumulate)
    if name in STATEMENTS:
        return numba.njit(error_model="numpy")(getattr(functions, name))
    return intrinsic(name)


def _called_back(routine: Callable[..., int]) -> Any:
    """A routine that runs in the interpreter."""
    @numba.njit
    def call(*arguments: Any) -> Any:
        with numba.objmode(status="int64"):
            status = routine(*arguments)
        return status
    return call
