"""Hints for LLVM at loops: what it would take long to find out, or decides by registers alone.

A step that calls math functions is one long chain of operations that wait for each other, longer than a processor
looks ahead: two independent chains side by side keep it busy. LLVM thinks of registers first, and does so for short
chains only. And every copy of a step has to be compiled: where a loop is not unrolled, LLVM takes one vector at a time
too, which is enough but for very many steps. Copies of few long steps gain nothing, and take most of the time that a
large kernel takes to compile.
"""
from __future__ import annotations

import math

from jitad.compile.loops import TINY, Combine, Let, Loop, SetElement, Update
from jitad.compile.math.table import EXPANSIONS
from jitad.tape.expr import Expr

Hint = tuple[str, int | bool | None]       # its name below "llvm.loop", and its value
NO_LANES: Hint = ("vectorize.enable", False)
IN_PAIRS: Hint = ("interleave.count", 2)
NOT_UNROLLED: Hint = ("unroll.disable", None)

SHORT = 16        # steps up to which a loop may become straight code
LONG = 64         # steps from which pairs pay for steps that wait,
MANY = 1024       # and for those that do not
MOST = 3          # functions in a step, beyond which there is enough to do
COPIES, CODE = 8, 128                      # of a step, at most, and operations in them that are worth to be compiled
INNER, EXPANDED = 10, 40                   # operations that go with a loop, or a math function
CHAINS = frozenset("exp exp2 expm1 log log2 log10 log1p tanh expit log_expit softplus logaddexp log1p_exp exp_share "
                   "sin cos".split())
"""Others have independent parts of their own."""


def loop_hints(loop: Loop, inside: bool) -> list[Hint]:
    """The hints for a loop of a program. `inside`: it runs for each step of another (not of one over blocks)."""
    known = isinstance(loop.start, int) and isinstance(loop.stop, int)
    steps = (loop.stop - loop.start) // loop.step if known else math.inf         # type: ignore[operator]
    if steps < TINY:                                     # considering it takes LLVM long when the body is
        return [NO_LANES]
    alone = not inside and steps > SHORT and not any(isinstance(s, Loop) for s in loop.body)
    bulky = steps < LONG and min(steps, COPIES) * _length(loop) > CODE
    functions = _functions(loop) if steps >= LONG else MOST + 1
    paired = 0 < functions <= MOST or (functions == 0 and alone and steps >= MANY)
    return [IN_PAIRS] * paired + [NOT_UNROLLED] * (alone or bulky)


def _length(loop: Loop) -> int:
    """The operations in a step, about."""
    found = 0
    seen: set[int] = set()
    for s in loop.body:
        if isinstance(s, Loop):
            found += INNER + 2 * _length(s)
        elif isinstance(s, (Let, Combine, SetElement, Update)):
            stack = [s.expr]
            while stack:
                e = stack.pop()
                if id(e) not in seen:
                    seen.add(id(e))
                    found += EXPANDED if e.op in EXPANSIONS else 1
                    stack += [a for a in e.args if isinstance(a, Expr)]
        else:
            found += EXPANDED
    return found


def _functions(loop: Loop) -> int:
    """The math functions in a step; more than `MOST` if there is a large one, or anything but scalar statements."""
    found = 0
    seen: set[int] = set()
    for s in loop.body:
        if not isinstance(s, (Let, Combine, SetElement, Update)):
            return MOST + 1
        stack = [s.expr]
        while stack:
            e = stack.pop()
            if id(e) not in seen:
                seen.add(id(e))
                found += 0 if e.op not in EXPANSIONS else 1 if e.op in CHAINS else MOST + 1
                stack += [a for a in e.args if isinstance(a, Expr)]
    return found
