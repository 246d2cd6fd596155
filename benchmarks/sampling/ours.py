"""The posteriors in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitad
from benchmarks.sampling.data import data
from jitad.constraints import cholesky_corr, interval, ordered, positive, real, simplex


def eight_schools(mu: Any, tau: Any, eta: Any, y: Any, sigma: Any) -> Any:
    z = (y - mu - tau * eta) / sigma
    return -0.5 * np.sum(z * z) - 0.5 * np.sum(eta * eta) - 0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2)


def logistic(beta: Any, x: Any, y: Any) -> Any:
    eta = x @ beta
    return y @ eta - np.sum(np.logaddexp(0.0, eta)) - 0.5 * np.sum(beta * beta)


def slopes(beta: Any, tau: Any, factor: Any, z: Any, sigma: Any, y: Any, x: Any, group: Any) -> Any:
    b = beta + (tau[:, None] * factor @ z).T
    residual = (y - b[group, 0] - b[group, 1] * x) / sigma
    prior = 2.0 * np.sum(np.log(np.diag(factor)[1:])) - 0.5 * np.sum(z**2) - 0.5 * np.sum(beta**2) - np.sum(tau)
    return -0.5 * np.sum(residual**2) - y.size * np.log(sigma) - sigma + prior


def mixture(w: Any, mu: Any, s: Any, y: Any) -> Any:
    terms = np.log(w) - 0.5 * ((y[:, None] - mu) / s) ** 2 - np.log(s)
    top = np.max(terms, axis=1)
    total = np.sum(top + np.log(np.sum(np.exp(terms - top[:, None]), axis=1)))
    return total - 0.5 * np.sum(mu**2) / 25 - np.sum(s)


def garch(mu: Any, a0: Any, a1: Any, b1: Any, y: Any) -> Any:
    v = np.zeros(y.size)
    v[0] = 1.0
    for t in range(1, y.size):
        v[t] = a0 + a1 * (y[t - 1] - mu) ** 2 + b1 * v[t - 1]
    return -0.5 * np.sum((y - mu) ** 2 / v + np.log(v)) - 0.5 * mu**2 - a0


def poisson(beta: Any, tau: Any, z: Any, y: Any, x: Any, group: Any) -> Any:
    eta = beta[0] + beta[1] * x + tau * z[group]
    return np.sum(y * eta - np.exp(eta)) - 0.5 * np.sum(beta**2) - 0.5 * np.sum(z**2) - tau


def process(length: Any, scale: Any, noise: Any, y: Any, squares: Any) -> Any:
    covariance = scale**2 * np.exp(-0.5 * squares / length**2) + noise**2 * np.eye(y.size)
    factor = np.linalg.cholesky(covariance)
    z = np.linalg.solve(factor, y)
    return -0.5 * z @ z - np.sum(np.log(np.diag(factor))) - length - scale - noise


def items(ability: Any, difficulty: Any, steep: Any, y: Any, person: Any, item: Any) -> Any:
    eta = steep[item] * (ability[person] - difficulty[item])
    prior = np.sum(ability**2) + np.sum(difficulty**2) + np.sum(np.log(steep) ** 2) / 0.25
    return np.sum(y * eta - np.logaddexp(0.0, eta)) - 0.5 * prior - np.sum(np.log(steep))


POSTERIORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "eight schools": (eight_schools, {"mu": real(), "tau": positive(), "eta": real(8)}),
    "logistic": (logistic, {"beta": real(5)}),
    "correlated slopes": (slopes, {"beta": real(2), "tau": positive(2), "factor": cholesky_corr(2), "z": real(2, 40),
                                   "sigma": positive()}),
    "mixture": (mixture, {"w": simplex(3), "mu": ordered(3), "s": positive(3)}),
    "GARCH": (garch, {"mu": real(), "a0": positive(), "a1": interval(0, 1), "b1": interval(0, lambda p: 1 - p["a1"])}),
    "Poisson": (poisson, {"beta": real(2), "tau": positive(), "z": real(50)}),
    "Gaussian process": (process, {"length": positive(), "scale": positive(), "noise": positive()}),
    "items": (items, {"ability": real(100), "difficulty": real(20), "steep": positive(20)}),
}


def posterior(name: str) -> Any:
    function, parameters = POSTERIORS[name]
    return jitad.posterior(function, parameters, data(name))


def run(name: str) -> Any:
    """The draws of all free numbers, of shape (chains, draws, numbers)."""
    return posterior(name).draws(seed=1).free
