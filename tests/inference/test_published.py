"""Mixed models of ten published tables: log-likelihoods and estimates that others have published.

MM: the tests of MixedModels.jl (D. Bates et al.; test/pls.jl, test/plsonescalar.jl, test/pirls.jl). lme4: its tests
(tests/glmer-1.R). nlme: what it prints (logLik and standard deviations), as in Pinheiro and Bates, 2000. Where the
model is normal, the same is computed here by a dense covariance matrix.
"""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

import jitad
from jitad.constraints import cholesky_corr, positive, real
from tests.inference import mixed_data as data

LOG_2PI = np.log(2 * np.pi)


def standard(z):
    return -0.5 * np.sum(z * z) - 0.5 * z.size * LOG_2PI


def linear(beta, sd, scale, z, y, x, groups, term):
    """Effects of several factors; `term` says for each effect which factor it belongs to."""
    residual = (y - x @ beta - groups @ (scale[term] * z)) / sd
    return standard(residual) - y.size * np.log(sd) + standard(z)


def indicators(*levels):
    """The matrix of all effects, and the factor of each."""
    blocks = [np.equal.outer(level, np.unique(level)).astype(float) for level in levels]
    return np.hstack(blocks), np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])


def dense(y, x, groups, term, start):
    """The greatest log-likelihood by the covariance matrix of the observations."""
    def loss(t):
        covariance = np.exp(2 * t[0]) * np.eye(y.size) + groups @ np.diag(t[1:][term] ** 2) @ groups.T
        factor = np.linalg.cholesky(covariance)
        white, z = np.linalg.solve(factor, x), np.linalg.solve(factor, y)
        residual = z - white @ np.linalg.lstsq(white, z)[0]
        return 0.5 * residual @ residual + np.sum(np.log(np.diag(factor))) + 0.5 * y.size * LOG_2PI
    return -minimize(loss, start, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).fun


