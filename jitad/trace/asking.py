"""The builtins by which code asks what it holds: for recorded code they answer as NumPy would."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.distributions import Distribution, Frozen
from jitad.trace.tracer import Tracer

STAND_INS = (Distribution, Frozen)

__all__ = ["view_isinstance", "view_type"]


def stood_for(x: Tracer) -> type:
    """The class of the array or number that a traced value stands for."""
    if x.ndim or x.boxed:
        return np.ndarray
    return {"f": float, "i": int, "b": bool}.get(x.dtype.kind, np.ndarray) if x.weak else x.dtype.type


def view_isinstance(instance: Any, classes: Any, /) -> bool:
    """``isinstance`` in recorded code."""
    if classes is view_type:
        classes = type
    elif type(classes) is tuple:
        classes = tuple(type if c is view_type else c for c in classes)
    if instance is view_type:
        instance = type
    return issubclass(stood_for(instance), classes) if type(instance) is Tracer else isinstance(instance, classes)


def view_type(*args: Any, **kwargs: Any) -> Any:
    """``type`` in recorded code."""
    if len(args) == 1 and type(args[0]) is Tracer:
        return stood_for(args[0])
    if len(args) == 1 and type(args[0]) in STAND_INS:
        return args[0].__class__
    return type(*args, **kwargs)
