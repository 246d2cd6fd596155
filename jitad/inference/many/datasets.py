"""Data sets for one posterior: checked, put in order, and those of the same shapes together."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import ArgumentTypeError, SignatureError
from jitad.inference.density import NO_DENSITY
from jitad.inference.given import Data

Posterior = Any              # that of `jitad.inference.model`
LONGER = 1.25                # times its own length to which a data set is padded at most
SAME = 1e-9                  # of the density, by which padding may change it
EQUAL = (bool, int, str, type(None))         # data that are no arrays, which all of a group must have the same


class DataSets(NamedTuple):
    """The data sets in order, each as `Posterior.with_data` takes it, and their labels."""

    labels: list[Any]
    values: list[tuple[Any, ...]]


def checked_sets(post: Posterior, given: Any) -> DataSets:
    """Raises `ArgumentTypeError`, or what `posterior` raises for such data, with the label of the data set."""
    if isinstance(given, (str, bytes, np.ndarray)) or not isinstance(given, (Mapping, Sequence)):
        raise ArgumentTypeError("datasets must be a list of data as `posterior` takes them, or a dict of them by "
                                f"label, not {type(given).__name__}")
    if not given:
        raise ArgumentTypeError("datasets is empty: there is nothing to fit")
    labels = list(given) if isinstance(given, Mapping) else list(range(len(given)))
    values = []
    for label in labels:
        try:
            values.append(_in_order(post, given[label]))
        except Exception as error:
            error.add_note(f"in data set {label!r}")
            raise
    return DataSets(labels, values)


def _in_order(post: Posterior, given: Any) -> tuple[Any, ...]:
    if isinstance(given, Mapping):
        changed = post.observed.changed((), given)
    else:
        changed = post.observed.changed(tuple(given) if isinstance(given, (tuple, list)) else (given,), {})
    return Data(changed).values


def places_of(post: Posterior, names: Sequence[str]) -> list[int]:
    """The places of arrays among the data. Raises `SignatureError` for an array that is there twice."""
    numbers = [id(x) for x in post.observed.values]
    found = [[place for place, number in enumerate(numbers) if number == id(post.data[name])] for name in names]
    if any(len(places) != 1 for places in found):
        raise SignatureError("one array is among the data twice, once under another name; give a copy")
    return [place for (place,) in found]


# --- the same shapes for many ------------------------------------------------------------------------------------

def padded(post: Posterior, sets: DataSets, pad: Mapping[str, Any]) -> DataSets:
    """Data sets of which the arrays that `pad` names have further rows of the value that it gives, so that few lengths
    are left. Raises `SignatureError` unless `pad` names arrays that are of one length in each data set, and unless the
    density of each data set is the same with such rows."""
    arrays = [name for name, x in post.data.items() if x.ndim]
    if not isinstance(pad, Mapping) or not pad or not set(pad) <= set(arrays):
        raise SignatureError(f"pad must be a dict with values for missing rows of some of {', '.join(arrays)}; not "
                             f"{pad!r}")
    fill = dict(zip(places_of(post, list(pad)), pad.values(), strict=True))
    lengths = []
    for label, data in zip(sets.labels, sets.values, strict=True):
        own = {np.shape(data[place])[:1] for place in fill}
        if len(own) != 1 or own == {()}:
            raise SignatureError(f"in data set {label!r}, the arrays that pad names have no common length")
        lengths.append(own.pop()[0])
    target: dict[int, int] = {}
    for length in sorted(set(lengths), reverse=True):
        longest = target[min(target)] if target else length
        target[length] = longest if longest <= LONGER * length else length
    values = [_with_rows(data, fill, target[length] - length)
              for data, length in zip(sets.values, lengths, strict=True)]
    for label, before, after in zip(sets.labels, sets.values, values, strict=True):
        _require_same_density(post, label, before, after)
    return DataSets(sets.labels, values)


def _with_rows(data: tuple[Any, ...], fill: Mapping[int, Any], rows: int) -> tuple[Any, ...]:
    return tuple(np.concatenate([x, np.full((rows, *x.shape[1:]), fill[place], x.dtype)]) if place in fill and rows
                 else x for place, x in enumerate(data))


def _require_same_density(post: Posterior, label: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    for u in (np.full(post.dim, 0.1), np.linspace(-0.7, 0.9, post.dim)):
        one, other = (_density(post, u, data) for data in (before, after))
        if np.isfinite(one) and not abs(one - other) <= SAME * (1 + abs(one)):
            raise SignatureError(f"padding changes the density of data set {label!r} from {one!r} to {other!r}: rows "
                                 "of what pad gives must add nothing, as those of weight 0 do")


def _density(post: Posterior, u: np.ndarray, data: tuple[Any, ...]) -> float:
    try:
        with np.errstate(all="ignore"):
            return float(post.likelihood(u, *data))
    except NO_DENSITY:
        return math.nan


def groups_of(values: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """The numbers of data sets that one kernel serves, a list for each; those that none serves are left out."""
    found: dict[Any, list[int]] = {}
    for number, data in enumerate(values):
        key = tuple(map(_kind, data))
        if None not in key:
            found.setdefault(key, []).append(number)
    return list(found.values())


def _kind(x: Any) -> Any:
    if type(x) is np.ndarray and x.dtype.kind in "biuf":
        return x.shape, x.dtype.str
    if type(x) is float:
        return float
    return (type(x), x) if type(x) in EQUAL else None


def axes_of(data: tuple[Any, ...]) -> tuple[int | None, ...]:
    """Which of them differ within a group, as `batch` is told."""
    return tuple(None if type(x) in EQUAL else 0 for x in data)


def stacked(sets: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The data of a group as `batch` takes them."""
    return [parts[0] if type(parts[0]) in EQUAL else np.stack(parts) for parts in zip(*sets, strict=True)]
