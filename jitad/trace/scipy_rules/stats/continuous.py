"""The continuous distributions of scipy.stats on the line: one row each, in standard form.

Parametrisations are those of SciPy's documentation; densities and moments are textbook facts (Johnson, Kotz and
Balakrishnan, Continuous Univariate Distributions, 1994). Forms are chosen so that they neither overflow nor cancel.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.scipy_rules.stats.family import EULER, LOG2, LOG_2PI, LOG_SQRT_2PI, continuous, log1mexp, where

PI = np.pi
SQRT2 = float(np.sqrt(2.0))
POSITIVE = (0.0, np.inf)
FAR, SHRINK = 2.0**511, 2.0**-513             # the squares of FAR, and of every number times SHRINK, are finite


def log_normal_density(z: Any) -> Any:
    return -0.5 * np.square(z) - LOG_SQRT_2PI


def log_one_plus_square(z: Any) -> Any:
    """``log(1 + z**2)`` without overflow, by one logarithm; what is chosen are constants, so that the slope needs no
    choice."""
    far = np.absolute(z) > FAR
    shrunk = np.square(z * where(far, SHRINK, 1.0)) - where(far, 1.0, 0.0)
    return np.log1p(shrunk) + where(far, -2.0 * np.log(SHRINK), 0.0)


def above(limit: float, x: Any, value: Any) -> Any:
    """A moment that exists for x > `limit`."""
    return where(x > limit, value, np.inf)


# --- the normal and its kin ------------------------------------------------------------------------

continuous("norm", "", log_normal_density, symmetric=True, cdf=sp.ndtr, logcdf=sp.log_ndtr, ppf=sp.ndtri,
           mean=lambda: 0.0, var=lambda: 1.0, entropy=lambda: 0.5 * (1.0 + LOG_2PI))

continuous("lognorm", "s", lambda x, s: _lognorm(np.log(x), s), POSITIVE, open_low=True,
           cdf=lambda x, s: sp.ndtr(np.log(x) / s), sf=lambda x, s: sp.ndtr(-np.log(x) / s),
           logcdf=lambda x, s: sp.log_ndtr(np.log(x) / s), logsf=lambda x, s: sp.log_ndtr(-np.log(x) / s),
           ppf=lambda q, s: np.exp(s * sp.ndtri(q)), isf=lambda q, s: np.exp(-s * sp.ndtri(q)),
           mean=lambda s: np.exp(0.5 * s * s), var=lambda s: np.expm1(s * s) * np.exp(s * s),
           entropy=lambda s: 0.5 * (1.0 + LOG_2PI) + np.log(s))


def _lognorm(log_x: Any, s: Any) -> Any:
    return log_normal_density(log_x / s) - np.log(s) - log_x


continuous("halfnorm", "", lambda x: log_normal_density(x) + LOG2, POSITIVE,
           cdf=lambda x: sp.erf(x / SQRT2), sf=lambda x: sp.erfc(x / SQRT2),
           logcdf=lambda x: where(x < 1.0, np.log(sp.erf(x / SQRT2)), np.log1p(-sp.erfc(x / SQRT2))),
           logsf=lambda x: LOG2 + sp.log_ndtr(-x),
           ppf=lambda q: SQRT2 * sp.erfinv(q), isf=lambda q: -sp.ndtri(0.5 * q),
           mean=lambda: np.sqrt(2.0 / PI), var=lambda: 1.0 - 2.0 / PI, entropy=lambda: 0.5 * np.log(PI / 2.0) + 0.5)


def _exponnorm(x: Any, k: Any) -> Any:
    """``exp(1 / (2 K**2) - x / K) * ndtr(x - 1 / K) / K``; where the two factors cancel, for x < 1 / K, by their
    product ``exp(-x**2 / 2) erfcx((1 / K - x) / sqrt(2)) / (2 K)`` (DLMF 7.2.3 and 7.2.7), and far from there by the
    asymptotic series of that (DLMF 7.12.1)."""
    rate = 1.0 / k
    u = x - rate
    left, far = u < 0, u < -70.0
    scaled = np.log(sp.erfcx(where(left & ~far, -u / SQRT2, 0.0))) - LOG2 - np.log(k)
    right = rate * (0.5 * rate - x) + sp.log_ndtr(where(left, 0.0, u)) - np.log(k)
    gap = where(far, 1.0 - x * k, 1.0)
    w = np.square(where(far, k / gap, 0.0))
    series = np.log1p(-w * (1.0 - w * (3.0 - w * (15.0 - w * (105.0 - w * 945.0))))) - np.log(gap)
    return where(left, -0.5 * np.square(x) + where(far, series - LOG_SQRT_2PI, scaled), right)


def _exponnorm_part(x: Any, k: Any) -> Any:
    return _exponnorm(x, k) + np.log(k)


continuous("exponnorm", "K", _exponnorm,
           cdf=lambda x, k: np.exp(_exponnorm_logcdf(x, k)),
           sf=lambda x, k: sp.ndtr(-x) + np.exp(_exponnorm_part(x, k)),
           logcdf=lambda x, k: _exponnorm_logcdf(x, k),
           logsf=lambda x, k: np.logaddexp(sp.log_ndtr(-x), _exponnorm_part(x, k)),
           mean=lambda k: k, var=lambda k: 1.0 + k * k)


def _exponnorm_logcdf(x: Any, k: Any) -> Any:
    whole = sp.log_ndtr(x)
    return where(whole == -np.inf, -np.inf, whole + np.log1p(-np.exp(_exponnorm_part(x, k) - whole)))


continuous("skewnorm", "a", lambda x, a: log_normal_density(x) + LOG2 + sp.log_ndtr(a * np.clip(x, -1e300, 1e300)),
           valid=lambda a: np.isfinite(a),
           cdf=lambda x, a: _skew_cdf(x, a), sf=lambda x, a: _skew_cdf(-x, -a),
           logcdf=lambda x, a: _skew_logcdf(x, a), logsf=lambda x, a: _skew_logcdf(-x, -a),
           mean=lambda a: np.sqrt(2.0 / PI) * _skew(a), var=lambda a: 1.0 - 2.0 / PI * _skew(a) ** 2)


def _skew(a: Any) -> Any:
    return a / np.hypot(1.0, a)


def _skew_tail(x: Any, a: Any) -> tuple[Any, Any]:
    """Where ``ndtr(x) - 2 owens_t(x, a)`` cancels for -abs(x) and abs(a), and the logarithm of that difference there:
    the rest of Owen's integral from a to infinity, ``exp(-x**2 (1 + u**2) / 2) / (1 + u**2) / pi``, by Gauss-Legendre
    nodes that lie densest at its beginning (Owen, Tables for computing bivariate normal probabilities, 1956)."""
    size, a = np.absolute(x), where(a > 0, a, -a)
    deep = (size > 1.0) | (a * size > 1.0)
    size, a = where(deep, np.minimum(size, 1e150), 2.0), where(deep, a, 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    width = 40.0 / (size * (a * size + 1.0))
    size_, a_, step = (np.expand_dims(v, -1) * np.ones(nodes.size) for v in (size, a, width))
    step = step * (nodes * nodes)
    exponent = (size_ * step) * (size_ * a_ + 0.5 * (size_ * step))
    mean = np.sum(weights * nodes * np.exp(-exponent) / (1.0 + np.square(a_ + step)), axis=-1)
    return deep, -0.5 * np.square(size) - 0.5 * np.square(a * size) + np.log(2.0 / PI * width * mean)


def _skew_cdf(x: Any, a: Any) -> Any:
    deep, tail = _skew_tail(x, a)
    return where(deep & (x < 0) & (a > 0), np.exp(tail), sp.ndtr(x) - 2.0 * sp.owens_t(x, a))


def _skew_logcdf(x: Any, a: Any) -> Any:
    deep, tail = _skew_tail(x, a)
    part = 2.0 * sp.owens_t(x, a)
    p = sp.ndtr(x) - part
    rest = where(deep & (x > 0) & (a < 0), np.exp(tail), sp.ndtr(-x) + part)
    both = LOG2 + sp.log_ndtr(x)                                    # of the tails for a and for -a
    other = both + np.log1p(-np.exp(np.minimum(tail - both, -0.1)))  # at most half of both, but for rounding
    direct = where(p < 0.5, np.log(p), np.log1p(-rest))
    return where(deep & (x < 0) & (both > -np.inf), where(a > 0, tail, other), direct)


# --- exponentials ----------------------------------------------------------------------------------

continuous("expon", "", lambda x: -x, POSITIVE, cdf=lambda x: -np.expm1(-x), sf=lambda x: np.exp(-x),
           logcdf=log1mexp, logsf=lambda x: -x, ppf=lambda q: -np.log1p(-q), isf=lambda q: -np.log(q),
           mean=lambda: 1.0, var=lambda: 1.0, entropy=lambda: 1.0)

continuous("laplace", "", lambda x: -np.absolute(x) - LOG2, symmetric=True, cdf=lambda x: _laplace_cdf(x),
           logcdf=lambda x: where(x > 0, np.log1p(-0.5 * np.exp(-np.absolute(x))), x - LOG2),
           ppf=lambda q: where(q > 0.5, -np.log(2.0 * (1.0 - q)), np.log(2.0 * q)),
           mean=lambda: 0.0, var=lambda: 2.0, entropy=lambda: LOG2 + 1.0)


def _laplace_cdf(x: Any) -> Any:
    tail = 0.5 * np.exp(-np.absolute(x))
    return where(x > 0, 1.0 - tail, tail)


continuous("logistic", "", lambda x: sp.log_expit(x) + sp.log_expit(-x), symmetric=True, cdf=sp.expit,
           logcdf=sp.log_expit, ppf=sp.logit, mean=lambda: 0.0, var=lambda: PI * PI / 3.0, entropy=lambda: 2.0)


def gumbel_density(x: Any) -> Any:
    x = np.maximum(x, -1e300)                                       # at -inf the limit, not inf - inf
    return -x - np.exp(-x)


continuous("gumbel_r", "", gumbel_density, cdf=lambda x: np.exp(-np.exp(-x)),
           sf=lambda x: -np.expm1(-np.exp(-x)),
           logcdf=lambda x: -np.exp(-x), logsf=lambda x: gumbel_log_tail(x),
           ppf=lambda q: -np.log(-np.log(q)), isf=lambda q: -np.log(-np.log1p(-q)),
           mean=lambda: EULER, var=lambda: PI * PI / 6.0, entropy=lambda: EULER + 1.0)

continuous("gumbel_l", "", lambda x: gumbel_density(-x), cdf=lambda x: -np.expm1(-np.exp(x)),
           sf=lambda x: np.exp(-np.exp(x)),
           logcdf=lambda x: gumbel_log_tail(-x), logsf=lambda x: -np.exp(x),
           ppf=lambda q: np.log(-np.log1p(-q)), isf=lambda q: np.log(-np.log(q)),
           mean=lambda: -EULER, var=lambda: PI * PI / 6.0, entropy=lambda: EULER + 1.0)


def gumbel_log_tail(x: Any) -> Any:
    """``log(1 - exp(-e))`` with ``e = exp(-x)``, to first order in e when that is below rounding."""
    far = x > 40.0
    return where(far, -x, log1mexp(np.exp(-where(far, 0.0, x))))


# --- heavy tails -----------------------------------------------------------------------------------

continuous("cauchy", "", lambda x: -np.log(PI) - log_one_plus_square(x), symmetric=True,
           cdf=lambda x: np.arctan2(1.0, -x) / PI, logcdf=lambda x: _cauchy_logcdf(x),
           ppf=lambda q: _cauchy_ppf(q),
           mean=lambda: np.nan, var=lambda: np.nan, entropy=lambda: np.log(4.0 * PI))


def _cauchy_ppf(q: Any) -> Any:
    """``tan(pi (q - 1/2))``, towards the ends as a reciprocal."""
    middle, low = np.absolute(q - 0.5) < 0.25, q < 0.5
    slope = np.tan(PI * where(middle, q - 0.5, where(low, q, 1.0 - q)))
    return where(middle, slope, where(low, -1.0, 1.0) / slope)


def _cauchy_logcdf(x: Any) -> Any:
    return where(x < 0, np.log(np.arctan2(1.0, -x) / PI), np.log1p(-np.arctan2(1.0, x) / PI))


continuous("halfcauchy", "", lambda x: np.log(2.0 / PI) - log_one_plus_square(x), POSITIVE,
           cdf=lambda x: 2.0 / PI * np.arctan(x), sf=lambda x: 2.0 / PI * np.arctan2(1.0, x),
           ppf=lambda q: np.tan(PI / 2.0 * q), isf=lambda q: 1.0 / np.tan(PI / 2.0 * q),
           mean=lambda: np.inf, var=lambda: np.inf, entropy=lambda: np.log(2.0 * PI))

continuous("pareto", "b", lambda x, b: np.log(b) - (b + 1.0) * np.log(x), (1.0, np.inf),
           cdf=lambda x, b: -np.expm1(-b * np.log(x)), sf=lambda x, b: np.exp(-b * np.log(x)),
           logcdf=lambda x, b: log1mexp(b * np.log(x)), logsf=lambda x, b: -b * np.log(x),
           ppf=lambda q, b: np.exp(-np.log1p(-q) / b), isf=lambda q, b: np.exp(-np.log(q) / b),
           mean=lambda b: above(1.0, b, b / (b - 1.0)),
           var=lambda b: above(2.0, b, b / ((b - 1.0) ** 2 * (b - 2.0))), entropy=lambda b: 1.0 + 1.0 / b - np.log(b))


# --- bounded and circular --------------------------------------------------------------------------

continuous("uniform", "", lambda x: 0.0 * x, (0.0, 1.0), cdf=lambda x: x, sf=lambda x: 1.0 - x, ppf=lambda q: q,
           mean=lambda: 0.5, var=lambda: 1.0 / 12.0, entropy=lambda: 0.0)

continuous("vonmises", "kappa", lambda x, k: -2.0 * k * np.square(np.sin(0.5 * x)) - LOG_2PI - np.log(sp.i0e(k)),
           valid=lambda k: k >= 0,
           entropy=lambda k: k - k * sp.i1e(k) / sp.i0e(k) + LOG_2PI + np.log(sp.i0e(k)))
