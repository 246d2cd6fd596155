"""Snippets of the tutorials of NumPy and SciPy, and formulas of physics, chemistry, biology, geography, economics."""
from __future__ import annotations

import math

import numpy as np
import scipy
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.special as special
import scipy.stats as stats
from scipy.spatial.distance import pdist
from scipy.special import expit

from tests.programs.table import P3, Table

rows = Table()
rng = np.random.default_rng(5)
t = np.linspace(0.0, 2.0, 12)
y = np.sin(3 * t) + 0.1 * rng.normal(size=12)
yerr = 0.1 + 0.05 * rng.random(12)
X = np.column_stack([np.ones(12), t, t ** 2])
labels = (rng.random(12) < 0.5).astype(int)
counts = rng.poisson(3.0, 12)
group = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2])
B3 = np.array([0.3, -0.2, 0.1])
# --- NumPy and SciPy tutorials -------------------------------------------------------------------

rows("numpy quickstart", lambda a: ((a.reshape(3, 4).T @ a.reshape(3, 4))[..., 1] ** 2)[a[:4] > -9], t)
rows("numpy broadcasting distances", lambda c: np.sqrt(((np.array([[1.0, 0.5], [0.1, 0.2]])[:, None] - c.reshape(-1, 2)) ** 2).sum(-1)).min(1), np.array([0.3, 0.1, 0.9, 0.8]))
rows("numpy kmeans step", lambda c: np.sum(np.min((y[:, None] - c[None, :]) ** 2, axis=1)), B3)
rows("numpy game of heat", lambda u: _heat(u, 3), t)
rows("numpy one hot", lambda W: np.sum(np.eye(3)[group] @ W), P3)
rows("numpy histogram weights", lambda w: np.bincount(group, weights=w[group] * y), P3)
rows("numpy rolling mean by cumsum", lambda x: (np.cumsum(x)[3:] - np.cumsum(x)[:-3]) / 3, t)
rows("numpy normalised rows", lambda A: A / np.linalg.norm(A, axis=1, keepdims=True), rng.normal(size=(3, 2)))
rows("numpy whitening", lambda A: (A - A.mean(axis=0)) / A.std(axis=0, ddof=1), rng.normal(size=(4, 2)))
rows("numpy svd compress", lambda A: np.linalg.svd(A, full_matrices=False)[1][:2].sum(), rng.normal(size=(4, 3)))
rows("numpy least squares by normal equations", lambda w: np.linalg.solve(X.T @ (w[:, None] * X), X.T @ (w * y)), t + 1)
rows("numpy polynomial derivative", lambda c: np.polyval(np.polyder(c), t), P3)
rows("numpy polyfit", lambda v: np.polyfit(t, v, 2), y)
rows("numpy trapz of a function", lambda p: np.trapezoid(np.exp(-p[0] * t ** 2), t), P3)
rows("numpy fft power", lambda x: np.abs(np.fft.rfft(x - x.mean())) ** 2 / len(x), y)
rows("numpy outer and einsum", lambda v: np.einsum("i,j,ij->", v, v, np.outer(P3, P3)), B3)
rows("numpy cumulative product survival", lambda h: np.cumprod(1 - expit(h)), B3)
rows("numpy ufunc at with groups", lambda w: _groups(w), P3)
rows("numpy meshgrid field", lambda p: np.sum(np.hypot(*np.meshgrid(t * p[0], t * p[1]))), P3)
rows("scipy simpson", lambda p: scipy.integrate.simpson(np.exp(-p[0] * t), x=t), P3)
rows("scipy cumulative trapezoid", lambda p: scipy.integrate.cumulative_trapezoid(p[0] * t, t, initial=0), P3)
rows("scipy pdist", lambda A: pdist(A).sum(), rng.normal(size=(4, 2)))
rows("scipy expm", lambda p: scipy.linalg.expm(np.array([[0, p[0]], [-p[0], -p[1]]])) @ np.array([1.0, 0.0]), P3)
rows("scipy toeplitz covariance", lambda p: np.linalg.slogdet(scipy.linalg.toeplitz(p[0] * np.exp(-np.arange(4) / p[1])))[1], P3)
rows("scipy bessel", lambda p: special.jv(1, p) + special.i0(p) + special.kv(0, p), P3)
rows("scipy beta and gamma functions", lambda p: special.betaln(p[0], p[1]) + special.digamma(p[2]) + special.gammainc(p[0], p[1]), P3)
rows("scipy zscore by hand", lambda x: (x - np.mean(x)) / np.std(x), y)
rows("scipy truncated normal", lambda p: stats.truncnorm.logpdf(y, -2, 2, loc=p[0], scale=p[1]).sum(), P3)
rows("scipy lognormal by shape", lambda p: stats.lognorm.logpdf(np.abs(y) + 0.1, s=p[0], scale=np.exp(p[1])).sum(), P3)
rows("scipy weibull frozen", lambda p: stats.weibull_min(c=p[0], scale=p[1]).logpdf(np.abs(y) + 0.1).sum(), P3)
rows("scipy uniform prior", lambda p: stats.uniform.logpdf(p, loc=0, scale=10).sum() + p.sum(), P3)
rows("scipy priors in a dict", lambda p: sum(prior.logpdf(v) for prior, v in zip(PRIORS.values(), p)), P3)
PRIORS = {"a": stats.norm(0, 1), "b": stats.gamma(2.0, scale=1.5), "c": stats.halfnorm(scale=2.0)}


def _heat(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0], u[-1] = 0.0, u[-2]
    return u


def _groups(w):
    total = np.zeros(3)
    np.add.at(total, group, w[group] * y)
    return total


# --- physics, chemistry, biology, geography, economics ---------------------------------------------

