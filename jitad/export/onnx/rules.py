"""Structure, reductions and loops of a tape as ONNX operators."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.export.onnx.graph import Graph, Tensor, loop, refused, replay, rule
from jitad.primitives.scan import Form
from jitad.primitives.view import places
from jitad.tape.types import Node

FIRST = -(2**62)                                # as the end of a slice: before the first element


@rule("const")
def _const(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    return g.const(node.constant)


# --- views ---------------------------------------------------------------------------------------

@rule("view")
def _view(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    index, shape = node.params["index"], node.aval.shape
    used = [d for _, terms in index for d, _ in terms]
    if all(len(terms) <= 1 for _, terms in index) and len(set(used)) == len(used):
        return _by_slices(g, operands[0].name, index, shape)
    return g.op("GatherND", operands[0].name, g.const(np.stack(places(index, shape), -1), np.int64))


def _by_slices(g: Graph, x: str, index: Any, shape: tuple[int, ...]) -> str:
    """A view whose dimensions are slices, in any order: slice, drop, transpose, insert, broadcast."""
    starts, stops, steps, dims = [], [], [], []
    for offset, terms in index:
        dim, step = terms[0] if terms else (None, 1)
        beyond = offset + step * (1 if dim is None else shape[dim])
        starts.append(offset)
        stops.append(beyond if beyond >= 0 else FIRST)
        steps.append(step)
        dims.append(dim)
    if index:
        x = g.op("Slice", x, g.ints(*starts), g.ints(*stops), g.ints(*range(len(index))), g.ints(*steps))
    kept = [d for d in dims if d is not None]
    if len(kept) < len(dims):
        x = g.op("Squeeze", x, g.ints(*(k for k, d in enumerate(dims) if d is None)))
    if kept != sorted(kept):
        x = g.op("Transpose", x, perm=[int(i) for i in np.argsort(kept)])
    new = [d for d in range(len(shape)) if d not in kept]
    if new:
        x = g.op("Unsqueeze", x, g.ints(*new))
        if any(shape[d] != 1 for d in new):
            x = g.op("Expand", x, g.ints(*shape))
    return x


def _zeros(g: Graph, shape: Sequence[int], dtype: Any) -> str:
    return g.op("Expand", g.const(0, dtype), g.ints(*shape)) if shape else g.const(0, dtype)


def _stored(g: Graph, base: str, value: Tensor, index: Any, shape: tuple[int, ...], **how: str) -> str:
    """`base` of `shape` with the elements of `value` stored (or added) where the map points."""
    if not shape:
        return g.op("Add", base, value.name) if how else value.name
    at = g.const(np.stack(places(index, value.aval.shape), -1), np.int64)
    return g.op("ScatterND", base, at, value.name, **how)


@rule("spread")
def _spread(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    zeros = _zeros(g, node.aval.shape, node.aval.dtype)
    return _stored(g, zeros, operands[0], node.params["index"], node.aval.shape, reduction="add")


@rule("update")
def _update(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    base, *values = operands
    x = base.name
    for value, index in zip(values, node.params["indices"], strict=True):
        x = _stored(g, x, value, index, node.aval.shape)
    return x


@rule("reshape")
def _reshape(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    return g.shaped(operands[0].name, node.aval.shape)


@rule("concatenate")
def _concatenate(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    return g.op("Concat", *(x.name for x in operands), axis=node.params["axis"])


@rule("triangle")
def _triangle(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    upper = 0 if node.prim.lower else 1
    return g.op("Trilu", operands[0].name, g.const(node.params["k"], np.int64), upper=upper)


# --- reductions ----------------------------------------------------------------------------------

REDUCTIONS = {"add": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin", "or": "ReduceMax", "and": "ReduceMin"}


@rule("reduce")
def _reduce(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    (x, aval), axes = operands[0], node.params["axes"]
    if not axes:
        return x
    op = REDUCTIONS[node.prim.accumulate]
    if aval.dtype == bool:
        return g.cast(g.op(op, g.cast(x, np.int32), g.ints(*axes), keepdims=0), bool)
    result = g.op(op, x, g.ints(*axes), keepdims=0)
    if op == "ReduceSum" or aval.dtype.kind != "f":
        return result
    nan = g.op("ReduceMax", g.cast(g.op("IsNaN", x), np.int32), g.ints(*axes), keepdims=0)  # a NaN wins, as in NumPy
    return g.where(g.cast(nan, bool), g.const(np.nan, aval.dtype), result)


@rule("cumulative")
def _cumsum(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    return g.op("CumSum", operands[0].name, g.const(node.params["axis"], np.int64), reverse=int(node.params["reverse"]))


@rule("contract")
def _contract(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    letters = {c: chr(ord("a") + i) for i, c in enumerate(dict.fromkeys(filter(str.isalpha, node.params["spec"])))}
    equation = "".join(letters.get(c, c) for c in node.params["spec"])
    return g.op("Einsum", *(x.name for x in operands), equation=equation)


@rule("iota")
def _iota(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    shape, axis = node.aval.shape, node.params["axis"]
    return g.const(np.indices(shape)[axis], np.int64)


# --- integer arrays ------------------------------------------------------------------------------

def _fronted(g: Graph, x: str, ndim: int, axes: Sequence[int], back: bool = False) -> str:
    """The array with `axes` first, or back again."""
    order = [*axes, *(d for d in range(ndim) if d not in axes)]
    order = [int(i) for i in np.argsort(order)] if back else order
    return x if order == sorted(order) else g.op("Transpose", x, perm=order)


def _board(g: Graph, index: Sequence[Tensor]) -> str:
    """Integer arrays of one shape as the coordinates of ONNX: along a last dimension, negative ones from the end."""
    columns = [g.op("Unsqueeze", g.cast(i.name, np.int64), g.ints(-1)) for i in index]
    return columns[0] if len(columns) == 1 else g.op("Concat", *columns, axis=-1)


@rule("gather")
def _gather(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    x, *index = operands
    return g.op("GatherND", _fronted(g, x.name, x.aval.ndim, node.params["axes"]), _board(g, index))


@rule("scatter")
def _scatter(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    x, *index = operands
    return _scattered(g, _zeros(g, node.aval.shape, node.aval.dtype), x, index, node, reduction="add")


@rule("put")
def _put(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    base, values, *index = operands
    return _scattered(g, base.name, values, index, node)


def _scattered(g: Graph, base: str, values: Tensor, index: Sequence[Tensor], node: Node, **how: str) -> str:
    axes, ndim = node.params["axes"], node.aval.ndim
    board = _board(g, index)
    lengths = g.ints(*(node.aval.shape[a] for a in axes))
    board = g.where(g.op("Less", board, g.const(0, np.int64)), g.op("Add", board, lengths), board)
    result = g.op("ScatterND", _fronted(g, base, ndim, axes), board, values.name, **how)
    return _fronted(g, result, ndim, axes, back=True)


# --- loops ---------------------------------------------------------------------------------------

@rule("pick")
def _pick(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    return operands[0].name[node.params["index"]]


@rule("scan")
def _scan(g: Graph, node: Node, operands: Sequence[Tensor]) -> tuple[str, ...]:
    """A Loop; what is stacked in the order of the walk is turned where that goes backwards."""
    form = Form.of(node)
    if form.counted or (form.dynamic and form.stacks):
        raise refused(node)
    first = operands[:form.carries]
    state = [Tensor(g.name(), x.aval) for x in first]

    def body(b: Graph, step: str) -> list[Tensor]:
        position = b.op("Sub", b.const(form.length - 1, np.int64), step) if form.reverse else step
        elements = []
        for x, (offset, stride) in zip(operands[form.carries:form.fixed], form.scanned, strict=True):
            at = b.op("Add", b.op("Mul", position, b.const(stride, np.int64)), b.const(offset, np.int64))
            elements.append(b.op("Gather", x.name, at, axis=0))
        inputs = [*(x.name for x in state), *elements, *(x.name for x in operands[form.fixed:])]
        names = replay(b, form.body, inputs + [position] * form.counter)
        return [Tensor(names[o], form.body.nodes[o].aval) for o in form.body.outputs]
    result = loop(g, form.length, first, state, body, form.until)
    stacks = result[form.carries:]
    if form.reverse:
        stacks = [g.op("Slice", x, g.ints(-1), g.ints(FIRST), g.ints(0), g.ints(-1)) for x in stacks]
    return (*result[:form.carries], *stacks)
