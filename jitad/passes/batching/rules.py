"""How one node becomes the same node for a whole batch, along a new first dimension: a rule for each kind of row.

A rule gets the node, its operands with a flag that says whether they have the dimension, at least one of them True,
and the length of the batch; it gives the result with the dimension. Rows of kind ``call`` have their own in the
field `batch`; without one, a loop over the batch applies the node to one example after the other.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_letters

import numpy as np

from jitad.primitives.index import reshape
from jitad.primitives.reduce import parse
from jitad.primitives.rules import Rules
from jitad.primitives.scan import loop
from jitad.primitives.view import Map, broadcast_to, transpose, view
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node

Batched = tuple[Value, bool]           # a value, and whether its first dimension is that of the batch
Rule = Callable[[Node, Sequence[Batched], int], Value]
rule: Rules[Rule] = Rules()


def batch_node(node: Node, operands: Sequence[Batched], length: int) -> Value:
    """The node for every example; at least one of the operands has the batch's dimension."""
    if node.prim.batch is not None:
        return node.prim.batch(node.prim, operands, length, **node.params)
    return (rule.of(node.prim) or one_by_one)(node, operands, length)


def again(node: Node, operands: Sequence[Value], **params: object) -> Value:
    """The node with other operands and some other params."""
    builder = operands[0].builder
    return builder.value(builder.apply(node.prim, [v.number for v in operands], {**node.params, **params}, node.where))


def full(operand: Batched, length: int) -> Value:
    """The operand with the batch's dimension, over which it is repeated if it has none of its own."""
    value, batched = operand
    return value if batched else broadcast_to(value, (length, *value.shape))


def to_front(x: Value, axis: int) -> Value:
    return transpose(x, (axis, *(d for d in range(x.ndim) if d != axis)))


def from_front(x: Value, axis: int) -> Value:
    """The first dimension becomes number `axis`."""
    order = list(range(1, x.ndim))
    return transpose(x, (*order[:axis], 0, *order[axis:]))


# --- kind by kind ------------------------------------------------------------------------------

@rule("elementwise")
def _elementwise(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [full(x, length) for x in operands])


def _further(index: Map) -> Map:
    """The map between arrays with one more dimension in front."""
    return ((0, ((0, 1),)), *((o, tuple((d + 1, s) for d, s in terms)) for o, terms in index))


@rule("view")
def _view(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return view(operands[0][0], (length, *node.params["shape"]), _further(node.params["index"]))


@rule("spread")
def _spread(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [operands[0][0]], shape=(length, *node.params["shape"]), index=_further(node.params["index"]))


@rule("reshape")
def _reshape(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return reshape(operands[0][0], (length, *node.params["shape"]))


@rule("reduce")
def _reduce(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [operands[0][0]], axes=tuple(a + 1 for a in node.params["axes"]))


@rule("recurrence", "cumulative")
def _cumulative(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [full(x, length) for x in operands], axis=node.params["axis"] + 1)


@rule("concatenate")
def _concatenate(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [full(x, length) for x in operands], axis=node.params["axis"] + 1)


@rule("triangle")
def _triangle(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [operands[0][0]])


@rule("contract")
def _contract(node: Node, operands: Sequence[Batched], length: int) -> Value:
    left, right, out = parse(node.params["spec"])
    row = next(c for c in ("t" + ascii_letters) if c not in left + right)
    (a, first), (b, second) = operands
    return again(node, [a, b], spec=f"{row * first}{left},{row * second}{right}->{row}{out}")


@rule("gather")
def _gather(node: Node, operands: Sequence[Batched], length: int) -> Value:
    (x, moving), *index = operands
    axes = node.params["axes"]
    if not moving:
        return again(node, [x, *(full(i, length) for i in index)])
    if not any(batched for _, batched in index):
        found = again(node, [x, *(i for i, _ in index)], axes=tuple(a + 1 for a in axes))
        return to_front(found, index[0][0].ndim)
    rows = [full(i, length) for i in index]
    return again(node, [x, _examples(rows[0], length), *rows], axes=(0, *(a + 1 for a in axes)))


def _examples(like: Value, length: int) -> Value:
    """The number of the example, in the shape of an index array of the batch."""
    return view(like.builder.const(np.arange(length)), like.shape, ((0, ((0, 1),)),))


@rule("iota")
def _iota(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [operands[0][0]], axis=node.params["axis"] + 1)


@rule("search")
def _search(node: Node, operands: Sequence[Batched], length: int) -> Value:
    (places, several), (wanted, _) = operands
    return one_by_one(node, operands, length) if several else again(node, [places, wanted])


@rule("scatter")
def _scatter(node: Node, operands: Sequence[Batched], length: int) -> Value:
    (x, moving), *index = operands
    axes, shape = tuple(a + 1 for a in node.params["axes"]), (length, *node.params["shape"])
    if not any(batched for _, batched in index):
        return again(node, [from_front(x, index[0][0].ndim), *(i for i, _ in index)], axes=axes, shape=shape)
    rows = [full(i, length) for i in index]
    return again(node, [full((x, moving), length), _examples(rows[0], length), *rows], axes=(0, *axes), shape=shape)


@rule("update")
def _update(node: Node, operands: Sequence[Batched], length: int) -> Value:
    return again(node, [full(x, length) for x in operands], indices=tuple(map(_further, node.params["indices"])))


@rule("put")
def _put(node: Node, operands: Sequence[Batched], length: int) -> Value:
    base, values, *index = operands
    axes, target = tuple(a + 1 for a in node.params["axes"]), full(base, length)
    if not any(batched for _, batched in index):
        moved = from_front(full(values, length), index[0][0].ndim)
        return again(node, [target, moved, *(i for i, _ in index)], axes=axes)
    rows = [full(i, length) for i in index]                     # in the order of the examples, one index array
    count, rest = rows[0].aval.size, values[0].shape[values[1] + rows[0].ndim - 1:]
    flat = [reshape(i, (count,)) for i in (_examples(rows[0], length), *rows)]
    return again(node, [target, reshape(full(values, length), (count, *rest)), *flat], axes=(0, *axes))


# --- what has no rule ----------------------------------------------------------------------------

def one_by_one(node: Node, operands: Sequence[Batched], length: int) -> Value:
    """The node in a loop over the batch."""
    (result,) = in_turn(operands, length, lambda inner, examples: [
        inner.value(inner.apply(node.prim, [v.number for v in examples], node.params, node.where))])
    return result


def in_turn(operands: Sequence[Batched], length: int, body: Callable[[Builder, list[Value]], list[Value]],
            optimise: Callable[[Tape], Tape] | None = None) -> list[Value]:
    """What `body` makes, on a tape of its own, of one example of the operands, stacked over the batch by a loop."""
    builder, inner = operands[0][0].builder, Builder()
    moving = [i for i, (_, batched) in enumerate(operands) if batched]
    still = [i for i, (_, batched) in enumerate(operands) if not batched]
    examples: dict[int, Value] = {}
    for i in (*moving, *still):
        value, batched = operands[i]
        examples[i] = inner.input(Aval(value.shape[batched:], value.dtype), f"x{i}")
    tape = inner.finish(body(inner, [examples[i] for i in range(len(operands))]))
    tape = optimise(tape) if optimise else tape
    return loop(builder, tape, [], [(operands[i][0], 0, 1) for i in moving], [operands[i][0] for i in still], length)[1]
