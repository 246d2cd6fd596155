"""Branch-free quantiles of the normal distribution and the inverse error functions in machine operations.

The table of this family is `table`; the conventions are those of `explog`. A rational approximation
of about seven digits, found by least squares with values of mpmath, takes one step of Halley's method, which makes its
error the cube; the residual is of the functions of `special`.
"""
from __future__ import annotations

from jitad.compile.math.explog import INF, LN2, NAN, exp_scaled, log, normalise, polynomial
from jitad.compile.math.special import SQRT_HALF, erf_small, erfcx_positive, minus_square
from jitad.tape.expr import Expr, call, const, select

SQRT_2PI = 2.5066282746310002

# ndtri(1/2 + q) / q in q**2 - 1/32 on |q| <= 1/4: relative error 2.1e-7
CENTRE = (
    2.594822742571904, 3.0381770989022527, 7.570429095473068, 23.378957889606436, 81.64709529294912,
    297.1418837177511,
)
# t + ndtri(p) with t = sqrt(-2 log(p)) is TOP(t) / BOTTOM(t) for p <= 1/4: error 8.6e-8 of ndtri
TOP = (3.048785700877574, 6.484573203358702, 1.4487023804683639, 0.04572820501099819, 4.170834963448281e-05)
BOTTOM = (1.0, 4.32392685671992, 2.9718383459252844, 0.378499206610616, 0.007629655140933802)


def quantile(p: Expr, q: Expr, half: float = 1.0) -> Expr:
    """The normal quantile of 1/2 + q, where half p <= 1/2 is the probability of its tail: as exact as p and q are."""
    central = p > 0.25 / half
    s = select(central, q, 0.0)
    x = s * polynomial(s * s - 1 / 32, CENTRE)
    high, low = minus_square(x, -0.5)
    u = SQRT_2PI * exp_scaled(high, low, 0.5 * erf_small(x * SQRT_HALF) - s)
    centre = x - u / (1.0 + 0.5 * u * x)
    tail = select(central | (p <= 0.0), const(0.25 / half), p)
    logarithm = log(tail) if half == 1.0 else log(tail) - LN2
    t = call("sqrt", -2.0 * logarithm)
    x = t - polynomial(t, TOP) / polynomial(t, BOTTOM)
    high, low = minus_square(x, -0.5)
    normal, shift = normalise(tail)
    scale = select(shift < 0.0, const(half * 2.0**-54), half)
    u = SQRT_2PI * (0.5 * erfcx_positive(x * SQRT_HALF) - scale * exp_scaled(high, low, normal))
    outer = call("copysign", select(p.eq(0.0), const(INF), x + u / (1.0 - 0.5 * u * x)), q)
    return select(central, centre, select(p >= 0.0, outer, NAN))


def ndtri(p: Expr) -> Expr:
    """The inverse of ndtr: 1.9 ulp."""
    return quantile(select(p > 0.5, 1.0 - p, p), p - 0.5)


def erfinv(x: Expr) -> Expr:
    """The inverse of erf, as that of ndtr: 2.6 ulp."""
    result = SQRT_HALF * quantile(0.5 - 0.5 * abs(x), 0.5 * x)
    return select(abs(x) < 2.0**-1000, x * (0.5 * 1.772453850905516) + 0.0, result)


def erfcinv(x: Expr) -> Expr:
    """The inverse of erfc: 2.6 ulp, without fused multiply-add 4.1."""
    result = SQRT_HALF * quantile(select(x > 1.0, 2.0 - x, x), 0.5 * (1.0 - x), 0.5)
    return select(x < 0.0, const(NAN), select(x.eq(1.0), const(-0.0), result))


__all__ = ["erfcinv", "erfinv", "ndtri"]
