"""Differentiation, tape to tape: `pullback` (reverse) and `pushforward` (forward).

Both append to the builder that holds the primal nodes, with the same
primitives, so that what they make can be printed, optimised and differentiated
again. The gradient of a gradient needs nothing new. Both may go in many directions at
once: with `length`, all cotangents or tangents have a first dimension of that length, and
what does not depend on the direction is computed once.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.directions import Rows
from jitad.passes.differentiate.scan import scan_cotangents, scan_tangents
from jitad.passes.differentiate.structural_zeros import MOVING, both, either, known, moved, sensitive, tame
from jitad.passes.differentiate.tangents import Block, Tangents, added, aligned, branches, linear_rule
from jitad.primitives.core import FLOATS, cast, full, select, zeros_like
from jitad.primitives.scan import pick, scan
from jitad.primitives.view import broadcast_to, spread, view
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Node, Primitive

CARRYING = FLOATS | {"O"}      # dtypes of what has derivatives: floats, and the bundles of scans


@dataclass(frozen=True, slots=True)
class Cotangent:
    """`raw` where `mask` holds (None: everywhere), structurally zero elsewhere.

    The mask stays apart while the cotangent is multiplied by partial derivatives,
    so that a zero that comes from an untaken branch never meets an infinity.
    """

    raw: Value
    mask: Value | None = None

    def value(self) -> Value:
        return self.raw if self.mask is None else select(self.mask, self.raw, 0.0)

    def times(self, partial: Value | float | Callable[[], Value]) -> Cotangent:
        """The product with a partial derivative, or with what a function gives for one that may be refused."""
        if callable(partial):
            partial = partial()
        if isinstance(partial, (int, float)):
            raw = self.raw if partial == 1 else -self.raw if partial == -1 else self.raw * partial
            return Cotangent(raw, self.mask)
        if self.mask is None and self.raw.node.prim.kind == "spread":
            return Cotangent(_inside_spread(self.raw, partial))
        partial, mask = _split_mask(partial)
        return Cotangent(self.raw if _is_constant(partial, 1.0) else self.raw * partial, both(self.mask, mask))

    def guarded(self) -> Cotangent:
        """With all structural zeros in the mask, as they must not meet what comes next."""
        return self if self.raw.node.prim.kind == "spread" else Cotangent(self.raw, both(self.mask, known(self.raw)))


def _inside_spread(ct: Value, partial: Value) -> Value:
    """``spread(u) * partial`` as the spread of a product: what lies outside of the slice is structurally
    zero and must not meet `partial`, and need not be computed."""
    node, builder = ct.node, ct.builder
    u, index = builder.value(node.inputs[0]), node.params["index"]
    product = Cotangent(u).times(view(broadcast_to(partial, ct.shape), u.shape, index)).value()
    return spread(product, node.params["shape"], index)


def _is_constant(value: Value, number: float) -> bool:
    node = value.node
    while node.prim.name == "view":
        node = value.builder.nodes[node.inputs[0]]
    return node.prim.name == "const" and node.params["value"].value.ndim == 0 and node.params["value"].value == number


def _split_mask(partial: Value) -> tuple[Value, Value | None]:
    """``select(mask, p, 0)`` as (p, mask)."""
    node, builder = partial.node, partial.builder
    if node.prim is select and _is_constant(builder.value(node.inputs[2]), 0.0):
        return builder.value(node.inputs[1]), builder.value(node.inputs[0])
    return partial, None


def pullback(builder: Builder, outputs: Sequence[Value], seeds: Sequence[Value],
             wrt: Sequence[Value], length: int | None = None) -> list[Value]:
    """Cotangents of `wrt` for the cotangents `seeds` of `outputs`, appended to `builder`; `length` of each if given.

    Values that do not depend on `wrt` are constants, also when they are
    themselves traced by an outer differentiation.
    """
    rows = Rows(builder, length) if length is not None else None
    first = min(w.number for w in wrt)
    last = max((o.number for o in outputs), default=-1)
    active = _active(builder, {w.number for w in wrt}, first, last)
    guarded = sensitive(builder, active, first, last)
    pending: dict[int, list[Any]] = {}                 # of a bundle pairs: (output, cotangent)
    for output, seed in zip(outputs, seeds, strict=True):
        if output.number in active:
            pending.setdefault(output.number, []).append(Cotangent(*_split_mask(seed)))
    wanted = {w.number for w in wrt}
    found: dict[int, Value] = {}
    line = builder.line
    for number in range(last, first - 1, -1):
        parts = pending.pop(number, None)
        if parts is None:
            continue
        node = builder.nodes[number]
        builder.line = node.where
        if number in wanted:
            found[number] = _total(parts).value()
            continue
        if node.prim is pick:
            pending.setdefault(node.inputs[0], []).append((node.params["index"], _total(parts)))
            continue
        if number in guarded and node.prim is not scan:
            parts = [_total(parts, guarded=True)]
        for i, ct in zip(node.inputs, _cotangents(builder, number, node, parts, active, guarded, rows), strict=True):
            if ct is not None and i in active:
                pending.setdefault(i, []).append(ct)
    builder.line = line
    return [found.get(w.number) or _zeros(w, length) for w in wrt]


def _zeros(like: Value, length: int | None) -> Value:
    """Structural zeros for a value: `length` of them if given."""
    return zeros_like(like) if length is None else full(like, 0, (length, *like.shape), like.dtype)


def _cotangents(builder: Builder, number: int, node: Node, parts: list[Any], active: set[int], guarded: set[int],
                rows: Rows | None) -> Sequence[Cotangent | None]:
    """Those of the inputs of a node, for what has arrived at it."""
    if node.prim is not scan:
        return _node_vjp(builder, number, node, _total(parts), active, guarded, rows)
    seeds = {index: ct.value() for index, ct in parts}
    if rows is None:
        found = scan_cotangents(builder, number, seeds, active, pullback)
    else:
        inputs, places = [builder.value(i) for i in node.inputs], {p for p, i in enumerate(node.inputs) if i in active}
        found = rows.scan_vjp(node, seeds, inputs, places, partial(scan_cotangents, pullback=pullback))
    return [None if c is None else Cotangent(c) for c in found]


def _active(builder: Builder, wrt: set[int], first: int, last: int) -> set[int]:
    """The float nodes that depend on `wrt`."""
    active = set(wrt)
    for number in range(first, last + 1):
        node = builder.nodes[number]
        if node.aval.dtype.char in CARRYING and node.prim.name != "stop_gradient" and not active.isdisjoint(
                node.inputs):
            active.add(number)
    return active


def _total(parts: list[Cotangent], guarded: bool = False) -> Cotangent:
    """The sum; `guarded` keeps what is structurally zero in all parts known as such."""
    if len(parts) == 1:
        return parts[0]
    if parts[0].mask is not None and all(p.mask is not None and p.mask.number == parts[0].mask.number for p in parts):
        total = parts[0].raw
        for part in parts[1:]:
            total = total + part.raw
        return Cotangent(total, parts[0].mask)
    total = parts[0].value()
    for part in parts[1:]:
        total = total + part.value()
    return Cotangent(total, either([p.mask or known(p.raw) for p in parts]) if guarded else None)


def _node_vjp(builder: Builder, number: int, node: Node, ct: Cotangent, active: set[int], guarded: set[int],
              rows: Rows | None) -> list[Cotangent | None]:
    inputs = [builder.value(i) for i in node.inputs]
    y, prim = builder.value(number), node.prim
    if prim.name == "stop_gradient":
        return [None]
    if prim is select:
        return _select_vjp(inputs, ct)
    if prim.name == "cast":
        return [Cotangent(cast(ct.raw, inputs[0].dtype), ct.mask)]
    if prim.kind == "elementwise":
        ct = ct if tame(node, builder.nodes) else ct.guarded()
        return [None if p is None or i not in active else ct.times(p)
                for i, p in zip(node.inputs, partials_of(prim, y, inputs, node), strict=True)]
    if prim.vjp is None:
        raise _no_rule(prim, node)
    def rule(raw: Value, inputs: list[Value]) -> Sequence[Value | None]:
        return prim.vjp(raw, y, *inputs, **node.params) if rows is None else rows.vjp(  # type: ignore[misc]
            prim, node, raw, y, inputs)
    found = [None if c is None else Cotangent(*_split_mask(c)) for c in rule(ct.value(), inputs)]
    if ct.mask is None or prim.name not in MOVING or guarded.isdisjoint(node.inputs):
        return found
    return [None if c is None or m is None else Cotangent(c.raw, m) if i in guarded else c
            for i, c, m in zip(node.inputs, found, moved(prim, ct.mask, ct.raw, inputs, rule), strict=True)]


def _select_vjp(inputs: list[Value], ct: Cotangent) -> list[Cotangent | None]:
    from jitad.primitives.elementwise import logical_not

    condition = inputs[0]
    return [None, Cotangent(ct.raw, both(ct.mask, condition)),
            Cotangent(ct.raw, both(ct.mask, logical_not(condition)))]


def partials_of(prim: Primitive, y: Value, inputs: list[Value], node: Node) -> Sequence[Value | float | None]:
    """The partial derivatives of an elementwise node, one for each input."""
    if prim.partials is None:
        raise _no_rule(prim, node)
    partials = prim.partials(y, *inputs, **node.params)
    return partials if isinstance(partials, tuple) else (partials,) * len(inputs)


def _no_rule(prim: Primitive, node: Node) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{prim.name} at {node.where} has no derivative rule; wrap the argument in jitad's stop_gradient "
        "if none is wanted")


def pushforward(builder: Builder, outputs: Sequence[Value], primals: Sequence[Value],
                tangents: Sequence[Any], length: int | None = None) -> list[Value]:
    """Tangents of `outputs` for the `tangents` of `primals`, appended to `builder`; `length` of each if given, which
    may be `Tangents`."""
    known: dict[int, Any] = {p.number: t for p, t in zip(primals, tangents, strict=True)}
    rule = _node_jvp
    if length is not None:
        rule = _node_jvps
        known = {n: t if isinstance(t, Tangents) else Tangents((Block(t, 0),)) for n, t in known.items()}
    line = builder.line
    first, last = min(known), max((o.number for o in outputs), default=-1)
    for number in range(first, last + 1):
        node = builder.nodes[number]
        if number in known:
            continue
        builder.line = node.where
        if node.prim is pick:
            known[number] = (known.get(node.inputs[0]) or {}).get(node.params["index"])
        elif node.aval.dtype.char in CARRYING:
            arriving = [known.get(i) for i in node.inputs]
            if any(t is not None for t in arriving):
                known[number] = rule(builder, number, node, arriving)
    builder.line = line
    found = [known.get(o.number) for o in outputs]
    return [_zeros(o, length) if t is None else t if length is None else t.rows(0, length)
            for o, t in zip(outputs, found, strict=True)]


def _node_jvp(builder: Builder, number: int, node: Node, tangents: list[Any]) -> Any:
    inputs = [builder.value(i) for i in node.inputs]
    y, prim = builder.value(number), node.prim
    if prim is scan:
        return scan_tangents(builder, number, tangents, pushforward)
    if prim.name == "stop_gradient":
        return None
    if prim is select:
        sides = [zeros_like(x) if t is None else t for t, x in zip(tangents[1:], inputs[1:], strict=True)]
        return select(inputs[0], *sides)
    if prim.name == "cast":
        return cast(tangents[0], y.dtype) if tangents[0] is not None else None
    if prim.kind == "elementwise":
        terms = [Cotangent(*_split_mask(t)).times(p).value()
                 for t, p in zip(tangents, partials_of(prim, y, inputs, node), strict=True)
                 if t is not None and p is not None]
        return sum(terms[1:], terms[0]) if terms else None
    if prim.jvp is None:
        raise _no_rule(prim, node)
    return prim.jvp(tangents, y, *inputs, **node.params)


def _node_jvps(builder: Builder, number: int, node: Node, tangents: list[Any]) -> Any:
    """The same in many directions: for `Tangents`, `Tangents`; those of a scan by output."""
    inputs = [builder.value(i) for i in node.inputs]
    y, prim = builder.value(number), node.prim
    if prim is scan:
        low, high, values = aligned(tangents)
        found = Rows(builder, high - low).scan_jvp(node, values, inputs,
                                                   partial(scan_tangents, pushforward=pushforward))
        return {index: Tangents((Block(t, low),)) for index, t in found.items() if t is not None}
    if prim.name == "stop_gradient":
        return None
    if prim is select:
        return branches(inputs[0], *tangents[1:])
    if prim.name == "cast":
        return tangents[0].mapped(lambda u: cast(u, y.dtype)) if tangents[0] is not None else None
    if prim.kind != "elementwise":
        if prim.jvp is None:
            raise _no_rule(prim, node)
        return linear_rule(builder, node, tangents, y, inputs)
    terms = []
    for t, p in zip(tangents, partials_of(prim, y, inputs, node), strict=True):
        if t is not None and p is not None:
            terms.append(t.mapped(lambda u: Cotangent(*_split_mask(u)).times(p).value()))    # noqa: B023
    return added(terms) if terms else None


def one(like: Value) -> Value:
    """The seed of a scalar output."""
    return full(like, 1, like.shape, like.dtype)
