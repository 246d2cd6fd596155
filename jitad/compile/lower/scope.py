"""What lowering a statement sees: the values of a tape, how each is read and written, fresh names, and the statements
so far."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from jitad.compile.loops import (
    STATUS_GUARD,
    STATUS_INDEX,
    Buffer,
    Fill,
    Let,
    Return,
    SetElement,
    Statement,
    Update,
    tag,
)
from jitad.compile.lower.names import unique_names
from jitad.compile.lower.slots import WorkArray, WorkSlot, block_rows
from jitad.compile.plan.fuse import FusionPlan
from jitad.compile.plan.index import Affine, Indices, as_expr, flattened, weighted
from jitad.compile.plan.pull import Pull
from jitad.compile.plan.roots import Root
from jitad.tape.expr import Expr, call, const, load, var

_IDENTITY = {"add": 0.0, "add_in_order": 0.0, "max": -math.inf, "min": math.inf, "and": True, "or": False}


def identity_of(op: str, dtype: np.dtype[Any]) -> Expr:
    """Where an accumulation by `op` starts."""
    value: Any = _IDENTITY[op]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        value = {"max": int(info.min), "min": int(info.max)}.get(op, 0)
    return const(value, tag(dtype))


class Scope:
    """One tape that is lowered: a kernel's, or that of a loop's body, which lies in the `outer` one."""

    def __init__(self, plan: FusionPlan, layouts: tuple[str, ...], outer: Scope | None = None):
        self.plan, self.tape = plan, plan.tape
        self.names = unique_names(self.tape)
        self.layouts = dict(zip(self.tape.inputs, layouts, strict=True))
        self.numbers = {i for i, layout in self.layouts.items() if layout == "number"}
        self.constants: dict[int, Buffer] = {}
        self.guards = {g.node: g for g in self.tape.guards}
        self.slots: dict[int, WorkSlot] = {}
        self.sources: dict[int, Callable[[Indices], Expr]] = {}     # how to read inputs that the outside has
        self.inner: list[tuple[Scope, int]] = []        # those of loops' bodies, with their groups
        self.body: list[Statement] = []
        self.group = 0
        self.block = 0                                  # rows in a block of the current group, 0: not blocked
        self._rows: dict[int, int] = {}                 # in a block of each group
        self.filled: set[int] = set()
        self.further: list[WorkArray] = []
        self.numbered: Iterator[int] = outer.numbered if outer is not None else count(1)
        if outer is not None:                           # names that are unique in the kernel
            self.names = {number: self.unique(name) for number, name in self.names.items()}

    def fresh(self) -> int:
        """A number for a new variable."""
        return next(self.numbered)

    def unique(self, name: str) -> str:
        """A name of that kind that nothing else in the kernel has."""
        return f"{name}_{self.fresh()}_"

    def data(self) -> list[Buffer]:
        """The constants, those of loops' bodies included."""
        return [*self.constants.values(), *(c for inner, _ in self.inner for c in inner.data())]

    def buffer(self, number: int) -> None:
        """Give an input memory of its own."""
        self.slots[number] = WorkSlot(self.names[number], 0, 0)

    def arrays(self, inside: bool = False) -> list[WorkArray]:
        """The work arrays with their dtypes and shapes; `inside` a loop's body, the outputs are such too."""
        arrays: list[WorkArray] = []
        for number, slot in self.slots.items():
            aval = self.tape.nodes[number].aval
            if number in self.tape.outputs and aval.ndim and not inside:
                continue
            arrays.append((slot, tag(aval.dtype), (self._block_of(number),) if slot.local else aval.shape))
        arrays += self.further
        for inner, group in self.inner:
            arrays += [(replace(slot, first=group, last=group), dtype, shape)
                       for slot, dtype, shape in inner.arrays(inside=True)]
        return arrays

    def _block_of(self, number: int) -> int:
        group = self.plan.roots[number][0].group
        if group not in self._rows:
            self._rows[group] = block_rows(self.plan.groups[group])
        return self._rows[group]

    # --- reading and writing -----------------------------------------------------------------
    def read(self, number: int, at: Indices) -> Expr:
        """The element of something that exists."""
        node = self.tape.nodes[number]
        dtype = tag(node.aval.dtype)
        if number in self.sources:
            return self.sources[number](at)
        if node.constant is not None:
            if node.aval.ndim == 0:
                return const(node.constant.item(), dtype)
            return self._load(self._constant(number).name, node.aval.shape, at, dtype, True)
        if number in self.numbers or (node.aval.ndim == 0 and not node.is_input):
            return var(self.names[number], dtype)
        if node.is_input:
            return self._load(self.names[number], node.aval.shape, at, dtype, self.layouts[number] == "C")
        slot = self.touch(number)
        if slot.local:
            return self._load(slot.name, (0,), self._in_block(number, at), dtype, True)
        return self._load(slot.name, node.aval.shape, at, dtype, True)

    def is_flat(self, number: int) -> bool:
        """Whether elements are found by their flat index."""
        return number not in self.sources and self.layouts.get(number, "C") == "C"

    @staticmethod
    def _load(name: str, shape: tuple[int, ...], at: Indices, dtype: str, flat: bool) -> Expr:
        indices = (as_expr(flattened(at, shape)),) if flat and shape else tuple(map(as_expr, at))
        return load(name, indices, dtype)

    def _in_block(self, number: int, at: Indices) -> Indices:
        """A block-sized array is indexed by the axis alone, from the block's start."""
        return (weighted(0, [(1, at[0]), (-1, Affine(0, (("block", 1),)))]),)

    def _constant(self, number: int) -> Buffer:
        value = self.tape.nodes[number].params["value"].value
        known = self.constants.get(number)
        if known is None:
            known = Buffer(self.names[number], tag(value.dtype), value.shape, "constant", value=value)
            self.constants[number] = known
        return known

    def touch(self, number: int) -> WorkSlot:
        slot = self.slots.get(number)
        if slot is None:
            scalar = self.tape.nodes[number].aval.ndim == 0
            slot = WorkSlot(self.names[number] + "_at" * scalar, self.group, self.group,
                          not scalar and self._is_local(number))
            self.slots[number] = slot
        slot.first, slot.last = min(slot.first, self.group), max(slot.last, self.group)
        return slot

    def _is_local(self, number: int) -> bool:
        """Whether only the current group reads the array, block by block."""
        node, (root, *more) = self.tape.nodes[number], self.plan.roots[number]
        if not self.block or more or root.axis is None or node.aval.ndim != 1 or number in self.tape.outputs:
            return False
        made = root.target(Pull(self.tape, set(), self.read), root.at({root.axis: "a"}))
        if root.kind not in ("map", "reduce") or not (isinstance(made[0], Affine) and made[0].is_variable("a")):
            return False
        return all(r.group == root.group and r.axis is not None and at and isinstance(at[0], Affine)
                   and at[0].is_variable(f"d{r.axis}") for r, at in self.readers.get(number, ()))

    @cached_property
    def readers(self) -> dict[Any, list[tuple[Root, Indices]]]:
        """For each thing that exists the roots that read it, and at which indices."""
        found: dict[Any, list[tuple[Root, Indices]]] = {}
        for roots in self.plan.roots.values():
            for root in roots:
                for number, at in root.reads:
                    found.setdefault(number, []).append((root, at))
        return found

    def target(self, number: int, at: Indices) -> tuple[str, tuple[Expr, ...]]:
        """Buffer and index of the element of node `number` to write."""
        slot, shape = self.touch(number), self.tape.nodes[number].aval.shape
        if slot.local:
            return slot.name, (as_expr(self._in_block(number, at)[0]),)
        return slot.name, (as_expr(flattened(at, shape)),)

    def add_lanes(self, number: int, count: int) -> str:
        """The name of `count` copies of the array of node `number`, one after the other, all zero. Each root has
        copies of its own, as each adds them up."""
        aval = self.tape.nodes[number].aval
        name = self.work(f"{self.names[number]}_x{count}", tag(aval.dtype), count * aval.size)
        self.body.append(Fill(name, 0.0))
        return name

    def work(self, kind: str, dtype: str, size: int) -> str:
        """The name of a work array for the current group."""
        slot = WorkSlot(self.unique(kind), self.group, self.group)
        self.further.append((slot, dtype, (size,)))
        return slot.name

    def is_block(self, number: int) -> bool:
        return self.touch(number).local

    def identity(self, number: int, op: str) -> Expr:
        """Where an accumulation of node `number` by `op` starts."""
        return identity_of(op, self.tape.nodes[number].aval.dtype)

    def fill(self, number: int, op: str) -> None:
        """Start an accumulated array; the statement goes before the current group."""
        if number not in self.filled:
            self.filled.add(number)
            self.body.append(Fill(self.touch(number).name, self.identity(number, op).args[0]))

    def operand(self, number: int) -> str:
        node = self.tape.nodes[number]
        if node.constant is not None:
            return self._constant(number).name
        return self.names[number] if node.is_input else self.touch(number).name

    def guarded(self, number: int) -> list[Statement]:
        """Stop where a value on which the user's code branched is not what it was."""
        guard = self.guards.get(number)
        if guard is None:
            return []
        value = self.read(number, ())
        right = value if guard.expected is True else call("not", value) if guard.expected is False else value.eq(
            guard.expected)
        return [Return(right, STATUS_GUARD)]

    def finished(self, root: Root, value: Expr, at: Indices, pull: Pull) -> list[Statement]:
        """What to do with the value that a root has outside of loops: in a scalar group, or as the accumulator of a
        whole group."""
        if not isinstance(root.node, int):
            return [Return(value, STATUS_INDEX)]
        number = root.node
        if self.tape.nodes[number].aval.ndim == 0:
            name = self.names[number]
            named: list[Statement] = [] if value.op == "var" and value.args[0] == name else [Let(name, value)]
            return [*named, *self.guarded(number)]
        buffer, index = self.target(number, root.target(pull, at))
        if root.op != "store" and (root.kind == "update" or len(self.plan.roots[number]) > 1):
            self.fill(number, root.op)
            return [Update(buffer, index, root.op, value)]
        return [SetElement(buffer, index, value)]
