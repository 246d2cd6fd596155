"""Programs of several sciences, as somebody writes them who has read no more than the README."""
from __future__ import annotations

import collections
import itertools
import math

import numpy as np
from scipy import linalg, special, stats

from tests.programs.table import Table

rows = Table()
rng = np.random.default_rng(1)
T = np.linspace(0.0, 5.0, 30)
Y = 2.0 * np.exp(-0.7 * T) + 0.3 + 0.05 * rng.normal(size=30)
spins = np.sign(rng.normal(size=(4, 4)))
letters = collections.Counter("abracadabra")


@rows.of(np.array([0.3, 0.1]))
def ising(p):
    energy = 0.0
    for i, j in itertools.product(range(4), range(4)):
        energy -= p[0] * spins[i, j] * (spins[(i + 1) % 4, j] + spins[i, (j + 1) % 4]) + p[1] * spins[i, j]
    return energy


@rows.of(np.array([1.0, 0.3]))
def kepler(p):
    M, e = p
    E = M
    for _ in range(8):
        E = E - (E - e * math.sin(E) - M) / (1 - e * math.cos(E))
    return E


@rows.of(np.array([0.0, 0.0, -2.0]))
def gaussian_process(p):
    length, size, noise = np.exp(p)
    K = size * np.exp(-0.5 * ((T[:, None] - T) / length) ** 2) + noise * np.eye(30)
    L = linalg.cholesky(K, lower=True)
    return -0.5 * Y @ linalg.cho_solve((L, True), Y) - np.log(np.diag(L)).sum()


@rows.of(0.1 * np.arange(5))
def letters_of_a_text(p):
    q = special.softmax(p)
    return sum(count * np.log(q[i]) for i, (_, count) in enumerate(sorted(letters.items())))


@rows.of(np.array([1.0, 2.0, 3.0]))
def rays_through_lenses(p):
    M = np.eye(2)
    for f in p:
        M = np.array([[1, 0], [-1 / f, 1]]) @ np.array([[1, 0.2], [0, 1]]) @ M
    return np.trace(M)


@rows.of(np.array([0.2, 1.0]))
def censored_survival(p):
    t, dead = np.array([1, 3, 2, 5, 8.0]), np.array([1, 0, 1, 1, 0])
    k, scale = np.exp(p)
    return np.sum(np.where(dead, stats.weibull_min.logpdf(t, k, scale=scale),
                           stats.weibull_min.logsf(t, k, scale=scale)))


@rows.of(np.array([0.2, 1.0]))
def diffusion(p):
    u = np.zeros(20)
    u[8:12] = p[1]
    for _ in range(15):
        u[1:-1] += p[0] * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u.max(), np.sum(u ** 2)


@rows.of(np.array([1.2, 0.5]))
def scattering(p):
    r = np.linspace(0.5, 3.0, 10)
    return np.sum((special.spherical_jn(1, p[0] * r) * r) ** 2) * p[1]


@rows.of(np.array([0.3, 1.2, 0.5]))
def current_of_a_diode(p):
    return special.lambertw(p[0] * p[1] * np.exp(p[2])).real / p[1]


@rows.of(np.array([1.0, -0.5, 0.2, 0.1]))
def smooth_calibration(p):
    c = np.polynomial.Chebyshev(p, domain=[0, 5])
    return np.sum((Y - c(T)) ** 2) + 0.01 * np.sum(c.deriv(2)(T) ** 2)


@rows.of(np.array([0.0, 0.1, 0.2, 0.3]))
def substitutions_of_bases(p):
    Q = np.exp(p).reshape(2, 2)
    Q = Q - np.diag(np.diag(Q))
    Q = Q - np.diag(Q.sum(1))
    return np.log(linalg.expm(0.5 * Q)[0, 1])


@rows.of(np.array([-2.0, -3.0]))
def local_level(p):
    m, P, total = 0.0, 1.0, 0.0
    for y in Y:
        P = P + np.exp(p[0])
        S = P + np.exp(p[1])
        K = P / S
        total += stats.norm.logpdf(y, m, np.sqrt(S))
        m = m + K * (y - m)
        P = (1 - K) * P
    return total


rows("equilibrium", lambda p: np.polynomial.Polynomial([-p[0], 1.0, p[1]]).roots().max(), np.array([0.5, 2.0]))
