"""Branch-free powers in machine operations: pow, cbrt, hypot.

The conventions are those of `vectormath_explog`. A power needs the logarithm to about 64 bits, because the exponential
turns its absolute error, up to 745 times larger, into a relative one.
"""
from __future__ import annotations

from .scalar import Expr, bits, call, const, select
from .vectormath_explog import (
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
    two_product,
)

TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# ((log((1 + s) / (1 - s)) - 2 s) / s**3 - 2/3) / s**2 in s**2 for sqrt(1/2) <= (1 + s) / (1 - s) <= sqrt(2)
ATANH = (
    0.40000000000000024, 0.2857142857133851, 0.2222222227110234, 0.1818180824754454, 0.15385574796462176,
    0.13285957435189455, 0.12913617672223007,
)

Pair = tuple[Expr, Expr]


def times(a: Pair, b: Pair) -> Pair:
    """The product of two sums of two words, to about 2**-104 relative."""
    high, low = two_product(a[0], b[0])
    return quick_two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def log_long(x: Expr) -> Pair:
    """log(x) for finite x > 0 in two words, to about 2**-65 relative: 2 artanh(s) with s = f / (2 + f)."""
    normal, shift = normalise(x)
    k, f = reduce_log(normal)
    k = k + shift
    bottom, bottom_low = quick_two_sum(const(2.0), f)
    s = f / bottom
    product, product_low = two_product(s, bottom)
    s_low = (((f - product) - product_low) - s * bottom_low) / bottom
    square = times((s, s_low), (s, s_low))
    series, series_low = quick_two_sum(const(TWO_THIRDS[0]), square[0] * polynomial(square[0], ATANH))
    cube = times(times(square, (series, series_low + TWO_THIRDS[1])), (s, s_low))
    high, low = quick_two_sum(s + s, cube[0])
    low = low + (cube[1] + (s_low + s_low))
    total, error = quick_two_sum(k * LN2_HI, high)
    return quick_two_sum(total, error + (low + k * LN2_LO))


def exp_pair(high: Expr, low: Expr) -> Expr:
    """exp(high + low) for any high, rounded once, so that exact powers come out exact; NaN stays NaN."""
    low = select(abs(high) < 800.0, low, 0.0)
    r, high, correction, t = reduce_exp(clamp(high, -800.0, 800.0), low)
    unit, rest = quick_two_sum(const(1.0), high)
    a, b = power_of_two(t)
    return (unit + (rest + (r * r * polynomial(r, EXP_LONG) + correction))) * a * b


def power(x: Expr, y: Expr) -> Expr:
    """exp(y log|x|) with product and logarithm in two words; signs and special values as C's pow: @pow@ ulp."""
    a = abs(x)
    regular = (a > 0.0) & (a < INF)
    log = log_long(select(regular, a, 1.0))
    bounded = clamp(y, -1e22, 1e22)  # beyond, the power of any a other than 1 overflows or underflows
    high, low = times(log, (bounded, const(0.0)))
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
    """exp(log|x| / 3) with the logarithm in two words: @cbrt@ ulp."""
    a = abs(x)
    regular = (a > 0.0) & (a < INF)
    high, low = times(log_long(select(regular, a, 1.0)), (const(1 / 3), const(1.850371707708594e-17)))
    return call("copysign", select(regular, exp_pair(high, low), a), x)


def hypot(x: Expr, y: Expr) -> Expr:
    """sqrt(x**2 + y**2), scaled by powers of two against overflow and underflow: @hypot@ ulp."""
    a, b = abs(x), abs(y)
    larger = select(a > b, a, b)
    huge, tiny = larger > 2.0**500, larger < 2.0**-400
    scale = select(huge, const(2.0**-600), select(tiny, const(2.0**600), 1.0))
    back = select(huge, const(2.0**600), select(tiny, const(2.0**-600), 1.0))
    a, b = a * scale, b * scale
    result = call("sqrt", a * a + b * b) * back
    return select(abs(x).eq(INF) | abs(y).eq(INF), const(INF), result)
