"""`numpy.vectorize` with a signature, ``(n),(n)->()``: the function runs on the parts of its arguments, one after the
other, and what it gives is put together."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.trace.dispatch import as_value, builder_in

__all__ = ["over_parts"]

_GROUP = re.compile(r"\(([^()]*)\)")


def _groups(text: str) -> list[tuple[str, ...]]:
    return [tuple(filter(None, (name.strip() for name in group.split(",")))) for group in _GROUP.findall(text)]


def over_parts(function: Callable[..., Any], signature: str, args: Sequence[Any]) -> tuple[list[Any], bool]:
    """The results of `function` for all parts, and whether they are several; raises NumPy's ValueError for dimensions
    that do not fit the signature."""
    inputs, outputs = (_groups(side) for side in signature.split("->"))
    if len(inputs) != len(args):
        raise TypeError(f"wrong number of positional arguments: expected {len(inputs)}, got {len(args)}")
    builder = builder_in(args)
    arrays = [as_value(builder, x) for x in args]
    sizes: dict[str, int] = {}
    for x, names in zip(arrays, inputs, strict=True):
        _measure(sizes, x.shape, names)
    outer = [x.shape[:x.ndim - len(names)] for x, names in zip(arrays, inputs, strict=True)]
    shape = np.broadcast_shapes(*outer)
    wide = [np.broadcast_to(x, shape + x.shape[len(o):]) for x, o in zip(arrays, outer, strict=True)]
    found: list[list[Any]] = [[] for _ in outputs]
    for index in np.ndindex(*shape):
        result = function(*(x[index] for x in wide))
        parts = (result,) if len(outputs) == 1 else result
        if len(parts) != len(outputs):
            raise ValueError(f"wrong number of outputs from pyfunc: expected {len(outputs)}, got {len(parts)}")
        for place, part, names in zip(found, parts, outputs, strict=True):
            place.append(as_value(builder, part))
            _measure(sizes, place[-1].shape, names)
    if not found[0]:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    made = [np.reshape(np.stack(place), shape + place[0].shape) for place in found]
    return made, len(outputs) > 1


def _measure(sizes: dict[str, int], shape: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Note the sizes of an array's own dimensions, which have names."""
    if len(shape) < len(names):
        raise ValueError(f"{len(shape)}-dimensional argument does not have enough dimensions for all core dimensions "
                         f"{names}")
    for name, size in zip(names, shape[len(shape) - len(names):], strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]}")
