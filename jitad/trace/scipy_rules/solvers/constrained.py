"""Minima under constraints: `minimize(constraints=)`, `LinearConstraint`, `NonlinearConstraint`, `Bounds`.

Every constraint is a vector c(x) within [low, high]; where both are the same it is an equation. The minimum is found by
the method of multipliers (Rockafellar, The multiplier method of Hestenes and Powell applied to convex programming, J.
Optim. Theory Appl. 12, 1973): minima of

    f(x) + sum(w (t - clip(t, low, high))**2) / 2,     t = c(x) + m / w

by Newton's damped steps (`descent`), after each of which the multipliers m become ``w (t - clip(t, low, high))``; the
weights w grow while that does not help. At the end the solution satisfies, with the constraints that have a multiplier,

    gradient of f(x) + m . c(x) = 0,     c(x) = low or high,     m = 0 of the others

and the derivative is that of x in these equations, by the implicit function theorem, as long as the same constraints
are active (Fiacco, Introduction to Sensitivity and Stability Analysis in Nonlinear Programming, 1983, theorem 3.2.2).
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused, stopped
from jitad.trace.scipy_rules.classes import StandIn, lifted, require, stands_for, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, implicit, repeat
from jitad.trace.scipy_rules.solvers.descent import Box, Descent, settled
from jitad.trace.scipy_rules.solvers.stiff import Equations

__all__ = ["Constrained", "constraints_of"]

ROUNDS = 40               # of new multipliers, at most
NEAR, ENOUGH = 1e-11, 1e-7           # how nearly constraints are met: where rounds end, and what counts as found
SAME = 1e-13              # the share of equations that say the same twice, which lets them be solved all the same


class _Limited(StandIn):
    """`Bounds` and constraints with ends that are traced."""

    __slots__ = ("A", "fun", "lb", "ub")

    def __init__(self, kind: type, lb: Any, ub: Any, A: Any = None, fun: Any = None) -> None:
        super().__init__(kind)
        self.lb, self.ub, self.A, self.fun = lb, ub, A, fun

    @property
    def jitad_holds(self) -> tuple[Any, ...]:
        return self.lb, self.ub, self.A


@stands_for("scipy.optimize.Bounds", _Limited, "lb ub", stays=True)
def _bounds(lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> _Limited:
    from scipy.optimize import Bounds

    low, high = floats(lb), floats(ub)
    shape = np.broadcast_shapes(low.shape, high.shape)
    return _Limited(Bounds, np.broadcast_to(low, shape), np.broadcast_to(high, shape))


@stands_for("scipy.optimize.LinearConstraint", _Limited, "lb ub A", stays=True)
def _linear(A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> _Limited:
    from scipy.optimize import LinearConstraint

    return _Limited(LinearConstraint, lb, ub, A)


@stands_for("scipy.optimize.NonlinearConstraint", lambda kind, lb, ub, fun: _Limited(kind, lb, ub, None, fun),
            "lb ub fun", stays=True)
def _nonlinear(fun: Any, lb: Any, ub: Any, jac: Any = "2-point", hess: Any = None, keep_feasible: Any = False,
               finite_diff_rel_step: Any = None, finite_diff_jac_sparsity: Any = None) -> _Limited:
    from scipy.optimize import NonlinearConstraint

    return _Limited(NonlinearConstraint, lb, ub, None, fun)


class _Vector(SolverCallback):
    def _value(self, result: Any) -> Any:
        return super()._value(result).reshape(-1)


@dataclass(frozen=True)
class _Constraint:
    """One constraint: a function of the variables, and its ends."""

    function: Callable[[Any], Any]
    low: Any
    high: Any


def constraints_of(given: Any, name: str) -> list[_Constraint]:
    """SciPy's constraints: dicts, `LinearConstraint`, `NonlinearConstraint`, or a sequence of them."""
    if isinstance(given, dict) or hasattr(given, "lb"):
        given = [given]
    return [_of_dict(one, i, name) if isinstance(one, dict) else _of_object(one, name) for i, one in enumerate(given)]


def _of_dict(one: dict[str, Any], i: int, name: str) -> _Constraint:
    if "type" not in one:
        raise KeyError(f"Constraint {i} has no type defined.")
    kind = str(one["type"]).lower()
    if "fun" not in one:
        raise ValueError(f"Constraint {i} has no function defined.")
    if kind not in ("eq", "ineq"):
        raise ValueError(f"Unknown constraint type '{one['type']}'.")
    return _Constraint(_Vector(one["fun"], one.get("args", ()), name), 0.0, 0.0 if kind == "eq" else np.inf)


def _of_object(one: Any, name: str) -> _Constraint:
    if not hasattr(one, "lb"):
        raise TypeError("Constraints (one of dict, LinearConstraint, NonlinearConstraint) are expected, not "
                        f"{type(one).__name__}.")
    if getattr(one, "fun", None) is not None:
        return _Constraint(_Vector(one.fun, (), name), one.lb, one.ub)
    if getattr(one, "A", None) is None:
        raise refused(this_recorder(), f"{name} with Bounds among constraints=", "give them as bounds=")
    matrix = floats(one.A.toarray() if hasattr(one.A, "toarray") else one.A)
    matrix = matrix.reshape(1, -1) if matrix.ndim == 1 else matrix
    return _Constraint(lambda x: matrix @ x, one.lb, one.ub)


