"""The continuous distributions of scipy.stats whose densities hold gamma functions or powers: one row each.

Sources as in `stats.continuous`; distribution functions by the incomplete gamma and beta functions (DLMF 8.2, 8.17).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.scipy_rules.stats.continuous import POSITIVE, SQRT2, above, log_normal_density, log_one_plus_square
from jitad.trace.scipy_rules.stats.family import EULER, LOG2, LOG_2PI, LOG_SQRT_2PI, continuous, log1mexp, where

# --- gamma -----------------------------------------------------------------------------------------


def gamma_density(x: Any, a: Any) -> Any:
    return sp.xlogy(a - 1.0, x) - x - sp.gammaln(a)


def gamma_entropy(a: Any) -> Any:
    """``a + gammaln(a) + (1 - a) psi(a)``; for large a, where that cancels, by the series of both (DLMF 5.11)."""
    u = 1.0 / a
    series = 0.5 * (1.0 + LOG_2PI + np.log(a)) - u * (1 / 3 + u * (1 / 12 + u * (1 / 90 - u / 120)))
    return where(a > 250.0, series, a + sp.gammaln(a) + (1.0 - a) * sp.psi(a))


continuous("gamma", "a", gamma_density, POSITIVE, cdf=lambda x, a: sp.gammainc(a, x),
           sf=lambda x, a: sp.gammaincc(a, x), ppf=lambda q, a: sp.gammaincinv(a, q),
           isf=lambda q, a: sp.gammainccinv(a, q),
           mean=lambda a: a, var=lambda a: a, entropy=gamma_entropy)

continuous("chi2", "df", lambda x, df: gamma_density(0.5 * x, 0.5 * df) - LOG2, POSITIVE,
           cdf=lambda x, df: sp.gammainc(0.5 * df, 0.5 * x), sf=lambda x, df: sp.gammaincc(0.5 * df, 0.5 * x),
           ppf=lambda q, df: 2.0 * sp.gammaincinv(0.5 * df, q), isf=lambda q, df: 2.0 * sp.gammainccinv(0.5 * df, q),
           mean=lambda df: df, var=lambda df: 2.0 * df, entropy=lambda df: gamma_entropy(0.5 * df) + LOG2)

continuous("invgamma", "a", lambda x, a: -(a + 1.0) * np.log(x) - sp.gammaln(a) - 1.0 / x, POSITIVE, open_low=True,
           cdf=lambda x, a: sp.gammaincc(a, 1.0 / x), sf=lambda x, a: sp.gammainc(a, 1.0 / x),
           ppf=lambda q, a: 1.0 / sp.gammainccinv(a, q), isf=lambda q, a: 1.0 / sp.gammaincinv(a, q),
           mean=lambda a: above(1.0, a, 1.0 / (a - 1.0)),
           var=lambda a: above(2.0, a, 1.0 / ((a - 1.0) ** 2 * (a - 2.0))),
           entropy=lambda a: gamma_entropy(a) - 2.0 * sp.psi(a))

continuous("weibull_min", "c", lambda x, c: np.log(c) + sp.xlogy(c - 1.0, x) - np.power(x, c), POSITIVE,
           cdf=lambda x, c: -np.expm1(-np.power(x, c)), sf=lambda x, c: np.exp(-np.power(x, c)),
           logcdf=lambda x, c: log1mexp(np.power(x, c)), logsf=lambda x, c: -np.power(x, c),
           ppf=lambda q, c: np.power(-np.log1p(-q), 1.0 / c), isf=lambda q, c: np.power(-np.log(q), 1.0 / c),
           mean=lambda c: np.exp(sp.gammaln(1.0 + 1.0 / c)), var=lambda c: _weibull_var(c),
           entropy=lambda c: EULER * (1.0 - 1.0 / c) - np.log(c) + 1.0)


def _weibull_var(c: Any) -> Any:
    first, second = sp.gammaln(1.0 + 1.0 / c), sp.gammaln(1.0 + 2.0 / c)
    return np.exp(2.0 * first) * np.expm1(second - 2.0 * first)


# --- generalised normal ----------------------------------------------------------------------------

def _abs_power(x: Any, b: Any) -> Any:
    """``abs(x)**b``. By the square of x where that is a number, so that the second derivative at 0 is that of x**2
    for b = 2; with slope 0 in x at the cusp that it has at 0 for b <= 1."""
    size = np.absolute(x)
    cusp, even = (x == 0) & (b <= 1.0), (size < 1e150) & ((size > 1e-150) | (x == 0))
    power = np.power(where(cusp, 1.0, where(even, x * x, size)), where(even, 0.5 * b, b))
    return where(cusp, 0.0, power)


def _gennorm_cdf(x: Any, b: Any) -> Any:
    """By the incomplete gamma function of |x|**b; near 0, where that has no slope in numbers, by the density there."""
    near = np.absolute(x) < 1e-30
    half = 0.5 * sp.gammaincc(1.0 / b, _abs_power(where(near, 1.0, x), b))
    return where(near, 0.5 + 0.5 * x * b * np.exp(-sp.gammaln(1.0 / b)), where(x > 0, 1.0 - half, half))


continuous("gennorm", "beta", lambda x, b: np.log(0.5 * b) - sp.gammaln(1.0 / b) - _abs_power(x, b), symmetric=True,
           cdf=_gennorm_cdf, mean=lambda b: 0.0 * b, var=lambda b: np.exp(sp.gammaln(3.0 / b) - sp.gammaln(1.0 / b)),
           entropy=lambda b: 1.0 / b - np.log(0.5 * b) + sp.gammaln(1.0 / b))


# --- beta and Student's t --------------------------------------------------------------------------

continuous("beta", "a b", lambda x, a, b: sp.xlogy(a - 1.0, x) + sp.xlog1py(b - 1.0, -x) - sp.betaln(a, b), (0.0, 1.0),
           cdf=lambda x, a, b: sp.betainc(a, b, x), sf=lambda x, a, b: sp.betaincc(a, b, x),
           ppf=lambda q, a, b: sp.betaincinv(a, b, q), isf=lambda q, a, b: sp.betainccinv(a, b, q),
           mean=lambda a, b: a / (a + b), var=lambda a, b: a / (a + b) * (b / (a + b)) / (a + b + 1.0),
           entropy=lambda a, b: (sp.betaln(a, b) - (a - 1.0) * sp.psi(a) - (b - 1.0) * sp.psi(b)
                                 + (a + b - 2.0) * sp.psi(a + b)))

HALF_STEP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224)
"""``gammaln(x + 1/2) - gammaln(x) = log(x) / 2 + sum(HALF_STEP[k] / x**(2 k + 1))``: DLMF 5.11.8 with h = 0 and 1/2,
B_n(1/2) = (2**(1 - n) - 1) B_n (DLMF 24.4.27)."""


def log_t_constant(df: Any) -> Any:
    """Logarithm of the density of Student's t at 0."""
    x = 0.5 * df
    u = 1.0 / x
    near = x < 12.0
    series = HALF_STEP[-1] * np.ones_like(u)
    for c in reversed(HALF_STEP[:-1]):
        series = series * (u * u) + c
    exact = where(near, x, 1.0)
    return where(near, sp.gammaln(exact + 0.5) - sp.gammaln(exact) - 0.5 * np.log(2.0 * np.pi * exact),
                 series * u - LOG_SQRT_2PI)


