"""Loops whose steps go different ways, as people write them."""
from __future__ import annotations

import numpy as np


def tank(p, rain):
    s, total = 1.0, 0.0
    for r in rain:
        s = s + r - p[2] * s
        if s < 0:
            s = 0.0
        q = p[0] * (s - p[1]) if s > p[1] else 0.0
        s = s - q
        total = total + (q - 0.3) ** 2
    return total


def tank_in_arrays(p, rain):
    s, q, stages = 1.0, np.zeros(len(rain)), []
    for t in range(len(rain)):
        s = max(s + rain[t] - p[2] * s, 0.0)
        if s > p[1]:
            q[t] = p[0] * (s - p[1])
        s -= q[t]
        stages.append(s)
    return np.sum((q - 0.3) ** 2) + np.sum(np.array(stages)[::2])


def threshold_process(p, e):
    x = np.zeros(len(e))
    x[0] = p[0]
    for t in range(1, len(e)):
        x[t] = p[1] * x[t - 1] + e[t] if x[t - 1] > 0 else p[2] * x[t - 1] + e[t]
    return np.sum(x**2)


def kalman(p, y):
    m, P, ll = np.zeros(2), np.eye(2), 0.0
    A, H = np.array([[p[0], 0.1], [0.0, 0.9]]), np.eye(2)
    for t in range(len(y)):
        m = A @ m
        P = A @ P @ A.T + p[1] * np.eye(2)
        if np.isnan(y[t, 0]):
            continue
        S = H @ P @ H.T + p[2] * np.eye(2)
        Si = np.linalg.inv(S)
        e = y[t] - H @ m
        K = P @ H.T @ Si
        m = m + K @ e
        P = P - K @ H @ P
        ll += -0.5 * (e @ Si @ e + np.log(np.linalg.det(S)))
    return ll


def correlations(p, y):
    Q, ll = np.eye(y.shape[1]), 0.0
    for t in range(1, len(y)):
        Q = (1 - p[0] - p[1]) * np.eye(y.shape[1]) + p[0] * np.outer(y[t - 1], y[t - 1]) + p[1] * Q
        sign, logdet = np.linalg.slogdet(Q)
        if sign <= 0:
            return -np.inf
        ll += -0.5 * (logdet + y[t] @ np.linalg.inv(Q) @ y[t])
    return ll


def adaptive(p, end):
    t, y, h, total = 0.0, 1.0, 0.1, 0.0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = -p[0] * y + np.sin(p[1] * t)
        k2 = -p[0] * (y + h * k1) + np.sin(p[1] * (t + h))
        err = abs(h * (k2 - k1) / 2)
        if err < 1e-3:
            t, y = t + h, y + h * (k1 + k2) / 2
            total = total + h * y * y
        h = h * min(max(0.9 * (1e-3 / (err + 1e-12)) ** 0.5, 0.3), 2.0)
    return total


def first_passage(p, x):
    s = 0.0
    for i, u in enumerate(x):
        s = s + p[0] * u
        if s > p[1]:
            return s**3 + i
        if s < -p[2]:
            break
    else:
        return 2.0 * s
    return s * s


def limited_flow(p, z):
    u, total = np.zeros(8) + p[0], 0.0
    for t in range(len(z)):
        v = u.copy()
        for i in range(1, 7):
            f = u[i + 1] - u[i]
            if f > 0:
                v[i] = u[i] + p[1] * f + z[t]
            else:
                v[i] = u[i] + p[2] * f - z[t] * 0.5
        u = v
        total += u @ u
    return total


def _rng():
    return np.random.default_rng(2)


def _holes():
    y = _rng().normal(size=(20, 2))
    y[_rng().random(20) < 0.3] = np.nan
    return y


P = np.array([0.3, 1.2, 0.1])
RAIN = _rng().exponential(1.0, 60) * (np.random.default_rng(3).random(60) < 0.3) - 0.1
Z = _rng().normal(size=60)
CASES = [(tank, P, RAIN), (tank_in_arrays, P, RAIN), (threshold_process, np.array([1.0, 0.5, -0.8]), Z),
         (kalman, np.array([0.8, 0.5, 0.3]), _holes()), (correlations, np.array([0.1, 0.5]), Z.reshape(30, 2)),
         (adaptive, np.array([3.0, 2.0]), 2.0), (first_passage, np.array([1.0, 4.0, 1.0]), Z[:30]),
         (limited_flow, P, Z[:10])]
