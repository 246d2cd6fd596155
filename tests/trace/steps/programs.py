"""Loops whose steps go different ways, as people write them."""
from __future__ import annotations

import numpy as np

from benchmarks.models.control import correlations, first_passage, kalman, limited_flow, tank


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
