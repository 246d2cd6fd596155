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
from jitad.passes.differentiate.activity import CARRYING, active_nodes, jvp_of, vjp_of
from jitad.passes.differentiate.directions import Rows
from jitad.passes.differentiate.scan import scan_cotangents, scan_tangents
from jitad.passes.differentiate.structural_zeros import (
    both,
    either,
    is_constant,
    known,
    masked,
    moved,
    sensitive,
    split_mask,
    tame,
)
from jitad.passes.differentiate.tangents import WHOLE, Block, Tangents, added, aligned, linear_rule
from jitad.primitives.core import full, select, zeros_like
from jitad.primitives.view import broadcast_to, spread, view
from jitad.tape.builder import Builder, Value
from jitad.tape.tape import needed
from jitad.tape.types import Node, Primitive


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
        if self.mask is None and _is_spread(self.raw):
            return Cotangent(_inside_spread(self.raw, partial))
        partial, mask = split_mask(partial)
        return Cotangent(self.raw if is_constant(partial, 1.0) else self.raw * partial, both(self.mask, mask))

    def guarded(self) -> Cotangent:
        """With all structural zeros in the mask, as they must not meet what comes next."""
        return self if _is_spread(self.raw) else Cotangent(self.raw, both(self.mask, known(self.raw)))


def _is_spread(value: Value) -> bool:
    return value.node.prim.mapped and value.node.prim.scatters


def _inside_spread(ct: Value, partial: Value) -> Value:
    """``spread(u) * partial`` as the spread of a product: what lies outside of the slice is structurally
    zero and must not meet `partial`, and need not be computed."""
    node, builder = ct.node, ct.builder
    u, index = builder.value(node.inputs[0]), node.params["index"]
    product = Cotangent(u).times(view(broadcast_to(partial, ct.shape), u.shape, index)).value()
    return spread(product, node.params["shape"], index)


def pullback(builder: Builder, outputs: Sequence[Value], seeds: Sequence[Value],
             wrt: Sequence[Value], length: int | None = None, kept: Sequence[Value] = ()) -> list[Value]:
    """Cotangents of `wrt` for the cotangents `seeds` of `outputs`, appended to `builder`; `length` of each if given.
    Those of the values `kept` have their masks (see `split_mask`) where all their parts have one.

    Values that do not depend on `wrt` are constants, also when they are
    themselves traced by an outer differentiation.
    """
    rows = Rows(builder, length) if length is not None else None
    first = min(w.number for w in wrt)
    last = max((o.number for o in outputs), default=-1)
    active = active_nodes(builder.nodes, {w.number for w in wrt}, first, last)
    guarded = sensitive(builder, active, first, last)
    masks = masked(builder, active, first, last, kept)
    pending: dict[int, list[Any]] = {}                 # of a bundle pairs: (output, cotangent)
    for output, seed in zip(outputs, seeds, strict=True):
        if output.number in active:
            pending.setdefault(output.number, []).append(Cotangent(*split_mask(seed)))
    wanted = {w.number for w in wrt}
    found: dict[int, Value] = {}
    line = builder.line
    for number in range(last, first - 1, -1):
        parts = pending.pop(number, None)
        if parts is None:
            continue
        node = builder.nodes[number]
        # an input's is the line of the call, which computes nothing
        builder.line = node.where.derived() if node.where and not node.is_input else None
        if number in wanted:
            found[number] = _total(parts, masked=number in masks).value()
            continue
        if node.picks is not None:
            pending.setdefault(node.inputs[0], []).append((node.picks, _total(parts, masked=number in masks)))
            continue
        if number in guarded and node.body is None:
            parts = [_total(parts, guarded=True)]
        elif number in masks and node.body is None:
            parts = [_total(parts, masked=True)]
        for i, ct in zip(node.inputs, _cotangents(builder, number, node, parts, active, masks, rows), strict=True):
            if ct is not None and i in active:
                pending.setdefault(i, []).append(ct)
    builder.line = line
    return [found.get(w.number) or _zeros(w, length) for w in wrt]


def _zeros(like: Value, length: int | None) -> Value:
    """Structural zeros for a value: `length` of them if given."""
    return zeros_like(like) if length is None else full(like, 0, (length, *like.shape), like.dtype)


def _cotangents(builder: Builder, number: int, node: Node, parts: list[Any], active: set[int], masks: set[int],
                rows: Rows | None) -> Sequence[Cotangent | None]:
    """Those of the inputs of a node, for what has arrived at it."""
    if node.body is None:
        return _node_vjp(builder, number, node, _total(parts), active, masks, rows)
    seeds = {index: ct.value() for index, ct in parts}
    if rows is None:
        found = scan_cotangents(builder, number, seeds, active, pullback)
    else:
        inputs, places = [builder.value(i) for i in node.inputs], {p for p, i in enumerate(node.inputs) if i in active}
        found = rows.scan_vjp(node, seeds, inputs, places, partial(scan_cotangents, pullback=pullback))
    return [None if c is None else Cotangent(*split_mask(c)) for c in found]


