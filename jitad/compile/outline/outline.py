"""A kernel that takes little time to compile, however long its tape: each node is a call of a piece of code, of which
there are few (`Calls`). Every value exists in memory.

Views are not computed. Elementwise rows, sums and products walk their operands by strides that they are told, so that
nodes which differ in lengths alone share a piece. What is stored or added into an array goes into its memory where
nothing else reads that any more. Every other row has a piece for each type of its operands, made as a kernel is.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jitad.compile.loops import Buffer, Calls, Loop, Program, SetElement, Statement, tag
from jitad.compile.lower.names import unique_names
from jitad.compile.lower.scope import identity_of
from jitad.compile.outline import pieces
from jitad.compile.outline.values import Strided, ValueSlot, merged, placed, steps
from jitad.compile.plan.roots import BOOLEAN_OPS
from jitad.passes.optimise.guards import without_implied
from jitad.primitives.custom import has_code
from jitad.primitives.reduce import parse
from jitad.primitives.rules import Rules
from jitad.tape.expr import Expr, const, load, var
from jitad.tape.tape import Tape, needed
from jitad.tape.types import Aval, Node

NEVER = 1 << 60
PATIENCE = 1.0                                           # seconds;
ARRAY, NUMBER, SHAPE = 1.5e-3, 4e-4, 1e-2                # for each node with an array, or a number, and each new shape
SMALL = 4096                                             # multiplications
Argument = tuple[ValueSlot, int] | int                        # a place in a slot, or a number


def outlined(tape: Tape, layouts: tuple[str, ...]) -> Program:
    """The kernel of a tape, for inputs that lie in memory as `layouts` says: C, F, A or ``number``."""
    return _Outline(without_implied(tape), layouts).program()


def slow(tape: Tape) -> bool:
    """Whether to compile a tape in the usual way takes longer than about a second."""
    return not has_code(tape.nodes) and _seconds(tape) > PATIENCE


def _seconds(tape: Tape) -> float:
    total, shapes = 0.0, set()
    for node in tape.nodes:
        if node.body is not None:
            total += _seconds(node.body)
        elif not (node.prim.leaf or node.prim.shows or node.prim.picks):
            total += ARRAY if node.aval.size > 1 else NUMBER
            shapes.add(node.aval.shape)
    return total + SHAPE * len(shapes)


class _Outline:
    def __init__(self, tape: Tape, layouts: tuple[str, ...]):
        self.tape, self.layouts = tape, dict(zip(tape.inputs, layouts, strict=True))
        self.names = unique_names(tape)
        self.pieces: list[Program] = []
        self.known: dict[Hashable, int] = {}
        self.rows: list[tuple[int, list[Argument]]] = []
        self.slots: list[ValueSlot] = []                     # work memory
        self.constants: dict[str, list[np.ndarray]] = {}
        self.at: dict[int, Strided] = {}
        self.guards = {g.node: g for g in tape.guards}
        self.needed = needed(tape.nodes, [*tape.outputs, *self.guards])
        self._lives()

    def _lives(self) -> None:
        """Of each node the last one that reads its memory, and the nodes that wait until they are added somewhere."""
        nodes, self.readers = self.tape.nodes, dict[int, list[int]]()
        for number, node in enumerate(nodes):
            if self.needed[number]:
                for i in node.inputs:
                    self.readers.setdefault(i, []).append(number)
        ends = {*self.tape.outputs, *self.guards}
        self.last = [NEVER if n in ends else max(self.readers.get(n, ()), default=-1) for n in range(len(nodes))]
        self.waits = {n for n, node in enumerate(nodes) if node.prim.mapped and node.prim.scatters and n not in ends
                      and len(found := self.readers.get(n, [])) == 1 and _RULES.of(nodes[found[0]].prim) is _sum}
        for number in reversed(range(len(nodes))):
            node = nodes[number]
            if self.needed[number] and (number in self.waits or (node.prim.shows and node.inputs)):
                self.last[node.inputs[0]] = max(self.last[node.inputs[0]], self.last[number])

    # --- memory ------------------------------------------------------------------------------------
    def new(self, shape: tuple[int, ...], dtype: Any, owner: int = -1) -> Strided:
        slot = ValueSlot(tag(np.dtype(dtype)), math.prod(shape), owner)
        self.slots.append(slot)
        return Strided(slot, shape, steps(shape))

    def constant(self, value: np.ndarray) -> Strided:
        pool = self.constants.setdefault(tag(value.dtype), [])
        slot = ValueSlot(tag(value.dtype), value.size, buffer=f"constants_{tag(value.dtype)}_at")
        slot.offset = self.known.setdefault(("pool", slot.dtype), 0)
        self.known["pool", slot.dtype] += value.size
        pool.append(np.ravel(value))
        return Strided(slot, value.shape, steps(value.shape))

    def over(self, number: int, now: int, *apart: Strided) -> Strided | None:
        """The memory of a node that may be written over by node `now`, which reads `apart` after that."""
        found = self.at[number]
        if found.slot.owner == number and self.last[number] == now and all(a.slot is not found.slot for a in apart):
            found.slot.owner = now
            return found
        return None

    # --- rows --------------------------------------------------------------------------------------
    def row(self, key: Hashable, make: Callable[[], Program], arguments: Sequence[Any]) -> None:
        number = self.known.get(key)
        if number is None:
            number = self.known[key] = len(self.pieces)
            self.pieces.append(make())
        for a in arguments:
            if isinstance(a, tuple):
                slot = a[0]
                slot.first, slot.last = len(self.rows) if slot.first < 0 else slot.first, len(self.rows)
        self.rows.append((number, list(arguments)))

    def _told(self, values: Sequence[Strided], lengths: Sequence[int], strides: Sequence[Sequence[int]]) -> Any:
        """How values are walked, as letters; the pointers and the numbers for a piece."""
        ways, pointers, numbers = "", [], [*lengths]
        for v, own in zip(values, strides, strict=True):
            way = pieces.WAYS.get(own[-1], "s")
            ways += way
            if len(lengths) == 1 and way != "s":
                pointers.append((v.slot, v.offset))
                continue
            pointers.append((v.slot, 0))
            numbers += [v.offset, *(own if way == "s" else own[:-1])]
        return ways, pointers, numbers

    def walk(self, name: Hashable, element: Callable[[], pieces.Element], operands: Sequence[Strided], out: Strided,
             op: str = "store") -> None:
        """Element by element."""
        if not out.size:
            return
        everything = [*operands, out]
        lengths, strides = merged(out.shape, [v.strides for v in everything])
        ways, pointers, numbers = self._told(everything, lengths, strides)
        dtypes = [v.slot.dtype for v in operands]
        key = ("walk", name, *dtypes, out.slot.dtype, ways, len(lengths), op)
        self.row(key, lambda: pieces.walk(element(), dtypes, out.slot.dtype, ways, len(lengths), op),
                 [*pointers[:-1], *numbers, pointers[-1]])

    def copy(self, source: Strided, out: Strided, op: str = "store") -> None:
        self.walk("same", lambda: pieces.same, [source], out, op)

    def fold(self, name: Hashable, element: pieces.Element, operands: Sequence[tuple[Strided, Sequence[int]]],
             shape: Sequence[int], kept: int, op: str, out: Strided) -> None:
        """Over the dimensions of `shape` from `kept` on; of each operand its strides along them."""
        if not out.size:
            return
        outer, before = merged(tuple(shape[:kept]), [s[:kept] for _, s in operands]) if kept else ([], [[]] * 9)
        inner, behind = merged(tuple(shape[kept:]), [s[kept:] for _, s in operands])
        values, strides = [v for v, _ in operands], [[*a, *b] for a, b in zip(before, behind, strict=False)]
        ways, pointers, numbers = self._told(values, [*outer, *inner], strides)
        dtypes = [v.slot.dtype for v in values]
        first = identity_of(op, np.dtype(self.dtypes[out.slot.dtype]))
        self.row(("fold", name, *dtypes, ways, len(outer), len(inner), op),
                 lambda: pieces.fold(element, dtypes, ways, len(outer), len(inner), op, first),
                 [*pointers, *numbers, (out.slot, out.offset)])

    def whole(self, value: Strided) -> Strided:
        """The value in C order."""
        if value.contiguous:
            return value
        out = self.new(value.shape, self.dtypes[value.slot.dtype])
        self.copy(value, out)
        return out

    def settled(self, number: int) -> Strided:
        """The value of a node, also of one that waits."""
        if number in self.waits and number not in self.at:
            node = self.tape.nodes[number]
            out = self.at[number] = self.new(node.aval.shape, node.aval.dtype, number)
            zero = self.constant(np.zeros((), node.aval.dtype))
            self.copy(zero.through(out.shape, ()), out)
            self.added(number, out)
        return self.at[number]

    def added(self, number: int, out: Strided) -> None:
        """Add what waits."""
        node = self.tape.nodes[number]
        u = self.at[node.inputs[0]]
        self.copy(u, out.through(u.shape, node.params["index"]), "add")

    # --- all of it ---------------------------------------------------------------------------------
    def program(self) -> Program:
        tape = self.tape
        self.dtypes = {tag(n.aval.dtype): n.aval.dtype for n in tape.nodes if not n.prim.loops}
        copied = [i for i in tape.inputs if self.layouts[i] != "C" and (self.needed[i] or i in tape.outputs)]
        for i in tape.inputs:
            aval = tape.nodes[i].aval
            self.at[i] = self.new(aval.shape, aval.dtype) if i in copied else Strided(
                ValueSlot(tag(aval.dtype), aval.size, buffer=self.names[i]), aval.shape, steps(aval.shape))
            self.at[i].slot.first = self.at[i].slot.last = 0             # written before the first row
        for number, node in enumerate(tape.nodes):
            if self.needed[number]:
                self._node(number, node)
        outputs, results = list[Buffer](), list[Strided]()
        for place, o in enumerate(tape.outputs):
            aval, value = tape.nodes[o].aval, self.settled(o)
            if aval.ndim:
                known = tape.nodes[o].is_leaf or o in tape.outputs[:place]
                outputs.append(Buffer(f"output_{place}_" if known else self.names[o], tag(aval.dtype), aval.shape,
                                      "output"))
                self.copy(value, Strided(ValueSlot(tag(aval.dtype), aval.size, buffer=outputs[-1].name), aval.shape,
                                         steps(aval.shape)))
            else:
                value.slot.last = len(self.rows)
                results.append(value)
        return self._finished(copied, outputs, results)

    def _finished(self, copied: Sequence[int], outputs: list[Buffer], results: list[Strided]) -> Program:
        sizes: dict[str, int] = {}
        for dtype in {s.dtype for s in self.slots}:
            sizes[dtype] = placed([s for s in self.slots if s.dtype == dtype and s.first >= 0])
        for slot in self.slots:
            slot.buffer = f"memory_{slot.dtype}_at"
        parameters: list[Any] = []
        for i in self.tape.inputs:
            aval = self.tape.nodes[i].aval
            parameters.append((self.names[i], tag(aval.dtype)) if self.layouts[i] == "number" else Buffer(
                self.names[i], tag(aval.dtype), aval.shape, "input", order=self.layouts[i]))
        buffers = [Buffer(f"memory_{d}_at", d, (n,), "work") for d, n in sizes.items()]
        for dtype, pool in self.constants.items():
            value = np.concatenate(pool)
            buffers.append(Buffer(f"constants_{dtype}_at", dtype, value.shape, "constant", value=value))
        rows = [(piece, tuple([(a[0].buffer, a[0].offset + a[1]) if isinstance(a, tuple) else a for a in arguments]))
                for piece, arguments in self.rows]
        body = [self._copied(i) for i in copied]
        body.append(Calls(tuple(self.pieces), rows))                                    # type: ignore[arg-type]
        return Program(tuple(parameters), tuple(outputs), tuple(buffers), body,
                       tuple(load(v.slot.buffer, (const(v.slot.offset + v.offset, "i8"),), v.slot.dtype)
                             for v in results), sizes)

    def _copied(self, number: int) -> Statement:
        """An input that rows do not find as it is."""
        aval, slot = self.tape.nodes[number].aval, self.at[number].slot
        name, dtype = self.names[number], slot.dtype
        if self.layouts[number] == "number":
            return SetElement(slot.buffer, (const(slot.offset, "i8"),), var(name, dtype))
        at = [var(f"i{d}", "i8") for d in range(aval.ndim)]
        index: Expr = const(slot.offset, "i8")
        for i, s in zip(at, steps(aval.shape), strict=True):
            index = index + i * s
        body: Statement = SetElement(slot.buffer, (index,), load(name, at, dtype))
        for d in reversed(range(aval.ndim)):
            body = Loop(f"i{d}", 0, aval.shape[d], [body])
        return body

    def _node(self, number: int, node: Node) -> None:
        if node.constant is not None:
            self.at[number] = self.constant(node.constant)
        elif number not in self.at and number not in self.waits:
            rule = _RULES.of(node.prim) or (_elementwise if node.elementwise else _alone)
            self.at[number] = rule(self, number, node)
        guard = self.guards.get(number)
        if guard is not None:
            value = self.at[number]
            self.row(("guard", value.slot.dtype), lambda: pieces.guarding(value.slot.dtype),
                     [(value.slot, value.offset), int(guard.expected)])


Rule = Callable[[_Outline, int, Node], Strided]
_RULES: Rules[Rule] = Rules()


def _types(o: _Outline, node: Node) -> list[Aval]:
    return [o.tape.nodes[i].aval for i in node.inputs]


def _items(node: Node) -> tuple[Any, ...]:
    return tuple(sorted(node.params.items()))


def _elementwise(o: _Outline, number: int, node: Node) -> Strided:
    out = o.new(node.aval.shape, node.aval.dtype, number)
    o.walk((node.prim, _items(node)), lambda: pieces.element_of(node.prim, node.params, _types(o, node)),
           [o.settled(i) for i in node.inputs], out)
    return out


@_RULES("add")
def _sum(o: _Outline, number: int, node: Node) -> Strided:
    """What waits is added into the memory of the other term."""
    waiting = [i for i in node.inputs if i in o.waits and i not in o.at]
    if not waiting:
        return _elementwise(o, number, node)
    other = node.inputs[node.inputs[0] == waiting[-1]] if len({*node.inputs}) > 1 else waiting[-1]
    base = o.settled(other)
    out = o.over(other, number, o.at[o.tape.nodes[waiting[-1]].inputs[0]])
    if out is None:
        out = o.new(node.aval.shape, node.aval.dtype, number)
        o.copy(base, out)
    o.added(waiting[-1], out)
    return out


@_RULES("view")
def _view(o: _Outline, number: int, node: Node) -> Strided:
    return o.settled(node.inputs[0]).through(node.aval.shape, node.params["index"])


@_RULES("reshape")
def _reshape(o: _Outline, number: int, node: Node) -> Strided:
    value = o.whole(o.settled(node.inputs[0]))
    return Strided(value.slot, node.aval.shape, steps(node.aval.shape), value.offset)


@_RULES("spread")
def _spread(o: _Outline, number: int, node: Node) -> Strided:
    o.waits.add(number)
    return o.settled(number)


@_RULES("update")
def _update(o: _Outline, number: int, node: Node) -> Strided:
    base, *values = (o.settled(i) for i in node.inputs)
    out = o.over(node.inputs[0], number, *values)
    if out is None:
        out = o.new(node.aval.shape, node.aval.dtype, number)
        o.copy(base, out)
    for value, index in zip(values, node.params["indices"], strict=True):
        o.copy(value, out.through(value.shape, index))
    return out


@_RULES("concatenate")
def _concatenate(o: _Outline, number: int, node: Node) -> Strided:
    out, start = o.new(node.aval.shape, node.aval.dtype, number), 0
    axis = node.params["axis"]
    for i in node.inputs:
        part = o.settled(i)
        o.copy(part, out.part(axis, start, part.shape[axis]))
        start += part.shape[axis]
    return out


def _gathering(node: Node) -> str:
    """By what a row gathers up elements."""
    op = node.prim.accumulate
    return BOOLEAN_OPS.get(op, op) if node.aval.dtype.kind == "b" else op


@_RULES("reduce")
def _reduce(o: _Outline, number: int, node: Node) -> Strided:
    value, axes = o.settled(node.inputs[0]), node.params["axes"]
    out = o.new(node.aval.shape, node.aval.dtype, number)
    order = [d for d in range(len(value.shape)) if d not in axes] + list(axes)
    o.fold("same", pieces.same, [(value, [value.strides[d] for d in order])], [value.shape[d] for d in order],
           len(order) - len(axes), _gathering(node), out)
    return out


@_RULES("contract")
def _contract(o: _Outline, number: int, node: Node) -> Strided:
    """Products in which each element of one factor is met once, and small ones; others, which are worth the code of
    their own, as a kernel of their own."""
    left, right, result = parse(node.params["spec"])
    letters = [*result, *(c for c in dict.fromkeys(left + right) if c not in result)]
    size = dict(zip(left + right, [n for t in _types(o, node) for n in t.shape], strict=True))
    if math.prod(size.values()) > SMALL and len({*letters}) > max(len(left), len(right)):
        return _alone(o, number, node)
    a, b = (o.settled(i) for i in node.inputs)
    out = o.new(node.aval.shape, node.aval.dtype, number)
    operands = [(x, [dict(zip(own, x.strides, strict=True)).get(c, 0) for c in letters])
                for x, own in ((a, left), (b, right))]
    o.fold("product", pieces.product(out.slot.dtype), operands, [size[c] for c in letters], len(result),
           _gathering(node), out)
    return out


@_RULES("scan")
def _loop(o: _Outline, number: int, node: Node) -> Strided:
    """A loop, with all that is picked of it."""
    picks = o.readers[number]
    found = [o.tape.nodes[p] for p in picks]
    operands, types = [o.whole(o.settled(i)) for i in node.inputs], _types(o, node)
    outs = [o.new(p.aval.shape, p.aval.dtype, n) for p, n in zip(found, picks, strict=True)]
    key = (node.prim, _items(node), tuple([(a.shape, a.dtype) for a in types]), tuple([p.picks for p in found]))
    o.row(key, lambda: pieces.loop_of(node, types, found), [(v.slot, v.offset) for v in (*operands, *outs)])
    o.at.update(zip(picks, outs, strict=True))
    return outs[0]


def _alone(o: _Outline, number: int, node: Node) -> Strided:
    operands, types = [o.whole(o.settled(i)) for i in node.inputs], _types(o, node)
    out = o.new(node.aval.shape, node.aval.dtype, number)
    key = (node.prim, _items(node), tuple([(a.shape, a.dtype) for a in types]))
    o.row(key, lambda: pieces.on_its_own(node, types), [(v.slot, v.offset) for v in (*operands, out)])
    return out
