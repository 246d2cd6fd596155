"""Optimisation, tape to tape: rewrites from one table, folding, common subexpressions, dead code.

Only rewrites that keep NumPy's value are here, NaN, infinities and signed zeros included (multiplications
by small powers of two change places, see `_power_of_two`). `fixpoint` applies them.
"""
from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from jitad.passes.optimise import spreads  # noqa: F401  (fills the table)
from jitad.passes.optimise.expanded import expanded
from jitad.passes.optimise.fixpoint import Draft, number_of, rewrites
from jitad.passes.optimise.scan import optimise_scans, size
from jitad.primitives.core import full, select
from jitad.primitives.custom import has_code
from jitad.primitives.elementwise import logical_not
from jitad.primitives.elementwise import mul as multiply
from jitad.primitives.elementwise import neg as negative
from jitad.primitives.reduce import reduce_sum
from jitad.primitives.view import Map, view
from jitad.tape.builder import Builder, Value
from jitad.tape.evaluate import evaluate_node
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE, Aval, Node, Where

_done: weakref.WeakValueDictionary[int, Tape] = weakref.WeakValueDictionary()    # by id: of which nothing more comes


def optimise(tape: Tape) -> Tape:
    """An equivalent tape with fewer and cheaper nodes."""
    return tape if _done.get(id(tape)) is tape else _optimised(Draft.of(tape), tape.labels)


def optimised(builder: Builder, outputs: Iterable[Value], labels: Iterable[str] = ()) -> Tape:
    """`optimise` of what `outputs` need of a builder."""
    return _optimised(Draft.made(builder, [o.number for o in outputs], set()), tuple(labels))


def _optimised(draft: Draft, labels: tuple[str, ...]) -> Tape:
    if any(draft.nodes[number].body is not None for number in draft.order):
        return _with_scans(draft, labels)
    before = -1
    while len(draft.order) != before and not draft.settled:
        before, draft = len(draft.order), draft.rewritten()
    if any(draft.nodes[number].body is not None for number in draft.order):
        return _with_scans(draft, labels)                # which have come out of other nodes
    result = draft.tape(labels)
    if draft.settled:
        _done[id(result)] = result
    return result


def _with_scans(draft: Draft, labels: tuple[str, ...]) -> Tape:
    before, now = -1, draft.size
    while now != before:
        tape = optimise_scans(draft.rewritten().tape(labels), _body)
        before, now, draft = now, size(tape), Draft.of(tape)
    return tape


def _body(tape: Tape) -> Tape:
    """The body of a loop, optimised once; with Python code it is not kept."""
    if has_code(tape.nodes):
        return optimise(tape)
    return _known_body(tape, tape.names, tuple(node.where for node in tape.nodes))


@lru_cache(maxsize=256)
def _known_body(tape: Tape, names: tuple[str, ...], lines: tuple[Where | None, ...]) -> Tape:
    """Equal tapes may have other names and lines, which are kept apart."""
    return optimise(tape)


def _like(value: Value, number: float) -> Value:
    return full(value, number, value.shape, value.dtype)


def _negated(x: Value) -> Value | None:
    """What a negated float is the negative of."""
    return x.builder.value(x.node.inputs[0]) if x.node.prim is negative and x.dtype.kind == "f" else None


def _factors(x: Value) -> tuple[Value, ...] | None:
    """Those of a product."""
    return tuple(map(x.builder.value, x.node.inputs)) if x.node.prim is multiply else None


@rewrites("mul")
def _mul(node: Node, a: Value, b: Value) -> Value | None:
    negated, products = [_negated(x) for x in (a, b)], [_factors(x) is not None for x in (a, b)]
    if number_of(b) is None and not any(products) and not any(x is not None for x in negated):
        return None
    factored = _factored(a, b)
    if factored is not None:
        return factored
    for x, other, inner, product in zip((a, b), (b, a), negated, products, strict=True):
        number = number_of(other)
        if number == 1:
            return x
        if number == -1 and x.dtype.kind == "f":
            return -x
        if inner is not None:
            return inner * _like(other, -number) if number is not None else -(inner * other)
        if number is not None and product:
            combined = _scaled(x, number)
            if combined is not None:
                return combined
    return None


def _factored(a: Value, b: Value) -> Value | None:
    """``x * (y * c)`` as ``(x * y) * c`` for a power of two c, which then meets other numbers. Not for c < 1: there
    ``x * y`` may overflow where the whole does not."""
    for x, product in ((a, b), (b, a)):
        factors = _factors(product)
        if factors and number_of(x) is None and x.dtype.kind == "f":
            y, constant = factors
            c = number_of(constant)
            if c is not None and _power_of_two(c) and abs(c) >= 1:
                return (x * y) * constant
    return None


