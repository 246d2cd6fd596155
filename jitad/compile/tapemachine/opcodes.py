"""Op-codes of the tape machine: what each does forward and in reverse, from its row of the table.

Nothing is written twice: the forward code is the scalar code of the row, the reverse code is what `pullback` makes of
one node, with the value that the forward sweep has left behind in the place of its result.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jitad.compile.llvm.cython_special import is_special
from jitad.compile.loops import tag
from jitad.compile.plan.pull import Pull
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.core import select
from jitad.tape.builder import Builder, Value
from jitad.tape.expr import Expr, const, var
from jitad.tape.tape import Tape
from jitad.tape.types import Aval, Node, Primitive


class Contribution(NamedTuple):
    """What one operand's cotangent gets where `mask` holds (None: everywhere; elsewhere it is structurally zero):
    `value`, to be multiplied by the cotangent of the result if it is a `factor`."""

    value: Expr
    mask: Expr | None
    factor: bool

    @property
    def same(self) -> bool:
        """Whether it is just the cotangent of the result."""
        return self.factor and self.mask is None and self.value.op == "const" and self.value.args[0] == 1


@dataclass(frozen=True)
class OpCode:
    """`prim` of numbers of `dtypes` (names); `active` are the operands that have cotangents."""

    prim: Primitive
    params: tuple[tuple[str, Any], ...]
    dtypes: tuple[str, ...]
    active: tuple[bool, ...]

    @property
    def arity(self) -> int:
        return len(self.dtypes)

    @property
    def given(self) -> Mapping[str, Any]:
        return dict(self.params)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """That of the result."""
        return self.prim.infer(*self._avals, **self.given).dtype

    @cached_property
    def _avals(self) -> list[Aval]:
        return [Aval((), np.dtype(name)) for name in self.dtypes]

    @property
    def carries(self) -> bool:
        """Whether the result has a cotangent that goes somewhere."""
        return any(self.active) and self.dtype.kind == "f"

    def __str__(self) -> str:
        params = "".join(f" {k}={v}" for k, v in self.params)
        marks = ", ".join(f"{'d' if a else ''}{tag(np.dtype(d))}"
                          for d, a in zip(self.dtypes, self.active, strict=True))
        return f"{self.prim}{params} ({marks}) -> {tag(self.dtype)}"

    @property
    def columns(self) -> int:
        """Words of a program for one operation."""
        return self.arity

    @cached_property
    def _exprs(self) -> list[Expr]:
        return [self.forward, *(e for c in self.reverse if c is not None for e in (c.value, c.mask) if e is not None)]

    @cached_property
    def cheap(self) -> bool:
        """Whether it is a few operations that take a few cycles."""
        return all(sum(1 for _ in _parts(e)) <= SMALL and all(p.op in PLAIN for p in _parts(e)) for e in self._exprs)

    @cached_property
    def lonely(self) -> bool:
        """Whether it calls functions that know of no vector lanes."""
        return any(is_special(p.op) for e in self._exprs for p in _parts(e))

    @property
    def mixes(self) -> bool:
        """Whether computing it for nothing costs less than to find out that it is not wanted."""
        return self.arity <= 2 and {*self.dtypes, self.dtype.name} == {"float64"} and (
            self.prim.partials is not None) and self.cheap

    def _applied(self) -> tuple[Builder, list[Value], Value]:
        builder = Builder()
        xs = [builder.input(aval, f"x{i}") for i, aval in enumerate(self._avals)]
        return builder, xs, builder.value(builder.apply(self.prim, [x.number for x in xs], self.given))

    @cached_property
    def forward(self) -> Expr:
        """The result, of the variables x0, x1, ..."""
        builder, _, y = self._applied()
        return _pulled(builder.finish([y]), set()).element(y.number, ())

    @cached_property
    def reverse(self) -> list[Contribution | None]:
        """For each operand what its cotangent gets, of x0, x1, ..., the result y and its cotangent ct.

        Raises `UnsupportedOperationError` if the row has no derivative.
        """
        if not self.carries:
            return [None] * self.arity
        builder, xs, y = self._applied()
        factor = self.prim.partials is not None and {*self.dtypes, self.dtype.name} == {"float64"}
        ct = one(y) if factor else builder.input(y.aval, "ct")
        wrt = [x for x, active in zip(xs, self.active, strict=True) if active]
        split = [_split(ct) for ct in pullback(builder, [y], [ct], wrt)]
        tape = optimise(builder.finish([y, *(v for pair in split for v in pair)]))
        known, *found = tape.outputs
        pull = _pulled(tape, {known} - set(tape.inputs))
        pairs = iter(zip(found[::2], found[1::2], strict=True))
        return [_contribution(tape, pull, *next(pairs), factor) if active else None for active in self.active]


@dataclass(frozen=True)
class Mixture:
    """Cheap op-codes of float64 numbers in one: all are computed, and a further column says which one is meant. A jump
    that the processor cannot foresee costs more than that."""

    codes: tuple[OpCode, ...]
    arity: int = 2
    columns: int = 3
    dtypes: tuple[str, ...] = ("float64", "float64")
    carries: bool = True
    cheap: bool = True
    lonely: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def __str__(self) -> str:
        return " | ".join(map(str, self.codes))


@dataclass(frozen=True)
class LongSum:
    """A sum of many numbers, in order. A run is one; its count is that of the terms, of which those that are taken away
    are given by the complement of their places."""

    columns: int = 0
    carries: bool = True
    cheap: bool = True

    def __str__(self) -> str:
        return "sums (f8, ...) -> f8"


Code = OpCode | Mixture | LongSum
CHAIN = LongSum()


PLAIN = frozenset("const var add sub mul div neg abs lt le gt ge eq ne and or xor not select copysign".split())
SMALL = 16                # operations of a plain expression


def _parts(e: Expr) -> Iterator[Expr]:
    """All operations of an expression."""
    seen, stack = {e}, [e]
    while stack:
        e = stack.pop()
        yield e
        for a in e.args:
            if isinstance(a, Expr) and a not in seen:
                seen.add(a)
                stack.append(a)


def _pulled(tape: Tape, known: set[int]) -> Pull:
    """Expressions of the tape's inputs by name, and of y, the node that is `known`."""
    names = dict(zip(tape.inputs, tape.names, strict=True))

    def read(number: int, at: Any) -> Expr:
        node = tape.nodes[number]
        if node.constant is not None:
            return const(node.constant.item(), tag(node.aval.dtype))
        return var(names.get(number, "y"), tag(node.aval.dtype))
    return Pull(tape, known, read)


def _split(ct: Value) -> tuple[Value, Value]:
    """``select(mask, raw, 0)`` as (raw, mask): what is structurally zero, and so must not meet an infinity."""
    node, builder = ct.node, ct.builder
    if node.prim is select:
        mask, raw, rest = map(builder.value, node.inputs)
        if _is_zero(rest.node):
            return raw, mask
    return ct, builder.const(True)


def _contribution(tape: Tape, pull: Pull, number: int, mask: int, factor: bool) -> Contribution | None:
    if _is_zero(tape.nodes[number]) or _is_zero(tape.nodes[mask]):
        return None
    counts = None if tape.nodes[mask].constant is not None else pull.element(mask, ())
    return Contribution(pull.element(number, ()), counts, factor)


def _is_zero(node: Node) -> bool:
    return node.constant is not None and not node.constant.any()
