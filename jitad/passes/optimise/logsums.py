"""Logarithms of sums of exponentials of sums as logarithms of products of matrices.

``log(sum(exp(a[i] + b[i, j]), i))``, the step of a hidden Markov model, is ``log(exp(a - max a) @ exp(b - max b))``
and the two maxima: fewer exponentials, and none of what a loop does not change. A product whose terms lie far below
their maxima has lost digits; there the step is computed as it is written, by a loop of at most one turn.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from jitad.passes.optimise.fixpoint import number_of
from jitad.passes.optimise.logsum_patterns import LogSum, Uses, found_in
from jitad.primitives.core import full, select, stop_gradient
from jitad.primitives.reduce import contract, reduce_all, reduce_max, restore
from jitad.primitives.scan import Form, bundle_of, loop, picked, transplant
from jitad.primitives.view import Map, compose, identity_map, view
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Aval, Node

FEWER = 3             # times fewer exponentials, at least
LARGE = 4096          # terms, in all steps of the loops around, for which two forms of a sum are worth the code
SURE = 30.0           # how far below the maxima the logarithm may lie for all rounding to be that of a few numbers
SMALLEST = {"float64": (1e-80, 1e-100), "float32": (1e-10, 1e-18)}
"""Sums from which all that counts are normal numbers, and what added to those changes nothing."""
SIGNS = {TABLE["add"]: 1, TABLE["sub"]: -1}        # of the second operand


@dataclass(frozen=True)
class Addend:
    """`sign` times node `source`, seen through a map from the dimensions of the sum."""

    source: int
    index: Map
    sign: int

    def dims(self, shape: tuple[int, ...]) -> set[int]:
        return {d for _, terms in self.index for d, _ in terms if shape[d] > 1}


def factored(builder: Builder, values: Sequence[Value]) -> list[Value]:
    """`values` on a builder in which such logarithms are of products: the same one if there are none."""
    numbers = [v.number for v in values]
    order = builder.live(numbers)
    if not any(_concerned(builder.nodes[i]) for i in order):
        return list(values)
    part = _Part(builder.nodes, order, {*numbers, *builder.guards}, Builder())
    for number, name in zip(builder.inputs, builder.names, strict=True):
        part.builder.line = builder.nodes[number].where
        part.values[number] = part.builder.input(builder.nodes[number].aval, name)
    part.run()
    if not part.changed:
        return list(values)
    for guard in builder.guards.values():
        part.builder.guard(part.values[guard.node], guard.expected, guard.where)
    return [part.values[n] for n in numbers]


def _concerned(node: Node) -> bool:
    return node.prim.accumulate == "add" or (node.body is not None and any(map(_concerned, node.body.nodes)))


@dataclass(eq=False)
class _Part:
    """A tape, or the body of a loop, that is written anew. Of a body `parent` is what the loop stands in, `outside`
    has the values there of the inputs that do not change."""

    nodes: Sequence[Node]
    order: Iterable[int]
    kept: Collection[int]
    builder: Builder
    parent: _Part | None = None
    outside: dict[int, Value] = field(default_factory=dict)      # by the number of the input on the new builder
    fixed: set[int] = field(default_factory=set)                 # old numbers of what does not change in the loop
    numbers: dict[int, float] = field(default_factory=dict)      # inputs that are numbers
    thin: dict[int, tuple[Value, Map]] = field(default_factory=dict)     # inputs that show, by a map, such a value
    values: dict[int, Value] = field(default_factory=dict)
    turns: int = 1                                               # of the loops around
    stays: bool = False                                          # as it is, but for loops in it
    found: dict[int, LogSum] = field(default_factory=dict)
    sure: list[Value] = field(default_factory=list)              # whether the products of a step are
    changed: bool = False

    def run(self) -> None:
        self.order = list(self.order)
        if not self.stays:
            self.found = found_in(Uses(self.nodes, self.order, self.kept, self.numbers))
        loops: dict[int, dict[int, Value]] = {}
        for number in self.order:
            node = self.nodes[number]
            if number in self.values or node.is_input:
                continue
            self.builder.line = node.where
            value = self._product(self.found[number]) if number in self.found else None
            if value is not None:
                self.values[number] = value
            elif node.body is not None:
                loops[number] = self._loop(node)
            elif node.picks is not None and node.inputs[0] in loops:
                self.values[number] = loops[node.inputs[0]][node.picks]
            else:
                self.values[number] = self.builder.again(node, [self.values[i].number for i in node.inputs])

    # --- loops -------------------------------------------------------------------------------------
    def _loop(self, node: Node) -> dict[int, Value]:
        """The outputs of a loop on the new builder."""
        form, operands = Form.of(node), [self.values[i] for i in node.inputs]
        body = form.body
        thin = self._thin(form, node)
        inner = _Part(body.nodes, range(len(body.nodes)), set(body.outputs), Builder(), self,
                      turns=self.turns * form.length, stays=form.until or form.counted)
        for place, (number, name) in enumerate(zip(body.inputs, body.names, strict=True)):
            aval = body.nodes[number].aval
            if place in thin:
                scanned = form.carries <= place < form.fixed
                operands[place], index = _thinned(operands[place], thin[place], scanned)
                value = inner.builder.input(Aval(operands[place].shape[scanned:], aval.dtype), name)
                inner.thin[number] = value, index
                inner.values[number] = view(value, aval.shape, index)
            else:
                value = inner.values[number] = inner.builder.input(aval, name)
            if form.fixed <= place < form.operands:
                inner.fixed.add(number)
                inner.outside[value.number] = operands[place]
                constant = number_of(operands[place])
                if constant is not None:
                    inner.numbers[number] = constant
        for number, inside in enumerate(body.nodes):
            if inside.constant is not None or (inside.inputs and inner.fixed.issuperset(inside.inputs)):
                inner.fixed.add(number)
        inner.run()
        if not inner.changed:
            bundle = bundle_of(self.builder, form, [self.values[i] for i in node.inputs], node.where)
            return {i: picked(bundle, i) for i in range(len(body.outputs))}
        self.changed = True
        return self._rebuilt(form, inner, operands, thin, node)

    def _rebuilt(self, form: Form, inner: _Part, operands: list[Value], thin: Mapping[int, tuple[int, ...]],
                 node: Node) -> dict[int, Value]:
        """The loop of products, with whether each step was sure of them as a further stack, and the loop as it was
        for the case that one was not."""
        outputs = [inner.values[n] for n in form.body.outputs]
        carried = [place for place in thin if place < form.carries]
        for place in carried:
            outputs[place] = _thinned(outputs[place], thin[place])[0]
        body = inner.builder
        count = len(form.body.inputs)
        operands = [*operands, *(inner.outside[n] for n in body.inputs[count:])]
        if form.counter:                                         # the position comes last
            for part in (body.inputs, body.names):
                part.append(part.pop(count - 1))                 # type: ignore[arg-type, attr-defined]
        if inner.sure:
            outputs.append(reduce(TABLE["logical_and"], inner.sure))
        bundle = bundle_of(self.builder, replace(form, body=body.finish(outputs)), operands, node.where)
        results = {i: picked(bundle, i) for i in range(len(outputs))}
        for place in carried:
            shape = form.input(place).shape
            results[place] = view(results[place], shape, inner.thin[form.body.inputs[place]][1])
        if not inner.sure:
            return results
        sure = reduce_all(results.pop(len(outputs) - 1), axes=(0,))
        return self._unless(sure, results, [self.values[i] for i in node.inputs],
                            lambda body, given: _loop_again(body, form, given))

    def _thin(self, form: Form, node: Node) -> dict[int, tuple[int, ...]]:
        """The operands of which each step gets something that is broadcast, with the dimensions of a step in which
        they are not."""
        found = {}
        for place in range(form.operands):
            shape, scanned = form.input(place).shape, form.carries <= place < form.fixed
            maps = [self.nodes[node.inputs[place]].index_map]
            if place < form.carries:
                maps.append(form.body.nodes[form.body.outputs[place]].index_map)
            if None not in maps:
                used = {d - scanned for m in maps for _, terms in m or () for d, _ in terms if d >= scanned}
                if any(n > 1 and d not in used for d, n in enumerate(shape)):
                    found[place] = tuple(sorted(used))
        return found

    def lifted(self, value: Value) -> Value:
        """The value, computed before the loop if the loop does not change it."""
        if self.parent is None or value.number in self.outside:
            return value
        nodes, stack, seen = self.builder.nodes, [value.number], set()
        while stack:
            number = stack.pop()
            if number not in seen and number not in self.outside:
                seen.add(number)
                if nodes[number].is_input:
                    return value
                stack += nodes[number].inputs
        self.parent.builder.line = self.builder.line
        before = self.parent.lifted(transplant(nodes, self.outside, [value.number], self.parent.builder)[0])
        name = f"exp_{len(self.builder.inputs)}"
        inside = self.builder.input(Aval(before.shape, before.dtype), name)
        self.outside[inside.number] = before
        return inside

    # --- products ----------------------------------------------------------------------------------
    def _product(self, sum_: LogSum) -> Value | None:
        shape = self.nodes[sum_.terms].aval.shape
        groups = self._groups(self._addends(sum_.terms, identity_map(len(shape))), shape, sum_.axes)
        if groups is None or prod(shape) * self.turns < LARGE:
            return None
        self.changed = True
        kept = tuple(d for d in range(len(shape)) if d not in sum_.axes)
        rest, *factors = groups
        halves = [self._half(group, shape, sum_.axes) for group in factors]
        spread = tuple(d for d in kept if any(d in half.dims for half in halves))
        left, right, out = ("".join(chr(97 + d) for d in dims) for dims in (*(half.dims for half in halves), spread))
        total = contract(halves[0].terms, halves[1].terms, f"{left},{right}->{out}")
        sizes = tuple(shape[d] for d in kept)
        total = view(total, sizes, tuple((0, ((kept.index(d), 1),)) for d in spread))
        maps = [tuple((0, ((kept.index(d), 1),)) for d in half.dims if d not in sum_.axes) for half in halves]
        levels = [view(half.level, sizes, index) for half, index in zip(halves, maps, strict=True)]
        level = reduce(TABLE["add"], [*([self._sum(rest, shape, kept)] if rest else ()), *levels])
        column = view(halves[1].top, sizes, maps[1]) if sum_.guarded else None
        result, sure = self._logarithm(total, level, column)
        sure = reduce(TABLE["logical_and"], [_all(flag) for flag in (sure, *(half.sure for half in halves))])
        if sum_.keep is not None:
            result = view(result, *sum_.keep)
        if self.parent is not None:
            self.sure.append(sure)
            return result
        leaves = self._leaves(sum_)
        return self._unless(sure, {0: result}, [self.values[n] for n in leaves], lambda body, given: transplant(
            self.nodes, dict(zip(leaves, given, strict=True)), [sum_.result], body))[0]

    def _logarithm(self, total: Value, level: Value, column: Value | None) -> tuple[Value, Value]:
        """The logarithm of a sum that has lost nothing, `level` added, and whether it is that. Where the maximum of a
        `column` is -inf, so is the sum. Derivatives are finite even of what is not sure."""
        least, lost = SMALLEST[total.dtype.name]
        logarithm = TABLE["log"](total + lost)
        result = logarithm + level
        sure = TABLE["logical_and"](TABLE["le"](-logarithm, TABLE["abs"](result) + SURE), TABLE["gt"](total, least))
        if column is None:
            return result, sure
        dead = TABLE["eq"](column, -np.inf)
        return (result + self.lifted(select(dead, full(total, -np.inf, dead.shape, total.dtype), 0.0)),
                TABLE["logical_or"](self.lifted(dead), sure))

    def _leaves(self, sum_: LogSum) -> list[int]:
        """What the sum and its logarithm are computed of."""
        stack, found = [sum_.result], dict[int, None]()
        ends = {a.source for a in self._addends(sum_.terms, identity_map(self.nodes[sum_.terms].aval.ndim))}
        while stack:
            number = stack.pop()
            if number in ends or self.nodes[number].is_input:
                found[number] = None
            else:
                stack += self.nodes[number].inputs
        return list(found)

    def _unless(self, sure: Value, results: dict[int, Value], given: list[Value],
                written: Callable[[Builder, list[Value]], Sequence[Value]]) -> dict[int, Value]:
        """`results` if that is sure, else what is `written` on a builder, of what is `given`."""
        body = Builder()
        body.line = self.builder.line
        again = TABLE["logical_not"](sure)
        first = [again, *results.values()]
        carries = [body.input(Aval(v.shape, v.dtype), f"result{i}") for i, v in enumerate(first)]
        inside = written(body, [body.input(Aval(v.shape, v.dtype), f"given{i}") for i, v in enumerate(given)])
        finals = loop(self.builder, body.finish([carries[0], *inside]), first, [], given, 1, until=True)[0]
        return dict(zip(results, finals[1:], strict=True))

    def _addends(self, number: int, index: Map, sign: int = 1) -> list[Addend]:
        """What node `number`, seen through a map, is the sum of."""
        node = self.nodes[number]
        if node.index_map is not None:
            return self._addends(node.inputs[0], compose(index, node.index_map), sign)
        second = None if number in self.found else SIGNS.get(node.prim)
        if second is None:
            return [Addend(number, compose(index, self.thin[number][1]) if number in self.thin else index, sign)]
        return [*self._addends(node.inputs[0], index, sign), *self._addends(node.inputs[1], index, sign * second)]

    def _groups(self, addends: list[Addend], shape: tuple[int, ...],
                axes: tuple[int, ...]) -> list[list[Addend]] | None:
        """Those that do not vary in the sum, and the two factors, the one that a loop does not change last; None if
        that is no gain."""
        rest = [a for a in addends if a.dims(shape).isdisjoint(axes)]
        terms = sorted((a for a in addends if a not in rest), key=lambda a: _size(a.dims(shape), shape))
        if not terms:
            return None
        largest = terms[-1].dims(shape)
        inside = [a.source in self.fixed for a in terms]
        for last in (inside, [a.dims(shape) <= largest for a in terms]):
            factors = [[a for a, is_last in zip(terms, last, strict=True) if is_last is side] for side in (False, True)]
            if all(factors) and all(d in set().union(*(a.dims(shape) for a in terms)) for d in axes if shape[d] > 1):
                sizes = [_size(set().union(*(a.dims(shape) for a in f)), shape) for f in factors]
                work = sizes[0] + (0 if all(a.source in self.fixed for a in factors[1]) else sizes[1])
                if work * FEWER <= prod(shape):
                    return [rest, *factors]
        return None

    def _half(self, group: list[Addend], shape: tuple[int, ...], axes: tuple[int, ...]) -> _Half:
        """One factor; what a loop does not change of it is computed before the loop."""
        dims = tuple(sorted({d for a in group for d in a.dims(shape)}))
        total = self._sum(group, shape, dims)
        lost = tuple(i for i, d in enumerate(dims) if d in axes)
        top = reduce_max(stop_gradient(total), axes=lost)
        sure = TABLE["lt"](top, np.inf)
        level = select(TABLE["isfinite"](top), top, 0.0)
        terms = TABLE["exp"](total - restore(level, total.shape, lost))
        terms = select(restore(sure, total.shape, lost), terms, 0.0)
        return _Half(dims, *(self.lifted(v) for v in (terms, top, level, sure)))

    def _sum(self, group: list[Addend], shape: tuple[int, ...], dims: tuple[int, ...]) -> Value:
        """The addends added up, over these dimensions of the sum."""
        total: Any = None
        for addend in group:
            index = tuple((offset, tuple((dims.index(d), step) for d, step in terms if shape[d] > 1))
                          for offset, terms in addend.index)
            source, _ = self.thin.get(addend.source, (self.values[addend.source], ()))
            value = view(source, tuple(shape[d] for d in dims), index)
            total = (value if addend.sign > 0 else -value) if total is None else (
                total + value if addend.sign > 0 else total - value)
        return total


@dataclass(frozen=True)
class _Half:
    """A factor over `dims`: exponentials below the maxima `top`, in which infinities are zeros as `level`; `sure`
    where it is a number at all."""

    dims: tuple[int, ...]
    terms: Value
    top: Value
    level: Value
    sure: Value


def _all(flags: Value) -> Value:
    return reduce_all(flags, axes=tuple(range(flags.ndim))) if flags.ndim else flags


def _loop_again(builder: Builder, form: Form, operands: list[Value]) -> list[Value]:
    bundle = bundle_of(builder, form, operands, builder.line)
    return [picked(bundle, i) for i in range(len(form.body.outputs))]


def _size(dims: Iterable[int], shape: tuple[int, ...]) -> int:
    return prod(shape[d] for d in dims)


def _thinned(value: Value, dims: tuple[int, ...], lead: bool = False) -> tuple[Value, Map]:
    """A broadcast value over the dimensions in which it varies, and the map that shows it broadcast again; with `lead`
    an array of such values, along its first dimension."""
    first = ((0, ((0, 1),)),) if lead else ()
    index = tuple((0, ((lead + dims.index(d), 1),) if d in dims else ()) for d in range(value.ndim - lead))
    sizes = (*value.shape[:lead], *(value.shape[lead + d] for d in dims))
    return view(value, sizes, (*first, *index)), tuple((0, ((d, 1),)) for d in dims)


__all__ = ["factored"]
