"""Regressions of one table: a row is an observation. No function has a loop, so that JAX takes the same source."""

import numpy as np
from scipy import special
from scipy.special import gammaln, ndtri

from benchmarks.models.model import Array, Data


def negative_binomial(theta: Array, X: Array, y: Array) -> float:
    """Counts with a log link. theta = coefficients, log dispersion."""
    beta, phi = theta[:-1], np.exp(theta[-1])
    mu = np.exp(X @ beta)
    ll = gammaln(y + phi) - gammaln(phi) - gammaln(y + 1) + phi * np.log(phi / (phi + mu)) + y * np.log(mu / (phi + mu))
    return ll.sum() - 0.5 * np.sum(beta**2) + theta[-1] - phi


def make_negative_binomial(rng: np.random.Generator) -> tuple[Array, Data]:
    """1,000 observations, 8 covariates."""
    X = np.column_stack([np.ones(1000), rng.normal(size=(1000, 7))])
    beta = 0.4 * rng.normal(size=8)
    y = rng.poisson(rng.gamma(2.0, np.exp(X @ beta) / 2.0)).astype(float)
    return np.append(beta, 0.5), (X, y)


def zero_inflated(theta: Array, X: Array, Z: Array, y: Array) -> float:
    """Zero-inflated Poisson; a mask tells the zeros. theta = coefficients of the rate, of the inflation."""
    k = X.shape[1]
    log_rate, logit = X @ theta[:k], Z @ theta[k:]
    rate = np.exp(log_rate)
    nothing = np.logaddexp(logit, -rate)
    something = y * log_rate - rate - gammaln(y + 1)
    return np.sum(np.where(y == 0, nothing, something) - np.logaddexp(0, logit)) - 0.5 * theta @ theta


def make_zero_inflated(rng: np.random.Generator) -> tuple[Array, Data]:
    """250 visitors of a park and what they caught."""
    X = np.column_stack([np.ones(250), rng.normal(size=(250, 3))])
    Z = X[:, :2].copy()
    theta = np.array([0.8, 0.5, -0.3, 0.2, -0.4, 0.6])
    there = rng.random(250) > special.expit(Z @ theta[4:])
    return theta, (X, Z, there * rng.poisson(np.exp(X @ theta[:4])).astype(float))


def hurdle(theta: Array, X: Array, y: Array, positive: Array) -> float:
    """Whether anything is spent, and how much. theta = two sets of coefficients, log sd."""
    k = X.shape[1]
    a, b, sd = theta[:k], theta[k:2 * k], np.exp(theta[-1])
    p = 1 / (1 + np.exp(-(X @ a)))
    log_y = np.log(np.where(positive, y, 1.0))
    amount = -0.5 * ((log_y - X @ b) / sd) ** 2 - np.log(sd) - log_y
    lp = np.sum(np.where(positive, np.log(p) + amount, np.log(1 - p)))
    return lp - (a @ a + b @ b) / 50 - sd + theta[-1]


def make_hurdle(rng: np.random.Generator) -> tuple[Array, Data]:
    """500 households, 5 covariates."""
    X = np.column_stack([np.ones(500), rng.normal(size=(500, 4))])
    theta = np.append(0.5 * rng.normal(size=10), -0.2)
    positive = rng.random(500) < special.expit(X @ theta[:5])
    return theta, (X, np.where(positive, np.exp(X @ theta[5:10] + rng.normal(size=500)), 0.0), positive)


def survival(theta: Array, X: Array, t: Array, event: Array) -> float:
    """Weibull, censored on the right. theta = log shape, intercept, coefficients."""
    shape = np.exp(theta[0])
    eta = theta[1] + X @ theta[2:]
    z = shape * (np.log(t) - eta)
    loglik = event * (np.log(shape) + z - np.log(t)) - np.exp(z)
    return loglik.sum() - 0.5 * np.sum(theta[2:] ** 2) - theta[1] ** 2 / 50 - 0.5 * theta[0] ** 2


def make_survival(rng: np.random.Generator) -> tuple[Array, Data]:
    """700 patients, 4 covariates."""
    X = rng.normal(size=(700, 4))
    theta = np.array([0.3, 1.0, 0.4, -0.2, 0.1, 0.0])
    t = np.exp(theta[1] + X @ theta[2:] + np.log(rng.exponential(size=700)) / np.exp(theta[0]))
    end = rng.exponential(5.0, size=700)
    return theta, (X, np.minimum(t, end), (t < end).astype(float))


def ordinal(theta: Array, X: Array, y: Array) -> float:
    """Cumulative logit, five answers. theta = first cut, log gaps, coefficients."""
    cuts = np.concatenate([theta[:1], theta[0] + np.cumsum(np.exp(theta[1:4]))])
    edges = np.concatenate([np.array([-np.inf]), cuts, np.array([np.inf])])
    eta = X @ theta[4:]
    p = special.expit(edges[y + 1] - eta) - special.expit(edges[y] - eta)
    return np.sum(np.log(p)) + np.sum(theta[1:4]) - 0.5 * np.sum(theta**2)


def make_ordinal(rng: np.random.Generator) -> tuple[Array, Data]:
    """1,000 answers, 4 covariates."""
    X = rng.normal(size=(1000, 4))
    beta = np.array([0.8, -0.5, 0.2, 0.0])
    latent = X @ beta + rng.logistic(size=1000)
    y = np.searchsorted(np.array([-1.5, -0.5, 0.5, 1.5]), latent)
    return np.concatenate([np.array([-1.4, 0.1, -0.1, 0.0]), beta]), (X, y)


