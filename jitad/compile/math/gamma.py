"""Branch-free gamma function and logarithm of the beta function in machine operations.

The table of this family is `table`; the conventions are those of `explog`.
"""
from __future__ import annotations

from jitad.compile.math.explog import INF, NAN, clamp, exp, exp_scaled, log, log1p, polynomial, quick_two_sum, two_sum
from jitad.compile.math.power import log_long, mask
from jitad.compile.math.special import (
    HALF_LOG_2PI,
    LGAMMA,
    PI,
    STIRLING,
    constant_last,
    falling,
    lgamma,
    sinpi_over,
)
from jitad.tape.expr import Expr, call, const, select


def gamma_function(x: Expr) -> Expr:
    """Recurrence to [1.25, 2.5] below 8, Stirling's series with its exponent in two words above, reflection below 0:
    3.2 ulp where products and sums are fused, else 5.0."""
    a, negative = clamp(abs(x), None, 190.0), x < 0.0
    small, below = a < 8.0, a < 1.25
    nearest = select(a < 2.5, const(2.0), call("floor", a + 0.5))
    e = a - select(a < 0.5, const(0.0), select(below, const(1.0), nearest))
    base = exp(e * constant_last(e + 0.5, LGAMMA))
    moderate = base * falling(a, const(1.0))
    times_a = moderate * select(a < 0.5, 1.0 / (1.0 + a), select(below, const(1.0), a))
    z = select(small, const(8.0), a)
    high, low = log_long(z)
    factor = mask(z - 0.5)
    total, error = two_sum(high * factor, -z)
    inverse = 1.0 / z
    rest = low * (z - 0.5) + high * ((z - 0.5) - factor)
    rest = error + (rest + (HALF_LOG_2PI + inverse * polynomial(inverse * inverse, STIRLING)))
    total, rest = quick_two_sum(total, rest)
    r = a - call("rint", a)
    half = 0.5 * call("rint", a)
    sine = r * sinpi_over(r) * select(half.eq(call("floor", half)), const(1.0), -1.0)
    sine = select(sine.eq(0.0), const(1.0), sine)
    large = exp_scaled(select(negative, -total, total), select(negative, -rest, rest),
                       select(negative, -PI / (z * sine), 1.0))
    divisor = select(a < 0.5, a * (1.0 + a), select(below, a, 1.0))
    value = select(small, select(negative, -PI / (sine * times_a), moderate / divisor), large)
    value = select(negative & a.eq(call("floor", a)), const(NAN), value)
    value = select(x < -190.0, select(x.eq(call("floor", x)), const(NAN), const(0.0)), value)
    return select(x.eq(0.0), call("copysign", const(INF), x), select(x > 180.0, const(INF), value))


def correction(z: Expr) -> Expr:
    """lgamma(z) less the main part of Stirling's series, for z >= 8; DLMF 5.11.1."""
    inverse = 1.0 / z
    return inverse * polynomial(inverse * inverse, STIRLING)


def betaln(a: Expr, b: Expr) -> Expr:
    """log |beta(a, b)|: for large arguments by the differences of Stirling's series, which has no cancellation, else
    by three of `lgamma`: error below 8 * 2**-52 of the larger of 4 and the value, for positive arguments.

    At a pole of gamma(a), -n, beta is finite where gamma(a + b) has one too: ``beta(1 - a - b, b)`` for integer b.
    """
    a, b = _off_pole(a, b)
    b, a = _off_pole(b, a)
    p, q = select(a < b, a, b), select(a < b, b, a)
    total = p + q
    wide = (q > 8.0) & (total > 8.0) & (q < INF)
    c, d = select(wide, q, 8.0), select(wide, p, 1.0)
    s = c + d
    shared = correction(c) - correction(s) - (c - 0.5) * log1p(d / c)
    tall = p >= 8.0
    e = select(wide & tall, p, 8.0)
    both = (e - 0.5) * log(e / (c + e)) - 0.5 * log(s) + (HALF_LOG_2PI + correction(e)) + shared
    first = lgamma(p)
    one = first + (d - d * log(s) + shared)
    plain = (first + lgamma(q)) - lgamma(total)
    value = select(wide, select(tall, both, one), plain)
    infinite = select(p.eq(0.0), const(INF), select(p < INF, -p * INF, NAN))
    pole = ((a <= 0.0) & a.eq(call("floor", a))) | ((b <= 0.0) & b.eq(call("floor", b)))
    value = select(q.eq(INF), infinite, value)
    return select(pole, const(INF), select(a.ne(a) | b.ne(b), const(NAN), value))


def _off_pole(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """``1 - a - b`` for a nonpositive integer a, if b is an integer that makes it positive."""
    moved = 1.0 - a - b
    use = (a <= 0.0) & a.eq(call("floor", a)) & b.eq(call("floor", b)) & (moved > 0.0) & (abs(a) < INF)
    return select(use, moved, a), b
