"""Derivatives of the incomplete gamma and beta functions and of Student's distribution by their parameters.

Each is the value, which SciPy computes, times the derivative of its logarithm, which is a mean of logarithms over a
tail of the distribution. The tail is the one on whose side the mean has no cancellation. Largest errors relative to the
derivative, against mpmath at 30 digits and more: `gammainc_slope` 5e-13 for 1e-3 <= a <= 1e4, `betainc_slope` 2e-12
for 1e-2 <= a, b <= 1e3.
"""
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.numeric import Numeric, clip, gauss_legendre, least, polynomial, routine

NODES = 48
DEPTH = 42.0                   # exponents below which a tail is cut: exp(-42) = 6e-19
INF = math.inf


# --- incomplete gamma ----------------------------------------------------------------------------

def _gamma_series(m: Numeric, a: Any, x: Any, use: Any, order: int) -> Any:
    """Derivative over value of P by the series DLMF 8.7.1 with terms ``x**(a + n) exp(-x) / gamma(a + n + 1)``, for
    ``x < a + 1/2``, where no term has another sign."""
    x = m.select(use, x, 1.0)
    a = m.select(use, a, 1.0)
    log_x = m.call("log", x)
    first = log_x - m.call("digamma", a + 1.0)
    second = m.call("special_trigamma_positive", a + 1.0) if order == 2 else 0.0 * a

    def weight(slope: Any, curve: Any) -> Any:
        return slope if order == 1 else slope * slope - curve

    def step(n: Any, term: Any, slope: Any, curve: Any, total: Any, mean: Any) -> Any:
        next_term, part = term * x / (a + n), 1.0 / (a + n)
        next_slope, next_curve = slope - part, curve - part * part
        return (n + 1.0, next_term, next_slope, next_curve, total + next_term,
                mean + next_term * weight(next_slope, next_curve))

    one = 0.0 * x + 1.0
    found = m.loop((one, one, first, second, one, weight(first, second)),
                   lambda n, term, slope, curve, total, mean: use & (term > 1e-17 * total) & (n < 2000.0), step)
    return found[5] / found[4]


def _gamma_left(m: Numeric, a: Any, x: Any, order: int) -> Any:
    """The same as a mean over ``t = x exp(-w)``, w > 0, for ``20 <= a`` and ``x < a + 1/2``: the exponent is
    ``a w + x expm1(-w)``, at least ``(a - x) w + x w**2 / (2 + 2 w / 3)``."""
    gap = a - x
    square, linear = 2.0 / 3.0 * gap + x, 2.0 * gap - 2.0 / 3.0 * DEPTH
    end = (m.call("sqrt", linear * linear + 8.0 * DEPTH * square) - linear) / (2.0 * square)
    return _gamma_mean(m, a, x, end, -1.0, order)


def _gamma_right(m: Numeric, a: Any, x: Any, order: int) -> Any:
    """Derivative over value of Q as a mean over ``t = x exp(w)``, w > 0, for ``x > a + 1/2``: the exponent is
    ``x expm1(w) - a w``, at least ``(x - a) w + x w**2 / 2`` and ``x (exp(w) - 1 - w)``."""
    gap = x - a
    end = 2.0 * DEPTH / (gap + m.call("sqrt", gap * gap + 2.0 * DEPTH * x))
    end = least(m, end, m.call("log", 2.0 + 2.0 * DEPTH / x))
    return _gamma_mean(m, a, x, end, 1.0, order)


def _gamma_mean(m: Numeric, a: Any, x: Any, end: Any, sign: float, order: int) -> Any:
    centre = m.call("log", x) - m.call("digamma", a)
    curve = m.call("special_trigamma_positive", a) if order == 2 else 0.0

    def terms(node: Any, weight: Any) -> Any:
        w = (end * sign) * node
        density = weight * m.call("exp", a * w - x * m.call("expm1", w))
        u = centre + w
        return density, density * (u if order == 1 else u * u - curve)

    total, mean = m.total(gauss_legendre(NODES), terms)
    return mean / total


