"""scipy.stats.gaussian_kde: densities by kernels, of points and of data that are traced.

The definition is that of SciPy's documentation (D. W. Scott, Multivariate Density Estimation, 2015): a normal density
around each point of the data, with the covariance of all of them times the square of a factor.
"""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.tape.builder import Value
from jitad.trace.dispatch import refused
from jitad.trace.numpy_rules.reductions.logsumexp import logsumexp
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, stands_for, this_recorder
from jitad.trace.scipy_rules.stats.bivariate import both_below
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

    @method
    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None, *, rng: Any = None) -> Any:
        """By formulas in one and two dimensions, where SciPy draws points."""
        if self.d > 2:
            raise refused(this_recorder(), "scipy.stats.gaussian_kde.integrate_box in more than two dimensions",
                          "take the marginal of two, kde.marginal([0, 1])")
        covariance, data = lifted(self.covariance), lifted(self.dataset)
        scales = np.sqrt(np.diag(covariance))
        ends = [(np.atleast_1d(lifted(v))[:, None] - data) / scales[:, None] for v in (low_bounds, high_bounds)]
        if self.d == 1:
            return np.sum(self.weights * (sp.ndtr(ends[1][0]) - sp.ndtr(ends[0][0])))
        r = np.broadcast_to(covariance[0, 1] / (scales[0] * scales[1]), (self.n,))
        corner = lambda i, j: both_below(ends[i][0], ends[j][1], r)
        return np.sum(self.weights * (corner(1, 1) - corner(0, 1) - corner(1, 0) + corner(0, 0)))

    @method
    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        mean, cov = np.atleast_1d(np.squeeze(lifted(mean))), np.atleast_2d(lifted(cov))
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return self._overlap(mean[:, None], np.ones(1), cov)

    @method
    def integrate_kde(self, other: Any) -> Any:
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        return self._overlap(lifted(other.dataset), other.weights, other.covariance)

    def _overlap(self, points: Any, weights: Any, covariance: Any) -> Any:
        """The integral of the product with a sum of normal densities: each pair of kernels is one of their distance."""
        root = np.linalg.cholesky(lifted(self.covariance) + covariance)
        gaps = (lifted(self.dataset)[:, :, None] - points[:, None, :]).reshape((self.d, -1))
        energies = np.sum(np.square(solved(root, gaps)), axis=0).reshape((self.n, -1))
        pairs = np.exp(-0.5 * energies - 0.5 * self.d * LOG_2PI - np.sum(np.log(np.diag(root))))
        return np.sum(self.weights * (pairs @ weights))

    @method
    def marginal(self, dimensions: Any) -> Kernels:
        places = np.atleast_1d(dimensions)
        if not np.issubdtype(places.dtype, np.integer):
            raise ValueError("Elements of `dimensions` must be integers - the indices of the marginal variables being "
                             "retained.")
        wanted = np.where(places < 0, places + self.d, places)
        if len(np.unique(wanted)) != len(wanted):
            raise ValueError("All elements of `dimensions` must be unique.")
        if np.any((wanted < 0) | (wanted >= self.d)):
            raise ValueError(f"Dimensions {places} are invalid for a distribution in {self.d} dimensions.")
        return gaussian_kde(lifted(self.dataset)[wanted], self.factor, self.weights)

    @method
    def resample(self, size: Any = None, seed: Any = None) -> Any:
        raise refused(this_recorder(), "scipy.stats.gaussian_kde.resample, which draws random numbers,",
                      "pass in places i of the data and standard normal draws z, drawn outside: kde.dataset[:, i] + "
                      "np.linalg.cholesky(kde.covariance) @ z")

    def scotts_factor(self) -> Any:
        return _factor("scott", self.neff, self.d)

    def silverman_factor(self) -> Any:
        return _factor("silverman", self.neff, self.d)


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
    neff = 1.0 / np.sum(np.square(weights))
    if callable(bw_method) and not isinstance(bw_method, Value):
        bw_method = bw_method(SimpleNamespace(
            dataset=dataset, weights=weights, d=d, n=n, neff=neff, scotts_factor=lambda: _factor("scott", neff, d),
            silverman_factor=lambda: _factor("silverman", neff, d)))
    factor = _factor(bw_method, neff, d)
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
    if isinstance(method, str) or np.ndim(method):
        raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
    return method
