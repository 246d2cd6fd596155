"""Factorizations and solutions as loops of ONNX, over columns or rows; a failed factorization gives NaN."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jitad.export.onnx.graph import Graph, Tensor, loop, rule
from jitad.tape.types import Node


def _loop(g: Graph, length: int, start: Tensor, step: Callable[[Graph, str, str], str]) -> str:
    """`step(body, position, state)` for each position in turn."""
    state = Tensor(g.name(), start.aval)
    return loop(g, length, [start], [state], lambda b, at: [Tensor(step(b, at, state.name), start.aval)])[0]


def _transposed(g: Graph, x: str, ndim: int) -> str:
    return g.op("Transpose", x, perm=[*range(ndim - 2), ndim - 1, ndim - 2])


def _row_of(g: Graph, x: str, position: str, axis: int) -> str:
    """One row (or column) of the matrices, with its dimension of length one."""
    return g.op("Gather", x, g.shaped(position, (1,)), axis=axis)


def _marked(g: Graph, position: str, length: int, op: str) -> str:
    """Which of the places equal (come after) the position."""
    return g.op(op, g.const(np.arange(length), np.int64), position)


@rule("cholesky")
def cholesky(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    """Column by column: what the columns before leave of it, over the root of its first element."""
    a = operands[0]
    n, ndim = a.aval.shape[-1], a.aval.ndim
    read = _transposed(g, a.name, ndim) if node.params.get("upper") else a.name     # the triangle that is read

    def step(b: Graph, position: str, factor: str) -> str:
        above = b.op("MatMul", factor, _transposed(b, _row_of(b, factor, position, ndim - 2), ndim))
        column = b.op("Sub", _row_of(b, read, position, ndim - 1), above)
        column = b.op("Div", column, b.op("Sqrt", _row_of(b, column, position, ndim - 2)))
        below = b.op("Unsqueeze", _marked(b, position, n, "GreaterOrEqual"), b.ints(1))
        here = b.op("And", below, _marked(b, position, n, "Equal"))
        return b.where(here, column, factor)
    zeros = Tensor(g.op("Expand", g.const(0, a.aval.dtype), g.ints(*a.aval.shape)), a.aval)
    return _loop(g, n, zeros, step)


def _substituted(g: Graph, a: str, b: Tensor, n: int, lower: bool, unit: bool) -> str:
    """The solution of a triangular system, row by row."""
    ndim = b.aval.ndim

    def step(body: Graph, step_: str, x: str) -> str:
        position = step_ if lower else body.op("Sub", body.const(n - 1, np.int64), step_)
        coefficients = _row_of(body, a, position, ndim - 2)
        here = _marked(body, position, n, "Equal")
        others = body.where(here, body.const(0, b.aval.dtype), coefficients)
        value = body.op("Sub", _row_of(body, b.name, position, ndim - 2), body.op("MatMul", others, x))
        if not unit:
            value = body.op("Div", value, _row_of(body, coefficients, position, ndim - 1))
        return body.where(body.op("Unsqueeze", here, body.ints(1)), value, x)
    zeros = Tensor(g.op("Expand", g.const(0, b.aval.dtype), g.ints(*b.aval.shape)), b.aval)
    return _loop(g, n, zeros, step)


@rule("solve_triangular")
def solve_triangular(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    a, b = operands
    params = node.params
    matrix = g.op("Trilu", a.name, g.const(0, np.int64), upper=0 if params["lower"] else 1)
    if params["trans"]:
        matrix = _transposed(g, matrix, a.aval.ndim)
    return _substituted(g, matrix, b, a.aval.shape[-1], bool(params["lower"]) != bool(params["trans"]), params["unit"])


@rule("cholesky_inverse")
def cholesky_inverse(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    """The inverse of the matrix that has this factor."""
    factor = operands[0]
    n, ndim = factor.aval.shape[-1], factor.aval.ndim
    eye = g.op("Expand", g.const(np.eye(n), factor.aval.dtype), g.ints(*factor.aval.shape))
    half = _substituted(g, factor.name, Tensor(eye, factor.aval), n, lower=True, unit=False)
    return g.op("MatMul", _transposed(g, half, ndim), half)
