"""Shards of data: where they come from, and how what each of them gives is added.

Sums are trees over the numbers of the shards. Whoever holds some shards adds those subtrees that it has all of; which
shards lie where changes nothing of the order, and so of no bit of the result.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitad.distributed.files import READERS, read
from jitad.errors import ArgumentTypeError, SignatureError

Leaves = tuple[np.ndarray, ...]                   # what one shard, or a sum over some, gives
Range = tuple[int, int]
Data = tuple[Any, ...]                            # the arguments of the log-likelihood after the first


# --- sums ----------------------------------------------------------------------------------------------------

def summed(span: Range, leaf: Callable[[int], Leaves]) -> Leaves:
    """The sum over a range of shards."""
    if span[1] - span[0] == 1:
        return leaf(span[0])
    left, right = halves(span)
    return added(summed(left, leaf), summed(right, leaf))


def added(a: Leaves, b: Leaves) -> Leaves:
    """The sum of two results."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def halves(span: Range) -> tuple[Range, Range]:
    """The two ranges under a node of the tree."""
    middle = (span[0] + span[1]) // 2
    return (span[0], middle), (middle, span[1])


def subtrees(span: Range, held: set[int]) -> list[Range]:
    """The largest nodes of the tree of which all shards are held."""
    inside = sum(i in held for i in range(*span))
    if inside in (0, span[1] - span[0]):
        return [span] if inside else []
    return [found for half in halves(span) for found in subtrees(half, held)]


def joined(span: Range, parts: Mapping[Range, Leaves]) -> Leaves:
    """The sum over a range of which the sums over subtrees are known."""
    if span in parts:
        return parts[span]
    left, right = halves(span)
    return added(joined(left, parts), joined(right, parts))


# --- where shards come from --------------------------------------------------------------------------------------

def checked(shards: Any) -> list[Any]:
    """The sources of shards in a list. Raises `ArgumentTypeError` for what is none."""
    if isinstance(shards, (str, bytes, os.PathLike, Mapping, np.ndarray)) or not isinstance(shards, Sequence):
        raise ArgumentTypeError(f"shards must be a list with the data of each shard, not {type(shards).__name__}; "
                                "np.array_split(x, 8) splits an array")
    if not shards:
        raise ArgumentTypeError("shards is empty: there are no data")
    for number, source in enumerate(shards):
        if isinstance(source, (str, os.PathLike)):
            if Path(source).suffix not in READERS:
                raise ArgumentTypeError(f"shard {number} is the path {os.fspath(source)!r}; known are "
                                        f"{', '.join(READERS)}; give a function that loads it for others")
        elif not callable(source):
            _require_numbers(_arguments(source), number)
    return list(shards)


def loaded(source: Any, number: int, names: Sequence[str]) -> Data:
    """The data of a shard as arguments of the log-likelihood after the first, which have these names. What a function
    that loads raises is passed on, with the number of the shard."""
    try:
        data = read(Path(source), names) if isinstance(source, (str, os.PathLike)) else (
            source() if callable(source) else source)
        return ordered(data, number, names)
    except Exception as error:
        error.add_note(f"while shard {number} was loaded")
        raise


def ordered(data: Any, number: int, names: Sequence[str]) -> Data:
    """Data by name or in a tuple, as arguments after the first; raises `SignatureError` for names that do not fit."""
    if isinstance(data, Mapping):
        if sorted(data) != sorted(names):
            raise SignatureError(f"shard {number} has {', '.join(map(str, data))}, and the log-likelihood takes "
                                 f"{', '.join(names)} after its first argument")
        data = tuple(data[name] for name in names)
    found = _arguments(data)
    _require_numbers(found, number)
    return found


def _arguments(data: Any) -> tuple[Any, ...]:
    if isinstance(data, Mapping):
        return tuple(data.values())
    return tuple(data) if isinstance(data, (tuple, list)) else (data,)


def _require_numbers(data: tuple[Any, ...], number: int) -> None:
    for place, x in enumerate(data):
        if not isinstance(x, (np.ndarray, np.generic, int, float)) or np.asarray(x).dtype.kind not in "biuf":
            what = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"
            raise ArgumentTypeError(f"shard {number} has {what} in place {place}; give arrays of numbers, or a "
                                    "function without arguments that loads them")


def signature(data: Data) -> tuple[Any, ...]:
    """What of a shard's data a tape depends on."""
    return tuple((x.shape, x.dtype.str) if isinstance(x, np.ndarray) else type(x).__name__ for x in data)


# --- data that are not finite ------------------------------------------------------------------------------------

def fault(data: Data, names: Sequence[str]) -> str | None:
    """Where data of a shard are NaN or infinite, in words; None if they are finite."""
    for place, x in enumerate(data):
        wrong = np.argwhere(~np.isfinite(np.atleast_1d(x)))
        if len(wrong):
            name = names[place] if place < len(names) else f"data {place}"
            row, *rest = wrong[0].tolist()
            found = np.atleast_1d(x)[tuple(wrong[0])]
            at = f" (column {', '.join(map(str, rest))})" if rest else ""
            return f"`{name}` is {found} in row {row}{at}"
    return None
