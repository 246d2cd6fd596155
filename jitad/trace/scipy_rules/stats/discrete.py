"""The discrete distributions of scipy.stats: one row each.

Parametrisations are those of SciPy's documentation (Johnson, Kemp and Kotz, Univariate Discrete Distributions, 2005);
distribution functions by the incomplete gamma and beta functions (DLMF 8.2, 8.17.5).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.scipy_rules.stats.family import discrete, log1mexp, where


def is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def is_count(n: Any) -> Any:
    return (n >= 0) & (np.floor(n) == n)


def log_choose(n: Any, k: Any) -> Any:
    return sp.gammaln(n + 1.0) - sp.gammaln(k + 1.0) - sp.gammaln(n - k + 1.0)


def _up_to(n: Any, *others: Any) -> tuple[Any, Any]:
    return 0.0, n


discrete("bernoulli", "p", lambda k, p: where(k == 1.0, np.log(p), np.log1p(-p)) + 0.0 * k, (0.0, 1.0),
         valid=is_probability, off=lambda k: np.absolute(k * (1.0 - k)) > 0,
         cdf=lambda k, p: 1.0 - p + 0.0 * k, sf=lambda k, p: p + 0.0 * k,
         logcdf=lambda k, p: np.log1p(-p) + 0.0 * k, logsf=lambda k, p: np.log(p) + 0.0 * k,
         mean=lambda p: p, var=lambda p: p * (1.0 - p), entropy=lambda p: sp.entr(p) + sp.entr(1.0 - p))

discrete("binom", "n p", lambda k, n, p: log_choose(n, k) + sp.xlogy(k, p) + sp.xlog1py(n - k, -p), _up_to,
         valid=lambda n, p: is_count(n) & is_probability(p),
         cdf=lambda k, n, p: sp.betaincc(k + 1.0, n - k, p), sf=lambda k, n, p: sp.betainc(k + 1.0, n - k, p),
         mean=lambda n, p: n * p, var=lambda n, p: n * p * (1.0 - p))

discrete("betabinom", "n a b",
         lambda k, n, a, b: log_choose(n, k) + sp.betaln(k + a, n - k + b) - sp.betaln(a, b), _up_to,
         valid=lambda n, a, b: is_count(n) & (a > 0) & (b > 0), mean=lambda n, a, b: n * (a / (a + b)),
         var=lambda n, a, b: n * (a / (a + b)) * (b / (a + b)) * ((a + b + n) / (a + b + 1.0)))

discrete("nbinom", "n p", lambda k, n, p: _nbinom(k, n, p), valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
         cdf=lambda k, n, p: sp.betainc(n, k + 1.0, p), sf=lambda k, n, p: sp.betaincc(n, k + 1.0, p),
         mean=lambda n, p: n * (1.0 - p) / p, var=lambda n, p: n * (1.0 - p) / (p * p))


def _nbinom(k: Any, n: Any, p: Any) -> Any:
    return (sp.gammaln(n + k) - sp.gammaln(k + 1.0) - sp.gammaln(n)) + n * np.log(p) + sp.xlog1py(k, -p)


discrete("geom", "p", lambda k, p: sp.xlog1py(k - 1.0, -p) + np.log(p), (1.0, np.inf),
         valid=lambda p: (p > 0) & (p <= 1),
         cdf=lambda k, p: -np.expm1(k * np.log1p(-p)), sf=lambda k, p: np.exp(k * np.log1p(-p)),
         logcdf=lambda k, p: log1mexp(-k * np.log1p(-p)), logsf=lambda k, p: k * np.log1p(-p),
         mean=lambda p: 1.0 / p, var=lambda p: (1.0 - p) / (p * p),
         entropy=lambda p: -np.log(p) - sp.xlog1py(1.0 - p, -p) / p)

discrete("poisson", "mu", lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1.0) - mu, valid=lambda mu: mu >= 0,
         cdf=lambda k, mu: sp.gammaincc(k + 1.0, mu), sf=lambda k, mu: sp.gammainc(k + 1.0, mu),
         mean=lambda mu: mu, var=lambda mu: mu)

# --- on ranges and on all integers -----------------------------------------------------------------

discrete("randint", "low high", lambda k, low, high: 0.0 * k - np.log(high - low), lambda low, high: (low, high - 1.0),
         valid=lambda low, high: (high > low) & (np.floor(low) == low) & (np.floor(high) == high),
         cdf=lambda k, low, high: (k - low + 1.0) / (high - low),
         sf=lambda k, low, high: (high - k - 1.0) / (high - low),
         mean=lambda low, high: 0.5 * (low + high - 1.0),
         var=lambda low, high: (high - low - 1.0) * (high - low + 1.0) / 12.0,
         entropy=lambda low, high: np.log(high - low))

discrete("planck", "lambda_", lambda k, rate: np.log(-np.expm1(-rate)) - rate * k, valid=lambda rate: rate > 0,
         cdf=lambda k, rate: -np.expm1(-rate * (k + 1.0)), sf=lambda k, rate: np.exp(-rate * (k + 1.0)),
         logcdf=lambda k, rate: log1mexp(rate * (k + 1.0)), logsf=lambda k, rate: -rate * (k + 1.0),
         mean=lambda rate: 1.0 / np.expm1(rate), var=lambda rate: np.exp(-rate) / np.square(np.expm1(-rate)))

discrete("boltzmann", "lambda_ N",
         lambda k, rate, n: np.log(np.expm1(-rate) / np.expm1(-rate * n)) - rate * k, lambda rate, n: (0.0, n - 1.0),
         valid=lambda rate, n: (rate > 0) & (n > 0) & (np.floor(n) == n),
         cdf=lambda k, rate, n: np.expm1(-rate * (k + 1.0)) / np.expm1(-rate * n),
         sf=lambda k, rate, n: np.exp(-rate * (k + 1.0)) * np.expm1(-rate * (n - k - 1.0)) / np.expm1(-rate * n))

discrete("dlaplace", "a", lambda k, a: np.log(np.tanh(0.5 * a)) - a * np.absolute(k), (-np.inf, np.inf),
         valid=lambda a: a > 0,
         logcdf=lambda k, a: _laplace_logsf(-k - 1.0, a), logsf=lambda k, a: _laplace_logsf(k, a),
         cdf=lambda k, a: np.exp(_laplace_logsf(-k - 1.0, a)), sf=lambda k, a: np.exp(_laplace_logsf(k, a)),
         mean=lambda a: 0.0 * a, var=lambda a: 0.5 / np.square(np.sinh(0.5 * a)),
         entropy=lambda a: a / np.sinh(a) - np.log(np.tanh(0.5 * a)))


def _laplace_logsf(k: Any, a: Any) -> Any:
    """``log(exp(-a k) / (exp(a) + 1))`` for k >= 0, and the rest of the mirror image below."""
    right = k >= 0
    tail = -a * (where(right, k, -k - 1.0) + 1.0) - np.log1p(np.exp(-a))
    return where(right, tail, np.log1p(-np.exp(tail)))


discrete("skellam", "mu1 mu2", lambda k, a, b: _skellam(k, a, b), (-np.inf, np.inf),
         valid=lambda a, b: (a > 0) & (b > 0), mean=lambda a, b: a - b, var=lambda a, b: a + b)


def _skellam(k: Any, a: Any, b: Any) -> Any:
    roots = (np.sqrt(a), np.sqrt(b))
    return (0.5 * k * np.log(a / b) - np.square(roots[0] - roots[1])
            + np.log(sp.ive(np.absolute(k), 2.0 * roots[0] * roots[1])))


# --- from 1, and in urns ---------------------------------------------------------------------------

discrete("logser", "p", lambda k, p: sp.xlogy(k, p) - np.log(k) - np.log(-np.log1p(-p)), (1.0, np.inf),
         valid=lambda p: (p > 0) & (p < 1), mean=lambda p: -p / ((1.0 - p) * np.log1p(-p)),
         var=lambda p: -p * (p + np.log1p(-p)) / np.square((1.0 - p) * np.log1p(-p)))

discrete("yulesimon", "alpha", lambda k, a: np.log(a) + sp.betaln(k, a + 1.0), (1.0, np.inf), valid=lambda a: a > 0)

discrete("betanbinom", "n a b", lambda k, n, a, b: (sp.betaln(a + n, b + k) - sp.betaln(a, b) - sp.betaln(n, k + 1.0)
                                                    - np.log(n + k)),
         valid=lambda n, a, b: is_count(n) & (a > 0) & (b > 0))

discrete("hypergeom", "M n N", lambda k, M, n, N: log_choose(n, k) + log_choose(M - n, N - k) - log_choose(M, N),
         lambda M, n, N: (np.maximum(N - (M - n), 0.0), np.minimum(n, N)),
         valid=lambda M, n, N: is_count(M) & is_count(n) & is_count(N) & (n <= M) & (N <= M),
         mean=lambda M, n, N: N * n / M, var=lambda M, n, N: N * n * (M - n) * (M - N) / (M * M * (M - 1.0)))

discrete("nhypergeom", "M n r", lambda k, M, n, r: (
    log_choose(k + r - 1.0, k) + log_choose(M - r - k, n - k) - log_choose(M, n)), lambda M, n, r: (0.0, n),
    valid=lambda M, n, r: is_count(M) & is_count(n) & is_count(r) & (n <= M) & (r <= M - n),
    mean=lambda M, n, r: r * n / (M - n + 1.0))
