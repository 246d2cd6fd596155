"""The distribution function of normal vectors of one and two dimensions.

Of two standard normal variables with the correlation r it is (Drezner and Wesolowsky, On the computation of the
bivariate normal integral, J. Stat. Comput. Simul. 35, 1990; Genz, Numerical computation of rectangular bivariate and
trivariate normal and t probabilities, Statistics and Computing 14, 2004)::

    F(h, k; r) = F(h) F(k) + 1/(2 pi) integral from 0 to asin(r) of exp((h k sin t - (h^2 + k^2) / 2) / cos(t)^2) dt

by Gauss's rule with 20 points. For r near 1 the integral goes from there, with r = sqrt(1 - x^2)::

    F(h, k; r) = F(min(h, k)) - 1/(2 pi) integral from 0 to sqrt(1 - r^2) of exp(-(h - k)^2 / (2 x^2)) g(x) dx,
    g(x) = exp(-h k / (1 + sqrt(1 - x^2))) / sqrt(1 - x^2)

where the first terms of g, in powers of x^2, have integrals in closed form; near -1 by ``F(h, k; r) = F(h) - F(h, -k;
-r)``. All is a composition, so that derivatives of any order follow, those by r being the density.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.dispatch import builder_in, refused
from jitad.trace.scipy_rules.stats.definite import PositiveMatrix
from jitad.trace.scipy_rules.stats.family import where
from jitad.trace.scipy_rules.stats.multivariate import (
    deviation,
    floats,
    location_and_matrix,
    rule,
    squeezed,
)

__all__ = ["both_below"]

STRONG = 0.925               # the correlation from which the integral begins at 1
FURTHEST = 40.0              # standard deviations beyond which nothing is left
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
SHARES, WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS
PI2 = 2.0 * np.pi


def both_below(h: Any, k: Any, r: Any) -> Any:
    """The probability that two standard normal variables with the correlation `r` are below `h` and `k`; each a number
    or an array of one shape, |r| < 1."""
    h, k = np.clip(h, -FURTHEST, FURTHEST), np.clip(k, -FURTHEST, FURTHEST)
    strong = np.absolute(r) >= STRONG
    sign = where(r < 0, -1.0, 1.0)
    near = _from_one(h, sign * k, where(strong, sign * r, STRONG))
    return where(strong, where(r < 0, sp.ndtr(h) - near, near), _from_zero(h, k, where(strong, 0.0, r)))


def _from_zero(h: Any, k: Any, r: Any) -> Any:
    angle = np.expand_dims(np.arcsin(r), -1) * SHARES
    product, squares = np.expand_dims(h * k, -1), np.expand_dims(0.5 * (h * h + k * k), -1)
    sine = np.sin(angle)
    inner = np.sum(WEIGHTS * np.exp((product * sine - squares) / (1.0 - sine * sine)), axis=-1)
    return sp.ndtr(h) * sp.ndtr(k) + np.arcsin(r) * inner / PI2


def _from_one(h: Any, k: Any, r: Any) -> Any:
    a, b, product = np.sqrt((1.0 - r) * (1.0 + r)), np.absolute(h - k), np.maximum(h * k, -FURTHEST)
    # g(x) = exp(-h k / 2) (1 + c x^2 + d x^4 + ...)
    c, top = 0.5 - product / 8.0, np.exp(-0.5 * product)
    d = 0.375 - product / 8.0 + product * product / 128.0
    edge = np.exp(-0.5 * np.square(b / a))
    zeroth = a * edge - b * np.sqrt(PI2) * sp.ndtr(-b / a)
    second = (a**3 * edge - b * b * zeroth) / 3.0
    fourth = (a**5 * edge - b * b * second) / 5.0
    x = np.expand_dims(a, -1) * SHARES
    square, root = x * x, np.sqrt(1.0 - x * x)
    product_, b_ = np.expand_dims(product, -1), np.expand_dims(b, -1)
    first_terms = 1.0 + square * (np.expand_dims(c, -1) + square * np.expand_dims(d, -1))
    # exp(-h k / 2) is taken into the exponent, as it may be beyond numbers where the other factor is below
    decay = -0.5 * np.square(b_ / x)
    left = np.exp(decay - product_ / (1.0 + root)) / root - np.exp(decay - 0.5 * product_) * first_terms
    rest = a * np.sum(WEIGHTS * left, axis=-1)
    whole = top * (zeroth + c * second + d * fourth)
    return sp.ndtr(np.minimum(h, k)) - (whole + rest) / PI2


def _cdf(x: Any, mean: Any, cov: Any, allow_singular: bool, lower_limit: Any) -> Any:
    x, mean, cov, low = floats(x, mean, 1 if cov is None else cov, lower_limit)
    mean, cov = location_and_matrix(mean, cov, "mean")
    dim = mean.shape[0]
    if dim > 2 or allow_singular:
        raise refused(builder_in(x, mean, cov, low), "scipy.stats.multivariate_normal.cdf in more than two dimensions, "
                      "or of a singular matrix", "take two dimensions at a time, or integrate over the others")
    cov = cov if cov.ndim == 2 else cov * np.eye(dim)
    PositiveMatrix(cov, dim)                                   # or its errors
    scales = np.sqrt(np.diagonal(cov))
    high = deviation(x, mean) / scales
    below = (lambda z: sp.ndtr(z[..., 0])) if dim == 1 else lambda z: _rectangle(z[..., 0], z[..., 1], cov, scales)
    if low is None:
        return squeezed(below(high))
    low = deviation(low, mean) / scales
    if dim == 1:
        return squeezed(below(high) - below(low))
    corner = lambda a, b: _rectangle(a[..., 0], b[..., 1], cov, scales)
    return squeezed(corner(high, high) - corner(low, high) - corner(high, low) + corner(low, low))


def _rectangle(h: Any, k: Any, cov: Any, scales: Any) -> Any:
    shape = np.broadcast_shapes(h.shape, k.shape)
    r = np.broadcast_to(cov[0, 1] / (scales[0] * scales[1]), shape)
    return both_below(np.broadcast_to(h, shape), np.broadcast_to(k, shape), r)


@rule("multivariate_normal.cdf")
def _normal_cdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False, maxpts: Any = None,
                abseps: float = 1e-5, releps: float = 1e-5, *, lower_limit: Any = None, rng: Any = None) -> Any:
    return _cdf(x, mean, cov, allow_singular, lower_limit)


@rule("multivariate_normal.logcdf")
def _normal_logcdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False, maxpts: Any = None,
                   abseps: float = 1e-5, releps: float = 1e-5, *, lower_limit: Any = None, rng: Any = None) -> Any:
    return np.log(_cdf(x, mean, cov, allow_singular, lower_limit))
