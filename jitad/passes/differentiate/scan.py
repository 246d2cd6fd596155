"""Derivatives of `scan`: the linear part of a loop is another loop, which reads what the first one saved.

The body is differentiated on a tape of its own. What depends on the cotangents (or tangents) there is the body of
the second loop. Of the rest, what is dearer to compute again than to load becomes stacks of the first loop, whose
node is extended in place: value and derivative need one forward loop, not two. Both loops are ordinary scans, which
can be differentiated again.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.activity import active_nodes
from jitad.passes.differentiate.second_loop import Line, second_loop
from jitad.passes.differentiate.structural_zeros import known, split_mask, steep, tame
from jitad.primitives.core import FLOATS, select, zeros_like
from jitad.primitives.scan import Form, walk_map
from jitad.primitives.view import broadcast_to, spread
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node

ROOM = 1 << 32        # steps for which there may be memory

Pullback = Callable[..., list[Value]]


# --- reverse ---------------------------------------------------------------------------------

def scan_cotangents(builder: Builder, number: int, seeds: dict[int, Value], active: set[int],
                    pullback: Pullback) -> list[Value | None]:
    """Cotangents of the operands of scan `number`, for cotangents `seeds` of its outputs by index."""
    node = builder.nodes[number]
    form = Form.of(node)
    _check_reversible(builder, form, node)
    operands = [builder.value(i) for i in node.inputs]
    moving = _moving(form, {p for p, v in enumerate(operands) if v.number in active})
    flowing, reached = _reached(form, seeds, moving)
    result: list[Value | None] = [None] * len(operands)
    if not reached:
        return result
    line = Line.of(form)
    places = sorted(reached)
    found = _Sweep(builder, line, flowing, seeds, places, pullback).run()
    wanted = [p for p in places if p >= form.carries and operands[p].number in active]
    sums, walks = [p for p in wanted if p >= form.fixed], [p for p in wanted if p < form.fixed]
    for p in sums:
        total = line.linear(line.inputs[p], "sum", form.name(p))
        line.carried.append((total, total + found[p], _zeros(builder, total)))
    line.stacked = [found[p] for p in walks]
    finals, stacks = second_loop(builder, number, line, not form.reverse)
    masks = len(finals) - len(flowing) - len(sums)
    for p, total in zip([*flowing, *sums], [*finals[:len(flowing)], *finals[len(flowing) + masks:]], strict=True):
        result[p] = total
    for i, mask in zip(flowing, finals[len(flowing):len(flowing) + masks], strict=False):
        result[i] = select(mask, result[i], 0.0)
    for p, stack in zip(walks, stacks, strict=True):
        array = operands[p]
        result[p] = spread(stack, array.shape, walk_map(array.ndim, *form.scanned[p - form.carries]))
    return result


@dataclass
class _Sweep:
    """The body's reverse sweep. Where structural zeros that depend on the data arrive at a carry, and an infinite
    derivative may wait for them in the step before, each carry has its mask as another carry."""

    builder: Builder
    line: Line
    flowing: list[int]
    seeds: dict[int, Value]
    places: list[int]
    pullback: Pullback

    def run(self) -> dict[int, Value]:
        """The cotangents of the body's inputs at `places`; the line has what it carries and walks then."""
        line, form, seeds = self.line, self.line.form, self.seeds
        carries = [line.linear(line.outputs[i], "ct", form.name(i)) for i in self.flowing]
        rows = [i for i in seeds if i >= form.carries]
        walked = [self._walked(i) for i in rows]
        started = [ct if i in seeds or form.dynamic or not _wild(form, i) else line.after_first(ct, not form.reverse)
                   for i, ct in zip(self.flowing, carries, strict=True)]
        found = self._pulled([*started, *walked], rows)
        masks: list[tuple[Value, Value, Value]] = []
        outside = {i: split_mask(seeds[i])[1] for i in self.flowing if i in seeds and _steep(form, i)}
        late = form.dynamic and any(i not in seeds and _wild(form, i) for i in self.flowing)
        if late or any(m is not None for m in (*outside.values(), *(self._mask(found, i) for i in self.flowing))):
            arriving = [line.builder.input(Aval(ct.shape, np.dtype(bool)), f"mask_{form.name(i)}")
                        for i, ct in zip(self.flowing, carries, strict=True)]
            started = [select(m, ct, 0.0) for m, ct in zip(arriving, carries, strict=True)]
            found = self._pulled([*started, *walked], rows)
            for i, m in zip(self.flowing, arriving, strict=True):
                first = outside.get(i) or self.builder.const(np.array(i in seeds))
                masks.append((m, self._next(found, i, m), broadcast_to(first, m.shape)))
        line.carried = [(ct, found[i] if i in found else zeros_like(ct), seeds.get(i) or _zeros(self.builder, ct))
                        for i, ct in zip(self.flowing, carries, strict=True)] + masks
        return found

    def _pulled(self, arriving: list[Value], rows: list[int]) -> dict[int, Value]:
        line = self.line
        return dict(zip(self.places, self.pullback(
            line.builder, [line.outputs[i] for i in (*self.flowing, *rows)], arriving,
            [line.inputs[p] for p in self.places], kept=[line.inputs[i] for i in self.flowing]), strict=True))

    def _mask(self, found: dict[int, Value], carry: int) -> Value | None:
        return split_mask(found[carry])[1] if carry in found else None

    def _walked(self, row: int) -> Value:
        """What arrives at a row at each step; its mask, if it needs one, is walked too."""
        line, form, seed = self.line, self.line.form, self.seeds[row]
        ct = line.linear(line.outputs[row], "ct", f"out{row - form.carries}")
        line.walked.append((ct, seed))
        outside = split_mask(seed)[1] if _steep(form, row) else None
        outside = outside or (known(seed) if _wild(form, row) else None)
        if outside is None:
            return ct
        mask = line.builder.input(Aval(ct.shape, np.dtype(bool)), f"mask_out{row - form.carries}")
        line.walked.append((mask, broadcast_to(outside, seed.shape)))
        return select(mask, ct, 0.0)

    def _next(self, found: dict[int, Value], carry: int, like: Value) -> Value:
        mask = self._mask(found, carry)
        return broadcast_to(self.line.builder.const(np.array(carry in found)) if mask is None else mask, like.shape)


