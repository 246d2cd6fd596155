"""Covariance and correlation matrices and their Cholesky factors. Definitions after the chapter "Constraint Transforms"
of Stan's reference manual: "Correlation matrices", "Covariance matrices", "Cholesky factors of covariance matrices",
"Cholesky factors of correlation matrices".

The partial correlations z = tanh(u) enter as tanh(u) and log cosh(u), so that nothing is lost where they are near 1:
log(1 - z^2) = -2 log cosh(u).
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.constraints.base import Constraint, Earlier, Number, Shape, logcosh, natural, shape_of


class CholeskyCorr(Constraint):
    """L[i, j] = z[i, j] * sqrt(1 - the sum of L[i, :j]**2), free numbers by rows of the lower triangle."""

    bounded = True

    def __init__(self, name: str, k: int, batch: Shape):
        count = k * (k - 1) // 2
        super().__init__(name, (*batch, k, k), math.prod(batch) * count)
        rows, columns = np.tril_indices(k, -1)
        self._place(k, batch, rows, columns, 1.0 + rows - columns)

    def _place(self, k: int, batch: Shape, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> None:
        """Where in the matrix the free numbers go, in order, and how often log cosh of each counts."""
        self.free_shape, self.weights = (*batch, len(rows)), weights
        self.rows, self.columns = rows, columns
        self.places = np.full((k, k), len(rows))
        self.places[rows, columns] = np.arange(len(rows))
        self.one, self.zero = np.eye(k), np.zeros((*batch, 1))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        free = u.reshape(self.free_shape)
        logs = logcosh(free)
        return self._factor(free, logs), -np.sum(self.weights * logs)

    def _factor(self, free: Number, logs: Number) -> Number:
        z = np.concatenate([np.tanh(free), self.zero], axis=-1)[..., self.places] + self.one
        used = np.concatenate([logs, self.zero], axis=-1)[..., self.places]
        return z * np.exp(used - np.cumsum(used, axis=-1))       # without the element itself

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = _lower(self, value)
        self.require(abs(np.sum(x * x, axis=-1) - 1) < 1e-8, "of rows of length one", value)
        return self._free(x)

    def _free(self, x: np.ndarray) -> np.ndarray:
        left = np.cumsum((x * x)[..., ::-1], axis=-1)[..., ::-1]  # 1 - the sum of what is before
        # atanh(x / sqrt(left)) = asinh(x / sqrt(left - x^2))
        after = np.concatenate([left[..., 1:], np.ones((*left.shape[:-1], 1))], axis=-1)
        return np.arcsinh(x / np.sqrt(np.where(after > 0, after, 1.0)))[..., self.rows, self.columns].ravel()


class Corr(CholeskyCorr):
    """L @ L.T of such an L, free numbers by rows of the upper triangle."""

    def __init__(self, k: int, batch: Shape):
        super().__init__("corr", k, batch)
        columns, rows = np.triu_indices(k, 1)
        self._place(k, batch, rows, columns, 1.0 * (k - columns))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        free = u.reshape(self.free_shape)
        logs = logcosh(free)
        factor = self._factor(free, logs)
        return factor @ np.swapaxes(factor, -1, -2), -np.sum(self.weights * logs)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = self.checked(value)
        self.require(abs(np.diagonal(x, axis1=-2, axis2=-1) - 1) < 1e-8, "of diagonal one", value)
        return self._free(_cholesky(self, x))


class CholeskyCov(Constraint):
    """A lower triangle by rows, its diagonal by logarithms."""

    def __init__(self, name: str, k: int, batch: Shape, weights: np.ndarray, constant: float):
        count = k * (k + 1) // 2
        super().__init__(name, (*batch, k, k), math.prod(batch) * count)
        self.free_shape, self.weights, self.constant = (*batch, count), weights, constant * math.prod(batch)
        self.rows, self.columns = np.tril_indices(k)
        self.places = np.full((k, k), count)
        self.places[self.rows, self.columns] = np.arange(count)
        self.diagonal, self.zero = np.diagonal(self.places).copy(), np.zeros((*batch, 1))
        np.fill_diagonal(self.places, count)
        self.one = np.eye(k)

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        return self._factor(u)

    def _factor(self, u: Number) -> tuple[Number, Number]:
        free = u.reshape(self.free_shape)
        logs = free[..., self.diagonal]
        below = np.concatenate([free, self.zero], axis=-1)[..., self.places]
        return below + self.one * np.exp(logs)[..., None, :], np.sum(self.weights * logs) + self.constant

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = _lower(self, value)
        return self._free(x)

    def _free(self, x: np.ndarray) -> np.ndarray:
        free = x[..., self.rows, self.columns]
        free[..., self.diagonal] = np.log(free[..., self.diagonal])
        return free.ravel()


class Cov(CholeskyCov):
    """L @ L.T of such an L. The log-Jacobian is k log 2 + the sum of (k + 1 - i) log L[i, i]."""

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        factor, log_jacobian = self._factor(u)
        return factor @ np.swapaxes(factor, -1, -2), log_jacobian

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        return self._free(_cholesky(self, self.checked(value)))


def _lower(constraint: Constraint, value: Any) -> np.ndarray:
    x = constraint.checked(value)
    constraint.require((np.triu(x, 1) == 0) & (np.diagonal(x, axis1=-2, axis2=-1) > 0)[..., None, :],
                       "lower triangular with a positive diagonal", value)
    return x


def _cholesky(constraint: Constraint, x: np.ndarray) -> np.ndarray:
    constraint.require(abs(x - np.swapaxes(x, -1, -2)) <= 1e-8 * abs(x).max(), "symmetric", x)
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        constraint.require(False, "positive definite", x)
        raise


# --- as users call them --------------------------------------------------------------------------------------

def cholesky_corr(k: int, batch: Any = ()) -> Constraint:
    """Cholesky factors of correlation matrices of `k` rows, lower triangular; `batch` is the shape of an array of them:
    ``cholesky_corr(3, batch=5)`` has shape (5, 3, 3).

    >>> L, _ = cholesky_corr(2).forward(np.array([np.arctanh(0.6)]), {})
    >>> L.round(12)
    array([[1. , 0. ],
           [0.6, 0.8]])
    """
    return CholeskyCorr("cholesky_corr", natural(k, "the number of rows of cholesky_corr"),
                        shape_of((batch,), "cholesky_corr"))


def corr(k: int, batch: Any = ()) -> Constraint:
    """Correlation matrices of `k` rows; `batch` as for `cholesky_corr`, which is cheaper where the factor is needed.
    The free numbers go by rows of the upper triangle, those of `cholesky_corr` by rows of the lower one.

    >>> corr(2).forward(np.array([np.arctanh(0.6)]), {})[0].round(12)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    return Corr(natural(k, "the number of rows of corr"), shape_of((batch,), "corr"))


def cholesky_cov(k: int, batch: Any = ()) -> Constraint:
    """Lower triangular matrices of `k` rows with a positive diagonal; `batch` as for `cholesky_corr`.

    >>> cholesky_cov(2).forward(np.array([0.0, 3.0, 0.0]), {})[0]
    array([[1., 0.],
           [3., 1.]])
    """
    k = natural(k, "the number of rows of cholesky_cov")
    return CholeskyCov("cholesky_cov", k, shape_of((batch,), "cholesky_cov"), np.ones(k), 0.0)


def cov(k: int, batch: Any = ()) -> Constraint:
    """Covariance matrices of `k` rows, by their Cholesky factors; `batch` as for `cholesky_corr`.

    >>> cov(2).forward(np.array([0.0, 3.0, 0.0]), {})[0]
    array([[ 1.,  3.],
           [ 3., 10.]])
    """
    k = natural(k, "the number of rows of cov")
    return Cov("cov", k, shape_of((batch,), "cov"), np.arange(k + 1.0, 1.0, -1.0), k * math.log(2.0))
