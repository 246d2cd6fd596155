"""Structural zeros of cotangents and tangents, which must not meet an infinite derivative: ``0 * inf`` is NaN.

What a function does not use of a value (the branch of a `where` that is not taken, what a slice leaves out) has
cotangent zero, whatever the derivatives are further up. Such zeros are known in two ways: as the mask that goes
with a cotangent, where they depend on the data, and by how a value was made, which `support` looks at.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import cast, full
from jitad.primitives.view import broadcast_to, places
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Node, Primitive

TAME = frozenset("input const add sub mul neg positive square cast select exp expm1 sin cos tanh expit arctan abs "
                 "maximum minimum erf cosh sinh pick view spread reduce_sum reduce_max reduce_min contract concatenate "
                 "gather scatter update put tril triu reshape alias cumsum stop_gradient".split())
"""Operations whose derivatives are finite where they are."""
MOVING = frozenset("view spread reduce_sum reduce_max reduce_min concatenate gather scatter update put tril triu "
                   "reshape cumsum contract".split())
"""Operations whose cotangents are sums of elements of that of the result, of a `contract` with weights: so are their
masks."""
DEEP = 40         # nodes that `support` looks through


def tame(node: Node, nodes: Sequence[Node]) -> bool:
    """Whether the derivatives of a node are finite where it is."""
    if node.prim.name in ("div", "pow"):
        number = _number(nodes[node.inputs[1]], nodes)
        return number is not None and bool((number != 0).all() if node.prim.name == "div" else (number >= 1).all())
    if node.prim.name == "mul":
        return all(number is None or bool(np.isfinite(number).all())
                   for number in (_number(nodes[i], nodes) for i in node.inputs))
    if node.prim.name == "scan":
        body = node.params["body"].nodes
        return all(tame(n, body) for n in body)
    return node.prim.name in TAME


def _number(node: Node, nodes: Sequence[Node]) -> np.ndarray | None:
    """The constant that a node is, or is a view of."""
    while node.prim.kind == "view":
        node = nodes[node.inputs[0]]
    return node.params["value"].value if node.prim.kind == "const" else None


def sensitive(builder: Builder, active: set[int], first: int, last: int) -> set[int]:
    """The nodes among `active` whose cotangents meet a derivative that may be infinite, their own or further up; not
    by way of loops, which take cotangents without masks."""
    nodes, found = builder.nodes, set[int]()
    for number in range(first, last + 1):
        node = nodes[number]
        if number in active and node.prim.kind not in ("scan", "pick") and not (
                tame(node, nodes) and found.isdisjoint(node.inputs)):
            found.add(number)
    return found


def both(a: Value | None, b: Value | None) -> Value | None:
    """The mask of what both have (None: all)."""
    if a is None or b is None or a.number == b.number:
        return a or b
    return TABLE["logical_and"](a, b)


def either(masks: Sequence[Value | None]) -> Value | None:
    """The mask of what one of them has."""
    if any(mask is None for mask in masks):
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
    node, operands = value.node, [value.builder.value(i) for i in value.node.inputs]
    name = node.prim.name
    if name == "scatter" and any(v.node.prim.distinct for v in operands[1:]):
        return TABLE["gt"](node.prim(full(value, 1, operands[0].shape, value.dtype), *operands[1:], **node.params), 0)
    if depth and name in ("mul", "neg", "reshape", "view"):
        found = [_selected(v, depth - 1) for v in operands]
        if name == "mul":
            return both(*found)
        return found[0] and (node.prim(found[0], **node.params) if name != "neg" else found[0])
    return None


def moved(prim: Primitive, mask: Value, like: Value, inputs: list[Value],
          vjp: Callable[[Value, list[Value]], Sequence[Value | None]]) -> list[Value | None]:
    """What becomes of the mask of a cotangent `like` in an operation that moves elements or adds them up."""
    if prim.name == "contract":
        inputs = [full(x, 1, x.shape, x.dtype) for x in inputs]
    counts = vjp(broadcast_to(cast(mask, like.dtype), like.shape), inputs)
    return [None if c is None else TABLE["gt"](c, 0) for c in counts]


def support(value: Value, depth: int = 0) -> np.ndarray | None:
    """Where a value is not zero by how it was made; None if that may be everywhere."""
    node = value.node
    look = _LOOK.get(node.prim.name)
    if look is None or depth > DEEP or (value.ndim == 0 and node.prim.kind != "const"):
        return None
    return look(node, lambda i: support(value.builder.value(i), depth + 1), value)


Below = Callable[[int], Any]


def _const(node: Node, below: Below, value: Value) -> np.ndarray | None:
    array = node.params["value"].value
    return None if array.any() else np.zeros(array.shape, bool)


def _structure(node: Node, below: Below, value: Value) -> np.ndarray | None:
    """Of what moves elements, the support of the first operand moves along."""
    operand = value.builder.nodes[node.inputs[0]].aval
    inside = below(node.inputs[0])
    index = [value.builder.nodes[i] for i in node.inputs[1:]]
    if any(i.prim.kind != "const" for i in index):
        return None
    filled = node.prim.name in ("view", "reshape", "gather")
    if inside is None:
        if filled:
            return None
        inside = np.ones(operand.shape, bool)
    return np.asarray(node.prim.evaluate(inside.astype(np.float64), *(i.params["value"].value for i in index),
                                         **node.params) != 0)


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
        if nodes[number].prim.name in ("add", "sub"):
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
    condition = value.builder.nodes[node.inputs[0]]
    yes, no = (np.ones(value.shape, bool) if s is None else s for s in map(below, node.inputs[1:]))
    if condition.prim.kind == "const":
        return np.where(condition.params["value"].value, yes, no)
    return yes | no


_LOOK: dict[str, Callable[[Node, Below, Value], Any]] = {
    "const": _const, "spread": _spread, "update": _update, "concatenate": _concatenate, "mul": _product,
    "add": _sum, "sub": _sum, "select": _select,
    **dict.fromkeys(("neg", "cast", "positive", "div"), _quotient),
    **dict.fromkeys(("view", "reshape", "tril", "triu", "gather", "scatter", "cumsum"), _structure)}
