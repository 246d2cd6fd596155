"""The normal distribution at a mode."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.inference.draws import Draws
from jitad.inference.importance import PROPOSALS, Integral, integral, log_densities, of_free, resampled
from jitad.inference.starts import require_count

Posterior = Any              # that of `jitad.inference.model`, which imports this file


class Normal:
    """A normal distribution of the free vector: `mean`, `covariance`, and `value`, the log density of the posterior at
    the mean."""

    def __init__(self, post: Posterior, mean: np.ndarray, covariance: np.ndarray, value: float):
        self.post, self.mean, self.covariance, self.value = post, mean, covariance, value

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """At free vectors of shape ``(..., dim)``."""
        root = np.linalg.cholesky(self.covariance)
        z = np.linalg.solve(root, np.moveaxis(u - self.mean, -1, 0).reshape(self.mean.size, -1))
        constant = np.sum(np.log(np.diag(root))) + 0.5 * self.mean.size * math.log(2 * math.pi)
        return (-0.5 * np.sum(z * z, axis=0) - constant).reshape(u.shape[:-1])

    def draws(self, draws: int = 1000, *, seed: Any = None, importance: bool = False) -> Draws:
        """Independent draws, as one chain; with `importance`, resampled so that they are draws of the posterior, as far
        as ``statistics["pareto_k"]`` is below 0.7. Raises `numpy.linalg.LinAlgError` where the covariance is none;
        warns with `SamplingWarning` of a larger k."""
        require_count("draws", draws)
        rng = np.random.default_rng(seed)
        free = self._drawn(rng, PROPOSALS * draws if importance else draws)
        if not importance:
            return of_free(self.post, free[None])
        return resampled(self.post, free, self._log_weights(free), draws, rng, "the normal distribution's draws")

    def _drawn(self, rng: np.random.Generator, draws: int) -> np.ndarray:
        return self.mean + rng.normal(size=(draws, self.mean.size)) @ np.linalg.cholesky(self.covariance).T

    def _log_weights(self, free: np.ndarray) -> np.ndarray:
        return log_densities(self.post.density, free) - self.log_density(free)

    @property
    def log_evidence(self) -> float:
        """The log of the integral of the density, as this normal distribution has it."""
        return self.value - float(self.log_density(self.mean))

    def evidence(self, draws: int = 4000, *, seed: Any = 0) -> Integral:
        """The log of the integral of the density by importance sampling: with its standard error, and Pareto's k, which
        is to be below 0.7."""
        require_count("draws", draws)
        return integral(self._log_weights(self._drawn(np.random.default_rng(seed), draws)))
