"""Entropies, Box-Cox transforms and relatives of the exponential of scipy.special."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.core import elementwise, select
from jitad.primitives.elementwise import absolute, eq, exp, expm1, gt, log, log1p, lt, ne, sign, sin, sqrt, square
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.primitives.special.rows import near_zero, pointer
from jitad.tape import expr as scalar
from jitad.tape.builder import Value
from jitad.tape.expr import Expr, call, cast, const

ANY, POSITIVE = (-2.0, 2.0), (0.3, 3.0)
LN10 = math.log(10.0)

# --- the exponential and relatives ---------------------------------------------------------------


def exprel_slope(x: Value) -> Value:
    """The derivative of ``(exp(x) - 1) / x``: ``(exp(x) (x - 1) + 1) / x**2``, a series near 0."""
    series = [1.0 / (math.factorial(k) * (k + 2)) for k in range(16)]
    return near_zero(x, 0.5, series, lambda t: (exp(t) - expm1(t) / t) / t)


def log1p_ratio_slope(x: Value) -> Value:
    """The derivative of ``log1p(x) / x``, a series near 0."""
    series = [(-1.0) ** (k + 1) * (k + 1) / (k + 2) for k in range(18)]
    return near_zero(x, 0.1, series, lambda t: (1.0 / (1.0 + t) - log1p(t) / t) / t)


def _exprel(x: Expr) -> Expr:
    inner = scalar.select(abs(x) < 1e-16, const(1.0, x.dtype), x)
    value = call("expm1", inner) / inner
    return scalar.select(abs(x) < 1e-16, const(1.0, x.dtype), scalar.select(x > 717.0, const(math.inf, x.dtype), value))


exprel = elementwise("exprel", ufuncs.exprel, lambda y, x: exprel_slope(x), scalar=_exprel, cost=20)
exp10 = elementwise("exp10", ufuncs.exp10, lambda y, x: LN10 * y, cost=30,
                    scalar=lambda x: call("pow", const(10.0, x.dtype), x))
cosm1 = elementwise("cosm1", ufuncs.cosm1, lambda y, x: -sin(x), cost=20,
                    scalar=lambda x: -2.0 * (call("sin", 0.5 * x) * call("sin", 0.5 * x)))
powm1 = pointer("powm1", lambda y, a, b: (
    select(ne(b, 0.0), b * (y + 1.0) / a, 0.0), (y + 1.0) * log(a)), domain=(POSITIVE, ANY))

# The twins of NumPy's functions.
special_exp2 = elementwise("special_exp2", ufuncs.exp2, lambda y, x: math.log(2.0) * y, scalar="exp2", cost=10)
special_expm1 = elementwise("special_expm1", ufuncs.expm1, lambda y, x: exp(x), scalar="expm1", cost=12)
special_log1p = elementwise("special_log1p", ufuncs.log1p, lambda y, x: 1.0 / (1.0 + x), scalar="log1p", cost=12,
                            domain=(-0.8, 4.0))
special_cbrt = elementwise("special_cbrt", ufuncs.cbrt, lambda y, x: 1.0 / (3.0 * y * y), scalar="cbrt", cost=20,
                           domain=POSITIVE)

# --- Box and Cox ---------------------------------------------------------------------------------


def _boxcox(logarithm: str, x: Expr, power: Expr) -> Expr:
    """``(x**power - 1) / power``, for power 0 the logarithm; in float64, because the exponent loses bits."""
    if x.dtype == "f4":
        return cast(_boxcox(logarithm, cast(x, "f8"), cast(power, "f8")), "f4")
    value = call(logarithm, x)
    z = power * value
    tiny = (abs(power) < 1e-19) | (abs(z) < 1e-19)
    return scalar.select(tiny, value, call("expm1", z) / scalar.select(tiny, const(1.0, x.dtype), power))


def _boxcox_slopes(logarithm: Value, power: Value) -> Any:
    """``x**(power - 1)`` and ``log(x)**2`` times the derivative of `exprel` at ``power log(x)``; at x = 0 and infinity
    the limit."""
    endless = eq(absolute(logarithm), math.inf)
    inner = select(endless, 1.0, logarithm)
    by_power = square(inner) * exprel_slope(power * inner)
    limit = select(lt(power * logarithm, 0.0), square(1.0 / power), math.inf)
    return exp((power - 1.0) * logarithm), select(endless, limit, by_power)


boxcox = elementwise("boxcox", ufuncs.boxcox, lambda y, x, p: _boxcox_slopes(log(x), p), cost=25,
                     scalar=lambda x, p: _boxcox("log", x, p), domain=(POSITIVE, ANY))
boxcox1p = elementwise("boxcox1p", ufuncs.boxcox1p, lambda y, x, p: _boxcox_slopes(log1p(x), p), cost=25,
                       scalar=lambda x, p: _boxcox("log1p", x, p), domain=((-0.5, 3.0), ANY))


def _inverse_slopes(value: Value, y: Value, power: Value) -> Any:
    """Of ``exp(y log1p(z) / z)`` with ``z = power y``."""
    z = power * y
    return value / (1.0 + z), value * square(y) * log1p_ratio_slope(z)


inv_boxcox = pointer("inv_boxcox", lambda v, y, p: _inverse_slopes(v, y, p), domain=((0.2, 2.0), (-0.4, 2.0)))
inv_boxcox1p = pointer("inv_boxcox1p", lambda v, y, p: _inverse_slopes(v + 1.0, y, p),
                       domain=((0.2, 2.0), (-0.4, 2.0)))

# --- entropies: constant outside of the domain, where they are infinite ---------------------------


def _entr(x: Expr) -> Expr:
    value = -(x * call("log", x))
    outside = scalar.select(x < 0, const(-math.inf, x.dtype), x)
    return scalar.select(x > 0, value, scalar.select(x.eq(0), const(0.0, x.dtype), outside))


def _ratio_parts(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(log(x / y), whether both are positive); by difference of logarithms where the ratio over- or underflows."""
    ratio = x / y
    fine = (ratio > 1e-300) & (ratio < math.inf) if x.dtype == "f8" else (ratio > 1e-37) & (ratio < math.inf)
    near = (ratio > 0.5) & (ratio < 2.0)
    logarithm = scalar.select(near, call("log1p", (x - y) / y), call("log", ratio))
    return scalar.select(fine, logarithm, call("log", x) - call("log", y)), (x > 0) & (y > 0)


