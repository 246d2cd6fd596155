"""The log densities in plain NumPy, with seeded generators for their data.

No function here has a loop or a branch in Python, and none knows of jitad: the same source runs under jitad, under JAX
(``Model.jax_logp``) and as it stands. The hand-written kernels of the same names are in ``handwritten.densities``.
"""

import numpy as np
from scipy import special

from benchmarks.models.model import Array, Data


def _coin(rng: np.random.Generator, eta: Array) -> Array:
    return (rng.random(eta.shape) < special.expit(eta)).astype(float)


def logistic_1d(theta: Array, x: Array, y: Array) -> float:
    """Logistic regression on one covariate. theta = intercept, slope."""
    eta = theta[0] + theta[1] * x
    return np.sum(y * eta - np.log1p(np.exp(eta)))


def make_logistic_1d(rng: np.random.Generator) -> tuple[Array, Data]:
    """100,000 observations."""
    x = rng.normal(size=100_000)
    return np.array([0.3, -0.8]), (x, _coin(rng, 0.2 - 0.5 * x))


def logistic(theta: Array, X: Array, y: Array) -> float:
    """Logistic regression on the columns of X, standard normal prior. theta = coefficients."""
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta))) - 0.5 * theta @ theta


def make_logistic(rng: np.random.Generator, n: int, d: int) -> tuple[Array, Data]:
    X = rng.normal(size=(n, d))
    beta = rng.normal(size=d) / np.sqrt(d)
    return beta + 0.1 * rng.normal(size=d), (X, _coin(rng, X @ beta))


def make_glm(rng: np.random.Generator) -> tuple[Array, Data]:
    """10,000 rows, 100 columns."""
    return make_logistic(rng, 10_000, 100)


def make_thin_logistic(rng: np.random.Generator) -> tuple[Array, Data]:
    """20,000 rows, 6 columns."""
    return make_logistic(rng, 20_000, 6)


def varying_intercepts(theta: Array, group: Array, x: Array, y: Array) -> float:
    """Normal regression, intercepts by group, non-centred. theta = z[J], slope, mean, log sd of groups, log sd."""
    z, slope, mean = theta[:-4], theta[-4], theta[-3]
    sd_group, sd = np.exp(theta[-2]), np.exp(theta[-1])
    mu = (mean + sd_group * z)[group] + slope * x
    prior = -0.5 * (sd_group**2 + sd**2 + z @ z) - 0.5 * ((mean / 10) ** 2 + (slope / 10) ** 2)
    return prior + theta[-2] + theta[-1] + np.sum(-0.5 * ((y - mu) / sd) ** 2 - np.log(sd))


def make_varying_intercepts(rng: np.random.Generator) -> tuple[Array, Data]:
    """12,573 observations in 386 unsorted groups."""
    n, groups = 12_573, 386
    group = rng.integers(0, groups, size=n)
    x = rng.integers(0, 2, size=n).astype(float)
    y = (1.3 + 0.4 * rng.normal(size=groups))[group] - 0.6 * x + 0.8 * rng.normal(size=n)
    return np.concatenate([0.3 * rng.normal(size=groups), [-0.5, 1.2, -0.8, -0.2]]), (group, x, y)


def eight_schools(theta: Array, y: Array, sigma: Array) -> float:
    """Eight schools, non-centred. theta = z[J], mu, log tau."""
    z, mu, tau = theta[:-2], theta[-2], np.exp(theta[-1])
    effect = mu + tau * z
    prior = -0.5 * z @ z - 0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2) + theta[-1]
    return prior + np.sum(-0.5 * ((y - effect) / sigma) ** 2 - np.log(sigma))


def make_eight_schools(rng: np.random.Generator) -> tuple[Array, Data]:
    """8 observations with known errors."""
    sigma = rng.uniform(9, 18, size=8)
    return rng.uniform(-1, 1, size=10), (8 + 10 * rng.normal(size=8), sigma)


