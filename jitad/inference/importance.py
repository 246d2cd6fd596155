"""Importance sampling: draws of one distribution weighed so that they stand for another.

The largest weights are smoothed by a generalised Pareto distribution, of which the shape k says whether the weights can
be trusted: to be below 0.7 (A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry, JMLR 25, 2024).
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jitad.call.messages import issue
from jitad.errors import SamplingWarning, StartError
from jitad.inference.density import FINE, Density
from jitad.inference.draws import Draws, checked_labels

Posterior = Any              # that of `jitad.inference.model`, which imports this file
BAD = 0.7                    # Pareto k from which weights are not to be trusted
EVEN = 1e-6                  # difference of log weights that are the same
PROPOSALS = 4                # draws for each that is kept


class Integral(NamedTuple):
    """The log of an integral, its standard error, and Pareto's k, from 0.7 on not to be trusted."""

    log: float
    error: float
    pareto_k: float


def log_densities(density: Density, us: np.ndarray) -> np.ndarray:
    """At each of the vectors; minus infinity where there is no density."""
    found = [density.at(u) for u in us]
    return np.array([value if status == FINE else -math.inf for status, value, _ in found])


def resampled(post: Posterior, free: np.ndarray, logs: np.ndarray, draws: int, rng: np.random.Generator,
              whose: str) -> Draws:
    """`draws` of the free vectors, of shape (number, dim), with chances by the smoothed weights of these logarithms."""
    if not logs.max() > -math.inf:
        raise StartError(f"the density is finite at none of {whose}")
    smoothed, k = pareto_smoothed(logs)
    if not k < BAD:
        issue(f"{whose} are far from the posterior (Pareto k {k:.2f}, to be below {BAD}): use them as points to start "
              "from, and sample", SamplingWarning)
    chosen = rng.choice(len(free), draws, p=np.exp(smoothed))
    result = of_free(post, free[chosen][None])
    result.statistics = {"log_weight": logs[chosen][None], "pareto_k": np.full((1, draws), k)}
    return result


def integral(logs: np.ndarray) -> Integral:
    """The log of the mean weight."""
    top = logs.max()
    weights = np.exp(logs - top)
    mean, spread = float(np.mean(weights)), float(np.std(weights))
    return Integral(float(top) + math.log(mean), spread / mean / math.sqrt(len(logs)), pareto_smoothed(logs)[1])


def of_free(post: Posterior, free: np.ndarray, statistics: dict[str, np.ndarray] | None = None,
            warmup: dict[str, np.ndarray] | None = None) -> Draws:
    """Draws of free vectors of shape ``(chains, draws, dim)``, with everything that the posterior stores."""
    groups = post.expanded(free)
    shapes = {name: x.shape[2:] for group in groups.values() for name, x in group.items()}
    labels = checked_labels(post.options.get("dims"), post.options.get("coords"), shapes)
    return Draws(free, groups, statistics or {}, warmup or {}, post.data, post.names, labels)


def pareto_smoothed(logs: np.ndarray) -> tuple[np.ndarray, float]:
    """Normalised log weights, the largest smoothed by a generalised Pareto distribution, and its shape k (the estimate
    of J. Zhang, M. Stephens, Technometrics 51, 2009, with the prior of Vehtari et al.)."""
    logs = logs - logs.max()
    count = int(np.ceil(min(0.2 * len(logs), 3 * math.sqrt(len(logs)))))
    k = math.inf
    if count < 5:                                         # too few for a tail
        return _normalised(logs), k
    if logs.min() > -EVEN:                                # no tail
        return _normalised(logs), -math.inf
    order = np.argsort(logs)
    tail = order[-count:]
    cut = logs[order[-count - 1]]
    excess = np.exp(logs[tail]) - np.exp(cut)
    if excess[-1] > excess[0] > 0:
        k, sigma = _pareto(excess)
        at = (np.arange(count) + 0.5) / count
        quantiles = sigma * np.expm1(-k * np.log1p(-at)) / k if k else -sigma * np.log1p(-at)
        logs = logs.copy()
        logs[tail] = np.minimum(np.log(np.exp(cut) + quantiles), 0.0)
    return _normalised(logs), k


def _normalised(logs: np.ndarray) -> np.ndarray:
    top = logs.max()
    return logs - (top + math.log(np.sum(np.exp(logs - top))))


def _pareto(x: np.ndarray) -> tuple[float, float]:
    n = len(x)
    m = 30 + int(math.sqrt(n))
    theta = 1 / x[-1] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * x[int(n / 4 + 0.5) - 1])
    shapes = np.mean(np.log1p(-theta[:, None] * x), axis=1)
    likelihood = n * (np.log(-theta / shapes) - shapes - 1)
    weights = 1 / np.sum(np.exp(likelihood - likelihood[:, None]), axis=1)
    best = float(np.sum(theta * weights) / np.sum(weights))
    k = float(np.mean(np.log1p(-best * x)))
    return (n * k + 10 * 0.5) / (n + 10), -k / best
