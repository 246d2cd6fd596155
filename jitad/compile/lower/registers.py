"""Sums that a loop adds at one place of memory, kept in variables while it runs.

An addition to memory is made in order, and the next one waits for it; of a variable that is added to, LLVM may make one
for each vector lane. So the loop over rows that are written out runs in vector lanes across the rows.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from jitad.compile.loops import Accumulator, Combine, Let, Loop, SetElement, Statement, Update
from jitad.compile.lower.unroll_and_jam import depends, expressions, loads
from jitad.tape.expr import Expr, const, var


def in_registers(loop: Loop, unique: Callable[[str], str]) -> list[Statement]:
    """`loop` with what it adds at places that stay the same added up before it goes to memory; `unique` makes names."""
    if not all(isinstance(s, (Let, Accumulator, Combine, SetElement, Update)) for s in loop.body):
        return [loop]
    inside = {s.name for s in loop.body if isinstance(s, (Let, Accumulator, Combine))}
    touched = _touched(loop.body)
    found: dict[tuple[str, tuple[Expr, ...]], str] = {}
    kept: dict[str, bool] = {}
    for s in loop.body:
        if isinstance(s, (SetElement, Update)):
            fixed = isinstance(s, Update) and s.op == "add" and s.expr.dtype in ("f8", "f4") and not any(
                loads(i) or depends(i, loop.variable, inside) for i in s.index)
            kept[s.buffer] = kept.get(s.buffer, s.buffer not in touched) and fixed
    before: list[Statement] = []
    body: list[Statement] = []
    after: list[Statement] = []
    for s in loop.body:
        if not (isinstance(s, Update) and kept[s.buffer]):
            body.append(s)
            continue
        name = found.get((s.buffer, s.index))
        if name is None:
            name = found[s.buffer, s.index] = unique(f"{s.buffer}_part")
            before.append(Accumulator(name, const(-0.0, s.expr.dtype)))
            after.append(Update(s.buffer, s.index, "add", var(name, s.expr.dtype)))
        body.append(Combine(name, "add", s.expr))
    return [*before, Loop(loop.variable, loop.start, loop.stop, body, loop.step), *after]


def _touched(body: Sequence[Statement]) -> set[str]:
    """The buffers that are read."""
    return {e.args[0] for s in body for expr in expressions(s) for e in loads(expr)}      # type: ignore[misc]
