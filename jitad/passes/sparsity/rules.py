"""How patterns go through a row of the table: a rule for each kind."""
from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.modes import partials_of
from jitad.passes.sparsity.patterns import Pattern, both, broadcast, over, united
from jitad.passes.sparsity.propagate import Application, added, rule
from jitad.primitives.reduce import parse
from jitad.primitives.view import places
from jitad.tape.builder import Builder
from jitad.tape.types import Aval, Primitive

# --- kind by kind ------------------------------------------------------------------------------------------

@rule("elementwise")
def _elementwise(step: Application) -> Pattern | None:
    node = step.node
    dtypes = tuple(step.nodes[i].aval.dtype for i in node.inputs)
    moving = _moving(node.prim, dtypes, tuple(sorted(node.params.items())))
    return added(step, [p if m else None for p, m in zip(step.operands, moving, strict=True)])


@lru_cache(maxsize=1024)
def _moving(prim: Primitive, dtypes: tuple[Any, ...], params: tuple[tuple[str, Any], ...]) -> tuple[bool, ...]:
    """Which operands have a partial derivative that is not zero everywhere."""
    if prim.partials is None:                                          # select, cast
        return (True,) * len(dtypes)
    builder = Builder()
    inputs = [builder.input(Aval((), dtype), "x") for dtype in dtypes]
    number = builder.apply(prim, [v.number for v in inputs], dict(params))
    try:
        found = partials_of(prim, builder.value(number), inputs, builder.nodes[number])
    except UnsupportedOperationError:
        return (True,) * len(dtypes)
    return tuple(not (p is None or (isinstance(p, (int, float)) and p == 0)) for p in found)


@rule("view", "reshape", "triangle")
def _alone(step: Application) -> Pattern | None:
    """The row itself, on the numbers of the sets."""
    (pattern,) = step.operands
    return pattern and pattern.moved(np.asarray(step.node.prim.evaluate(pattern.rows, **step.node.params)))


@rule("concatenate", "update")
def _joined(step: Application) -> Pattern:
    rows, table = step.joint()
    full = [np.broadcast_to(r, shape) for r, shape in zip(rows, step.shapes, strict=True)]
    return Pattern(np.asarray(step.node.prim.evaluate(*full, **step.node.params)), table)


@rule("spread")
def _spread(step: Application) -> Pattern | None:
    (pattern,), shape = step.operands, step.node.params["shape"]
    assert pattern is not None
    at = places(step.node.params["index"], pattern.rows.shape)
    groups = np.ravel_multi_index(at, shape) if shape else np.zeros(pattern.rows.shape, np.int64)
    return _into(pattern, groups, shape)


def _into(pattern: Pattern, groups: np.ndarray, shape: tuple[int, ...]) -> Pattern:
    count = int(np.prod(shape, dtype=np.int64))
    numbers, table = united(groups.ravel(), pattern.rows.ravel(), count, pattern.table)
    return Pattern(numbers.reshape(shape), table)


@rule("gather")
def _gather(step: Application) -> Pattern | None:
    pattern, axes = step.operands[0], step.node.params["axes"]
    if pattern is None:
        return None
    index = step.index(1)
    if index is not None:
        return pattern.moved(step.node.prim.evaluate(pattern.rows, *index, axes=axes))
    return broadcast(over(pattern, axes), step.node.aval.shape)        # any of the elements


@rule("scatter")
def _scatter(step: Application) -> Pattern | None:
    pattern = step.operands[0]
    return pattern and _scattered(step, pattern, step.node.params["axes"], step.node.params["shape"], step.index(1))


def _scattered(step: Application, pattern: Pattern, axes: tuple[int, ...], shape: tuple[int, ...],
               index: list[np.ndarray] | None) -> Pattern:
    if index is not None:
        board = np.moveaxis(np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape), axes, range(len(axes)))
        return _into(pattern, np.broadcast_to(board[tuple(index)], pattern.rows.shape), shape)
    lead = pattern.rows.ndim - (len(shape) - len(axes))
    anywhere = over(pattern, range(lead))
    return broadcast(anywhere.moved(np.expand_dims(anywhere.rows, axes)), shape)


@rule("put")
def _put(step: Application) -> Pattern | None:
    base, values, *_ = step.operands
    index, axes, shape = step.index(2), step.node.params["axes"], step.node.aval.shape
    if index is not None:
        rows, table = step.joint([base, values])
        below, above = (np.broadcast_to(r, s) for r, s in zip(rows, step.shapes, strict=False))
        return Pattern(step.node.prim.evaluate(below, above, *index, axes=axes), table)
    return added(step, [base, values and _scattered(step, values, axes, shape, None)])


@rule("reduce")
def _reduce(step: Application) -> Pattern | None:
    (pattern,) = step.operands
    return pattern and over(pattern, step.node.params["axes"])


@rule("contract")
def _contract(step: Application) -> Pattern | None:
    """Each operand summed over the letters that the result does not have, then their union."""
    left, right, out = parse(step.node.params["spec"])
    parts = []
    for pattern, letters in zip(step.operands, (left, right), strict=True):
        if pattern is None:
            continue
        summed = over(pattern, [d for d, c in enumerate(letters) if c not in out])
        own = [c for c in letters if c in out]
        rows = summed.rows.transpose([own.index(c) for c in out if c in own])
        rows = rows.reshape([n if c in own else 1 for c, n in zip(out, step.node.aval.shape, strict=True)])
        parts.append(broadcast(summed.moved(rows), step.node.aval.shape))
    return added(step, parts)


@rule("cumulative", "recurrence")
def _cumulative(step: Application) -> Pattern | None:
    """The union of all before, in steps that double."""
    axis, reverse = step.node.params["axis"], step.node.params["reverse"]
    found, reach = added(step, step.operands), 1
    while found is not None and reach < found.rows.shape[axis]:
        rows = np.moveaxis(found.rows, axis, 0)
        rows = rows[::-1] if reverse else rows
        earlier = np.concatenate([np.zeros_like(rows[:reach]), rows[:-reach]])
        earlier = np.moveaxis(earlier[::-1] if reverse else earlier, 0, axis)
        found, reach = both([found.rows, earlier], found.table), 2 * reach
    return found


