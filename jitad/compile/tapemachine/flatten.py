"""From a tape to numbers alone: every element of every value gets a place, every operation on elements an op-code.

What only moves elements (views, reshapes, assignments, indexing by constants) is done here, on arrays of places, by the
row's own `evaluate`. Sums and products of arrays become chains and trees of operations on numbers. `Unsuitable` says
that something has no form of this kind.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitad.compile.loops import DTYPE_TAGS
from jitad.compile.tapemachine.opcodes import OpCode
from jitad.primitives.core import alias
from jitad.primitives.reduce import parse
from jitad.tape.tape import needed
from jitad.tape.types import TABLE, Node, Primitive

LIMIT = 1 << 30               # operations, whose places are 32-bit numbers
BINARY = {"add": "add", "or": "logical_or", "and": "logical_and"}      # of two numbers, by what a reduction does
ZERO = 0                      # the place of what nothing was stored into


class Unsuitable(Exception):
    """There is no form of this kind for a node."""

    def __init__(self, node: Node | None, why: str):
        super().__init__(why if node is None else f"{node.prim} at {node.where} {why}")


class FlatTape:
    """The operations in the order of the tape. Of number n (a place, for the time being): `op[n]` is its op-code or -1
    for what is given, `operands[k][n]` the places that it reads.

    `sort` has its dtype and whether it has a cotangent, as one number. `at` has for each node its places.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[int], wanted: Iterable[int], wrt: Iterable[int],
                 most: int = LIMIT):
        self.nodes, self.most = nodes, most
        self.op: list[int] = []
        self.operands: tuple[list[int], list[int], list[int]] = ([], [], [])
        self.sort: list[int] = []
        self.codes: list[OpCode] = []
        self.constants: list[tuple[int, Any]] = []
        self._known: dict[Any, tuple[int, int]] = {}        # op-code and sort of the result
        self._dtypes: list[str] = []
        self._numbers: dict[Any, int] = {}
        self.at: list[Any] = [None] * len(nodes)
        active = set(wrt)
        self._given(self._sort(np.dtype(np.int64), False))  # ZERO
        for number in inputs:
            aval = nodes[number].aval
            first = len(self.op)
            sort = self._sort(aval.dtype, number in active)
            for _ in range(aval.size):
                self._given(sort)
            self.at[number] = np.arange(first, len(self.op)).reshape(aval.shape) if aval.shape else first
        self._run(needed(nodes, wanted))

    # --- numbers ---------------------------------------------------------------------------------
    def _sort(self, dtype: np.dtype[Any], active: bool) -> int:
        if dtype.name not in DTYPE_TAGS or dtype.kind not in "fiub":
            raise Unsuitable(None, f"numbers of dtype {dtype}")
        if dtype.name not in self._dtypes:
            self._dtypes.append(dtype.name)
        return 2 * self._dtypes.index(dtype.name) + (active and dtype.kind == "f")

    def _given(self, sort: int) -> int:
        self.op.append(-1)
        for column in self.operands:
            column.append(0)
        self.sort.append(sort)
        return len(self.op) - 1

    def constant(self, value: Any, dtype: np.dtype[Any]) -> int:
        """The place of a number."""
        value = np.asarray(value, dtype)
        key = (dtype.char, value.tobytes())
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = self._given(self._sort(dtype, False))
            self.constants.append((known, value))
        return known

    def emit(self, prim: Primitive, places: Sequence[int], params: Any = None) -> int:
        """An operation on numbers."""
        sort = self.sort
        key = (prim, *[sort[p] for p in places])
        if params:
            key = (*key, tuple(sorted(params.items())))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._coded(prim, places, params or {})
        self.op.append(found[0])
        for column, place in zip(self.operands, (*places, 0, 0), strict=False):
            column.append(place)
        sort.append(found[1])
        return len(sort) - 1

    def _coded(self, prim: Primitive, places: Sequence[int], params: Any) -> tuple[int, int]:
        sorts = [self.sort[p] for p in places]
        if len(places) > len(self.operands):
            raise Unsuitable(None, f"{prim} takes {len(places)} operands")
        code = OpCode(prim, tuple(sorted(params.items())), tuple(self._dtypes[s // 2] for s in sorts),
                      tuple(bool(s % 2) for s in sorts))
        if code.carries:
            code.reverse                                        # noqa: B018  raises where there is no rule
        self.codes.append(code)
        return len(self.codes) - 1, self._sort(code.dtype, code.carries)

    # --- nodes -----------------------------------------------------------------------------------
    def _run(self, needed: bytearray) -> None:
        """Everything on the tape that is wanted. Long tapes are made of what the loop itself treats."""
        nodes, at, known = self.nodes, self.at, self._known
        op, sort = self.op, self.sort
        first, second, third = self.operands
        for number, node in enumerate(nodes):
            if not needed[number] or at[number] is not None:
                continue
            prim = node.prim
            if not prim.elementwise or node.aval.shape or node.params:
                at[number] = self._node(node)
                continue
            inputs = node.inputs
            if len(inputs) == 2:
                a, b = inputs
                a, b = at[a], at[b]
                found = known.get((prim, sort[a], sort[b]))
            elif len(inputs) == 1:
                a, b = at[inputs[0]], 0
                found = known.get((prim, sort[a]))
            else:
                found = None
            if found is None:
                at[number] = self._node(node)
                continue
            at[number] = len(op)
            op.append(found[0])
            first.append(a)
            second.append(b)
            third.append(0)
            sort.append(found[1])

    def _node(self, node: Node) -> Any:
        prim, index = node.prim, node.index_map
        if len(self.op) + node.aval.size > self.most:
            raise Unsuitable(node, "is too large")
        if node.constant is not None:
            return self._const(node.constant)
        operands = [self.at[i] for i in node.inputs]
        if prim is alias:
            return operands[0]
        if prim.elementwise:
            return self._elementwise(node, operands)
        if index and not node.aval.shape:
            return int(operands[0][tuple([offset for offset, _ in index])])
        if prim.moves:
            return self._moved(node, operands)
        rule = RULES.get(prim.kind)
        if rule is None:
            raise Unsuitable(node, "has no op-codes")
        return rule(self, node, *operands)

    def _const(self, value: np.ndarray) -> Any:
        places = [self.constant(v, value.dtype) for v in value.ravel()]
        return np.array(places, np.int64).reshape(value.shape) if value.shape else places[0]

    def _elementwise(self, node: Node, operands: Sequence[Any]) -> Any:
        if not node.aval.shape:
            return self.emit(node.prim, operands, node.params)
        columns = [places.ravel().tolist() for places in operands]
        found = [self.emit(node.prim, places, node.params) for places in zip(*columns, strict=True)]
        return np.array(found, np.int64).reshape(node.aval.shape)

    def _moved(self, node: Node, operands: Sequence[Any]) -> Any:
        """By the row itself, on places; what it fills up with 0 is the place of a zero."""
        begin = len(operands) - len(node.params.get("axes", ()))
        arrays = [self.nodes[i].constant for i in node.inputs[begin:]]
        if any(a is None for a in arrays):
            raise Unsuitable(node, "is indexed by computed integers")
        operands = [*operands[:begin], *arrays]
        if node.prim.scatters:
            counts = node.prim.evaluate(np.ones(np.shape(operands[0]), np.int64), *operands[1:], **node.params)
            if counts.max(initial=0) > 1:
                raise Unsuitable(node, "adds elements up")
        found = np.asarray(node.prim.evaluate(*map(np.asarray, operands), **node.params))
        if not found.all():
            found = np.where(found == ZERO, self.constant(0, node.aval.dtype), found)
        return found if found.shape else int(found)

    def _reduce(self, node: Node, places: Any) -> Any:
        if node.prim.accumulate not in BINARY:
            raise Unsuitable(node, "has no op-codes")
        return self._reduced(node, np.asarray(places), node.params["axes"])

    def _reduced(self, node: Node, places: np.ndarray, axes: tuple[int, ...]) -> Any:
        """Pairs, then pairs of pairs: no long chain."""
        aval = node.aval
        kept = [d for d in range(places.ndim) if d not in axes]
        rows = places.transpose([*kept, *axes]).reshape(aval.size, -1)
        found = np.array([self._tree(node, row) for row in rows.tolist()], np.int64).reshape(aval.shape)
        return found if aval.shape else int(found)

    def _tree(self, node: Node, row: list[int]) -> int:
        if not row:
            return self.constant(node.prim.identity, node.aval.dtype)
        prim = TABLE[BINARY[node.prim.accumulate]]
        while len(row) > 1:
            pairs = [self.emit(prim, pair) for pair in zip(row[::2], row[1::2], strict=False)]
            row = pairs + row[len(pairs) * 2:]
        return row[0]

    def _contract(self, node: Node, a: np.ndarray, b: np.ndarray) -> Any:
        left, right, out = parse(node.params["spec"])
        size = dict(zip(left + right, a.shape + b.shape, strict=True))
        letters = out + "".join(c for c in size if c not in out)
        if len(self.op) + int(np.prod([size[c] for c in letters], dtype=np.int64)) > self.most:
            raise Unsuitable(node, "is too large")
        spread = [np.broadcast_to(x.transpose([names.index(c) for c in letters if c in names]).reshape(
            [size[c] if c in names else 1 for c in letters]), [size[c] for c in letters])
            for x, names in ((np.asarray(a), left), (np.asarray(b), right))]
        products = [self.emit(TABLE["mul"], pair) for pair in zip(*(x.ravel().tolist() for x in spread), strict=True)]
        cube = np.array(products, np.int64).reshape([size[c] for c in letters])
        return self._reduced(node, cube, tuple(range(len(out), len(letters))))

    def _cumsum(self, node: Node, places: np.ndarray) -> Any:
        axis, reverse = node.params["axis"], node.params["reverse"]
        moved = np.moveaxis(places.copy(), axis, 0)
        order = range(len(moved) - 2, -1, -1) if reverse else range(1, len(moved))
        for k in order:
            before = moved[k + 1 if reverse else k - 1]
            pairs = zip(before.ravel().tolist(), moved[k].ravel().tolist(), strict=True)
            moved[k] = np.reshape([self.emit(TABLE["add"], pair) for pair in pairs], moved[k].shape)
        return np.moveaxis(moved, 0, axis)


RULES: dict[str, Callable[..., Any]] = {
    "reduce": FlatTape._reduce, "contract": FlatTape._contract, "cumulative": FlatTape._cumsum}
"""By the kind of the row, if it is not elementwise and does not move elements."""
