"""Importance sampling and simulation say how good normal approximations are: closed forms, and quadrature."""
from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import gammaln

import jitad
from jitad.constraints import positive, real
from jitad.errors import SamplingWarning, SignatureError
from jitad.inference.importance import pareto_smoothed

PAIRS = 40


def test_the_normal_distribution_at_the_mode_is_corrected():
    """A gamma posterior, whose logarithm is skew: mean, standard deviation and integral are known."""
    post = jitad.posterior(lambda rate: 5.0 * np.log(rate) - 2.0 * rate, {"rate": positive()})
    approximation = post.normal()
    draws = approximation.draws(4000, seed=1, importance=True)
    assert draws["rate"].mean() == pytest.approx(3.0, abs=0.06)
    assert draws["rate"].std() == pytest.approx(1.5**0.5, abs=0.06)
    assert np.ptp(draws.statistics["pareto_k"]) == 0 and draws.statistics["pareto_k"][0, 0] < 0.7
    exact = gammaln(6) - 6 * np.log(2)
    found = approximation.evidence(8000, seed=2)
    assert abs(found.log - exact) < 4 * found.error < 0.05 < 10 * abs(approximation.log_evidence - exact)


def test_a_normal_posterior_has_even_weights():
    found = jitad.posterior(lambda x: -0.5 * np.sum(x**2), {"x": real(3)}).normal().evidence(500)
    assert found.log == pytest.approx(1.5 * np.log(2 * np.pi)) and found.error < 1e-6 and found.pareto_k == -np.inf


def test_weights_with_a_heavy_tail_are_told():
    post = jitad.posterior(lambda x: -np.sum(np.log1p(x**2)), {"x": real(4)})
    with pytest.warns(SamplingWarning, match="the normal distribution's draws are far from the posterior .Pareto k"):
        post.normal({"x": np.full(4, 0.1)}).draws(500, seed=1, importance=True)


def test_weights_are_those_of_arviz():
    arviz = pytest.importorskip("arviz")
    for seed, heavy in ((0, 0.3), (1, 0.9)):
        logs = heavy * np.random.default_rng(seed).exponential(size=2000)
        expected, k = arviz.psislw(logs)
        smoothed, shape = pareto_smoothed(logs)
        assert shape == pytest.approx(float(k), rel=1e-6)
        np.testing.assert_allclose(smoothed, expected, rtol=1e-6, atol=1e-8)


# --- Laplace's approximation -----------------------------------------------------------------------------------

def outcomes(m, s, z, y):
    """Two binary outcomes for each of some pairs, whose effects differ much: there Laplace's approximation is poor."""
    eta = m + s * z[:, None]
    return np.sum(y * eta - np.logaddexp(0.0, eta)) - 0.5 * np.sum(z * z) - 0.5 * z.size * np.log(2 * np.pi)


def simulated(rng, p):
    eta = p["m"] + p["s"] * rng.normal(size=(PAIRS, 1))
    return ((rng.random((PAIRS, 2)) < 1 / (1 + np.exp(-eta))).astype(float),)


@pytest.fixture(scope="module")
def pairs():
    y = simulated(np.random.default_rng(0), {"m": 0.5, "s": 2.5})
    return jitad.posterior(outcomes, {"m": real(), "s": positive(), "z": real(PAIRS)}, y).laplace(["z"])


def test_importance_sampling_finds_the_marginal_likelihood(pairs):
    theta, (x, weights) = np.array([0.5, np.log(2.0)]), hermegauss(80)
    eta, (y,) = 0.5 + 2.0 * x, pairs.post.observed.values
    one, none = -np.logaddexp(0.0, -eta), -np.logaddexp(0.0, eta)
    exact = sum(np.log(np.sum(weights * np.exp(k * one + (2 - k) * none)) / np.sqrt(2 * np.pi)) for k in y.sum(1))
    found = pairs.importance({"m": 0.5, "s": 2.0}, 2000)
    assert abs(found.log - exact) < 4 * found.error < 0.3 and found.pareto_k < 0.7
    assert pairs.log_likelihood(theta) < exact - 0.5


def test_simulation_tells_a_poor_approximation(pairs):
    report = pairs.fit().check(simulated, simulations=100)
    assert report.p_value < 0.01 and report.bias[1] < -2 * report.errors[1]
    assert "the estimates are biased" in str(report) and report.gradients.shape == (100, 2)


def test_simulated_data_that_do_not_fit(pairs):
    fit = pairs.fit()
    with pytest.raises(SignatureError, match=r"shape \(3, 2\) in the place of \(40, 2\)"):
        fit.check(lambda rng, p: (np.zeros((3, 2)),), simulations=4)
    with pytest.raises(SignatureError, match="as posterior took them: a tuple of 1; not a dict with y"):
        fit.check(lambda rng, p: {"y": np.zeros((40, 2))}, simulations=4)
    with pytest.raises(SignatureError, match="simulations must be an integer, 4 or more, not 3"):
        fit.check(simulated, simulations=3)


# --- draws by it -------------------------------------------------------------------------------------------------

Y = np.array([[1.0, 2.0, 0.5], [4.0, 3.0, 5.0], [2.0, 2.5, 1.0], [6.0, 5.0, 7.0]])


def grouped(mu, b, y):
    """Known variances: mean and effects are normal, and Laplace's approximation is exact."""
    return -0.5 * np.sum((y - mu - b[:, None]) ** 2) - 0.25 * np.sum(b**2) - 0.02 * mu**2


def test_draws_of_a_normal_model_have_its_moments():
    post = jitad.posterior(grouped, {"b": real(4), "mu": real()}, (Y,))
    laplace = post.laplace(["b"])
    exact = post.normal()
    fit = laplace.fit()
    for draws in (fit.draws(1000, seed=1), fit.draws(1000, seed=1, importance=True),
                  laplace.draws(500, tune=200, chains=2, seed=1)):
        flat = draws.free.reshape(-1, 5)
        np.testing.assert_allclose(flat.mean(0), exact.mean, atol=0.1)
        np.testing.assert_allclose(np.cov(flat.T), exact.covariance, atol=0.12)
        assert draws["b"].shape == (*draws["mu"].shape, 4)
    once, again = (laplace.draws(20, tune=20, chains=2, seed=3, start={"mu": 1.0}) for _ in range(2))
    assert np.array_equal(once.free, again.free) and {"posterior", "constant_data"} <= set(again.arviz().groups())
    with pytest.raises(SignatureError, match="all parameters are random"):
        post.laplace(["mu", "b"]).draws(10)
