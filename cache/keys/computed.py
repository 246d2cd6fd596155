"""What a library computes from captured data, as one step of a path: a call whose arguments are templates.

A template is a hashable copy of an argument that tells types apart (`1`, `True` and `1.0` are three), in which another
captured object stands as the path to it. `fill` makes the argument again, `template` takes one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Call", "fill", "show_call", "template", "written"]

LARGEST = 1000  # elements of an array that was made in the function, and is an argument


class Call(NamedTuple):
    """``function(*args, **kwargs)`` of templates; without a function, what the path leads to is called."""

    function: Any
    args: Hashable
    kwargs: Hashable


def template(value: Any, found: Callable[[Any], Hashable]) -> Hashable:
    """The template of an argument. `found` gives the path to what is no plain value, and raises what it likes for the
    rest."""
    kind = type(value)
    if kind in (str, bytes, bool, int, type(None), type(...)):
        return (kind.__name__, value)
    if kind is float:
        return ("float", value.hex())
    if kind in (list, tuple):
        return (kind.__name__, tuple(template(item, found) for item in value))
    if kind is dict:
        return ("dict", tuple((template(k, found), template(v, found)) for k, v in value.items()))
    if kind is slice:
        return ("slice", tuple(template(part, found) for part in (value.start, value.stop, value.step)))
    plain = kind is np.ndarray or isinstance(value, np.generic)          # a masked array is more than its elements
    if plain and value.dtype.kind in "biufSUMm" and value.size <= LARGEST:
        return ("array", np.asarray(value).dtype.str, np.shape(value), value.tobytes(), kind is np.ndarray)
    if isinstance(value, np.dtype):
        return ("object", value)
    if isinstance(value, type) and value.__module__ in ("builtins", "numpy"):
        return ("object", value)
    return ("at", found(value))


def fill(form: Any, look: Callable[[Any], Any]) -> Any:
    """The argument of a template; `look` gives what is at a path."""
    kind, content, *rest = form
    if kind == "at":
        return look(content)
    if kind in ("list", "tuple"):
        items = [fill(item, look) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {fill(k, look): fill(v, look) for k, v in content}
    if kind == "slice":
        return slice(*(fill(part, look) for part in content))
    if kind == "array":
        shape, data, whole = rest
        array = np.frombuffer(data, np.dtype(content)).reshape(shape)
        return array if whole else array[()]
    return float.fromhex(content) if kind == "float" else content


def written(form: Any, read: Callable[[Any], str], bind: Callable[[object], str]) -> str:
    """The argument of a template as an expression; `read` gives the variable of a path, `bind` that of an object."""
    kind, content, *_ = form
    if kind == "at":
        return read(content)
    if not _has_path(form):
        return bind(fill(form, read))
    if kind == "dict":
        return "{" + ", ".join(f"{written(k, read, bind)}: {written(v, read, bind)}" for k, v in content) + "}"
    items = ", ".join(written(item, read, bind) for item in content)
    if kind == "slice":
        return f"{bind(slice)}({items})"
    return f"[{items}]" if kind == "list" else f"({items},)"


def _has_path(form: Any) -> bool:
    if form[0] == "dict":
        return any(_has_path(part) for pair in form[1] for part in pair)
    return form[0] == "at" or (form[0] in ("list", "tuple", "slice") and any(map(_has_path, form[1])))


def show_call(start: str, call: Call) -> str:
    """The call as one would write it; `start` is what the path leads to."""
    function, args, kwargs = call
    name = start if function is None else getattr(function, "__name__", "function")
    given = [*map(_shown, args[1]), *(f"{key[1]}={_shown(value)}" for key, value in kwargs[1])]  # type: ignore[index]
    return f"{name}({', '.join(given)})"


def _shown(form: Any) -> str:
    if form[0] == "at":
        return str(form[1].expression())
    if form[0] in ("list", "tuple") and _has_path(form):
        return f"[{', '.join(map(_shown, form[1]))}]"
    return "..." if _has_path(form) or form[0] == "array" else repr(fill(form, str))
