"""Structural zeros of cotangents and tangents, which must not meet an infinite derivative: ``0 * inf`` is NaN.

What a function does not use of a value (the branch of a `where` that is not taken, what a slice leaves out) has
cotangent zero, whatever the derivatives are further up. Such zeros are known in two ways: as the mask that goes
with a cotangent, where they depend on the data, and by how a value was made, which `support` looks at.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast, full, select
from jitad.primitives.elementwise import logical_not
from jitad.primitives.rules import Rules
from jitad.primitives.view import broadcast_to, places
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Node, Primitive, seen_through

DEEP = 40         # nodes that `support` looks through
KEPT = 4096       # elements of what it remembers


def tame(node: Node, nodes: Sequence[Node]) -> bool:
    """Whether the derivatives of a node are finite where it is."""
    if node.body is not None:
        return all(tame(n, node.body.nodes) for n in node.body.nodes)
    found = node.prim.tame
    return found if isinstance(found, bool) else found(*(seen_through(nodes, nodes[i]).constant for i in node.inputs))


def sensitive(builder: Builder, active: set[int], first: int, last: int) -> set[int]:
    """The nodes among `active` whose cotangents meet a derivative that may be infinite, their own or further up; not
    by way of loops, which would carry a mask for each of them."""
    nodes, found = builder.nodes, set[int]()
    for number in range(first, last + 1):
        node = nodes[number]
        if number in active and node.body is None and node.picks is None and not (
                tame(node, nodes) and found.isdisjoint(node.inputs)):
            found.add(number)
    return found


def masked(builder: Builder, active: set[int], first: int, last: int, kept: Iterable[Value]) -> set[int]:
    """The nodes among `active` whose cotangents meet a derivative that may be infinite, or a factor that is known at
    run time only and may be infinite then: their own, or further up, or past those of `kept`."""
    nodes, found = builder.nodes, {v.number for v in kept}
    for number in range(first, last + 1):
        node = nodes[number]
        if number in active and (steep(node, nodes) or not found.isdisjoint(node.inputs)):
            found.add(number)
    return found


def steep(node: Node, nodes: Sequence[Node]) -> bool:
    """Whether a derivative of a node may be infinite, or is a factor that is known at run time only."""
    if node.body is not None:
        return any(steep(n, node.body.nodes) for n in node.body.nodes)
    scaled = node.prim.commutes and any(seen_through(nodes, nodes[i]).constant is not None for i in node.inputs)
    return not tame(node, nodes) or (node.prim.unbounded and not scaled)


def split_mask(value: Value) -> tuple[Value, Value | None]:
    """``select(mask, x, 0)`` as (x, mask)."""
    node, builder = value.node, value.builder
    if node.prim is select and is_constant(builder.value(node.inputs[2]), 0.0):
        return builder.value(node.inputs[1]), builder.value(node.inputs[0])
    return value, None


def is_constant(value: Value, number: float) -> bool:
    """Whether all elements of a value are this number, by how it was made."""
    constant = seen_through(value.builder.nodes, value.node).constant
    return constant is not None and constant.ndim == 0 and bool(constant == number)


def both(a: Value | None, b: Value | None) -> Value | None:
    """The mask of what both have (None: all)."""
    if a is None or b is None or a.number == b.number:
        return a or b
    return TABLE["logical_and"](a, b)


def either(masks: Sequence[Value | None]) -> Value | None:
    """The mask of what one of them has."""
    if any(mask is None for mask in masks):
        return None
    numbers = {mask.number for mask in masks}                                          # type: ignore[union-attr]
    if any(m.node.prim is logical_not and m.node.inputs[0] in numbers for m in masks):  # type: ignore[union-attr]
        return None
    total, *rest = {mask.number: mask for mask in masks}.values()                      # type: ignore[union-attr]
    for mask in rest:
        total = TABLE["logical_or"](total, mask)
    return total


def known(value: Value) -> Value | None:
    """The support of a value as a mask; None if it is everywhere."""
    found = support(value)
    if found is None:
        return _selected(value)
    return None if found.all() else value.builder.const(found)


def _selected(value: Value, depth: int = 5) -> Value | None:
    """The support of what was put back where a mask of the data had taken it from."""
    rule = _SELECTED.of(value.node.prim)
    operands = [value.builder.value(i) for i in value.node.inputs]
    return rule(value, operands, lambda x: _selected(x, depth - 1) if depth else None) if rule is not None else None


_SELECTED: Rules[Callable[[Value, list[Value], Callable[[Value], Value | None]], Value | None]] = Rules()
_SELECTED("mul")(lambda value, operands, below: both(*map(below, operands)))
_SELECTED("neg")(lambda value, operands, below: below(operands[0]))


@_SELECTED("reshape", "view")
def _shown_mask(value: Value, operands: list[Value], below: Callable[[Value], Value | None]) -> Value | None:
    mask, node = below(operands[0]), value.node
    return None if mask is None else node.prim(mask, **node.params)


@_SELECTED("scatter")
def _places(value: Value, operands: list[Value], below: Callable[[Value], Value | None]) -> Value | None:
    if not any(v.node.prim.distinct for v in operands[1:]):
        return None
    node, ones = value.node, full(value, 1, operands[0].shape, value.dtype)
    return TABLE["gt"](node.prim(ones, *operands[1:], **node.params), 0)


def moved(prim: Primitive, mask: Value, like: Value, inputs: list[Value],
          vjp: Callable[[Value, list[Value]], Sequence[Value | None]]) -> list[Value | None]:
    """What becomes of the mask of a cotangent `like` in an operation that moves elements or adds them up."""
    if len(inputs) > 1 and prim.adds:                                   # a product: its factors are weights
        inputs = [full(x, 1, x.shape, x.dtype) for x in inputs]
    counts = vjp(broadcast_to(cast(mask, like.dtype), like.shape), inputs)
    return [None if c is None else TABLE["gt"](c, 0) for c in counts]


def support(value: Value) -> np.ndarray | None:
    """Where a value is not zero by how it was made; None if that may be everywhere."""
    return _support(value.builder, value.number, 0)[0]


Seen = tuple[Any, bool, int]              # what was found; whether all was looked through, or else from which depth


def _support(builder: Builder, number: int, depth: int) -> Seen:
    """The same of a node, found once: what many values are made of is not looked through for each of them."""
    node, seen = builder.nodes[number], builder.supports.get(number)
    look = _LOOK.of(node.prim)
    if look is None or (not node.aval.ndim and node.constant is None):
        return None, True, depth
    if seen is not None and (seen[1] or seen[2] <= depth):
        return seen                                                     # type: ignore[no-any-return]
    if depth > DEEP:
        return None, False, depth
    whole = True

    def below(i: int) -> Any:
        nonlocal whole
        found, all_seen, _ = _support(builder, i, depth + 1)
        whole = whole and all_seen
        return found
    found = look(node, below, builder.value(number))
    if found is None or found.size <= KEPT:
        builder.supports[number] = found, whole, depth
    return found, whole, depth


Below = Callable[[int], Any]


def _const(node: Node, below: Below, value: Value) -> np.ndarray | None:
    return None if value.node.constant.any() else np.zeros(value.shape, bool)        # type: ignore[union-attr]


def _structure(node: Node, below: Below, value: Value) -> np.ndarray | None:
    """Of what moves elements, the support of the first operand moves along."""
    operand = value.builder.nodes[node.inputs[0]].aval
    inside = below(node.inputs[0])
    index = [value.builder.nodes[i].constant for i in node.inputs[1:]]
    if any(i is None for i in index):
        return None
    inside = np.ones(operand.shape, bool) if inside is None else inside
    return np.asarray(node.prim.evaluate(inside.astype(np.float64), *index, **node.params) != 0)


def _shown(node: Node, below: Below, value: Value) -> np.ndarray | None:
    """The same of what leaves out elements but adds none."""
    return None if below(node.inputs[0]) is None else _structure(node, below, value)


def _spread(node: Node, below: Below, value: Value) -> np.ndarray:
    inside, operand = below(node.inputs[0]), value.builder.nodes[node.inputs[0]].aval
    found = np.zeros(value.shape, bool)
    found[places(node.params["index"], operand.shape)] = True if inside is None else inside
    return found


def _update(node: Node, below: Below, value: Value) -> np.ndarray | None:
    base = below(node.inputs[0])
    if base is None:
        return None
    found = base.copy()
    for i, index in zip(node.inputs[1:], node.params["indices"], strict=True):
        inside, operand = below(i), value.builder.nodes[i].aval
        found[places(index, operand.shape)] = True if inside is None else inside
    return found


def _concatenate(node: Node, below: Below, value: Value) -> np.ndarray | None:
    parts = [below(i) for i in node.inputs]
    if all(part is None for part in parts):
        return None
    nodes = value.builder.nodes
    return np.concatenate([np.ones(nodes[i].aval.shape, bool) if part is None else part
                           for i, part in zip(node.inputs, parts, strict=True)], node.params["axis"])


def _product(node: Node, below: Below, value: Value) -> np.ndarray | None:
    found = [s for s in map(below, node.inputs) if s is not None]
    return np.logical_and.reduce(found) if found else None


def _quotient(node: Node, below: Below, value: Value) -> np.ndarray | None:
    return below(node.inputs[0])


def _sum(node: Node, below: Below, value: Value) -> np.ndarray | None:
    """Of all terms of a sum of sums, so that a long one is no deep one."""
    nodes, stack = value.builder.nodes, [*node.inputs]
    found = np.zeros(value.shape, bool)
    while stack:
        number = stack.pop()
        if _LOOK.of(nodes[number].prim) is _sum:
            stack += nodes[number].inputs
            continue
        part = below(number)
        if part is None:
            return None
        found |= part
        if found.all():
            return None
    return found


def _select(node: Node, below: Below, value: Value) -> np.ndarray | None:
    condition = value.builder.nodes[node.inputs[0]].constant
    yes, no = (np.ones(value.shape, bool) if s is None else s for s in map(below, node.inputs[1:]))
    if condition is not None:
        return np.where(condition, yes, no)
    return yes | no


_LOOK: Rules[Callable[[Node, Below, Value], Any]] = Rules()
for _rule, _names in ((_const, "const"), (_spread, "spread"), (_update, "update"), (_concatenate, "concatenate"),
                      (_product, "mul"), (_sum, "add sub"), (_select, "select"), (_quotient, "neg cast positive div"),
                      (_shown, "view reshape gather"), (_structure, "triangle scatter cumsum")):
    _LOOK(*_names.split())(_rule)
