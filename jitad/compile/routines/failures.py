"""Whether a routine fails: it runs into work memory, and its status is the result."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.compile.llvm.ir import INT8, INT64
from jitad.compile.routines.code import Index, RoutineCode


def failing(function_of: Callable[..., Any], code: RoutineCode, out: Any, *rest: Any) -> None:
    """For each example whether the routine that ``function_of(module, kinds, numbers)`` writes fails.

    `rest`: the operands; then, as numbers, how many examples, the elements of the result and of each operand of one
    example, and the numbers of the routine.
    """
    operands = [x for x in rest if not isinstance(x, (int, float))]
    count, size, *others = rest[len(operands):]
    sizes, numbers = others[:len(operands)], tuple(others[len(operands):])
    result = code.work(size, operands[0].type.pointee)
    function = function_of(code.module, [result.type, *(x.type for x in operands)], numbers)

    def each(i: Index) -> None:
        given = [code.at(x, code.mul(i, n)) for x, n in zip(operands, sizes, strict=True)]
        status = code.builder.call(function, [result, *given])
        failed = code.builder.icmp_signed("!=", status, INT64(0))
        code.store(code.builder.zext(failed, INT8), out, i)
    code.rolled(0, count, each)


__all__ = ["failing"]
