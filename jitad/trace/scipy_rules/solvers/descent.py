"""Minima of functions of several variables, within bounds: the steps that all of them share.

Newton's steps with the absolute values of the Hessian's eigenvalues and Nielsen's damping (Madsen, Nielsen and
Tingleff, Methods for non-linear least squares problems, 2nd ed., 2004, section 3.2), which go downhill wherever they
start. Within bounds a step is that of the variables which are not held at one, and is cut off there (Bertsekas,
Projected Newton methods for optimization problems with simple constraints, SIAM J. Control Optim. 20, 1982). Gradient
and Hessian are those of the recorded function. All is a loop of the compiled code.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused, stopped
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, implicit, repeat
from jitad.trace.scipy_rules.solvers.stiff import Equations

__all__ = ["Box", "Descent", "settled", "solution_within"]

CLOSE = 1e-10            # the relative length of the last step, at most: its square is the error that remains


def settled(flag: Any) -> Any:
    """A condition of what is found, which has no derivative."""
    return stopped(np.where(flag, 1.0, 0.0)) > 0


class Box:
    """Bounds of each variable, which may be infinite, and traced."""

    def __init__(self, low: Any, high: Any, n: int, name: str) -> None:
        low, high = floats(low), floats(high)
        for end in (low, high):
            if end.shape not in ((), (1,), (n,)):
                raise ValueError(f"{name}: bounds of shape {end.shape} for {n} variables")
        self.low: Any = np.broadcast_to(low, (n,))
        self.high: Any = np.broadcast_to(high, (n,))
        crossed: Any = self.low > self.high
        require(~crossed, ValueError(
            "An upper bound is less than the corresponding lower bound."))

    def inside(self, x: Any) -> Any:
        return np.minimum(np.maximum(x, self.low), self.high)

    def held(self, x: Any, gradient: Any) -> Any:
        """Which variables a bound keeps from going on downhill."""
        return ((x <= self.low) & (gradient > 0)) | ((x >= self.high) & (gradient < 0))

    def end(self, x: Any) -> Any:
        """The bound at which a variable is."""
        return np.where(x <= self.low, np.where(np.isfinite(self.low), self.low, 0.0),
                        np.where(np.isfinite(self.high), self.high, 0.0))


def bounds_of(bounds: Any, n: int, name: str) -> Box | None:
    """SciPy's bounds: a `Bounds` object, or pairs (low, high) with None for none."""
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        return Box(bounds.lb, bounds.ub, n, name)
    pairs = list(bounds)
    if len(pairs) != n:
        raise ValueError("The number of bounds is not compatible with the length of `x0`.")
    ends = [[(sign * np.inf if x is None else x) for x in (pair[i] for pair in pairs)] for i, sign in ((0, -1), (1, 1))]
    low, high = (np.stack([floats(x) for x in e]) for e in ends)
    return Box(low, high, n, name)


def solution_within(function: SolverCallback, gradient: Callable[[Any], Any], x: Any, box: Box | None, found: Any,
                    value: Callable[[Any, Any], Any] = lambda y, f: f) -> Any:
    """`x` with the derivatives of the minimum: where a bound holds a variable, those of the bound. Where nothing was
    found, they are NaN."""
    if box is None:
        return implicit(function, x, 0, lambda y, f: value(y, f) * np.where(found, 1.0, np.nan), minimum=True)
    held = settled(box.held(x, gradient(x)))
    end = stopped(x) * 0.0 + box.end(stopped(x))
    free = Equations(lambda y: np.where(held, y - end, gradient(y)) * np.where(found, 1.0, np.nan), function.name)
    return implicit(free, x, 0)


class Descent:
    """The steps down a function, which `gradient` and `hessian` are derivatives of."""

    def __init__(self, function: Callable[[Any], Any], gradient: Callable[[Any], Any], hessian: Callable[[Any], Any],
                 box: Box | None) -> None:
        self.function, self.gradient, self.hessian, self.box = function, gradient, hessian, box

    def _free(self, x: Any, g: Any, h: Any) -> tuple[Any, Any]:
        """Gradient and Hessian of the variables that are not held."""
        if self.box is None:
            return g, h
        held = self.box.held(x, g)
        n = x.shape[0]
        return np.where(held, 0.0, g), np.where(held[:, None] | held[None, :], np.eye(n), h)

    def slope(self, x: Any, g: Any) -> Any:
        """The largest slope that is left to go down."""
        return np.max(np.abs(g if self.box is None else np.where(self.box.held(x, g), 0.0, g)))

    def __call__(self, start: Any, gtol: Any, most: int) -> tuple[Any, Any]:
        """Where the function is least, and whether that was found: the slope is within `gtol`, or so small that the
        function cannot tell."""
        at = start if self.box is None else self.box.inside(start)
        f, g, h = self.function(at), self.gradient(at), self.hessian(at)
        sane = np.isfinite(f) & np.all(np.isfinite(g)) & np.all(np.isfinite(h))
        damping = self.slope(at, g) / (1.0 + np.max(np.abs(at)))

        def step(n: Any, x: Any, f: Any, g: Any, h: Any, damping: Any, growth: Any, near: Any) -> tuple[Any, list[Any]]:
            slope, bend = self._free(x, g, h)
            w, v = map(floats, np.linalg.eigh(bend))
            w = np.abs(w)
            along = v.T @ slope
            newton = w + np.where(w == 0, 1.0, 0.0)
            near = np.max(np.abs(along / newton)) <= 1e-6 * (1.0 + np.max(np.abs(x)))
            move = -(v @ (along / (newton + damping)))
            new = x + move if self.box is None else self.box.inside(x + move)
            move = new - x
            f_new, g_new, h_new = self.function(new), self.gradient(new), self.hessian(new)
            sane = np.isfinite(f_new) & np.all(np.isfinite(g_new)) & np.all(np.isfinite(h_new))
            expected = -(g @ move + 0.5 * (move @ (bend @ move)))
            gain = f - f_new
            noise = 1e-14 * np.abs(f)
            flat = (np.abs(gain) <= noise) & (self.slope(new, g_new) < self.slope(x, g))
            good = sane & ((gain > 0) | flat)
            ratio = np.where(flat, 1.0, gain / np.where(expected > 0, expected, 1.0))
            short = (np.max(np.abs(move)) <= CLOSE * (np.max(np.abs(x)) + CLOSE)) | (self.slope(x, g) == 0)
            shrink = np.where(ratio > 0.75, 0.1, np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3))
            shrink = np.where(ratio > 0.0, shrink, 2.0)
            return ~short & (n + 1 < most), [
                n + 1, np.where(good, new, x), np.where(good, f_new, f), np.where(good, g_new, g),
                np.where(good, h_new, h), np.maximum(damping * np.where(good, shrink, growth), 1e-300),
                np.where(good, 2.0, 2.0 * growth), near]

        h = np.where(sane, h, np.eye(at.shape[0]))
        state = [lifted(0), at, f, g, h, damping, floats(2.0), floats(0.0) != 0.0]
        n, x, f, g, _, _, _, near = repeat(sane, state, step)
        return x, settled(sane & (n < most) & (near | (self.slope(x, g) <= gtol)))


def unknown_options(name: str, options: Any, known: str) -> dict[str, Any]:
    """The options that are taken; others are refused."""
    options = dict(options or {})
    others = set(options) - set(known.split())
    if others:
        raise refused(this_recorder(), f"{name} with the option {min(others)!r}", "leave it out")
    return options
