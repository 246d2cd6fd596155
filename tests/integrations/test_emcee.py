"""The bridge to emcee: walkers in one kernel, -inf outside the support, an ensemble against a closed form."""

import warnings

import emcee
import numpy as np

from jitad.integrations.emcee import ensemble

Y = np.array([1.0, 2.0, 4.0])


def logp(theta, y):
    return -0.5 * np.sum((y - theta[0]) ** 2) + np.where(theta[1] > 0, -theta[1], -np.inf)


def test_walkers_are_computed_together():
    f = ensemble(logp, (Y,))["log_prob_fn"]
    walkers = np.array([[0.0, 1.0], [1.0, -1.0], [2.0, 0.5]])
    np.testing.assert_allclose(f(walkers), [logp(walker, Y) for walker in walkers])
    assert f(walkers)[1] == -np.inf


def test_the_ensemble_walks_as_with_the_plain_function():
    start = np.abs(np.random.default_rng(2).normal(size=(8, 2))) + 0.1

    def walk(**arguments):
        sampler = emcee.EnsembleSampler(8, 2, **arguments)
        sampler.random_state = np.random.RandomState(5).get_state()
        sampler.run_mcmc(start, 200)
        return sampler.get_chain()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = walk(**ensemble(logp, (Y,)))
    np.testing.assert_allclose(ours, walk(log_prob_fn=logp, args=(Y,)), rtol=1e-9)