def _gammainc_slope(m: Numeric, a: Any, x: Any, order: int) -> Any:
    left = x < a + 0.5
    inside = (a > 0.0) & (x > 0.0) & (x < INF) & (a < INF)
    p = m.select(inside, clip(m, a, 1e-300, None), 1.0)
    z = m.select(inside, x, 1.0)
    series = _gamma_series(m, p, z, inside & left & (p < 20.0), order)
    below = _gamma_left(m, m.select(p < 20.0, 20.0, p), m.select(p < 20.0, 10.0, z), order)
    above = _gamma_right(m, m.select(left, 1.0, p), m.select(left, 2.0, z), order)
    value = m.call("special_gammainc", p, z) * m.select(p < 20.0, series, below)
    value = m.select(left, value, -m.call("special_gammaincc", p, z) * above)
    at_zero = m.select(x > 0.0, -m.call("special_exp1", z), 0.0) if order == 1 else 0.0 * a + math.nan
    at_zero = m.select(m.equal(a, 0.0), at_zero, 0.0)
    valid = (a >= 0.0) & (x >= 0.0) & ((a > 0.0) | (x > 0.0)) & (a < INF)
    return m.select(inside, value, m.select(valid, at_zero, math.nan))


@routine
def gammainc_slope(m: Numeric, a: Any, x: Any) -> Any:
    """The derivative of P(a, x) by a."""
    return _gammainc_slope(m, a, x, 1)


@routine
def gammainc_curve(m: Numeric, a: Any, x: Any) -> Any:
    """The second derivative of P(a, x) by a."""
    return _gammainc_slope(m, a, x, 2)


@routine
def trigamma_positive(m: Numeric, x: Any) -> Any:
    """The derivative of digamma for x > 0 by recurrence to x >= 12 and DLMF 5.15.8."""
    def step(z: Any, total: Any) -> Any:
        return z + 1.0, total + 1.0 / (z * z)

    z, total = m.loop((x, 0.0 * x), lambda z, total: z < 12.0, step)
    u = 1.0 / z
    s = u * u
    series = polynomial(s, (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6))
    return total + (u + s * (0.5 + u * series))


# --- incomplete beta -----------------------------------------------------------------------------

@routine
def betainc_slope(m: Numeric, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) by a."""
    return _betainc_slope(m, a, b, x, 1.0, 0.0)


@routine
def betainc_slope_b(m: Numeric, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) by b."""
    return _betainc_slope(m, a, b, x, 0.0, 1.0)


def _betainc_slope(m: Numeric, a: Any, b: Any, x: Any, by_a: float, by_b: float) -> Any:
    """The derivative of the continued fraction DLMF 8.17.22, for x beyond its domain of fast convergence that of
    ``1 - I_{1-x}(b, a)``.

    Differentiated term by term as in R. J. Boik and J. F. Robinson-Cox, J. Stat. Softw. 3 (1998) no. 1.
    """
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < INF) & (b < INF)
    a0, b0, x0 = m.select(inside, a, 1.0), m.select(inside, b, 1.0), m.select(inside, x, 0.5)
    swap = x0 * (a0 + b0 + 2.0) > a0 + 1.0
    p, q = m.select(swap, b0, a0), m.select(swap, a0, b0)
    by_p, by_q = m.select(swap, by_b, by_a), m.select(swap, by_a, by_b)
    z = m.select(swap, 1.0 - x0, x0)
    fraction = _beta_fraction(m, p, q, z, by_p, by_q, inside)
    value = m.select(swap, -1.0, 1.0) * m.call("special_betainc", p, q, z)      # betaincc takes 17 times as long
    if by_a:
        score = m.call("log", x0) + m.call("special_digamma_gap", a0, b0)
    else:
        score = m.call("log1p", -x0) + m.call("special_digamma_gap", b0, a0)
    slope = value * (score - by_p / p + fraction)
    at_edge = m.select((a > 0.0) & (b > 0.0) & (m.equal(x, 0.0) | m.equal(x, 1.0)), 0.0, math.nan)
    return m.select(inside, slope, at_edge)