def finite_df(df: Any) -> Any:
    """Degrees of freedom beyond which t is the normal, infinity too, as a number."""
    return np.minimum(df, 1e100)


def _t(x: Any, df: Any) -> Any:
    df = finite_df(df)
    return log_t_constant(df) - 0.5 * (df + 1.0) * log_one_plus_square(x / np.sqrt(df))


def _t_entropy(df: Any) -> Any:
    """``(df + 1) / 2 * (psi((df + 1) / 2) - psi(df / 2)) - log_t_constant(df)``, for large df by the series' slope."""
    x = 0.5 * finite_df(df)
    u = 1.0 / x
    near = x < 30.0
    series = 0.5 + u * 0.125 - u ** 3 * (1 / 64 - u * u * (1 / 128 - u * u * 17 / 2048))
    exact = where(near, x, 1.0)
    steps = where(near, exact * (sp.psi(exact + 0.5) - sp.psi(exact)), series)
    return (1.0 + 0.5 * u) * steps - log_t_constant(2.0 * x)


continuous("t", "df", _t, symmetric=True, cdf=lambda x, df: sp.stdtr(df, x), ppf=lambda q, df: sp.stdtrit(df, q),
           mean=lambda df: above(1.0, df, 0.0), var=lambda df: _t_var(df), entropy=_t_entropy)


