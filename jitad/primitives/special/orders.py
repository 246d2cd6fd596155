"""Derivatives of Bessel functions by their order, and the zeta functions with the derivative by their exponent.

The derivatives of the modified functions are their values, which SciPy computes, times means of logarithms. Largest
errors against mpmath: `kve_order` 3e-14 and `ive_order` 5e-12 of the derivative, the latter for orders above 1e-3,
`jv_order` and `yv_order` 3e-13 of the function's size nearby (the second derivative 3e-11), `zeta_slope` 1e-13.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jitad.primitives.numeric import ROUTINES, Numeric, gauss_legendre, least, routine
from jitad.primitives.special.incomplete import DEPTH

INF, NAN = math.inf, math.nan
K_NODES = 64


# --- K: DLMF 10.32.9 -----------------------------------------------------------------------------

def _kve_order(m: Numeric, v: Any, x: Any, n: int) -> Any:
    """The n-th derivative of ``exp(x) K_v(x)`` by v: K times the mean of ``t**n`` under ``cosh(v t) exp(-x cosh t)``
    for t > 0, with sinh for cosh if n is odd, over the two sides of the peak at ``sinh t = v / x``."""
    inside = (x > 0.0) & (x < INF) & (abs(v) < INF)
    z, order = m.select(inside, x, 1.0), m.select(inside, abs(v), 1.0)
    peak = m.call("arcsinh", order / z)
    root = m.call("hypot", order, z)
    c = 2.0 * DEPTH / (root + order)
    above = least(m, m.call("sqrt", 2.0 * c), m.call("log", 2.0 + 2.0 * c))
    c = DEPTH / (z * (z / (root + order)))                             # z**2 / (root + order) is root - order
    below = least(m, m.call("sqrt", 2.0 * c), m.call("log", 2.0 + 2.0 * c))
    small = m.select(order < 1e-3, 1e-3, order)
    linear = (DEPTH + m.call("sqrt", DEPTH * DEPTH + 8.0 * DEPTH * small)) / (2.0 * small)
    below = least(m, least(m, below, m.select(order < 1e-3, INF, linear)), peak)
    low, high = peak - below, peak + above
    top = order * peak - z * (m.call("cosh", peak) - 1.0)

    def part(start: Any, end: Any) -> Callable[[Any, Any], Any]:
        def terms(node: Any, weight: Any) -> Any:
            t = start + (end - start) * node
            half = m.call("sinh", 0.5 * t)
            density = weight * (end - start) * m.call("exp", order * t - 2.0 * z * (half * half) - top)
            sinh = -m.call("expm1", -2.0 * order * t)
            power = t
            for _ in range(n - 1):
                power = power * t
            return density * (2.0 - sinh), density * (sinh if n % 2 else 2.0 - sinh) * power
        return terms

    columns = gauss_legendre(K_NODES)
    total, mean = m.total(columns, part(low, peak))
    further, more = m.total(columns, part(peak, high))
    ratio = (mean + more) / (total + further)
    if n % 2:
        ratio = m.select(v < 0.0, -ratio, ratio)
    return m.select(inside, m.call("special_kve", order, z) * ratio, m.select(m.equal(x, INF), 0.0, NAN))


def _named(name: str, function: Callable[..., Any]) -> None:
    ROUTINES[f"special_{name}"] = function


for _n in (1, 2, 3):
    _named(f"kve_order{_n}", lambda m, v, x, n=_n: _kve_order(m, v, x, n))


# --- I: DLMF 10.25.2 and 10.40.1 -----------------------------------------------------------------

@routine
def ive_order1(m: Numeric, v: Any, x: Any) -> Any:
    """The derivative of ``exp(-x) I_v(x)`` by v; DLMF 10.38.1, for negative v by 10.27.2."""
    inside = (x > 0.0) & (x < INF) & (abs(v) < INF)
    z, order = m.select(inside, x, 1.0), m.select(inside, abs(v), 1.0)
    far = (z > 50.0) & (z > 2.0 * order * order)
    slope = m.call("special_ive", order, z) * m.select(far, _iv_far(m, order, z, far), _iv_series(m, order, z, ~far))
    scale = m.call("exp", -2.0 * z)
    angle = math.pi * (order - 2.0 * m.call("rint", 0.5 * order))
    k, k_slope = m.call("special_kve", order, z), m.call("special_kve_order1", order, z)
    below = scale * (2.0 * m.call("cos", angle) * k + (2.0 / math.pi) * m.call("sin", angle) * k_slope)
    at_zero = -scale * k                                              # exactly; the mean has absolute errors alone
    slope = m.select(v < 0.0, -(slope + below), m.select(m.equal(v, 0.0), at_zero, slope))
    return m.select(inside, slope, m.select(m.equal(x, INF) | (m.equal(x, 0.0) & (v > 0.0)), 0.0, NAN))


def _iv_series(m: Numeric, v: Any, x: Any, use: Any) -> Any:
    """``log(x / 2)`` less the mean of ``digamma(v + k + 1)`` over the terms of the power series, from the largest."""
    x, v = m.select(use, x, 1.0), m.select(use, v, 1.0)
    square = 0.25 * x * x
    start = m.call("floor", square / (0.5 * v + m.call("sqrt", 0.25 * v * v + square)))
    first = m.call("log", 0.5 * x) - m.call("digamma", v + start + 1.0)
    one = 0.0 * x + 1.0

    def up(k: Any, term: Any, slope: Any, total: Any, mean: Any) -> Any:
        after = k + 1.0
        term, slope = term * square / (after * (v + after)), slope - 1.0 / (v + after)
        return after, term, slope, total + term, mean + term * slope

    def down(k: Any, term: Any, slope: Any, total: Any, mean: Any) -> Any:
        term, slope = term * (k * (v + k)) / square, slope + 1.0 / (v + k)
        return k - 1.0, term, slope, total + term, mean + term * slope

    _, _, _, total, mean = m.loop((start, one, first, one, first),
                                  lambda k, term, slope, total, mean: use & (term > 1e-18 * total), up)
    _, _, _, total, mean = m.loop((start, one, first, total, mean),
                                  lambda k, term, slope, total, mean: use & (k > 0.5) & (term > 1e-18 * total), down)
    return mean / total


def _iv_far(m: Numeric, v: Any, x: Any, use: Any) -> Any:
    """The asymptotic series of ``a_k(v) / (-x)**k``."""
    x, v = m.select(use, x, 100.0), m.select(use, v, 1.0)
    square = 4.0 * v * v
    one = 0.0 * x + 1.0

    def step(k: Any, term: Any, slope: Any, total: Any, mean: Any) -> Any:
        factor = -(square - (2.0 * k + 1.0) * (2.0 * k + 1.0)) / (8.0 * (k + 1.0) * x)
        by_v = -v / ((k + 1.0) * x)
        term, slope = term * factor, slope * factor + term * by_v
        return k + 1.0, term, slope, total + term, mean + slope

    found = m.loop((0.0 * x, one, 0.0 * x, one, 0.0 * x), lambda k, term, slope, total, mean:
                   use & (k < 40.0) & (abs(term) + abs(slope) > 1e-20), step)
    return found[4] / found[3]


# --- J and Y: differences ------------------------------------------------------------------------
FIRST = (6 / 7, -15 / 56, 5 / 63, -1 / 56, 1 / 385, -1 / 5544)
SECOND = (12 / 7, -15 / 56, 10 / 189, -1 / 112, 2 / 1925, -1 / 16632)
"""Central differences of the twelfth order for the first and second derivative, of the pairs at k steps."""


def _differences(m: Numeric, name: str, v: Any, x: Any, n: int) -> Any:
    """Both functions are entire in the order, and vary by a factor per unit of it that sets the step."""
    inside = (x > 0.0) & (x < INF) & (abs(v) < INF)
    z, order = m.select(inside, x, 1.0), m.select(inside, v, 1.0)
    h = 0.125 / (1.0 + m.call("log1p", 2.0 * (abs(order) + 1.0) / z))
    h = (order + h) - order
    total = 0.0 * z if n == 1 else m.call(name, order, z) * (-2.0 * sum(SECOND))
    for k, c in enumerate(FIRST if n == 1 else SECOND, 1):
        after, before = m.call(name, order + h * float(k), z), m.call(name, order - h * float(k), z)
        total = total + c * (after - before if n == 1 else after + before)
    return m.select(inside, total / h if n == 1 else total / (h * h), NAN)


for _n in (1, 2):
    _named(f"jv_order{_n}", lambda m, v, x, n=_n: _differences(m, "special_jv", v, x, n))
    _named(f"yv_order{_n}", lambda m, v, x, n=_n: _differences(m, "special_yv", v, x, n))


# --- zeta: Euler and Maclaurin, DLMF 25.11.5 -------------------------------------------------------
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _euler_maclaurin(m: Numeric, s: Any, q: Any, use: Any) -> tuple[Any, Any]:
    """zeta(s, q) and its derivative by s; s > -2, not 0 or 1."""
    s, q = m.select(use, s, 2.0), m.select(use, q, 1.0)
    bound = 8.0 + s

    def step(z: Any, total: Any, slope: Any, term: Any) -> Any:
        term = m.call("pow", z, -s)
        return z + 1.0, total + term, slope - term * m.call("log", abs(z)), term

    z, total, slope, _ = m.loop((q, 0.0 * s, 0.0 * s, 0.0 * s + 1.0), lambda z, total, slope, term:
                                use & (z < bound) & ((z < 1.0) | (abs(term) > 1e-22 * abs(total))), step)
    power, log, inverse = m.call("pow", z, -s), m.call("log", z), 1.0 / (s - 1.0)
    value, head = power * (z * inverse + 0.5), slope
    slope = slope - value * log - power * z * inverse * inverse
    u = 1.0 / z
    rising, log_rising = s * u * power, 1.0 / s           # (s)_(2j-1) z**(-s-2j+1), and its logarithm's slope
    for j, bernoulli in enumerate(BERNOULLI, 1):
        term = rising * (bernoulli / math.factorial(2 * j))
        value = value + term
        slope = slope + term * (log_rising - log)
        first, second = s + (2.0 * j - 1.0), s + 2.0 * j
        rising = rising * (first * second) * (u * u)
        log_rising = log_rising + 1.0 / first + 1.0 / second
    gone = m.equal(power, 0.0)                                         # then the powers of s may overflow
    return total + m.select(gone, 0.0, value), m.select(gone, head, slope)


@routine
def zeta(m: Numeric, s: Any, q: Any) -> Any:
    """Hurwitz's zeta(s, q) for s > 1, with SciPy's values elsewhere."""
    pole = (q <= 0.0) & m.equal(q, m.call("floor", q))
    real = (q > 0.0) | m.equal(s, m.call("floor", s))
    inside = (s > 1.0) & ~pole & real & (s < INF)
    value, _ = _euler_maclaurin(m, s, m.select(q > 1e9, 1.0, q), inside)
    far = (1.0 / (s - 1.0) + 0.5 / q) * m.call("pow", q, 1.0 - s)
    value = m.select(inside, m.select(q > 1e9, far, value), NAN)
    value = m.select(m.equal(s, INF), m.select(q < 1.0, INF, m.select(m.equal(q, 1.0), 1.0, NAN)), value)
    value = m.select(m.equal(q, INF) & (s > 1.0), 0.0, value)
    return m.select(m.equal(s, 1.0), INF, m.select(s < 1.0, NAN, m.select(pole, INF, value)))


@routine
def zeta_slope(m: Numeric, s: Any, q: Any) -> Any:
    """The derivative of zeta(s, q) by s, for q > 0 and s > 1."""
    inside = (s > 1.0) & (q > 0.0) & (s < INF) & (q < INF)
    return m.select(inside, _euler_maclaurin(m, s, q, inside)[1], NAN)


def _riemann(m: Numeric, s: Any) -> tuple[Any, Any]:
    """Riemann's zeta and its derivative: below -0.1 by the functional equation DLMF 25.4.1."""
    low = s < -0.1
    t = m.select(low, 1.0 - s, m.select(abs(s) < 1e-30, 1e-30, s))
    inside = (t < INF) & ~m.equal(t, 1.0)
    value, slope = _euler_maclaurin(m, t, 0.0 * t + 1.0, inside)
    half = 0.5 * (s - 4.0 * m.call("rint", 0.25 * s))                 # sin(pi s / 2) has the period 4
    sine, cosine = m.call("sin", math.pi * half), m.call("cos", math.pi * half)
    even = m.equal(half, m.call("rint", half))
    sine = m.select(even, 0.0, sine)
    factor = 2.0 * m.call("pow", 0.0 * t + 2.0 * math.pi, -t) * m.call("special_gamma", t)
    by_low = 0.5 * math.pi * cosine * value + sine * (
        (math.log(2.0 * math.pi) - m.call("digamma", t)) * value - slope)
    return m.select(low, m.select(even, 0.0, factor * sine * value), value), m.select(low, factor * by_low, slope)


@routine
def riemann(m: Numeric, s: Any) -> Any:
    value = _riemann(m, s)[0]
    value = m.select(m.equal(s, 0.0), -0.5, m.select(m.equal(s, 1.0), INF, value))
    return m.select(m.equal(s, INF), 1.0, m.select(m.equal(s, s) & (s > -INF), value, NAN))


@routine
def riemann_slope(m: Numeric, s: Any) -> Any:
    """The derivative of Riemann's zeta."""
    slope = _riemann(m, s)[1]
    slope = m.select(m.equal(s, 0.0), -0.5 * math.log(2.0 * math.pi), slope)
    return m.select(m.equal(s, 1.0) | ~(abs(s) < INF), NAN, slope)


@routine
def elliptic_d(m: Numeric, x: Any) -> Any:
    """Carlson's ``R_D(0, 1 - x, 1) / 3``."""
    return m.call("special_elliprd", 0.0 * x, 1.0 - x, 0.0 * x + 1.0) / 3.0
