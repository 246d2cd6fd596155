"""scipy.stats.gaussian_kde: densities by kernels, of points and of data that are traced.

The definition is that of SciPy's documentation (D. W. Scott, Multivariate Density Estimation, 2015): a normal density
around each point of the data, with the covariance of all of them times the square of a factor.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.dispatch import builder_in, refused
from jitad.trace.numpy_rules.reductions.logsumexp import logsumexp
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, stands_for, this_recorder
from jitad.trace.scipy_rules.stats.definite import solved
from jitad.trace.scipy_rules.stats.family import LOG_2PI

__all__ = ["Kernels"]


class Kernels(StandIn):
    """`dataset` is of shape ``(d, n)``, `weights` sum to 1."""

    __slots__ = ("covariance", "dataset", "factor", "neff", "root", "weights")

    def __init__(self, cls: type, dataset: Any, weights: Any, factor: Any, covariance: Any) -> None:
        super().__init__(cls)
        self.dataset, self.weights, self.factor, self.covariance = dataset, weights, factor, covariance
        self.neff = 1.0 / np.sum(np.square(weights))
        self.root = np.linalg.cholesky(lifted(covariance))

    @property
    def d(self) -> int:
        return int(np.shape(self.dataset)[0])

    @property
    def n(self) -> int:
        return int(np.shape(self.dataset)[1])

    @property
    def inv_cov(self) -> Any:
        return np.linalg.inv(lifted(self.covariance))

    def _exponents(self, points: Any) -> Any:
        """The logarithms of the kernels, a row for each point, and of their common factor."""
        points = np.atleast_2d(lifted(points)) + 0.0
        if points.shape[0] != self.d:
            if points.shape[0] != 1 or points.shape[1] != self.d:
                raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")
            points = points.reshape((self.d, 1))
        x, data = solved(self.root, points), solved(self.root, lifted(self.dataset) + 0.0)
        squares = np.square(x[0][:, None] - data[0])
        for k in range(1, self.d):
            squares = squares + np.square(x[k][:, None] - data[k])
        return -0.5 * squares, -0.5 * self.d * LOG_2PI - np.sum(np.log(np.diag(self.root)))

    @method
    def __call__(self, points: Any) -> Any:
        exponents, factor = self._exponents(points)
        return np.exp(exponents) @ self.weights * np.exp(factor)

    evaluate = pdf = __call__

    @method
    def logpdf(self, x: Any) -> Any:
        exponents, factor = self._exponents(x)
        return logsumexp(exponents, axis=-1, b=lifted(self.weights)) + factor

    @method
    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        data, scale = lifted(self.dataset)[0], self.root[0, 0]
        upper, lower = (sp.ndtr((lifted(v) - data) / scale) for v in (high, low))
        return np.sum(self.weights * (upper - lower))


@stands_for("scipy.stats.gaussian_kde", Kernels, "dataset weights factor covariance")
def gaussian_kde(dataset: Any, bw_method: Any = None, weights: Any = None) -> Kernels:
    dataset = np.atleast_2d(lifted(dataset)) + 0.0
    d, n = dataset.shape
    if d * n <= 1:
        raise ValueError("`dataset` input should have multiple elements.")
    if weights is None:
        weights = np.ones(n) / n
    else:
        weights = np.atleast_1d(lifted(weights)).astype(float)
        weights = weights / np.sum(weights)
        if weights.ndim != 1:
            raise ValueError("`weights` input should be one-dimensional.")
        if len(weights) != n:
            raise ValueError("`weights` input should be of length n")
    if d > n:
        raise ValueError("Number of dimensions is greater than number of samples. This results in a singular data "
                         "covariance matrix, which cannot be treated using the algorithms implemented in "
                         "`gaussian_kde`. Note that `gaussian_kde` interprets each *column* of `dataset` to be a "
                         "point; consider transposing the input to `dataset`.")
    factor = _factor(bw_method, 1.0 / np.sum(np.square(weights)), d)
    spread = (dataset - np.sum(dataset * weights, axis=-1, keepdims=True))
    covariance = (spread * weights) @ spread.T / (1.0 - np.sum(np.square(weights)))
    import scipy.stats

    return Kernels(scipy.stats.gaussian_kde, dataset, weights, factor, covariance * np.square(factor))


def _factor(method: Any, neff: Any, d: int) -> Any:
    """What the standard deviations of the data are multiplied by."""
    if method is None or (isinstance(method, str) and method == "scott"):
        return neff ** (-1.0 / (d + 4))
    if isinstance(method, str) and method == "silverman":
        return (neff * (d + 2.0) / 4.0) ** (-1.0 / (d + 4))
    if callable(method) and builder_in(method) is None:
        raise refused(this_recorder(), "scipy.stats.gaussian_kde with a function for bw_method",
                      "call it first, and pass the number")
    if isinstance(method, str) or np.ndim(method):
        raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
    return method
