"""The distributions of scipy.stats on an interval or a circle, and two-sided ones with a kink or a skew: one row each.

Sources as in `stats.continuous`; for circular ones Mardia and Jupp, Directional Statistics (2000).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.scipy_rules.stats.continuous import PI, POSITIVE, log_normal_density, log_one_plus_square
from jitad.trace.scipy_rules.stats.family import EULER, LOG2, LOG_2PI, LOG_SQRT_2PI, continuous, log1mexp, where
from jitad.trace.scipy_rules.stats.lifetimes import UNIT, softplus

# --- on an interval --------------------------------------------------------------------------------

continuous("arcsine", "", lambda x: -np.log(PI) - 0.5 * (np.log(x) + np.log1p(-x)), UNIT,
           cdf=lambda x: 2.0 / PI * np.arcsin(np.sqrt(x)), sf=lambda x: 2.0 / PI * np.arcsin(np.sqrt(1.0 - x)),
           ppf=lambda q: np.square(np.sin(0.5 * PI * q)), isf=lambda q: np.square(np.cos(0.5 * PI * q)),
           mean=lambda: 0.5, var=lambda: 0.125, entropy=lambda: np.log(0.25 * PI))

continuous("anglit", "", lambda x: np.log(np.cos(2.0 * x)), (-PI / 4.0, PI / 4.0), symmetric=True,
           cdf=lambda x: np.square(np.sin(x + PI / 4.0)), ppf=lambda q: 0.5 * np.arcsin(2.0 * q - 1.0),
           mean=lambda: 0.0, var=lambda: PI * PI / 16.0 - 0.5, entropy=lambda: 1.0 - LOG2)

continuous("cosine", "", lambda x: 2.0 * np.log(np.cos(0.5 * x)) - np.log(PI), (-PI, PI), mean=lambda: 0.0,
           var=lambda: PI * PI / 3.0 - 2.0, entropy=lambda: 2.0 * LOG2 + np.log(PI) - 1.0)

continuous("semicircular", "", lambda x: np.log(2.0 / PI) + 0.5 * (np.log1p(-x) + np.log1p(x)), (-1.0, 1.0),
           symmetric=True, cdf=lambda x: sp.betainc(1.5, 1.5, 0.5 * (x + 1.0)),
           ppf=lambda q: 2.0 * sp.betaincinv(1.5, 1.5, q) - 1.0, mean=lambda: 0.0, var=lambda: 0.25,
           entropy=lambda: np.log(PI) - 0.5)

continuous("triang", "c", lambda x, c: LOG2 + where(x < c, np.log(x / c), np.log1p(-x) - np.log1p(-c)), UNIT,
           valid=lambda c: (c >= 0) & (c <= 1),
           cdf=lambda x, c: where(x < c, x * x / c, 1.0 - np.square(1.0 - x) / (1.0 - c)),
           sf=lambda x, c: where(x < c, 1.0 - x * x / c, np.square(1.0 - x) / (1.0 - c)),
           ppf=lambda q, c: where(q < c, np.sqrt(c * q), 1.0 - np.sqrt((1.0 - c) * (1.0 - q))),
           mean=lambda c: (c + 1.0) / 3.0, var=lambda c: (1.0 - c + c * c) / 18.0,
           entropy=lambda c: 0.5 - LOG2 + 0.0 * c)


def _trapezoid(x: Any, c: Any, d: Any) -> Any:
    height = 2.0 / (d - c + 1.0)
    return np.log(height) + where(x < c, np.log(x / c), where(x > d, np.log1p(-x) - np.log1p(-d), 0.0 * x))


def _trapezoid_cdf(x: Any, c: Any, d: Any) -> Any:
    width = d - c + 1.0
    return where(x < c, x * x / c / width, where(x > d, 1.0 - np.square(1.0 - x) / (1.0 - d) / width,
                                                 (c + 2.0 * (x - c)) / width))


continuous("trapezoid", "c d", _trapezoid, UNIT, valid=lambda c, d: (c >= 0) & (d <= 1) & (d >= c),
           cdf=_trapezoid_cdf)

continuous("truncexpon", "b", lambda x, b: -x - log1mexp(b), lambda b: (0.0, b),
           cdf=lambda x, b: np.expm1(-x) / np.expm1(-b), sf=lambda x, b: np.exp(-x) * np.expm1(x - b) / np.expm1(-b),
           logcdf=lambda x, b: log1mexp(x) - log1mexp(b), logsf=lambda x, b: -x + log1mexp(b - x) - log1mexp(b),
           ppf=lambda q, b: -np.log1p(q * np.expm1(-b)), mean=lambda b: 1.0 - b / np.expm1(b),
           entropy=lambda b: 1.0 + np.log(np.expm1(b)) - b - b / np.expm1(b))

continuous("truncweibull_min", "c a b",
           lambda x, c, a, b: (np.log(c) + sp.xlogy(c - 1.0, x) - np.power(x, c) + np.power(a, c)
                               - log1mexp(np.power(b, c) - np.power(a, c))), lambda c, a, b: (a, b),
           valid=lambda c, a, b: (a >= 0) & (b > a) & (c > 0),
           logcdf=lambda x, c, a, b: (log1mexp(np.power(x, c) - np.power(a, c))
                                      - log1mexp(np.power(b, c) - np.power(a, c))),
           logsf=lambda x, c, a, b: (np.power(a, c) - np.power(x, c) + log1mexp(np.power(b, c) - np.power(x, c))
                                     - log1mexp(np.power(b, c) - np.power(a, c))))

continuous("bradford", "c", lambda x, c: np.log(c) - np.log(np.log1p(c)) - np.log1p(c * x), UNIT,
           cdf=lambda x, c: np.log1p(c * x) / np.log1p(c), ppf=lambda q, c: np.expm1(q * np.log1p(c)) / c,
           mean=lambda c: (c - np.log1p(c)) / (c * np.log1p(c)))

# --- on a circle -----------------------------------------------------------------------------------


def _wrapped(x: Any, c: Any) -> Any:
    return (np.log1p(c) + np.log1p(-c) - LOG_2PI
            - np.log(np.square(1.0 - c) + 4.0 * c * np.square(np.sin(0.5 * x))))


def _wrapped_cdf(x: Any, c: Any) -> Any:
    low = x < PI
    half = np.arctan((1.0 + c) / (1.0 - c) * np.tan(0.5 * where(low, x, 2.0 * PI - x))) / PI
    return where(low, half, 1.0 - half)


def _wrapped_ppf(q: Any, c: Any) -> Any:
    low = q < 0.5
    x = 2.0 * np.arctan((1.0 - c) / (1.0 + c) * np.tan(PI * where(low, q, 1.0 - q)))
    return where(low, x, 2.0 * PI - x)


continuous("wrapcauchy", "c", _wrapped, (0.0, 2.0 * PI), valid=lambda c: (c > 0) & (c < 1), cdf=_wrapped_cdf,
           sf=lambda x, c: _wrapped_cdf(2.0 * PI - x, c), ppf=_wrapped_ppf,
           entropy=lambda c: LOG_2PI + np.log1p(c) + np.log1p(-c))

continuous("vonmises_line", "kappa",
           lambda x, k: -2.0 * k * np.square(np.sin(0.5 * x)) - LOG_2PI - np.log(sp.i0e(k)), (-PI, PI),
           valid=lambda k: k >= 0, entropy=lambda k: k - k * sp.i1e(k) / sp.i0e(k) + LOG_2PI + np.log(sp.i0e(k)))

# --- two sides -------------------------------------------------------------------------------------


def _log_cosh(x: Any) -> Any:
    size = np.absolute(x)
    return size + np.log1p(np.exp(-2.0 * size)) - LOG2


continuous("hypsecant", "", lambda x: -np.log(PI) - _log_cosh(x), symmetric=True,
           cdf=lambda x: where(x > 0, 1.0 - 2.0 / PI * np.arctan(np.exp(-np.absolute(x))),
                               2.0 / PI * np.arctan(np.exp(-np.absolute(x)))),
           ppf=lambda q: where(q > 0.5, -np.log(np.tan(0.5 * PI * (1.0 - q))), np.log(np.tan(0.5 * PI * q))),
           mean=lambda: 0.0, var=lambda: 0.25 * PI * PI, entropy=lambda: np.log(2.0 * PI))

continuous("halflogistic", "", lambda x: LOG2 + sp.log_expit(x) + sp.log_expit(-x), POSITIVE,
           cdf=lambda x: np.tanh(0.5 * x), sf=lambda x: 2.0 * sp.expit(-x),
           logcdf=lambda x: log1mexp(x) + sp.log_expit(x), logsf=lambda x: LOG2 + sp.log_expit(-x),
           ppf=lambda q: 2.0 * np.arctanh(q), isf=lambda q: np.log(2.0 - q) - np.log(q), mean=lambda: 2.0 * LOG2,
           var=lambda: PI * PI / 3.0 - 4.0 * LOG2 * LOG2, entropy=lambda: 2.0 - LOG2)

continuous("genlogistic", "c", lambda x, c: np.log(c) + c * sp.log_expit(x) + sp.log_expit(-x),
           logcdf=lambda x, c: c * sp.log_expit(x), logsf=lambda x, c: log1mexp(c * softplus(-x)),
           cdf=lambda x, c: np.exp(c * sp.log_expit(x)), sf=lambda x, c: -np.expm1(c * sp.log_expit(x)),
           ppf=lambda q, c: -np.log(np.expm1(-np.log(q) / c)), isf=lambda q, c: -np.log(np.expm1(-np.log1p(-q) / c)),
           mean=lambda c: EULER + sp.psi(c))

continuous("laplace_asymmetric", "kappa",
           lambda x, k: where(x > 0, -x * k, x / k) - np.log(k + 1.0 / k),
           cdf=lambda x, k: where(x > 0, 1.0 - np.exp(-x * k) / (1.0 + k * k), np.exp(x / k) * k * k / (1.0 + k * k)),
           sf=lambda x, k: where(x > 0, np.exp(-x * k) / (1.0 + k * k), 1.0 - np.exp(x / k) * k * k / (1.0 + k * k)),
           logcdf=lambda x, k: where(x > 0, np.log1p(-np.exp(-np.maximum(x, 0.0) * k) / (1.0 + k * k)),
                                     x / k - np.log1p(1.0 / (k * k))),
           logsf=lambda x, k: where(x > 0, -x * k - np.log1p(k * k),
                                    np.log1p(-np.exp(np.minimum(x, 0.0) / k) * k * k / (1.0 + k * k))),
           ppf=lambda q, k: where(q > k * k / (1.0 + k * k), -(np.log1p(-q) + np.log1p(k * k)) / k,
                                  (np.log(q) + np.log1p(1.0 / (k * k))) * k),
           mean=lambda k: 1.0 / k - k, var=lambda k: 1.0 / (k * k) + k * k, entropy=lambda k: 1.0 + np.log(k + 1.0 / k))


def _sided(x: Any, a: Any) -> Any:
    """``x / (1 + a sign(x))``."""
    return x / where(x > 0, 1.0 + a, 1.0 - a)


continuous("skewcauchy", "a", lambda x, a: -np.log(PI) - log_one_plus_square(_sided(x, a)),
           valid=lambda a: np.absolute(a) < 1,
           cdf=lambda x, a: where(x > 0, 1.0 - (1.0 + a) / PI * np.arctan2(1.0, _sided(x, a)),
                                  (1.0 - a) / PI * np.arctan2(1.0, -_sided(x, a))),
           sf=lambda x, a: where(x > 0, (1.0 + a) / PI * np.arctan2(1.0, _sided(x, a)),
                                 1.0 - (1.0 - a) / PI * np.arctan2(1.0, -_sided(x, a))))

continuous("loglaplace", "c", lambda x, c: np.log(0.5 * c) + sp.xlogy(where(x < 1, c - 1.0, -c - 1.0), x), POSITIVE,
           cdf=lambda x, c: where(x < 1, 0.5 * np.power(x, c), 1.0 - 0.5 * np.power(x, -c)),
           sf=lambda x, c: where(x < 1, 1.0 - 0.5 * np.power(x, c), 0.5 * np.power(x, -c)),
           ppf=lambda q, c: np.exp(where(q < 0.5, np.log(2.0 * q), -np.log(2.0 * (1.0 - q))) / c),
           entropy=lambda c: np.log(2.0 / c) + 1.0)


def _ball(x: Any, beta: Any, m: Any) -> tuple[Any, Any, Any]:
    """Whether x is in the Gaussian core; the logarithm of the density before it is normalised; that of its mass."""
    core = x > -beta
    ratio = m / beta
    tail = m * np.log(ratio) - 0.5 * beta * beta - m * np.log(ratio - beta - where(core, -beta, x))
    mass = ratio / (m - 1.0) * np.exp(-0.5 * beta * beta) + np.exp(LOG_SQRT_2PI) * sp.ndtr(beta)
    return core, where(core, -0.5 * x * x, tail), np.log(mass)


def _ball_cdf(x: Any, beta: Any, m: Any) -> tuple[Any, Any, Any]:
    """Whether x is in the core; the distribution function of the tail, and the rest of that of the core."""
    core, _, mass = _ball(x, beta, m)
    ratio = m / beta
    low = m * np.log(ratio) - 0.5 * beta * beta - (m - 1.0) * np.log(ratio - beta - where(core, -beta, x)) - np.log(
        m - 1.0)
    return core, np.exp(low - mass), np.exp(LOG_SQRT_2PI + sp.log_ndtr(-where(core, x, -beta)) - mass)


continuous("crystalball", "beta m", lambda x, beta, m: _ball(x, beta, m)[1] - _ball(x, beta, m)[2],
           valid=lambda beta, m: (m > 1) & (beta > 0),
           cdf=lambda x, *shapes: _ball_side(0, *_ball_cdf(x, *shapes)),
           sf=lambda x, *shapes: _ball_side(1, *_ball_cdf(x, *shapes)))


def _ball_side(upper: int, core: Any, tail: Any, rest: Any) -> Any:
    return where(core, rest, 1.0 - tail) if upper else where(core, 1.0 - rest, tail)


def _kappa3(x: Any, a: Any) -> Any:
    """``log(1 + x**a / a)``."""
    return softplus(a * np.log(x) - np.log(a))


continuous("kappa3", "a", lambda x, a: -np.log(a) / a - (1.0 + 1.0 / a) * _kappa3(x, a), POSITIVE,
           logcdf=lambda x, a: -softplus(np.log(a) - a * np.log(x)) / a,
           logsf=lambda x, a: log1mexp(softplus(np.log(a) - a * np.log(x)) / a))

continuous("powerlognorm", "c s", lambda x, c, s: (np.log(c) - np.log(x) - np.log(s) + log_normal_density(np.log(x) / s)
                                                   + (c - 1.0) * sp.log_ndtr(-np.log(x) / s)), POSITIVE, open_low=True,
           logsf=lambda x, c, s: c * sp.log_ndtr(-np.log(x) / s),
           logcdf=lambda x, c, s: log1mexp(-c * sp.log_ndtr(-np.log(x) / s)))
