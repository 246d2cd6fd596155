"""The body of a loop over scalars and small arrays, written out element by element.

Each element of each array is a scalar expression with a name of its own: a 4 x 4 product is sixteen sums of four
products, a Cholesky factorization straight-line code. No memory is touched but the rows that the loop walks.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from jitad.compile.loops import STATUS_INDEX, STATUS_RANGE, Let, Return, Statement, tag
from jitad.compile.lower.scan.matrices import STRAIGHT, Matrices
from jitad.compile.plan.index import Affine, Indices, as_expr
from jitad.compile.plan.pull import Pull, plain_view
from jitad.primitives.elementwise import add
from jitad.primitives.reduce import parse
from jitad.primitives.scalars import maximum, minimum, truth
from jitad.primitives.scan import Form
from jitad.tape.expr import Expr, call, const, select, var
from jitad.tape.types import Node

SMALL = 36              # elements of an array that is written out
LANES, ROWS = 4, 8      # rows of multiples of `LANES`, several of them, or rows of `ROWS`, are better as loops
SINGLE = 600            # scalar operations of one node that is written out
TOTAL = 6000            # and of a body
LEAVES = frozenset({"const", "var"})
COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda a, b: call("or", a, b) if a.dtype == "b1" else a + b, "max": maximum, "min": minimum,
    "or": lambda a, b: call("or", truth(a), truth(b)), "and": lambda a, b: call("and", truth(a), truth(b))}


def unrollable(form: Form) -> bool:
    """Whether the body is small enough to be written out, and made of what can be. Steps that wait for each other have
    no lanes but those of their own arrays: where rows fill vectors, they stay loops."""
    work = 0
    nodes = form.body.nodes
    waits = form.carries and not any(STRAIGHT.get(node.prim) for node in nodes)
    for number, node in enumerate(nodes):
        if not (node.is_leaf or plain_view(node) or _writer(node)):
            return False
        if STRAIGHT.get(node.prim) and not _plain(nodes, node):
            return False
        carried = number in form.body.inputs[:form.carries]
        if carried or not node.is_leaf:
            own = _work(nodes, node)
            work += own
            if node.aval.size > SMALL or own > SINGLE or work > TOTAL or (waits and _fills_vectors(node)):
                return False
    return True


def _fills_vectors(node: Node) -> bool:
    size, row = node.aval.size, node.aval.shape[-1] if node.aval.shape else 1
    return row >= ROWS or (row % LANES == 0 and size >= LANES * LANES)


def _writer(node: Node) -> Callable[[Unrolled, int], list[Expr]] | None:
    """What makes the elements of a node."""
    return Unrolled.straight if STRAIGHT.get(node.prim) else WRITERS.get(node.prim.kind)


def _plain(nodes: Any, node: Node) -> bool:
    return all(nodes[i].aval.ndim == 2 for i in node.inputs) and nodes[node.inputs[0]].aval.shape[0] <= 8 and (
        node.aval.dtype == np.float64)


def _work(nodes: Any, node: Node) -> int:
    if node.prim.kind == "contract":
        left, right, _ = parse(node.params["spec"])
        shapes = nodes[node.inputs[0]].aval.shape + nodes[node.inputs[1]].aval.shape
        return math.prod(dict(zip(left + right, shapes, strict=True)).values())
    if STRAIGHT.get(node.prim):
        return nodes[node.inputs[0]].aval.shape[0] ** 3
    return max([node.aval.size, *(nodes[i].aval.size for i in node.inputs if not nodes[i].is_leaf)])


class Around(Protocol):
    """What the code of a body sees of the loop around it."""

    form: Form
    position: Affine
    before: list[Statement]

    def operand(self, place: int, at: Indices) -> Expr:
        """An element of a scanned array's row, or of an invariant, seen from a step."""

    def fresh(self) -> int:
        """A number for a new variable."""