def multinomial(theta: Array, X: Array, y: Array) -> float:
    """Choice of one of four, the first with utility 0. theta = coefficients by row."""
    B = theta.reshape(3, X.shape[1])
    U = np.hstack([np.zeros((X.shape[0], 1)), X @ B.T])
    return np.sum(U[np.arange(len(y)), y] - special.logsumexp(U, axis=1)) - 0.5 * np.sum(B**2)


def make_multinomial(rng: np.random.Generator) -> tuple[Array, Data]:
    """600 choices, 6 covariates."""
    X = rng.normal(size=(600, 6))
    B = rng.normal(size=(3, 6))
    U = np.hstack([np.zeros((600, 1)), X @ B.T]) + rng.gumbel(size=(600, 4))
    return 0.8 * B.ravel(), (X, np.argmax(U, axis=1))


def robust(theta: Array, X: Array, y: Array) -> float:
    """Student's t with its degrees of freedom estimated. theta = coefficients, log scale, log degrees."""
    beta, log_s, nu = theta[:-2], theta[-2], np.exp(theta[-1])
    r = (y - X @ beta) / np.exp(log_s)
    norm = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi) - log_s
    loglik = len(y) * norm - (nu + 1) / 2 * np.sum(np.log1p(r * r / nu))
    return loglik - 0.5 * np.sum(beta**2) / 100 - 0.5 * log_s**2 + 2 * theta[-1] - 0.1 * nu


def make_robust(rng: np.random.Generator) -> tuple[Array, Data]:
    """400 observations, 10 covariates."""
    X = np.column_stack([np.ones(400), rng.normal(size=(400, 9))])
    beta = rng.normal(size=10)
    return np.append(beta, [0.1, 1.2]), (X, X @ beta + rng.standard_t(4, size=400))


def mixture_of_lines(theta: Array, x: Array, y: Array) -> float:
    """Two lines, with points on either. theta = intercepts, slopes, log sds, logit of the share."""
    a, b, s = theta[0:2], theta[2:4], np.exp(theta[4:6])
    share = special.expit(theta[6])
    first = np.log(share) - 0.5 * ((y - a[0] - b[0] * x) / s[0]) ** 2 - np.log(s[0])
    second = np.log1p(-share) - 0.5 * ((y - a[1] - b[1] * x) / s[1]) ** 2 - np.log(s[1])
    return np.logaddexp(first, second).sum() - 0.5 * np.sum(theta**2)


def make_mixture_of_lines(rng: np.random.Generator) -> tuple[Array, Data]:
    """500 points."""
    x, which = rng.normal(size=500), rng.random(500) < 0.3
    y = np.where(which, 1 + 2 * x, -1 - x) + 0.5 * rng.normal(size=500)
    return np.array([0.9, -0.8, 1.8, -1.1, -0.5, -0.6, -0.7]), (x, y)


def spline(theta: Array, B: Array, y: Array) -> float:
    """Penalised spline: second differences of the coefficients are small. theta = them, log sds of both."""
    c, log_tau, log_sd = theta[:-2], theta[-2], theta[-1]
    rough = np.diff(c, 2)
    r = y - B @ c
    lp = -0.5 * np.sum(r**2) / np.exp(2 * log_sd) - len(y) * log_sd
    lp += -0.5 * np.sum(rough**2) / np.exp(2 * log_tau) - len(rough) * log_tau
    return lp - 0.5 * (c[0] ** 2 + c[1] ** 2) / 100 - 0.5 * (log_tau**2 + log_sd**2)


def make_spline(rng: np.random.Generator) -> tuple[Array, Data]:
    """400 points, 20 cubic basis functions."""
    from scipy.interpolate import BSpline

    x = np.sort(rng.random(400))
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, 18), np.ones(3)])
    B = BSpline.design_matrix(x, knots, 3).toarray()
    return np.append(rng.normal(size=20), [0.1, -1.0]), (B, np.sin(6 * x) + 0.3 * rng.normal(size=400))


def copula(theta: Array, Y: Array, score: Array) -> float:
    """Gaussian copula with one correlation, on normal scores, and exponential margins. theta = atanh of the
    correlation, log scales of the margins."""
    rho, s = np.tanh(theta[0]), np.exp(theta[1:])
    n, d = Y.shape
    R = (1 - rho) * np.eye(d) + rho * np.ones((d, d))
    L = np.linalg.cholesky(R)
    W = np.linalg.solve(L, score.T)
    dependence = -0.5 * np.sum(W**2) + 0.5 * np.sum(score**2) - n * np.sum(np.log(np.diag(L)))
    margins = np.sum(-Y / s - np.log(s))
    return dependence + margins - 0.5 * np.sum(theta**2)


def make_copula(rng: np.random.Generator) -> tuple[Array, Data]:
    """300 observations."""
    Z = rng.normal(size=(300, 1)) * np.sqrt(0.4) + rng.normal(size=(300, 5)) * np.sqrt(0.6)
    Y = -np.log(special.ndtr(-Z)) * np.array([1.0, 2.0, 0.5, 1.5, 1.0])
    rank = np.argsort(np.argsort(Y, axis=0), axis=0) + 1
    return np.array([0.4, 0.1, 0.6, -0.5, 0.3, 0.0]), (Y, ndtri(rank / 301))
