"""Derivatives in many directions at once: a rule for one cotangent or tangent, for all rows of a batch of them.

Elementwise rules broadcast by themselves. Any other rule is applied once, in a builder of its own, to what stands
for one direction, and the nodes that it made are then applied to all.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitad.passes.batching.batched import batched
from jitad.passes.batching.rules import full
from jitad.passes.differentiate.activity import jvp_of, vjp_of
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Aval, Node, Primitive

Values = Sequence["Value | None"]


class Rows:
    """Applies rules to `length` directions, which are the first dimension of what moves."""

    def __init__(self, builder: Builder, length: int):
        self.builder, self.length = builder, length

    def apply(self, rule: Callable[[list[Any], list[Value]], Any], moving: Values, still: Sequence[Value]) -> list[Any]:
        """``rule(moving, still)`` for every row of `moving`, which may have None; `still` is the same for all.

        The rule gets values of another builder and gives values of it, None for what is structurally zero.
        """
        inner = Builder()
        inner.line = self.builder.line
        leaves: dict[int, tuple[Value, bool]] = {}
        one: list[Value | None] = [None] * len(moving)
        for place, row in enumerate(moving):
            if row is not None:
                value = one[place] = inner.input(Aval(row.shape[1:], row.dtype), f"row{place}")
                leaves[value.number] = (row, True)
        fixed = []
        for v in still:
            node = v.node
            value = inner.input(node.aval, "still") if node.constant is None else inner.value(inner.constant(node))
            leaves[value.number] = (v, False)
            fixed.append(value)
        found = rule(one, fixed)
        wanted = [v.number for v in found if v is not None]
        made = iter(batched(self.builder, inner.nodes, leaves, self.length, wanted))
        return [None if v is None else full(next(made), self.length) for v in found]

    def vjp(self, prim: Primitive, node: Node, ct: Value, y: Value, inputs: Sequence[Value]) -> list[Any]:
        """The cotangents of the inputs of a node."""
        def rule(moving: list[Any], still: list[Value]) -> Any:
            return vjp_of(prim)(moving[0], *still, **node.params)          # type: ignore[misc]
        return self.apply(rule, [ct], [y, *inputs])

    def jvp(self, prim: Primitive, node: Node, tangents: Values, y: Value, inputs: Sequence[Value]) -> Value | None:
        """The tangent of a node."""
        def rule(moving: list[Any], still: list[Value]) -> Any:
            return [jvp_of(prim)(moving, *still, **node.params)]           # type: ignore[misc]
        return self.apply(rule, tangents, [y, *inputs])[0]

    def scan_jvp(self, node: Node, tangents: Values, inputs: Sequence[Value], rule: Callable[..., Any]) -> Any:
        """The tangents of the outputs of a loop by their numbers; `rule(builder, number, tangents)` makes those for one
        direction."""
        places: list[int] = []

        def for_one(moving: list[Any], still: list[Value]) -> list[Any]:
            builder = still[0].builder
            found = rule(builder, builder.apply(node.prim, [v.number for v in still], node.params), moving)
            places.extend(found)
            return list(found.values())
        return dict(zip(places, self.apply(for_one, tangents, inputs), strict=False)) if inputs else {}

    def scan_vjp(self, node: Node, seeds: dict[int, Value], inputs: Sequence[Value], active: set[int],
                 rule: Callable[..., Any]) -> Any:
        """The cotangents of the operands of a loop, of which those at the places `active` have some;
        `rule(builder, number, seeds, active)` makes those for one direction."""
        def for_one(moving: list[Any], still: list[Value]) -> Any:
            builder = still[0].builder
            number = builder.apply(node.prim, [v.number for v in still], node.params)
            arrived = dict(zip(seeds, moving, strict=True))
            return rule(builder, number, arrived, {still[i].number for i in active})
        return self.apply(for_one, list(seeds.values()), inputs)
