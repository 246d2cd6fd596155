"""Pull an element of a value out of the tape as one scalar expression.

Elementwise nodes, views, gathers and triangles are virtual: their element at an
index is an expression of elements of their inputs. The pull stops at inputs,
constants and materialised nodes, which are read through `read`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitad.compile.loops import tag
from jitad.compile.plan.index import Affine, Index, Indices, as_expr, flattened, through, unflattened
from jitad.compile.plan.logistic import logistic_form
from jitad.compile.plan.prepare import wrapped
from jitad.primitives.reduce import parse
from jitad.tape.expr import Expr, call, cast, const, select
from jitad.tape.tape import Tape
from jitad.tape.types import Node

Read = Callable[[int, Indices], Expr]
COUNTED = 8                # elements among which a place is found by counting
NARROW = frozenset({"i1", "i2", "i4", "u1", "u2", "u4"})
SOME = {dtype: Expr("some", (), dtype) for dtype in ("f8", "f4")}     # floats of which a `Survey` knows no more


def converted(x: Expr, dtype: str) -> Expr:
    """NumPy's conversion. Floats that no integer holds give what the machine gives, the lowest one."""
    if dtype == "b1" and x.dtype != "b1":
        return x.ne(0)
    if x.dtype[0] == "f" and dtype[0] in "iu":
        whole = 63 if dtype in ("i8", "u4") else 31
        fits = abs(x) < 2.0**whole
        return cast(select(fits, Expr("cast", (x,), "i8"), -2**whole), dtype)
    return cast(x, dtype)


def plain_view(node: Node) -> bool:
    """Whether a node is a view or a reshape: at no computed places."""
    return node.prim.rearranges and len(node.inputs) == 1


