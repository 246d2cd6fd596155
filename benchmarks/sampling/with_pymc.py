"""The posteriors in PyMC, sampled by nutpie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from benchmarks.sampling.data import data


def eight_schools(y: Any, sigma: Any) -> None:
    mu, tau, eta = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5), pm.Normal("eta", 0, 1, shape=8)
    pm.Normal("y", mu + tau * eta, sigma, observed=y)


def logistic(x: Any, y: Any) -> None:
    pm.Bernoulli("y", logit_p=pt.dot(x, pm.Normal("beta", 0, 1, shape=5)), observed=y)


def slopes(y: Any, x: Any, group: Any) -> None:
    beta, z, sigma = pm.Normal("beta", 0, 1, shape=2), pm.Normal("z", 0, 1, shape=(2, 40)), pm.Exponential("sigma", 1)
    factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1, shape=2))
    b = beta + (factor @ z).T
    pm.Normal("y", b[group, 0] + b[group, 1] * x, sigma, observed=y)


def mixture(y: Any) -> None:
    w = pm.Dirichlet("w", np.ones(3))
    mu = pm.Normal("mu", 0, 5, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
    pm.NormalMixture("y", w, mu, sigma=pm.Exponential("s", 1, shape=3), observed=y)


def garch(y: Any) -> None:
    mu, a0, a1 = pm.Normal("mu", 0, 1), pm.Exponential("a0", 1), pm.Uniform("a1", 0, 1)
    b1 = pm.Uniform("b1", 0, 1 - a1)
    v = pytensor.scan(lambda before, v, mu, a0, a1, b1: a0 + a1 * (before - mu) ** 2 + b1 * v, pt.constant(y[:-1]),
                      pt.constant(1.0), non_sequences=[mu, a0, a1, b1], return_updates=False)
    pm.Normal("y", mu, pt.sqrt(pt.concatenate([pt.constant([1.0]), v])), observed=y)


def poisson(y: Any, x: Any, group: Any) -> None:
    beta, tau, z = pm.Normal("beta", 0, 1, shape=2), pm.Exponential("tau", 1), pm.Normal("z", 0, 1, shape=50)
    pm.Poisson("y", pt.exp(beta[0] + beta[1] * x + tau * z[group]), observed=y)


def process(y: Any, squares: Any) -> None:
    length, scale, noise = (pm.Exponential(name, 1) for name in ("length", "scale", "noise"))
    covariance = scale**2 * pt.exp(-0.5 * squares / length**2) + noise**2 * np.eye(60)
    pm.MvNormal("y", np.zeros(60), covariance, observed=y)


def items(y: Any, person: Any, item: Any) -> None:
    ability, difficulty = pm.Normal("ability", 0, 1, shape=100), pm.Normal("difficulty", 0, 1, shape=20)
    steep = pm.LogNormal("steep", 0, 0.5, shape=20)
    pm.Bernoulli("y", logit_p=steep[item] * (ability[person] - difficulty[item]), observed=y)


MODELS = {"eight schools": eight_schools, "logistic": logistic, "correlated slopes": slopes, "mixture": mixture,
          "GARCH": garch, "Poisson": poisson, "Gaussian process": process, "items": items}


def run(name: str) -> Any:
    """The draws of all parameters, of shape (chains, draws, numbers)."""
    with pm.Model() as model:
        MODELS[name](*data(name))
    trace = pm.sample(1000, tune=1000, chains=4, model=model, nuts_sampler="nutpie", random_seed=1, progressbar=False,
                      target_accept=0.9, compute_convergence_checks=False)
    drawn = [trace.posterior[v.name].to_numpy().reshape(4, 1000, -1) for v in model.free_RVs]
    return np.concatenate(drawn, axis=2)
