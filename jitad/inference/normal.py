"""The normal distribution at a mode."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.inference.draws import Draws, checked_labels

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

    def draws(self, draws: int = 1000, *, seed: Any = None) -> Draws:
        """Independent draws, as one chain. Raises `numpy.linalg.LinAlgError` where the covariance is none."""
        root = np.linalg.cholesky(self.covariance)
        free = self.mean + np.random.default_rng(seed).normal(size=(draws, self.mean.size)) @ root.T
        return of_free(self.post, free[None])

    @property
    def log_evidence(self) -> float:
        """The log of the integral of the density, as this normal distribution has it."""
        return self.value - float(self.log_density(self.mean))


def of_free(post: Posterior, free: np.ndarray, statistics: dict[str, np.ndarray] | None = None,
            warmup: dict[str, np.ndarray] | None = None) -> Draws:
    """Draws of free vectors of shape ``(chains, draws, dim)``, with everything that the posterior stores."""
    groups = post.expanded(free)
    shapes = {name: x.shape[2:] for group in groups.values() for name, x in group.items()}
    labels = checked_labels(post.options.get("dims"), post.options.get("coords"), shapes)
    return Draws(free, groups, statistics or {}, warmup or {}, post.data, post.names, labels)
