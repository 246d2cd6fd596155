"""Further multivariate distributions of scipy.stats: of matrices, of directions, of counts with a random probability.

Definitions are those of SciPy's documentation (Gupta and Nagar, Matrix Variate Distributions, 2000; Mardia and Jupp,
Directional Statistics, 2000). Shapes are checked as SciPy does and with its errors.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.attempts import require_finite
from jitad.trace.scipy_rules.stats.definite import solved
from jitad.trace.scipy_rules.stats.family import LOG2, LOG_2PI, where
from jitad.trace.scipy_rules.stats.multivariate import (
    exponential,
    floats,
    log_det_of,
    points,
    rule,
    scale_matrix,
    squeezed,
)

# --- inverse Wishart -------------------------------------------------------------------------------


@rule("invwishart.logpdf")
def _inverse_wishart(x: Any, df: Any, scale: Any) -> Any:
    """With the Cholesky factors C of x and D of the scale, ``tr(scale inv(x))`` is the square of ``inv(C) D``."""
    (x,) = floats(x)
    df, scale, dim = scale_matrix(df, scale)
    require_finite(True, x, scale)
    root, factor = np.linalg.cholesky(points(x, dim)), np.linalg.cholesky(scale)
    ratio = solved(root, factor) if root.ndim == 2 else np.linalg.solve(root, np.broadcast_to(factor, root.shape))
    half = 0.5 * df
    log_gamma = 0.25 * dim * (dim - 1) * np.log(np.pi) + np.sum(sp.gammaln(half - 0.5 * np.arange(dim)))
    return squeezed(half * log_det_of(factor) - 0.5 * np.sum(np.square(ratio), axis=(-2, -1)) - half * dim * LOG2
                    - (half + 0.5 * (dim + 1)) * log_det_of(root) - log_gamma)


exponential("invwishart.pdf", _inverse_wishart)


@rule("invwishart.mean")
def _inverse_wishart_mean(df: Any, scale: Any) -> Any:
    df, scale, dim = scale_matrix(df, scale)
    return squeezed(scale / (df - dim - 1.0)) if df > dim + 1 else None


# --- matrix normal ---------------------------------------------------------------------------------

def _covariance(cov: Any, size: int | None, what: str) -> Any:
    if np.ndim(cov) == 0:
        return cov * np.eye(1 if size is None else size)
    if np.ndim(cov) == 1:
        cov = np.diag(cov)
    if np.ndim(cov) != 2:
        raise ValueError(f"`{what}` must be a scalar or a 2D array.")
    if cov.shape[0] != cov.shape[1]:
        raise ValueError(f"Array `{what}` must be square.")
    return cov


@rule("matrix_normal.logpdf")
def _matrix_normal(X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    x, mean, rowcov, colcov = floats(X, mean, rowcov, colcov)
    if mean is not None and np.ndim(mean) != 2:
        raise ValueError("Array `mean` must be two dimensional.")
    shape = (None, None) if mean is None else mean.shape
    rows, columns = _covariance(rowcov, shape[0], "rowcov"), _covariance(colcov, shape[1], "colcov")
    m, n = rows.shape[0], columns.shape[0]
    for side, given, found in (("rows", shape[0], m), ("columns", shape[1], n)):
        if given not in (None, found):
            raise ValueError(f"Arrays `mean` and `{side[:3]}cov` must have the same number of {side}.")
    if x.ndim < 2:
        x = x.reshape((1, -1)) if x.ndim else x.reshape((1, 1))
    if x.shape[-2:] != (m, n):
        raise ValueError("The shape of array `X` is not compatible with the distribution parameters.")
    require_finite(True, rows, columns)
    left, right = np.linalg.cholesky(rows), np.linalg.cholesky(columns)
    dev = x if mean is None else x - mean
    flat = np.moveaxis(dev.reshape((-1, m, n)), 0, 1).reshape((m, -1))
    half = np.moveaxis(solved(left, flat).reshape((m, -1, n)), 2, 0).reshape((n, -1))
    squares = np.sum(np.square(solved(right, half).reshape((n, m, -1))), axis=(0, 1)).reshape(x.shape[:-2])
    return squeezed(-0.5 * (m * n * LOG_2PI + n * log_det_of(left) + m * log_det_of(right) + squares))


exponential("matrix_normal.pdf", _matrix_normal)

# --- directions ------------------------------------------------------------------------------------


@rule("vonmises_fisher.logpdf")
def _fisher(x: Any, mu: Any = None, kappa: Any = 1) -> Any:
    x, mu, kappa = floats(x, mu, kappa)
    if np.ndim(mu) > 1:
        raise ValueError("'mu' must have one-dimensional shape.")
    if not np.allclose(np.linalg.norm(mu), 1.0):
        raise ValueError("'mu' must be a unit vector of norm 1.")
    if np.size(mu) < 2:
        raise ValueError("'mu' must have at least two entries.")
    if np.ndim(kappa) or kappa <= 0:
        raise ValueError("'kappa' must be a positive scalar.")
    dim = mu.shape[0]
    if x.shape[-1] != dim:
        raise ValueError("The dimensionality of the last axis of 'x' must match the dimensionality of the von Mises "
                         "Fisher distribution.")
    if not np.allclose(np.linalg.norm(x, axis=-1), 1.0):
        raise ValueError("'x' must be unit vectors of norm 1 along last dimension.")
    order = 0.5 * dim - 1.0
    log_norm = order * np.log(kappa) - 0.5 * dim * LOG_2PI - np.log(sp.ive(order, kappa)) - kappa
    return squeezed(log_norm + kappa * (x @ mu))


exponential("vonmises_fisher.pdf", _fisher)

# --- counts ----------------------------------------------------------------------------------------


@rule("dirichlet_multinomial.logpmf")
def _counts(x: Any, alpha: Any, n: Any) -> Any:
    x, alpha, n = floats(x, alpha, n)
    if np.any((x < 0) | (x != np.floor(x))):
        raise ValueError("`x` must contain only non-negative integers.")
    if np.any(alpha <= 0):
        raise ValueError("`alpha` must contain only positive values.")
    if np.any((n < 0) | (n != np.floor(n))):
        raise ValueError("`n` must be a non-negative integer.")
    total = np.sum(alpha, axis=-1)
    result = sp.gammaln(total) + sp.gammaln(n + 1.0) - sp.gammaln(n + total) + np.sum(
        sp.gammaln(x + alpha) - sp.gammaln(alpha) - sp.gammaln(x + 1.0), axis=-1)
    return where(np.sum(x, axis=-1) != n, -np.inf, result)


exponential("dirichlet_multinomial.pmf", _counts)

# --- normal and inverse gamma ----------------------------------------------------------------------


@rule("normal_inverse_gamma.logpdf")
def _normal_inverse_gamma(x: Any, s2: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    x, s2, mu, lmbda, a, b = floats(x, s2, mu, lmbda, a, b)
    inside = s2 > 0
    s2 = where(inside, s2, 1.0)
    density = (0.5 * (np.log(lmbda) - LOG_2PI - np.log(s2)) + a * np.log(b) - sp.gammaln(a) - (a + 1.0) * np.log(s2)
               - (b + 0.5 * lmbda * np.square(x - mu)) / s2)
    return where((lmbda > 0) & (a > 0) & (b > 0), where(inside, density, -np.inf), np.nan)


exponential("normal_inverse_gamma.pdf", _normal_inverse_gamma)
