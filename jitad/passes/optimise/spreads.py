"""Rewrites of `spread`, the adjoint of a view, where sums of spread arrays are spread in turn.

The reverse sweep of views of differences (`np.diff(x, 2)`) spreads a sum of spread arrays. That sum would be an array
of its own: set to zero, added to, and read once. Its terms can go at once to where they end.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.passes.optimise.fixpoint import rewrites
from jitad.primitives.elementwise import add, neg
from jitad.primitives.view import Map, compose, spread
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Node, Primitive

Term = tuple[Value, Map]
MOST = 4                  # terms of a sum: more of them cost more than an array between


@rewrites("spread")
def _spread(node: Node, x: Value, shape: Any, index: Map) -> Value | None:
    result = spread(x, shape, index)
    if result.node.index_map is not None or result.node.inputs != (x.number,):
        return result
    terms = _terms(x)
    if terms is None or 2 * len(terms) > MOST:
        return None
    return _sum([(part, compose(within, index)) for part, within in terms], shape)


@rewrites("add")
def _add(node: Node, a: Value, b: Value) -> Value | None:
    """Equal terms are one; the others are added one by one, so that all go to one array."""
    left = _terms(a, MOST - 1)
    right = _terms(b, MOST - len(left)) if left else None
    if not left or not right:
        return None
    terms: dict[tuple[int, Map], Term] = {}
    for part, index in (*left, *right):
        same = terms.get((part.number, index))
        terms[part.number, index] = (part, index) if same is None else (same[0] + part, index)
    several = len(left) > 1 and len(right) > 1
    return _sum(list(terms.values()), node.aval.shape) if several or len(terms) < len(left) + len(right) else None


def _sum(terms: list[Term], shape: tuple[int, ...]) -> Value:
    (part, index), *rest = terms
    total = spread(part, shape, index)
    for part, index in rest:
        total = total + spread(part, shape, index)
    return total


def _terms(x: Value, most: int = MOST) -> list[Term] | None:
    """What `x` is the sum of, each spread by a map; None if it is no such sum, or one of more than `most` terms: long
    sums are not walked through for each of their terms."""
    rule = _TERMS.get(x.node.prim) if most > 0 else None
    return None if rule is None else rule(most, x, *[x.builder.value(i) for i in x.node.inputs])


def _negated(most: int, x: Value, negative: Value) -> list[Term] | None:
    return [(-part, index) for part, index in terms] if (terms := _terms(negative, most)) else None


def _added(most: int, x: Value, a: Value, b: Value) -> list[Term] | None:
    left = _terms(a, most - 1) if x.dtype.kind == "f" else None
    right = _terms(b, most - len(left)) if left else None
    return [*left, *right] if left and right else None


_TERMS: dict[Primitive, Callable[..., list[Term] | None]] = {
    TABLE["spread"]: lambda most, x, part: [(part, x.node.params["index"])], neg: _negated, add: _added}
