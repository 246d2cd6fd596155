"""A kernel with a clock in it: between the groups of its plan the time is written down. For `g.profile` alone."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jitad.compile.entry.arguments import layout_of
from jitad.compile.entry.kernel import SWEEP, Kernel
from jitad.compile.llvm.ir import INT64, Module
from jitad.compile.llvm.native import Native, compile_module, processor
from jitad.compile.loops import Buffer, CallRoutine, Program
from jitad.compile.lower.lower import begin, finish, lower_group, plan_of
from jitad.compile.plan.fuse import FusionPlan
from jitad.compile.routines.code import RoutineCode, registered


@registered
def clock(code: RoutineCode, times: Any, place: int) -> None:
    """The time now, in ticks of the processor, at a place of `times`."""
    read = code.module.declare(f"llvm.{_counter()}", INT64, [])
    code.store(code.builder.call(read, []), times, place)


def _counter() -> str:
    """The counter that a program may read: on other processors than these, the one of cycles belongs to the system."""
    return "readcyclecounter" if "+sse2" in processor()[1] else "readsteadycounter"


@dataclass(eq=False)
class TimedKernel(Kernel):
    """The kernel of a tape on one core, whose last output is an array of times: when it begins, and when each group
    of its `plan` ends."""

    @cached_property
    def plan(self) -> FusionPlan:
        return plan_of(self.tape, self.layouts)

    @cached_property
    def layouts(self) -> tuple[str, ...]:
        return tuple(map(layout_of, self.kinds))

    @cached_property
    def parts(self) -> list[list[Any]]:
        """The statements of each group; filled by `program`."""
        return []

    @cached_property
    def program(self) -> Program:
        scope = begin(self.plan, self.layouts)
        times = Buffer(scope.unique("times"), "i8", (len(self.plan.groups) + 1,), "output")
        scope.body.append(CallRoutine(clock.__name__, (times.name,), (0,)))
        for number in range(len(self.plan.groups)):
            before = len(scope.body)
            lower_group(scope, number)
            self.parts.append(scope.body[before:])
            scope.body.append(CallRoutine(clock.__name__, (times.name,), (number + 1,)))
        program = finish(scope)
        return replace(program, outputs=(*program.outputs, times))

    @property
    def arrays(self) -> list[bool]:
        return [*super().arrays, True]

    @cached_property
    def shown(self) -> list[str]:
        """The optimised code in LLVM's language; filled by `call`."""
        return []

    def compiled_from(self, module: Module) -> Native:
        return compile_module(module, shown=self.shown)

    def lanes(self) -> list[int]:
        """For each group the numbers that LLVM computes at once in it; 1 where it found no way to."""
        text, = self.shown
        body = text[text.index(f"@{SWEEP}("):]
        pieces = re.split(rf"call i64 @llvm\.{_counter()}\(\)", body[:body.index("\n}")])
        return [_widest(piece) for piece in pieces[1:-1]]


def _widest(text: str) -> int:
    """Of the vectors of floating-point numbers that are computed with."""
    return max(map(int, re.findall(r"<(\d+) x (?:double|float)>", text)), default=1)


def routines_in(statements: Sequence[Any]) -> list[str]:
    """The routines that statements call, those in loops included."""
    found: dict[str, None] = {}
    for statement in statements:
        if isinstance(statement, CallRoutine):
            found[statement.routine] = None
        found.update(dict.fromkeys(routines_in(getattr(statement, "body", ()))))
    return list(found)
