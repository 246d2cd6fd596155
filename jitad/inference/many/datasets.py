"""Data sets for one posterior: checked, put in order, and those of the same shapes together."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import ArgumentTypeError
from jitad.inference.given import Data

Posterior = Any              # that of `jitad.inference.model`
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