class Pull:
    """Expressions for one set of loops: the same element of a node is the same `Expr`."""

    def __init__(self, tape: Tape, materialised: set[int], read: Read,
                 checked: Callable[[int, int], None] | None = None):
        self.tape, self.materialised, self.read = tape, materialised, read
        self.checked = checked          # told of each computed index and the length it must respect
        self.memo: dict[tuple[int, Indices], Expr] = {}
        # numbers by which whole arrays are divided, and their reciprocals
        self.inverses: dict[tuple[int, Indices], tuple[Expr, Expr]] = {}

    def element(self, number: int, at: Indices) -> Expr:
        """The element of node `number` at the indices `at`."""
        key = (number, at)
        known = self.memo.get(key)
        if known is None:
            if number in self.materialised:
                known = self.read(number, at)
            else:
                known = self.body(number, at)
            self.memo[key] = known
        return known

    def body(self, number: int, at: Indices) -> Expr:
        """The same, computed also when the node itself is materialised."""
        node = self.tape.nodes[number]
        if node.is_leaf:
            return self.read(number, at)
        if node.elementwise:
            return self._elementwise(node, at)
        return ELEMENTS[node.prim.kind](self, node, at)

    def _viewed(self, node: Node, at: Indices) -> Expr:
        return self.element(node.inputs[0], through(node.params["index"], at))

    def _looked_up(self, node: Node, at: Indices) -> Expr:
        return self.element(node.inputs[0], self.gathered(node, at))

    def _counted(self, node: Node, at: Indices) -> Expr:
        return as_expr(at[node.params["axis"]])

    def _reshaped(self, node: Node, at: Indices) -> Expr:
        source = self.tape.nodes[node.inputs[0]].aval.shape
        return self.element(node.inputs[0], unflattened(flattened(at, node.aval.shape), source))

    def _in_triangle(self, node: Node, at: Indices) -> Expr:
        row, column = as_expr(at[-2]), as_expr(at[-1])
        inside = column <= row + node.params["k"] if node.prim.lower else column >= row + node.params["k"]
        return select(inside, self.element(node.inputs[0], at), 0)

    def _elementwise(self, node: Node, at: Indices) -> Expr:
        dtype = tag(node.aval.dtype)
        operands = [self.element(i, at) for i in node.inputs]
        if node.prim.scalar is None:                                # a cast
            return converted(operands[0], dtype)
        operands = [cast(x, "i8") if x.dtype in NARROW else x for x in operands]
        if node.prim.name == "div" and dtype == "f8":
            inverse = self._inverse(node.inputs[1], at)
            if inverse is not None:
                unit = operands[0].op == "const" and operands[0].args[0] == 1
                return inverse if unit else operands[0] * inverse
        shared = logistic_form(node.prim.name, operands)
        if shared is not None:
            return shared
        result = node.prim.scalar(*operands, **node.params)
        return cast(result, dtype) if result.dtype != dtype else result

    def _inverse(self, number: int, at: Indices) -> Expr | None:
        """The reciprocal of a number that divides a whole array: one division instead of one for each
        element. Where it would overflow, the kernel stops (see `Nest`)."""
        node = self.tape.nodes[number]
        index = node.index_map
        if not at or index is None or any(terms for _, terms in index):
            return None
        source, at = node.inputs[0], tuple(Affine(offset) for offset, _ in index)
        if self.tape.nodes[source].constant is not None:
            return None
        known = self.inverses.get((source, at))
        if known is None:
            divisor = self.element(source, at)
            known = self.inverses[source, at] = (divisor, const(1.0) / divisor)
        return known[1]

    def gathered(self, node: Node, at: Indices, first: int = 1) -> Indices:
        """The source's indices of a gather (or the target's of a scatter) at `at`; the integer arrays are the
        node's inputs from `first` on."""
        arrays = node.inputs[first:]
        leading = self.tape.nodes[arrays[0]].aval.ndim
        shape = node.params.get("shape") or self.tape.nodes[node.inputs[0]].aval.shape
        chosen = {axis: self._wrapped(i, at[:leading], shape[axis])
                  for axis, i in zip(node.params["axes"], arrays, strict=True)}
        rest = iter(at[leading:])
        return tuple(chosen[d] if d in chosen else next(rest) for d in range(len(shape)))

    def _wrapped(self, number: int, at: Indices, length: int) -> Index:
        """An index with NumPy's meaning of negative numbers."""
        value = self.element(number, at)
        if value.op == "const":
            return Affine(int(value.args[0]) % max(length, 1))
        if self._below(number) <= length:
            return cast(value, "i8")
        node = self.tape.nodes[number]
        several = node.prim is wrapped
        if self.checked is not None:
            for index in zip(node.inputs, node.params["lengths"], strict=True) if several else [(number, length)]:
                self.checked(*index)
        if several or (node.constant is not None and (node.constant >= 0).all()):
            return cast(value, "i8")
        value = cast(value, "i8")
        return select(value < 0, value + length, value)

    def _below(self, number: int) -> float:
        """A bound of integers that are never negative, by the row that makes them; infinity where none is known."""
        node = self.tape.nodes[number]
        while node.prim.rearranges:
            node = self.tape.nodes[node.inputs[0]]
        below = node.prim.below
        return below(*(self.tape.nodes[i].aval for i in node.inputs), **node.params) if below else math.inf

    def scattered(self, node: Node, at: Indices) -> Indices:
        """Where the operand's element at `at` is added."""
        index = node.params.get("index")
        return through(index, at) if index is not None else self.gathered(node, at)

    def _place_among(self, node: Node, at: Indices) -> Expr:
        """How many elements of a sorted array come before a value: counted if they are few, else by bisection
        without branches, which runs in vector lanes."""
        value = self.element(node.inputs[1], at)
        table, = self.tape.nodes[node.inputs[0]].aval.shape

        def before(at: Index) -> Expr:
            found = self.element(node.inputs[0], (at,))
            floats = value.dtype[0] == "f"
            if node.params["side"] == "left":
                less = found < value
                return less | (value.ne(value) & found.eq(found)) if floats else less
            more = value < found
            return ~(more | (found.ne(found) & value.eq(value)) if floats else more)
        if table <= COUNTED:
            total = const(0, "i8")
            for place in range(table):
                total = total + cast(before(Affine(place)), "i8")
            return total
        low, length = const(0, "i8"), table
        while length > 1:
            half = length // 2
            low = select(before(low + (half - 1)), low + half, low)
            length -= half
        return low + cast(before(low), "i8")

    def product(self, node: Node, at: dict[str, Index]) -> Expr:
        """The product under a contraction, each letter at its index."""
        left, right, _ = parse(node.params["spec"])
        a = self.element(node.inputs[0], tuple(at[c] for c in left))
        b = self.element(node.inputs[1], tuple(at[c] for c in right))
        return call("mul", a, b) if a.dtype != "b1" else call("and", a, b)


ELEMENTS: dict[str, Callable[[Pull, Node, Indices], Expr]] = {
    "view": Pull._viewed, "gather": Pull._looked_up, "search": Pull._place_among, "iota": Pull._counted,
    "reshape": Pull._reshaped, "triangle": Pull._in_triangle}
"""By the kind of the row, if it is virtual and not elementwise."""


class Survey(Pull):
    """What is read and evaluated, at which indices. No index depends on a float, so of floats there are no
    expressions. `checked` is told of each computed index and answers with what is to be read for it."""

    def __init__(self, tape: Tape, materialised: set[int], checked: Callable[[int, int], Any]):
        super().__init__(tape, materialised, self._read, self._note)
        self.reads: dict[tuple[Any, Indices], None] = {}
        self._checked = checked

    def _read(self, number: int, at: Indices) -> Expr:
        node = self.tape.nodes[number]
        dtype = tag(node.aval.dtype)
        if node.constant is not None and not node.aval.shape:
            return const(node.constant.item(), dtype)
        self.reads[number, at] = None
        return SOME.get(dtype) or Expr("load", (f"%{number}",), dtype)

    def _note(self, number: int, length: int) -> None:
        self.reads[self._checked(number, length), ()] = None

    def _elementwise(self, node: Node, at: Indices) -> Expr:
        some = SOME.get(tag(node.aval.dtype))
        if some is None:
            return super()._elementwise(node, at)
        for i in node.inputs:
            self.element(i, at)
        if node.prim.name == "div" and some.dtype == "f8":
            self._inverse(node.inputs[1], at)
        return some
