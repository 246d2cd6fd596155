"""Value and gradient of every model as one hand-written numba kernel: the yardstick for the generated code.

Each kernel takes ``(theta, *data)`` and returns ``(value, gradient)``. They are compiled on their first call.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray
from numba.extending import get_cython_function_address

from benchmarks.handwritten.lowlevel import BUFFER, loop, piece, stack_buffer, widen
from benchmarks.handwritten.vectormath import exp, lgamma_from_one, log, softplus_and_expit

Array = np.ndarray
Result = tuple[float, Array]


def _lapack(name: str, arguments: int) -> Callable[..., Any]:
    """A LAPACK routine from SciPy as a function of that many addresses."""
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


_dpotrf = _lapack("dpotrf", 5)
_dpotri = _lapack("dpotri", 5)
_dpotrs = _lapack("dpotrs", 8)


@loop
def logistic_1d(theta: Array, x: Array, y: Array) -> Result:
    """One pass."""
    widen()
    intercept, slope = theta[0], theta[1]
    value = grad_0 = grad_1 = 0.0
    for i in range(x.shape[0]):
        eta = intercept + slope * x[i]
        softplus, p = softplus_and_expit(eta)
        residual = y[i] - p
        value += y[i] * eta - softplus
        grad_0 += residual
        grad_1 += residual * x[i]
    grad = np.empty(2)
    grad[0] = grad_0
    grad[1] = grad_1
    return value, grad


@loop
def _logistic_residuals(eta: Array, y: Array) -> float:
    """The log likelihood of a block; eta becomes y - p."""
    widen()
    value = 0.0
    for i in range(y.shape[0]):
        softplus, p = softplus_and_expit(eta[i])
        value += y[i] * eta[i] - softplus
        eta[i] = y[i] - p
    return value


@loop
def glm(theta: Array, X: Array, y: Array) -> Result:
    """Walks X once in blocks that stay in the first-level cache: dots, elementwise, transposed accumulation."""
    widen()
    n, d = X.shape
    grad = np.empty(d)
    value = 0.0
    for j in range(d):
        grad[j] = -theta[j]
        value -= 0.5 * theta[j] * theta[j]
    block = 32
    eta = carray(stack_buffer(), (BUFFER,))
    for start in range(0, n, block):
        rows = X[start : min(start + block, n)]
        quads = rows.shape[0] // 4
        for q in range(quads):
            i = 4 * q
            s0 = s1 = s2 = s3 = 0.0
            for j in range(d):
                s0 += rows[i, j] * theta[j]
                s1 += rows[i + 1, j] * theta[j]
                s2 += rows[i + 2, j] * theta[j]
                s3 += rows[i + 3, j] * theta[j]
            eta[i], eta[i + 1], eta[i + 2], eta[i + 3] = s0, s1, s2, s3
        for i in range(4 * quads, rows.shape[0]):
            s0 = 0.0
            for j in range(d):
                s0 += rows[i, j] * theta[j]
            eta[i] = s0
        value += _logistic_residuals(eta, y[start : start + rows.shape[0]])
        for q in range(quads):
            i = 4 * q
            r0, r1, r2, r3 = eta[i], eta[i + 1], eta[i + 2], eta[i + 3]
            for j in range(d):
                grad[j] += (r0 * rows[i, j] + r1 * rows[i + 1, j]) + (r2 * rows[i + 2, j] + r3 * rows[i + 3, j])
        for i in range(4 * quads, rows.shape[0]):
            for j in range(d):
                grad[j] += eta[i] * rows[i, j]
    return value, grad


@loop
def thin_logistic(theta: Array, X: Array, y: Array) -> Result:
    """Six columns, in blocks: a dot per row, elementwise, four rows at a time back into 24 accumulators."""
    widen()
    n = X.shape[0]
    flat = X.reshape(-1)
    sums = np.zeros(24)
    eta = carray(stack_buffer(), (BUFFER,))
    value = 0.0
    block = 128
    for start in range(0, n, block):
        count = min(block, n - start)
        rows = flat[6 * start : 6 * (start + count)]
        for i in range(count):
            s = 0.0
            for j in range(6):
                s += rows[6 * i + j] * theta[j]
            eta[i] = s
        value += _logistic_residuals(eta, y[start : start + count])
        for q in range(count // 4):
            for k in range(24):
                sums[k] += eta[4 * q + k // 6] * rows[24 * q + k]
        for i in range(count - count % 4, count):
            for j in range(6):
                sums[j] += eta[i] * rows[6 * i + j]
    grad = np.empty(6)
    for j in range(6):
        value -= 0.5 * theta[j] * theta[j]
        grad[j] = (sums[j] + sums[j + 6]) + (sums[j + 12] + sums[j + 18]) - theta[j]
    return value, grad


@piece
def _scatter_add(out: Array, group: Array, values: Array) -> None:
    """out[group] += values, repeated groups included."""
    for i in range(group.shape[0]):
        out[np.uint64(group[i])] += values[i]


@loop
def varying_intercepts(theta: Array, group: Array, x: Array, y: Array) -> Result:
    """Per block, a vectorised pass with the gather and a scalar one that scatters its residuals."""
    widen()
    groups, n = theta.shape[0] - 4, y.shape[0]
    slope, mean = theta[groups], theta[groups + 1]
    sd_group, sd = np.exp(theta[groups + 2]), np.exp(theta[groups + 3])
    grad = np.zeros(groups + 4)
    residual = carray(stack_buffer(), (BUFFER,))
    squares = cross = 0.0
    for start in range(0, n, BUFFER):
        end = min(start + BUFFER, n)
        group_here, x_here, y_here = group[start:end], x[start:end], y[start:end]
        for i in range(end - start):
            r = y_here[i] - (mean + sd_group * theta[np.uint64(group_here[i])]) - slope * x_here[i]
            squares += r * r
            cross += r * x_here[i]
            residual[i] = r
        _scatter_add(grad, group_here, residual)
    precision = 1.0 / (sd * sd)
    total = weighted = norm = 0.0
    for g in range(groups):
        s = grad[g] * precision
        total += s
        weighted += s * theta[g]
        norm += theta[g] * theta[g]
        grad[g] = sd_group * s - theta[g]
    grad[groups] = cross * precision - slope / 100
    grad[groups + 1] = total - mean / 100
    grad[groups + 2] = 1.0 - sd_group * sd_group + sd_group * weighted
    grad[groups + 3] = 1.0 - sd * sd + squares * precision - n
    prior = -0.5 * (sd_group * sd_group + sd * sd + norm) - 0.005 * (mean * mean + slope * slope)
    return prior + theta[groups + 2] + (1 - n) * theta[groups + 3] - 0.5 * squares * precision, grad


@loop
def eight_schools(theta: Array, y: Array, sigma: Array) -> Result:
    """One pass."""
    n = y.shape[0]
    mu, tau = theta[n], np.exp(theta[n + 1])
    grad = np.empty(n + 2)
    value = total = weighted = 0.0
    for j in range(n):
        z = theta[j]
        inverse = 1.0 / sigma[j]
        r = (y[j] - mu - tau * z) * inverse
        value -= 0.5 * (z * z + r * r) + log(sigma[j])
        r *= inverse
        total += r
        weighted += r * z
        grad[j] = tau * r - z
    ratio = tau * tau / 25
    grad[n] = total - mu / 25
    grad[n + 1] = 1.0 - 2.0 * ratio / (1.0 + ratio) + tau * weighted
    return value - mu * mu / 50 - np.log1p(ratio) + theta[n + 1], grad


@loop
def _covariance(x: Array, S: Array, K: Array, scale: float, variance: float, noise: float) -> None:
    """Lower triangles of the kernel matrix without (S) and with (K) the noise."""
    widen()
    for i in range(x.shape[0]):
        row, noisy_row, at = S[i], K[i], x[i]
        for j in range(i + 1):
            d = (at - x[j]) * scale
            row[j] = variance * exp(-0.5 * (d * d))
        for j in range(i + 1):
            noisy_row[j] = row[j]
        noisy_row[i] += noise


@loop
def _traces(x: Array, S: Array, inverse: Array, a: Array, scale: float) -> tuple[float, float, float]:
    """tr(W dK) for the three parameters, W = a a' - inverse, from the lower triangles."""
    widen()
    by_rho = by_alpha = diagonal = trace = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            d = (x[i] - x[j]) * scale
            w = (a[i] * a[j] - inverse[i, j]) * S[i, j]
            by_alpha += w
            by_rho += w * (d * d)
        w = a[i] * a[i] - inverse[i, i]
        diagonal += w * S[i, i]
        trace += w
    return 2.0 * by_rho, 2.0 * (2.0 * by_alpha + diagonal), 2.0 * trace


