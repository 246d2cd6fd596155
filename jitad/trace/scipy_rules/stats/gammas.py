"""The distributions of scipy.stats that are gamma or beta variables in disguise, and those with Bessel functions: one
row each.

Sources as in `stats.continuous` and `stats.shapes`; Bessel functions are scaled, so that nothing overflows.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.scipy_rules.stats.continuous import PI, POSITIVE, above, log_normal_density, log_one_plus_square
from jitad.trace.scipy_rules.stats.family import EULER, LOG2, LOG_2PI, LOG_SQRT_2PI, continuous, log1mexp, where
from jitad.trace.scipy_rules.stats.lifetimes import UNIT, softplus
from jitad.trace.scipy_rules.stats.shapes import (
    gamma_density,
    gamma_entropy,
    invgauss_density,
    invgauss_logcdf,
    invgauss_logsf,
)

# --- gamma -----------------------------------------------------------------------------------------

continuous("erlang", "a", gamma_density, POSITIVE, cdf=lambda x, a: sp.gammainc(a, x),
           sf=lambda x, a: sp.gammaincc(a, x), ppf=lambda q, a: sp.gammaincinv(a, q),
           isf=lambda q, a: sp.gammainccinv(a, q), mean=lambda a: a, var=lambda a: a, entropy=gamma_entropy)

continuous("chi", "df", lambda x, df: LOG2 - 0.5 * df * LOG2 - sp.gammaln(0.5 * df) + sp.xlogy(df - 1.0, x)
           - 0.5 * x * x, POSITIVE, cdf=lambda x, df: sp.gammainc(0.5 * df, 0.5 * x * x),
           sf=lambda x, df: sp.gammaincc(0.5 * df, 0.5 * x * x),
           ppf=lambda q, df: np.sqrt(2.0 * sp.gammaincinv(0.5 * df, q)),
           isf=lambda q, df: np.sqrt(2.0 * sp.gammainccinv(0.5 * df, q)),
           mean=lambda df: np.sqrt(2.0) * sp.poch(0.5 * df, 0.5))

continuous("maxwell", "", lambda x: 0.5 * np.log(2.0 / PI) + 2.0 * np.log(x) - 0.5 * x * x, POSITIVE,
           cdf=lambda x: sp.gammainc(1.5, 0.5 * x * x), sf=lambda x: sp.gammaincc(1.5, 0.5 * x * x),
           ppf=lambda q: np.sqrt(2.0 * sp.gammaincinv(1.5, q)), isf=lambda q: np.sqrt(2.0 * sp.gammainccinv(1.5, q)),
           mean=lambda: 2.0 * np.sqrt(2.0 / PI), var=lambda: 3.0 - 8.0 / PI,
           entropy=lambda: EULER + 0.5 * LOG_2PI - 0.5)

continuous("nakagami", "nu", lambda x, nu: (LOG2 + sp.xlogy(nu, nu) - sp.gammaln(nu) + sp.xlogy(2.0 * nu - 1.0, x)
                                            - nu * x * x), POSITIVE,
           cdf=lambda x, nu: sp.gammainc(nu, nu * x * x), sf=lambda x, nu: sp.gammaincc(nu, nu * x * x),
           ppf=lambda q, nu: np.sqrt(sp.gammaincinv(nu, q) / nu),
           isf=lambda q, nu: np.sqrt(sp.gammainccinv(nu, q) / nu),
           mean=lambda nu: sp.poch(nu, 0.5) / np.sqrt(nu))


def _log_of_gamma(p: Any, small: Any, log_q: Any, c: Any) -> Any:
    """``log(p)``; where p is tiny by the first term of the series of the incomplete gamma function (DLMF 8.7.1)."""
    return where(small, (log_q + sp.gammaln(c + 1.0)) / c, np.log(where(small, 1.0, p)))


def _loggamma_cdf(x: Any, c: Any) -> Any:
    far = x < -500.0
    return where(far, np.exp(c * x - sp.gammaln(c + 1.0)), sp.gammainc(c, np.exp(where(far, 0.0, x))))


continuous("loggamma", "c", lambda x, c: c * np.clip(x, -1e300, 1e300) - np.exp(x) - sp.gammaln(c),
           cdf=_loggamma_cdf, sf=lambda x, c: where(x < -500.0, 1.0 - _loggamma_cdf(x, c), sp.gammaincc(
               c, np.exp(np.maximum(x, -500.0)))),
           ppf=lambda q, c: _loggamma_ppf(q, c), isf=lambda q, c: np.log(sp.gammainccinv(c, q)),
           mean=lambda c: sp.psi(c))


def _loggamma_ppf(q: Any, c: Any) -> Any:
    p = sp.gammaincinv(c, q)
    return _log_of_gamma(p, p < 1e-250, np.log(q), c)


def _gengamma(x: Any, a: Any, c: Any) -> Any:
    none = (x == 0) & (c < 0)
    x = where(none, 1.0, x)
    return where(none, -np.inf, np.log(np.absolute(c)) + sp.xlogy(c * a - 1.0, x) - np.power(x, c) - sp.gammaln(a))


def _either(c: Any, positive: Any, negative: Any) -> Any:
    return where(c > 0, positive, negative)


continuous("gengamma", "a c", _gengamma, POSITIVE, valid=lambda a, c: (a > 0) & ((c < 0) | (c > 0)),
           cdf=lambda x, a, c: _either(c, sp.gammainc(a, np.power(x, c)), sp.gammaincc(a, np.power(x, c))),
           sf=lambda x, a, c: _either(c, sp.gammaincc(a, np.power(x, c)), sp.gammainc(a, np.power(x, c))),
           ppf=lambda q, a, c: np.power(_either(c, sp.gammaincinv(a, q), sp.gammainccinv(a, q)), 1.0 / c),
           isf=lambda q, a, c: np.power(_either(c, sp.gammainccinv(a, q), sp.gammaincinv(a, q)), 1.0 / c))

continuous("halfgennorm", "beta", lambda x, b: np.log(b) - sp.gammaln(1.0 / b) - np.power(x, b), POSITIVE,
           cdf=lambda x, b: sp.gammainc(1.0 / b, np.power(x, b)), sf=lambda x, b: sp.gammaincc(1.0 / b, np.power(x, b)),
           ppf=lambda q, b: np.power(sp.gammaincinv(1.0 / b, q), 1.0 / b),
           isf=lambda q, b: np.power(sp.gammainccinv(1.0 / b, q), 1.0 / b),
           entropy=lambda b: 1.0 / b - np.log(b) + sp.gammaln(1.0 / b))

continuous("dgamma", "a", lambda x, a: gamma_density(np.absolute(x), a) - LOG2, symmetric=True,
           cdf=lambda x, a: where(x > 0, 0.5 + 0.5 * sp.gammainc(a, np.absolute(x)),
                                  0.5 * sp.gammaincc(a, np.absolute(x))),
           ppf=lambda q, a: where(q > 0.5, sp.gammainccinv(a, 2.0 * np.minimum(1.0 - q, 0.5)),
                                  -sp.gammainccinv(a, 2.0 * np.minimum(q, 0.5))),
           mean=lambda a: 0.0 * a, var=lambda a: a * (a + 1.0))

continuous("dweibull", "c", lambda x, c: (np.log(0.5 * c) + sp.xlogy(c - 1.0, np.absolute(x))
                                          - np.power(np.absolute(x), c)), symmetric=True,
           cdf=lambda x, c: where(x > 0, 1.0 - 0.5 * np.exp(-np.power(np.absolute(x), c)),
                                  0.5 * np.exp(-np.power(np.absolute(x), c))),
           ppf=lambda q, c: where(q > 0.5, np.power(-np.log(2.0 * np.minimum(1.0 - q, 0.5)), 1.0 / c),
                                  -np.power(-np.log(2.0 * np.minimum(q, 0.5)), 1.0 / c)),
           mean=lambda c: 0.0 * c, var=lambda c: sp.gamma(1.0 + 2.0 / c))

# --- beta ------------------------------------------------------------------------------------------


def _f(x: Any, n: Any, m: Any) -> Any:
    """Of the product ``(m + n x)**-(n + m) / 2`` the powers of m are taken out, so that it is near 1 for large m."""
    return (0.5 * n * np.log(n / m) + sp.xlogy(0.5 * n - 1.0, x) - 0.5 * (n + m) * np.log1p(n * x / m)
            - sp.betaln(0.5 * n, 0.5 * m))


continuous("f", "dfn dfd", _f, POSITIVE, cdf=lambda x, n, m: sp.betainc(0.5 * n, 0.5 * m, n * x / (m + n * x)),
           sf=lambda x, n, m: sp.betainc(0.5 * m, 0.5 * n, m / (m + n * x)),
           ppf=lambda q, n, m: _odds(q, 0.5 * n, 0.5 * m) * m / n,
           isf=lambda q, n, m: m / n / _odds(q, 0.5 * m, 0.5 * n),
           mean=lambda n, m: above(2.0, m, m / (m - 2.0)),
           var=lambda n, m: where(m > 4.0, 2.0 * m * m * (n + m - 2.0) / (n * (m - 2.0) ** 2 * (m - 4.0)), np.inf))


def _odds(q: Any, a: Any, b: Any) -> Any:
    """``p / (1 - p)`` of the quantile p of a beta variable."""
    p, rest = sp.betaincinv(a, b, q), sp.betainccinv(b, a, q)
    return where(p < 0.5, p, 1.0 - rest) / where(p < 0.5, 1.0 - p, rest)


continuous("betaprime", "a b", lambda x, a, b: (a - 1.0) * np.log(x) - (a + b) * np.log1p(x) - sp.betaln(a, b),
           POSITIVE, open_low=True, cdf=lambda x, a, b: sp.betainc(a, b, x / (1.0 + x)),
           sf=lambda x, a, b: sp.betainc(b, a, 1.0 / (1.0 + x)),
           ppf=lambda q, a, b: _odds(q, a, b), isf=lambda q, a, b: 1.0 / _odds(q, b, a),
           mean=lambda a, b: above(1.0, b, a / (b - 1.0)),
           var=lambda a, b: above(2.0, b, a * (a + b - 1.0) / ((b - 2.0) * (b - 1.0) ** 2)))

continuous("rdist", "c", lambda x, c: (0.5 * c - 1.0) * (np.log1p(-x) + np.log1p(x)) - sp.betaln(0.5, 0.5 * c),
           (-1.0, 1.0), symmetric=True, cdf=lambda x, c: sp.betainc(0.5 * c, 0.5 * c, 0.5 * (x + 1.0)),
           ppf=lambda q, c: 2.0 * sp.betaincinv(0.5 * c, 0.5 * c, q) - 1.0, mean=lambda c: 0.0 * c,
           var=lambda c: 1.0 / (c + 1.0))

continuous("mielke", "k s", lambda x, k, s: np.log(k) + sp.xlogy(k - 1.0, x) - (1.0 + k / s) * softplus(s * np.log(x)),
           POSITIVE, logcdf=lambda x, k, s: -k / s * softplus(-s * np.log(x)),
           logsf=lambda x, k, s: log1mexp(k / s * softplus(-s * np.log(x))),
           ppf=lambda q, k, s: np.power(np.expm1(-np.log(q) * s / k), -1.0 / s),
           isf=lambda q, k, s: np.power(np.expm1(-np.log1p(-q) * s / k), -1.0 / s))

# --- inverse Gaussian and Bessel -------------------------------------------------------------------

continuous("recipinvgauss", "mu", lambda x, mu: invgauss_density(1.0 / x, mu) - 2.0 * np.log(x), POSITIVE,
           open_low=True, logcdf=lambda x, mu: invgauss_logsf(1.0 / x, mu),
           logsf=lambda x, mu: invgauss_logcdf(1.0 / x, mu))

continuous("rice", "b", lambda x, b: np.log(x) - 0.5 * np.square(x - b) + np.log(sp.i0e(x * b)), POSITIVE,
           valid=lambda b: b >= 0, mean=lambda b: _rice_mean(b), var=lambda b: b * b + 2.0 - _rice_mean(b) ** 2)


def _rice_mean(b: Any) -> Any:
    """By the Laguerre function of index 1/2 (DLMF 13.6.9)."""
    t = 0.25 * b * b
    return np.sqrt(0.5 * PI) * ((1.0 + 2.0 * t) * sp.i0e(t) + 2.0 * t * sp.i1e(t))


def _ncx2(x: Any, df: Any, nc: Any) -> Any:
    zero = x == 0
    x = where(zero, 1.0, x)
    order, roots = 0.5 * df - 1.0, (np.sqrt(x), np.sqrt(nc))
    density = (0.5 * order * np.log(x / nc) - 0.5 * np.square(roots[0] - roots[1])
               + np.log(0.5 * sp.ive(order, roots[0] * roots[1])))
    return where(zero, -np.inf, density)


continuous("ncx2", "df nc", _ncx2, POSITIVE, valid=lambda df, nc: (df > 0) & np.isfinite(df) & (nc > 0),
           mean=lambda df, nc: df + nc, var=lambda df, nc: 2.0 * (df + 2.0 * nc))

continuous("norminvgauss", "a b", lambda x, a, b: _nig(x, a, b), valid=lambda a, b: (a > 0) & (np.absolute(b) < a),
           mean=lambda a, b: b / np.sqrt((a - b) * (a + b)), var=lambda a, b: a * a / ((a - b) * (a + b)) ** 1.5)


def _nig(x: Any, a: Any, b: Any) -> Any:
    x = np.clip(x, -1e150, 1e150)
    far = np.hypot(1.0, x)
    return (np.log(a / PI) + np.log(sp.k1e(a * far)) - np.log(far) + np.sqrt((a - b) * (a + b)) + b * x - a * far)


continuous("geninvgauss", "p b", lambda x, p, b: (sp.xlogy(p - 1.0, x) - 0.5 * b * np.square(x - 1.0) / x
                                                  - np.log(2.0 * sp.kve(p, b))), POSITIVE, open_low=True,
           valid=lambda p, b: (p == p) & (b > 0), mean=lambda p, b: sp.kve(p + 1.0, b) / sp.kve(p, b))

continuous("genhyperbolic", "p a b", lambda x, p, a, b: _hyperbolic(x, p, a, b),
           valid=lambda p, a, b: (a > 0) & (np.absolute(b) < a) | (a > 0) & (np.absolute(b) == a) & (p < 0))


def _hyperbolic(x: Any, p: Any, a: Any, b: Any) -> Any:
    x = np.clip(x, -1e150, 1e150)
    far, g = np.hypot(1.0, x), np.sqrt((a - b) * (a + b))
    return (p * np.log(g) + (0.5 - p) * np.log(a) - LOG_SQRT_2PI - np.log(sp.kve(p, g)) + g
            + (p - 0.5) * np.log(far) + np.log(sp.kve(p - 0.5, a * far)) - a * far + b * x)


continuous("jf_skew_t", "a b", lambda x, a, b: _jones(x, a, b))


def _jones(x: Any, a: Any, b: Any) -> Any:
    """With ``r = x / sqrt(a + b + x**2)``; the smaller of 1 + r and 1 - r by its quotient."""
    x = np.clip(x, -1e300, 1e300)
    far = np.hypot(np.sqrt(a + b), x)
    large = 1.0 + np.absolute(x) / far
    small = (a + b) / (far * far * large)
    right = x > 0
    up, down = where(right, large, small), where(right, small, large)
    return ((a + 0.5) * np.log(up) + (b + 0.5) * np.log(down) - sp.betaln(a, b) - 0.5 * np.log(a + b)
            - (a + b - 1.0) * LOG2)


continuous("rel_breitwigner", "rho", lambda x, rho: _resonance(x, rho), POSITIVE)


def _resonance(x: Any, rho: Any) -> Any:
    u = np.sqrt(1.0 + 1.0 / (rho * rho))
    constant = 0.5 * np.log(2.0 * u * u / (1.0 + u)) + np.log(2.0 / PI)
    return constant - log_one_plus_square((x - rho) * (x + rho) / rho)


continuous("argus", "chi", lambda x, chi: (3.0 * np.log(chi) - LOG_SQRT_2PI - np.log(0.5 * sp.gammainc(
    1.5, 0.5 * chi * chi)) + np.log(x) + 0.5 * (np.log1p(-x) + np.log1p(x)) + 0.5 * chi * chi * (x - 1.0) * (x + 1.0)),
    UNIT, cdf=lambda x, chi: 1.0 - _argus_sf(x, chi), sf=lambda x, chi: _argus_sf(x, chi))


def _argus_sf(x: Any, chi: Any) -> Any:
    half = 0.5 * chi * chi
    return sp.gammainc(1.5, half * (1.0 - x) * (1.0 + x)) / sp.gammainc(1.5, half)


continuous("pearson3", "skew", lambda x, skew: _pearson(x, skew), lambda skew: (
    where(skew > 0, -2.0 / where(skew == 0, 1.0, skew), where(skew == skew, -np.inf, np.nan)),
    where(skew < 0, -2.0 / where(skew == 0, 1.0, skew), np.inf)), valid=np.isfinite, mean=lambda skew: 0.0 * skew,
    var=lambda skew: 1.0 + 0.0 * skew)


def _pearson(x: Any, skew: Any) -> Any:
    """A gamma variable of shape ``4 / skew**2``, standardised; the normal where that is infinite but for rounding, as
    in SciPy."""
    flat = np.absolute(skew) < 0.000016
    beta = 2.0 / where(flat, 1.0, skew)
    z = np.clip(beta * (x + beta), 0.0, 1e300)
    density = where(flat, log_normal_density(x), np.log(np.absolute(beta)) + gamma_density(z, beta * beta))
    return where(np.absolute(x) == np.inf, -np.inf, density)
