"""The builtins by which code asks what it holds: for recorded code they answer as NumPy would.

The text of a value is its number's: code may do with it what it likes, so the tape depends on that number. What is only
printed is printed while the function is recorded, and the tape does not depend on it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.errors import ConcretizationError
from jitad.primitives.core import select
from jitad.tape.types import TABLE
from jitad.trace.scipy_rules.stats.distributions import Distribution, Frozen
from jitad.trace.values.pairs import Complex
from jitad.trace.values.tracer import Tracer
from jitad.trace.where import user_line

STAND_INS = (Distribution, Frozen)
TRACED = (Tracer, Complex)

__all__ = ["VIEWS", "stood_for", "text_of"]


def stood_for(x: Tracer) -> type:
    """The class of the array or number that a traced value stands for."""
    if x.ndim or x.boxed:
        return np.ndarray
    return {"f": float, "i": int, "b": bool, "c": complex}.get(x.dtype.kind, np.ndarray) if x.weak else x.dtype.type


def view_isinstance(instance: Any, classes: Any, /) -> bool:
    """``isinstance`` in recorded code."""
    if classes is view_type:
        classes = type
    elif type(classes) is tuple:
        classes = tuple(type if c is view_type else c for c in classes)
    if instance is view_type:
        instance = type
    return issubclass(stood_for(instance), classes) if type(instance) in TRACED else isinstance(instance, classes)


def view_type(*args: Any, **kwargs: Any) -> Any:
    """``type`` in recorded code."""
    if len(args) == 1 and type(args[0]) in TRACED:
        return stood_for(args[0])
    if len(args) == 1 and type(args[0]) in STAND_INS:
        return args[0].__class__
    return type(*args, **kwargs)


def as_seen(x: Tracer) -> Any:
    """The array or number that a traced value is in this recording."""
    value = np.array(x.recorder.concrete(x.number))
    if x.ndim or x.boxed:
        return value
    return value.item() if x.weak else value[()]


def text_of(x: Tracer, write: Callable[[Any], str]) -> str:
    """What `write` makes of the array or number; the tape is right for this one only."""
    text = write(as_seen(x))
    found = x.recorder.concrete(x.number)
    with x.recorder.plain():
        value = x.recorder.value(x.number)
        same = TABLE["eq"](value, found)
        if x.dtype.kind == "f":
            same = select(np.isnan(found), TABLE["ne"](value, value), TABLE["logical_and"](same, TABLE["eq"](
                TABLE["copysign"](1.0, value), np.copysign(1.0, found))))
        same = TABLE["reduce_all"](same, axes=tuple(range(x.ndim)))
    x.recorder.guard(same, True, user_line(2))
    return text


def view_print(*args: Any, **kwargs: Any) -> None:
    """``print`` in recorded code."""
    print(*[_printed(a) if type(a) is Tracer else a for a in args], **kwargs)


def _printed(x: Tracer) -> Any:
    try:
        return as_seen(x)
    except ConcretizationError:                          # in the body of a loop there is no number
        return repr(x)


VIEWS = {"isinstance": view_isinstance, "type": view_type, "print": view_print}