BATCH, PASTE = np.repeat(np.arange(6), 5), np.arange(60)
LINEAR = {                                        # y, factors, sd and scales to start from, deviance, sd and scales
    "dyestuff (MM)": (data.DYESTUFF, (BATCH,), (45.0, 30.0), 327.32705988112673, (49.5101, 37.26034)),
    "dyestuff2 (MM)": (data.DYESTUFF2, (BATCH,), (3.0, 1.0), 162.87303665382575, (3.653231351374652, 0.0)),
    "rail (nlme)": (data.RAIL, (np.repeat(np.arange(6), 3),), (4.0, 20.0), 2 * 64.28002, (4.020779, 22.62435)),
    "penicillin (MM)": (data.PENICILLIN, (np.repeat(np.arange(24), 6), np.tile(np.arange(6), 24)), (0.5, 1.0, 2.0),
                        332.1883486722762, (0.3024263987592062**0.5, 0.8455645948223015, 1.770647779277388)),
    "pastes (MM)": (data.PASTES, (PASTE // 2, PASTE // 6), (1.0, 3.0, 1.0),
                    247.99446586289676, (0.8234088395243269, 2.904069002535747, 1.095070371687089)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models(name):
    y, factors, start, deviance, scales = LINEAR[name]
    (groups, term), x = indicators(*factors), np.ones((y.size, 1))
    post = jitad.posterior(linear, {"beta": real(1), "sd": positive(), "scale": real(len(factors)),
                                    "z": real(len(term))}, (y, x, groups, term))
    fit = post.laplace(["z"]).fit({"beta": np.array([y.mean()]), "sd": start[0], "scale": np.array(start[1:])})
    assert -2 * fit.value == pytest.approx(deviance, abs=1e-5 if "nlme" in name else 2e-6)
    assert fit.value == pytest.approx(dense(y, x, groups, term, [np.log(start[0]), *start[1:]]), abs=1e-6)
    assert fit["beta"][0] == pytest.approx(y.mean(), rel=1e-9)
    np.testing.assert_allclose([fit["sd"], *abs(fit["scale"])], scales, rtol=1e-5, atol=1e-4)


def slopes(beta, sd, tau, factor, z, y, x):
    """Lines of subjects, of which intercept and slope are correlated; all measured at the same places."""
    lines = beta + z @ (tau[:, None] * factor).T
    residual = (y - lines @ x.T) / sd
    return standard(residual) - y.size * np.log(sd) + standard(z)


SLOPES = {"beta": real(2), "sd": positive(), "tau": positive(2), "factor": cholesky_corr(2)}


def test_correlated_slopes():
    """sleepstudy, MM; its standard deviations and errors have four digits behind the point."""
    x = np.column_stack([np.ones(10), np.arange(10.0)])
    laplace = jitad.posterior(slopes, {**SLOPES, "z": real(18, 2)}, (data.SLEEP.reshape(18, 10), x)).laplace(["z"])
    fit = laplace.fit({"beta": np.array([250.0, 10.0]), "sd": 25.0, "tau": np.array([20.0, 5.0]), "factor": np.eye(2)})
    assert fit.value == pytest.approx(-1751.9393444647046 / 2, abs=1e-6)
    np.testing.assert_allclose(fit["beta"], [251.40510484848477, 10.4672859595959], rtol=1e-7)
    np.testing.assert_allclose(fit["tau"], [23.780468100188497, 5.716827903196682], rtol=1e-5)
    np.testing.assert_allclose(fit.errors["beta"], [6.632257721914501, 1.5022354739749826], rtol=1e-5)


def test_restricted_likelihood():
    """Orthodont, nlme: the fixed effects are integrated out, too, under a flat density."""
    x = np.column_stack([np.ones(4), np.arange(8.0, 15.0, 2.0)])
    laplace = jitad.posterior(slopes, {**SLOPES, "z": real(27, 2)}, (data.ORTHODONT.reshape(27, 4), x)).laplace(
        ["beta", "z"])
    fit = laplace.fit({"sd": 1.3, "tau": np.array([2.0, 0.2]), "factor": np.eye(2)})
    assert fit.value == pytest.approx(-221.31834, abs=5e-6)
    np.testing.assert_allclose(fit.random["beta"], [16.7611111, 0.6601852], rtol=1e-6)
    np.testing.assert_allclose([fit["sd"], *fit["tau"]], [1.310039, 2.327034, 0.226428], rtol=5e-6)
    assert (fit["factor"] @ fit["factor"].T)[1, 0] == pytest.approx(-0.609, abs=5e-4)


def counts(beta, scale, z, y, size, constant, x, group):
    """Binomial; with an infinite `size`, Poisson."""
    eta = x @ beta + scale * z[group]
    spent = np.exp(eta) if np.isinf(size[0]) else size * np.logaddexp(0.0, eta)
    return np.sum(y * eta - spent) + constant + standard(z)


def posterior_of(y, size, constant, x, group):
    group = group.astype(int)
    return jitad.posterior(counts, {"beta": real(x.shape[1]), "scale": real(), "z": real(group.max() + 1)},
                           (y, size, constant, x, group))


def binomial(y, size):
    return np.sum(gammaln(size + 1) - gammaln(y + 1) - gammaln(size - y + 1))


WEEKS = (data.WEEK > 2).astype(float)
PERIODS = np.equal.outer(data.PERIOD, [2, 3, 4]).astype(float)
TREATMENTS = np.array([[-2.0, -1.0], [1.0, -1.0], [1.0, 2.0]])[data.TREATMENT.astype(int)] / 3
COUNTS = {          # y, sizes, x, groups; log-likelihood and its accuracy, coefficients and theirs
    "cbpp (MM; lme4)": (data.INCIDENCE, data.SIZE, np.column_stack([np.ones(56), PERIODS]), data.HERD - 1,
                        -92.02628186840045, 1e-6, [-1.39853505, -0.99233471, -1.12867541, -1.58037390], 4e-5),
    "bacteria (lme4)": (data.PRESENT, np.ones(220), np.column_stack([np.ones(220), TREATMENTS, WEEKS]), data.CHILD,
                        -96.13069, 1e-5, [2.83160949, -1.36672263, 0.58401478, -1.59859135], 1e-4),
}


@pytest.mark.parametrize("name", COUNTS)
def test_binomial_counts(name):
    y, size, x, group, value, near, beta, close = COUNTS[name]
    fit = posterior_of(y, size, binomial(y, size), x, group).laplace(["z"]).fit(
        {"beta": np.zeros(x.shape[1]), "scale": 1.0})
    assert fit.value == pytest.approx(value, abs=near)
    np.testing.assert_allclose(fit["beta"], beta, rtol=close)


def test_poisson_counts():
    """MM ends at a point of a smaller likelihood; there its deviance, from the saturated model, is this one."""
    y = data.GOLDSTEIN
    laplace = posterior_of(y, np.full(100, np.inf), 0.0, np.ones((100, 1)), np.tile(np.arange(10), 10)).laplace(["z"])
    with np.errstate(divide="ignore", invalid="ignore"):
        saturated = np.sum(np.where(y > 0, y * np.log(y), 0.0) - y)
    published = laplace.log_likelihood(np.array([4.192196439077657, 1.838245201739852]))
    assert -2 * (published - saturated) == pytest.approx(193.5587302384811, abs=1e-8)
    assert laplace.fit({"beta": np.array([4.0]), "scale": 1.8}).value > published + 3.8
