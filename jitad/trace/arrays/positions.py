"""Places of the true elements of a traced mask.

How many there are decides on shapes, so the count is guarded; which they are is computed by the compiled code. One
tape so serves all masks with as many true elements.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.primitives.index import reshape
from jitad.primitives.order import count_true
from jitad.primitives.order import positions as _positions
from jitad.tape.builder import Value
from jitad.tape.types import TABLE


def flat_positions(mask: Value) -> Value:
    """The numbers, in C order, of the true elements of `mask`, shape ``(count,)``. The count is guarded."""
    builder: Any = mask.builder
    if mask.node.constant is not None:
        return builder.lift(np.flatnonzero(mask.node.constant))
    with builder.plain():
        plain = builder.value(mask.number)
        flat, count = reshape(plain, (mask.aval.size,)), count_true(plain)
    found = int(builder.decide(count))
    return builder.value(_positions(flat, count=found).number)


def unflattened(flat: Value, shape: tuple[int, ...]) -> tuple[Value, ...]:
    """The index arrays of elements that have these numbers in an array of `shape`."""
    result: list[Value] = []
    for d in range(len(shape)):
        below = math.prod(shape[d + 1:])
        index = flat if below == 1 else TABLE["floor_divide"](flat, max(below, 1))
        result.append(index if d == 0 else TABLE["remainder"](index, max(shape[d], 1)))
    return tuple(result)


def nonzero_of(mask: Value) -> tuple[Value, ...]:
    """As ``mask.nonzero()``."""
    return unflattened(flat_positions(mask), mask.shape)
