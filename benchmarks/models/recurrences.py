"""Recurrences written as plain Python loops, with seeded data of any length."""

import numpy as np
from scipy.special import logsumexp

Array = np.ndarray


def garch(theta: Array, y: Array) -> float:
    """GARCH(1, 1). theta = mean, log omega, alpha, beta, logarithm of the first variance."""
    mu, omega, alpha, beta = theta[0], np.exp(theta[1]), theta[2], theta[3]
    h = np.exp(theta[4])
    total = 0.0
    for t in range(len(y)):
        total = total - 0.5 * (np.log(h) + (y[t] - mu) ** 2 / h)
        h = omega + alpha * (y[t] - mu) ** 2 + beta * h
    return total


def hmm(theta: Array, y: Array) -> float:
    """Three states with normal emissions. theta = logits of the transitions by rows, means, log scale."""
    logits = theta[:9].reshape(3, 3)
    transition = logits - logsumexp(logits, axis=1, keepdims=True)
    emission = -0.5 * ((y[:, None] - theta[9:12]) / np.exp(theta[12])) ** 2 - theta[12]
    alpha = emission[0] - np.log(3.0)
    for t in range(1, len(y)):
        alpha = logsumexp(alpha[:, None] + transition, axis=0) + emission[t]
    return logsumexp(alpha)


def kalman(theta: Array, F0: Array, H: Array, y: Array) -> float:
    """Four states, four observations. theta = log variances of states and observations, factor of the transition."""
    F, Q, R = theta[8] * F0, np.diag(np.exp(theta[:4])), np.diag(np.exp(theta[4:8]))
    m, P = np.zeros(4), np.eye(4)
    total = 0.0
    for t in range(len(y)):
        m = F @ m
        P = F @ P @ F.T + Q
        v = y[t] - H @ m
        S = H @ P @ H.T + R
        gain = np.linalg.solve(S, H @ P).T
        total = total - 0.5 * (np.linalg.slogdet(S)[1] + v @ np.linalg.solve(S, v))
        m = m + gain @ v
        P = P - gain @ H @ P
    return total


def kalman_by_inverse(theta: Array, F0: Array, H: Array, y: Array) -> float:
    """The same filter as many write it."""
    F, Q, R = theta[8] * F0, np.diag(np.exp(theta[:4])), np.diag(np.exp(theta[4:8]))
    m, P = np.zeros(4), np.eye(4)
    total = 0.0
    for t in range(len(y)):
        m = F @ m
        P = F @ P @ F.T + Q
        v = y[t] - H @ m
        S = H @ P @ H.T + R
        inverse = np.linalg.inv(S)
        gain = P @ H.T @ inverse
        total -= 0.5 * (np.log(np.linalg.det(S)) + v @ inverse @ v)
        m = m + gain @ v
        P = (np.eye(4) - gain @ H) @ P
    return total


def make_garch(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(1)
    return np.array([0.1, -2.0, 0.1, 0.8, 0.0]), rng.normal(size=n)


def make_hmm(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(2)
    theta = np.concatenate([rng.normal(size=9), [-1.0, 0.0, 1.5], [-0.3]])
    return theta, rng.choice([-1.0, 0.0, 1.5], n) + 0.7 * rng.normal(size=n)


def make_kalman(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(3)
    F0 = np.eye(4) + 0.2 * rng.normal(size=(4, 4))
    theta = np.concatenate([rng.normal(-1.0, 0.3, 4), rng.normal(-0.5, 0.3, 4), [0.7]])
    return theta, F0 / np.max(np.abs(np.linalg.eigvals(F0))), rng.normal(size=(4, 4)), rng.normal(size=(n, 4))
