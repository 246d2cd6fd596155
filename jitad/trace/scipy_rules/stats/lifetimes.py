"""The distributions of scipy.stats for extremes, lifetimes and incomes: one row each, in standard form.

Sources as in `stats.continuous`, and Kleiber and Kotz, Statistical Size Distributions in Economics and Actuarial
Sciences (2003). Where a parameter may pass through 0, the formula has no singularity there.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.scipy_rules.stats.continuous import (
    PI,
    POSITIVE,
    SQRT2,
    above,
    gumbel_density,
    gumbel_log_tail,
    log_normal_density,
)
from jitad.trace.scipy_rules.stats.family import EULER, LOG2, LOG_2PI, LOG_SQRT_2PI, continuous, log1mexp, where

UNIT = (0.0, 1.0)


def _finite(c: Any) -> Any:
    return np.isfinite(c)


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return -sp.log_expit(-x)


def log1p_by(x: Any, c: Any) -> Any:
    """``log(1 + c x) / c``, x at c = 0: by the series of ``log(1 + z) / z`` where z is small, whose derivatives would
    cancel."""
    z = c * np.clip(x, -1e300, 1e300)
    near = np.absolute(z) < 0.03
    small = where(near, z, 0.0)
    series = 1.0 / 13.0 + 0.0 * small
    for k in range(12, 0, -1):
        series = 1.0 / k - small * series
    other = where(near, 1.0, c)
    return where(near, x * series, np.log1p(where(near, 1.0, z)) / other)


# --- extreme values --------------------------------------------------------------------------------

def _gev(x: Any, c: Any) -> Any:
    """The point of the Gumbel distribution with the same probability."""
    return np.clip(log1p_by(x, -c), -1e300, 1e300)


def _gev_density(x: Any, c: Any) -> Any:
    y = _gev(x, c)
    return gumbel_density(y) + c * y


def _gev_support(c: Any) -> tuple[Any, Any]:
    inverse = 1.0 / where(c == 0, 1.0, c)
    return where(c < 0, inverse, where(c == c, -np.inf, np.nan)), where(c > 0, inverse, np.inf)


continuous("genextreme", "c", _gev_density, _gev_support, valid=_finite,
           cdf=lambda x, c: np.exp(-np.exp(-_gev(x, c))), sf=lambda x, c: -np.expm1(-np.exp(-_gev(x, c))),
           logcdf=lambda x, c: -np.exp(-_gev(x, c)), logsf=lambda x, c: gumbel_log_tail(_gev(x, c)),
           ppf=lambda q, c: _from_gumbel(-np.log(-np.log(q)), c),
           isf=lambda q, c: _from_gumbel(-np.log(-np.log1p(-q)), c),
           entropy=lambda c: EULER * (1.0 - c) + 1.0)


def _from_gumbel(y: Any, c: Any) -> Any:
    return y * sp.exprel(-c * y)


continuous("genpareto", "c", lambda x, c: -(1.0 + c) * log1p_by(x, c),
           lambda c: (0.0, where(c < 0, -1.0 / where(c == 0, 1.0, c), np.inf)), valid=_finite,
           cdf=lambda x, c: -np.expm1(-log1p_by(x, c)), sf=lambda x, c: np.exp(-log1p_by(x, c)),
           logcdf=lambda x, c: log1mexp(log1p_by(x, c)), logsf=lambda x, c: -log1p_by(x, c),
           ppf=lambda q, c: -np.log1p(-q) * sp.exprel(-c * np.log1p(-q)),
           isf=lambda q, c: -np.log(q) * sp.exprel(-c * np.log(q)),
           mean=lambda c: where(c < 1.0, 1.0 / (1.0 - c), np.inf),
           var=lambda c: where(c < 0.5, 1.0 / ((1.0 - c) ** 2 * (1.0 - 2.0 * c)), where(c < 1.0, np.inf, np.nan)),
           entropy=lambda c: 1.0 + c)

continuous("invweibull", "c", lambda x, c: np.log(c) - (c + 1.0) * np.log(x) - np.power(x, -c), POSITIVE,
           open_low=True, cdf=lambda x, c: np.exp(-np.power(x, -c)), sf=lambda x, c: -np.expm1(-np.power(x, -c)),
           logcdf=lambda x, c: -np.power(x, -c), logsf=lambda x, c: log1mexp(np.power(x, -c)),
           ppf=lambda q, c: np.power(-np.log(q), -1.0 / c), isf=lambda q, c: np.power(-np.log1p(-q), -1.0 / c),
           entropy=lambda c: 1.0 + EULER + EULER / c - np.log(c))


def _below(x: Any, c: Any) -> Any:
    return np.power(-x, c)


continuous("weibull_max", "c", lambda x, c: np.log(c) + sp.xlogy(c - 1.0, -x) - _below(x, c), (-np.inf, 0.0),
           cdf=lambda x, c: np.exp(-_below(x, c)), sf=lambda x, c: -np.expm1(-_below(x, c)),
           logcdf=lambda x, c: -_below(x, c), logsf=lambda x, c: log1mexp(_below(x, c)),
           ppf=lambda q, c: -np.power(-np.log(q), 1.0 / c), isf=lambda q, c: -np.power(-np.log1p(-q), 1.0 / c),
           mean=lambda c: -np.exp(sp.gammaln(1.0 + 1.0 / c)),
           entropy=lambda c: EULER * (1.0 - 1.0 / c) - np.log(c) + 1.0)

continuous("rayleigh", "", lambda x: np.log(x) - 0.5 * x * x, POSITIVE,
           cdf=lambda x: -np.expm1(-0.5 * x * x), sf=lambda x: np.exp(-0.5 * x * x),
           logcdf=lambda x: log1mexp(0.5 * x * x), logsf=lambda x: -0.5 * x * x,
           ppf=lambda q: np.sqrt(-2.0 * np.log1p(-q)), isf=lambda q: np.sqrt(-2.0 * np.log(q)),
           mean=lambda: np.sqrt(0.5 * PI), var=lambda: 2.0 - 0.5 * PI, entropy=lambda: 1.0 + 0.5 * (EULER - LOG2))

continuous("moyal", "", lambda x: -0.5 * (np.maximum(x, -1e300) + np.exp(-x)) - LOG_SQRT_2PI,
           cdf=lambda x: sp.erfc(np.exp(-0.5 * x) / SQRT2), sf=lambda x: sp.erf(np.exp(-0.5 * x) / SQRT2),
           ppf=lambda q: -np.log(2.0 * np.square(sp.erfcinv(q))),
           isf=lambda q: -np.log(2.0 * np.square(sp.erfinv(q))), mean=lambda: EULER + LOG2,
           var=lambda: 0.5 * PI * PI)

# --- lifetimes -------------------------------------------------------------------------------------


def _exponweib(x: Any, a: Any, c: Any) -> Any:
    power = np.power(x, c)
    inside = where((a == 1.0) & (power == 0), 1.0, power)
    return np.log(a) + np.log(c) + sp.xlogy(c - 1.0, x) - power + (a - 1.0) * log1mexp(inside)


continuous("exponweib", "a c", _exponweib, POSITIVE, logcdf=lambda x, a, c: a * log1mexp(np.power(x, c)),
           logsf=lambda x, a, c: _log_rest(a * log1mexp(np.power(x, c))),
           cdf=lambda x, a, c: np.power(-np.expm1(-np.power(x, c)), a),
           sf=lambda x, a, c: -np.expm1(a * log1mexp(np.power(x, c))),
           ppf=lambda q, a, c: np.power(-np.log1p(-np.power(q, 1.0 / a)), 1.0 / c))


def _log_rest(log_p: Any) -> Any:
    """``log(1 - exp(log_p))``."""
    return log1mexp(-log_p)


continuous("gompertz", "c", lambda x, c: np.log(c) + x - c * np.expm1(x), POSITIVE,
           cdf=lambda x, c: -np.expm1(-c * np.expm1(x)), sf=lambda x, c: np.exp(-c * np.expm1(x)),
           logcdf=lambda x, c: log1mexp(c * np.expm1(x)), logsf=lambda x, c: -c * np.expm1(x),
           ppf=lambda q, c: np.log1p(-np.log1p(-q) / c), isf=lambda q, c: np.log1p(-np.log(q) / c))

continuous("exponpow", "b",
           lambda x, b: 1.0 + np.log(b) + sp.xlogy(b - 1.0, x) + np.power(x, b) - np.exp(np.power(x, b)), POSITIVE,
           cdf=lambda x, b: -np.expm1(-np.expm1(np.power(x, b))), sf=lambda x, b: np.exp(-np.expm1(np.power(x, b))),
           logcdf=lambda x, b: log1mexp(np.expm1(np.power(x, b))), logsf=lambda x, b: -np.expm1(np.power(x, b)),
           ppf=lambda q, b: np.power(np.log1p(-np.log1p(-q)), 1.0 / b),
           isf=lambda q, b: np.power(np.log1p(-np.log(q)), 1.0 / b))


def _fatigue(x: Any, c: Any) -> Any:
    return (np.sqrt(x) - 1.0 / np.sqrt(x)) / c


continuous("fatiguelife", "c", lambda x, c: (np.log1p(x) - np.log(2.0 * c) - 0.5 * (LOG_2PI + 3.0 * np.log(x))
                                             - 0.5 * np.square((x - 1.0) / c) / x), POSITIVE, open_low=True,
           cdf=lambda x, c: sp.ndtr(_fatigue(x, c)), sf=lambda x, c: sp.ndtr(-_fatigue(x, c)),
           logcdf=lambda x, c: sp.log_ndtr(_fatigue(x, c)), logsf=lambda x, c: sp.log_ndtr(-_fatigue(x, c)),
           ppf=lambda q, c: _fatigue_of(c * sp.ndtri(q)), isf=lambda q, c: _fatigue_of(-c * sp.ndtri(q)),
           mean=lambda c: 0.5 * c * c + 1.0, var=lambda c: c * c * (1.25 * c * c + 1.0))


def _fatigue_of(t: Any) -> Any:
    """The x with ``sqrt(x) - 1 / sqrt(x) == t``; for t < 0 by the reciprocal, which does not cancel."""
    root = 0.25 * np.square(np.absolute(t) + np.sqrt(t * t + 4.0))
    return where(t < 0, 1.0 / root, root)


# --- powers of x in logarithms: log-logistic and its kin -------------------------------------------

continuous("fisk", "c", lambda x, c: np.log(c) + sp.xlogy(c - 1.0, x) - 2.0 * softplus(c * np.log(x)), POSITIVE,
           cdf=lambda x, c: sp.expit(c * np.log(x)), sf=lambda x, c: sp.expit(-c * np.log(x)),
           logcdf=lambda x, c: sp.log_expit(c * np.log(x)), logsf=lambda x, c: sp.log_expit(-c * np.log(x)),
           ppf=lambda q, c: np.exp(sp.logit(q) / c), isf=lambda q, c: np.exp(-sp.logit(q) / c),
           mean=lambda c: where(c > 1.0, PI / (c * np.sin(PI / np.maximum(c, 1.0))), np.nan),
           entropy=lambda c: 2.0 - np.log(c))


continuous("burr12", "c d", lambda x, c, d: (np.log(c) + np.log(d) + sp.xlogy(c - 1.0, x)
                                             - (d + 1.0) * softplus(c * np.log(x))), POSITIVE,
           cdf=lambda x, c, d: -np.expm1(-d * softplus(c * np.log(x))),
           sf=lambda x, c, d: np.exp(-d * softplus(c * np.log(x))),
           logcdf=lambda x, c, d: log1mexp(d * softplus(c * np.log(x))),
           logsf=lambda x, c, d: -d * softplus(c * np.log(x)),
           ppf=lambda q, c, d: np.power(np.expm1(-np.log1p(-q) / d), 1.0 / c),
           isf=lambda q, c, d: np.power(np.expm1(-np.log(q) / d), 1.0 / c))

continuous("burr", "c d", lambda x, c, d: (np.log(c) + np.log(d) + sp.xlogy(c * d - 1.0, x)
                                           - (d + 1.0) * softplus(c * np.log(x))), POSITIVE,
           cdf=lambda x, c, d: np.exp(-d * softplus(-c * np.log(x))),
           sf=lambda x, c, d: -np.expm1(-d * softplus(-c * np.log(x))),
           logcdf=lambda x, c, d: -d * softplus(-c * np.log(x)),
           logsf=lambda x, c, d: log1mexp(d * softplus(-c * np.log(x))),
           ppf=lambda q, c, d: np.power(np.expm1(-np.log(q) / d), -1.0 / c),
           isf=lambda q, c, d: np.power(np.expm1(-np.log1p(-q) / d), -1.0 / c))

continuous("lomax", "c", lambda x, c: np.log(c) - (c + 1.0) * np.log1p(x), POSITIVE,
           cdf=lambda x, c: -np.expm1(-c * np.log1p(x)), sf=lambda x, c: np.exp(-c * np.log1p(x)),
           logcdf=lambda x, c: log1mexp(c * np.log1p(x)), logsf=lambda x, c: -c * np.log1p(x),
           ppf=lambda q, c: np.expm1(-np.log1p(-q) / c), isf=lambda q, c: np.expm1(-np.log(q) / c),
           mean=lambda c: above(1.0, c, 1.0 / (c - 1.0)),
           var=lambda c: above(2.0, c, c / ((c - 1.0) ** 2 * (c - 2.0))),
           entropy=lambda c: 1.0 + 1.0 / c - np.log(c))

continuous("powerlaw", "a", lambda x, a: where((x == 0) & (a < 1), -np.inf, np.log(a) + sp.xlogy(a - 1.0, x)), UNIT,
           cdf=lambda x, a: np.power(x, a), sf=lambda x, a: -np.expm1(a * np.log(x)),
           logcdf=lambda x, a: a * np.log(x), logsf=lambda x, a: log1mexp(-a * np.log(x)),
           ppf=lambda q, a: np.power(q, 1.0 / a), isf=lambda q, a: np.exp(np.log1p(-q) / a),
           mean=lambda a: a / (a + 1.0), var=lambda a: a / ((a + 1.0) ** 2 * (a + 2.0)),
           entropy=lambda a: 1.0 - 1.0 / a - np.log(a))


def _part(x: Any, b: Any, c: Any) -> Any:
    """``(1 - x**-b) / (1 - c**-b)`` for b of either sign."""
    return np.expm1(-b * np.log(x)) / np.expm1(-b * np.log(c))


continuous("truncpareto", "b c", lambda x, b, c: np.log(-b / np.expm1(-b * np.log(c))) - (b + 1.0) * np.log(x),
           lambda b, c: (1.0, c), valid=lambda b, c: ((b < 0) | (b > 0)) & (c > 1),
           cdf=_part, sf=lambda x, b, c: np.power(x, -b) * _part(c / x, b, c),
           ppf=lambda q, b, c: np.exp(-np.log1p(q * np.expm1(-b * np.log(c))) / b))

for _name in ("loguniform", "reciprocal"):
    continuous(_name, "a b", lambda x, a, b: -np.log(x) - np.log(np.log(b / a)), lambda a, b: (a, b),
               valid=lambda a, b: (a > 0) & (b > a), cdf=lambda x, a, b: np.log(x / a) / np.log(b / a),
               sf=lambda x, a, b: np.log(b / x) / np.log(b / a), ppf=lambda q, a, b: a * np.exp(q * np.log(b / a)),
               isf=lambda q, a, b: b * np.exp(-q * np.log(b / a)), mean=lambda a, b: (b - a) / np.log(b / a),
               entropy=lambda a, b: 0.5 * np.log(a * b) + np.log(np.log(b / a)))

# --- the normal, transformed -----------------------------------------------------------------------

continuous("gibrat", "", lambda x: log_normal_density(np.log(x)) - np.log(x), POSITIVE, open_low=True,
           cdf=lambda x: sp.ndtr(np.log(x)), sf=lambda x: sp.ndtr(-np.log(x)),
           logcdf=lambda x: sp.log_ndtr(np.log(x)), logsf=lambda x: sp.log_ndtr(-np.log(x)),
           ppf=lambda q: np.exp(sp.ndtri(q)), isf=lambda q: np.exp(-sp.ndtri(q)), mean=lambda: np.exp(0.5),
           var=lambda: np.exp(1.0) * np.expm1(1.0), entropy=lambda: 0.5 * (1.0 + LOG_2PI))

continuous("powernorm", "c", lambda x, c: np.log(c) + log_normal_density(x) + (c - 1.0) * sp.log_ndtr(-x),
           cdf=lambda x, c: -np.expm1(c * sp.log_ndtr(-x)), sf=lambda x, c: np.exp(c * sp.log_ndtr(-x)),
           logcdf=lambda x, c: log1mexp(-c * sp.log_ndtr(-x)), logsf=lambda x, c: c * sp.log_ndtr(-x),
           ppf=lambda q, c: -sp.ndtri_exp(np.log1p(-q) / c), isf=lambda q, c: -sp.ndtri_exp(np.log(q) / c))

continuous("johnsonsu", "a b", lambda x, a, b: (np.log(b) - np.log(np.hypot(1.0, x))
                                                + log_normal_density(a + b * np.arcsinh(x))),
           valid=lambda a, b: (b > 0) & (a == a), cdf=lambda x, a, b: sp.ndtr(a + b * np.arcsinh(x)),
           sf=lambda x, a, b: sp.ndtr(-a - b * np.arcsinh(x)),
           logcdf=lambda x, a, b: sp.log_ndtr(a + b * np.arcsinh(x)),
           logsf=lambda x, a, b: sp.log_ndtr(-a - b * np.arcsinh(x)),
           ppf=lambda q, a, b: np.sinh((sp.ndtri(q) - a) / b), isf=lambda q, a, b: np.sinh((-sp.ndtri(q) - a) / b))

def _johnson(x: Any, a: Any, b: Any) -> Any:
    end = (x == 0) | (x == 1)
    x = where(end, 0.5, x)
    return where(end, -np.inf, np.log(b) - np.log(x) - np.log1p(-x) + log_normal_density(a + b * sp.logit(x)))


continuous("johnsonsb", "a b", _johnson, UNIT,
           valid=lambda a, b: (b > 0) & (a == a), cdf=lambda x, a, b: sp.ndtr(a + b * sp.logit(x)),
           sf=lambda x, a, b: sp.ndtr(-a - b * sp.logit(x)),
           logcdf=lambda x, a, b: sp.log_ndtr(a + b * sp.logit(x)),
           logsf=lambda x, a, b: sp.log_ndtr(-a - b * sp.logit(x)),
           ppf=lambda q, a, b: sp.expit((sp.ndtri(q) - a) / b), isf=lambda q, a, b: sp.expit((-sp.ndtri(q) - a) / b))

continuous("levy", "", lambda x: -LOG_SQRT_2PI - 1.5 * np.log(x) - 0.5 / x, POSITIVE, open_low=True,
           cdf=lambda x: sp.erfc(np.sqrt(0.5 / x)), sf=lambda x: sp.erf(np.sqrt(0.5 / x)),
           ppf=lambda q: 1.0 / np.square(sp.ndtri(0.5 * q)), isf=lambda q: 0.5 / np.square(sp.erfinv(q)),
           mean=lambda: np.inf, var=lambda: np.inf, entropy=lambda: 0.5 * (1.0 + 3.0 * EULER + np.log(16.0 * PI)))

def _levy_left(x: Any) -> Any:
    size = where(x == 0, 1.0, -x)
    return where(x == 0, -np.inf, -LOG_SQRT_2PI - 1.5 * np.log(size) - 0.5 / size)


continuous("levy_l", "", _levy_left, (-np.inf, 0.0),
           cdf=lambda x: sp.erf(np.sqrt(-0.5 / x)), sf=lambda x: sp.erfc(np.sqrt(-0.5 / x)),
           ppf=lambda q: -0.5 / np.square(sp.erfinv(q)), isf=lambda q: -1.0 / np.square(sp.ndtri(0.5 * q)),
           mean=lambda: np.inf, var=lambda: np.inf, entropy=lambda: 0.5 * (1.0 + 3.0 * EULER + np.log(16.0 * PI)))


def _alpha_logsf(h: Any, a: Any) -> Any:
    """``log((ndtr(a) - ndtr(a - h)) / ndtr(a))``; for small h by Taylor's series, of Hermite polynomials (DLMF
    18.9.1)."""
    near = h * np.maximum(a, 1.0) < 0.03
    step = where(near, h, 0.0)
    before, polynomial, power, series = 0.0 * a, 1.0 + 0.0 * a, 1.0 + 0.0 * step, 0.0 * step
    for k in range(9):
        power = power / (k + 1.0)
        series = series + polynomial * power
        power = power * step
        before, polynomial = polynomial, a * polynomial - k * before
    other = _log_rest(sp.log_ndtr(a - where(near, 1.0, h)) - sp.log_ndtr(a))
    return where(near, log_normal_density(a) - sp.log_ndtr(a) + np.log(h) + np.log(series), other)


def _foldnorm(x: Any, c: Any) -> Any:
    return log_normal_density(x - c) + np.log1p(np.exp(-2.0 * c * x))


continuous("foldnorm", "c", _foldnorm, POSITIVE, valid=lambda c: c >= 0,
           cdf=lambda x, c: 0.5 * (sp.erf((x - c) / SQRT2) + sp.erf((x + c) / SQRT2)),
           sf=lambda x, c: sp.ndtr(c - x) + sp.ndtr(-x - c),
           mean=lambda c: np.sqrt(2.0 / PI) * np.exp(-0.5 * c * c) + c * sp.erf(c / SQRT2))

continuous("foldcauchy", "c", lambda x, c: np.log((1.0 / (1.0 + np.square(x - c)) + 1.0 / (1.0 + np.square(x + c)))
                                                  / PI), POSITIVE, valid=lambda c: c >= 0,
           cdf=lambda x, c: (np.arctan(x - c) + np.arctan(x + c)) / PI,
           sf=lambda x, c: (np.arctan2(1.0, x - c) + np.arctan2(1.0, x + c)) / PI)

continuous("alpha", "a", lambda x, a: log_normal_density(a - 1.0 / x) - 2.0 * np.log(x) - sp.log_ndtr(a), POSITIVE,
           open_low=True, logcdf=lambda x, a: sp.log_ndtr(a - 1.0 / x) - sp.log_ndtr(a),
           logsf=lambda x, a: _alpha_logsf(1.0 / x, a),
           ppf=lambda q, a: 1.0 / (a - sp.ndtri(q * sp.ndtr(a))))