def _outside(x: Expr, y: Expr, inside: Expr, value: Expr, at_zero: Expr) -> Expr:
    other = scalar.select(x.eq(0) & (y >= 0), at_zero, const(math.inf, x.dtype))
    return scalar.select(inside, value, scalar.select(x.ne(x) | y.ne(y), const(math.nan, x.dtype), other))


def _rel_entr(x: Expr, y: Expr) -> Expr:
    logarithm, inside = _ratio_parts(x, y)
    return _outside(x, y, inside, x * logarithm, const(0.0, x.dtype))


def _kl_div(x: Expr, y: Expr) -> Expr:
    if x.dtype == "f4":
        return cast(_kl_div(cast(x, "f8"), cast(y, "f8")), "f4")
    return _outside(x, y, (x > 0) & (y > 0), x * call("log", x / y) - x + y, y)


entr = elementwise("entr", ufuncs.entr, lambda y, x: -log(x) - 1.0, scalar=_entr, cost=12, domain=POSITIVE)
rel_entr = elementwise("rel_entr", ufuncs.rel_entr, lambda v, x, y: (
    log(x / y) + 1.0, select(ne(x, 0.0), -(x / y), 0.0)), scalar=_rel_entr, cost=30, domain=POSITIVE)
kl_div = elementwise("kl_div", ufuncs.kl_div, lambda v, x, y: (
    log(x / y), select(ne(x, 0.0), (y - x) / y, 1.0)), scalar=_kl_div, cost=30, domain=POSITIVE)
huber = pointer("huber", lambda v, delta, r: (
    select(gt(absolute(r), delta), absolute(r) - delta, 0.0),
    select(gt(absolute(r), delta), delta * sign(r), r)), domain=((0.5, 0.8), ANY))
pseudo_huber = pointer("pseudo_huber", lambda v, delta, r: _pseudo_huber(delta, r), domain=(POSITIVE, ANY))


def _pseudo_huber(delta: Value, r: Value) -> Any:
    """Of ``delta**2 (sqrt(1 + (r / delta)**2) - 1)``."""
    root = sqrt(1.0 + square(r / delta))
    square_term = square(r / delta)
    return delta * square(square_term) / (root * square(1.0 + root)), r / root


__all__ = ["boxcox", "entr", "exprel", "kl_div", "rel_entr"]