def _t_var(df: Any) -> Any:
    df = finite_df(df)
    return where(df > 1.0, above(2.0, df, df / (df - 2.0)), np.nan)


# --- inverse Gaussian ------------------------------------------------------------------------------

def invgauss_density(x: Any, mu: Any) -> Any:
    return -LOG_SQRT_2PI - 1.5 * np.log(x) - 0.5 * ((x / mu - 1.0) * (1.0 / mu - 1.0 / x))


def _invgauss_parts(x: Any, mu: Any) -> tuple[Any, Any, Any]:
    """(g, t, d): with ``g, h = (x / mu -+ 1) / sqrt(x)`` the distribution function is ``ndtr(g) + t`` where ``t =
    exp(2 / mu) ndtr(-h) = exp(-g**2 / 2) erfcx(h / sqrt(2)) / 2``, as h**2 - g**2 is 4 / mu; the upper tail for g > 0
    is ``exp(d)``, from the difference of erfcx at g and h, which far away is that of their series (DLMF 7.12.1)."""
    x = np.minimum(x, 1e300)
    root = 1.0 / np.sqrt(x)
    g, h = root * (x / mu - 1.0), root * (x / mu + 1.0)
    near, far = -0.5 * np.square(g), g > 100.0
    other = sp.erfcx(h / SQRT2)
    u, v = where(far, 1.0 / g, 0.0), 1.0 / h
    uu, vv, uv = u * u, v * v, u * v
    series = (2.0 / np.pi) ** 0.5 * (2.0 * root * v) * u * (
        1.0 - (uu + uv + vv) + 3.0 * (uu * uu + uv * (uu + uv + vv) + vv * vv))
    upper = where(far, series, sp.erfcx(where(g > 0, where(far, 1.0, g), 0.0) / SQRT2) - other)
    return g, near + np.log(0.5 * other), near + np.log(0.5 * upper)


def invgauss_logcdf(x: Any, mu: Any) -> Any:
    g, t, d = _invgauss_parts(x, mu)
    return where(g > 0, np.log1p(-np.exp(d)), np.logaddexp(sp.log_ndtr(g), t))


def invgauss_logsf(x: Any, mu: Any) -> Any:
    g, t, d = _invgauss_parts(x, mu)
    return where(g > 0, d, np.log1p(-sp.ndtr(g) - np.exp(t)))


continuous("invgauss", "mu", invgauss_density, POSITIVE, open_low=True, logcdf=invgauss_logcdf, logsf=invgauss_logsf,
           mean=lambda mu: mu, var=lambda mu: mu ** 3)
continuous("wald", "", lambda x: invgauss_density(x, 1.0), POSITIVE, open_low=True,
           logcdf=lambda x: invgauss_logcdf(x, 1.0), logsf=lambda x: invgauss_logsf(x, 1.0),
           mean=lambda: 1.0, var=lambda: 1.0)


# --- truncated normal ------------------------------------------------------------------------------

def _log_mass(a: Any, b: Any) -> Any:
    """Logarithm of the standard normal's mass between a < b: of two tails on the same side by their logarithms, of an
    interval about 0 by error functions, which do not cancel there."""
    flip = a > 0
    low, high = where(flip, -b, a), where(flip, -a, b)
    tail = high <= 0
    upper, lower = sp.log_ndtr(where(tail, high, 0.0)), sp.log_ndtr(where(tail, low, -1.0))
    middle = sp.erf(where(tail, 1.0, high) / SQRT2) - sp.erf(where(tail, -1.0, low) / SQRT2)
    return where(tail, where(upper == -np.inf, -np.inf, upper + log1mexp(upper - lower)), np.log(0.5 * middle))


def _log_share(part: Any, rest: Any, whole: Any) -> Any:
    share = part - whole
    return where(share < -LOG2, share, np.log1p(-np.exp(rest - whole)))


continuous("truncnorm", "a b", lambda x, a, b: log_normal_density(x) - _log_mass(a, b), lambda a, b: (a, b),
           valid=lambda a, b: a < b,
           logcdf=lambda x, a, b: _log_share(_log_mass(a, x), _log_mass(x, b), _log_mass(a, b)),
           logsf=lambda x, a, b: _log_share(_log_mass(x, b), _log_mass(a, x), _log_mass(a, b)),
           mean=lambda a, b: (np.exp(log_normal_density(a) - _log_mass(a, b))
                              - np.exp(log_normal_density(b) - _log_mass(a, b))))
