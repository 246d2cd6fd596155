"""What goes from step to step of a loop, and what a step is."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.tape.types import Aval

__all__ = ["Cell", "Variable", "Variant", "same", "widened"]

Ends = tuple[Any, list[Any]]                             # a tree and its leaves; the tree is None of what is not set


@dataclass(eq=False)
class Cell:
    """An array or number that is carried from step to step: its placeholder has this `number`."""

    aval: Aval
    boxed: bool
    first: Value
    concrete: Any
    number: int = -1


@dataclass(eq=False)
class Variable:
    """A variable of the loop: a tree of cells and of things that stay. `fresh` are those that a step assigns first."""

    name: str
    fresh: bool
    tree: Any = None
    leaves: list[Any] = field(default_factory=list)      # a `Cell`, or what stays
    original: Any = None                                 # what it was when the loop was entered

    @property
    def cells(self) -> list[Cell]:
        return [x for x in self.leaves if type(x) is Cell]


@dataclass(eq=False)
class Variant:
    """What steps do that go one way: `path` has the branches with their outcomes, `ends` for each slot what it is at
    the end, `left` how the loop is left and `value` what is returned then, `stored` what the arrays are that are
    written, and `rows` what is appended to each list."""

    path: list[tuple[int, Any, Any]]
    ends: list[Ends]
    left: int
    value: Ends | None
    stored: list[Value]
    rows: list[list[Ends]]

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple((where, expected) for _, expected, where in self.path)

    def parts(self) -> Iterator[Ends]:
        """All that it gives."""
        yield from self.ends
        yield self.value or (None, [])
        yield None, list(self.stored)
        for rows in self.rows:
            yield from rows


def same(a: Variant, b: Variant) -> bool:
    """Whether two steps that went one way have done the same."""
    ours, theirs = list(a.parts()), list(b.parts())
    return a.left == b.left and [p[0] for p in a.path] == [p[0] for p in b.path] and len(ours) == len(theirs) and all(
        s == t and len(xs) == len(ys) and all(map(_alike, xs, ys))
        for (s, xs), (t, ys) in zip(ours, theirs, strict=True))


def widened(cell: Cell, value: Value, x: Any) -> tuple[Aval, bool]:
    """The type that serves what a cell has been and its `value` after a step, that of `x`; whether it is an array."""
    before, after = cell.aval, value.aval
    weak = before.weak and after.weak
    dtype = after.dtype if before.weak and not weak else before.dtype if after.weak and not weak and (
        after.dtype.kind <= before.dtype.kind) else np.result_type(before.dtype, after.dtype)
    return Aval(before.shape, dtype, weak), cell.boxed or getattr(x, "boxed", False)


def _alike(x: Any, y: Any) -> bool:
    if isinstance(x, Value) and isinstance(y, Value):
        return x.number == y.number
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return type(x) is type(y) and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    return x is y or (type(x) is type(y) and (x == y or (type(x) is float and x != x and y != y)))
