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
