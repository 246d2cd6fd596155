"""Integrals of functions: `quad` and those that are made of it.

Intervals are bisected where the error is largest, as QUADPACK does, until the sum of the errors is within the tolerance
(Piessens, de Doncker-Kapenga, Ueberhuber, Kahaner, QUADPACK, 1983); an interval is integrated by the Gauss-Kronrod rule
of 21 points. A finite range is bent before, so that square roots and their inverses at its ends are smooth; an infinite
one is mapped to (0, 1]. All is a loop of the compiled code around the recorded function. The derivative is that of the
rule on the intervals that were chosen, by parameters and limits: the integral of the derivative, and the values at the
limits. It runs along (`jitad.passes.differentiate.forwards`): once more, with as many tangents as there are inputs.
A kink that moves is a jump in the derivative, whose error is that of the value over the width h of the interval around
it: so in the second run intervals are bisected until that, too, is within ten times the tolerance (a square root that
moves, as ``abs(x - q)**0.5``, until the intervals are as many as `limit`: some 1e-7).
Where an integrand jumps, the place must not move with what is differentiated: that has no part in the integral of the
derivative. Make two integrals of it, with the place as a limit.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jitad.primitives.custom import MOVED
from jitad.primitives.scan import loop
from jitad.tape.builder import Value
from jitad.tape.types import Aval
from jitad.trace.dispatch import as_value, plain, refused, stopped
from jitad.trace.loop_body import Body
from jitad.trace.scipy_rules.classes import this_recorder
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, forwarded, repeat
from jitad.trace.scipy_rules.solvers.stiff import Equations
from jitad.trace.substitutes import substitute

__all__ = ["GAUSS", "KRONROD", "POINTS", "Unsaid"]

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
INTERVALS = 200              # that quad_vec has memory for, where no limit is given; at least, of waves
SURE, HALF_WAVES = 16, 24    # half waves before a series of them begins, and of which it is made
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


def _adaptive(f: Callable[[Any], Any], shape: tuple[int, ...], tolerances: tuple[Any, Any], limit: int,
              moved: Any) -> Any:
    """The integral of `f` from 0 to 1, its error, and whether that is within the tolerances, in one vector. Where its
    derivative is computed, `moved` is 1."""
    absolute, relative = tolerances
    limit = max(limit, 2)                                # the first step makes two
    places, column = np.arange(limit), (limit,) + (1,) * len(shape)
    none = floats(np.zeros(limit))

    def within(values: Any, errors: Any, sizes: Any, worst: Any) -> Any:
        error, size = np.sum(errors), np.sum(sizes)
        most = np.maximum(absolute, relative * _size(np.sum(values, axis=0)))
        return ((error <= most) & (worst <= 10.0 * most)) | (np.maximum(error, worst) <= 50 * _EPS * size)

    def of_slopes(lows: Any, highs: Any, errors: Any) -> Any:
        """The errors of the derivative."""
        return np.where((moved > 0) & (highs > lows), errors / np.where(highs > lows, highs - lows, 1.0), 0.0)

    def step(count: Any, lows: Any, highs: Any, values: Any, errors: Any, sizes: Any) -> tuple[Any, list[Any]]:
        worst = np.argmax(np.maximum(errors, of_slopes(lows, highs, errors)))
        low, high = lows[worst], highs[worst]
        left, right = _both_halves(f, low, high, shape)
        here, there, middle = places == worst, places == count, (low + high) / 2.0
        put = lambda old, a, b, at: np.where(at(here), a, np.where(at(there), b, old))
        flat, tall = (lambda m: m), (lambda m: m.reshape(column))
        state = [count + 1, put(lows, low, middle, flat), put(highs, middle, high, flat),
                 put(values, left[0], right[0], tall), put(errors, left[1], right[1], flat),
                 put(sizes, left[2], right[2], flat)]
        most = np.max(of_slopes(state[1], state[2], state[4]))
        return ~within(state[3], state[4], state[5], most) & (count + 1 < limit), state

    first = np.where(places == 0, 1.0, none)
    start = [floats(0.0).astype(int) + 1, none, first, floats(np.zeros((limit, *shape))), np.where(
        places == 0, np.inf, none), none]
    _, _, _, values, errors, sizes = repeat(floats(0.0) == 0.0, start, step, stop=False)
    fine = np.where(within(values, errors, sizes, floats(0.0)), 1.0, 0.0)
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


def _expected(fine: Any, warning: str) -> None:
    from scipy.integrate import IntegrationWarning

    if this_recorder().knows(fine.number) and not bool(fine):
        warnings.warn(warning, IntegrationWarning, stacklevel=2)


def _integrated(callback: SolverCallback, a: Any, b: Any, shape: tuple[int, ...], tolerances: tuple[Any, Any],
                limit: int) -> tuple[Any, Any]:
    """The integral and its error."""
    infinite = _is_infinite(a), _is_infinite(b)
    ends = [floats(0.0 if i else x) for x, i in zip((a, b), infinite, strict=True)]
    found = forwarded(lambda low, high, moved: _adaptive(_mapped(callback, low, high, infinite), shape, tolerances,
                                                         limit, moved),
                      a=ends[0], b=ends[1], **{MOVED: as_value(this_recorder(), 0)})
    _expected(found[-1] > 0, f"{callback.name} has not reached its tolerance with {limit} intervals; the integrand may "
                             "oscillate, or be singular within the range, where points= or two integrals help")
    return found[:-2].reshape(shape) if shape else found[0], found[-2]


# --- weights ------------------------------------------------------------------------------------------

def _weighted(f: SolverCallback, a: Any, b: Any, weight: tuple[str, Any], tolerances: tuple[Any, Any],
              limit: int) -> tuple[Any, Any]:
    """The integral of `f` with a factor that is named."""
    kind, given = weight
    infinite = _is_infinite(a), _is_infinite(b)
    if kind in ("cos", "sin"):
        return _oscillating(f, (a, b), infinite, getattr(np, kind), given, tolerances, limit)
    if kind not in ("alg", "alg-loga", "alg-logb", "alg-log", "cauchy"):
        raise ValueError(f"{kind} not a recognized weighting function.")
    if any(infinite):
        raise ValueError("Cannot integrate with this weight over an infinite interval.")
    a, b = floats(a), floats(b)
    low, high, sign = np.minimum(a, b), np.maximum(a, b), np.where(a > b, -1.0, 1.0)
    bent = _principal(f, low, high, floats(given)) if kind == "cauchy" else _powers(
        f, low, high, [floats(g) for g in given], kind)
    value, error = _integrated(Equations(bent, f.name), 0.0, 1.0, (), tolerances, limit)
    return sign * value, error


def _powers(f: Callable[[Any], Any], low: Any, high: Any, exponents: Sequence[Any],
            kind: str) -> Callable[[Any], Any]:
    """The integrand over (0, 1] that has the integral of ``f(x) (x - low)**p (high - x)**q``, with logarithms of both
    factors as `kind` says. Both halves are run through from their ends, as powers of u by which each factor times dx
    is u**3 at least."""
    half, (p, q) = (high - low) / 2.0, exponents

    def of_half(u: Any, at_low: bool) -> Any:
        mine, other = (p, q) if at_low else (q, p)
        power = np.maximum(4.0 / (1.0 + mine), 2.0)
        away = half * u**power
        rest = (high - low) - away
        value = f(low + away if at_low else high - away)
        value = value * half**(1.0 + mine) * power * u**(power * (1.0 + mine) - 1.0) * rest**other
        near, far = np.log(half) + power * np.log(u), np.log(rest)
        for name, log in (("alg-loga", near if at_low else far), ("alg-logb", far if at_low else near)):
            value = value * log if kind in (name, "alg-log") else value
        return value
    return lambda u: of_half(u, True) + of_half(u, False)


def _principal(f: Callable[[Any], Any], low: Any, high: Any, pole: Any) -> Callable[[Any], Any]:
    """The integrand over (0, 1] that has the principal value of the integral of ``f(x) / (x - pole)``: around the pole
    of the differences of both sides, and of what one side has more."""
    inside = (pole > low) & (pole < high)
    centre = np.where(inside, pole, low)
    reach, left = np.where(inside, np.minimum(pole - low, high - pole), 0.0), pole - low > high - pole
    first, last = np.where(inside & ~left, centre + reach, low), np.where(inside & left, centre - reach, high)

    def bent(u: Any) -> Any:
        x = first + (last - first) * u
        both = np.where(inside, (f(centre + reach * u) - f(centre - reach * u)) / u, 0.0)
        return both + (last - first) * f(x) / (x - pole)
    return bent


def _alternating(n: int) -> np.ndarray:
    """By which the first n terms of an alternating series add up to its limit, but for 5.8**-n of it (Cohen, Rodriguez
    Villegas, Zagier, Convergence acceleration of alternating series, Experimental Mathematics 9, 2000, algorithm 1)."""
    d = (3.0 + 8.0**0.5) ** n
    d = (d + 1.0 / d) / 2.0
    b, c, shares = -1.0, -d, []
    for k in range(n):
        c = b - c
        shares.append((-1.0) ** k * c / d)
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1.0))
    return np.array(shares)


def _oscillating(f: SolverCallback, ends: tuple[Any, Any], infinite: tuple[float, float], wave: Any, frequency: Any,
                 tolerances: tuple[Any, Any], limit: int) -> tuple[Any, Any]:
    """The integral of ``f(x) wave(frequency x)``. To infinity: over the first half waves as it is, over the others as
    an alternating series."""
    (a, b), w = ends, floats(frequency)
    whole = Equations(lambda x: f(x) * wave(w * x), f.name)
    most = max(limit, INTERVALS)
    if not any(infinite):
        return _integrated(whole, a, b, (), tolerances, most)
    if all(infinite):
        raise ValueError("Cannot integrate with this weight from -Inf to +Inf.")
    side = 1.0 if infinite[1] else -1.0
    if infinite[0] > 0 or infinite[1] < 0:
        raise refused(this_recorder(), f"{f.name} with this weight and limits in this order", "exchange them")
    start, turn = side * floats(a if infinite[1] else b), 0.5 if wave is np.cos else 0.0
    width = np.pi / np.abs(w)
    zero = width * (np.ceil(start / width - turn) + turn + SURE)            # of the wave, after some half waves
    up = Equations(lambda y: whole(side * y), f.name)
    first = _integrated(up, start, zero, (), (tolerances[0] / 2.0, tolerances[1]), most)
    value, less, error = forwarded(lambda at, size: _series(up, at, size), at=zero, size=width)
    total, error = first[0] + value, first[1] + stopped(np.abs(value - less) + np.abs(error))
    _expected(~(error > np.maximum(tolerances[0], tolerances[1] * np.abs(total))), f"{f.name} has not reached its "
              "tolerance; the function may not fall off evenly, or vary within half waves: integrate it in parts")
    return total, error


def _series(f: Callable[[Any], Any], start: Any, width: Any) -> Any:
    """The sum of the integrals over all half waves from `start` on; that of fewer of them; the error of the integrals;
    by Kronrod's rule."""
    shares = [_alternating(n) for n in (HALF_WAVES, HALF_WAVES - 4)]
    shares[1] = np.append(shares[1], np.zeros(4))
    points = (np.arange(HALF_WAVES)[:, None] + (1.0 + POINTS) / 2.0).ravel()
    weights = np.stack([np.outer(s, rule).ravel() / 2.0 for s, rule in (
        (shares[0], KRONROD), (shares[1], KRONROD), (shares[0], KRONROD - GAUSS))], axis=1)
    recorder = this_recorder()
    body = Body(recorder, len(points))
    sums = body.carry(Aval((3,), np.dtype(float)), "sums")
    at, weight = (body.element(Value(recorder, floats(v).number), n) for n, v in (("at", points), ("weight", weights)))
    with recorder.inside():
        new: Any = sums + f(start + width * at) * weight
    with recorder.plain():
        tape, reads = body.close([Value(recorder, new.number)])
        zero = Value(recorder, floats(np.zeros(3)).number)
        (found,), _ = loop(recorder, tape, [zero], body.scanned, reads, len(points))
    return width * recorder.value(found.number)


