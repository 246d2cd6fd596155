"""Derivatives of `scan`: the linear part of a loop is another loop, which reads what the first one saved.

The body is differentiated on a tape of its own. What depends on the cotangents (or tangents) there is the body of
the second loop. Of the rest, what is dearer to compute again than to load becomes stacks of the first loop, whose
node is extended in place: value and derivative need one forward loop, not two. Both loops are ordinary scans, which
can be differentiated again.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.activity import active_nodes
from jitad.passes.differentiate.structural_zeros import tame
from jitad.primitives.core import FLOATS, select, zeros_like
from jitad.primitives.elementwise import pow as power
from jitad.primitives.reduce import parse
from jitad.primitives.rules import Rules
from jitad.primitives.scan import Form, bundle_of, picked, transplant, walk_map
from jitad.primitives.view import broadcast_to, spread
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Node

DEAR = 4      # cost for each element from which a value is saved rather than computed again
Pullback = Callable[..., list[Value]]


@dataclass
class _Line:
    """The body of a scan on a builder of its own, with linear inputs beside its ordinary `inputs`.

    `carried` has for each linear carry its input, what it becomes, and its first value (of the outer builder);
    `walked` the linear inputs with the arrays that they walk; `stacked` what the second loop stacks.
    """

    form: Form
    builder: Builder
    inputs: list[Value]
    outputs: list[Value]
    carried: list[tuple[Value, Value, Value]] = field(default_factory=list)
    walked: list[tuple[Value, Value]] = field(default_factory=list)
    stacked: list[Value] = field(default_factory=list)
    counter: Value | None = None
    saves: bool = True

    @classmethod
    def of(cls, form: Form) -> _Line:
        builder = Builder()
        inputs = [builder.input(form.input(i), form.name(i)) for i in range(len(form.body.inputs))]
        outputs = builder.replay(form.body, inputs)
        return cls(form, builder, inputs, outputs, counter=inputs[-1] if form.counter else None)

    def linear(self, like: Value, prefix: str, name: str) -> Value:
        return self.builder.input(replace(like.aval, weak=False), f"{prefix}_{name}")

    def position(self) -> Value:
        """The position; the second loop counts it even if the first one does not."""
        if self.counter is None:
            self.counter = self.builder.input(Aval((), np.dtype(np.int64)), "t")
        return self.counter

    def after_first(self, seed: Value, reverse: bool) -> Value:
        """`seed`, structurally zero at the first step of a walk in this direction."""
        first = self.form.length - 1 if reverse else 0
        started = broadcast_to(TABLE["ne"](self.position(), first), seed.shape)
        return select(started, seed, 0.0)


# --- reverse ---------------------------------------------------------------------------------

def scan_cotangents(builder: Builder, number: int, seeds: dict[int, Value], active: set[int],
                    pullback: Pullback) -> list[Value | None]:
    """Cotangents of the operands of scan `number`, for cotangents `seeds` of its outputs by index."""
    node = builder.nodes[number]
    form = Form.of(node)
    _check_reversible(form, node)
    operands = [builder.value(i) for i in node.inputs]
    moving = _moving(form, {p for p, v in enumerate(operands) if v.number in active})
    flowing, reached = _reached(form, seeds, moving)
    result: list[Value | None] = [None] * len(operands)
    if not reached:
        return result
    line = _Line.of(form)
    carries = [line.linear(line.outputs[i], "ct", form.name(i)) for i in flowing]
    rows = [i for i in seeds if i >= form.carries]
    arriving = [line.linear(line.outputs[i], "ct", f"out{i - form.carries}") for i in rows]
    line.walked = [(seed, seeds[i]) for seed, i in zip(arriving, rows, strict=True)]
    arriving = [ct if i in seeds or not _wild(form, i) else line.after_first(ct, not form.reverse)
                for i, ct in zip(flowing, carries, strict=True)] + arriving
    places = sorted(reached)
    gradients = pullback(line.builder, [line.outputs[i] for i in (*flowing, *rows)], arriving,
                         [line.inputs[p] for p in places])
    found = dict(zip(places, gradients, strict=True))
    line.carried = [(ct, found[i] if i in found else zeros_like(ct), seeds.get(i) or _zeros(builder, ct))
                    for i, ct in zip(flowing, carries, strict=True)]
    wanted = [p for p in places if p >= form.carries and operands[p].number in active]
    sums, walks = [p for p in wanted if p >= form.fixed], [p for p in wanted if p < form.fixed]
    for p in sums:
        total = line.linear(line.inputs[p], "sum", form.name(p))
        line.carried.append((total, total + found[p], _zeros(builder, total)))
    line.stacked = [found[p] for p in walks]
    finals, stacks = _second_loop(builder, number, line, not form.reverse)
    for p, total in zip([*flowing, *sums], finals, strict=True):
        result[p] = total
    for p, stack in zip(walks, stacks, strict=True):
        array = operands[p]
        result[p] = spread(stack, array.shape, walk_map(array.ndim, *form.scanned[p - form.carries]))
    return result


def _check_reversible(form: Form, node: Node) -> None:
    if form.until and form.length > 1:
        raise UnsupportedOperationError(
            f"the derivative in reverse of a while_loop, at {node.where}, would need memory for every step, and how "
            "many there are is known only at run time; use jitad.fori_loop or jitad.scan, with np.where for steps that "
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


# --- forward ---------------------------------------------------------------------------------

def scan_tangents(builder: Builder, number: int, tangents: Sequence[Value | None],
                  pushforward: Pullback) -> dict[int, Value]:
    """Tangents of the outputs of scan `number` by index, for those of its operands."""
    node = builder.nodes[number]
    form = Form.of(node)
    moving = _moving(form, {p for p, t in enumerate(tangents) if t is not None})
    touched = active_nodes(form.body.nodes, {form.body.inputs[p] for p in moving})
    line = _Line.of(form)
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
    if form.until and form.length > 1:                   # nothing can be saved: both run together
        primal = [(line.inputs[i], line.outputs[i], builder.value(node.inputs[i])) for i in range(form.carries)]
        line.carried, line.saves = primal + line.carried, False
    steps = [form.scanned[p - form.carries] for p in walks]
    finals, stacks = _second_loop(builder, number, line, form.reverse, steps)
    if not line.saves:
        finals = finals[form.carries:]
    return dict(zip([*flowing, *rows], [*finals[:len(flowing)], *stacks], strict=True))


# --- the second loop -------------------------------------------------------------------------

def _second_loop(builder: Builder, number: int, line: _Line, reverse: bool,
                 steps: Sequence[tuple[int, int]] | None = None) -> tuple[list[Value], list[Value]]:
    """Append the loop that `line` describes; extend the first one by what it reads of it. `steps` are the offsets
    and steps at which the linear arrays are walked."""
    form, node = line.form, builder.nodes[number]
    if form.until and line.saves:
        line.carried.insert(0, (line.inputs[0], line.inputs[0], builder.value(node.inputs[0])))
    late = [ct.number for ct, _, _ in line.carried] + [ct.number for ct, _ in line.walked]
    wanted = [v.number for _, v, _ in line.carried] + [v.number for v in line.stacked]
    known = {v.number for v in line.inputs[form.carries if line.saves else 0:]}
    known |= {line.counter.number} if line.counter else set()
    saved, read = _cut(line, set(late), wanted, known)
    indices = _extend(builder, number, line, saved)
    body = Builder()
    leaves: dict[int, Value] = {}

    def take(n: int) -> None:
        leaves[n] = body.input(line.builder.nodes[n].aval, _input_name(line.builder, n))
    for ct, _, _ in line.carried:
        take(ct.number)
    scanned = [(ct.number, array, step) for (ct, array), step in zip(
        line.walked, steps or [(0, 1)] * len(line.walked), strict=True)]
    scanned += [(n, picked(builder.value(number), i), (0, 1)) for n, i in zip(saved, indices, strict=True)]
    scanned += [(line.inputs[p].number, builder.value(node.inputs[p]), form.scanned[p - form.carries])
                for p in range(form.carries, form.fixed) if line.inputs[p].number in read]
    for n, _, _ in scanned:
        if n not in leaves:
            take(n)
    still = [p for p in range(form.fixed, form.operands) if line.inputs[p].number in read]
    for p in still:
        take(line.inputs[p].number)
    counting = line.counter is not None and line.counter.number in read
    if counting:
        take(line.counter.number)                                                       # type: ignore[union-attr]
    outputs = transplant(line.builder.nodes, leaves, wanted, body)
    walks = tuple(step for _, _, step in scanned)
    second = Form(body.finish(outputs), form.length, len(line.carried), walks, counting, reverse, form.until,
                  form.recompute)
    bundle = bundle_of(builder, second, [*(f for _, _, f in line.carried), *(a for _, a, _ in scanned),
                                         *(builder.value(node.inputs[p]) for p in still)], node.where)
    results = [picked(bundle, i) for i in range(len(outputs))]
    return results[form.until and line.saves:second.carries], results[second.carries:]


def _input_name(builder: Builder, number: int) -> str:
    if number in builder.inputs:
        return builder.names[builder.inputs.index(number)]
    return f"{builder.nodes[number].prim}_{number}"


def _extend(builder: Builder, number: int, line: _Line, saved: list[int]) -> list[int]:
    """Let scan `number` stack the nodes `saved` of the line; returns their output indices."""
    form = Form.of(builder.nodes[number])
    have = {v.number: i for i, v in reversed([*enumerate(line.outputs)]) if i >= form.carries}
    new = [n for n in saved if n not in have]
    if new:
        body = Builder()
        inputs = line.inputs[:len(form.body.inputs)]
        leaves = {v.number: body.input(v.aval, form.name(p)) for p, v in enumerate(inputs)}
        wanted = [v.number for v in line.outputs] + new
        outputs = transplant(line.builder.nodes, leaves, wanted, body)
        builder.extend(number, replace(form, body=body.finish(outputs)).params)
        have |= {n: len(line.outputs) + i for i, n in enumerate(new)}
    return [have[n] for n in saved]


def _cut(line: _Line, late: set[int], wanted: list[int], known: set[int]) -> tuple[list[int], set[int]]:
    """Which nodes the first loop saves for the second, and which inputs the second reads itself."""
    nodes = line.builder.nodes
    counted = {line.counter.number} if line.counter is not None and not line.form.counter else set()
    for number, node in enumerate(nodes):                # what the first loop does not have
        if not late.isdisjoint(node.inputs):
            late.add(number)
        if not counted.isdisjoint(node.inputs):
            counted.add(number)
    barred, cost = late | counted | known, _costs(nodes, known)
    saved: dict[int, None] = {}
    seen: set[int] = set()
    stack = list(wanted)
    while stack:
        number = stack.pop()
        if number in seen or number in saved:
            continue
        node = nodes[number]
        dear = node.is_input if line.form.recompute else cost[number] >= DEAR
        shown = node.index_map is not None or node.body is not None or node.constant is not None
        if line.saves and dear and number not in barred and not shown:
            saved[number] = None
        else:
            seen.add(number)
            stack += node.inputs
    return sorted(saved), seen & known


def _costs(nodes: Sequence[Node], known: set[int]) -> list[int]:
    """For each node the cost of computing one element from what the second loop has for the asking."""
    cost: list[int] = []
    for number, node in enumerate(nodes):
        if node.is_input:
            cost.append(0 if number in known else DEAR)
        elif node.index_map is not None or node.constant is not None:
            cost.append(sum(cost[i] for i in node.inputs))
        else:
            below = sum(min(cost[i], 1) if cost[i] >= DEAR else cost[i] for i in node.inputs)
            cost.append(below + _own_cost(nodes, node))
    return cost


def _own_cost(nodes: Sequence[Node], node: Node) -> int:
    if node.elementwise:
        exponent = nodes[node.inputs[-1]].constant
        few = exponent is not None and exponent.ndim == 0 and exponent in (1, 2, 3, 4)
        return 1 if few and node.prim is power else node.prim.cost
    rule = OWN_COSTS.of(node.prim)
    return rule(node, [nodes[i].aval for i in node.inputs]) if rule is not None else DEAR


OWN_COSTS: Rules[Callable[[Node, list[Aval]], int]] = Rules()
OWN_COSTS("gather", "reshape", "triangle")(lambda node, operands: 1)
OWN_COSTS("reduce")(lambda node, operands: operands[0].size // max(node.aval.size, 1))


@OWN_COSTS("contract")
def _product_cost(node: Node, operands: list[Aval]) -> int:
    left, right, _ = parse(node.params["spec"])
    sizes = dict(zip(left + right, operands[0].shape + operands[1].shape, strict=True))
    return math.prod(sizes.values()) // max(node.aval.size, 1)
