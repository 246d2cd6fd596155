"""Four rows at a time: a loop over rows around a short loop along them becomes a loop over quadruples of rows.

A row by itself is a short chain of dependent operations with a sum across lanes at its end, or one more addition
onto the same few numbers in memory. Four rows side by side share what they read, keep the processor busy, and go
into memory once.
"""
from __future__ import annotations

from collections.abc import Sequence

from jitad.compile.loops import TINY, Accumulator, Combine, Let, Loop, SetElement, Statement, Update
from jitad.tape.expr import Expr, const, var

ROWS = 4
SHORTEST, LONGEST = 8, 512          # rows that gain: a vector or more, and four of them stay in the first-level cache
MOST = 12                           # statements in a row, beyond which there is enough to do
WRITTEN = 64                        # statements that a loop along a row may become


def jammed(loop: Loop) -> list[Statement]:
    """`loop`, in quadruples of steps and the rest if that is right and worth while."""
    place = next((k for k, s in enumerate(loop.body) if isinstance(s, Loop)), None)
    if place is None or loop.step != 1 or not _suits(loop, place):
        return [loop]
    inner: Loop = loop.body[place]                                  # type: ignore[assignment]
    copies = [_Copy(loop, k) for k in range(ROWS)]
    walk: list[Statement] = []
    for copy in copies:
        walk += copy.statements(loop.body[:place])
    walk.append(Loop(inner.variable, inner.start, inner.stop, _merged([c.statements(inner.body) for c in copies],
                                                                      loop, place)))
    for copy in copies:
        walk += copy.statements(loop.body[place + 1:])
    return _whole_and_rest(loop, walk, loop.body)


def in_turn(loop: Loop, lane: str) -> list[Statement]:
    """`loop`, whose steps are for the variable `lane` of 0 to 3 in turn, in quadruples of steps; the rest is for 0."""
    copies = [_Copy(loop, k) for k in range(ROWS)]
    for k, copy in enumerate(copies):
        copy.names[lane] = const(k, "i8")
    rest = _Copy(loop, 0)
    rest.names[lane] = const(0, "i8")
    return _whole_and_rest(loop, [s for copy in copies for s in copy.statements(loop.body)],
                           rest.statements(loop.body))


def written_out(loop: Loop) -> list[Statement]:
    """The steps of a short loop one after the other, so that the loop around it can run in vector lanes."""
    fewest = 2 if any(isinstance(s, Update) for s in loop.body) else TINY         # LLVM writes out those below
    if not (isinstance(loop.start, int) and isinstance(loop.stop, int) and fewest <= loop.stop - loop.start < SHORTEST):
        return [loop]
    steps = range(loop.start, loop.stop)
    if len(steps) * len(loop.body) > WRITTEN or not all(
            isinstance(s, (Let, Combine, SetElement, Update)) for s in loop.body):
        return [loop]
    result: list[Statement] = []
    for k in steps:
        copy = _Copy(loop, k)
        copy.names[loop.variable] = const(k, "i8")
        result += copy.statements(loop.body)
    return result


def _whole_and_rest(loop: Loop, walk: list[Statement], rest: Sequence[Statement]) -> list[Statement]:
    """`walk` in strides of four steps of `loop`, then `rest` for each step that is left."""
    if isinstance(loop.start, int) and isinstance(loop.stop, int):
        end: Expr | int = loop.stop - (loop.stop - loop.start) % ROWS
        before: list[Statement] = []
    else:
        start, stop = (e if isinstance(e, Expr) else const(e, "i8") for e in (loop.start, loop.stop))
        before = [Let(f"end_{loop.variable}", stop - Expr("mod", (stop - start, const(ROWS, "i8")), "i8"))]
        end = var(f"end_{loop.variable}", "i8")
    quadruples = Loop(loop.variable, loop.start, end, walk, step=ROWS)
    left = [] if end == loop.stop else [Loop(loop.variable, end, loop.stop, list(rest))]
    return [*before, quadruples, *left]


def _suits(loop: Loop, place: int) -> bool:
    """Whether steps may change places, and the inner loop is of the kind that gains."""
    inner: Loop = loop.body[place]                                  # type: ignore[assignment]
    if not (isinstance(inner.start, int) and isinstance(inner.stop, int) and inner.step == 1
            and SHORTEST <= inner.stop - inner.start <= LONGEST):
        return False
    if isinstance(loop.start, int) and isinstance(loop.stop, int) and loop.stop - loop.start < 4 * ROWS:
        return False
    around = [*loop.body[:place], *loop.body[place + 1:]]
    if len(around) + len(inner.body) > MOST or not all(
            isinstance(s, (Let, Accumulator, Combine, SetElement, Update)) for s in around) or not all(
            isinstance(s, (Let, Combine, Update)) for s in inner.body):
        return False
    everything = [*around, *inner.body]
    if any(isinstance(s, Combine) and s.op == "add_in_order" for s in everything):
        return False
    written = [s.buffer for s in everything if isinstance(s, (SetElement, Update))]
    read: set[str] = set()
    for s in everything:
        for e in expressions(s):
            read |= {load.args[0] for load in loads(e)}
    if len(set(written)) < len(written) or read & set(written):
        return False
    targets = [i for s in inner.body if isinstance(s, Update) for i in s.index]
    return not any(loads(i) for i in targets)