def gp(theta: Array, x: Array, y: Array) -> float:
    """Gaussian process regression, squared exponential. theta = log rho, log alpha, log sigma."""
    rho, alpha, sigma = np.exp(theta)
    distance = (x[:, None] - x[None, :]) / rho
    K = alpha**2 * np.exp(-0.5 * distance**2) + sigma**2 * np.eye(len(x))
    L = np.linalg.cholesky(K)
    z = np.linalg.solve(L, y)
    return -0.5 * z @ z - np.sum(np.log(np.diag(L))) - 0.5 * theta @ theta


def make_gp(rng: np.random.Generator) -> tuple[Array, Data]:
    """100 points."""
    x = np.sort(rng.uniform(-5, 5, size=100))
    return np.array([0.2, 0.1, -1.0]), (x, np.sin(1.5 * x) + 0.3 * rng.normal(size=100))


def poisson_glmm(theta: Array, group: Array, x: Array, y: Array) -> float:
    """Poisson regression with group effects. theta = z[J], intercept, slope, log sd of groups."""
    z, intercept, slope, sd = theta[:-3], theta[-3], theta[-2], np.exp(theta[-1])
    eta = intercept + slope * x + (sd * z)[group]
    prior = -0.5 * (z @ z + sd**2) - 0.5 * ((intercept / 5) ** 2 + (slope / 5) ** 2) + theta[-1]
    return prior + np.sum(y * eta - np.exp(eta) - special.gammaln(y + 1))


def make_poisson_glmm(rng: np.random.Generator) -> tuple[Array, Data]:
    """500 counts in 40 groups."""
    group = rng.integers(0, 40, size=500)
    x = rng.normal(size=500)
    y = rng.poisson(np.exp(1.0 + 0.4 * x + 0.5 * rng.normal(size=40)[group])).astype(float)
    return np.concatenate([0.3 * rng.normal(size=40), [0.9, 0.3, -0.6]]), (group, x, y)


def gauss_mixture(theta: Array, y: Array) -> float:
    """Two normal components, ordered means. theta = mean, log gap, log sd[2], logit weight."""
    mu_1, mu_2 = theta[0], theta[0] + np.exp(theta[1])
    sd = np.exp(theta[2:4])
    weight = special.expit(theta[4])
    a = np.log(weight) - np.log(sd[0]) - 0.5 * ((y - mu_1) / sd[0]) ** 2
    b = np.log1p(-weight) - np.log(sd[1]) - 0.5 * ((y - mu_2) / sd[1]) ** 2
    return np.sum(np.logaddexp(a, b)) - 0.5 * theta @ theta


def make_gauss_mixture(rng: np.random.Generator) -> tuple[Array, Data]:
    """1,000 observations."""
    y = np.where(rng.random(1000) < 0.4, -1.5 + 0.8 * rng.normal(size=1000), 1.2 + 1.1 * rng.normal(size=1000))
    return np.array([-1.2, 0.8, -0.1, 0.2, -0.3]), (y,)


def linear_regression(theta: Array, score: Array, school: Array, iq: Array) -> float:
    """Linear regression with an interaction. theta = 4 coefficients, log sd."""
    beta, sd = theta[:4], np.exp(theta[4])
    mu = beta[0] + beta[1] * school + beta[2] * iq + beta[3] * school * iq
    return theta[4] - np.log1p((sd / 2.5) ** 2) - 0.5 * np.sum(((score - mu) / sd) ** 2) - score.size * np.log(sd)


def make_linear_regression(rng: np.random.Generator) -> tuple[Array, Data]:
    """434 observations."""
    school = rng.integers(0, 2, size=434).astype(float)
    iq = rng.normal(size=434)
    score = 2.0 + 0.5 * school + 0.9 * iq - 0.3 * school * iq + 1.5 * rng.normal(size=434)
    return np.array([1.8, 0.4, 0.8, -0.2, 0.5]), (score, school, iq)
