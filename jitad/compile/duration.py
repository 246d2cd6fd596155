"""How long a program may take, within a factor of a few."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from jitad.compile.loops import (
    Accumulator,
    Buffer,
    CallRoutine,
    Calls,
    Combine,
    Fill,
    Let,
    Loop,
    Portions,
    Program,
    Return,
    SetElement,
    Statement,
    Transpose,
    Update,
)
from jitad.tape.expr import Expr

OPERATION, FUNCTION = 0.3, 2.5        # ns for arithmetic and for a math function
LANES = 4                             # how many of them at once in a loop
CHEAP = frozenset("const var load add sub mul neg abs lt le gt ge eq ne and or xor not select cast min bits unbits "
                  "copysign shl ashr lshr floor ceil trunc rint".split())


def estimated_time(program: Program) -> float:
    """ns that a sweep may take, within a factor of a few."""
    return time_of(program.body, sizes_of(program))


def sizes_of(program: Program) -> dict[str, int]:
    """How many elements each buffer has."""
    return {b.name: b.size for b in (*program.parameters, *program.outputs, *program.buffers) if isinstance(b, Buffer)}


def time_of(body: Iterable[Statement], sizes: Mapping[str, int], block: int = 64) -> float:
    """The same of statements, on one core; `block` steps for a loop whose bounds are not known."""
    total, seen = 0.0, set[Expr]()
    for s in body:
        if isinstance(s, Portions):
            total += s.time
        elif isinstance(s, Loop):
            if isinstance(s.start, int) and isinstance(s.stop, int):
                turns = -(-(s.stop - s.start) // s.step)
            else:
                turns = block
            share = 1 if any(isinstance(inner, Loop) for inner in s.body) else LANES
            total += max(turns, 0) * time_of(s.body, sizes, s.step if s.step > 1 else block) / share
        elif isinstance(s, CallRoutine):
            total += 150 + 0.1 * max((sizes[b] for b in s.buffers), default=0) ** 1.5
        elif isinstance(s, Calls):
            total += sum(20 + 0.5 * max([a for a in given if isinstance(a, int)], default=1) for _, given in s.rows)
        elif isinstance(s, Transpose):
            total += 0.2 * s.rows * s.columns
        elif isinstance(s, Fill):
            total += 0.1 * sizes[s.buffer]
        elif isinstance(s, (Let, Combine, SetElement, Update)):
            total += _expression(s.expr, seen)
        elif isinstance(s, Accumulator):
            total += _expression(s.first, seen)
        elif isinstance(s, Return):
            total += _expression(s.condition, seen)
    return total


def _expression(e: Expr, seen: set[Expr]) -> float:
    total, stack = 0.0, [e]
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            total += OPERATION if e.op in CHEAP else FUNCTION
            stack += [a for a in e.args if a.__class__ is Expr]
    return total
