"""What a traced value is in this recording: its class, its owner, its number, its text.

The text of a value is its number's: code may do with it what it likes, so the tape depends on that number.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from jitad.errors import ConcretizationError
from jitad.primitives.core import cast, select
from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.dispatch import refused
from jitad.trace.where import user_line

Made = TypeVar("Made")


def stood_for(x: Any) -> type:
    """The class of the array or number that a traced value stands for."""
    if x.ndim or x.boxed:
        return np.ndarray
    return {"f": float, "i": int, "b": bool, "c": complex}.get(x.dtype.kind, np.ndarray) if x.weak else x.dtype.type


def owner_of(x: Any) -> str:
    """Whose array this is, if it is not the recorded function's own: an argument or a captured one."""
    if not x.node.prim.given:
        return ""
    if not x.node.is_input:
        return "an argument of a differentiated function"
    builder: Any = x.builder
    if x.number not in builder.inputs:
        return "a carry or an element of a loop"
    name = builder.names[builder.inputs.index(x.number)]
    captures = getattr(builder, "captures", None)
    captured = captures is not None and any(v.number == x.number for v in captures.inputs)
    return f"the captured array `{name}`" if captured else f"the argument `{name}`"


def as_seen(x: Any) -> Any:
    """The array or number that a traced value is in this recording."""
    value = np.array(x.recorder.concrete(x.number))
    if x.ndim or x.boxed:
        return value
    return value.item() if x.weak else value[()]


def text_of(x: Any, write: Callable[[Any], Made]) -> Made:
    """What `write` makes of the array or number, a text mostly; the tape is right for this one only."""
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


def printed(x: Any) -> Any:
    """What is written, if nothing can read it: the array or number in this recording, in tuples and dicts too."""
    if type(x) in (tuple, dict):
        items = [printed(item) for item in (x.values() if type(x) is dict else x)]
        return dict(zip(x, items, strict=True)) if type(x) is dict else tuple(items)
    if not isinstance(x, Value) or hasattr(type(x), "jitad_parts"):
        return x
    try:
        return as_seen(x)
    except ConcretizationError:                          # in the body of a loop there is no number
        return repr(x)


def absent(x: Any, name: str) -> Any:
    """An attribute that no rule gives: a method of a number, such as ``x.hex()``, reads it, as ``str(x)`` does; what an
    array has is refused, and what it has not is no attribute."""
    if name.startswith(("_", "jitad_")) or name in _SLOTS:
        raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}")
    home = stood_for(x)
    if not hasattr(home, name):
        raise AttributeError(f"{shown_class(home)!r} object has no attribute {name!r}")
    if home is np.ndarray:
        raise refused(x.builder, f"the array attribute .{name}", "use the array itself")
    if not callable(getattr(home, name)):
        return text_of(x, lambda number: getattr(number, name))
    return lambda *args, **kwargs: text_of(x, lambda number: getattr(number, name)(*args, **kwargs))


def shown_class(cls: type) -> str:
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


_SLOTS = frozenset("builder boxed fixed frozen number storage weak window re im".split())


# --- as Python's numbers -------------------------------------------------------------------------

def one_of(x: Any) -> Any:
    """The number of an array that has one element."""
    if x.size != 1:
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    return x.reshape(()) if x.ndim else x


def as_python(x: Any, kind: type | None = None) -> Any:
    """A traced number as Python's: of `kind`, or that of its dtype."""
    x = one_of(x)
    pair = hasattr(type(x), "jitad_parts")
    code = "f" if kind is float else "c" if kind is complex else x.dtype.kind
    if code == "c":
        z = x if pair else x.recorder.as_complex(x, np.complex128)
        return type(z)(_weak(z.re, np.float64), _weak(z.im, np.float64))
    if pair and x.weak:
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    if pair:
        raise refused(x.builder, "float() of a complex number", "take its .real or np.abs")
    dtype: Any = {"f": np.float64, "b": np.bool_}.get(code, np.int64)
    return _weak(x, dtype)


def _weak(x: Any, dtype: Any) -> Any:
    result: Any = x.builder.value(cast(x, dtype).number)
    result.weak, result.boxed = True, False
    return result


def listed(x: Any) -> Any:
    """``x.tolist()``: Python's numbers, in lists as deep as the array."""
    return [listed(row) for row in x] if x.ndim else as_python(x)
