"""Pathfinder: normal distributions along the way of an optimiser to the mode, of which the one nearest to the posterior
is drawn from.

L. Zhang, B. Carpenter, A. Gelman, A. Vehtari, Pathfinder: parallel quasi-Newton variational inference, JMLR 23, 2022.
Several paths are joined by importance resampling with Pareto-smoothed weights (A. Vehtari et al., JMLR 25, 2024).
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jitad.call.messages import issue
from jitad.errors import SamplingWarning, StartError
from jitad.inference.density import FINE, Density
from jitad.inference.draws import Draws
from jitad.inference.normal import of_free
from jitad.inference.starts import require_count, starts

Posterior = Any              # that of `jitad.inference.model`, which imports this file
MEMORY, STEPS = 6, 1000      # pairs that the inverse Hessian is made of, and steps of a path
TRIED = 25                   # draws by which the distributions along a path are compared
BAD = 0.7                    # Pareto k from which weights are not to be trusted


class Approximation(NamedTuple):
    """A normal distribution of the free vector: covariance ``diag(alpha) + beta @ gamma @ beta.T`` by its Cholesky-like
    parts; `elbo` is its evidence lower bound."""

    mean: np.ndarray
    root: np.ndarray
    elbo: float


def pathfound(post: Posterior, draws: int, paths: int, seed: Any, start: Any) -> Draws:
    """`draws` draws, resampled from those of all paths."""
    require_count("draws", draws)
    require_count("paths", paths)
    seed = np.random.SeedSequence().entropy if seed is None else seed
    points = starts(post.density, post.free, start, None, paths, seed)
    rng = np.random.default_rng([seed, paths])
    found = [one for point in points if (one := _path(post.density, point, rng)) is not None]
    if not found:
        raise StartError("no path of Pathfinder came to a normal distribution of finite density; give `start`")
    free, weights = [], []
    for one in found:
        z = rng.normal(size=(draws, post.dim))
        us = one.mean + z @ one.root.T
        free.append(us)
        weights.append(_values(post.density, us) - _log_density(one, z))
    us, logs = np.concatenate(free), np.concatenate(weights)
    smoothed, k = pareto_smoothed(logs)
    if not k < BAD:
        issue(f"Pathfinder's draws are far from the posterior (Pareto k {k:.2f}, to be below {BAD}): use them as "
              "points to start from, and sample", SamplingWarning)
    chosen = rng.choice(len(us), draws, p=np.exp(smoothed))
    result = of_free(post, us[chosen][None])
    result.statistics = {"log_weight": logs[chosen][None], "pareto_k": np.full((1, draws), k)}
    return result


def _values(density: Density, us: np.ndarray) -> np.ndarray:
    found = [density.at(u) for u in us]
    return np.array([value if status == FINE else -math.inf for status, value, _ in found])


def _log_density(one: Approximation, z: np.ndarray) -> np.ndarray:
    constant = np.linalg.slogdet(one.root)[1] + 0.5 * z.shape[1] * math.log(2 * math.pi)
    return -0.5 * np.sum(z * z, axis=1) - constant


# --- one path ------------------------------------------------------------------------------------------------

def _path(density: Density, start: np.ndarray, rng: np.random.Generator) -> Approximation | None:
    """The best normal distribution along the way of L-BFGS from a point."""
    from scipy.optimize import minimize

    way: list[np.ndarray] = [start]
    minimize(density.loss, start, jac=True, method="L-BFGS-B", callback=lambda u: way.append(u.copy()),
             options={"maxiter": STEPS, "maxcor": MEMORY, "ftol": 1e-12, "gtol": 1e-6})
    slopes = [-density.at(u)[2] for u in way]
    alpha, pairs, best = np.ones(len(start)), list[tuple[np.ndarray, np.ndarray]](), None
    for number in range(1, len(way)):
        step, change = way[number] - way[number - 1], slopes[number] - slopes[number - 1]
        if not (np.isfinite(change).all() and step @ change > 1e-12 * (change @ change)):
            continue
        alpha = _scaled(alpha, step, change)
        pairs = [*pairs, (step, change)][-MEMORY:]
        one = _approximation(density, way[number], slopes[number], alpha, pairs, rng)
        if one is not None and (best is None or one.elbo > best.elbo):
            best = one
    return best


def _scaled(alpha: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The diagonal that the inverse Hessian begins with (J. C. Gilbert, C. Lemaréchal, Math. Programming 45, 1989)."""
    a, b, c = y @ (alpha * y), y @ s, s @ (s / alpha)
    return 1.0 / (a / (b * alpha) + y * y / b - a * (s / alpha) ** 2 / (b * c))


def _approximation(density: Density, u: np.ndarray, slope: np.ndarray, alpha: np.ndarray,
                   pairs: list[tuple[np.ndarray, np.ndarray]], rng: np.random.Generator) -> Approximation | None:
    """The inverse Hessian of the last pairs as a covariance, its mean a Newton step away (section 2.2 of the paper; the
    compact form of R. Byrd, J. Nocedal, R. Schnabel, Math. Programming 63, 1994)."""
    s, y = (np.array(of).T for of in zip(*pairs, strict=True))
    r = np.triu(s.T @ y)
    inverse = np.linalg.inv(r)
    beta = np.hstack([alpha[:, None] * y, s])
    middle = inverse.T @ (np.diag(np.diag(r)) + y.T @ (alpha[:, None] * y)) @ inverse
    gamma = np.block([[np.zeros_like(r), -inverse], [-inverse.T, middle]])
    scale = np.sqrt(alpha)
    q, upper = np.linalg.qr(beta / scale[:, None])
    try:
        small = np.linalg.cholesky(np.eye(upper.shape[0]) + upper @ gamma @ upper.T)
    except np.linalg.LinAlgError:
        return None
    root = scale[:, None] * (np.eye(len(u)) + q @ (small - np.eye(len(small))) @ q.T)
    mean = u - root @ (root.T @ slope)
    z = rng.normal(size=(TRIED, len(u)))
    one = Approximation(mean, root, 0.0)
    values = _values(density, mean + z @ root.T)
    elbo = float(np.mean(values - _log_density(one, z)))
    return one._replace(elbo=elbo) if math.isfinite(elbo) else None


def pareto_smoothed(logs: np.ndarray) -> tuple[np.ndarray, float]:
    """Normalised log weights, the largest smoothed by a generalised Pareto distribution, and its shape k (the estimate
    of J. Zhang, M. Stephens, Technometrics 51, 2009, with the prior of Vehtari et al.)."""
    logs = logs - logs.max()
    count = int(np.ceil(min(0.2 * len(logs), 3 * math.sqrt(len(logs)))))
    k = math.inf
    if count < 5:                                         # too few for a tail
        return _normalised(logs), k
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
