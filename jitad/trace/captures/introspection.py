"""The builtins by which code asks what it holds: for recorded code they answer as NumPy would.

What is only printed is printed while the function is recorded, and the tape does not depend on it.
"""
from __future__ import annotations

from typing import Any

from jitad.errors import ConcretizationError
from jitad.trace.scipy_rules.stats.distributions import Distribution, Frozen
from jitad.trace.values.pairs import Complex
from jitad.trace.values.seen import as_seen, stood_for
from jitad.trace.values.tracer import Tracer

STAND_INS = (Distribution, Frozen)
TRACED = (Tracer, Complex)

__all__ = ["VIEWS"]


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


def view_print(*args: Any, **kwargs: Any) -> None:
    """``print`` in recorded code."""
    print(*[_printed(a) if type(a) is Tracer else a for a in args], **kwargs)


def _printed(x: Tracer) -> Any:
    try:
        return as_seen(x)
    except ConcretizationError:                          # in the body of a loop there is no number
        return repr(x)


VIEWS = {"isinstance": view_isinstance, "type": view_type, "print": view_print}
