"""Long loops become parts that may run at the same time.

Steps of a loop may run at the same time if they write at different places, or write what they alone read, or only add
up (or find the largest, ...) in variables and arrays that nothing in the loop reads. Of the last each part has its own,
and they are combined in order at the end. Everything else stays as it is. What is divided, and into how many parts,
depends on the program alone: not on threads, cores or who else computes, so that results never do.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from jitad.compile.duration import sizes_of, time_of
from jitad.compile.loops import (
    DTYPE_TAGS,
    Accumulator,
    Buffer,
    CallRoutine,
    Combine,
    Fill,
    Let,
    Loop,
    Portions,
    Program,
    SetElement,
    Statement,
    Update,
)
from jitad.compile.lower.lower import program_of
from jitad.compile.lower.scope import identity_of
from jitad.compile.parallel.access import Access, Entangled, Inspection, reach
from jitad.compile.parallel.names import below, buffers_in
from jitad.compile.parallel.own import written_first
from jitad.compile.parallel.products import MatrixProduct
from jitad.tape.expr import Expr, const, load, var
from jitad.tape.tape import Tape

WORTH, PART, MOST = 1e5, 2e4, 64       # ns of a loop that is divided, of a part at least; parts
COMBINED, SHARE = 0.5, 0.1             # ns to start and combine an element of a part's array; of the time, at most
WRITTEN = 0.1                          # ns of a step at least
SMALL = 4096                           # elements of arrays for which LAPACK and BLAS have no threads
FEW = 32                               # steps of a loop around one that is rather divided
LINE = 16                              # elements of two lines of the cache, as they are fetched
ROWS = 64                              # steps in a part are a multiple, if there are many
COMBINES = frozenset({"add", "max", "min", "and", "or"})
_NAMES = {tag: name for name, tag in DTYPE_TAGS.items()}
PART_NUMBER, TURN, FIRST, LAST = "part", "turn", "first", "last"


def program_for(tape: Tape, layouts: tuple[str, ...], parallel: bool) -> Program:
    """`program_of`; `parallel`: its long loops run on several cores."""
    program = program_of(tape, layouts)
    return divided(program) if parallel else program


def divided(program: Program) -> Program:
    """`program` with its long loops in parts."""
    made = _Division(program)
    body = [s for number, statement in enumerate(program.body) for s in made.statements(number, statement)]
    return replace(program, body=body, buffers=tuple(made.buffers.values()), workspace=made.workspace)


@dataclass
class _Cut:
    """How a loop is divided: the arrays that each part has a copy of, with their operation; those that it has of its
    own; parts, and steps in each, at least `least`. Neighbouring parts take `turns` where steps of both touch the same
    places."""

    copied: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    parts: int = 0
    rows: int = 0
    least: int = 1
    turns: bool = False
    time: float = 0.0


class _Division:
    def __init__(self, program: Program):
        self.program, self.sizes, self.workspace = program, sizes_of(program), dict(program.workspace)
        self.buffers = {b.name: b for b in program.buffers}
        self.all = {**self.buffers, **{b.name: b for b in (*program.parameters, *program.outputs)
                                       if isinstance(b, Buffer)}}
        self.used = Counter(name for s in program.body for name in buffers_in([s]))
        self.outside = {e.args[0] for r in program.results for e in below(r) if e.op == "load"}

    def statements(self, number: int, s: Statement) -> list[Statement]:
        """What a statement of the program becomes."""
        if isinstance(s, CallRoutine):
            return self._product(number, s)
        if isinstance(s, Fill) and time_of([s], self.sizes) >= WORTH:
            dtype = self.all[s.buffer].dtype
            s = Loop("i", 0, self.sizes[s.buffer], [SetElement(s.buffer, (var("i", "i8"),), const(s.number, dtype))])
        if type(s) is not Loop or not isinstance(s.start, int) or not isinstance(s.stop, int):
            return [s]
        time = max(time_of([s], self.sizes), WRITTEN * (s.stop - s.start))
        if time < WORTH or s.stop <= s.start:
            return [s]
        for around, loop in _choices(s):
            try:
                seen = Inspection(_turned(around, loop))
                cut = self._cut(seen, time)
            except Entangled:
                continue
            if cut.parts > 1:
                return self._divided(number, seen, cut, around, loop)
        return [s]

    def _cut(self, seen: Inspection, time: float) -> _Cut:
        loop, cut = seen.loop, _Cut(time=time)
        accesses: dict[str, list[Access]] = {}
        for access in seen.accesses:
            accesses.setdefault(access.buffer, []).append(access)
        changed = {a.buffer for a in seen.accesses if a.how} | seen.filled
        rest = set()
        for name in sorted(changed):
            here = accesses.get(name, [])
            found = reach(seen, here) if name not in seen.filled else None
            hows = {a.how for a in here} if name not in seen.filled else set()
            combined = len(hows) == 1 and hows <= COMBINES
            if found is not None and found[0] <= found[1] * loop.step:
                continue
            if found is not None and combined:
                cut.turns, cut.least = True, max(cut.least, -(-found[0] // found[1]))
            elif combined:
                cut.copied[name] = next(iter(hows))
            elif self._is_own(name) and all(seen.advance(a.index) == 0 for a in here):
                rest.add(name)
            else:
                raise Entangled
        if any(self.sizes[name] > SMALL for name in seen.handed):
            raise Entangled
        if rest and written_first(loop, {name: self.sizes[name] for name in rest}) != rest:
            raise Entangled
        cut.own = rest
        self._count(seen, cut)
        return cut

    def _is_own(self, name: str) -> bool:
        """Whether nothing but one statement of the program knows the array."""
        return self.all[name].kind == "work" and self.used[name] == 1 and name not in self.outside

    def _count(self, seen: Inspection, cut: _Cut) -> None:
        """How many parts, and how many steps in each: whole strides, and a multiple of `ROWS` of many."""
        copied = sum(self.sizes[name] for name in cut.copied)
        most = SHARE * cut.time / (COMBINED * copied) if copied else MOST
        parts = int(min(MOST, cut.time / PART, most))
        if parts < 2:
            return
        rows = max(-(-seen.total // parts), cut.least)
        step = seen.loop.step
        unit = step if rows < 4 * ROWS else int(np.lcm(step, ROWS))
        cut.rows = -(-rows // unit) * unit
        cut.parts = -(-seen.total // cut.rows)

    # --- the statements ----------------------------------------------------------------------
    def _divided(self, number: int, seen: Inspection, cut: _Cut, around: Loop | None, loop: Loop) -> list[Statement]:
        part = var(PART_NUMBER, "i8")
        start: int = loop.start                                     # type: ignore[assignment]
        first = part * cut.rows + start if start else part * cut.rows
        last: Expr = var(FIRST, "i8") + cut.rows
        if cut.parts * cut.rows > seen.total:
            last = Expr("min", (last, const(start + seen.total, "i8")), "i8")
        before: list[Statement] = [Let(FIRST, first), Let(LAST, last)]
        after: list[Statement] = []
        finish: list[Statement] = []
        names: dict[str, tuple[str, int]] = {}
        variables: dict[str, str] = {}
        for name, op in cut.copied.items():
            size, b = self.sizes[name], self.all[name]
            stride = -(-size // LINE) * LINE
            copies = self._array(f"{name}_parts_{number}_", b.dtype, cut.parts * stride)
            names[name] = copies, stride
            place, dtype = var("i", "i8"), "b1" if b.dtype == "b1" else b.dtype
            before.append(Loop("i", 0, size, [SetElement(copies, (part * stride + place,), _identity(op, dtype))]))
            finish.append(Loop(PART_NUMBER, 0, cut.parts, [Loop("i", 0, size, [
                Update(name, (place,), op, load(copies, (part * stride + place,), dtype))])]))
        for name, (op, dtype) in seen.combined.items():
            found = self._array(f"{name}_parts_{number}_", dtype, cut.parts)
            own = variables[name] = f"{name}_part_{number}_"
            before.append(Accumulator(own, _identity(op, dtype)))
            after.append(SetElement(found, (part,), var(own, dtype)))
            finish.append(Loop(PART_NUMBER, 0, cut.parts, [Combine(name, op, load(found, (part,), dtype))]))
        steps: Loop = replace(loop, start=var(FIRST, "i8"), stop=var(LAST, "i8"),
                              body=_with_own(loop.body, variables, names, part))
        if around is not None:
            steps = replace(around, body=[*around.body[:-1], steps])
        arrays = tuple(self.buffers.pop(name) for name in sorted(cut.own))
        return [*_in_turns(cut, [*before, steps, *after], arrays), *finish]

    def _product(self, number: int, s: CallRoutine) -> list[Statement]:
        product = MatrixProduct.of(s)
        if product is None or product.time < WORTH or not (product.by_rows or product.by_terms):
            return [s]
        total, size, out = product.m if product.by_rows else product.k, product.m * product.n, s.buffers[0]
        parts = int(min(MOST, product.time / PART, total / ROWS, (MOST if product.by_rows else (
            SHARE * product.time / (COMBINED * size)))))
        if parts < 2:
            return [s]
        rows, part = total // parts, var(PART_NUMBER, "i8")
        rest = [product.part(parts * rows, total - parts * rows, out, parts * rows * product.n)]
        if product.by_rows:
            body = product.part(part * rows, rows, out, part * (rows * product.n))
            return [Portions(PART_NUMBER, 0, parts, [body], time=product.time), *rest[:total - parts * rows]]
        stride, dtype = -(-size // LINE) * LINE, self.all[out].dtype
        copies = self._array(f"{out}_parts_{number}_", dtype, (parts + 1) * stride)
        body = product.part(part * rows, rows, copies, part * stride)
        rest = [product.part(parts * rows, total - parts * rows, copies, parts * stride)][:total - parts * rows]
        place = var("i", "i8")
        return [Portions(PART_NUMBER, 0, parts, [body], time=product.time), *rest, Fill(out, 0.0),
                Loop(PART_NUMBER, 0, parts + len(rest), [Loop("i", 0, size, [
                    Update(out, (place,), "add", load(copies, (part * stride + place,), dtype))])])]

    def _array(self, name: str, dtype: str, size: int) -> str:
        """A new work array."""
        offset = self.workspace.get(dtype, 0)
        self.workspace[dtype] = offset + -(-size // 8) * 8
        self.buffers[name] = self.all[name] = Buffer(name, dtype, (size,), "work", offset=offset)
        self.sizes[name] = size
        return name


def _choices(s: Loop) -> list[tuple[Loop | None, Loop]]:
    """The loops that may be divided, the best first: a loop of few steps, which do nothing but another loop of many, is
    run through in each part of that."""
    inner = s.body[-1] if s.body else s
    if type(inner) is not Loop or s.step != 1 or not all(isinstance(x, Let) for x in s.body[:-1]) or not (
            isinstance(inner.start, int) and isinstance(inner.stop, int)):
        return [(None, s)]
    few = s.stop - s.start < min(FEW, inner.stop - inner.start)      # type: ignore[operator]
    return [(s, inner), (None, s)] if few else [(None, s)]


def _turned(around: Loop | None, loop: Loop) -> Loop:
    """The loop whose steps are those of `loop`, for all steps around it."""
    return loop if around is None else replace(loop, body=[replace(
        around, body=[*around.body[:-1], *loop.body])])


def _in_turns(cut: _Cut, body: list[Statement], own: tuple[Buffer, ...]) -> list[Statement]:
    """The parts; if they take turns, those with even numbers first."""
    if not cut.turns:
        return [Portions(PART_NUMBER, 0, cut.parts, body, own=own, time=cut.time)]
    return [Portions(TURN, 0, (cut.parts + 1 - odd) // 2, [Let(PART_NUMBER, var(TURN, "i8") * 2 + odd), *body],
                  own=own, time=cut.time / 2) for odd in (0, 1)]


def _identity(op: str, dtype: str) -> Expr:
    return identity_of(op, np.dtype(_NAMES[dtype]))


def _with_own(body: list[Statement], variables: Mapping[str, str], arrays: Mapping[str, tuple[str, int]],
              part: Expr) -> list[Statement]:
    """`body` that combines into the variables and the copies of arrays of a part."""
    result: list[Statement] = []
    for s in body:
        if isinstance(s, Loop):
            result.append(replace(s, body=_with_own(s.body, variables, arrays, part)))
        elif isinstance(s, Combine) and s.name in variables:
            result.append(replace(s, name=variables[s.name]))
        elif isinstance(s, Update) and s.buffer in arrays:
            copies, stride = arrays[s.buffer]
            (index,) = s.index or (const(0, "i8"),)
            result.append(replace(s, buffer=copies, index=(part * stride + index,)))
        else:
            result.append(s)
    return result
