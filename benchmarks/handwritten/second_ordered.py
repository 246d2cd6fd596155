"""Value and gradient of models of the second set whose elements are in an order: cuts, splines, series."""

import numpy as np

from benchmarks.handwritten.lowlevel import loop, widen
from benchmarks.handwritten.vectormath import exp, log

Array = np.ndarray
Result = tuple[float, Array]


@loop
def ordinal(theta: Array, X: Array, y: Array) -> Result:
    """Both edges of an answer from a table of six; their cotangents are summed by edge."""
    edges, by_edge, gaps = np.empty(6), np.zeros(6), np.empty(3)
    edges[0], edges[1], edges[5] = -700.0, theta[0], 700.0
    for k in range(3):
        gaps[k] = exp(theta[1 + k])
        edges[2 + k] = edges[1 + k] + gaps[k]
    value = s0 = s1 = s2 = s3 = 0.0
    for i in range(y.shape[0]):
        eta = X[i, 0] * theta[4] + X[i, 1] * theta[5] + X[i, 2] * theta[6] + X[i, 3] * theta[7]
        k = np.uint64(y[i])
        upper, lower = 1.0 / (1.0 + exp(eta - edges[k + 1])), 1.0 / (1.0 + exp(eta - edges[k]))
        p = upper - lower
        value += log(p)
        inverse = 1.0 / p
        up, down = upper * (1.0 - upper) * inverse, lower * (1.0 - lower) * inverse
        by_edge[k + 1] += up
        by_edge[k] -= down
        r = down - up
        s0 += r * X[i, 0]
        s1 += r * X[i, 1]
        s2 += r * X[i, 2]
        s3 += r * X[i, 3]
    grad = np.empty(8)
    total = 0.0
    for k in range(2, -1, -1):
        total += by_edge[2 + k]
        grad[1 + k] = total * gaps[k] + 1.0
        value += theta[1 + k]
    grad[0], grad[4], grad[5], grad[6], grad[7] = total + by_edge[1], s0, s1, s2, s3
    for k in range(8):
        value -= 0.5 * theta[k] * theta[k]
        grad[k] -= theta[k]
    return value, grad


@loop
def spline(theta: Array, B: Array, y: Array) -> Result:
    """One pass over the rows: a dot, a residual, the row back into the gradient."""
    widen()
    n, m = B.shape
    c, log_tau, log_sd = theta[:m], theta[m], theta[m + 1]
    grad = np.zeros(m + 2)
    squares = 0.0
    for i in range(n):
        row, dot = B[i], 0.0
        for k in range(m):
            dot += row[k] * c[k]
        r = y[i] - dot
        squares += r * r
        for k in range(m):
            grad[k] += r * row[k]
    precision, smooth, rough = np.exp(-2.0 * log_sd), np.exp(-2.0 * log_tau), 0.0
    for k in range(m):
        grad[k] *= precision
    for k in range(m - 2):
        d = c[k] - 2.0 * c[k + 1] + c[k + 2]
        rough += d * d
        grad[k] -= d * smooth
        grad[k + 1] += 2.0 * d * smooth
        grad[k + 2] -= d * smooth
    grad[0] -= 0.01 * c[0]
    grad[1] -= 0.01 * c[1]
    grad[m] = rough * smooth - (m - 2) - log_tau
    grad[m + 1] = squares * precision - n - log_sd
    value = -0.5 * (squares * precision + rough * smooth) - n * log_sd - (m - 2) * log_tau
    return value - 0.005 * (c[0] ** 2 + c[1] ** 2) - 0.5 * (log_tau**2 + log_sd**2), grad


@loop
def trend(theta: Array, y: Array) -> Result:
    """The filter keeps four numbers of each step; the way back reads them."""
    n = y.shape[0]
    H, Q1, Q2 = exp(theta[0]), exp(theta[1]), exp(theta[2])
    kept = np.empty((n, 4))
    a, b, p11, p12, p22, value = y[0], 0.0, 10.0, 0.0, 1.0, 0.0
    for t in range(n):
        inverse = 1.0 / (p11 + H)
        v = y[t] - a
        kept[t, 0], kept[t, 1], kept[t, 2], kept[t, 3] = v, inverse, p11, p12
        value += v * v * inverse
        k1, k2 = p11 * inverse, p12 * inverse
        b += k2 * v
        a += k1 * v + b
        p11, p12, p22 = p11 - k1 * p11, p12 - k1 * p12, p22 - k2 * p12
        p11, p12, p22 = p11 + 2.0 * p12 + p22 + Q1, p12 + p22, p22 + Q2
    for t in range(n):
        value -= log(kept[t, 1])
    ga = gb = g11 = g12 = g22 = dH = dQ1 = dQ2 = 0.0
    for t in range(n - 1, -1, -1):
        v, inverse, p11, p12 = kept[t, 0], kept[t, 1], kept[t, 2], kept[t, 3]
        k1, k2 = p11 * inverse, p12 * inverse
        dQ1 += g11
        dQ2 += g22
        gb += ga
        g22 += g11 + g12
        g12 += 2.0 * g11
        gk2, gk1 = gb * v - g22 * p12, ga * v - g12 * p12 - g11 * p11
        gv = gb * k2 + ga * k1 - v * inverse
        gF = -(gk2 * k2 + gk1 * k1 + 0.5 - 0.5 * v * v * inverse) * inverse
        g12 = g12 * (1.0 - k1) - g22 * k2 + gk2 * inverse
        g11 = g11 * (1.0 - k1) + gk1 * inverse + gF
        ga -= gv
        dH += gF
    grad = np.empty(3)
    grad[0], grad[1], grad[2] = dH * H - theta[0] / 9, dQ1 * Q1 - theta[1] / 9, dQ2 * Q2 - theta[2] / 9
    return -0.5 * value - (theta[0] ** 2 + theta[1] ** 2 + theta[2] ** 2) / 18, grad


@loop
def renewal(theta: Array, interval: Array, y: Array) -> Result:
    """Forward with the walk; back with the cotangents of the last days."""
    n, past = y.shape[0], interval.shape[0]
    seed, sd = exp(theta[0]), exp(theta[n + 1])
    infections, ct, R = np.empty(past + n), np.zeros(past + n), np.empty(n)
    walk, value = 0.0, 0.0
    for t in range(past):
        infections[t] = seed
    for t in range(n):
        walk += sd * theta[1 + t]
        R[t] = walk
        value -= 0.5 * theta[1 + t] * theta[1 + t]
    for t in range(n):
        R[t] = exp(R[t])
    for t in range(n):
        total = 0.0
        for k in range(past):
            total += interval[k] * infections[t + k]
        infections[past + t] = R[t] * total
    for t in range(n):
        mean = infections[past + t]
        value += y[t] * log(mean) - mean
        ct[past + t] = y[t] / mean - 1.0
    grad = np.empty(n + 2)
    total = by_sd = by_seed = 0.0
    for t in range(n - 1, -1, -1):
        here = ct[past + t]
        total += here * infections[past + t]
        grad[1 + t] = sd * total - theta[1 + t]
        by_sd += total * theta[1 + t]
        here *= R[t]
        for k in range(past):
            ct[t + k] += here * interval[k]
    for t in range(past):
        by_seed += ct[t]
    grad[0], grad[n + 1] = by_seed * seed - (theta[0] - 2.0), by_sd * sd - 10.0 * sd
    return value - 0.5 * (theta[0] - 2.0) ** 2 - 10.0 * sd, grad
