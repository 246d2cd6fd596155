"""What all ways of lowering a `scan` share: its operands seen from inside the loop, and its outputs."""
from __future__ import annotations

from jitad.compile.loops import Fill, Let, Loop, SetElement, Statement, Stop
from jitad.compile.lower.scope import Scope
from jitad.compile.plan.index import Affine, Indices
from jitad.compile.plan.pull import Pull
from jitad.primitives.scan import Form
from jitad.tape.expr import Expr, var


class ScanLoop:
    """One scan of the tape that is lowered."""

    def __init__(self, scope: Scope, number: int):
        self.scope, tape = scope, scope.tape
        self.node = tape.nodes[number]
        self.form = Form.of(self.node)
        self.picks = {tape.nodes[p].params["index"]: p for p in tape.uses[number]}
        self.step = self.unique("step")
        self.pull = Pull(tape, scope.plan.materialised, scope.read)
        self.before: list[Statement] = []
        self.stop: Expr | int = self.form.length
        self.position = Affine(self.form.length - 1, ((self.step, -1),)) if self.form.reverse else Affine(
            0, ((self.step, 1),))
        if self.form.counted:
            steps = self.unique("steps")
            self.before.append(Let(steps, self.pull.element(self.node.inputs[self.form.fixed], ())))
            self.stop = var(steps, "i8")
            if self.form.reverse:
                self.position = Affine(-1, ((steps, 1), (self.step, -1)))
        self.after: list[Statement] = []

    def fresh(self) -> int:
        """A number for a new variable."""
        return self.scope.fresh()

    def unique(self, name: str) -> str:
        """A name of that kind that nothing else in the kernel has."""
        return self.scope.unique(name)

    def first(self, place: int, at: Indices) -> Expr:
        """An element of the first value of a carry."""
        return self.pull.element(self.node.inputs[place], at)

    def operand(self, place: int, at: Indices) -> Expr:
        """An element of a scanned array's row, or of an invariant, seen from a step."""
        form = self.form
        if place >= form.fixed:
            return self.pull.element(self.node.inputs[place], at)
        offset, step = form.scanned[place - form.carries]
        row = Affine(offset + step * self.position.offset, tuple((v, step * s) for v, s in self.position.terms if step))
        return self.pull.element(self.node.inputs[place], (row, *at))

    def is_whole(self, place: int) -> bool:
        """Whether an invariant lies in memory as it is, in C order."""
        number, scope = self.node.inputs[place], self.scope
        node = scope.tape.nodes[number]
        if self.form.input(place).shape == ():
            return False
        if node.is_input:
            return scope.layouts.get(number) == "C" and number not in scope.sources
        return node.is_leaf or number in scope.plan.materialised

    def stack(self, index: int, at: Indices, value: Expr) -> list[Statement]:
        """Store an element of a row of stack `index`, if anything reads it."""
        if index not in self.picks:
            return []
        return [SetElement(*self.scope.target(self.picks[index], (self.position, *at)), value)]

    def finals(self, index: int, at: Indices, value: Expr) -> None:
        """After the loop: an element of the final value of a carry."""
        if index not in self.picks:
            return
        number = self.picks[index]
        if at:
            self.after.append(SetElement(*self.scope.target(number, at), value))
        else:
            self.after.append(Let(self.scope.names[number], value))
            self.after += self.scope.guarded(number)

    def leave(self, going: Expr) -> list[Statement]:
        """At the start of a step: whether it is to be done at all."""
        return [Stop(going)] if self.form.until else []

    def finish(self, body: list[Statement]) -> None:
        """Append the loop with this body to the statements."""
        unreached = [self.scope.target(pick, (self.position,) * self.scope.tape.nodes[pick].aval.ndim)[0]
                     for index, pick in self.picks.items() if self.form.counted and index >= self.form.carries]
        self.scope.body += [*self.before, *(Fill(name, 0.0) for name in unreached),
                            Loop(self.step, 0, self.stop, body), *self.after]