def expressions(s: Statement) -> Sequence[Expr]:
    if isinstance(s, Accumulator):
        return (s.first,)
    return (*s.index, s.expr) if isinstance(s, (SetElement, Update)) else (s.expr,)       # type: ignore[union-attr]


def loads(expr: Expr) -> list[Expr]:
    found, stack, seen = [], [expr], set()
    while stack:
        e = stack.pop()
        if id(e) not in seen:
            seen.add(id(e))
            if e.op == "load":
                found.append(e)
            stack += [a for a in e.args if isinstance(a, Expr)]
    return found


def depends(expr: Expr, name: str, known: set[str]) -> bool:
    stack, seen = [expr], {id(expr)}
    while stack:
        e = stack.pop()
        if e.op == "var" and (e.args[0] == name or e.args[0] in known):
            return True
        further = [a for a in e.args if isinstance(a, Expr) and id(a) not in seen]
        seen |= set(map(id, further))
        stack += further
    return False


class _Copy:
    """The statements of the step that is `further` ahead, with names of their own."""

    def __init__(self, loop: Loop, further: int):
        self.further, self.variable = further, loop.variable
        here = var(loop.variable, "i8")
        self.names: dict[str, Expr] = {loop.variable: here + further if further else here}
        self.memo: dict[Expr, Expr] = {}

    def statements(self, body: Sequence[Statement]) -> list[Statement]:
        result: list[Statement] = []
        for s in body:
            if isinstance(s, (Let, Accumulator)):
                first = self.expr(s.expr if isinstance(s, Let) else s.first)
                name = f"{s.name}_row{self.further}" if self.further else s.name
                self.memo.clear()
                self.names[s.name] = var(name, first.dtype)
                result.append(Let(name, first) if isinstance(s, Let) else Accumulator(name, first))
            elif isinstance(s, Combine):
                name = self.names[s.name].args[0] if s.name in self.names else s.name
                result.append(Combine(name, s.op, self.expr(s.expr)))
            elif isinstance(s, SetElement):
                result.append(SetElement(s.buffer, tuple(map(self.expr, s.index)), self.expr(s.expr)))
            elif isinstance(s, Update):
                result.append(Update(s.buffer, tuple(map(self.expr, s.index)), s.op, self.expr(s.expr)))
        return result

    def expr(self, expr: Expr) -> Expr:
        """`expr` of this step; shared parts stay shared."""
        stack = [expr]
        while stack:
            e = stack[-1]
            missing = [a for a in e.args if isinstance(a, Expr) and a not in self.memo]
            if missing and e not in self.memo:
                stack += missing
                continue
            stack.pop()
            if e not in self.memo:
                self.memo[e] = self._made(e)
        return self.memo[expr]

    def _made(self, e: Expr) -> Expr:
        if e.op == "var":
            return self.names.get(e.args[0], e)
        args = tuple(self.memo[a] if isinstance(a, Expr) else a for a in e.args)
        return e if all(a is b for a, b in zip(args, e.args, strict=True)) else Expr(e.op, args, e.dtype)


def _merged(copies: list[list[Statement]], loop: Loop, place: int) -> list[Statement]:
    """The inner steps of all rows, in which additions to the same place are one addition. Where a row adds may be
    read before the inner loop begins, as the index of its group is."""
    variable = loop.variable
    varying: set[str] = set()
    body = loop.body[place].body                                    # type: ignore[union-attr]
    for s in (*loop.body[:place], *body):
        if isinstance(s, Let) and depends(s.expr, variable, varying):
            varying.add(s.name)
    result: list[Statement] = []
    for k, s in enumerate(body):
        rows = [copy[k] for copy in copies]
        if isinstance(s, Update) and s.op == "add" and not any(depends(i, variable, varying) for i in s.index):
            terms: list[Expr] = [row.expr for row in rows]          # type: ignore[union-attr]
            while len(terms) > 1:
                terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=True)]
            result.append(Update(s.buffer, rows[0].index, "add", terms[0]))       # type: ignore[union-attr]
        else:
            result += rows
    return result