def _check_reversible(builder: Builder, form: Form, node: Node) -> None:
    if form.until and form.length > 1 and (
            form.length > ROOM or form.counts([builder.nodes[i] for i in node.inputs]) is None):
        raise UnsupportedOperationError(
            f"the derivative in reverse of a while_loop, at {node.where}, would need memory for every step, and how "
            f"many there are, at most {ROOM}, was not known when it was recorded; use "
            "jitad.fori_loop or jitad.scan, with np.where for steps that "
            "come too late, or forward mode")


def _zeros(builder: Builder, like: Value) -> Value:
    return broadcast_to(builder.const(np.zeros((), like.dtype)), like.shape)


def _moving(form: Form, active: set[int]) -> set[int]:
    """The places of the body's inputs that change with the active operands, carries by the steps before included."""
    moving = {p for p in active if form.input(p).dtype.char in FLOATS}
    while True:
        touched = active_nodes(form.body.nodes, {form.body.inputs[p] for p in moving})
        more = {i for i in range(form.carries) if form.body.outputs[i] in touched
                and form.output(i).dtype.char in FLOATS} - moving
        if not more:
            return moving
        moving |= more


def _reached(form: Form, seeds: Iterable[int], moving: set[int]) -> tuple[list[int], set[int]]:
    """The carries whose cotangents flow, and the places of the moving inputs that cotangents reach."""
    body = form.body
    touched = active_nodes(body.nodes, {body.inputs[p] for p in moving})
    flowing = {i for i in seeds if i < form.carries and i in moving}
    while True:
        ends = [body.outputs[i] for i in (*flowing, *(i for i in seeds if i >= form.carries))]
        cone = _cone(body, ends, touched)
        reached = {p for p in moving if body.inputs[p] in cone}
        more = {p for p in reached if p < form.carries} - flowing
        if not more:
            return sorted(flowing), reached
        flowing |= more


def _cone(body: Tape, ends: Iterable[int], within: set[int]) -> set[int]:
    """What `ends` are made of, among the nodes `within`."""
    cone: set[int] = set()
    stack = [e for e in ends if e in within]
    while stack:
        number = stack.pop()
        if number not in cone:
            cone.add(number)
            stack += [i for i in body.nodes[number].inputs if i in within]
    return cone


def _wild(form: Form, carry: int) -> bool:
    """Whether a zero cotangent of this carry might meet an infinite derivative."""
    body = form.body
    cone = _cone(body, [body.outputs[carry]], set(range(len(body.nodes))))
    return any(not tame(body.nodes[n], body.nodes) for n in cone)


def _steep(form: Form, output: int) -> bool:
    """Whether a cotangent of this output might meet an infinite derivative, or a factor that may be infinite."""
    body = form.body
    cone = _cone(body, [body.outputs[output]], set(range(len(body.nodes))))
    return any(steep(body.nodes[n], body.nodes) for n in cone)


# --- forward ---------------------------------------------------------------------------------

def scan_tangents(builder: Builder, number: int, tangents: Sequence[Value | None],
                  pushforward: Pullback) -> dict[int, Value]:
    """Tangents of the outputs of scan `number` by index, for those of its operands."""
    node = builder.nodes[number]
    form = Form.of(node)
    moving = _moving(form, {p for p, t in enumerate(tangents) if t is not None})
    touched = active_nodes(form.body.nodes, {form.body.inputs[p] for p in moving})
    line = Line.of(form)
    places = sorted(moving)
    arriving = {p: line.linear(line.inputs[p], "dot", form.name(p)) for p in places}
    rows = [i for i in range(form.carries, len(form.body.outputs)) if form.body.outputs[i] in touched]
    flowing = [p for p in places if p < form.carries]
    primals, directions = [line.inputs[p] for p in places], [arriving[p] for p in places]
    changes = dict(zip([*flowing, *rows], pushforward(
        line.builder, [line.outputs[i] for i in (*flowing, *rows)], primals, directions), strict=True))
    for p in flowing:
        line.carried.append((arriving[p], changes[p], tangents[p] or _zeros(builder, arriving[p])))
    still = [p for p in places if p >= form.fixed]
    for p in still:
        line.carried.append((arriving[p], arriving[p], tangents[p]))                    # type: ignore[arg-type]
    line.stacked = [changes[i] for i in rows]
    walks = [p for p in places if form.carries <= p < form.fixed]
    line.walked = [(arriving[p], tangents[p]) for p in walks]                           # type: ignore[misc]
    if form.until and form.length > 1:                   # little can be saved: both run together
        primal = [(line.inputs[i], line.outputs[i], builder.value(node.inputs[i])) for i in range(form.carries)]
        line.carried, line.saves = primal + line.carried, False
    steps = [form.scanned[p - form.carries] for p in walks]
    finals, stacks = second_loop(builder, number, line, form.reverse, steps)
    if not line.saves:
        finals = finals[form.carries:]
    return dict(zip([*flowing, *rows], [*finals[:len(flowing)], *stacks], strict=True))