def _scaled(product: Value, number: float) -> Value | None:
    """``(x * c) * number`` as one multiplication, where a factor is a power of two and rounding does not change."""
    left, right = (product.builder.value(i) for i in product.node.inputs)
    for x, constant in ((left, right), (right, left)):
        c = number_of(constant)
        if c is not None and x.dtype.kind == "f" and (_power_of_two(c) or _power_of_two(number)) and _normal(
                c * number, x.dtype):
            return x * _like(constant, c * number)
    return None


def _power_of_two(number: float) -> bool:
    """A small one: multiplications by it may change places, which only shows where a value is within a factor of
    1024 of overflow or underflow."""
    return abs(math.frexp(number)[0]) == 0.5 and 1 / 1024 <= abs(number) <= 1024


def _normal(number: float, dtype: np.dtype[Any]) -> bool:
    """Whether the product of two numbers is exact in `dtype` if one is a power of two."""
    limits = np.finfo(dtype)
    return float(limits.tiny) <= abs(number) <= float(limits.max)


@rewrites("div")
def _div(node: Node, a: Value, b: Value) -> Value | None:
    number = number_of(b)
    inner = _negated(a)
    if inner is not None:
        return -(inner / b)
    if number == 1:
        return a
    if number is not None and abs(math.frexp(number)[0]) == 0.5 and a.dtype.kind == "f" and _normal(
            1 / number, a.dtype):
        return a * _like(b, 1 / number)
    return None


@rewrites("add")
def _add(node: Node, a: Value, b: Value) -> Value | None:
    if a.number == b.number and a.dtype.kind == "f":
        return a * _like(a, 2)
    if (inner := _negated(b)) is not None:
        return a - inner
    if (inner := _negated(a)) is not None:
        return b - inner
    return None


@rewrites("sub")
def _sub(node: Node, a: Value, b: Value) -> Value | None:
    if number_of(b) == 0 and a.dtype.kind == "f" and not math.copysign(1, number_of(b) or 0.0) < 0:
        return a
    inner = _negated(b)
    return None if inner is None else a + inner


@rewrites("neg", "logical_not")
def _twice(node: Node, a: Value) -> Value | None:
    return a.builder.value(a.node.inputs[0]) if a.node.prim is node.prim and a.dtype == node.aval.dtype else None


@rewrites("alias", "stop_gradient", "positive")
def _same(node: Node, a: Value, **params: Any) -> Value | None:
    """They matter to differentiation alone, which is over."""
    return a if a.dtype == node.aval.dtype else None


@rewrites("custom", "solution")
def _custom(node: Node, y: Value, *rest: Value, **params: Any) -> Value:
    """As above."""
    return y


@rewrites("forwards")
def _forwards(node: Node, *inputs: Value, tape: Any) -> Value:
    """What is differentiated in a way of its own is differentiated."""
    return inputs[0].builder.replay(expanded(tape), inputs)[0]


@rewrites("pow", "float_power")
def _pow(node: Node, a: Value, b: Value) -> Value | None:
    exponent = number_of(b)
    if exponent is None or node.aval.dtype.kind != "f":
        return None
    if exponent == 0:
        return _like(a, 1)
    if abs(exponent) == 0.5:
        root = TABLE["sqrt"](a) + _like(a, 0)            # not so for -0.0 and -inf
        root = select(TABLE["eq"](a, _like(a, -np.inf)), _like(a, np.inf), root)
        return root if exponent > 0 else _like(a, 1) / root
    if exponent in (1, 2, 3, 4):
        squared = TABLE["square"](a)
        return {1: lambda: a, 2: lambda: squared, 3: lambda: squared * a, 4: lambda: TABLE["square"](squared)}[
            int(exponent)]()
    if exponent in (-1, -2):
        inverse = TABLE["reciprocal"](a)
        return inverse if exponent == -1 else TABLE["square"](inverse)     # whose square does not overflow before it
    return None


@rewrites("select")
def _select(node: Node, c: Value, a: Value, b: Value) -> Value | None:
    if a.number == b.number:
        return a
    decided = number_of(c)
    truth = c.node.constant
    if decided is None and truth is not None:
        decided = True if truth.all() else None if truth.any() else False
    if decided is not None:
        return a if decided else b
    if c.node.prim is logical_not:
        return select(c.builder.value(c.node.inputs[0]), b, a)
    return None


@rewrites("cast")
def _cast(node: Node, x: Value, dtype: str) -> Value | None:
    number = number_of(x)
    if number is not None and x.node.index_map is not None:
        return full(x, number, x.shape, dtype)
    return None


@rewrites("view")
def _view(node: Node, x: Value, shape: Any, index: Map) -> Value | None:
    result = view(x, shape, index)
    return result if result.node.index_map is None or result.node.inputs != (x.number,) else None


