"""Derivatives of `scan`: the linear part of a loop is another loop, which reads what the first one saved.

The body is differentiated on a tape of its own. What depends on the cotangents (or tangents) is the body of the
second loop. Of the rest, what is dearer to compute again than to load becomes stacks of the first loop: the node
is extended in place, so that value and derivative need one loop, not two. Both loops are ordinary scans, which
can be differentiated again.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jitad.primitives.core import FLOATS, TABLE, select, zeros_like
from jitad.primitives.reduce import parse
from jitad.primitives.scan import Form, bundle_of, picked, transplant, walk_map
from jitad.primitives.view import broadcast_to, spread
from jitad.tape import Builder, Node, Tape, Value

DEAR = 4      # cost for each element from which a value is saved rather than computed again
TAME = frozenset("input const add sub mul neg square positive cast select exp expm1 sin cos tanh expit arctan view spread "
                 "reduce_sum contract concatenate gather scatter tril triu reshape alias cumsum".split())
"""Operations whose derivatives are finite where the operation is."""


@dataclass
class _Linearised:
    """The body of `form` on a builder of its own, with linear inputs beside the ordinary ones.

    `late` are the linear inputs; `carried` pairs each linear carry with what it becomes and its first value,
    `walked` linear inputs with the arrays they walk, `stacked` is what the second loop stacks.
    """

    form: Form
    builder: Builder
    inputs: list[Value]
    outputs: list[Value]
    late: list[Value] = field(default_factory=list)
    carried: list[tuple[Value, Value, Value]] = field(default_factory=list)
    walked: list[tuple[Value, Value]] = field(default_factory=list)
    stacked: list[Value] = field(default_factory=list)

    @classmethod
    def of(cls, form: Form) -> _Linearised:
        builder = Builder()
        inputs = [builder.input(form.input(i), form.name(i)) for i in range(len(form.body.inputs))]
        return cls(form, builder, inputs, builder.replay(form.body, inputs))

    def linear(self, like: Value, prefix: str, place: int | None) -> Value:
        name = self.form.name(place) if place is not None else "out"
        self.late.append(self.builder.input(replace(like.aval, weak=False), f"{prefix}_{name}"))
        return self.late[-1]

    @property
    def counter(self) -> Value:
        """The position, which the second loop then counts too."""
        if self.form.counter:
            return self.inputs[-1]
        self.form = replace(self.form, counter=True)
        counted = self.builder.input(_COUNTER, "t")
        self.inputs.append(counted)
        return counted


_COUNTER = TABLE["gt"].infer.__globals__["Aval"]((), np.dtype(np.int64))      # replaced below


# --- reverse ---------------------------------------------------------------------------------

def scan_cotangents(builder: Builder, number: int, seeds: dict[int, Value], active: set[int],
                    pullback: Callable[..., list[Value]]) -> list[Value | None]:
    """Cotangents of the operands of scan `number`, for cotangents `seeds` of its outputs by index."""
    node = builder.nodes[number]
    form = Form.of(node)
    operands = [builder.value(i) for i in node.inputs]
    moving = _active_inputs(form, {p for p, v in enumerate(operands) if v.number in active})
    flowing, reached = _reached(form, set(seeds), moving)
    line = _Linearised.of(form)
    arriving, outputs = _seeds(line, seeds, flowing, builder)
    places = [p for p in sorted(reached) if p in moving]
    found = dict(zip(places, pullback(line.builder, outputs, arriving, [line.inputs[p] for p in places]), strict=True))
    for (i, seed, first) in [(i, s, f) for i, s, f in _flows(line, flowing, arriving, seeds, builder)]:
        line.carried.append((seed, found.get(i) or zeros_like(seed), first))
    sums = [p for p in places if p >= form.fixed and operands[p].number in active]
    for p in sums:
        total = line.linear(line.inputs[p], "sum", p)
        zero = broadcast_to(builder.const(np.zeros((), total.dtype)), total.shape)
        line.carried.append((total, total + found[p], zero))
    rows = [p for p in places if form.carries <= p < form.fixed and operands[p].number in active]
    line.stacked = [found[p] for p in rows]
    finals, stacks = _second_loop(builder, number, line, not form.reverse)
    result: list[Value | None] = [None] * len(operands)
    for p, total in zip([*flowing, *sums], finals, strict=True):
        result[p] = total
    for p, stack in zip(rows, stacks, strict=True):
        offset, step = form.scanned[p - form.carries]
        result[p] = spread(stack, operands[p].shape, walk_map(operands[p].ndim, offset, step))
    return result