# --- what is called -----------------------------------------------------------------------------------

@substitute("scipy.integrate", "quad", calls=True)
def quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), full_output: int = 0, epsabs: float = 1.49e-8,
         epsrel: float = 1.49e-8, limit: int = 50, points: Any = None, weight: Any = None, wvar: Any = None,
         wopts: Any = None, maxp1: int = 50, limlst: int = 50, complex_func: bool = False) -> Any:
    name = "scipy.integrate.quad"
    if full_output:
        return *quad(func, a, b, args, 0, epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst,
                     complex_func), Unsaid(name)
    if complex_func:
        both = [quad(lambda x, *more, part=part: part(func(x, *more)), a, b, args, 0, epsabs, epsrel, limit, points,
                     weight, wvar) for part in (np.real, np.imag)]
        return tuple(re + 1j * im for re, im in zip(*both, strict=True))
    if weight is not None:
        if points is not None:
            warnings.warn("Break points cannot be specified when using weighted integrand. Continuing, ignoring "
                          "specified points.", stacklevel=2)
        return _weighted(SolverCallback(func, args, name), a, b, (weight, wvar), (epsabs, epsrel), limit)
    return _in_parts(SolverCallback(func, args, name), a, b, (), (epsabs, epsrel), limit, points)


def _in_parts(callback: SolverCallback, a: Any, b: Any, shape: tuple[int, ...], tolerances: tuple[Any, Any],
              limit: int, points: Any) -> tuple[Any, Any]:
    """The integral and its error, of the ranges between break points."""
    if points is None:
        return _integrated(callback, a, b, shape, tolerances, limit)
    inner = np.sort(floats(points).reshape(-1))
    ends = [a, *(inner[i] for i in range(inner.shape[0])), b]
    parts = [_integrated(callback, low, high, shape, (tolerances[0] / (len(ends) - 1), tolerances[1]), limit)
             for low, high in pairwise(ends)]
    return sum(p[0] for p in parts), sum(p[1] for p in parts)


