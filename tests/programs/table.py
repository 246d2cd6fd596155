"""The table of what people write: each row a piece of plain NumPy code, run recorded and by NumPy itself.

A row is its spelling, the arguments, and what is expected: what the same code gives when NumPy runs it, with central
differences for the derivative, or the words that the message of its refusal must hold. Rows are recorded and
interpreted, without compiling; some of each file go through the kernel too.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad import jit, value_and_grad
from jitad.call.build.specialize import build
from jitad.trace.pytree import leaves_of

X3 = np.array([0.5, -1.0, 2.0])
P3 = np.array([0.7, 1.3, 2.1])


@dataclass(frozen=True)
class Row:
    """`says` are the words of a refusal; `wide` is how far the derivative may be from the differences."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    says: tuple[str, ...] = ()
    raises: Any = None
    smooth: bool = True
    wide: float = 1e-5


class Table:
    """Rows in the making: a call enters one, `of` decorates a function that is one."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def __call__(self, name: str, function: Callable[..., Any], *args: Any, **more: Any) -> None:
        self.rows.append(Row(name, function, args or (X3,), **more))

    def of(self, *args: Any, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self(function.__name__.replace("_", " "), function, *args, **more)
            return function
        return enter

    def refused(self, name: str, function: Callable[..., Any], *args: Any, raises: Any = None, says: Any = ()) -> None:
        self.rows.append(Row(name, function, args or (X3,), says, raises))


def interpreted(transformed: Any, args: tuple[Any, ...]) -> Any:
    """What a call gives, recorded and run by the interpreter: nothing is compiled."""
    arguments = transformed._arguments(args, {})
    target = transformed.subject.target
    made = build(target, transformed.subject.request, arguments)
    captured = made.captured(target)
    assert captured is not None, "what was captured has changed at once"
    return made.interpret([*arguments.inputs, *captured])


def same(found: Any, expected: Any) -> None:
    """Values, dtypes and structure are NumPy's."""
    ours, tree = leaves_of(found)
    theirs, plain_tree = leaves_of(expected)
    assert len(ours) == len(theirs) and str(tree) == str(plain_tree), (found, expected)
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b), (a, b)
        kind = np.result_type(b)
        assert np.result_type(a) == kind or type(b) in (bool, int, float), (a, b)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def _total(result: Any, weights: Any) -> Any:
    """One number of all that came out."""
    total = 0.0
    for leaf, weight in zip(leaves_of(result)[0], weights, strict=True):
        if leaf is None:
            continue
        total = total + np.sum(np.real(leaf) * weight) + np.sum(np.imag(leaf) * weight[..., ::-1] if np.iscomplexobj(leaf) else 0.0)
    return total


def check_value(row: Row, run: Callable[..., Any] = interpreted) -> None:
    expected = row.function(*map(copied, row.args))
    same(run(jit(row.function), row.args), expected)


def check_derivative(row: Row, run: Callable[..., Any] = interpreted) -> None:
    """The gradient of a weighted sum of what comes out, along a random direction, is its difference quotient."""
    rng = np.random.default_rng(3)
    function = row.function
    leaves = leaves_of(function(*map(copied, row.args)))[0]
    weights = [rng.normal(size=np.shape(leaf)) for leaf in leaves if leaf is not None]

    def summed(*args: Any) -> Any:
        return total(function(*args), weights)

    total = _total
    x, *rest = row.args
    way = _direction(x, rng)
    value, gradient = run(value_and_grad(summed), row.args)
    h = 1e-6
    slope = (summed(_moved(x, way, h), *rest) - summed(_moved(x, way, -h), *rest)) / (2 * h)
    ours = sum(np.sum(g * w) for g, w in zip(leaves_of(gradient)[0], way, strict=True))
    np.testing.assert_allclose(value, summed(*map(copied, row.args)), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours, slope, rtol=row.wide, atol=row.wide)


def _direction(x: Any, rng: Any) -> list[Any]:
    return [rng.normal(size=np.shape(leaf)) for leaf in leaves_of(x)[0]]


def _moved(x: Any, way: list[Any], h: float) -> Any:
    from jitad.trace.pytree import unflatten

    leaves, tree = leaves_of(x)
    return unflatten(tree, [leaf + h * w for leaf, w in zip(leaves, way, strict=True)])


def copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x
