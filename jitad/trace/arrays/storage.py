"""Storages: the memory that arrays of a recording share, so that a write through one is seen by all.

A storage holds the node of its elements and, on top, *patches*: the values that were stored since, each with the
window on the elements that it fills. An element that was stored is read back as the value itself (so that
``h[t] = f(h[t - 1])`` is a chain of numbers); only when a part is read that is made of several patches, they become
one node: a `concatenate` where they lie side by side, else an `update`. So n assignments are one node, not n.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from jitad.errors import MutationError
from jitad.primitives.core import full
from jitad.primitives.index import concatenate, gather, put, reshape, update
from jitad.primitives.view import Map, broadcast_to, slice_dims
from jitad.tape.builder import Builder, Value
from jitad.tape.types import Where
from jitad.trace.arrays.windows import Window, affine, look, map_of, positions, show, weights, whole

SMALL = 32         # elements up to which a read of several patches takes them one by one
RUNS = 64          # runs of elements into which irregular patches may be cut

Raiser = Callable[[], NoReturn]


class Patch:
    """A value that was stored. `window` or `where` (element numbers) say where; `left` elements are still there."""

    __slots__ = ("left", "number", "where", "window")

    def __init__(self, number: int, left: int, window: Window | None, where: np.ndarray | None = None):
        self.number, self.left, self.window, self.where = number, left, window, where

    @property
    def positions(self) -> np.ndarray:
        return self.where if self.where is not None else positions(self.window)  # type: ignore[arg-type]


class Storage:
    """The elements of one array in memory, of `shape` in C order. `owner` says whose they are if they must not be
    written; `plain` marks memory of which it is known that NumPy, too, has it in C order.

    `doubt` raises where a write would be seen by arrays that the recording does not know of; `lost` where a read would
    have to see what was written to memory that may be the same."""

    __slots__ = ("_patch_at", "_within", "base", "born", "builder", "doubt", "dtype", "lost", "made", "origin", "owner",
                 "patches", "plain", "rivals", "settled", "shape", "size", "version", "whole", "__weakref__")

    def __init__(self, value: Value, owner: str = "", plain: bool = False):
        self.builder: Builder = value.builder
        aval = value.aval
        self.shape, self.dtype, self.size = aval.shape, aval.dtype, aval.size
        self.base = self.origin = self.made = value.number
        self.owner, self.plain = owner, plain or aval.ndim < 2
        self.born = getattr(value.builder, "moment", 0)  # in which step of the loops that are walked
        self.version = 0
        self.whole = whole(self.shape)
        self.patches: list[Patch] = []
        self.settled = 0                        # patches that are part of `base`
        self.rivals: list[tuple[weakref.ref[Any], Raiser | None]] = []
        self.doubt: Raiser | None = None
        self.lost: Raiser | None = None
        self._patch_at: Any = None                 # for each element the patch that made it, or -1
        self._within: Any = None                 # and where it is in the value of that patch

    @property
    def clean(self) -> bool:
        """Whether nothing was stored on top of `base`."""
        return self._patch_at is None

    # --- writing -----------------------------------------------------------------------------
    def check_writable(self) -> None:
        """Raise where the recording cannot tell what a write would change. What may be the same memory is lost."""
        if self.doubt is not None:
            self.doubt()
        if self.owner:
            raise MutationError(
                f"{self.owner} is written to, at {self.builder.where()}, while the function is recorded. The caller's "
                "arrays are never changed; copy it first: a = a.copy()")
        if self.lost is not None:
            self.lost()
        for known, raiser in self.rivals:
            if (rival := known()) is not None:
                rival.lost = raiser or self._unknown(self.builder.where())
                rival.version += 1

    @property
    def others(self) -> list[Storage]:
        """The storages that may be the same memory."""
        return [rival for known, _ in self.rivals if (rival := known()) is not None]

    def _unknown(self, where: Where | None) -> Raiser:
        """What raises where an array is read that a write, at `where`, may have changed."""
        def raise_() -> NoReturn:
            raise MutationError(
                f"an array is written to, at {where}, that may or may not share its memory with another one, which is "
                f"used at {self.builder.where()} (NumPy decides it by the layout of a computed array, or by a computed "
                "index); take a .copy() of one of them first")
        return raise_

    def _check_step(self) -> None:
        """A write in a step of a loop that is walked is one of which that loop knows."""
        marks = getattr(self.builder, "marks", None)
        if marks is not None and marks.runs:
            marks.written(self)

    def may_share_with(self, other: Storage, raiser: Raiser | None = None) -> None:
        """Note a storage that in NumPy may be the same memory: after a write to one the other is not used, or `raiser`
        says why not."""
        self.rivals.append((weakref.ref(other), raiser))
        other.rivals.append((weakref.ref(self), raiser))

    def write(self, window: Window, number: int) -> None:
        """Store the value of a node, of the window's shape, in the window."""
        size = window.size
        if size == 0:
            return
        self._check_step()
        if size == self.size and (window == self.whole or (window.contiguous and window.offset == 0)):
            self.replace(reshape(self.builder.value(number), self.shape).number)
            return
        patch = self._begin()
        self.patches.append(Patch(number, size, window))
        if size == 1:
            at = window.offset
            self._lose_one(int(self._patch_at[at]))
            self._patch_at[at], self._within[at] = patch, 0
            return
        found = look(self._patch_at, window)
        self._lose(found)
        found[...] = patch
        look(self._within, window)[...] = np.arange(size).reshape(window.shape)

    def write_at(self, where: np.ndarray, number: int) -> None:
        """Store each element of a node, of the shape of `where`, at the element with that number; the last counts."""
        if where.size == 0:
            return
        self._check_step()
        window = affine(where)
        if window is not None and where.size and np.unique(where).size == where.size:
            self.write(window, number)
            return
        patch, order = self._begin(), np.arange(where.size).reshape(where.shape)
        self._lose(self._patch_at[np.unique(where)])
        flat = where.ravel()
        self._patch_at[flat], self._within[flat] = patch, order.ravel()
        self.patches.append(Patch(number, int((self._within[where] == order).sum()), None, where))

    def replace(self, number: int) -> None:
        """Another value for all elements."""
        self.version += 1
        self.base = self.origin = number
        self.patches, self.settled, self._patch_at = [], 0, None

    def _begin(self) -> int:
        self.version += 1
        if self._patch_at is None:
            self._patch_at, self._within = np.full(self.size, -1), np.zeros(self.size, np.int64)
        return len(self.patches)

    def _lose_one(self, number: int) -> None:
        if number >= 0:
            self.patches[number].left -= 1

    def _lose(self, found: np.ndarray) -> None:
        for number, count in zip(*np.unique(found, return_counts=True), strict=True):
            if number >= 0:
                self.patches[number].left -= int(count)

    # --- reading -----------------------------------------------------------------------------
    def read(self, window: Window) -> int:
        """The node of what the window shows now."""
        if self.lost is not None:
            self.lost()
        value = self.builder.value
        if self._patch_at is None or window.size == 0:
            return self._shown(self.base, window)
        if window.size == 1:
            return self._element(window.offset, window.shape)
        found = look(self._patch_at, window)
        first = int(found.flat[0])
        if (found == first).all():
            part = self._of_patch(first, window)
            return part if part is not None else self._shown(self.settle(), window)
        parts = self._parts(window, found) if window.size < self.size else None
        if parts is None:
            return self._shown(self.settle(), window)
        return reshape(concatenate(*map(value, parts), axis=0), window.shape).number

    def _parts(self, window: Window, found: np.ndarray) -> list[int] | None:
        """The values of which a window that several patches made is put together, if these are few."""
        if len(window.shape) > 1:
            one_by_one = window.size <= SMALL
            return [self._element(int(at), (1,)) for at in positions(window).ravel()] if one_by_one else None
        cuts = [0, *(np.flatnonzero(np.diff(found)) + 1).tolist(), window.size]
        if len(cuts) > SMALL:
            return None
        parts: list[int] = []
        (stride,) = window.strides
        for start, stop in pairwise(cuts):
            run = Window(window.offset + start * stride, (stop - start,), (stride,))
            part = self._of_patch(int(found[start]), run)
            if part is None:
                return None
            parts.append(part)
        return parts

    def _shown(self, number: int, window: Window) -> int:
        return number if window == self.whole else show(self.builder.value(number), window).number

    def _element(self, at: int, shape: tuple[int, ...]) -> int:
        value, number = self.builder.value, int(self._patch_at[at])
        one = Window(at, shape, (0,) * len(shape))
        if number < 0:
            return self._shown(self.origin, one)
        made = value(self.patches[number].number)
        if made.aval.size == 1:
            return reshape(made, shape).number
        return show(made, Window(int(self._within[at]), shape, one.strides)).number

    def _of_patch(self, number: int, window: Window) -> int | None:
        """What the window shows, all of it made by one patch (or by the first node)."""
        if number < 0:
            return self._shown(self.origin, window)
        patch = self.patches[number]
        if patch.window == window:
            return patch.number
        if patch.window is not None and patch.window.size == window.size == 1:
            return reshape(self.builder.value(patch.number), window.shape).number
        within = affine(look(self._within, window))
        return None if within is None else show(self.builder.value(patch.number), within).number

    # --- patches become nodes ----------------------------------------------------------------
    def settle(self) -> int:
        """The node of all elements."""
        pending = [(number, patch) for number, patch in enumerate(self.patches[self.settled:], self.settled)
                   if patch.left]
        self.settled = len(self.patches)
        if pending:
            base = self.builder.value(self.base)
            result = self._blocks(base, pending)
            if result is None:
                result = self._runs(base, pending)
            self.base = (self._stored(base, pending) if result is None else result).number
        return self.base

    def _blocks(self, base: Value, pending: list[tuple[int, Patch]]) -> Value | None:
        """Patches that are slices of one axis, such as rows or columns, side by side."""
        if any(e.window is None or e.left < e.window.size for _, e in pending):
            return None
        for axis, step in enumerate(weights(self.shape)):
            parts = []
            across = self.size // self.shape[axis]
            for _, patch in pending:
                window: Window = patch.window  # type: ignore[assignment]
                length = window.size // across
                shape = (*self.shape[:axis], length, *self.shape[axis + 1:])
                start, rest = divmod(window.offset, step)
                block = Window(0, shape, self.whole.strides)
                if not length or rest or start >= self.shape[axis] or block.essence != window.essence:
                    break
                parts.append((start, reshape(self.builder.value(patch.number), shape)))
            else:
                return self._side_by_side(base, parts, axis)
        return None

    def _side_by_side(self, base: Value, parts: list[tuple[int, Value]], axis: int) -> Value:
        """The parts, which start where they say along the axis, and `base` in between."""
        joined, stop = [], 0
        n = base.shape[axis]
        for start, part in [*sorted(parts, key=lambda p: p[0]), (n, None)]:
            if start > stop:
                gap = slice(stop, start)
                joined.append(slice_dims(base, tuple(gap if d == axis else slice(None) for d in range(base.ndim))))
            if part is not None:
                joined.append(part)
                stop = start + part.shape[axis]
        return joined[0] if len(joined) == 1 else concatenate(*joined, axis=axis)

    def _runs(self, base: Value, pending: list[tuple[int, Patch]]) -> Value | None:
        """Patches cut into runs of neighbouring elements, if these are not too many."""
        parts: list[tuple[int, Value]] = []
        limit = max(RUNS, 2 * len(pending))
        for number, patch in pending:
            value = self.builder.value(patch.number)
            flat = flattened(value)
            if patch.window is not None and patch.left == patch.window.size and patch.window.contiguous:
                parts.append((patch.window.offset, flat))
                continue
            where, inside = self._remaining(number, patch)
            cuts = np.flatnonzero((np.diff(where) != 1) | (np.diff(inside) != 1)) + 1
            if len(parts) + len(cuts) >= limit:
                return None
            for at, run in zip(np.split(where, cuts), np.split(inside, cuts), strict=True):
                first = int(run[0])
                parts.append((int(at[0]), slice_dims(flat, (slice(first, first + at.size),))))
        return reshape(self._side_by_side(reshape(base, (self.size,)), parts, 0), self.shape)

    def _remaining(self, number: int, patch: Patch) -> tuple[np.ndarray, np.ndarray]:
        """The elements that an patch still makes, and where they are in its value."""
        where = patch.positions.ravel()
        left = (self._patch_at[where] == number) & (self._within[where] == np.arange(where.size))
        return where[left], np.flatnonzero(left)

    def _stored(self, base: Value, pending: list[tuple[int, Patch]]) -> Value:
        """Patches stored over `base`: first those of which the others overwrite something, as a whole where what is
        left of them is no window."""
        tops: list[tuple[Value, Window]] = []
        for number, patch in pending:
            value = self.builder.value(patch.number)
            if patch.window is not None and patch.left == patch.window.size:
                tops.append((value, patch.window))
                continue
            where, inside = self._remaining(number, patch)
            window, within = affine(where), affine(inside)
            if window is not None and within is not None:
                tops.append((show(flattened(value), within), window))
            elif patch.window is not None:
                base = self._updated(base, [(value, patch.window)])
            else:
                left = gather(flattened(value), self.builder.const(inside), axes=(0,))
                base = reshape(put(reshape(base, (self.size,)), left, self.builder.const(where), axes=(0,)), self.shape)
        return self._updated(base, tops) if tops else base

    def _updated(self, base: Value, parts: list[tuple[Value, Window]]) -> Value:
        """Values stored in windows that have nothing in common."""
        if any(map_of(window, self.shape) is None for _, window in parts):
            base = reshape(base, (self.size,))
        indices = tuple(_map(window, base.shape) for _, window in parts)
        return reshape(update(base, *(value for value, _ in parts), indices=indices), self.shape)


def _map(window: Window, shape: tuple[int, ...]) -> Map:
    index = map_of(window, shape)
    if index is None:
        index = ((window.offset, tuple((d, s) for d, s in enumerate(window.strides) if s)),)
    return tuple((offset, tuple(t for t in terms if window.shape[t[0]] != 1)) for offset, terms in index)


def constant(builder: Builder, array: np.ndarray) -> Value:
    """A concrete array on the tape; one number where all elements are the same."""
    flat = array.ravel()
    if array.ndim and array.size > 1 and flat.tobytes() == np.full(flat.shape, flat[0], flat.dtype).tobytes():
        return full(builder.const(flat[0]), flat[0], array.shape, array.dtype)
    return builder.const(array)


def flattened(value: Value) -> Value:
    """All elements in one dimension; a number that is broadcast stays one."""
    node = value.node
    source = value.builder.value(node.inputs[0]) if node.index_map is not None else value
    if source.ndim == 0:
        return broadcast_to(source, (value.aval.size,))
    return reshape(value, (value.aval.size,))
