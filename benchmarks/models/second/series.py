"""Series, step after step. The loops are Python's; for JAX they are `lax.scan`, in ``jax_series.py``."""

import numpy as np

from benchmarks.models.model import Array, Data


def arma(theta: Array, y: Array) -> float:
    """ARMA(1, 1). theta = mean, atanh of phi, atanh of the moving average, log sd."""
    mu, phi, ma, sigma = theta[0], np.tanh(theta[1]), np.tanh(theta[2]), np.exp(theta[3])
    err, lp = y[0] - mu, 0.0
    lp += -0.5 * (err / sigma) ** 2 - np.log(sigma)
    for t in range(1, len(y)):
        nu = mu + phi * (y[t - 1] - mu) + ma * err
        err = y[t] - nu
        lp += -0.5 * (err / sigma) ** 2 - np.log(sigma)
    return lp - 0.5 * np.sum(theta**2)


def make_arma(rng: np.random.Generator) -> tuple[Array, Data]:
    """300 observations."""
    e, y = rng.normal(size=300), np.zeros(300)
    for t in range(1, 300):
        y[t] = 0.7 * y[t - 1] + e[t] + 0.4 * e[t - 1]
    return np.array([0.1, 0.8, 0.4, 0.1]), (y,)


def volatility(theta: Array, y: Array) -> float:
    """Stochastic volatility, non-centred. theta = mean, atanh of phi, log sd, innovations."""
    mu, phi, sigma, z = theta[0], np.tanh(theta[1]), np.exp(theta[2]), theta[3:]
    h = np.empty(len(y))
    h[0] = mu + sigma / np.sqrt(1 - phi**2) * z[0]
    for t in range(1, len(y)):
        h[t] = mu + phi * (h[t - 1] - mu) + sigma * z[t]
    return np.sum(-0.5 * h - 0.5 * y**2 * np.exp(-h)) - 0.5 * np.sum(z**2) - 0.5 * np.sum(theta[:3] ** 2)


def make_volatility(rng: np.random.Generator) -> tuple[Array, Data]:
    """500 returns."""
    h = np.cumsum(0.1 * rng.normal(size=500))
    return np.concatenate([[0.0, 1.5, -1.5], rng.normal(size=500)]), (np.exp(h / 2) * rng.normal(size=500),)


def hidden_counts(theta: Array, y: Array) -> float:
    """Counts from four hidden states, the forward algorithm scaled in each step. theta = logits of transitions, log
    of the first rate, log gaps of the others."""
    k = 4
    G = np.exp(theta[:k * k].reshape(k, k))
    P = G / G.sum(axis=1, keepdims=True)
    log_rate = np.log(np.cumsum(np.exp(theta[k * k:])))
    like = np.exp(y[:, None] * log_rate - np.exp(log_rate))
    alpha = like[0] / k
    loglik = np.log(alpha.sum())
    alpha = alpha / alpha.sum()
    for t in range(1, len(y)):
        alpha = (alpha @ P) * like[t]
        scale = np.sum(alpha)
        loglik += np.log(scale)
        alpha = alpha / scale
    return loglik - 0.5 * np.sum(theta**2)


def make_hidden_counts(rng: np.random.Generator) -> tuple[Array, Data]:
    """200 counts."""
    state, y = 0, np.zeros(200)
    for t in range(200):
        state = state if rng.random() < 0.8 else rng.integers(4)
        y[t] = rng.poisson((1.0, 3.0, 6.0, 12.0)[state])
    return np.concatenate([(1.5 * np.eye(4) + 0.1 * rng.normal(size=(4, 4))).ravel(), [0.0, 0.7, 1.1, 1.7]]), (y,)


def trend(theta: Array, y: Array) -> float:
    """Local linear trend by the Kalman filter. theta = log variances of observation, level, slope."""
    H, Q1, Q2 = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])
    a, b = y[0], 0.0
    p11, p12, p22 = 10.0, 0.0, 1.0
    lp = 0.0
    for t in range(len(y)):
        F = p11 + H
        v = y[t] - a
        lp -= 0.5 * (np.log(F) + v * v / F)
        k1, k2 = p11 / F, p12 / F
        a, b = a + k1 * v, b + k2 * v
        p11, p12, p22 = p11 - k1 * p11, p12 - k1 * p12, p22 - k2 * p12
        a = a + b
        p11, p12, p22 = p11 + 2 * p12 + p22 + Q1, p12 + p22, p22 + Q2
    return lp - 0.5 * np.sum(theta**2) / 9


def make_trend(rng: np.random.Generator) -> tuple[Array, Data]:
    """200 months."""
    slope = np.cumsum(0.05 * rng.normal(size=200))
    level = np.cumsum(slope + 0.3 * rng.normal(size=200))
    return np.array([0.0, -2.0, -5.0]), (level + rng.normal(size=200),)


def renewal(theta: Array, interval: Array, y: Array) -> float:
    """Infections renew those of the last ten days; the log of the reproduction number walks. theta = log seed, steps
    of the walk, log sd of the walk."""
    seed, sd = np.exp(theta[0]), np.exp(theta[-1])
    R = np.exp(np.cumsum(sd * theta[1:-1]))
    past = len(interval)
    infections = np.zeros(past + len(y))
    infections[:past] = seed
    for t in range(len(y)):
        infections[past + t] = R[t] * np.dot(interval, infections[t:past + t])
    mean = infections[past:]
    return np.sum(y * np.log(mean) - mean) - 0.5 * np.sum(theta[1:-1] ** 2) - 0.5 * (theta[0] - 2) ** 2 - sd / 0.1


def make_renewal(rng: np.random.Generator) -> tuple[Array, Data]:
    """100 days."""
    interval = np.exp(-0.5 * ((np.arange(10) - 4.0) / 2) ** 2)
    y = rng.poisson(10 * np.exp(0.5 * np.sin(np.arange(100) / 15))).astype(float)
    return np.concatenate([[2.2], 0.3 * rng.normal(size=100), [-2.5]]), (interval / interval.sum(), y)
