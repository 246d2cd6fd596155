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

__all__ = ["narrowed"]

XTOL, RTOL, ITERATIONS = 2e-12, 8.881784197001252e-16, 100
_FALSE = "leave it out"


class _Found:
    """What `root_scalar` and ``full_output=True`` give; `converged` is traced, as the root is."""

    def __init__(self, root: Any, converged: Any, counts: tuple[Any, Any] | None, method: str) -> None:
        self.root, self.converged, self.method = root, converged, method
        self._counts = counts

    @property
    def flag(self) -> str:
        return "converged" if self.converged else "convergence error"

    @property
    def iterations(self) -> Any:
        return self._counted("iterations")[0]

    @property
    def function_calls(self) -> Any:
        return self._counted("function_calls")[1]

    def _counted(self, what: str) -> tuple[Any, Any]:
        if self._counts is None:
            raise refused(this_recorder(), f"{what} of scipy.optimize's {self.method}", "leave it out: a bracket is "
                          "narrowed by Chandrupatla's method, whose steps are not those of SciPy's")
        return self._counts

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def _bracketed(name: str, f: Callable[..., Any], a: Any, b: Any, args: Any, xtol: float, rtol: float,
               maxiter: int) -> tuple[Any, Any, Any]:
    """The root between `a` and `b`, whether it was found, and whether the function was NaN on the way."""
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

    n, x1, f1, x2, f2 = _chandrupatla(callback, (a, fa), (b, fb), (xtol, rtol, maxiter), floats(0.0) == 0.0)
    nan = np.isnan(f1)
    found = (np.abs(x2 - x1) <= 1.25 * (xtol + rtol * np.abs(x1))) | (f1 == 0) | (f2 == 0) | (n < maxiter)
    root = np.where(nan | (np.abs(f1) <= np.abs(f2)), x1, x2)
    return implicit(callback, root, 0), found & ~nan, nan


def narrowed(callback: SolverCallback, a: Any, fa: Any, b: Any, fb: Any, wanted: Any) -> Any:
    """The root between `a` and `b` as nearly as numbers go, where it is wanted; no derivative."""
    _, x1, f1, x2, f2 = _chandrupatla(callback, (a, fa), (b, fb), (2 * RTOL, RTOL, ITERATIONS), wanted)
    return np.where(np.abs(f1) <= np.abs(f2), x1, x2)


def _chandrupatla(callback: SolverCallback, low: tuple[Any, Any], high: tuple[Any, Any],
                  limits: tuple[float, float, int], wanted: Any) -> Any:
    """The number of steps, and the last two points with the function's values."""
    (a, fa), (b, fb), (xtol, rtol, maxiter) = low, high, limits

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
    return repeat(wanted & ~done, [lifted(0), b, fb, a, fa, half], step)[:5]


def _solved(name: str, f: Callable[..., Any], a: Any, b: Any, args: Any, limits: tuple[Any, Any, Any],
            full_output: bool, disp: bool) -> Any:
    """What SciPy's function `name` gives."""
    root, found, nan = _bracketed(f"scipy.optimize.{name}", f, a, b, args, *limits)
    require(~nan, ValueError("The function value at a point of the interval is NaN; solver cannot continue."))
    if disp:
        require(found, RuntimeError(f"Failed to converge after {limits[2]} iterations."))
    return (root, _Found(root, found, None, name)) if full_output else root


def _bracketing(name: str) -> None:
    @substitute("scipy.optimize", name, calls=True)
    def solve(f: Callable[..., Any], a: Any, b: Any, args: Any = (), xtol: float = XTOL, rtol: float = RTOL,
              maxiter: int = ITERATIONS, full_output: bool = False, disp: bool = True) -> Any:
        return _solved(name, f, a, b, args, (xtol, rtol, maxiter), full_output, disp)


for _name in ("brentq", "brenth", "ridder", "bisect"):
    _bracketing(_name)


@substitute("scipy.optimize", "toms748", calls=True)
def toms748(f: Callable[..., Any], a: Any, b: Any, args: Any = (), k: int = 1, xtol: float = XTOL, rtol: float = RTOL,
            maxiter: int = ITERATIONS, full_output: bool = False, disp: bool = True) -> Any:
    return _solved("toms748", f, a, b, args, (xtol, rtol, maxiter), full_output, disp)


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
        x, found, counts = _secant(callback, start, x1, tol, rtol, maxiter)
    else:
        slope = SolverCallback(fprime, args, name)
        bend = SolverCallback(fprime2, args, name) if fprime2 is not None else None
        x, found, counts = _newton(callback, slope, bend, start, (tol, rtol, maxiter))
    if disp:
        require(found, RuntimeError(f"Failed to converge after {maxiter} iterations."))
    root = implicit(callback, x, x.ndim)
    method = "secant" if fprime is None else "halley" if fprime2 is not None else "newton"
    return (root, _Found(root, found, counts, method)) if full_output else root


def _close(new: Any, old: Any, tol: float, rtol: float) -> Any:
    return np.abs(new - old) <= tol + rtol * np.abs(old)


def _whole(flags: Any) -> Any:
    return np.all(flags) if flags.ndim else flags


