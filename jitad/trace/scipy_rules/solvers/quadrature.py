"""Integrals of functions: `quad` and those that are made of it.

Intervals are bisected where the error is largest, as QUADPACK does, until the sum of the errors is within the tolerance
(Piessens, de Doncker-Kapenga, Ueberhuber, Kahaner, QUADPACK, 1983); an interval is integrated by the Gauss-Kronrod rule
of 21 points. A finite range is bent before, so that square roots and their inverses at its ends are smooth; an infinite
one is mapped to (0, 1]. All is a loop of the compiled code around the recorded function. The derivative is that of the
rule on the intervals that were chosen, by parameters and limits: the integral of the derivative, and the values at the
limits. It runs along (`jitad.passes.differentiate.forwards`): once more, with as many tangents as there are inputs.
Where an integrand jumps, the place must not move with what is differentiated: that has no part in the integral of the
derivative. Make two integrals of it, with the place as a limit.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jitad.primitives.scan import loop
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.dispatch import plain, refused, stopped
from jitad.trace.loop_body import Body
from jitad.trace.scipy_rules.classes import this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, forwarded, repeat
from jitad.trace.substitutes import substitute

__all__ = ["GAUSS", "KRONROD", "POINTS"]

# Kronrod's points of [0, 1] with the weights of 21 points, and Gauss's weights of 10 at every second one.
_X = [0.995657163025808081, 0.973906528517171720, 0.930157491355708226, 0.865063366688984511, 0.780817726586416897,
      0.679409568299024406, 0.562757134668604683, 0.433395394129247191, 0.294392862701460198, 0.148874338981631211]
_K = [0.0116946388673718743, 0.0325581623079647275, 0.0547558965743519960, 0.0750396748109199528, 0.0931254545836976055,
      0.109387158802297642, 0.123491976262065851, 0.134709217311473326, 0.142775938577060081, 0.147739104901338491]
_G = [0.0666713443086881376, 0.149451349150580593, 0.219086362515982044, 0.269266719309996355, 0.295524224714752870]
POINTS = np.array([*_X, 0.0, *[-x for x in _X[::-1]]])
KRONROD = np.array([*_K, 0.149445554002916906, *_K[::-1]])
GAUSS = np.zeros(21)
GAUSS[1:10:2], GAUSS[11:20:2] = _G, _G[::-1]
INTERVALS = 200              # that quad_vec has memory for, where no limit is given
_EPS = np.finfo(float).eps


def _both_halves(f: Callable[[Any], Any], low: Any, high: Any, shape: tuple[int, ...]) -> list[tuple[Any, Any, Any]]:
    """For each half of the interval the integral, its error, and the integral of the absolute value."""
    recorder = this_recorder()
    sides = np.repeat([0.0, 1.0], 21)
    half = (high - low) / 4.0
    body = Body(recorder, 42)
    sums = [body.carry(Aval(shape, np.dtype(float)), f"sum {i}") for i in range(6)]
    x, side, k, g = (body.element(Value(recorder, floats(v).number), n) for n, v in (
        ("x", np.tile(POINTS, 2)), ("side", sides), ("k", np.tile(KRONROD, 2)), ("g", np.tile(GAUSS, 2))))
    with recorder.inside():
        value = f(low + half * (1.0 + 2.0 * side + x))
        new = [s + value_ * weight * share for share, three in ((1.0 - side, sums[:3]), (side, sums[3:]))
               for s, value_, weight in zip(three, (value, value, np.abs(value)), (k, g, k), strict=True)]
    with recorder.plain():
        tape, reads = body.close([Value(recorder, v.number) for v in new])
        zero = Value(recorder, floats(np.zeros(shape)).number)
        finals, _ = loop(recorder, tape, [zero] * 6, body.scanned, reads, 42)
    ends = [half * recorder.value(v.number) for v in finals]
    return [_judged(*ends[:3]), _judged(*ends[3:])]


def _judged(kronrod: Any, gauss: Any, absolute: Any) -> tuple[Any, Any, Any]:
    """With the error that the two rules tell: their difference, which is that of the lesser rule."""
    return kronrod, stopped(_size(kronrod - gauss)), stopped(_size(absolute))


def _size(x: Any) -> Any:
    return np.sqrt(np.sum(x * x)) if x.ndim else np.abs(x)


def _adaptive(f: Callable[[Any], Any], shape: tuple[int, ...], tolerances: tuple[Any, Any], limit: int) -> Any:
    """The integral of `f` from 0 to 1, its error, and whether that is within the tolerances, in one vector."""
    absolute, relative = tolerances
    limit = max(limit, 2)                                # the first step makes two
    places, column = np.arange(limit), (limit,) + (1,) * len(shape)
    none = floats(np.zeros(limit))

    def within(values: Any, errors: Any, sizes: Any) -> Any:
        error = np.sum(errors)
        return (error <= np.maximum(absolute, relative * _size(np.sum(values, axis=0)))) | (
            error <= 50 * _EPS * np.sum(sizes))

    def step(count: Any, lows: Any, highs: Any, values: Any, errors: Any, sizes: Any) -> tuple[Any, list[Any]]:
        worst = np.argmax(errors)
        low, high = lows[worst], highs[worst]
        left, right = _both_halves(f, low, high, shape)
        here, there, middle = places == worst, places == count, (low + high) / 2.0
        put = lambda old, a, b, at: np.where(at(here), a, np.where(at(there), b, old))
        flat, tall = (lambda m: m), (lambda m: m.reshape(column))
        state = [count + 1, put(lows, low, middle, flat), put(highs, middle, high, flat),
                 put(values, left[0], right[0], tall), put(errors, left[1], right[1], flat),
                 put(sizes, left[2], right[2], flat)]
        return ~within(*state[3:]) & (count + 1 < limit), state

    first = np.where(places == 0, 1.0, none)
    start = [floats(0.0).astype(int) + 1, none, first, floats(np.zeros((limit, *shape))), np.where(
        places == 0, np.inf, none), none]
    _, _, _, values, errors, sizes = repeat(floats(0.0) == 0.0, start, step, stop=False)
    fine = np.where(within(values, errors, sizes), 1.0, 0.0)
    return np.concatenate([np.sum(values, axis=0).reshape(-1), np.sum(errors).reshape(1), fine.reshape(1)])


# --- ranges -------------------------------------------------------------------------------------------

def _is_infinite(x: Any) -> float:
    """1 or -1 for an infinite limit, which must be a plain number."""
    x = plain(x)
    return 0.0 if isinstance(x, Value) or not np.isinf(x) else float(np.sign(x))


def _mapped(f: Callable[[Any], Any], a: Any, b: Any, infinite: tuple[float, float]) -> Callable[[Any], Any]:
    """The integrand over (0, 1] that has the integral of `f` from `a` to `b`."""
    if infinite == (0.0, 0.0):
        return lambda u: f(a + (b - a) * (u * u * (3.0 - 2.0 * u))) * (6.0 * u * (1.0 - u) * (b - a))
    if all(infinite):
        if infinite[0] == infinite[1]:
            return lambda u: f(0.0 * u) * 0.0
        sign = infinite[1]
        return lambda u: sign * (f((1.0 - u) / u) + f(-(1.0 - u) / u)) / (u * u)
    if infinite[1]:
        sign = infinite[1]
        return lambda u: sign * f(a + sign * (1.0 - u) / u) / (u * u)
    sign = infinite[0]
    return lambda u: -sign * f(b + sign * (1.0 - u) / u) / (u * u)


def _integrated(callback: SolverCallback, a: Any, b: Any, shape: tuple[int, ...], tolerances: tuple[Any, Any],
                limit: int) -> tuple[Any, Any]:
    """The integral and its error."""
    from scipy.integrate import IntegrationWarning

    recorder = this_recorder()
    infinite = _is_infinite(a), _is_infinite(b)
    ends = [floats(0.0 if i else x) for x, i in zip((a, b), infinite, strict=True)]
    found = forwarded(lambda low, high: _adaptive(_mapped(callback, low, high, infinite), shape, tolerances, limit),
                      a=ends[0], b=ends[1])
    fine = found[-1] > 0
    if recorder.knows(fine.number) and not bool(fine):
        warnings.warn(f"{callback.name} has not reached its tolerance with {limit} intervals; the integrand may "
                      "oscillate, or be singular within the range, where points= or two integrals help",
                      IntegrationWarning, stacklevel=2)
    return found[:-2].reshape(shape) if shape else found[0], found[-2]


@substitute("scipy.integrate", "quad", calls=True)
def quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), full_output: int = 0, epsabs: float = 1.49e-8,
         epsrel: float = 1.49e-8, limit: int = 50, points: Any = None, weight: Any = None, wvar: Any = None,
         wopts: Any = None, maxp1: int = 50, limlst: int = 50, complex_func: bool = False) -> Any:
    name = "scipy.integrate.quad"
    for given, what in ((full_output, "full_output"), (weight, "weight="), (complex_func, "complex_func")):
        if given:
            raise refused(this_recorder(), f"{name} with {what}", "leave it out, and write the weight in the integrand")
    callback = SolverCallback(func, args, name)
    if points is None:
        return _integrated(callback, a, b, (), (epsabs, epsrel), limit)
    ends = [a, *sorted(float(p) for p in np.ravel(points)), b]
    parts = [_integrated(callback, low, high, (), (epsabs / (len(ends) - 1), epsrel), limit)
             for low, high in pairwise(ends)]
    return sum(p[0] for p in parts), sum(p[1] for p in parts)


@substitute("scipy.integrate", "quad_vec", calls=True)
def quad_vec(f: Callable[..., Any], a: Any, b: Any, epsabs: float = 1e-200, epsrel: float = 1e-8, norm: str = "2",
             cache_size: float = 100e6, limit: float = 10000, workers: int = 1, points: Any = None,
             quadrature: Any = None, full_output: bool = False, *, args: Any = ()) -> Any:
    name = "scipy.integrate.quad_vec"
    for given, what in ((full_output, "full_output"), (points is not None, "points="), (norm != "2", "norm=")):
        if given:
            raise refused(this_recorder(), f"{name} with {what}", "leave it out")
    callback = SolverCallback(f, args, name)
    finite = [0.0 if _is_infinite(x) else x for x in (a, b)]
    sample = callback((floats(finite[0]) + floats(finite[1])) / 2.0)
    return _integrated(callback, a, b, sample.shape, (epsabs, epsrel), INTERVALS if limit == 10000 else int(limit))


def _nested(func: Callable[..., Any], ranges: Sequence[Any], args: Any, tolerances: tuple[float, float],
            name: str) -> tuple[Any, Any]:
    """The integral over the last range of those over the ranges before; `func` takes the first variable first, and a
    range may be a function of the variables after its own."""
    def over(depth: int, known: tuple[Any, ...]) -> tuple[Any, Any]:
        given = ranges[depth]
        low, high = given(*known) if callable(given) else given
        inner = (lambda x: func(x, *known, *args)) if not depth else lambda x: over(depth - 1, (x, *known))[0]
        return _integrated(SolverCallback(inner, (), name), low, high, (), tolerances, 50)
    return over(len(ranges) - 1, ())


def _limits(low: Any, high: Any) -> Callable[..., Any]:
    end = lambda limit, known: limit(*known[::-1]) if callable(limit) else limit
    return lambda *known: (end(low, known), end(high, known))


@substitute("scipy.integrate", "dblquad", calls=True)
def dblquad(func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8,
            epsrel: float = 1.49e-8) -> Any:
    return _nested(func, [_limits(gfun, hfun), (a, b)], args, (epsabs, epsrel), "scipy.integrate.dblquad")


@substitute("scipy.integrate", "tplquad", calls=True)
def tplquad(func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
            epsabs: float = 1.49e-8, epsrel: float = 1.49e-8) -> Any:
    return _nested(func, [_limits(qfun, rfun), _limits(gfun, hfun), (a, b)], args, (epsabs, epsrel),
                   "scipy.integrate.tplquad")


@substitute("scipy.integrate", "nquad", calls=True)
def nquad(func: Callable[..., Any], ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False) -> Any:
    name = "scipy.integrate.nquad"
    if full_output:
        raise refused(this_recorder(), f"{name} with full_output", "leave it out")
    known = {"epsabs", "epsrel"}
    if opts is not None and (not isinstance(opts, dict) or set(opts) - known):
        raise refused(this_recorder(), f"{name} with other options than epsabs and epsrel for all", "leave them out")
    tolerances = tuple((opts or {}).get(n, 1.49e-8) for n in ("epsabs", "epsrel"))
    return _nested(func, list(ranges), args or (), tolerances, name)                          # type: ignore[arg-type]
