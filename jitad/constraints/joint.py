"""What is recorded of a posterior: the free vector taken apart, each block through its constraint, and the user's
function of the values.

All of it is plain Python over tuples, so that a kernel has nothing of it left but the arithmetic.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitad.constraints.base import Constraint

Call = Callable[[dict[str, Any], tuple[Any, ...]], Any]       # (values by name, data) -> what the user's function gives


class ParameterBlock(NamedTuple):
    """A parameter, and where its free numbers lie in the vector."""

    name: str
    constraint: Constraint
    begin: int
    end: int


def constrained(blocks: tuple[ParameterBlock, ...], u: Any) -> tuple[dict[str, Any], Any]:
    """The values by name, and the log-Jacobian of all of them."""
    values: dict[str, Any] = {}
    total: Any = 0.0
    for name, constraint, begin, end in blocks:
        values[name], log_jacobian = constraint.forward(u[begin:end], values)
        total = total + log_jacobian
    return values, total


def density_of(call: Call, blocks: tuple[ParameterBlock, ...]) -> Callable[..., Any]:
    """The log density of the free vector, with the log-Jacobian."""
    def logp(u: Any, *data: Any) -> Any:
        values, log_jacobian = constrained(blocks, u)
        return call(values, data) + log_jacobian
    return logp


def likelihood_of(call: Call, blocks: tuple[ParameterBlock, ...]) -> Callable[..., Any]:
    """The log density of the values, at the free vector: without the log-Jacobian."""
    def logp(u: Any, *data: Any) -> Any:
        return call(constrained(blocks, u)[0], data)
    return logp


def values_of(blocks: tuple[ParameterBlock, ...], further: dict[str, Call]) -> Callable[..., Any]:
    """The values at the free vector, and what further functions give of them."""
    def values(u: Any, *data: Any) -> Any:
        found = constrained(blocks, u)[0]
        return {"posterior": found, **{name: call(found, data) for name, call in further.items()}}
    return values


def by_mapping(function: Callable[..., Any], names: tuple[str, ...] | None) -> Call:
    """``function(values, *data)``; data with names by their names."""
    if names is None:
        return lambda values, data: function(values, *data)
    return lambda values, data: function(values, **dict(zip(names, data, strict=True)))


def by_container(function: Callable[..., Any], names: tuple[str, ...] | None, make: Callable[..., Any]) -> Call:
    """``function(make(**values), *data)``, for a dataclass or a named tuple."""
    if names is None:
        return lambda values, data: function(make(**values), *data)
    return lambda values, data: function(make(**values), **dict(zip(names, data, strict=True)))


def by_keywords(function: Callable[..., Any], names: tuple[str, ...]) -> Call:
    """``function(**values, **data)``."""
    return lambda values, data: function(**values, **dict(zip(names, data, strict=True)))


def by_vector(function: Callable[..., Any], name: str) -> Call:
    """``function(vector, *data)`` of the one parameter."""
    return lambda values, data: function(values[name], *data)