@rewrites("reduce_sum")
def _reduce_sum(node: Node, x: Value, axes: tuple[int, ...]) -> Value | None:
    """A sum along a broadcast dimension is a product; a sum of sums is one sum."""
    if x.node.prim is node.prim:
        inner = set(x.node.params["axes"])
        source = x.builder.value(x.node.inputs[0])
        left = [d for d in range(source.ndim) if d not in inner]
        return reduce_sum(source, tuple(sorted(inner | {left[a] for a in axes})))
    index = x.node.index_map
    if index is None or x.dtype.kind != "f":
        return None
    used = {d for _, terms in index for d, _ in terms}
    repeated = [a for a in axes if a not in used]
    count = math.prod(x.shape[a] for a in repeated)
    if not repeated or not count:                       # nothing of infinity is 0
        return None
    left = [d for d in range(x.ndim) if d not in repeated]
    place = {d: i for i, d in enumerate(left)}
    source = x.builder.value(x.node.inputs[0])
    rest = view(source, tuple(x.shape[d] for d in left),
                tuple((o, tuple((place[d], s) for d, s in terms)) for o, terms in index))
    return reduce_sum(rest, tuple(place[a] for a in axes if a not in repeated)) * float(count)


@rewrites("elementwise")
def _small_first(node: Node, *inputs: Value, **params: Any) -> Value | None:
    """An operation on equal views of smaller values is the view of the operation."""
    views: list[Node] = []
    for v in inputs:
        if v.node.index_map is not None:
            if number_of(v) is None:
                views.append(v.node)
        elif number_of(v) is None:
            return None
    if not views:
        return _constant(node, inputs, params)
    index, builder = views[0].params["index"], inputs[0].builder
    shapes = [builder.nodes[v.inputs[0]].aval.shape for v in views]
    shape = shapes[0]
    if any(v.params["index"] != index for v in views) or any(s != shape for s in shapes):
        return None
    if math.prod(shape) >= node.aval.size:
        return None
    small = [_shrunk(v, shape) for v in inputs]
    return view(node.prim(*small, **params), node.aval.shape, index)


def _constant(node: Node, inputs: tuple[Value, ...], params: dict[str, Any]) -> Value | None:
    """An operation on constant numbers is done once."""
    if not inputs or node.aval.shape == ():
        return None
    numbers = [np.asarray(number_of(v), v.dtype) for v in inputs]
    scalar = Node(node.prim, node.inputs, params, Aval((), node.aval.dtype))
    return full(inputs[0], evaluate_node(scalar, numbers).item(), node.aval.shape, node.aval.dtype)


def _shrunk(value: Value, shape: tuple[int, ...]) -> Value:
    number = number_of(value)
    return value.builder.value(value.node.inputs[0]) if number is None else full(value, number, shape, value.dtype)


@rewrites("contract")
def _contract(node: Node, a: Value, b: Value, spec: str) -> Value | None:
    """Transposes go into the letters, powers of two leave; a product with ones is a sum."""
    left, rest = spec.split(",")
    right, out = rest.split("->")
    for place, (x, letters) in enumerate(((a, left), (b, right))):
        other, others = ((b, right), (a, left))[place]
        if number_of(x) == 1.0 and set(letters) <= set(others + out) and len(set(others)) == len(others):
            kept = [c for c in others if c in out]
            total = reduce_sum(other, tuple(i for i, c in enumerate(others) if c not in out))
            return view(total, node.aval.shape, tuple((0, ((out.index(c), 1),)) for c in kept))
        factor = _small_power(x)
        if factor is not None:
            bare = x.builder.value(factor[0])
            inner = node.prim(bare, b, spec=spec) if place == 0 else node.prim(a, bare, spec=spec)
            return inner * _like(inner, factor[1])
        order = _permutation(x)
        if order is None:
            continue
        source = x.builder.value(x.node.inputs[0])
        renamed = "".join(letters[order[d]] for d in range(source.ndim))
        args = (source, b, f"{renamed},{right}->{out}") if place == 0 else (a, source, f"{left},{renamed}->{out}")
        return node.prim(args[0], args[1], spec=args[2])
    return None


def _small_power(x: Value) -> tuple[int, float] | None:
    """For a product with a power of two: the node of the other factor, and that number."""
    factors = _factors(x)
    if factors and x.dtype.kind == "f":
        for left, other in (factors, factors[::-1]):
            number = number_of(other)
            if number is not None and _power_of_two(number):
                return left.number, number
    return None


def _permutation(x: Value) -> list[int] | None:
    """For a transposing view: the result's dimension in which each of the source's is found."""
    index = x.node.index_map
    if index is None:
        return None
    if len(index) != x.ndim or any(o or len(t) != 1 or t[0][1] != 1 for o, t in index):
        return None
    order = [t[0][0] for _, t in index]
    source = x.builder.nodes[x.node.inputs[0]].aval.shape
    if sorted(order) != list(range(x.ndim)) or any(x.shape[d] != n for d, n in zip(order, source, strict=True)):
        return None
    return order