class Unrolled:
    """Writes the statements of one step. `values[number]` has the elements of a node in C order."""

    def __init__(self, loop: Around, carried: list[list[Expr]]):
        self.loop, self.form, self.body = loop, loop.form, loop.form.body
        self.places = {number: place for place, number in enumerate(self.body.inputs)}
        self.values: dict[int, list[Expr]] = dict(zip(self.body.inputs, carried, strict=False))
        self.known: dict[tuple[int, Indices], Expr] = {}
        self.statements: list[Statement] = []
        self.suffix = f"{loop.fresh()}_"
        self.checks: set[tuple[int, int]] = set()
        self.stops = {n for n in range(len(self.body.nodes)) if self._named(n)}
        self.pull = _BodyPull(self)
        self.fixed: set[str] = set()                 # names of numbers that are read before the loop
        self.inverses: dict[Expr, Expr] = {}

    def _named(self, number: int) -> bool:
        """Whether the elements of a node get names: those of inputs do where they are read."""
        node, uses = self.body.nodes[number], self.body.uses[number]
        if node.is_leaf or plain_view(node):
            return False
        if not node.elementwise or number in self.body.outputs or len(uses) != 1:
            return True
        user = self.body.nodes[uses[0]]
        return not user.elementwise or user.inputs.count(number) > 1

    def run(self) -> list[list[Expr]]:
        """The elements of the body's outputs."""
        for number in range(len(self.body.nodes)):
            if number in self.stops:
                self._emit(number)
        outputs = [self.elements(o) for o in self.body.outputs]
        fine = [inverse.ne(inverse) | (abs(inverse) < math.inf) | divisor.eq(0.0)
                for divisor, inverse in self.inverses.items()]
        self.loop.before += [Return(_tree(fine, lambda a, b: a & b), STATUS_RANGE)] if fine else []
        return outputs

    def elements(self, number: int) -> list[Expr]:
        known = self.values.get(number)
        if known is None:
            shape = self.body.nodes[number].aval.shape
            known = [self.pull.element(number, tuple(map(Affine, at))) for at in np.ndindex(shape)]
            self.values[number] = known
        return known

    def _emit(self, number: int) -> None:
        node = self.body.nodes[number]
        write = _writer(node)
        assert write is not None
        made = write(self, number)
        base = f"{str(node.prim).removeprefix('reduce_')}_{number}_{self.suffix}"
        names = [f"{base}{k}" if node.aval.ndim else base for k in range(len(made))]
        self.values[number] = [self.name(e, name) for e, name in zip(made, names, strict=True)]

    def name(self, value: Expr, name: str | None = None) -> Expr:
        """A variable with this value."""
        if value.op in LEAVES:
            return value
        name = name or f"v_{self.loop.fresh()}_"
        self.statements.append(Let(name, value))
        return var(name, value.dtype)

    # --- reading ---------------------------------------------------------------------------------
    def read(self, number: int, at: Indices) -> Expr:
        node = self.body.nodes[number]
        if number in self.values:
            return self._chosen(self.values[number], node.aval.shape, at)
        if node.constant is not None:
            return self._constant(node.constant, at)
        place = self.places[number]
        if place == len(self.body.inputs) - 1 and self.form.counter:
            return self._once((number, at), as_expr(self.loop.position), False)
        return self._once((number, at), self.loop.operand(place, at),
                          place >= self.form.fixed and node.aval.size <= SMALL)

    def _once(self, key: tuple[int, Indices], value: Expr, before: bool) -> Expr:
        """What comes from outside is loaded once: in each step, or before the loop."""
        if not all(isinstance(i, Affine) for i in key[1]) or value.op in LEAVES:
            return value
        known = self.known.get(key)
        if known is None:
            name = f"{self.body.names[self.places[key[0]]]}_{self.loop.fresh()}_"
            name = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
            (self.loop.before if before else self.statements).append(Let(f"x_{name}", value))
            self.fixed |= {f"x_{name}"} if before else set()
            known = self.known[key] = var(f"x_{name}", value.dtype)
        return known

    def inverse(self, divisor: Expr) -> Expr | None:
        """The reciprocal of a number that is the same in every step: one division before the loop. Where it would
        overflow, the kernel stops."""
        if divisor.op != "var" or divisor.args[0] not in self.fixed:
            return None
        known = self.inverses.get(divisor)
        if known is None:
            name = f"by_{self.loop.fresh()}_"
            known = self.inverses[divisor] = var(name, divisor.dtype)
            self.loop.before.append(Let(name, 1.0 / divisor))
        return known

    def _constant(self, value: np.ndarray, at: Indices) -> Expr:
        if all(isinstance(i, Affine) for i in at):
            place = tuple(i.offset for i in at)                     # type: ignore[union-attr]
            return const(value[place].item(), tag(value.dtype))
        return self._chosen([const(x, tag(value.dtype)) for x in value.ravel().tolist()], value.shape, at)

    def _chosen(self, elements: list[Expr], shape: tuple[int, ...], at: Indices) -> Expr:
        """The element at `at`, by comparisons where an index is computed."""
        if not shape:
            return elements[0]
        stride = len(elements) // shape[0]
        parts = [elements[k * stride:(k + 1) * stride] for k in range(shape[0])]
        if isinstance(at[0], Affine):
            return self._chosen(parts[at[0].offset], shape[1:], at[1:])
        result = self._chosen(parts[0], shape[1:], at[1:])
        for k in range(1, shape[0]):
            result = select(at[0].eq(k), self._chosen(parts[k], shape[1:], at[1:]), result)
        return result

    def _check(self, number: int, length: int) -> None:
        if (number, length) not in self.checks:
            self.checks.add((number, length))
            for e in self.elements(number):
                if e.op != "const":
                    self.statements.append(Return((e >= -length) & (e < length), STATUS_INDEX))

    # --- nodes -------------------------------------------------------------------------------------
    def straight(self, number: int) -> list[Expr]:
        """A factorization as straight-line code."""
        node = self.body.nodes[number]
        operands = [self._array(i) for i in node.inputs]
        return list(STRAIGHT[node.prim](Matrices(self.statements, self.name), *operands, **node.params).ravel())

    def _pulled(self, number: int) -> list[Expr]:
        return [self.pull.body(number, tuple(map(Affine, at))) for at in np.ndindex(self.body.nodes[number].aval.shape)]

    def _joined(self, number: int) -> list[Expr]:
        node = self.body.nodes[number]
        return list(np.concatenate([self._array(i) for i in node.inputs], node.params["axis"]).ravel())

    def _running(self, number: int) -> list[Expr]:
        node = self.body.nodes[number]
        axis, back, operand = node.params["axis"], node.params["reverse"], self._array(node.inputs[0])
        total = np.add.accumulate(np.flip(operand, axis) if back else operand, axis)
        return list((np.flip(total, axis) if back else total).ravel())

    def _array(self, number: int) -> np.ndarray:
        array = np.empty(self.body.nodes[number].aval.size, object)
        array[:] = self.elements(number)
        return array.reshape(self.body.nodes[number].aval.shape)

    def _reduce(self, number: int) -> list[Expr]:
        node = self.body.nodes[number]
        axes, combine = node.params["axes"], COMBINE[node.prim.accumulate]
        array = self._array(node.inputs[0])
        kept = [d for d in range(array.ndim) if d not in axes]
        rows = array.transpose([*kept, *axes]).reshape(node.aval.size, -1)
        if rows.shape[1] == 0:
            return [const(node.prim.identity, tag(node.aval.dtype))] * len(rows)
        return [_tree(list(row), combine) for row in rows]

    def _contract(self, number: int) -> list[Expr]:
        node = self.body.nodes[number]
        left, right, out = parse(node.params["spec"])
        a, b = (self._array(i) for i in node.inputs)
        sizes = dict(zip(left + right, a.shape + b.shape, strict=True))
        inner = [c for c in dict.fromkeys(left + right) if c not in out]
        result = []
        for kept in np.ndindex(*(sizes[c] for c in out)):
            terms = []
            for summed in np.ndindex(*(sizes[c] for c in inner)):
                at = dict(zip([*out, *inner], [*kept, *summed], strict=True))
                x, y = a[tuple(at[c] for c in left)], b[tuple(at[c] for c in right)]
                terms.append(call("and", x, y) if x.dtype == "b1" else x * y)
            total = terms[0] if terms else const(0, tag(node.aval.dtype))
            for term in terms[1:]:
                total = COMBINE["add"](total, term)
            result.append(total)
        return result

    def _added(self, number: int) -> list[Expr]:
        """Zeros into which the elements of the operand are added at their places."""
        node = self.body.nodes[number]
        shape, dtype = node.aval.shape, tag(node.aval.dtype)
        terms: dict[tuple[int, ...], list[Expr]] = {at: [] for at in np.ndindex(shape)}
        source = self.body.nodes[node.inputs[0]].aval.shape
        for k, at in enumerate(np.ndindex(source)):
            here = tuple(map(Affine, at))
            target = self.pull.scattered(node, here)
            value = self.elements(node.inputs[0])[k]
            fixed = [i.offset if isinstance(i, Affine) else None for i in target]
            for place in terms:
                if all(f is None or f == p for f, p in zip(fixed, place, strict=True)):
                    hit = value
                    for i, p in zip(target, place, strict=True):
                        hit = hit if isinstance(i, Affine) else select(i.eq(p), hit, const(0, dtype))
                    terms[place].append(hit)
        return [_tree(t, COMBINE["add"]) if t else const(0, dtype) for t in terms.values()]


