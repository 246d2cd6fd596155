"""Lowering: the groups of a plan become a program of the loop language."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jitad.compile.loops import (
    STATUS_GUARD,
    STATUS_INDEX,
    Buffer,
    Call,
    Fill,
    Let,
    Loop,
    Note,
    Program,
    Return,
    Statement,
    Store,
    Update,
    tag,
)
from jitad.compile.lower.names import unique_names
from jitad.compile.lower.nest import Nest
from jitad.compile.lower.scan.lower import lower_scan
from jitad.compile.plan.collapse import Memory, collapse
from jitad.compile.plan.factors import share_factors
from jitad.compile.plan.fuse import Group, Plan, fuse
from jitad.compile.plan.index import Affine, Indices, as_expr, flattened, weighted
from jitad.compile.plan.prepare import prepare
from jitad.compile.plan.pull import Pull
from jitad.compile.plan.roots import Root
from jitad.tape.expr import Expr, call, const, load, var
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE

IDENTITY = {"add": 0.0, "add_in_order": 0.0, "max": -math.inf, "min": math.inf, "and": True, "or": False}
BLOCK_BYTES, BLOCK_ROWS, WHOLE = 16384, 512, 64         # `WHOLE` rows: some vectors at a time, with none left over


@dataclass
class Place:
    """Where a materialised array lives: first and last group that touch it, and whether only one block of it exists."""

    name: str
    first: int
    last: int
    local: bool = False


def program_of(tape: Tape, layouts: tuple[str, ...]) -> Program:
    """The kernel of an optimised tape, for inputs that lie in memory as `layouts` says (see `prepare`)."""
    prepared = prepare(share_factors(tape), layouts)
    return lower(fuse(prepared, layouts), layouts)


def lower(plan: Plan, layouts: tuple[str, ...]) -> Program:
    """The program of `plan`; `layouts` as for `prepare`."""
    return _Lowering(plan, layouts).run()


class _Lowering:
    def __init__(self, plan: Plan, layouts: tuple[str, ...]):
        self.plan, self.tape = plan, plan.tape
        self.names = unique_names(self.tape)
        self.layouts = dict(zip(self.tape.inputs, layouts, strict=True))
        self.numbers = {i for i, layout in self.layouts.items() if layout == "number"}
        self.constants: dict[int, Buffer] = {}
        self.guards = {g.node: g for g in self.tape.guards}
        self.places: dict[int, Place] = {}
        self.sources: dict[int, Callable[[Indices], Expr]] = {}     # how to read inputs that the outside has
        self.inner: list[tuple[_Lowering, int]] = []    # the lowerings of loops' bodies, with their groups
        self.body: list[Statement] = []
        self.group = 0
        self.block = 0                                  # rows in a block of the current group, 0: not blocked
        self.filled: set[int] = set()
        self.lanes: list[tuple[Place, str, tuple[int, ...]]] = []
        self._count = 0

    def fresh(self) -> int:
        """A number for a new variable."""
        self._count += 1
        return self._count

    # --- the whole ---------------------------------------------------------------------------
    def run(self) -> Program:
        for number in self.tape.inputs:
            self.body += self._guarded(number)
        self.lower_groups()
        return self._program()

    def lower_groups(self) -> None:
        """Append the statements of all groups to the body."""
        for place, group in enumerate(self.plan.groups):
            self.group = place
            if group.kind == "scalar":
                self._scalar_group(group)
            elif group.kind == "call":
                self._call(group)
            elif group.kind == "scan":
                lower_scan(self, group)
            else:
                self._loop_group(group)

    def _program(self) -> Program:
        tape = self.tape
        parameters: list[Any] = []
        for i in tape.inputs:
            aval = tape.nodes[i].aval
            parameters.append((self.names[i], tag(aval.dtype)) if i in self.numbers else Buffer(
                self.names[i], tag(aval.dtype), aval.shape, "input", order=self.layouts[i]))
        outputs = tuple(Buffer(self.names[o], tag(tape.nodes[o].aval.dtype), tape.nodes[o].aval.shape, "output")
                        for o in tape.outputs if tape.nodes[o].aval.ndim)
        work, sizes = self._workspace()
        results = tuple(var(self.names[o], tag(tape.nodes[o].aval.dtype)) for o in tape.outputs
                        if not tape.nodes[o].aval.ndim)
        return Program(tuple(parameters), outputs, (*self.data(), *work), self.body, results, sizes)

    def data(self) -> list[Buffer]:
        """The constants, those of loops' bodies included."""
        return [*self.constants.values(), *(c for inner, _ in self.inner for c in inner.data())]

    def buffer(self, number: int) -> None:
        """Give an input memory of its own."""
        self.places[number] = Place(self.names[number], 0, 0)

    def arrays(self, inside: bool = False) -> list[tuple[Place, str, tuple[int, ...]]]:
        """The work arrays with their dtypes and shapes; `inside` a loop's body, the outputs are such too."""
        arrays: list[tuple[Place, str, tuple[int, ...]]] = []
        for number, place in self.places.items():
            aval = self.tape.nodes[number].aval
            if number in self.tape.outputs and aval.ndim and not inside:
                continue
            arrays.append((place, tag(aval.dtype), (self._block_of(number),) if place.local else aval.shape))
        arrays += self.lanes
        for inner, group in self.inner:
            arrays += [(replace(place, first=group, last=group), dtype, shape)
                       for place, dtype, shape in inner.arrays(inside=True)]
        return arrays

    def _workspace(self) -> tuple[list[Buffer], dict[str, int]]:
        """Offsets by lifetime: two arrays share a place if no group touches both."""
        taken: dict[str, list[tuple[int, int, Place]]] = {}
        buffers: list[Buffer] = []
        sizes: dict[str, int] = {}
        for place, dtype, shape in sorted(self.arrays(), key=lambda array: array[0].first):
            size = -(-max(int(np.prod(shape, dtype=np.int64)), 1) // 8) * 8
            busy = sorted((o, s) for o, s, p in taken.get(dtype, []) if p.first <= place.last and place.first <= p.last)
            offset = 0
            for start, length in busy:
                if start - offset >= size:
                    break
                offset = max(offset, start + length)
            taken.setdefault(dtype, []).append((offset, size, place))
            sizes[dtype] = max(sizes.get(dtype, 0), offset + size)
            buffers.append(Buffer(place.name, dtype, shape, "work", offset=offset))
        return buffers, sizes

    def _block_of(self, number: int) -> int:
        return self._rows(self.plan.groups[self.plan.roots[number][0].group])

    # --- reading and writing -----------------------------------------------------------------
    def read(self, number: int, at: Indices) -> Expr:
        """The element of something that exists."""
        node = self.tape.nodes[number]
        dtype = tag(node.aval.dtype)
        if number in self.sources:
            return self.sources[number](at)
        if node.prim.kind == "const":
            if node.aval.ndim == 0:
                return const(node.params["value"].value.item(), dtype)
            return self._load(self._constant(number).name, node.aval.shape, at, dtype, True)
        if number in self.numbers or (node.prim.kind != "input" and node.aval.ndim == 0):
            return var(self.names[number], dtype)
        if node.prim.kind == "input":
            return self._load(self.names[number], node.aval.shape, at, dtype, self.layouts[number] == "C")
        place = self._touch(number)
        if place.local:
            return self._load(place.name, (0,), self._in_block(number, at), dtype, True)
        return self._load(place.name, node.aval.shape, at, dtype, True)

    def _is_flat(self, number: int) -> bool:
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

    def _touch(self, number: int) -> Place:
        place = self.places.get(number)
        if place is None:
            scalar = self.tape.nodes[number].aval.ndim == 0
            place = Place(self.names[number] + "_at" * scalar, self.group, self.group,
                          not scalar and self._is_local(number))
            self.places[number] = place
        place.first, place.last = min(place.first, self.group), max(place.last, self.group)
        return place

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
        place, shape = self._touch(number), self.tape.nodes[number].aval.shape
        if place.local:
            return place.name, (as_expr(self._in_block(number, at)[0]),)
        return place.name, (as_expr(flattened(at, shape)),)

    def add_lanes(self, number: int, count: int) -> str:
        """The name of `count` copies of the array of node `number`, one after the other, all zero. Each root has
        copies of its own, as each adds them up."""
        aval = self.tape.nodes[number].aval
        name = self.work(f"{self.names[number]}_x{count}", tag(aval.dtype), count * aval.size)
        self.body.append(Fill(name, 0.0))
        return name

    def work(self, kind: str, dtype: str, size: int) -> str:
        """The name of a work array for the current group."""
        place = Place(f"{kind}_{self.fresh()}_", self.group, self.group)
        self.lanes.append((place, dtype, (size,)))
        return place.name

    def is_block(self, number: int) -> bool:
        return self._touch(number).local

    def identity(self, number: int, op: str) -> Expr:
        """Where an accumulation of node `number` by `op` starts."""
        dtype = self.tape.nodes[number].aval.dtype
        value: Any = IDENTITY[op]
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            value = {"max": int(info.min), "min": int(info.max)}.get(op, 0)
        return const(value, tag(dtype))

    def fill(self, number: int, op: str) -> None:
        """Start an accumulated array; the statement goes before the current group."""
        if number not in self.filled:
            self.filled.add(number)
            self.body.append(Fill(self._touch(number).name, self.identity(number, op).args[0]))

    # --- groups ------------------------------------------------------------------------------
    def _scalar_group(self, group: Group) -> None:
        pull = Pull(self.tape, self.plan.materialised, self.read)
        for root in group.roots:
            at = root.at({})
            value = root.value(pull, at)
            statements = self.finished(root, value, at, pull)        # may start an accumulated array before itself
            self.body += statements
            if isinstance(root.node, int) and self.tape.nodes[root.node].aval.ndim == 0:
                pull.memo[root.node, ()] = var(self.names[root.node], value.dtype)

    def _call(self, group: Group) -> None:
        for root in group.roots:
            node = self.tape.nodes[root.node]                         # type: ignore[index]
            names = [self._operand(i) for i in node.inputs]
            shapes = [self.tape.nodes[i].aval.shape for i in node.inputs]
            result = self._touch(root.node).name                      # type: ignore[arg-type]
            if node.prim.numbers is not None:
                avals = [self.tape.nodes[i].aval for i in node.inputs]
                routine, numbers = node.prim.name, node.prim.numbers(*avals, node.aval)
            else:
                routine, numbers = _routine(node.prim.name, node.params, shapes)
            self.body.append(Call(routine, (result, *names), numbers))
            if node.aval.ndim == 0:
                element = load(result, (const(0, "i8"),), tag(node.aval.dtype))
                self.body.append(Let(self.names[root.node], element))  # type: ignore[index]
                self.body += self._guarded(root.node)                 # type: ignore[arg-type]

    def _guarded(self, number: int) -> list[Statement]:
        """Stop where a value on which the user's code branched is not what it was."""
        guard = self.guards.get(number)
        if guard is None:
            return []
        value = self.read(number, ())
        right = value if guard.expected is True else call("not", value) if guard.expected is False else value.eq(
            guard.expected)
        return [Return(right, STATUS_GUARD)]

    def _operand(self, number: int) -> str:
        kind = self.tape.nodes[number].prim.kind
        if kind == "const":
            return self._constant(number).name
        return self.names[number] if kind == "input" else self._touch(number).name

    def _rows(self, group: Group) -> int:
        """The rows of a block: a few KiB of everything that the group reads; of all blocks the same if that can be,
        as their loops then have a known length."""
        widths: dict[Any, int] = {}
        for root in group.roots:
            for number, at in root.reads:
                inner = math.prod(root.extents[d] for d in root.order if d != root.axis and any(
                    isinstance(i, Affine) and f"d{d}" in i.variables for i in at))
                walks = any(isinstance(i, Affine) and f"d{root.axis}" in i.variables for i in at)
                widths[number] = max(widths.get(number, 0), inner if walks else 0)
        rows = min(max(BLOCK_BYTES // max(8 * sum(widths.values()), 1), 8), BLOCK_ROWS)
        equal = (n for n in range(rows - rows % 8, rows // 2, -8) if group.length % n == 0)
        return next(equal, rows - rows % (WHOLE if rows > WHOLE else 8))

    def _loop_group(self, group: Group) -> None:
        phases = group.phases()
        rows = self._rows(group)
        self.block = rows if len(phases) > 1 and group.length > rows and group.kind == "loop" else 0
        self._note(group)
        before: list[Statement] = []
        after: list[Statement] = []
        loops: list[Statement] = []
        for roots in phases:
            if not self.block:
                collapse(roots, Memory(self.tape, Pull(self.tape, self.plan.materialised, self.read), self._is_flat))
            nest = Nest(self, roots, group.length, bool(self.block))
            loops += nest.emit(before, after)
        self.body += before
        if self.block:
            stop = var("block", "i8") + self.block
            if group.length % self.block:
                stop = Expr("min", (stop, const(group.length, "i8")), "i8")
            self.body.append(Loop("block", 0, group.length, [Let("end", stop), *loops], step=self.block))
        else:
            self.body += loops
        self.body += after
        self.block = 0

    def _note(self, group: Group) -> None:
        lines = sorted({f"{w.filename.rsplit('/', 1)[-1]}:{w.line}" for r in group.roots if isinstance(r.node, int)
                        and (w := self.tape.nodes[r.node].where)})
        if lines:
            self.body.append(Note(", ".join(lines[:4]) + (", ..." if len(lines) > 4 else "")))

    def finished(self, root: Root, value: Expr, at: Indices, pull: Pull) -> list[Statement]:
        """What to do with the value that a root has outside of loops: in a scalar group, or as the accumulator of a
        whole group."""
        if not isinstance(root.node, int):
            return [Return(value, STATUS_INDEX)]
        number = root.node
        if self.tape.nodes[number].aval.ndim == 0:
            name = self.names[number]
            named: list[Statement] = [] if value.op == "var" and value.args[0] == name else [Let(name, value)]
            return [*named, *self._guarded(number)]
        buffer, index = self.target(number, root.target(pull, at))
        if root.op != "store" and (root.kind == "update" or len(self.plan.roots[number]) > 1):
            self.fill(number, root.op)
            return [Update(buffer, index, root.op, value)]
        return [Store(buffer, index, value)]


def _routine(name: str, params: Any, shapes: list[tuple[int, ...]]) -> tuple[str, tuple[float, ...]]:
    """The runtime's routine and its integer arguments: the batch, then sides, then flags."""
    if name == "gemm":
        left, rest = params["spec"].split(",")
        right, out = rest.split("->")
        sizes = dict(zip(left + right, shapes[0] + shapes[1], strict=True))
        inner = next(c for c in left if c in right and c not in out)
        flip = out[0] in right
        a, b = (right, left) if flip else (left, right)
        return "gemm", (sizes[out[0]], sizes[out[1]], sizes[inner], int(a.index(inner) == 0), int(b.index(inner) == 1),
                        int(flip))
    sides_of = TABLE[name].sides
    if sides_of is not None:
        return name, sides_of(shapes, params)
    matrix = shapes[0]
    batch = math.prod(matrix[:-2])
    sides = (matrix[-1],) if len(shapes) == 1 else (matrix[-1], shapes[1][-1])
    return name, (batch, *sides, *(int(params[k]) for k in sorted(params)))
