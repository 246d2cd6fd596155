"""Captured lists, tuples and sets: copies, item by item where the items are captures of their own."""
from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.cache.keys.guards import is_atom
from jitad.trace.captures.notes import Notes
from jitad.trace.captures.standard import note

__all__ = ["STATIC", "frozen_copy", "has_changed", "take_list", "take_set", "take_tuple"]

LONGEST = 64  # numbers in a captured list that are inputs each; longer lists are guarded by value
STATIC = frozenset({str, bytes, int, bool, complex, type(None), type(...), range})


def take_list(captures: Notes, value: list[Any], path: Path) -> list[Any]:
    """A copy, which the code must not change."""
    if not any(map(_moves, value)) or (len(value) > LONGEST and all(map(is_atom, value))):
        captures.guard(value, path)
        items = list(value)
    else:
        captures.guard(type(value), path.step("type"))
        items = _items(captures, value, path)
    captures.watched.append((items, list(items), path))
    return items


def take_tuple(captures: Notes, value: Any, path: Path) -> Any:
    """A tuple, item by item where that is needed."""
    if not any(map(_moves, value)):
        captures.guard(value, path)
        return value
    captures.guard(type(value), path.step("type"))
    items = _items(captures, value, path)
    return tuple(items) if type(value) is tuple else tuple.__new__(type(value), items)


def take_set(captures: Notes, value: set[Any] | frozenset[Any], path: Path) -> set[Any] | frozenset[Any]:
    """A copy, which the code must not change; of a frozen one itself."""
    captures.guard(value, path)
    if not all(type(item) in (int, bool) for item in value):
        note(captures, "hashes of texts")                           # on which the order depends
    if isinstance(value, frozenset):
        return value
    copy = set(value)
    captures.watched.append((copy, set(value), path))
    return copy


def has_changed(copy: Any, before: Any) -> bool:
    """Whether a copy of a list, set or counter is another than it was `before`."""
    if type(copy) is set:
        return bool(copy != before)
    if type(copy) is Counter:
        return list(copy.items()) != before
    return len(copy) != len(before) or any(a is not b for a, b in zip(copy, before, strict=True))


def frozen_copy(value: np.ndarray) -> np.ndarray:
    """A copy of an array of texts or times, guarded by value, that cannot be written."""
    copy = np.array(value)
    copy.flags.writeable = False
    return copy


def _items(captures: Notes, value: Sequence[Any], path: Path) -> list[Any]:
    captures.guard(len(value), path.step("len"))
    return [captures.take(item, path.step("item", i)) for i, item in enumerate(value)]


def _moves(item: Any) -> bool:
    """Whether an item of a captured sequence has to be taken on its own rather than guarded with the rest."""
    if type(item) is tuple:
        return any(map(_moves, item))
    return type(item) not in STATIC and not isinstance(item, (enum.Enum, np.integer, np.bool_, np.dtype))