@loop
def gp(theta: Array, x: Array, y: Array) -> Result:
    """Cholesky factor and inverse by LAPACK; gradient 0.5 tr((a a' - K^-1) dK) with a = K^-1 y."""
    n = x.shape[0]
    scale, variance, noise = np.exp(-theta[0]), np.exp(2.0 * theta[1]), np.exp(2.0 * theta[2])
    S, K = np.empty((n, n)), np.empty((n, n))
    _covariance(x, S, K, scale, variance, noise)
    upper = np.array([85], np.uint8)  # "U": the lower triangle of a C array is the upper one of LAPACK's
    sizes = np.array([n, 1, 0], np.int32)
    size, one, info = sizes.ctypes.data, sizes[1:].ctypes.data, sizes[2:].ctypes.data
    _dpotrf(upper.ctypes.data, size, K.ctypes.data, size, info)
    a = y.copy()
    _dpotrs(upper.ctypes.data, size, one, K.ctypes.data, size, a.ctypes.data, size, info)
    value = 0.0
    for i in range(n):
        value -= 0.5 * (y[i] * a[i]) + np.log(K[i, i])
    _dpotri(upper.ctypes.data, size, K.ctypes.data, size, info)
    by_rho, by_alpha, trace = _traces(x, S, K, a, scale)
    grad = np.empty(3)
    grad[0] = 0.5 * by_rho - theta[0]
    grad[1] = 0.5 * by_alpha - theta[1]
    grad[2] = 0.5 * noise * trace - theta[2]
    return value - 0.5 * (theta[0] ** 2 + theta[1] ** 2 + theta[2] ** 2), grad


