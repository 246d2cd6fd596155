"""Minima of functions of one variable: `minimize_scalar` and its kin.

A bracket is sought downhill by golden steps and parabolas, as SciPy does, and narrowed by Brent's method (Algorithms
for Minimization without Derivatives, 1973, chapter 5), for golden sections too, to the precision that values of the
function allow. The derivative is that of the minimum, by the implicit function theorem; where the end of a range is
least, that of the end.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused, stopped
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, SolverReport, floats, implicit, repeat
from jitad.trace.scipy_rules.solvers.descent import settled, unknown_options
from jitad.trace.scipy_rules.solvers.stiff import Equations
from jitad.trace.substitutes import substitute

__all__: list[str] = []

GOLDEN, SHARE = (1 + 5**0.5) / 2, (3 - 5**0.5) / 2
FURTHEST, TINY = 110.0, 1e-21            # how far a parabola may lead, in steps; what is no curvature
XTOL = 1.48e-8                           # to which values of a function tell where it is least
FAILED = "Optimization did not succeed: the limit of iterations was reached, or values are NaN."


def _downhill(function: SolverCallback, a: Any, b: Any, most: int = 1000) -> tuple[Any, Any, Any, Any, Any]:
    """Three points, of which the middle one is least, its value, and whether there are such."""
    fa, fb = function(a), function(b)
    up = fa < fb
    a, b, fa, fb = np.where(up, b, a), np.where(up, a, b), np.where(up, fb, fa), np.where(up, fa, fb)
    c = b + GOLDEN * (b - a)

    def step(n: Any, a: Any, b: Any, c: Any, fa: Any, fb: Any, fc: Any) -> tuple[Any, list[Any]]:
        to_a, to_c = (b - a) * (fb - fc), (b - c) * (fb - fa)
        bend = 2.0 * np.where(np.abs(to_c - to_a) < TINY, TINY, to_c - to_a)
        w = b - ((b - c) * to_c - (b - a) * to_a) / bend
        last = b + FURTHEST * (c - b)
        golden = c + GOLDEN * (c - b)
        within, beyond = (w - c) * (b - w) > 0, (w - last) * (c - w) > 0
        far = ~within & ~beyond & ((w - last) * (last - c) >= 0)
        w = np.where(far, last, np.where(within | beyond, w, golden))
        fw = function(w)
        # between b and c a parabola's point may end the search; else another golden step is made
        right, left = within & (fw < fc), within & ~(fw < fc) & (fw > fb)
        other, further = within & ~right & ~left, beyond & (fw < fc)
        third = np.where(other, golden, w + GOLDEN * (w - c))
        f3 = function(third)
        x, fx = np.where(other, third, w), np.where(other, f3, fw)
        triple = [np.where(right, b, np.where(left, a, np.where(further, c, b))),
                  np.where(right, w, np.where(left, b, np.where(further, w, c))),
                  np.where(right, c, np.where(left, w, np.where(further, third, x))),
                  np.where(right, fb, np.where(left, fa, np.where(further, fc, fb))),
                  np.where(right, fw, np.where(left, fb, np.where(further, fw, fc))),
                  np.where(right, fc, np.where(left, fw, np.where(further, f3, fx)))]
        return ~(right | left) & (triple[5] < triple[4]) & (n < most), [n + 1, *triple]

    fc = function(c)
    _, a, b, c, fa, fb, fc = repeat(fc < fb, [lifted(0), a, b, c, fa, fb, fc], step)
    least = ((fb < fc) & (fb <= fa)) | ((fb < fa) & (fb <= fc))
    return a, b, c, fb, least & ((b - a) * (c - b) > 0) & np.isfinite(a) & np.isfinite(c)


def _narrowed(function: SolverCallback, low: Any, high: Any, x: Any, fx: Any, most: int) -> tuple[Any, Any]:
    """Where the function is least between `low` and `high`, from `x` on, and whether that was found."""
    def step(n: Any, a: Any, b: Any, x: Any, w: Any, v: Any, fx: Any, fw: Any, fv: Any, move: Any,
             before: Any, near: Any) -> tuple[Any, list[Any]]:
        middle, tol = 0.5 * (a + b), XTOL * np.abs(x) + 1e-11
        r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
        p, q = (x - v) * q - (x - w) * r, 2.0 * (q - r)
        p, q = np.where(q > 0, -p, p), np.abs(q)
        fits = (np.abs(before) > tol) & (np.abs(p) < np.abs(0.5 * q * before)) & (p > q * (a - x)) & (p < q * (b - x))
        bend = p / np.where(q == 0, 1.0, q)
        there = x + bend
        edge = ((there - a) < 2 * tol) | ((b - there) < 2 * tol)
        bend = np.where(edge, np.where(middle >= x, tol, -tol), bend)
        rest = np.where(x >= middle, a - x, b - x)
        before, move = np.where(fits, move, rest), np.where(fits, bend, SHARE * rest)
        u = x + np.where(np.abs(move) >= tol, move, np.where(move >= 0, tol, -tol))
        fu = function(u)
        better = fu <= fx
        a, b = np.where(better, np.where(u >= x, x, a), np.where(u < x, u, a)), np.where(
            better, np.where(u >= x, b, x), np.where(u < x, b, u))
        second = ~better & ((fu <= fw) | (w == x))
        third = ~better & ~second & ((fu <= fv) | (v == x) | (v == w))
        v, fv = np.where(better | second, w, np.where(third, u, v)), np.where(
            better | second, fw, np.where(third, fu, fv))
        w, fw = np.where(better, x, np.where(second, u, w)), np.where(better, fx, np.where(second, fu, fw))
        x, fx = np.where(better, u, x), np.where(better, fu, fx)
        near = np.abs(x - 0.5 * (a + b)) <= 2 * (XTOL * np.abs(x) + 1e-11) - 0.5 * (b - a)
        return ~near & (n + 1 < most), [n + 1, a, b, x, w, v, fx, fw, fv, move, before, near]

    zero = floats(0.0)
    state = repeat(zero == 0.0, [lifted(0), low, high, x, x, x, fx, fx, fx, zero, zero, zero != 0.0], step)
    return state[3], state[-1] & np.isfinite(state[6])


def _least(function: SolverCallback, bracket: Any, bounds: Any, most: int) -> tuple[Any, Any]:
    """The minimum, and whether it was found."""
    if bounds is not None:
        low, high = map(floats, bounds)
        return _bounded(function, low, high, most)
    points = [floats(p) for p in (bracket if bracket is not None else (0.0, 1.0))]
    if len(points) not in (2, 3):
        raise ValueError("Bracketing interval must be length 2 or 3 sequence.")
    if len(points) == 2:
        a, b, c, fb, good = _downhill(function, *points)
        require(good, RuntimeError(f"{function.name}: the algorithm terminated without finding a valid bracket. "
                                   "Consider trying different initial points."))
    else:
        a, b, c = points
        fa, fb, fc = map(function, points)
        a, c = np.where(a > c, c, a), np.where(a > c, a, c)
        require((a < b) & (b < c), ValueError("Bracketing values (xa, xb, xc) do not fulfill this requirement: "
                                              "(xa < xb) and (xb < xc)"))
        require((fb < fa) & (fb < fc), ValueError("Bracketing values (xa, xb, xc) do not fulfill this requirement: "
                                                  "(f(xb) < f(xa)) and (f(xb) < f(xc))"))
    x, found = _narrowed(function, np.minimum(a, c), np.maximum(a, c), b, fb, most)
    found = settled(found)
    return implicit(function, x, 0, lambda y, f: f * np.where(found, 1.0, np.nan), minimum=True), found


def _bounded(function: SolverCallback, low: Any, high: Any, most: int) -> tuple[Any, Any]:
    require(~(low > high), ValueError("The lower bound exceeds the upper bound."))
    first = low + SHARE * (high - low)
    x, found = _narrowed(function, low, high, first, function(first), most)
    ends = [function(low), function(high)]
    near = 1e-7 * (high - low)
    here = function(x)
    at_low, at_high = (x - low <= near) & (ends[0] <= here), (high - x <= near) & (ends[1] <= here)
    at_low, at_high, found = settled(at_low), settled(at_high & ~at_low), settled(found)
    x = np.where(at_low, low, np.where(at_high, high, x))
    slope = lambda y: np.where(at_low, y - low, np.where(at_high, y - high, function.jacobian(y)))
    zero = Equations(lambda y: slope(y) * np.where(found, 1.0, np.nan), function.name)
    return implicit(zero, stopped(x), 0), found


class _Valley(SolverCallback):
    def _value(self, result: Any) -> Any:
        value = super()._value(result)
        if value.size != 1:
            raise ValueError("The user-provided objective function must return a scalar value.")
        return value.reshape(())


@substitute("scipy.optimize", "minimize_scalar", calls=True)
def minimize_scalar(fun: Callable[..., Any], bracket: Any = None, bounds: Any = None, args: Any = (),
                    method: Any = None, tol: Any = None, options: Any = None) -> Any:
    name = "scipy.optimize.minimize_scalar"
    method = ("bounded" if bounds is not None else "brent") if method is None else method
    if not isinstance(method, str):
        raise refused(this_recorder(), f"{name} with a method of your own", "name one of SciPy's")
    method = method.lower()
    if method not in ("brent", "golden", "bounded"):
        raise ValueError(f"Unknown solver {method}")
    if bounds is not None and method != "bounded":
        raise ValueError(f"Use of `bounds` is incompatible with 'method={method}'.")
    if method == "bounded" and (bounds is None or len(bounds) != 2):
        raise ValueError("The `bounds` parameter is mandatory for method `bounded`." if bounds is None else
                         "bounds must have two elements.")
    options = unknown_options(name, options, "maxiter xtol xatol disp")
    function = _Valley(fun, args, name)
    x, found = _least(function, bracket, bounds, options.get("maxiter") or 500)
    return SolverReport(name, found, FAILED, good=("Optimization terminated successfully.", 0), bad=1, x=x,
                        fun=function(x))


def _lone(name: str, func: Callable[..., Any], args: Any, brack: Any, bounds: Any, full_output: Any, most: int) -> Any:
    """The minimum alone, which functions of the older kind give."""
    if full_output:
        raise refused(this_recorder(), f"scipy.optimize.{name} with full_output", "use minimize_scalar")
    return _least(_Valley(func, args, f"scipy.optimize.{name}"), brack, bounds, most)[0]


@substitute("scipy.optimize", "brent", calls=True)
def brent(func: Callable[..., Any], args: Any = (), brack: Any = None, tol: float = 1.48e-8, full_output: Any = 0,
          maxiter: int = 500) -> Any:
    return _lone("brent", func, args, brack, None, full_output, maxiter)


@substitute("scipy.optimize", "golden", calls=True)
def golden(func: Callable[..., Any], args: Any = (), brack: Any = None, tol: float = 1.5e-8, full_output: Any = 0,
           maxiter: int = 5000) -> Any:
    return _lone("golden", func, args, brack, None, full_output, maxiter)


@substitute("scipy.optimize", "fminbound", calls=True)
def fminbound(func: Callable[..., Any], x1: Any, x2: Any, args: Any = (), xtol: float = 1e-5, maxfun: int = 500,
              full_output: Any = 0, disp: int = 1) -> Any:
    return _lone("fminbound", func, args, None, (x1, x2), full_output, maxfun)