WRITERS: dict[str, Callable[[Unrolled, int], list[Expr]]] = {
    **dict.fromkeys(("elementwise", "gather", "triangle", "iota"), Unrolled._pulled), "reduce": Unrolled._reduce,
    "contract": Unrolled._contract, "spread": Unrolled._added, "scatter": Unrolled._added,
    "concatenate": Unrolled._joined, "cumulative": Unrolled._running}
"""The elements of a node, by the kind of its row; those of `STRAIGHT` have code of their own, and views need none."""


class _BodyPull(Pull):
    """Elements of a body's values."""

    def __init__(self, body: Unrolled):
        super().__init__(body.body, body.stops, body.read, body._check)
        self._body = body
        self._sparse: set[int] = set()
        for n, node in enumerate(body.body.nodes):
            if node.prim.scatters or (node.prim is add and self._sparse.issuperset(node.inputs)):
                self._sparse.add(n)

    def _elementwise(self, node: Node, at: Indices) -> Expr:
        """What a spread leaves empty is not added: in sums of cotangents of parts most terms are such."""
        if node.prim is add and not self._sparse.isdisjoint(node.inputs):
            full = [i for i in node.inputs if i not in self._sparse or not _is_zero(self.element(i, at))]
            if len(full) < 2:
                return self.element(full[0] if full else node.inputs[0], at)
        return super()._elementwise(node, at)

    def _inverse(self, number: int, at: Indices) -> Expr | None:
        return self._body.inverse(self.element(number, at))


def _is_zero(e: Expr) -> bool:
    return e.op == "const" and e.args[0] == 0


def _tree(terms: list[Expr], combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """All terms combined, in pairs, so that no chain is long."""
    while len(terms) > 1:
        terms = [combine(*terms[i:i + 2]) if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
    return terms[0]
