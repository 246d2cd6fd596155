"""Pathfinder: normal distributions along the way of an optimiser to the mode, of which the one nearest to the posterior
is drawn from.

L. Zhang, B. Carpenter, A. Gelman, A. Vehtari, Pathfinder: parallel quasi-Newton variational inference, JMLR 23, 2022.
Several paths are joined by importance resampling.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import StartError
from jitad.inference.density import Density
from jitad.inference.draws import Draws
from jitad.inference.importance import log_densities, resampled
from jitad.inference.starts import require_count, starts

Posterior = Any              # that of `jitad.inference.model`, which imports this file
MEMORY, STEPS = 6, 1000      # pairs that the inverse Hessian is made of, and steps of a path
TRIED = 25                   # draws by which the distributions along a path are compared


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
        weights.append(log_densities(post.density, us) - _log_density(one, z))
    us, logs = np.concatenate(free), np.concatenate(weights)
    return resampled(post, us, logs, draws, rng, "Pathfinder's draws")


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
    values = log_densities(density, mean + z @ root.T)
    elbo = float(np.mean(values - _log_density(one, z)))
    return one._replace(elbo=elbo) if math.isfinite(elbo) else None