def _beta_fraction(m: Numeric, p: Any, q: Any, z: Any, by_p: Any, by_q: Any, inside: Any) -> Any:
    """The derivative of the logarithm of 1 / (1 + d_1 / (1 + d_2 / ...)) by a mixture of p and q, by Lentz's algorithm
    two terms at a time: the denominator is the product of c d, where c = 1 + e / c and d = 1 / (1 + e d)."""
    def through(e: Any, slope: Any, c: Any, c_slope: Any, d: Any, d_slope: Any) -> Any:
        """One coefficient e with its derivative; c, d and their derivatives."""
        new_c = 1.0 + e / c
        new_c_slope = (slope - e * c_slope / c) / c
        new_d = 1.0 / (1.0 + e * d)
        new_d_slope = -(slope * d + e * d_slope) * new_d * new_d
        return new_c, new_c_slope, new_d, new_d_slope

    def step(n: Any, c: Any, c_slope: Any, d: Any, d_slope: Any, total: Any, last: Any) -> Any:
        two = 2.0 * n
        top, bottom = (p + n) * (p + q + n), (p + two) * (p + two + 1.0)
        odd = -top * z / bottom
        slope = -z / bottom * ((by_p * (p + q + n) + (by_p + by_q) * (p + n))
                               - by_p * top * (1.0 / (p + two) + 1.0 / (p + two + 1.0)))
        c, c_slope, d, d_slope = through(odd, slope, c, c_slope, d, d_slope)
        change = c_slope / c + d_slope / d
        k = n + 1.0
        bottom = (p + two + 1.0) * (p + two + 2.0)
        even = k * (q - k) * z / bottom
        slope = k * z / bottom * (by_q - by_p * (q - k) * (1.0 / (p + two + 1.0) + 1.0 / (p + two + 2.0)))
        c, c_slope, d, d_slope = through(even, slope, c, c_slope, d, d_slope)
        change = change + (c_slope / c + d_slope / d)
        return k, c, c_slope, d, d_slope, total + change, abs(change) + abs(c * d - 1.0)

    zero = 0.0 * p
    found = m.loop((zero, zero + 1.0, zero, zero, zero, zero, zero + 1.0),
                   lambda n, c, c_slope, d, d_slope, total, last: inside & (last > 4e-16) & (n < 20000.0), step)
    return -found[5]


# --- differences of the gamma functions -------------------------------------------------------------

@routine
def digamma_gap(m: Numeric, a: Any, b: Any) -> Any:
    """``digamma(a + b) - digamma(a)``; for positive a and a + b without cancellation, as b times a sum by recurrence
    to arguments above 10 and the difference of the series DLMF 5.11.2."""
    total = a + b
    fine = (a > 0.0) & (total > 0.0)
    p, q = m.select(fine, a, 1.0), m.select(fine, total, 1.0)
    gap = m.select(fine, b, 0.0)

    def step(p: Any, q: Any, found: Any) -> Any:
        return p + 1.0, q + 1.0, found + 1.0 / (p * q)

    p, q, found = m.loop((p, q, 0.0 * p), lambda p, q, found: least(m, p, q) < 10.0, step)
    u, v = 1.0 / p, 1.0 / q
    ratio = gap * u
    logarithm = m.call("log1p", ratio)
    s, t = u * u, v * v
    partial = slope = 0.0 * s + STIRLING_SLOPE[-1]
    for c in STIRLING_SLOPE[-2::-1]:                   # Horner's scheme of the divided difference
        partial = partial * s + c
        slope = slope * t + partial
    value = gap * found + (logarithm + 0.5 * ratio * v + ratio * v * (u + v) * slope)
    return m.select(fine, value, m.call("digamma", total) - m.call("digamma", a))


