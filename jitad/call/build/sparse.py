"""Sparse Jacobians and Hessians on a builder: the pattern, a colour for each column, all colours in one sweep, and the
elements picked out of what it gives.

Where a tangent or cotangent sums up columns of one colour, a row has an element in one of them at most: so the product
has the elements themselves. Tangents keep the structure of the seed as far as those of dense Jacobians do
(`jitad.passes.differentiate.tangents`), so that a zero of another column does not meet an infinite partial derivative.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitad.passes.differentiate.modes import one, pullback, pushforward
from jitad.passes.differentiate.tangents import Entries, Tangents
from jitad.tape.evaluate import evaluate_node
from jitad.primitives.core import cast, full, select
from jitad.tape.types import TABLE
from jitad.primitives.index import concatenate, gather, reshape, triu
from jitad.primitives.reduce import reduce_all
from jitad.primitives.view import broadcast_to, transpose, view
from jitad.call.request.sparse import Matrix
from jitad.passes.sparsity.patterns import Table, empty, stacked, units
from jitad.passes.sparsity.propagate import propagate
from jitad.passes.sparsity.colours import columns_apart, single, star
from jitad.tape.builder import Builder, Value

Given = Mapping[int, Any]                         # what the inputs are, by the number of the node
Sparse = tuple[Value, Matrix]                     # the elements in the order of CSR, and the rest of the matrix


def sparse_jacobian(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], mode: str,
                    given: Given) -> Sparse:
    """The Jacobian of all outputs, flattened and joined, with respect to all of `wrt`."""
    table = structure(builder, outputs, wrt, given)
    if not table.nnz:
        return _nothing(builder, wrt, table)
    forward, colours = _way(table, mode)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    if forward:
        found = _by_columns(builder, outputs, wrt, colours)
        places = colours[table.indices] * table.shape[0] + rows
    else:
        found = _by_rows(builder, outputs, wrt, colours)
        places = colours[rows] * table.shape[1] + table.indices
    return _picked(found, places), Matrix.of(table)


def sparse_hessian(builder: Builder, gradients: Sequence[Value], wrt: Sequence[Value], given: Given) -> Sparse:
    """The Hessian with respect to all of `wrt`, flattened and joined; exactly symmetric, as both of two mirror images
    are read at one place."""
    table = structure(builder, gradients, wrt, given)
    table = _canonical(table + table.T.tocsr())
    if not table.nnz:
        return _nothing(builder, wrt, table)
    colours, size = star(table), table.shape[0]
    rows, columns = np.repeat(np.arange(size), np.diff(table.indptr)), table.indices.astype(np.int64)
    found = _by_columns(builder, gradients, wrt, colours)
    if table.nnz == size * size:
        square = reshape(found, (size, size))                          # element (i, j) of the Hessian at (j, i)
        return reshape(transpose(triu(square, k=0), (1, 0)) + triu(square, k=1), (table.nnz,)), Matrix.of(table)
    alone = single(table, colours)
    here = colours[columns] * size + rows
    there = colours[rows] * size + columns
    mirror = np.argsort(columns * size + rows)                         # the place of the mirror image of each element
    direct = np.where(rows >= columns, alone, ~alone[mirror])          # the lower element's own place, if it is one
    return _picked(found, np.where(direct, here, there)), Matrix.of(table)


# --- the structure -----------------------------------------------------------------------------------------

def structure(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], given: Given) -> Table:
    """Where the Jacobian may have elements that are not zero: a boolean matrix.

    What is picked by integers that do not depend on `wrt` is taken to be at the places where it is now, which is
    guarded; by integers that do, anywhere.
    """
    width = _size(wrt)
    known, first = {}, 0
    for value in wrt:
        known[value.number] = units(value.shape, first, width)
        first += value.aval.size
    places = _Places(builder, {v.number for v in wrt}, given)
    found = propagate(builder.nodes, [o.number for o in outputs], known, places)
    parts = [empty(width, o.aval.size) if p is None else p.matrix() for o, p in zip(outputs, found, strict=True)]
    places.guard()
    return _canonical(stacked(parts) if parts else empty(width, 0))


class _Places:
    """The values of integers that pick elements; those that are no constants are guarded in the end."""

    def __init__(self, builder: Builder, wrt: set[int], given: Given):
        self.builder, self.used = builder, set[int]()
        self.values: dict[int, Any] = {n: np.asarray(x, builder.nodes[n].aval.dtype) for n, x in given.items()}
        self.varying = set(wrt)
        for number, node in enumerate(builder.nodes):
            if not self.varying.isdisjoint(node.inputs):
                self.varying.add(number)

    def __call__(self, number: int) -> np.ndarray | None:
        if number in self.varying:
            return None
        self.used.add(number)
        return self._value(number)

    def _value(self, number: int) -> Any:
        stack = [number]
        while stack:
            top = stack[-1]
            missing = [i for i in self.builder.nodes[top].inputs if i not in self.values] if (
                top not in self.values) else []
            if missing:
                stack += missing
                continue
            stack.pop()
            if top not in self.values:
                node = self.builder.nodes[top]
                self.values[top] = evaluate_node(node, [self.values[i] for i in node.inputs])
        return self.values[number]

    def guard(self) -> None:
        for number in sorted(self.used):
            value, node = Value(self.builder, number), self.builder.nodes[number]
            if node.constant is None and node.aval.size:
                same = TABLE["eq"](value, self.values[number])
                self.builder.guard(reduce_all(same, axes=tuple(range(value.ndim))), True, node.where)


def _canonical(table: Table) -> Table:
    table.sum_duplicates()
    table.sort_indices()
    return table


def _way(table: Table, mode: str) -> tuple[bool, np.ndarray]:
    """Forward or reverse, with a colour for each column or for each row: forward, unless reverse needs fewer."""
    if mode == "reverse":
        return False, columns_apart(table.T.tocsr())
    colours = columns_apart(table)
    if mode == "auto" and np.bincount(table.indices).max() <= colours.max():
        by_row = columns_apart(table.T.tocsr())
        if by_row.max() < colours.max():
            return False, by_row
    return True, colours


# --- the sweeps ----------------------------------------------------------------------------------------------

def _by_columns(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], colours: np.ndarray) -> Value:
    """The sums of the columns of each colour: forward. Flat, colour after colour."""
    count, dtype = int(colours.max()) + 1, _dtype(wrt)
    moving = [w for w in wrt if w.aval.size]
    if count == 1:
        found = pushforward(builder, outputs, moving, [one(w) for w in moving])
        return _joined([reshape(cast(t, dtype), (t.aval.size,)) for t in found], axis=0)
    seeds, first = [], 0
    for value in moving:
        own = colours[first:first + value.aval.size]
        first += value.aval.size
        alone = len(set(own.tolist())) == 1
        row: Any = (0, ()) if alone else builder.const(own.reshape(value.shape))
        seeds.append(Tangents((Entries(one(value), row, int(own[0]), 1) if alone else Entries(
            one(value), row, 0, count),)))
    found = pushforward(builder, outputs, moving, seeds, count)
    return _flat([reshape(cast(t, dtype), (count, o.aval.size)) for t, o in zip(found, outputs, strict=True)])


def _by_rows(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], colours: np.ndarray) -> Value:
    """The sums of the rows of each colour: in reverse."""
    count, dtype = int(colours.max()) + 1, _dtype(wrt)
    if count == 1:
        found = pullback(builder, outputs, [one(o) for o in outputs], wrt)
        return _joined([reshape(cast(ct, dtype), (ct.aval.size,)) for ct in found], axis=0)
    seeds, first = [], 0
    for output in outputs:
        own = builder.const(colours[first:first + output.aval.size].reshape(output.shape))
        first += output.aval.size
        shape = (count, *output.shape)
        numbers = view(builder.const(np.arange(count)), shape, ((0, ((0, 1),)),))
        chosen = TABLE["eq"](numbers, broadcast_to(own, shape))
        seeds.append(select(chosen, full(output, 1, shape, output.dtype), full(output, 0, shape, output.dtype)))
    found = pullback(builder, outputs, seeds, wrt, count)
    return _flat([reshape(cast(ct, dtype), (count, w.aval.size)) for ct, w in zip(found, wrt, strict=True)])


def _flat(parts: Sequence[Value]) -> Value:
    whole = _joined(parts, axis=1)
    return reshape(whole, (whole.aval.size,))


def _joined(parts: Sequence[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else concatenate(*parts, axis=axis)


def _picked(found: Value, places: np.ndarray) -> Value:
    """The elements at these places; without a table of the places where they are all, in order or transposed."""
    if found.aval.size == len(places):
        order = np.arange(len(places))
        if (places == order).all():
            return found
        step = int(places[1])
        if step > 1 and len(places) % step == 0 and (places == order.reshape(-1, step).T.ravel()).all():
            return reshape(transpose(reshape(found, (len(places) // step, step)), (1, 0)), (len(places),))
    return gather(found, found.builder.const(places), axes=(0,))


def _nothing(builder: Builder, wrt: Sequence[Value], table: Table) -> Sparse:
    return builder.const(np.zeros(0, _dtype(wrt))), Matrix.of(table)


def _size(values: Sequence[Value]) -> int:
    return sum(v.aval.size for v in values)


def _dtype(wrt: Sequence[Value]) -> np.dtype[Any]:
    return np.result_type(*(w.dtype for w in wrt)) if wrt else np.dtype(np.float64)


__all__ = ["sparse_hessian", "sparse_jacobian", "structure"]
