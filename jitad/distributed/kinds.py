"""What is asked of a log-likelihood in shards, as functions of parameters and data; and what one shard answers."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.batch import batch
from jitad.api.derivatives import hessian, hvp
from jitad.api.transforms import value_and_grad
from jitad.distributed.shards import Data, Leaves, fault
from jitad.errors import NonFiniteError
from jitad.trace.pytree import leaves_of

Function = Callable[..., Any]
SILENT: Any = {"on_mismatch": "silent"}

# By name: a function of ``function`` and the number of data, which takes (theta, *data), and a vector at the end if
# there is one.
KINDS: dict[str, Callable[[Function, int], Any]] = {
    "value_and_grad": lambda function, count: value_and_grad(function, **SILENT),
    "hvp": lambda function, count: hvp(function, **SILENT),
    "hessian": lambda function, count: hessian(function, **SILENT),
    "batch": lambda function, count: batch(value_and_grad(function, **SILENT), in_axes=(0, *[None] * count), **SILENT),
}


def plain(function: Function) -> Function:
    """The function itself of one that is decorated for its value or gradient."""
    match getattr(function, "__jitad_transform__", None):
        case ("value" | "grad" | "value_and_grad", _, _, "()"):
            return function.__wrapped__                      # type: ignore[attr-defined, no-any-return]
    return function


def names_of(function: Function) -> list[str]:
    """The names of what a function takes after its first argument."""
    return list(inspect.signature(function).parameters)[1:]


def answer(compiled: Function, inputs: tuple[np.ndarray, ...], data: Data, number: int,
           names: Sequence[str]) -> Leaves:
    """What one shard gives. What is raised bears the number of the shard; NaN is an error where data are not finite."""
    try:
        found = tuple(np.asarray(x) for x in leaves_of(compiled(inputs[0], *data, *inputs[1:]))[0])
    except Exception as error:
        error.add_note(f"in shard {number}")
        raise
    if any(np.isnan(x).any() for x in found) and all(np.isfinite(x).all() for x in inputs):
        wrong = fault(data, names)
        if wrong is not None:
            raise NonFiniteError(f"shard {number} gives NaN, where {wrong}; leave such rows out, or let the "
                                 "log-likelihood pass over them")
    return found
