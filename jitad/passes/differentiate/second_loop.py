"""The second loop of a derivative of `scan`: what depends on the cotangents or tangents, which reads what the first
loop saved."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jitad.primitives.core import select
from jitad.primitives.reduce import parse
from jitad.primitives.rules import Rules
from jitad.primitives.scan import Form, bundle_of, picked, transplant
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Aval, Node

DEAR = 4      # cost for each element from which a value is saved rather than computed again


@dataclass
class Line:
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
    def of(cls, form: Form) -> Line:
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


def second_loop(builder: Builder, number: int, line: Line, reverse: bool,
                 steps: Sequence[tuple[int, int]] | None = None) -> tuple[list[Value], list[Value]]:
    """Append the loop that `line` describes; extend the first one by what it reads of it. `steps` are the offsets
    and steps at which the linear arrays are walked."""
    form, node = line.form, builder.nodes[number]
    counted = form.dynamic and line.saves
    if form.until and line.saves and not counted:
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
    if counted:
        leaves[-1] = body.input(Aval((), np.dtype(np.int64)), "steps")
    still = [p for p in range(form.fixed, form.operands) if line.inputs[p].number in read]
    for p in still:
        take(line.inputs[p].number)
    counting = line.counter is not None and line.counter.number in read
    if counting:
        take(line.counter.number)                                                       # type: ignore[union-attr]
    outputs = transplant(line.builder.nodes, leaves, wanted, body)
    walks = tuple(step for _, _, step in scanned)
    second = Form(body.finish(outputs), form.length, len(line.carried), walks, counting, reverse,
                  form.until and not counted, form.recompute, counted)
    bundle = bundle_of(builder, second, [*(f for _, _, f in line.carried), *(a for _, a, _ in scanned),
                                         *([_steps(builder, number, form)] if counted else []),
                                         *(builder.value(node.inputs[p]) for p in still)],
                       node.where and node.where.derived())
    results = [picked(bundle, i) for i in range(len(outputs))]
    return results[form.until and line.saves and not counted:second.carries], results[second.carries:]


def _steps(builder: Builder, number: int, form: Form) -> Value:
    """How many steps the first loop does."""
    node = builder.nodes[number]
    if form.counted:
        return builder.value(node.inputs[form.fixed])
    index = form.counts([builder.nodes[i] for i in node.inputs])
    return picked(builder.value(number), index)                          # type: ignore[arg-type]


def _input_name(builder: Builder, number: int) -> str:
    if number in builder.inputs:
        return builder.names[builder.inputs.index(number)]
    return f"{builder.nodes[number].prim}_{number}"


def _extend(builder: Builder, number: int, line: Line, saved: list[int]) -> list[int]:
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


def _cut(line: Line, late: set[int], wanted: list[int], known: set[int]) -> tuple[list[int], set[int]]:
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
    rule = OWN_COSTS.of(node.prim)
    return DEAR if rule is None else rule(node, [nodes[i] for i in node.inputs])


OWN_COSTS: Rules[Callable[[Node, list[Node]], int]] = Rules()
OWN_COSTS("elementwise")(lambda node, operands: node.prim.cost)
OWN_COSTS("gather", "reshape", "triangle")(lambda node, operands: 1)
OWN_COSTS("reduce")(lambda node, operands: operands[0].aval.size // max(node.aval.size, 1))


@OWN_COSTS("contract")
def _product_cost(node: Node, operands: list[Node]) -> int:
    left, right, _ = parse(node.params["spec"])
    sizes = dict(zip(left + right, operands[0].aval.shape + operands[1].aval.shape, strict=True))
    return math.prod(sizes.values()) // max(node.aval.size, 1)


@OWN_COSTS("pow")
def _power_cost(node: Node, operands: list[Node]) -> int:
    """A small power is products."""
    exponent = operands[1].constant
    few = exponent is not None and exponent.ndim == 0 and exponent in (1, 2, 3, 4)
    return 1 if few else node.prim.cost
