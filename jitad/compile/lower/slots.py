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
    """Offsets by lifetime: two arrays share memory if no group touches both."""
    taken: dict[str, list[tuple[int, int, WorkSlot]]] = {}
    buffers: list[Buffer] = []
    sizes: dict[str, int] = {}
    for slot, dtype, shape in sorted(arrays, key=lambda array: array[0].first):
        size = -(-max(int(np.prod(shape, dtype=np.int64)), 1) // 8) * 8
        busy = sorted((o, s) for o, s, t in taken.get(dtype, []) if t.first <= slot.last and slot.first <= t.last)
        offset = 0
        for start, length in busy:
            if start - offset >= size:
                break
            offset = max(offset, start + length)
        taken.setdefault(dtype, []).append((offset, size, slot))
        sizes[dtype] = max(sizes.get(dtype, 0), offset + size)
        buffers.append(Buffer(slot.name, dtype, shape, "work", offset=offset))
    return buffers, sizes


def block_rows(group: Group) -> int:
    """The rows of a block: a few KiB of everything that the group reads; of all blocks the same if that can be,
    as their loops then have a known length."""
    widths: dict[Any, int] = {}
    for root in group.roots:
        for number, at in root.reads:
            inner = math.prod(root.extents[d] for d in root.order if d != root.axis and any(
                isinstance(i, Affine) and f"d{d}" in i.variables for i in at))
            walks = any(isinstance(i, Affine) and f"d{root.axis}" in i.variables for i in at)
            widths[number] = max(widths.get(number, 0), inner if walks else 0)
    rows = min(max(BLOCK_BYTES // max(8 * sum(widths.values()), 1), 8), BLOCK_ROWS)
    equal = (n for n in range(rows - rows % 8, rows // 2, -8) if group.length % n == 0)
    return next(equal, rows - rows % (WHOLE if rows > WHOLE else 8))
