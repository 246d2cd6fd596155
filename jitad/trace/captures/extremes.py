"""One of several numbers where loops branch: ``min``, ``max``, what a branch assigns. It is chosen, without a branch.

Each comparison of ``min`` would be a branch of its own, and a step that takes the least of three numbers would go four
ways.
"""
from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any

import numpy as np

from jitad.trace.captures.notes import Notes
from jitad.trace.values.tracer import Tracer

__all__ = ["are_alike", "extremes", "one_of"]

MOST = 64                 # numbers of which one is chosen


def extremes(captures: Notes) -> dict[Any, Callable[..., Any]]:
    """What recorded code sees in place of ``min`` and ``max``."""
    return {builtins.min: _choosing(captures, builtins.min, operator.lt),
            builtins.max: _choosing(captures, builtins.max, operator.gt)}


def _choosing(captures: Notes, original: Callable[..., Any], better: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def choose(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            args = tuple(args[0]) if len(args) == 1 else args        # an iterator is gone through once
            if len(args) <= MOST and any(type(x) is Tracer for x in args) and captures.recorder.marks.may_choose(
                    args) and are_alike(captures.recorder, args):
                return reduce(lambda found, x: one_of(better(x, found), x, found), args)
            return original(args)
        return original(*args, **kwargs)
    return choose


def one_of(flag: Any, x: Any, found: Any) -> Any:
    """The first where the flag holds, else the second."""
    chosen = np.where(flag, x, found)
    chosen.weak, chosen.boxed = _is_weak(x) and _is_weak(found), getattr(x, "boxed", False)
    return chosen


def _is_weak(x: Any) -> bool:
    return x.weak if isinstance(x, Tracer) else type(x) in (int, float)


def are_alike(recorder: Any, things: Sequence[Any]) -> bool:
    """Whether these are floats of one precision, or integers beside them, of which none is asked for its class."""
    boxed = {x.boxed for x in things if type(x) is Tracer}
    return len(boxed) < 2 and any(type(x) is not int for x in things) and all(
        type(x) in (int, float, np.float64) or (type(x) is Tracer and x.ndim == 0 and x.dtype == np.float64)
        for x in things) and not recorder.marks.asks_kinds() and not any(
        recorder.nodes[n].aval.dtype == np.float32 for n in recorder.inputs)