def _total(parts: list[Cotangent], guarded: bool = False, masked: bool = False) -> Cotangent:
    """The sum; `guarded` keeps what is structurally zero in all parts known as such, `masked` what all their masks say
    is zero."""
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
    return Cotangent(total, either([p.mask or known(p.raw) for p in parts]) if guarded else
                     either([p.mask for p in parts]) if masked else None)


def _node_vjp(builder: Builder, number: int, node: Node, ct: Cotangent, active: set[int], masks: set[int],
              rows: Rows | None) -> list[Cotangent | None]:
    inputs = [builder.value(i) for i in node.inputs]
    y, prim = builder.value(number), node.prim
    if prim.elementwise and prim.vjp is not None:
        found = [None if c is None else split_mask(c) for c in prim.vjp(ct.raw, y, *inputs, **node.params)]
        return [None if c is None else Cotangent(c[0], both(ct.mask, c[1])) for c in found]
    if prim.elementwise:
        ct = ct if tame(node, builder.nodes) else ct.guarded()
        return [None if p is None or i not in active else ct.times(p)
                for i, p in zip(node.inputs, partials_of(prim, y, inputs, node), strict=True)]
    vjp = vjp_of(prim)
    if vjp is None:
        raise _no_rule(prim, node)

    def rule(raw: Value, inputs: list[Value]) -> Sequence[Value | None]:
        return vjp(raw, y, *inputs, **node.params) if rows is None else rows.vjp(prim, node, raw, y, inputs)
    cotangents = [None if c is None else Cotangent(*split_mask(c)) for c in rule(ct.value(), inputs)]
    if ct.mask is None or not (prim.moves or prim.adds) or masks.isdisjoint(node.inputs):
        return cotangents
    return [None if c is None or m is None else Cotangent(c.raw, m) if i in masks else c
            for i, c, m in zip(node.inputs, cotangents, moved(prim, ct.mask, ct.raw, inputs, rule), strict=True)]


def partials_of(prim: Primitive, y: Value, inputs: list[Value], node: Node) -> Sequence[Value | float | None]:
    """The partial derivatives of an elementwise node, one for each input."""
    if prim.partials is None:
        raise _no_rule(prim, node)
    partials = prim.partials(y, *inputs, **node.params)
    return partials if isinstance(partials, tuple) else (partials,) * len(inputs)


def _no_rule(prim: Primitive, node: Node) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{prim} at {node.where} has no derivative rule; wrap the argument in jitad's stop_gradient "
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
    read = needed(builder.nodes, [o.number for o in outputs])      # the others may have no derivative
    for number in range(first, last + 1):
        node = builder.nodes[number]
        if number in known or not read[number]:
            continue
        builder.line = node.where and node.where.derived()
        if node.picks is not None:
            known[number] = (known.get(node.inputs[0]) or {}).get(node.picks)
        elif node.aval.dtype.char in CARRYING and not node.prim.stops:
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
    if node.body is not None:
        return scan_tangents(builder, number, tangents, pushforward)
    jvp = jvp_of(prim)
    if jvp is not None:
        return jvp(tangents, y, *inputs, **node.params)
    if prim.elementwise:
        terms = [Cotangent(*split_mask(t)).times(p).value()
                 for t, p in zip(tangents, partials_of(prim, y, inputs, node), strict=True)
                 if t is not None and p is not None]
        return sum(terms[1:], terms[0]) if terms else None
    raise _no_rule(prim, node)


def _node_jvps(builder: Builder, number: int, node: Node, tangents: list[Any]) -> Any:
    """The same in many directions: for `Tangents`, `Tangents`; those of a scan by output."""
    inputs = [builder.value(i) for i in node.inputs]
    y, prim = builder.value(number), node.prim
    if node.body is not None:
        low, high, values = aligned(tangents)
        found = Rows(builder, high - low).scan_jvp(node, values, inputs,
                                                   partial(scan_tangents, pushforward=pushforward))
        return {index: Tangents((Block(t, low),)) for index, t in found.items() if t is not None}
    whole = WHOLE.of(prim)
    if whole is not None:
        return whole(node, tangents, inputs)
    if not prim.elementwise:
        if jvp_of(prim) is None:
            raise _no_rule(prim, node)
        return linear_rule(builder, node, tangents, y, inputs)
    terms = []
    for t, p in zip(tangents, partials_of(prim, y, inputs, node), strict=True):
        if t is not None and p is not None:
            terms.append(t.mapped(lambda u: Cotangent(*split_mask(u)).times(p).value()))    # noqa: B023
    return added(terms) if terms else None


def one(like: Value) -> Value:
    """The seed of a scalar output."""
    return full(like, 1, like.shape, like.dtype)