class Constrained:
    """All constraints of a problem in one vector, within ends that do not depend on x."""

    def __init__(self, parts: list[_Constraint], start: Any, name: str) -> None:
        self.name, first = name, [p.function(start) for p in parts]
        self.vector = Equations(lambda x: np.concatenate([p.function(x) for p in parts]), name)
        self.low, self.high = (np.concatenate([np.broadcast_to(floats(end), value.shape) for end, value in zip(
            ends, first, strict=True)]) for ends in ([p.low for p in parts], [p.high for p in parts]))
        crossed: Any = self.low > self.high
        require(~crossed, ValueError("A lower end of a constraint is above its upper end."))
        self.same = settled(self.low == self.high)

    def inside(self, t: Any) -> Any:
        return np.minimum(np.maximum(t, self.low), self.high)

    def solved(self, function: SolverCallback, start: Any, box: Box | None, most: int) -> tuple[Any, Any]:
        """Where the function is least, with its derivatives, and whether that was found."""
        x, multipliers, found = self._multiplied(function, start, box, most)
        return self._solution(function, x, multipliers, box, found), found

    def _weights(self, function: SolverCallback, x: Any) -> tuple[Any, Any]:
        """By which each constraint counts as a length in x, and the first weight: ten times the bend of the function,
        or what takes its slope back within the length of x."""
        gradient = Equations(function.jacobian, self.name)
        slopes, bend = self.vector.jacobian(x), gradient.jacobian(x)
        square = np.sum(slopes * slopes, axis=1)
        size = np.max(np.abs(bend)) + np.max(np.abs(gradient(x))) / (1.0 + np.max(np.abs(x)))
        return 1.0 / np.where(square > 1e-8, square, 1.0), 10.0 * np.where((size > 0) & np.isfinite(size), size, 1.0)

    def _multiplied(self, function: SolverCallback, start: Any, box: Box | None, most: int) -> tuple[Any, Any, Any]:
        """Where the function is least, the multipliers, and whether that was found."""
        start = start if box is None else box.inside(start)
        scale, first = self._weights(function, start)

        def step(n: Any, x: Any, m: Any, weight: Any, error: Any) -> tuple[Any, list[Any]]:
            w = weight * scale
            beyond = lambda t: t - self.inside(t)
            charged = Equations(lambda y: function(y) + 0.5 * np.sum(
                w * beyond(self.vector(y) + m / w) ** 2), self.name)
            slope = Equations(charged.jacobian, self.name)
            new, found = Descent(charged, slope, slope.jacobian, box)(x, 1e-10, most)
            c = self.vector(new)
            t = c + m / w
            left = np.max(np.abs(c - self.inside(t)) * np.sqrt(scale))
            good = found & np.isfinite(left)
            ends = good & (left <= NEAR * (1.0 + np.max(np.abs(new))))
            weight = np.where(good & (left <= 0.1 * error), weight, 10.0 * weight)
            return ~ends & (n + 1 < ROUNDS), [n + 1, np.where(good, new, x), np.where(good, w * beyond(t), m), weight,
                                              np.where(good, left, error)]

        none = self.vector(start) * 0.0
        state = [lifted(0), start, np.where(np.isnan(none), 0.0, none), first, floats(np.inf)]
        _, x, m, _, error = repeat(floats(0.0) == 0.0, state, step)
        return x, m, settled(error <= ENOUGH * (1.0 + np.max(np.abs(x))))

    def _solution(self, function: SolverCallback, x: Any, multipliers: Any, box: Box | None, found: Any) -> Any:
        n, name = x.shape[0], self.name
        x, m = stopped(x), stopped(multipliers)
        above, active = settled(m > 0), self.same | settled(m != 0)
        end = np.where(above, np.where(np.isfinite(self.high), self.high, 0.0),
                       np.where(np.isfinite(self.low), self.low, 0.0))

        def pull(y: Any, weights: Any) -> Any:
            return Equations(lambda v: function(v) + np.sum(weights * self.vector(v)), name).jacobian(y)
        held = None if box is None else settled(box.held(x, pull(x, m)))
        bound = None if box is None else box.end(x)
        size = stopped(np.sum(self.vector.jacobian(x) ** 2, axis=1)) * SAME

        def equations(z: Any) -> Any:
            y, weights = z[:n], z[n:]
            slope, c = pull(y, weights), self.vector(y)
            slope = slope if held is None else np.where(held, y - bound, slope)
            rest = np.where(active, c - end - size * (weights - m), weights)
            return np.concatenate([slope, rest]) * np.where(found, 1.0, np.nan)
        return implicit(Equations(equations, name), np.concatenate([x, m]), 0)[:n]
