"""Which loops run two vectors at a time.

A step that calls math functions is one long chain of operations that wait for each other, longer than a processor
looks ahead: two independent chains side by side keep it busy. LLVM thinks of registers first, and does so for short
chains only.
"""
from __future__ import annotations

from jitad.compile.loops import Combine, Let, Loop, Store, Update
from jitad.compile.scalar import Expr
from jitad.compile.vectormath import EXPANSIONS

LONG = 64         # steps from which it pays
MOST = 3          # functions in a step, beyond which there is enough to do
CHAINS = frozenset("exp exp2 expm1 log log2 log10 log1p tanh expit log_expit softplus logaddexp log1p_exp exp_share "
                   "sin cos".split())
"""Others have independent parts of their own."""


def paired(loop: Loop) -> bool:
    """Whether the steps of `loop` call a math function, but not many nor large ones, and there are many steps."""
    if isinstance(loop.start, int) and isinstance(loop.stop, int) and loop.stop - loop.start < LONG:
        return False
    found = 0
    seen: set[int] = set()
    for s in loop.body:
        if not isinstance(s, (Let, Combine, Store, Update)):
            return False
        stack = [s.expr]
        while stack:
            e = stack.pop()
            if id(e) not in seen:
                seen.add(id(e))
                found += 0 if e.op not in EXPANSIONS else 1 if e.op in CHAINS else MOST + 1
                stack += [a for a in e.args if isinstance(a, Expr)]
    return 0 < found <= MOST
