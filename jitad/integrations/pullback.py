"""The cotangents of a function as a plain function: what bridges differentiate, record and batch again."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.api.vjp_jvp import vjp


def pullback(function: Callable[..., Any], count: int, places: tuple[int, ...]) -> Callable[..., Any]:
    """Of `count` cotangents and the arguments of `function`: the cotangents of the arguments at `places`."""
    def pull(*values: Any) -> Any:
        cotangents, args = values[:count], values[count:]
        found = vjp(function, *args, argnums=places)[1](cotangents[0] if count == 1 else cotangents)
        return found[0] if len(places) == 1 else found
    return pull
