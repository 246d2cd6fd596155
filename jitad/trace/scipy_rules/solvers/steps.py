"""Steps along a differential equation: explicit Runge-Kutta methods, and the loop that all methods share.

The steps are SciPy's: the same formulas, the same first step, the same control of the error (Hairer, Norsett and
Wanner, Solving Ordinary Differential Equations I, sections II.4 to II.6).
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.trace.dispatch import stopped
from jitad.trace.scipy_rules.classes import lifted, require
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, repeat

__all__ = ["Attempt", "Passed", "SMALLEST", "Steps", "norm"]

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0        # SciPy's control of the step
SMALLEST = 100 * np.finfo(float).eps         # that a relative tolerance is


@dataclass
class Attempt:
    """A step that was tried: whether it is good, the state and its slope after it, the size of the next one, the states
    `between` at shares of it, and what the method keeps, each with whether it is kept of good steps only."""

    good: Any
    new: Any
    slope: Any
    size: Any
    between: Callable[[Any], Any]
    kept: list[tuple[bool, Any]]


@dataclass
class Passed:
    """A step from `t` to `after` with the state `new` there, and the states at times in it, a row for each."""

    t: Any
    after: Any
    new: Any
    good: Any
    sign: Any
    at: Callable[[Any], Any]


class Steps:
    """What is solved: the right-hand side, a method's class of SciPy's, tolerances."""

    def __init__(self, function: SolverCallback, method: Any, rtol: Any, atol: Any, max_step: Any,
                 first_step: Any, first: bool = True, columns: bool = False) -> None:
        self.function, self.method, self.first, self.columns = function, method, first, columns
        self.rtol, self.atol = np.maximum(floats(rtol), SMALLEST), floats(atol)
        self.max_step = floats(max_step)
        self.first_step = None if first_step is None else floats(first_step)

    @property
    def order(self) -> int:
        return int(self.method.error_estimator_order)

    def slope(self, t: Any, y: Any) -> Any:
        state = y[:, None] if self.columns else y
        found = self.function(*((t, state) if self.first else (state, t)))
        found = found.reshape(-1) if self.columns else found
        if found.shape != y.shape:
            raise ValueError(f"`fun` gives a result of shape {found.shape} for a state of shape {y.shape}")
        return found

    def check(self, start: Any, end: Any, y: Any) -> None:
        """The options, as SciPy does."""
        if self.atol.ndim and self.atol.shape != y.shape:
            raise ValueError("`atol` has wrong shape.")
        require(~(self.atol < 0), ValueError("`atol` must be positive."))
        require(~(self.max_step <= 0), ValueError("`max_step` must be positive."))
        if self.first_step is not None:
            require(~(self.first_step <= 0), ValueError("`first_step` must be positive."))
            require(~(self.first_step > np.abs(end - start)), ValueError("`first_step` exceeds bounds."))

    most = 10**7             # steps, after which an equation is said to be stiff

    # --- the first step ---------------------------------------------------------------------------
    def first_size(self, t: Any, y: Any, f: Any, end: Any, sign: Any) -> Any:
        if self.first_step is not None:
            return self.first_step
        length = np.abs(end - t)
        scale = self.atol + np.abs(y) * self.rtol
        d0, d1 = norm(y / scale), norm(f / scale)
        tiny = (d0 < 1e-5) | (d1 < 1e-5)
        h0 = np.minimum(np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1)), length)
        d2 = norm((self.slope(t + h0 * sign, y + h0 * sign * f) - f) / scale) / np.where(h0 == 0, 1.0, h0)
        still = (d1 <= 1e-15) & (d2 <= 1e-15)
        most = np.where(still, 1.0, np.maximum(d1, d2))
        h1 = np.where(still, np.maximum(1e-6, h0 * 1e-3),
                      (0.01 / most) ** (1 / (self.order + 1)))
        return np.minimum(np.minimum(100 * h0, h1), np.minimum(length, self.max_step))

    # --- a step ------------------------------------------------------------------------------------
    def stages(self, t: Any, y: Any, f: Any, h: Any) -> tuple[Any, Any, list[Any]]:
        """The state and its slope after the step, and the slopes on the way."""
        m, slopes = self.method, [f]
        for s in range(1, m.n_stages):
            slopes.append(self.slope(t + float(m.C[s]) * h, y + h * _sum(m.A[s, :s], slopes)))
        new = y + h * _sum(m.B, slopes)
        end = self.slope(t + h, new)
        return new, end, [*slopes, end]

    def error(self, slopes: list[Any], h: Any, scale: Any) -> Any:
        m = self.method
        if not hasattr(m, "E3"):
            return norm(h * _sum(m.E, slopes) / scale)
        five, three = _sum(m.E5, slopes) / scale, _sum(m.E3, slopes) / scale
        a, b = np.sum(five * five), np.sum(three * three)
        total = a + 0.01 * b
        size = np.abs(h) * a / np.sqrt(np.where(total == 0, 1.0, total) * five.shape[0])
        return np.where(total == 0, 0.0, size)

    def between(self, x: Any, t: Any, y: Any, h: Any, new: Any, slopes: list[Any]) -> Any:
        """The states within the step, at the shares `x` of it, a row for each."""
        m, x = self.method, x[:, None]
        if not hasattr(m, "E3"):
            weights = [sum(float(p) * x ** (q + 1) for q, p in enumerate(row)) for row in m.P]
            return y + h * sum(w * k for w, k in zip(weights, slopes, strict=True))
        slopes = list(slopes)
        for a, c in zip(m.A_EXTRA, m.C_EXTRA, strict=True):
            slopes.append(self.slope(t + float(c) * h, y + h * _sum(a[:len(slopes)], slopes)))
        change, old, end = new - y, slopes[0], slopes[m.n_stages]
        parts = [change, h * old - change, 2 * change - h * (end + old), *(h * _sum(d, slopes) for d in m.D)]
        value: Any = 0.0
        for i, part in enumerate(reversed(parts)):
            value = (value + part) * (x if i % 2 == 0 else 1 - x)
        return y + value

    def kept(self, t: Any, y: Any, size: Any) -> list[Any]:
        """What the method keeps from step to step, at the start."""
        return []

    def attempt(self, t: Any, y: Any, f: Any, h: Any, again: Any, kept: list[Any]) -> Attempt:
        """A step of size `h`; `again`, where the one before was not good."""
        new, slope, slopes = self.stages(t, y, f, h)
        scale = self.atol + np.maximum(np.abs(y), np.abs(new)) * self.rtol
        error = stopped(self.error(slopes, h, scale))
        good = error < 1
        power = SAFETY * np.where(error > 0, error, 1.0) ** (-1 / (self.order + 1))
        grow = np.where(error == 0, GROW, np.minimum(GROW, power))
        grow = np.where(again, np.minimum(1.0, grow), grow)
        shrink = np.where(error >= 1, np.maximum(SHRINK, power), SHRINK)
        size = stopped(np.abs(h) * np.where(good, grow, shrink))
        return Attempt(good, new, slope, size, lambda x: self.between(x, t, y, h, new, slopes), [])

    # --- all steps -----------------------------------------------------------------------------------
    def solve(self, start: Any, end: Any, y: Any, times: Any, events: Any = None) -> Any:
        """In one vector: the states at `times`, the last state, the time that was reached, and what events have."""
        sign = np.where(end >= start, 1.0, -1.0)
        f = self.slope(start, y)
        size = stopped(self.first_size(start, y, f, end, sign))
        rows = np.broadcast_to(y, (times.shape[0], y.shape[0]))
        kept = self.kept(start, y, size)
        met = events.begun(start, y) if events is not None else []

        def step(n: Any, t: Any, y: Any, f: Any, size: Any, again: Any, failed: Any, rows: Any,
                 *more: Any) -> tuple[Any, list[Any]]:
            kept_, met_ = list(more[:len(kept)]), list(more[len(kept):])
            least = 10 * np.finfo(float).eps * np.maximum(np.abs(t), np.finfo(float).tiny)
            size = np.where(again, size, np.clip(size, least, self.max_step))
            failed = (again & ~(size >= least)) | (n >= self.most)               # NaN, too
            after = t + size * sign
            after = np.where(sign * (after - end) > 0, end, after)
            h = after - t
            tried = self.attempt(t, y, f, h, again, kept_)
            good, new = tried.good & ~failed, tried.new
            share = lambda at: (at - t) / np.where(h == 0, 1.0, h)
            ended = failed
            if events is not None:
                after, new, ended, met_ = events.passed(
                    Passed(t, after, new, good, sign, lambda at: tried.between(share(at))), met_)
            if times.shape[0]:
                here = good & (sign * (times - t) > 0) & (sign * (times - after) <= 0)
                rows = np.where(here[:, None], tried.between(share(times)), rows)
            t, y, f = np.where(good, after, t), np.where(good, new, y), np.where(good, tried.slope, f)
            return (sign * (t - end) < 0) & ~failed & ~ended, [
                n + 1, t, y, f, tried.size, ~good, failed, rows,
                *(np.where(good, a, b) if once else a for (once, a), b in zip(tried.kept, kept_, strict=True)), *met_]

        false = start != start
        _, t, y, _, _, _, _, rows, *more = repeat(start != end, [
            lifted(0), start, y, f, size, false, false, rows, *kept, *met], step, stop=False)
        return np.concatenate([rows.reshape(-1), y, t.reshape(1), *(
            np.where(v, 1.0, 0.0).reshape(-1) if v.dtype.kind == "b" else v.reshape(-1) + 0.0
            for v in more[len(kept):])])


def _sum(weights: Any, slopes: list[Any]) -> Any:
    terms = [float(w) * k for w, k in zip(weights, slopes, strict=False) if w != 0]
    return sum(terms[1:], terms[0])


def norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x) / x.shape[0])
