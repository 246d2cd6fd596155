"""Where the values of an outlined kernel lie: parts of buffers, seen through strides, and memory that they share."""
from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from jitad.primitives.view import Map

WORDS = 8                     # elements to a multiple of which memory is given


@dataclass(eq=False)
class ValueSlot:
    """Memory for one value: a buffer of the kernel's, or work that is placed when all rows are known, from the first
    to the last row that touches it. `owner` is the node whose value it has, which may be written over when that is
    read no more; -1 for what is never written over."""

    dtype: str
    size: int
    owner: int = -1
    buffer: str = ""
    offset: int = 0
    first: int = -1
    last: int = -1


@dataclass(frozen=True, eq=False)
class Strided:
    """Elements of a slot: those of `shape`, from `offset` on, by `strides` in elements."""

    slot: ValueSlot
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        expected = 1
        for n, s in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and s != expected:
                return False
            expected *= n
        return True

    def through(self, shape: tuple[int, ...], index: Map) -> Strided:
        """The elements that an index map shows."""
        strides, offset = [0] * len(shape), self.offset
        for (start, terms), stride in zip(index, self.strides, strict=True):
            offset += start * stride
            for d, step in terms:
                strides[d] += step * stride
        if 0 in shape:                                  # of nothing: no offset that might lie outside
            offset = 0
        return Strided(self.slot, shape, tuple(strides), offset)

    def part(self, axis: int, start: int, length: int) -> Strided:
        """A stretch along one axis."""
        shape = (*self.shape[:axis], length, *self.shape[axis + 1:])
        return Strided(self.slot, shape, self.strides, self.offset + start * self.strides[axis])


def steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of C order."""
    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))


def merged(shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The fewest dimensions in which several arrays are walked alike: their lengths, and the strides of each array."""
    kept = [d for d, n in enumerate(shape) if n != 1]
    lengths: list[int] = []
    found: list[list[int]] = [[] for _ in strides]
    for d in kept:
        if lengths and all(own[-1] == s[d] * shape[d] for own, s in zip(found, strides, strict=True)):
            lengths[-1] *= shape[d]
            for own, s in zip(found, strides, strict=True):
                own[-1] = s[d]
        else:
            lengths.append(shape[d])
            for own, s in zip(found, strides, strict=True):
                own.append(s[d])
    if not lengths:
        return [1], [[1] for _ in strides]              # a number is a vector of one element
    return lengths, found


def placed(slots: Sequence[ValueSlot]) -> int:
    """Give the slots offsets, so that no two share memory at one time; returns how much there is of it. Free stretches
    are kept by size, so that this takes no longer for each slot where there are many."""
    ends: dict[int, list[ValueSlot]] = {}
    starts: dict[int, list[ValueSlot]] = {}
    for slot in slots:
        starts.setdefault(slot.first, []).append(slot)
        ends.setdefault(slot.last, []).append(slot)
    free: list[tuple[int, int]] = []                    # (size, offset)
    top = 0
    for row in sorted({*starts, *ends}):
        for slot in starts.get(row, ()):
            size = -(-max(slot.size, 1) // WORDS) * WORDS
            at = bisect_left(free, (size, -1))
            if at < len(free) and free[at][0] <= 2 * size:
                found, slot.offset = free.pop(at)
                if found > size:
                    insort(free, (found - size, slot.offset + size))
            else:
                slot.offset, top = top, top + size
        for slot in ends.get(row, ()):
            insort(free, (-(-max(slot.size, 1) // WORDS) * WORDS, slot.offset))
    return top