@loop
def poisson_glmm(theta: Array, group: Array, x: Array, y: Array) -> Result:
    """As varying_intercepts."""
    widen()
    groups, n = theta.shape[0] - 3, y.shape[0]
    intercept, slope, sd = theta[groups], theta[groups + 1], np.exp(theta[groups + 2])
    grad = np.zeros(groups + 3)
    residual = carray(stack_buffer(), (BUFFER,))
    value = cross = 0.0
    for start in range(0, n, BUFFER):
        end = min(start + BUFFER, n)
        group_here, x_here, y_here = group[start:end], x[start:end], y[start:end]
        for i in range(end - start):
            eta = intercept + slope * x_here[i] + sd * theta[np.uint64(group_here[i])]
            rate = exp(eta)
            r = y_here[i] - rate
            value += y_here[i] * eta - rate - lgamma_from_one(y_here[i] + 1.0)
            cross += r * x_here[i]
            residual[i] = r
        _scatter_add(grad, group_here, residual)
    total = weighted = norm = 0.0
    for g in range(groups):
        total += grad[g]
        weighted += grad[g] * theta[g]
        norm += theta[g] * theta[g]
        grad[g] = sd * grad[g] - theta[g]
    grad[groups] = total - intercept / 25
    grad[groups + 1] = cross - slope / 25
    grad[groups + 2] = 1.0 - sd * sd + sd * weighted
    return value - 0.5 * (norm + sd * sd) - 0.02 * (intercept**2 + slope**2) + theta[groups + 2], grad


@loop
def gauss_mixture(theta: Array, y: Array) -> Result:
    """One pass; the responsibilities come from the exponential that the log density needs anyway."""
    widen()
    mu_1, gap = theta[0], np.exp(theta[1])
    mu_2 = mu_1 + gap
    scale_1, scale_2 = np.exp(-theta[2]), np.exp(-theta[3])
    weight = 1.0 / (1.0 + np.exp(-theta[4]))
    level_1, level_2 = np.log(weight) - theta[2], np.log1p(-weight) - theta[3]
    value = share = a1 = a2 = b1 = b2 = 0.0
    for i in range(y.shape[0]):
        u, v = (y[i] - mu_1) * scale_1, (y[i] - mu_2) * scale_2
        b = level_2 - 0.5 * (v * v)
        softplus, w = softplus_and_expit(level_1 - 0.5 * (u * u) - b)
        value += b + softplus
        share += w
        wu, wv = w * u, v - w * v
        a1 += wu
        a2 += wu * u
        b1 += wv
        b2 += wv * v
    n = y.shape[0]
    grad = np.empty(5)
    grad[0] = a1 * scale_1 + b1 * scale_2 - theta[0]
    grad[1] = b1 * scale_2 * gap - theta[1]
    grad[2] = a2 - share - theta[2]
    grad[3] = b2 - (n - share) - theta[3]
    grad[4] = share - n * weight - theta[4]
    norm = theta[0] ** 2 + theta[1] ** 2 + theta[2] ** 2 + theta[3] ** 2 + theta[4] ** 2
    return value - 0.5 * norm, grad


@loop
def linear_regression(theta: Array, score: Array, school: Array, iq: Array) -> Result:
    """One pass."""
    widen()
    b0, b1, b2, b3, log_sd = theta[0], theta[1], theta[2], theta[3], theta[4]
    s0 = s1 = s2 = s3 = squares = 0.0
    for i in range(score.shape[0]):
        product = school[i] * iq[i]
        r = score[i] - (b0 + b1 * school[i] + b2 * iq[i] + b3 * product)
        s0 += r
        s1 += r * school[i]
        s2 += r * iq[i]
        s3 += r * product
        squares += r * r
    variance = np.exp(2.0 * log_sd)
    precision = 1.0 / variance
    ratio = variance / 6.25
    n = score.shape[0]
    grad = np.empty(5)
    grad[0] = s0 * precision
    grad[1] = s1 * precision
    grad[2] = s2 * precision
    grad[3] = s3 * precision
    grad[4] = 1.0 - 2.0 * ratio / (1.0 + ratio) + squares * precision - n
    return log_sd - np.log1p(ratio) - 0.5 * squares * precision - n * log_sd, grad
