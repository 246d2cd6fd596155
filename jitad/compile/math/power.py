"""Branch-free powers in machine operations: pow, cbrt, hypot.

The conventions are those of `explog`. A power needs the logarithm to about 64 bits, because the exponential
turns its absolute error, up to 745 times larger, into a relative one.
"""
from __future__ import annotations

from jitad.compile.math.explog import (
    EXP_LONG,
    INF,
    LN2_HI,
    LN2_LO,
    NAN,
    clamp,
    normalise,
    polynomial,
    power_of_two,
    quick_two_sum,
    reduce_exp,
    reduce_log,
)
from jitad.tape.expr import Expr, bits, call, const, select, unbits

THIRD, THIRD_LOW = 0.3333333283662796, 4.967053731282552e-09
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# ((log((1 + s) / (1 - s)) - 2 s) / s**3 - 2/3) / s**2 in s**2 for sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2)
ATANH = (
    0.4, 0.28571428571429364, 0.22222222221655885, 0.18181818335392802, 0.15384594962518428,
    0.13334804693847518, 0.11706236339486488, 0.11723178623919275,
)

Pair = tuple[Expr, Expr]


def mask(x: Expr) -> Expr:
    """x cut to 26 significant bits, so that the product of two such numbers is exact."""
    return unbits(bits(x) & -0x8000000)


def product(a: Pair, b: Pair) -> Pair:
    """a * b; the first words have 26 bits, and so has that of the result."""
    exact = a[0] * b[0]
    high = mask(exact)
    return high, (exact - high) + (a[0] * b[1] + a[1] * (b[0] + b[1]))


def log_long(x: Expr) -> Pair:
    """log(x) for finite x > 0 to about 2**-64 relative, the first word of 26 bits: 2 artanh(s), s = f / (2 + f)."""
    normal, shift = normalise(x)
    k, f = reduce_log(normal)
    k = k + shift
    bottom = 2.0 + f
    first = mask(bottom)
    inverse = 1.0 / bottom
    high = mask(f * inverse)
    s = (high, ((f - high * first) - high * ((2.0 - first) + f)) * inverse)
    square = product(s, s)
    tail = (square[0] + square[1]) * polynomial(square[0] + square[1], ATANH)
    first = mask(TWO_THIRDS[0] + tail)
    series = (first, ((TWO_THIRDS[0] - first) + tail) + TWO_THIRDS[1])
    cube = product(product(square, series), s)
    total, error = quick_two_sum(k * LN2_HI, s[0] + s[0])
    total, rest = quick_two_sum(total, cube[0])
    high = mask(total)
    return high, (total - high) + ((error + rest) + ((s[1] + s[1]) + (cube[1] + k * LN2_LO)))


def exp_pair(high: Expr, low: Expr) -> Expr:
    """exp(high + low) for any high, rounded once, so that exact powers come out exact; NaN stays NaN."""
    low = select(abs(high) < 800.0, low, 0.0)
    r, high, correction, t = reduce_exp(clamp(high, -800.0, 800.0), low)
    unit, rest = quick_two_sum(const(1.0), high)
    a, b = power_of_two(t)
    return (unit + (rest + (r * r * polynomial(r, EXP_LONG) + correction))) * a * b


def power(x: Expr, y: Expr) -> Expr:
    """exp(y log|x|) with product and logarithm in two words; signs and special values as C's pow: 0.7 ulp."""
    a = abs(x)
    regular = (a > 0.0) & (a < INF)
    log = log_long(select(regular, a, 1.0))
    bounded = clamp(y, -1e22, 1e22)  # beyond, the power of any a other than 1 overflows or underflows
    first = mask(bounded)
    high, low = log[0] * first, log[1] * bounded + log[0] * (bounded - first)
    extreme = select(a.eq(0.0), const(-INF), a) * y
    result = exp_pair(select(regular, high, extreme), select(regular, low, 0.0))
    integer = y.eq(call("floor", y))
    odd = integer & (0.5 * y).ne(call("floor", 0.5 * y))
    negative = bits(x) < 0
    result = select(negative & odd, -result, result)
    result = select((x < 0.0) & (x > -INF) & ~integer, const(NAN), result)
    one = y.eq(0.0) | x.eq(1.0) | (x.eq(-1.0) & abs(y).eq(INF))
    return select(one, const(1.0), result)


def cbrt(x: Expr) -> Expr:
    """exp(log|x| / 3) with the logarithm in two words: 0.7 ulp."""
    a = abs(x)
    regular = (a > 0.0) & (a < INF)
    log = log_long(select(regular, a, 1.0))
    high, low = log[0] * THIRD, log[1] * (1 / 3) + log[0] * THIRD_LOW
    return call("copysign", select(regular, exp_pair(high, low), a), x)


def hypot(x: Expr, y: Expr) -> Expr:
    """sqrt(x**2 + y**2), scaled by powers of two against overflow and underflow: 1.2 ulp."""
    a, b = abs(x), abs(y)
    larger = select(a > b, a, b)
    huge, tiny = larger > 2.0**500, larger < 2.0**-400
    scale = select(huge, const(2.0**-600), select(tiny, const(2.0**600), 1.0))
    back = select(huge, const(2.0**600), select(tiny, const(2.0**-600), 1.0))
    a, b = a * scale, b * scale
    result = call("sqrt", a * a + b * b) * back
    return select(abs(x).eq(INF) | abs(y).eq(INF), const(INF), result)
