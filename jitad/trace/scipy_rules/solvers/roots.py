"""Roots of functions of one variable, and fixed points.

The solver is a loop of the compiled code around the user's function. A bracket is narrowed by Chandrupatla's method
(Advances in Engineering Software 28, 1997: inverse quadratic interpolation where it is safe, else bisection) for every
one of SciPy's bracketing functions, to the tolerance that is asked; `newton` and `fixed_point` make SciPy's own steps.
The derivative is that of the root, by the implicit function theorem (`jitad.passes.differentiate.solutions`): one
evaluation of the function's derivative by each thing that it reads, whatever the number of steps.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import lifted, require, this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, implicit, repeat
from jitad.trace.substitutes import substitute

__all__: list[str] = []

XTOL, RTOL, ITERATIONS = 2e-12, 8.881784197001252e-16, 100
_FALSE = "leave it out"


class _Found:
    """What `root_scalar` and ``full_output=True`` give."""

    def __init__(self, root: Any, iterations: Any, calls: Any, method: str) -> None:
        self.root, self.iterations, self.function_calls, self.method = root, iterations, calls, method
        self.converged, self.flag = True, "converged"


def _bracketed(name: str, f: Callable[..., Any], a: Any, b: Any, args: Any, xtol: float, rtol: float,
               maxiter: int, disp: bool) -> tuple[Any, Any]:
    """The root between `a` and `b`, and the number of steps."""
    if xtol <= 0:
        raise ValueError(f"xtol too small ({xtol:g} <= 0)")
    if rtol < RTOL / 2:
        raise ValueError(f"rtol too small ({rtol:g} < {RTOL / 2:g})")
    callback = SolverCallback(f, args, name)
    a, b = floats(a), floats(b)
    fa, fb = callback(a), callback(b)
    for x in (fa, fb):
        if x.shape:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    require(~(np.isnan(fa) | np.isnan(fb)), ValueError("The function value at an end of the interval is NaN; solver "
                                                      "cannot continue."))
    require(np.sign(fa) * np.sign(fb) <= 0, ValueError("f(a) and f(b) must have different signs"))

    def step(n: Any, x1: Any, f1: Any, x2: Any, f2: Any, t: Any) -> tuple[Any, list[Any]]:
        x = x1 + t * (x2 - x1)
        fx = callback(x)
        same = np.sign(fx) == np.sign(f1)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        best, smallest = np.where(np.abs(fx) < np.abs(f2), x, x2), np.minimum(np.abs(fx), np.abs(f2))
        limit = 0.5 * (xtol + rtol * np.abs(best)) / np.abs(x2 - x)
        xi, phi = (x - x2) / (x3 - x2), (fx - f2) / (f3 - f2)
        safe = (phi * phi < xi) & ((1 - phi) * (1 - phi) < 1 - xi)
        inner = fx / (f2 - fx) * f3 / (f2 - f3) + (x3 - x) / (x2 - x) * fx / (f3 - fx) * f2 / (f3 - f2)
        t = np.clip(np.where(safe, inner, 0.5), limit, 1 - limit)
        return (limit <= 0.5) & (smallest != 0) & (n + 1 < maxiter), [n + 1, x, fx, x2, f2, t]

    half, done = floats(0.5), (fa == 0) | (fb == 0)
    n, x1, f1, x2, f2, _ = repeat(~done, [lifted(0), b, fb, a, fa, half], step)
    if disp:
        width = 0.5 * (xtol + rtol * np.abs(x1))
        require((np.abs(x2 - x1) <= 2.5 * width) | (f1 == 0) | (f2 == 0) | (n < maxiter),
                RuntimeError(f"Failed to converge after {maxiter} iterations."))
    return implicit(callback, np.where(np.abs(f1) <= np.abs(f2), x1, x2), 0), n


def _bracketing(name: str) -> None:
    whole = f"scipy.optimize.{name}"

    @substitute("scipy.optimize", name, calls=True)
    def solve(f: Callable[..., Any], a: Any, b: Any, args: Any = (), xtol: float = XTOL, rtol: float = RTOL,
              maxiter: int = ITERATIONS, full_output: bool = False, disp: bool = True) -> Any:
        root, n = _bracketed(whole, f, a, b, args, xtol, rtol, maxiter, disp)
        return (root, _Found(root, n, n + 2, name)) if full_output else root


for _name in ("brentq", "brenth", "ridder", "bisect"):
    _bracketing(_name)


@substitute("scipy.optimize", "toms748", calls=True)
def toms748(f: Callable[..., Any], a: Any, b: Any, args: Any = (), k: int = 1, xtol: float = XTOL, rtol: float = RTOL,
            maxiter: int = ITERATIONS, full_output: bool = False, disp: bool = True) -> Any:
    root, n = _bracketed("scipy.optimize.toms748", f, a, b, args, xtol, rtol, maxiter, disp)
    return (root, _Found(root, n, n + 2, "toms748")) if full_output else root


@substitute("scipy.optimize", "newton", calls=True)
def newton(func: Callable[..., Any], x0: Any, fprime: Any = None, args: Any = (), tol: float = 1.48e-8,
           maxiter: int = 50, fprime2: Any = None, x1: Any = None, rtol: float = 0.0, full_output: bool = False,
           disp: bool = True) -> Any:
    if tol <= 0:
        raise ValueError(f"tol too small ({tol:g} <= 0)")
    if maxiter < 1:
        raise ValueError("maxiter must be greater than 0")
    name = "scipy.optimize.newton"
    callback, start = SolverCallback(func, args, name), floats(x0)
    if full_output and start.ndim:
        raise refused(start, f"{name} with full_output of an array", _FALSE)
    if fprime is None:
        x, n, found = _secant(callback, start, x1, tol, rtol, maxiter)
    else:
        slope = SolverCallback(fprime, args, name)
        bend = SolverCallback(fprime2, args, name) if fprime2 is not None else None
        x, n, found = _newton(callback, slope, bend, start, (tol, rtol, maxiter))
    if disp:
        require(found, RuntimeError(f"Failed to converge after {maxiter} iterations."))
    root = implicit(callback, x, x.ndim)
    return (root, _Found(root, n, 2 * n, "newton")) if full_output else root


def _close(new: Any, old: Any, tol: float, rtol: float) -> Any:
    return np.abs(new - old) <= tol + rtol * np.abs(old)


def _whole(flags: Any) -> Any:
    return np.all(flags) if flags.ndim else flags


def _newton(callback: SolverCallback, slope: SolverCallback, bend: SolverCallback | None, start: Any,
            limits: tuple[float, float, int]) -> tuple[Any, Any, Any]:
    """Newton's steps, or Halley's with a second derivative; the root, the number of steps, whether it converged."""
    tol, rtol, maxiter = limits

    def step(n: Any, p: Any, done: Any) -> tuple[Any, list[Any]]:
        f, d = callback(p), slope(p)
        move = f / np.where(d == 0, 1.0, d)
        if bend is not None:
            adjusted = 1.0 - move * bend(p) / (2 * np.where(d == 0, 1.0, d))
            move = np.where(np.abs(adjusted) < 1, move / np.where(adjusted == 0, 1.0, adjusted), move) if (
                not start.ndim) else move / np.where(adjusted == 0, 1.0, adjusted)
        stuck = (d == 0) & (f != 0)
        new = np.where(done | (f == 0) | (d == 0), p, p - move)
        done = done | (f == 0) | (_close(new, p, tol, rtol) & ~stuck)
        return ~_whole(done) & (n + 1 < maxiter) & ~_whole(stuck), [n + 1, new, done]

    n, x, done = repeat(floats(0.0) == 0.0, [lifted(0), start, start != start], step)
    return x, n, done


def _secant(callback: SolverCallback, start: Any, x1: Any, tol: float, rtol: float,
            maxiter: int) -> tuple[Any, Any, Any]:
    """Steps of the secant through the last two points."""
    small = 1e-4
    if x1 is None:
        other = start * (1 + small) + np.where(start >= 0, small, -small)
        if start.ndim:
            small = float(np.finfo(float).eps ** 0.33)
            other = start * (1 + small) + np.where(start >= 0, small, -small)
    else:
        other = floats(x1)
        require(other != start, ValueError("x1 and x0 must be different"))
    q0, q1 = callback(start), callback(other)
    swap = np.abs(q1) < np.abs(q0) if not start.ndim else start != start
    p0, p1 = np.where(swap, other, start), np.where(swap, start, other)
    q0, q1 = np.where(swap, q1, q0), np.where(swap, q0, q1)

    def step(n: Any, p0: Any, q0: Any, p1: Any, q1: Any, done: Any) -> tuple[Any, list[Any]]:
        flat = q1 == q0
        gap = np.where(flat, 1.0, q1 - q0)
        p = np.where(np.abs(q1) > np.abs(q0), (-q0 / np.where(q1 == 0, 1.0, q1) * p1 + p0)
                     / np.where(flat, 1.0, 1 - q0 / np.where(q1 == 0, 1.0, q1)),
                     (-q1 / np.where(q0 == 0, 1.0, q0) * p0 + p1)
                     / np.where(flat, 1.0, 1 - q1 / np.where(q0 == 0, 1.0, q0)))
        p = np.where(flat, (p1 + p0) / 2.0, p) + 0.0 * gap
        close = _close(p, p1, tol, rtol) | flat
        new = np.where(done, p1, p)
        q = callback(new)
        return ~_whole(done | close) & (n + 1 < maxiter), [
            n + 1, np.where(done, p0, p1), np.where(done, q0, q1), new, q, done | close]

    n, _, _, x, q, done = repeat(floats(0.0) == 0.0, [lifted(0), p0, q0, p1, q1, q1 == 0], step)
    return x, n, done & (np.abs(q) <= np.maximum(np.abs(q0), np.abs(q1)))


@substitute("scipy.optimize", "fixed_point", calls=True)
def fixed_point(func: Callable[..., Any], x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500,
                method: str = "del2") -> Any:
    if method not in ("del2", "iteration"):
        raise KeyError(method)
    callback, start = SolverCallback(func, args, "scipy.optimize.fixed_point"), floats(x0)

    def step(n: Any, p0: Any, off: Any) -> tuple[Any, list[Any]]:
        p = callback(p0)
        if method == "del2":
            p2 = callback(p)
            d = p2 - 2.0 * p + p0
            p = np.where(d != 0, p0 - (p - p0) ** 2 / np.where(d != 0, d, 1.0), p2)
        error = np.where(p0 != 0, (p - p0) / np.where(p0 != 0, p0, 1.0), p)
        off = ~_whole(np.abs(error) < xtol)
        return off & (n + 1 < maxiter), [n + 1, p, off]

    true = floats(0.0) == 0.0
    _, x, off = repeat(true, [lifted(0), start, true], step)
    require(~off, RuntimeError(f"Failed to converge after {maxiter} iterations."))
    return implicit(callback, x, 0, lambda y, f: y - f)


@substitute("scipy.optimize", "root_scalar", calls=True)
def root_scalar(f: Callable[..., Any], args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None,
                fprime2: Any = None, x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None,
                maxiter: Any = None, options: Any = None) -> Any:
    if isinstance(fprime, bool) or isinstance(fprime2, bool):
        raise refused(this_recorder(), "scipy.optimize.root_scalar with fprime=True", "give fprime as a function")
    if options:
        raise refused(this_recorder(), "scipy.optimize.root_scalar with options=", "use xtol=, rtol=, maxiter=")
    if not method:
        method = "brentq" if bracket is not None else "halley" if fprime2 is not None else (
            "newton" if fprime is not None else "secant")
    given = {k: v for k, v in (("xtol", xtol), ("rtol", rtol), ("maxiter", maxiter)) if v is not None}
    if method.lower() in ("brentq", "brenth", "ridder", "bisect", "toms748"):
        if not isinstance(bracket, (list, tuple, np.ndarray)):
            raise ValueError(f"Bracket needed for {method}")
        limits = {"xtol": XTOL, "rtol": RTOL, "maxiter": ITERATIONS, **given}
        root, n = _bracketed("scipy.optimize.root_scalar", f, bracket[0], bracket[1], args, disp=False, **limits)
        return _Found(root, n, n + 2, method)
    if method.lower() not in ("newton", "secant", "halley"):
        raise ValueError(f"Unknown solver {method}")
    if x0 is None:
        raise ValueError(f"x0 must not be None for {method}")
    if "xtol" in given:
        given["tol"] = given.pop("xtol")
    root = newton(f, x0, None if method == "secant" else fprime, args, fprime2=fprime2 if method == "halley" else None,
                  x1=x1, **given)
    return _Found(root, None, None, method)
