"""Loops written in Python that become scans, and what became of them."""
from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from jitad.cache.keys.identity import unwrap
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.reroll.reroll import reroll
from jitad.trace.record import record

rng = np.random.default_rng(11)
T = 25
Y = rng.normal(size=T)
Q = np.array([0.3, -0.4, 0.5, 0.2])


def garch_slots(q, y):
    sigma = np.zeros(len(y))
    sigma[0] = 1.0
    for t in range(1, len(y)):
        sigma[t] = np.sqrt(np.exp(q[0]) + q[1] ** 2 * (y[t - 1] - q[2]) ** 2 + 0.4 * sigma[t - 1] ** 2)
    return np.sum(-0.5 * ((y - q[2]) / sigma) ** 2 - np.log(sigma))


def hmm_vectors(q, y):
    moves = np.outer(q, q)
    alpha = -np.log(4.0) * np.ones(4)
    for x in y:
        alpha = logsumexp(alpha[:, None] + moves, axis=0) - 0.5 * (x - q) ** 2
    return logsumexp(alpha)


def kalman(q, y):
    move = np.array([[1.0, 0.1], [0.0, 0.9]])
    m, cov, lp = np.zeros(2), np.eye(2), 0.0
    for t in range(len(y)):
        m, cov = move @ m, move @ cov @ move.T + np.exp(q[0]) * np.eye(2)
        spread = cov + np.exp(q[1]) * np.eye(2)
        rest = np.array([y[t], q[2]]) - m
        gain = np.linalg.solve(spread, cov).T
        lp = lp - 0.5 * rest @ np.linalg.solve(spread, rest) - 0.5 * np.linalg.slogdet(spread)[1]
        m, cov = m + gain @ rest, cov - gain @ cov
    return lp


def slope(z, q):
    return np.array([(q[0] - q[1] * z[1]) * z[0], (q[2] * z[0] - q[3]) * z[1]])


def rk4(q, y):
    z, lp, times = np.exp(q[:2]), 0.0, np.cumsum(np.abs(y[:8]))
    for n in range(1, 8):
        h = (times[n] - times[n - 1]) / 6
        for _ in range(6):
            k1 = slope(z, q)
            k2 = slope(z + 0.5 * h * k1, q)
            k3 = slope(z + 0.5 * h * k2, q)
            z = z + h * (k1 + k2 + k3 + slope(z + h * k3, q)) / 6
        lp = lp + np.sum((y[n] - np.log(np.abs(z))) ** 2)
    return lp


def rolled(f, *args, least=20):
    """The recording, its tape and the tape of its re-rolled form, values and gradients."""
    recording = record(unwrap(f), args)
    builder = recording.builder
    values = reroll(builder, [*recording.argument_inputs, *recording.captured_inputs, *recording.outputs], least)
    tapes = []
    for part in ([*recording.argument_inputs, *recording.captured_inputs, *recording.outputs], values):
        y, x = part[-1], part[0]
        gradient = pullback(part[-1].builder, [y], [one(y)], [x])
        tapes.append(y.builder.finish([y, *gradient]))
    return recording, *tapes


def scans(tape):
    return [n for n in tape.nodes if n.prim.kind == "scan"]
