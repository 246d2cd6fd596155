"""What is recorded of a posterior: the free vector taken apart, each block through its constraint, and the user's
function of the values.

All of it is plain Python over tuples, so that a kernel has nothing of it left but the arithmetic.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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


def values_alone(blocks: tuple[ParameterBlock, ...]) -> Callable[..., Any]:
    """The values at the free vector."""
    return lambda u: constrained(blocks, u)[0]


def free_of(blocks: tuple[ParameterBlock, ...]) -> Callable[..., Any]:
    """The free vector of the values, which are given as one vector, each value in C order."""
    def free(flat: Any) -> Any:
        values: dict[str, Any] = {}
        found: list[Any] = []
        at = 0
        for name, constraint, _, _ in blocks:
            size = math.prod(constraint.shape)
            values[name] = np.reshape(flat[at:at + size], constraint.shape)
            found.append(constraint.inverse(values[name], values))
            at += size
        return np.concatenate(found)
    return free


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


class Stretch(NamedTuple):
    """A parameter, whether it is integrated over, and where its free numbers lie among those of its kind."""

    name: str
    constraint: Constraint
    random: bool
    begin: int
    end: int


def split_values(parts: tuple[Stretch, ...], theta: Any, b: Any, jacobian: bool) -> tuple[dict[str, Any], Any]:
    """The values by name, and the log-Jacobian of the random ones; with `jacobian`, of all."""
    values: dict[str, Any] = {}
    total: Any = 0.0
    for name, constraint, random, begin, end in parts:
        free = b[begin:end] if random else theta[begin:end]
        values[name], log_jacobian = constraint.forward(free, values)
        if random or jacobian:
            total = total + log_jacobian
    return values, total


def loss_of(call: Call, parts: tuple[Stretch, ...], jacobian: bool) -> Callable[..., Any]:
    """Minus the log density, of the fixed and the random free numbers."""
    def loss(theta: Any, b: Any, *data: Any) -> Any:
        values, log_jacobian = split_values(parts, theta, b, jacobian)
        return -(call(values, data) + log_jacobian)
    return loss


def weighted(product: Callable[..., Any]) -> Callable[..., Any]:
    """``w @ H s`` for the Hessian H of the random numbers: `product` is its product with a vector."""
    def curvature(theta: Any, b: Any, s: Any, w: Any, *data: Any) -> Any:
        return w @ product(theta, b, *data, s)
    return curvature


def moved(loss: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    """The loss less ``x @ slope``: with the fixed numbers the mode moves, and with it the determinant."""
    def value(theta: Any, b: Any, x: Any, *data: Any) -> Any:
        return loss(theta, b, *data) - x @ slope(theta, b, *data)
    return value


def along(slope: Callable[..., Any], jvp: Callable[..., Any]) -> Callable[..., Any]:
    """How the slope in the random numbers changes along a direction of the fixed ones."""
    def change(theta: Any, b: Any, direction: Any, *data: Any) -> Any:
        return jvp(lambda t: slope(t, b, *data), (theta,), (direction,))[1]
    return change


def chosen_values(parts: tuple[Stretch, ...], random: bool) -> Callable[..., Any]:
    """The values of the random parameters, or those of the others."""
    names = tuple(part.name for part in parts if part.random is random)

    def chosen(theta: Any, b: Any) -> dict[str, Any]:
        values = split_values(parts, theta, b, False)[0]
        return {name: values[name] for name in names}
    return chosen


def reported(parts: tuple[Stretch, ...], call: Call) -> Callable[..., Any]:
    """What a further function gives of all values."""
    def report(theta: Any, b: Any, *data: Any) -> Any:
        return call(split_values(parts, theta, b, False)[0], data)
    return report


def stacked_values(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """What a function gives of the vector, a dict of arrays, as one vector of floats in the order of these names."""
    def stacked(u: Any, *data: Any) -> Any:
        found = function(u, *data)
        return np.concatenate([1.0 * np.reshape(found[name], -1) for name in names])
    return stacked


def without_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the vector alone that is given the data as well."""
    return lambda u, *data: function(u)


def flat_group(function: Callable[..., Any], groups: tuple[str, ...]) -> Callable[..., Any]:
    """What `values_of` gives of these groups, as far as they are there, as one vector of floats."""
    def flat(u: Any, *data: Any) -> Any:
        found = function(u, *data)
        return np.concatenate([1.0 * np.reshape(x, -1) for group in groups if group in found
                               for x in found[group].values()])
    return flat


def flat_values_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a function gives of the free numbers, a dict of arrays, as one vector."""
    def flat(*args: Any) -> Any:
        return np.concatenate([np.reshape(value, -1) for value in function(*args).values()])
    return flat