STIRLING_SLOPE = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""``log(z) - 1 / (2 z) - digamma(z)`` in powers of ``1 / z**2``, from ``z**-2`` on: ``B_2k / (2 k)``, DLMF 5.11.2."""


@routine
def rgamma_slope(m: Numeric, x: Any) -> Any:
    """The derivative of ``1 / gamma(x)``; at the pole -n it is ``(-1)**n n!``."""
    pole = (x <= 0.0) & m.equal(x, m.call("rint", x))
    half = m.call("floor", -0.5 * x)
    sign = m.select(m.equal(2.0 * half, -x), 1.0, -1.0)
    return m.select(pole, sign * m.call("special_gamma", 1.0 - x),
                    -m.call("digamma", m.select(pole, 1.0, x)) * m.call("special_rgamma", x))


# --- Student's distribution ------------------------------------------------------------------------

@routine
def stdtr_slope(m: Numeric, df: Any, t: Any) -> Any:
    """The derivative of Student's distribution function F by the degrees of freedom.

    With s, the derivative of the logarithm of the density: an integral of s times the density from 0 to t for
    ``abs(t) < 1.2``; beyond that F times the mean of s over the tail; that of the incomplete beta function where the
    tail is no longer like the normal one.
    """
    inside = (df > 0.0) & (df < INF) & (abs(t) < INF)
    v, y = m.select(inside, df, 1.0), abs(m.select(inside, t, 0.0))
    central, normal = y < 1.2, (v > 20.0) & (y * y < 2.0 * v)
    found = _t_central(m, v, m.select(central, y, 0.0))
    by_tail = _t_tail(m, m.select(normal, v, 30.0), m.select(normal, y, 1.0))
    other = central | normal
    by_beta = _t_beta(m, m.select(other, 1.0, v), m.select(other, 3.0, y))
    found = m.select(central, found, -m.select(normal, by_tail, by_beta))
    beyond = m.select((df > 0.0) & m.equal(t, t), 0.0, math.nan)
    return m.select(inside, m.select(t < 0.0, -found, found), beyond)


def _t_score(m: Numeric, v: Any, offset: Any, square: Any) -> Any:
    """Twice the derivative of the logarithm of the density by v, the terms that cancel for large v taken together."""
    z = square / v
    return offset - m.call("special_log1p_rest", z) + z * (1.0 / v - z) / (1.0 + z)


def _t_density(m: Numeric, v: Any, square: Any) -> Any:
    exponent = m.call("special_half_lgamma_gap", 0.5 * v) - 0.5 * (v + 1.0) * m.call("log1p", square / v)
    return m.call("exp", exponent) / m.call("sqrt", v * math.pi)


def _t_central(m: Numeric, v: Any, y: Any) -> Any:
    offset = m.call("special_half_digamma_gap", 0.5 * v)

    def terms(node: Any, weight: Any) -> Any:
        square = (y * node) * (y * node)
        density = m.call("exp", -0.5 * (v + 1.0) * m.call("log1p", square / v))
        return (weight * density * _t_score(m, v, offset, square),)

    (mean,) = m.total(gauss_legendre(NODES), terms)
    return 0.5 * _t_density(m, v, 0.0 * y) * y * mean


def _t_tail(m: Numeric, v: Any, y: Any) -> Any:
    """For the tail below -y."""
    offset = m.call("special_half_digamma_gap", 0.5 * v)
    below = v + y * y
    end = m.call("sqrt", y * y + below * m.call("expm1", 2.0 * DEPTH / (v + 1.0))) - y

    def terms(node: Any, weight: Any) -> Any:
        w = end * node
        more = w * (2.0 * y + w)
        density = weight * m.call("exp", -0.5 * (v + 1.0) * m.call("log1p", more / below))
        return density, density * _t_score(m, v, offset, y * y + more)

    total, mean = m.total(gauss_legendre(NODES), terms)
    return 0.5 * m.call("special_stdtr", v, -y) * mean / total


def _t_beta(m: Numeric, v: Any, y: Any) -> Any:
    """The tail below -y is I_u(v / 2, 1 / 2) / 2 with u = v / (v + y**2)."""
    square = y * y
    slope = m.call("special_betainc_slope", 0.5 * v, 0.0 * v + 0.5, v / (v + square))
    return 0.25 * slope + 0.5 * _t_density(m, v, square) * y / v


@routine
def half_lgamma_gap(m: Numeric, x: Any) -> Any:
    """``lgamma(x + 1/2) - lgamma(x)`` for x > 0: by recurrence to x >= 10 and its asymptotic series, DLMF 5.11.8."""
    def step(z: Any, product: Any) -> Any:
        return z + 1.0, product * z / (z + 0.5)

    z, product = m.loop((x, 0.0 * x + 1.0), lambda z, product: z < 10.0, step)
    u = 1.0 / z
    return 0.5 * m.call("log", z) + m.call("log", product) + u * polynomial(u * u, HALF_GAP)


HALF_GAP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
"""``lgamma(z + 1/2) - lgamma(z) - log(z) / 2`` in odd powers of 1 / z: ``(2**(1 - 2 k) - 2) B_2k / (2 k (2 k - 1))``,
by DLMF 5.11.8 with h = 1/2 and 0."""


@routine
def half_digamma_gap(m: Numeric, x: Any) -> Any:
    """``digamma(x + 1/2) - digamma(x) - 1 / (2 x)`` for x > 0: the derivative of the series of `half_lgamma_gap`."""
    def step(z: Any, total: Any) -> Any:
        return z + 1.0, total + 0.25 / (z * (z + 0.5) * (z + 1.0))

    z, total = m.loop((x, 0.0 * x), lambda z, total: z < 14.0, step)
    s = 1.0 / (z * z)
    return total + s * polynomial(s, [-(2 * k + 1) * c for k, c in enumerate(HALF_GAP)])


@routine
def log1p_rest(m: Numeric, x: Any) -> Any:
    """``log1p(x) - x``; near 0 by its series with ``r = x / (2 + x)``: ``log1p(x) = 2 artanh(r)``."""
    r = x / (2.0 + x)
    s = r * r
    series = r * (2.0 * s * polynomial(s, [1 / (2 * k + 3) for k in range(11)]) - x)
    return m.select(abs(x) < 0.5, series, m.call("log1p", x) - x)


__all__ = ["DEPTH", "STIRLING_SLOPE"]