def _newton(callback: SolverCallback, slope: SolverCallback, bend: SolverCallback | None, start: Any,
            limits: tuple[float, float, int]) -> tuple[Any, Any, tuple[Any, Any]]:
    """Newton's steps, or Halley's with a second derivative; the root, whether it converged, and how many steps and
    calls of a number's it took."""
    tol, rtol, maxiter = limits

    def step(n: Any, calls: Any, p: Any, done: Any) -> tuple[Any, list[Any]]:
        f, d = callback(p), slope(p)
        move = f / np.where(d == 0, 1.0, d)
        if bend is not None:
            adjusted = 1.0 - move * bend(p) / (2 * np.where(d == 0, 1.0, d))
            move = np.where(np.abs(adjusted) < 1, move / np.where(adjusted == 0, 1.0, adjusted), move) if (
                not start.ndim) else move / np.where(adjusted == 0, 1.0, adjusted)
        stuck = (d == 0) & (f != 0)
        new = np.where(done | (f == 0) | (d == 0), p, p - move)
        done = done | (f == 0) | (_close(new, p, tol, rtol) & ~stuck)
        asked = np.where(f == 0, 1, np.where(d == 0, 2, 2 if bend is None else 3)) if not start.ndim else 0
        after = np.where(f == 0, n, n + 1) if not start.ndim else n + 1
        return ~_whole(done) & (n + 1 < maxiter) & ~_whole(stuck), [after, calls + asked, new, done]

    n, calls, x, done = repeat(floats(0.0) == 0.0, [lifted(0), lifted(0), start, start != start], step)
    return x, done, (n, calls)


def _secant(callback: SolverCallback, start: Any, x1: Any, tol: float, rtol: float,
            maxiter: int) -> tuple[Any, Any, tuple[Any, Any]]:
    """Steps of the secant through the last two points, as `_newton`; it fails where that is flat."""
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

    def step(n: Any, p0: Any, q0: Any, p1: Any, q1: Any, done: Any, stuck: Any) -> tuple[Any, list[Any]]:
        flat = (q1 == q0) & ~done
        high, low = np.abs(q1) > np.abs(q0), np.where(flat, 1.0, 0.0)
        ratio = np.where(high, q0, q1) / (np.where(high, q1, q0) + low)
        p = np.where(high, p0 - ratio * p1, p1 - ratio * p0) / (1 - ratio + low)
        p = np.where(flat, (p1 + p0) / 2.0, p)
        over = done | stuck
        new, close = np.where(over, p1, p), _close(p, p1, tol, rtol) & ~flat & ~stuck
        done, stuck, q = done | close, stuck | flat, callback(new)
        return ~_whole(done | stuck) & (n + 1 < maxiter), [
            n + 1, np.where(over, p0, p1), np.where(over, q0, q1), new, q, done, stuck]

    false = q1 != q1
    n, *_, x, _, done, stuck = repeat(floats(0.0) == 0.0, [lifted(0), p0, q0, p1, q1, (q1 == 0) & (q0 != 0),
                                                           false & ~false], step)
    return x, done, (n, np.where(_whole(done | stuck), n + 1, n + 2))


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
    f, fprime, fprime2 = _apart(f, fprime, fprime2)
    if not method:
        if bracket is None and x0 is None:
            raise ValueError("Unable to select a solver as neither bracket nor starting point provided.")
        method = "brentq" if bracket is not None else "secant" if fprime is None and x1 is not None else (
            "halley" if fprime is not None and fprime2 is not None else "newton")
    method, args = method.lower(), args if isinstance(args, tuple) else (args,)
    given = {k: v for k, v in (("xtol", xtol), ("rtol", rtol), ("maxiter", maxiter)) if v is not None}
    given.update({k: v for k, v in (options or {}).items() if k not in ("full_output", "disp")})
    unknown = set(given) - {"xtol", "tol", "rtol", "maxiter"}
    if unknown:
        raise TypeError(f"scipy.optimize.root_scalar got an unexpected keyword argument {min(unknown)!r}")
    if method in ("brentq", "brenth", "ridder", "bisect", "toms748"):
        if not isinstance(bracket, (list, tuple, np.ndarray)):
            raise ValueError(f"Bracket needed for {method}")
        limits = {"xtol": XTOL, "rtol": RTOL, "maxiter": ITERATIONS, **given}
        root, found, _ = _bracketed("scipy.optimize.root_scalar", f, bracket[0], bracket[1], args, **limits)
        return _Found(root, found, None, method)
    if method not in ("newton", "secant", "halley"):
        raise ValueError(f"Unknown solver {method}")
    if x0 is None:
        raise ValueError(f"x0 must not be None for {method}")
    if method == "halley" and (fprime is None or fprime2 is None):
        raise ValueError(f"{'fprime' if fprime is None else 'fprime2'} must be specified for {method}")
    if "xtol" in given:
        given["tol"] = given.pop("xtol")
    slope = None if method == "secant" else fprime or _difference(f)
    return newton(f, x0, slope, args, fprime2=fprime2 if method == "halley" else None,
                  x1=x1 if method == "secant" else None, full_output=True, disp=False, **given)[1]


def _apart(f: Callable[..., Any], fprime: Any, fprime2: Any) -> tuple[Any, Any, Any]:
    """The function and its derivatives, where one function gives them all (``fprime=True``)."""
    both = fprime2 is not None and not callable(fprime2)
    if (both and fprime2) or (fprime is not None and not callable(fprime) and fprime):
        part = lambda i: lambda *given: f(*given)[i]
        return part(0), part(1), part(2) if both and fprime2 else None if both else fprime2
    return f, fprime if callable(fprime) else None, fprime2 if callable(fprime2) else None


def _difference(f: Callable[..., Any]) -> Callable[..., Any]:
    """The slope that SciPy takes where none is given: of the chord to a point nearby."""
    def slope(x: Any, *args: Any) -> Any:
        there = x + np.finfo(float).eps ** 0.5 * np.where(x >= 0, 1.0, -1.0) * np.maximum(1.0, np.abs(x))
        return (f(there, *args) - f(x, *args)) / (there - x)
    return slope