rows("haversine", lambda p: 2 * 6371 * np.arcsin(np.sqrt(np.sin((np.radians(p[2]) - np.radians(p[0])) / 2) ** 2 + np.cos(np.radians(p[0])) * np.cos(np.radians(p[2])) * np.sin(np.radians(p[1]) / 2) ** 2)), np.array([52.2, 3.0, 52.4]))
rows("lennard jones", lambda pos: sum(4 * ((1 / r) ** 12 - (1 / r) ** 6) for i in range(3) for j in range(i) for r in [np.linalg.norm(pos[3 * i:3 * i + 3] - pos[3 * j:3 * j + 3])]), np.array([0.0, 0.1, 0.2, 1.2, 0.1, 0.0, 0.1, 1.3, 0.3]))
rows("michaelis menten", lambda p: np.sum((y - p[0] * t / (p[1] + t)) ** 2), P3)
rows("hill equation", lambda p: p[0] * t ** p[1] / (p[2] ** p[1] + t ** p[1]), P3)
rows("arrhenius", lambda p: p[0] * np.exp(-p[1] * 1e3 / (scipy.constants.R * (300.0 + t))) if hasattr(scipy, "constants") else p[0] * t, P3)
rows("planck", lambda p: p[0] / (np.expm1(1.0 / ((t + 0.5) * p[1]))), P3)
rows("black scholes", lambda p: _call_price(p[0] * 100, 100.0, 0.01, p[1] * 0.2, 1.0), P3)
rows("net present value", lambda r: sum(c / (1 + r) ** k for k, c in enumerate([-100, 60, 60])), 0.05)
rows("cobb douglas", lambda p: np.prod(np.array([2.0, 3.0, 4.0]) ** p), P3)
rows("sir model by euler", lambda p: _sir(p), P3 * 0.3)
rows("lotka volterra by rk4", lambda p: _lotka(p), P3 * 0.4)
rows("kepler by newton", lambda e: _kepler(0.8, e), 0.3)
rows("rotation matrices", lambda a: (_rotation(a[0]) @ _rotation(a[1])) @ np.array([1.0, 0.0]), B3)
rows("quaternion product", lambda q: np.array([q[0] * q[3] - q[1:] @ q[1:], *(q[0] * q[1:] + q[3] * q[1:])]), np.array([0.5, 0.1, 0.2, 0.3]))
rows("felsenstein pruning", lambda p: _pruning(p), P3)
rows("hardy weinberg", lambda p: np.sum(np.array([10, 20, 5]) * np.log([p ** 2, 2 * p * (1 - p), (1 - p) ** 2])), 0.4)
rows("survival with censoring", lambda p: np.sum(np.where(labels, np.log(p[0]) - p[0] * (t + 0.1), -p[0] * (t + 0.1))), P3)
rows("item response", lambda p: np.sum(np.log(expit((2 * labels - 1) * (p[0] - p[1] * np.linspace(-1, 1, 12))))), P3)
rows("spectral line with a doppler shift", lambda p: np.interp(t * (1 + 0.1 * p[0]), t, y), B3)
rows("transit light curve", lambda p: np.where(np.abs(t - 1.0) < 0.3, 1 - 0.01 * p[0] ** 2, 1.0) - y, P3)
rows("reaction network", lambda k: np.array([-k[0] * 2.0, k[0] * 2.0 - k[1], k[1]]) @ np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0]]), P3)
rows("thin lens", lambda p: 1 / (1 / p[0] - 1 / (p[1] + 5)), P3)
rows("gravity potential", lambda m: -np.sum(np.triu(np.outer(m, m) / (pdist_square(P3) + np.eye(3)), 1)), P3)
rows("ising energy", lambda J: -sum(J[i] * s * r for i, (s, r) in enumerate(zip([1, -1, 1], [-1, 1, 1]))), P3)


def pdist_square(x):
    return np.abs(x[:, None] - x[None, :])


def _call_price(S, K, r, sigma, T):
    d1 = (np.log(S / K) + (r + 0.5 * sigma ** 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    N = stats.norm.cdf
    return S * N(d1) - K * np.exp(-r * T) * N(d2)


def _sir(p):
    S, I, R = 0.99, 0.01, 0.0
    trajectory = []
    for _ in range(10):
        new, gone = p[0] * S * I, p[1] * I
        S, I, R = S - new, I + new - gone, R + gone
        trajectory.append((S, I, R))
    return np.array(trajectory)[:, 1]


def _lotka(p):
    a, b, c = p

    def f(state):
        u, v = state
        return np.array([a * u - b * u * v, c * u * v - v])
    state, h = np.array([1.0, 0.5]), 0.05
    for _ in range(5):
        k1 = f(state)
        k2 = f(state + h / 2 * k1)
        k3 = f(state + h / 2 * k2)
        k4 = f(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def _kepler(M, e):
    E = M
    for _ in range(20):
        d = (E - e * math.sin(E) - M) / (1 - e * math.cos(E))
        E -= d
        if abs(d) < 1e-12:
            break
    return E


def _rotation(a):
    c, s = np.cos(a), np.sin(a)
    return np.array([[c, -s], [s, c]])


def _pruning(p):
    Q = np.array([[-p[0], p[0]], [p[1], -p[1]]])
    leaves = {"human": np.array([1.0, 0.0]), "chimp": np.array([0.0, 1.0])}
    partial_ = np.ones(2)
    for name, length in (("human", 0.1), ("chimp", 0.3)):
        partial_ = partial_ * (scipy.linalg.expm(Q * length) @ leaves[name])
    return np.log(np.dot([p[1], p[0]], partial_) / (p[0] + p[1]))