class Unsaid(dict):                                                                           # type: ignore[type-arg]
    """What QUADPACK tells of its way, which is another one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, key: Any) -> Any:
        raise refused(this_recorder(), f"what {self.name} tells with full_output", "leave it out")


@substitute("scipy.integrate", "quad_vec", calls=True)
def quad_vec(f: Callable[..., Any], a: Any, b: Any, epsabs: float = 1e-200, epsrel: float = 1e-8, norm: str = "2",
             cache_size: float = 100e6, limit: float = 10000, workers: int = 1, points: Any = None,
             quadrature: Any = None, full_output: bool = False, *, args: Any = ()) -> Any:
    name = "scipy.integrate.quad_vec"
    if full_output:
        raise refused(this_recorder(), f"{name} with full_output", "leave it out")
    if norm not in ("2", "max"):                         # the first is never less than the other
        raise ValueError("norm must be '2' or 'max'")
    callback = SolverCallback(f, args, name)
    finite = [0.0 if _is_infinite(x) else x for x in (a, b)]
    sample = callback((floats(finite[0]) + floats(finite[1])) / 2.0)
    return _in_parts(callback, a, b, sample.shape, (epsabs, epsrel), INTERVALS if limit == 10000 else int(limit),
                     points)


def _nested(func: Callable[..., Any], ranges: Sequence[Any], args: Any, options: Sequence[Any]) -> Any:
    """The integral over the last range of those over the ranges before, and its error; `func` takes the first variable
    first. Ranges, and the options of `quad` for each, may be functions of the variables after their own."""
    def over(depth: int, known: tuple[Any, ...]) -> tuple[Any, Any]:
        (low, high), how = (g(*known, *more) if callable(g) else g for g, more in (
            (ranges[depth], args), (options[depth], args)))
        inner = (lambda x: func(x, *known, *args)) if not depth else lambda x: over(depth - 1, (x, *known))[0]
        if "points" in how:                              # of a range that does not hold one, it is an end
            how = {**how, "points": np.clip(floats(how["points"]), floats(low), floats(high))}
        return quad(inner, low, high, **how)[:2]                                 # type: ignore[no-any-return]
    return over(len(ranges) - 1, ())


def _limits(low: Any, high: Any, count: int) -> Callable[..., Any]:
    """A range whose ends may be functions of the `count` variables after its own, the last one first."""
    end = lambda limit, known: limit(*known[:count][::-1]) if callable(limit) else limit
    return lambda *known: (end(low, known), end(high, known))


@substitute("scipy.integrate", "dblquad", calls=True)
def dblquad(func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8,
            epsrel: float = 1.49e-8) -> Any:
    return _nested(func, [_limits(gfun, hfun, 1), (a, b)], args, [{"epsabs": epsabs, "epsrel": epsrel}] * 2)


@substitute("scipy.integrate", "tplquad", calls=True)
def tplquad(func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
            epsabs: float = 1.49e-8, epsrel: float = 1.49e-8) -> Any:
    return _nested(func, [_limits(qfun, rfun, 2), _limits(gfun, hfun, 1), (a, b)], args,
                   [{"epsabs": epsabs, "epsrel": epsrel}] * 3)


@substitute("scipy.integrate", "nquad", calls=True)
def nquad(func: Callable[..., Any], ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False) -> Any:
    name = "scipy.integrate.nquad"
    if full_output:
        raise refused(this_recorder(), f"{name} with full_output", "leave it out")
    ranges, args = list(ranges), () if args is None else args if isinstance(args, tuple) else (args,)
    options = [{}] * len(ranges) if opts is None else list(opts) if isinstance(opts, (list, tuple)) else (
        [opts] * len(ranges))
    return _nested(func, ranges, args, options)
