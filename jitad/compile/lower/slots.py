"""The arrays of a kernel's own: from when to when each is needed, and where it lies in the workspace."""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.compile.loops import Buffer
from jitad.compile.plan.fuse import Group
from jitad.compile.plan.index import Affine

BLOCK_BYTES, BLOCK_ROWS, WHOLE = 16384, 512, 64         # `WHOLE` rows: some vectors at a time, with none left over


@dataclass
class WorkSlot:
    """Where a materialised array lives: first and last group that touch it, and whether only one block of it exists."""

    name: str
    first: int
    last: int
    local: bool = False


WorkArray = tuple[WorkSlot, str, tuple[int, ...]]           # with its dtype and shape


def workspace(arrays: Iterable[WorkArray]) -> tuple[list[Buffer], dict[str, int]]:
    """Places by lifetime: two arrays of a dtype share one, from its start on, if no group touches both. A place grows
    with what it is given; an array takes the smallest that holds it, or the largest."""
    found: dict[str, list[_Place]] = {}
    put: list[tuple[WorkSlot, str, tuple[int, ...], _Place]] = []
    for slot, dtype, shape in sorted(arrays, key=lambda array: array[0].first):
        size = -(-max(int(np.prod(shape, dtype=np.int64)), 1) // 8) * 8
        places = found.setdefault(dtype, [])
        free = [p for p in places if p.last < slot.first]
        place = min(free, key=lambda p: (p.size < size, abs(p.size - size)), default=None)
        if place is None:
            places.append(place := _Place())
        place.size = max(place.size, size)
        place.last = slot.last
        put.append((slot, dtype, shape, place))
    sizes: dict[str, int] = {}
    for dtype, places in found.items():
        total = 0
        for place in places:
            place.offset, total = total, total + place.size
        sizes[dtype] = total
    return [Buffer(slot.name, dtype, shape, "work", offset=place.offset) for slot, dtype, shape, place in put], sizes


@dataclass(eq=False)
class _Place:
    """Where arrays lie one after the other in time; `last` is the last group that touches the last one."""

    size: int = 0
    offset: int = 0
    last: int = 0


def block_rows(group: Group) -> int:
    """The rows of a block: a few KiB of everything that the group reads; of all blocks the same if that can be,
    as their loops then have a known length. Inside of another loop a block is longer: what it reads in one step
    of that lies together, and a few elements at a time are read slowly."""
    widths: dict[Any, int] = {}
    least = 8
    for root in group.roots:
        if root.axis in root.order[1:]:
            inner = math.prod(root.extents[d] for d in root.order[root.order.index(root.axis) + 1:])
            least = max(least, BLOCK_ROWS // max(inner, 1))
        for number, at in root.reads:
            inner = math.prod(root.extents[d] for d in root.order if d != root.axis and any(
                isinstance(i, Affine) and f"d{d}" in i.variables for i in at))
            walks = any(isinstance(i, Affine) and f"d{root.axis}" in i.variables for i in at)
            widths[number] = max(widths.get(number, 0), inner if walks else 0)
    rows = min(max(BLOCK_BYTES // max(8 * sum(widths.values()), 1), least), BLOCK_ROWS)
    equal = (n for n in range(rows - rows % 8, rows // 2, -8) if group.length % n == 0)
    return next(equal, rows - rows % (WHOLE if rows > WHOLE else 8))
