"""One phase: roots with the same loops become one loop nest.

Each expression is computed in the outermost loop that knows its variables;
what is used twice gets a name, the rest stays nested.
"""
from __future__ import annotations

import math
from typing import Any

from jitad.compile.loops import (
    STATUS_RANGE,
    Accumulator,
    Assign,
    Combine,
    Let,
    Loop,
    Return,
    SetElement,
    Statement,
    Update,
    tag,
)
from jitad.compile.lower.names import VARIABLES
from jitad.compile.lower.registers import in_registers
from jitad.compile.lower.scope import Scope
from jitad.compile.lower.unroll_and_jam import ROWS as LANES
from jitad.compile.lower.unroll_and_jam import in_turn, jammed, written_out
from jitad.compile.plan.index import Indices, variable
from jitad.compile.plan.pull import Pull
from jitad.compile.plan.roots import Root
from jitad.tape.expr import Expr, call, const, load, var

LANE = "lane"                 # the copy of an array into which a step adds, of `LANES` many
LEAVES = frozenset({"const", "var"})


class Nest:
    """The loops of one phase. `levels[p]` holds the statements before the loop at place `p` (the
    innermost body comes last), `closing[p]` those after it."""

    def __init__(self, scope: Scope, roots: list[Root], length: int, blocked: bool):
        self.scope, self.roots, self.blocked = scope, roots, blocked
        first = roots[0]
        self.extents = [first.extents[d] for d in first.order]
        self.axis = first.order.index(first.axis) if first.axis is not None else None
        self.levels: list[list[Statement]] = [[] for _ in range(len(self.extents) + 1)]
        self.closing: list[list[Statement]] = [[] for _ in range(len(self.extents) + 1)]
        self.depth = {VARIABLES[p]: p + 1 for p in range(len(self.extents))}
        self.depth["block"] = 1 if self.axis is not None else 0
        self.uses: dict[Expr, int] = {}
        self.placed: dict[Expr, Expr] = {}
        self.level_of: dict[Expr, int] = {}
        self.targets: dict[Root, Indices] = {}
        self.factors: dict[Root, Expr] = {}
        self.labels: set[str] = set()
        self.prologue: list[Statement] = []                         # before and after the loops, in each block
        self.epilogue: list[Statement] = []
        self.turns = False                                          # whether steps add into copies in turn
        self.started: set[int] = set()
        self.pull = Pull(scope.tape, scope.plan.materialised, scope.read)

    def emit(self, before: list[Statement], after: list[Statement]) -> list[Statement]:
        """The loops; `before` and `after` get what belongs outside of the whole group."""
        work = []
        for root in self.roots:
            at = root.at({d: VARIABLES[p] for p, d in enumerate(root.order)})
            value = root.value(self.pull, at)
            if root.kind == "map":
                self.pull.memo[root.node, at] = value               # type: ignore[index]
            self.targets[root] = root.target(self.pull, at)
            work.append((root, value, at))
            if root.factor is not None:
                self.factors[root] = root.factor(self.pull, at)
                self._count(self.factors[root])
        before += self._guards()
        for root, value, _ in work:
            self._count(value)
            for e in self.targets[root]:
                if isinstance(e, Expr):
                    self._count(e)
        for root, value, at in work:
            self._root(root, value, at, before, after)
        before += self.levels[0]
        return self.prologue + self._loops(0) + self.epilogue

    def _guards(self) -> list[Statement]:
        """Stop where the reciprocal of a divisor overflows although the divisor is not zero."""
        return [Return(inverse.ne(inverse) | (abs(inverse) < math.inf) | divisor.eq(0.0), STATUS_RANGE)
                for divisor, inverse in self.pull.inverses.values()]

    def _loops(self, place: int) -> list[Statement]:
        if place == len(self.extents):
            return []
        body = [*self.levels[place + 1], *self._loops(place + 1), *self.closing[place + 1]]
        loop = Loop(VARIABLES[place], 0, self.extents[place], body)
        if place == self.axis and self.blocked:
            loop.start, loop.stop = var("block", "i8"), var("end", "i8")
        if self.turns:
            return in_turn(loop, LANE)
        if 0 < place == len(self.extents) - 1:
            return written_out(loop)
        steps = jammed(loop)
        alone = steps == [loop] and place == 0 < len(self.extents) - 1
        return in_registers(loop, self.scope.unique) if alone else steps

    # --- roots -------------------------------------------------------------------------------
    def _root(self, root: Root, value: Expr, at: Indices, before: list[Statement], after: list[Statement]) -> None:
        innermost = len(self.extents)
        if root.kind == "map":
            if self._is_read(root):
                self._store(root, self._place(value, innermost), innermost, update=False)
            return
        if root.factor is not None:
            self._recurrence(root, value, self.factors[root], before)
            return
        if root.kind == "running":
            op = "add_in_order" if value.dtype != "b1" else "or"
            name = self._accumulator(root, op, innermost - 1, before)
            self.levels[innermost].append(Combine(name.args[0], op, self._place(value, innermost)))
            self._store(root, name, innermost, update=False)
            return
        if root.kind == "update" and self._wants_lanes(root):
            self._in_lanes(root, self._place(value, innermost), after)
            return
        if root.kind == "update":
            self._store(root, self._place(value, innermost), innermost, update=root.op != "store")
            return
        self._reduction(root, value, at, before, after)

    def _recurrence(self, root: Root, value: Expr, factor: Expr, before: list[Statement]) -> None:
        """Each step is the one before times a factor plus a value; the first is its value."""
        innermost = len(self.extents)
        name = self._accumulator(root, "add", max(innermost - 1, 0), before)
        value, factor = self._place(value, innermost), self._place(factor, innermost)
        first = var(VARIABLES[innermost - 1], "i8").eq(0) if innermost else const(True, "b1")
        step = call("select", first, value, factor * name + value)
        self.levels[innermost].append(Assign(name.args[0], step))
        self._store(root, name, innermost, update=False)

    def _wants_lanes(self, root: Root) -> bool:
        """Whether additions go to computed places of a small array, many to each: the same place in a row would
        make every addition wait for the one before."""
        aval = self.scope.tape.nodes[root.node].aval              # type: ignore[index]
        return (root.separate and len(self.extents) == 1 and aval.dtype.kind == "f"
                and LANES * 2 * aval.size <= self.extents[0])

    def _in_lanes(self, root: Root, value: Expr, after: list[Statement]) -> None:
        """Add in turn into several copies, which are summed at the end of the group."""
        number: int = root.node                                     # type: ignore[assignment]
        size, innermost = self.scope.tape.nodes[number].aval.size, len(self.extents)
        copies = self.scope.add_lanes(number, LANES)
        self.scope.fill(number, "add")
        at = tuple(self._place(i, innermost) if isinstance(i, Expr) else i for i in self.targets[root])
        name, (index,) = self.scope.target(number, at)
        lane = var(LANE, "i8") * size
        self.turns = True
        self.levels[innermost].append(Update(copies, (lane + index,), "add", value))
        place, dtype = var("i", "i8"), _tag_of(self.scope, number)
        total = load(copies, (place,), dtype)
        for copy in range(1, LANES):
            total = total + load(copies, (place + copy * size,), dtype)
        after.append(Loop("i", 0, size, [Update(name, (place,), "add", total)]))

    def _reduction(self, root: Root, value: Expr, at: Indices, before: list[Statement],
                   after: list[Statement]) -> None:
        """Accumulate over the reduced loops that are innermost; update memory for those that are not."""
        innermost = len(self.extents)
        kept = self._kept(root)
        cut = innermost
        while cut and cut - 1 not in kept:
            cut -= 1
        value = self._place(value, innermost)
        if cut == innermost:
            self._store(root, value, innermost, update=True)
            return
        if root.kind == "check":                                    # at once: what follows may read at those places
            before, after = self.prologue, self.epilogue
        name = self._accumulator(root, root.op, cut, before)
        self.levels[innermost].append(Combine(name.args[0], root.op, value))
        if cut == 0:
            after += self.scope.finished(root, name, at, self.pull)
            return
        partial = any(p not in kept for p in range(cut)) or (
            self.blocked and self.axis is not None and self.axis >= cut)
        several = len(self.scope.plan.roots[root.node]) > 1
        self._store(root, name, cut, update=partial or several, closing=True)

    def _kept(self, root: Root) -> set[int]:
        """The loops on which the root's target depends."""
        names: set[str] = set()
        for index in self.targets[root]:
            names |= index.variables if not isinstance(index, Expr) else set(VARIABLES)
        return {p for p in range(len(self.extents)) if VARIABLES[p] in names}

    def _accumulator(self, root: Root, op: str, level: int, before: list[Statement]) -> Expr:
        node = root.node if isinstance(root.node, int) else root.node[1]
        dtype = "b1" if root.kind == "check" else _tag_of(self.scope, node)
        if root.kind == "check":
            label = f"within_{node}"
        else:
            label = self.scope.names[node] if not self.scope.tape.nodes[node].aval.ndim else f"part_{node}"
        if label in self.labels:                                    # another part of the same sum
            label = f"{label}_{self.scope.fresh()}"
        self.labels.add(label)
        first = const(True, "b1") if root.kind == "check" else self.scope.identity(node, op)
        statement = Accumulator(label, first)
        (before if level == 0 else self.levels[level]).append(statement)
        return var(label, dtype)

    def _store(self, root: Root, value: Expr, level: int, update: bool, closing: bool = False) -> None:
        number: int = root.node                                     # type: ignore[assignment]
        if update:
            self._start(number, root.op)
        target = tuple(self._place(i, level) if isinstance(i, Expr) else i for i in self.targets[root])
        name, index = self.scope.target(number, target)
        where = self.closing if closing else self.levels
        where[level].append(Update(name, index, root.op, value) if update else SetElement(name, index, value))

    def _start(self, number: int, op: str) -> None:
        """Set an accumulated array to the identity first: once, or, if only a block of it exists, in each block."""
        if not self.scope.is_block(number):
            self.scope.fill(number, op)
        elif number not in self.started:
            self.started.add(number)
            name, index = self.scope.target(number, (variable("i"),))
            self.prologue.append(Loop("i", var("block", "i8"), var("end", "i8"), [
                SetElement(name, index, self.scope.identity(number, op))]))

    def _is_read(self, root: Root) -> bool:
        """Whether anything loads the value that this phase computes."""
        scope, number = self.scope, root.node
        here = (root.group, root.phase)
        return number in scope.tape.outputs or any(
            (r.group, r.phase) != here for r, _ in scope.readers.get(number, ()))

    # --- expressions -------------------------------------------------------------------------
    def _count(self, expr: Expr) -> None:
        """Uses and level of every expression below."""
        stack = [expr]
        while stack:
            e = stack.pop()
            self.uses[e] = self.uses.get(e, 0) + 1
            if self.uses[e] == 1:
                stack.extend(a for a in e.args if isinstance(a, Expr))

    def _level_of(self, top: Expr) -> int:
        """The innermost loop whose variable `top` needs; without recursion, as chains may be long."""
        stack = [top]
        while stack:
            e = stack[-1]
            missing = [] if e in self.level_of else [
                a for a in e.args if isinstance(a, Expr) and a not in self.level_of]
            if missing:
                stack += missing
                continue
            stack.pop()
            if e not in self.level_of:
                self.level_of[e] = self.depth.get(e.args[0], 0) if e.op == "var" else max(
                    (self.level_of[a] for a in e.args if isinstance(a, Expr)), default=0)
        return self.level_of[top]

    def _place(self, expr: Expr, level: int) -> Expr:
        """`expr` as it is to be written at `level`: names for what is shared or belongs further out."""
        stack = [(expr, level)]
        while stack:
            e, at = stack[-1]
            own = self._level_of(e)
            missing = [] if e.op in LEAVES or e in self.placed else [
                a for a in e.args if isinstance(a, Expr) and a.op not in LEAVES and a not in self.placed]
            if missing:
                stack += [(a, own) for a in reversed(missing)]
                continue
            stack.pop()
            if e.op not in LEAVES and e not in self.placed:
                self.placed[e] = self._written(e, own, at)
        return self.placed.get(expr, expr)

    def _written(self, expr: Expr, own: int, level: int) -> Expr:
        """`expr` of placed operands, as a name if need be."""
        placed: Any = Expr(expr.op, tuple(self.placed.get(a, a) if isinstance(a, Expr) else a for a in expr.args),
                           expr.dtype)
        uses = self.uses.get(expr, 0)
        if uses > 1 or (own < level and not (expr.op == "load" and own == 0)):
            name = f"{'t' if own else 'c'}{self.scope.fresh()}"
            self.levels[own].append(Let(name, placed))
            placed = var(name, expr.dtype)
        return placed


def _tag_of(scope: Scope, number: int) -> str:
    return tag(scope.tape.nodes[number].aval.dtype)

