"""The routines of `jitad.compile.routines.order` as plain Python on flat arrays: the same arguments, result first."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.compile.loops import STATUS_OK
from jitad.compile.reference.table import registered


@registered
def argsort(out: Any, x: Any, lines: int, n: int) -> int:
    """The places of the elements of each line in ascending order, NaN last."""
    out.reshape(lines, n)[:] = np.argsort(x.reshape(lines, n), axis=-1, kind="stable")
    return STATUS_OK


@registered
def select_places(out: Any, x: Any, ranks: Any, lines: int, n: int, count: int, stride: int) -> int:
    """The places of the elements of these ranks, in each line."""
    order = np.argsort(x.reshape(lines, n), axis=-1, kind="stable")
    wanted = np.broadcast_to(ranks.reshape(lines if stride else 1, count), (lines, count))
    out.reshape(lines, count)[:] = np.take_along_axis(order, np.clip(wanted, 0, max(n - 1, 0)), -1) if n else 0
    return STATUS_OK


@registered
def positions(out: Any, mask: Any, n: int, count: int) -> int:
    """The places of the first `count` true elements, then zeros."""
    found = np.flatnonzero(mask)[:count]
    out[:len(found)], out[len(found):] = found, 0
    return STATUS_OK
