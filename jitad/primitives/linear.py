"""How rows are made that are linear in some of their inputs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.tape.types import Aval, Primitive

Cotangents = Sequence["Value | None"]


@lru_cache(maxsize=4096)
def made(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Aval:
    """The type of what NumPy computes."""
    return Aval(shape, dtype)


def linear(name: str, evaluate: Callable[..., Any], infer: Callable[..., Aval], vjp: Callable[..., Cotangents], *,
           slots: Sequence[int] = (0,), **traits: Any) -> Primitive:
    """A row that is linear in each input of `slots` (all zero gives zero): the jvp replaces
    one input by its tangent at a time; a rule `jvp` among the traits may do
    better."""
    def jvp(tangents: Cotangents, y: Value, *inputs: Value, **params: Any) -> Value | None:
        total = None
        for slot in slots:
            if tangents[slot] is not None:
                term = prim(*(tangents[slot] if i == slot else x for i, x in enumerate(inputs)), **params)
                total = term if total is None else total + term
        return total

    prim = Primitive(name, evaluate, infer, vjp=vjp, **{"jvp": jvp, **traits})
    return prim
