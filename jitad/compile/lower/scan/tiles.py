"""A loop without carries, in tiles: a few steps side by side, in vector lanes.

Steps that do not depend on each other are the examples of a batch. The rows that they walk are transposed into a
tile, so that the elements of one place in the rows lie side by side; the body, written out element by element, is a
loop over the tile that LLVM vectorises; what it stacks is transposed back. The last tile begins early enough to be
whole, and does some steps again.
"""
from __future__ import annotations

import math

from jitad.compile.loops import (
    STATUS_INDEX,
    Accumulator,
    Combine,
    Let,
    Loop,
    Return,
    SetElement,
    Statement,
    Transpose,
    tag,
)
from jitad.compile.lower.scan.loop import ScanLoop
from jitad.compile.lower.scope import Scope
from jitad.compile.plan.index import Affine, Indices, as_expr, flattened, variable, weighted
from jitad.primitives.scan import Form
from jitad.tape.expr import Expr, const, load, var

NARROW = 4                # elements of a row from which it is transposed, and steps of a tile
WIDE = 8


def tiled(form: Form) -> bool:
    """Whether the steps of a loop whose body is written out can run side by side."""
    return not form.carries and not form.counted and form.length >= NARROW


class TiledLoop(ScanLoop):
    """The loop over the tiles, with a loop over the steps of a tile in it."""

    def __init__(self, scope: Scope, number: int):
        super().__init__(scope, number)
        self.side = WIDE if self.form.length >= WIDE else NARROW
        self.start = self.unique("start")
        self.position = weighted(0, [(1, variable(self.start)), (1, variable(self.step))])   # type: ignore[assignment]
        self.tiles: dict[int, str] = {}              # of operands
        self.stacked: dict[int, str] = {}            # of outputs
        self.coming: list[Statement] = []
        self.going: list[Statement] = []

    # --- in ------------------------------------------------------------------------------------------
    def operand(self, place: int, at: Indices) -> Expr:
        if not self._walks_rows(place):
            return super().operand(place, at)
        shape = self.form.input(place).shape
        tile = self.tiles.get(place)
        if tile is None:
            size = math.prod(shape)
            tile = self.tiles[place] = self.scope.work("tile", "f8", size * self.side)
            offset = self.form.scanned[place - self.form.carries][0]
            first = weighted(offset * size, [(size, variable(self.start))])
            self.coming.append(Transpose(tile, const(0, "i8"), self.scope.operand(self.node.inputs[place]),
                                         as_expr(first), self.side, size))
        return load(tile, (self._in_tile(at, shape),), "f8")

    def _in_tile(self, at: Indices, shape: tuple[int, ...]) -> Expr:
        return as_expr(weighted(0, [(self.side, flattened(at, shape)), (1, variable(self.step))]))

    def _walks_rows(self, place: int) -> bool:
        """Whether an operand is an array in memory of which every step takes the next row."""
        form = self.form
        if place >= form.fixed or form.scanned[place - form.carries][1] != 1:
            return False
        aval = form.input(place)
        return aval.size >= NARROW and tag(aval.dtype) == "f8" and self.is_whole(place)

    # --- out -----------------------------------------------------------------------------------------
    def stack(self, index: int, at: Indices, value: Expr) -> list[Statement]:
        shape = self.form.output(index).shape[1:]
        if index not in self.picks or math.prod(shape) < NARROW or value.dtype != "f8":
            return super().stack(index, at, value)
        tile = self.stacked.get(index)
        if tile is None:
            size = math.prod(shape)
            tile = self.stacked[index] = self.scope.work("tile", "f8", size * self.side)
            name, (first,) = self.scope.target(self.picks[index], (variable(self.start), *[Affine(0)] * len(shape)))
            self.going.append(Transpose(name, first, tile, const(0, "i8"), size, self.side))
        return [SetElement(tile, (self._in_tile(at, shape),), value)]

    def finish(self, body: list[Statement]) -> None:
        inner, before, after = _without_exits(self, body)
        walk: list[Statement] = [*self.coming, *before, Loop(self.step, 0, self.side, inner), *after, *self.going]
        tile = self.unique("tile")
        last = self.form.length - self.side
        start = Expr("min", (var(tile, "i8"), const(last, "i8")), "i8") if self.form.length % self.side else var(
            tile, "i8")
        self.scope.body += [*self.before, Loop(tile, 0, self.form.length, [Let(self.start, start), *walk],
                                                  step=self.side), *self.after]


def _without_exits(loop: TiledLoop, body: list[Statement]) -> tuple[list[Statement], list[Statement],
                                                                   list[Statement]]:
    """The body with its tests of numbers put together and looked at when the tile is done: a loop with an exit does
    not run in vector lanes. Tests of indices stay, as what follows reads at those."""
    names: dict[int, str] = {}
    inner: list[Statement] = []
    for s in body:
        if isinstance(s, Return) and s.status != STATUS_INDEX:
            name = names.setdefault(s.status, "") or loop.unique("fine")
            names[s.status] = name
            s = Combine(name, "and", s.condition)
        inner.append(s)
    return (inner, [Accumulator(name, const(True, "b1")) for name in names.values()],
            [Return(var(name, "b1"), status) for status, name in names.items()])
