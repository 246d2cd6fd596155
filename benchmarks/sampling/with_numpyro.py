"""The posteriors in NumPyro."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from benchmarks.sampling.data import data

numpyro.set_host_device_count(2)
numpyro.enable_x64()
if os.environ.get("PEER_CACHE"):
    jax.config.update("jax_compilation_cache_dir", os.environ["PEER_CACHE"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def eight_schools(y: Any, sigma: Any) -> None:
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    eta = numpyro.sample("eta", dist.Normal(0, 1).expand([8]))
    numpyro.sample("y", dist.Normal(mu + tau * eta, sigma), obs=y)


def logistic(x: Any, y: Any) -> None:
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([5]))
    numpyro.sample("y", dist.Bernoulli(logits=x @ beta), obs=y)


def slopes(y: Any, x: Any, group: Any) -> None:
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([2]))
    tau = numpyro.sample("tau", dist.Exponential(1).expand([2]))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([2, 40]))
    sigma = numpyro.sample("sigma", dist.Exponential(1))
    b = beta + (tau[:, None] * factor @ z).T
    numpyro.sample("y", dist.Normal(b[group, 0] + b[group, 1] * x, sigma), obs=y)


def mixture(y: Any) -> None:
    w = numpyro.sample("w", dist.Dirichlet(jnp.ones(3)))
    mu = numpyro.sample("mu", dist.TransformedDistribution(
        dist.Normal(0, 3).expand([3]), dist.transforms.OrderedTransform()))
    s = numpyro.sample("s", dist.Exponential(1).expand([3]))
    numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(probs=w), dist.Normal(mu, s)), obs=y)


def garch(y: Any) -> None:
    mu, a0 = numpyro.sample("mu", dist.Normal(0, 1)), numpyro.sample("a0", dist.Exponential(1))
    a1 = numpyro.sample("a1", dist.Uniform(0, 1))
    b1 = numpyro.sample("b1", dist.Uniform(0, 1 - a1))

    def step(v: Any, before: Any) -> Any:
        v = a0 + a1 * (before - mu) ** 2 + b1 * v
        return v, v
    v = jnp.append(1.0, jax.lax.scan(step, 1.0, y[:-1])[1])
    numpyro.sample("y", dist.Normal(mu, jnp.sqrt(v)), obs=y)


def poisson(y: Any, x: Any, group: Any) -> None:
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([2]))
    tau, z = numpyro.sample("tau", dist.Exponential(1)), numpyro.sample("z", dist.Normal(0, 1).expand([50]))
    numpyro.sample("y", dist.Poisson(jnp.exp(beta[0] + beta[1] * x + tau * z[group])), obs=y)


def process(y: Any, squares: Any) -> None:
    length, scale, noise = (numpyro.sample(name, dist.Exponential(1)) for name in ("length", "scale", "noise"))
    covariance = scale**2 * jnp.exp(-0.5 * squares / length**2) + noise**2 * jnp.eye(60)
    numpyro.sample("y", dist.MultivariateNormal(0.0, covariance), obs=y)


def items(y: Any, person: Any, item: Any) -> None:
    ability = numpyro.sample("ability", dist.Normal(0, 1).expand([100]))
    difficulty = numpyro.sample("difficulty", dist.Normal(0, 1).expand([20]))
    steep = numpyro.sample("steep", dist.LogNormal(0, 0.5).expand([20]))
    numpyro.sample("y", dist.Bernoulli(logits=steep[item] * (ability[person] - difficulty[item])), obs=y)


MODELS = {"eight schools": eight_schools, "logistic": logistic, "correlated slopes": slopes, "mixture": mixture,
          "GARCH": garch, "Poisson": poisson, "Gaussian process": process, "items": items}


def run(name: str) -> Any:
    """The draws of all free numbers, of shape (chains, draws, numbers)."""
    sampler = MCMC(NUTS(MODELS[name], target_accept_prob=0.9), num_warmup=1000, num_samples=1000, num_chains=4,
                   chain_method="parallel" if jax.local_device_count() >= 4 else "vectorized", progress_bar=False)
    sampler.run(jax.random.PRNGKey(1), *data(name))
    found = sampler.get_samples(group_by_chain=True)
    return np.concatenate([np.asarray(x).reshape(4, 1000, -1) for x in found.values()], axis=2)
