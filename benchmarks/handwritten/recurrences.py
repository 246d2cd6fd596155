"""Value and gradient of the recurrences of `models`, each as one hand-written numba kernel: forward, then backward.

Each kernel takes ``(theta, *data)`` and returns ``(value, gradient)``.
"""

import numpy as np

from benchmarks.handwritten.lowlevel import loop, piece
from benchmarks.handwritten.vectormath import exp, log

Array = np.ndarray
Result = tuple[float, Array]


@loop
def garch(theta: Array, y: Array) -> Result:
    """Saves the variances, walks back with their cotangent."""
    n = y.shape[0]
    mu, omega, alpha, beta = theta[0], exp(theta[1]), theta[2], theta[3]
    h, inverse = np.empty(n), np.empty(n)
    value, now = 0.0, exp(theta[4])
    for t in range(n):
        h[t] = now
        e = y[t] - mu
        now = omega + alpha * e * e + beta * now
    for t in range(n):
        inverse[t] = 1.0 / h[t]
        e = y[t] - mu
        value -= 0.5 * (log(h[t]) + e * e * inverse[t])
    ct = d_mu = d_omega = d_alpha = d_beta = 0.0
    for t in range(n - 1, -1, -1):
        e, q = y[t] - mu, inverse[t]
        d_omega += ct
        d_alpha += ct * e * e
        d_beta += ct * h[t]
        d_mu += e * (q - 2.0 * ct * alpha)
        ct = ct * beta - 0.5 * q * (1.0 - e * e * q)
    grad = np.empty(5)
    grad[0], grad[1], grad[2], grad[3], grad[4] = d_mu, d_omega * omega, d_alpha, d_beta, ct * h[0]
    return value, grad


@piece
def _logsumexp(a: float, b: float, c: float) -> float:
    top = max(a, b, c)
    return top + log(exp(a - top) + exp(b - top) + exp(c - top))


@loop
def hmm(theta: Array, y: Array) -> Result:
    """The forward algorithm in logarithms; the way back weighs each transition."""
    n = y.shape[0]
    A, mu, scale = np.empty((3, 3)), theta[9:12], exp(theta[12])
    for i in range(3):
        norm = _logsumexp(theta[3 * i], theta[3 * i + 1], theta[3 * i + 2])
        for j in range(3):
            A[i, j] = theta[3 * i + j] - norm
    log_scale, inverse = log(scale), 1.0 / scale
    alpha, moved = np.empty((n, 3)), np.empty((n, 3))
    for t in range(n):
        for j in range(3):
            if t == 0:
                moved[0, j] = -log(3.0)
            else:
                before = alpha[t - 1]
                moved[t, j] = _logsumexp(before[0] + A[0, j], before[1] + A[1, j], before[2] + A[2, j])
            z = (y[t] - mu[j]) * inverse
            alpha[t, j] = moved[t, j] - 0.5 * z * z - log_scale
    value = _logsumexp(alpha[n - 1, 0], alpha[n - 1, 1], alpha[n - 1, 2])
    ct, back, dA, d_mu, d_scale = np.empty(3), np.empty(3), np.zeros((3, 3)), np.zeros(3), 0.0
    for j in range(3):
        ct[j] = exp(alpha[n - 1, j] - value)
    for t in range(n - 1, -1, -1):
        back[:] = 0.0
        for j in range(3):
            z = (y[t] - mu[j]) * inverse
            d_mu[j] += ct[j] * z * inverse
            d_scale += ct[j] * (z * z - 1.0)
            if t:
                for i in range(3):
                    weight = ct[j] * exp(alpha[t - 1, i] + A[i, j] - moved[t, j])
                    dA[i, j] += weight
                    back[i] += weight
        ct[:] = back
    grad = np.empty(13)
    for i in range(3):
        total = dA[i, 0] + dA[i, 1] + dA[i, 2]
        for j in range(3):
            grad[3 * i + j] = dA[i, j] - exp(A[i, j]) * total
        grad[9 + i] = d_mu[i]
    grad[12] = d_scale
    return value, grad


# --- Kalman filter -------------------------------------------------------------------------------

@piece
def _product(a: Array, b: Array, out: Array) -> None:
    """out = a b"""
    for i in range(4):
        for j in range(4):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j] + a[i, 3] * b[3, j]


@piece
def _product_t(a: Array, b: Array, out: Array) -> None:
    """out = a b'"""
    for i in range(4):
        for j in range(4):
            out[i, j] = a[i, 0] * b[j, 0] + a[i, 1] * b[j, 1] + a[i, 2] * b[j, 2] + a[i, 3] * b[j, 3]


@piece
def _t_product(a: Array, b: Array, out: Array) -> None:
    """out = a' b"""
    for i in range(4):
        for j in range(4):
            out[i, j] = a[0, i] * b[0, j] + a[1, i] * b[1, j] + a[2, i] * b[2, j] + a[3, i] * b[3, j]


@piece
def _inverse(s: Array, work: Array, out: Array) -> float:
    """out = the inverse of a positive definite matrix, by its Cholesky factor; the logarithm of its determinant."""
    determinant = 1.0
    for j in range(4):
        d = s[j, j]
        for k in range(j):
            d -= work[j, k] * work[j, k]
        determinant *= d
        q = 1.0 / np.sqrt(d)
        work[j, j] = q                                   # the diagonal of the inverse factor
        for i in range(j + 1, 4):
            c = s[i, j]
            for k in range(j):
                c -= work[i, k] * work[j, k]
            work[i, j] = c * q
    for j in range(4):                                   # invert the factor, in the upper triangle of `out`
        out[j, j] = work[j, j]
        for i in range(j + 1, 4):
            c = 0.0
            for k in range(j, i):
                c -= work[i, k] * out[j, k]
            out[j, i] = c * work[i, i]
    for i in range(4):
        for j in range(i, 4):
            c = 0.0
            for k in range(j, 4):
                c += out[i, k] * out[j, k]
            work[j, i] = c
    for i in range(4):
        for j in range(i, 4):
            out[i, j] = out[j, i] = work[j, i]
    return log(determinant)


@loop
def kalman(theta: Array, F0: Array, H: Array, y: Array) -> Result:
    """Saves predicted means and covariances, the inverses and the residuals; symmetric matrices stay symmetric."""
    n = y.shape[0]
    F, q, r = np.empty((4, 4)), np.empty(4), np.empty(4)
    for i in range(4):
        q[i], r[i] = exp(theta[i]), exp(theta[4 + i])
        for j in range(4):
            F[i, j] = theta[8] * F0[i, j]
    ms, Ps, Si, Us = np.zeros((n + 1, 4)), np.zeros((n + 1, 4, 4)), np.empty((n, 4, 4)), np.empty((n, 4))
    Pp, v, mp = np.empty((n, 4, 4)), np.empty(4), np.empty(4)
    A, B, C = np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4))
    value = 0.0
    for i in range(4):
        Ps[0, i, i] = 1.0
    for t in range(n):
        _product(F, Ps[t], A)
        _product_t(A, F, Pp[t])
        for i in range(4):
            Pp[t, i, i] += q[i]
            mp[i] = F[i, 0] * ms[t, 0] + F[i, 1] * ms[t, 1] + F[i, 2] * ms[t, 2] + F[i, 3] * ms[t, 3]
        _product_t(Pp[t], H, A)
        _product(H, A, B)
        for i in range(4):
            B[i, i] += r[i]
            v[i] = y[t, i] - (H[i, 0] * mp[0] + H[i, 1] * mp[1] + H[i, 2] * mp[2] + H[i, 3] * mp[3])
        logdet = _inverse(B, C, Si[t])
        quadratic = 0.0
        for i in range(4):
            Us[t, i] = Si[t, i, 0] * v[0] + Si[t, i, 1] * v[1] + Si[t, i, 2] * v[2] + Si[t, i, 3] * v[3]
            quadratic += Us[t, i] * v[i]
        value -= 0.5 * (logdet + quadratic)
        _product(A, Si[t], B)
        _product_t(B, A, C)
        for i in range(4):
            ms[t + 1, i] = mp[i] + A[i, 0] * Us[t, 0] + A[i, 1] * Us[t, 1] + A[i, 2] * Us[t, 2] + A[i, 3] * Us[t, 3]
            for j in range(4):
                Ps[t + 1, i, j] = Pp[t, i, j] - C[i, j]
    return value, _kalman_back(F, F0, H, q, r, ms, Ps, Pp, Si, Us)


@loop
def _kalman_back(F: Array, F0: Array, H: Array, q: Array, r: Array, ms: Array, Ps: Array, Pp: Array, Si: Array,
                 Us: Array) -> Array:
    """The gradient from what was saved; gm and gP are the cotangents of mean and covariance."""
    n, grad = Si.shape[0], np.zeros(9)
    gm, gP, gS, gF = np.zeros(4), np.zeros((4, 4)), np.empty((4, 4)), np.zeros((4, 4))
    A, B, C, gu, gv, gmp = np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4)), np.empty(4), np.empty(4), np.empty(4)
    for t in range(n - 1, -1, -1):
        _product_t(Pp[t], H, A)
        for i in range(4):
            gu[i] = A[0, i] * gm[0] + A[1, i] * gm[1] + A[2, i] * gm[2] + A[3, i] * gm[3]
        for i in range(4):
            gv[i] = Si[t, i, 0] * gu[0] + Si[t, i, 1] * gu[1] + Si[t, i, 2] * gu[2] + Si[t, i, 3] * gu[3]
        _product(A, Si[t], B)
        _product(gP, B, C)
        _t_product(B, C, gS)
        for i in range(4):
            for j in range(4):
                gS[i, j] += 0.5 * (Us[t, i] * Us[t, j] - Si[t, i, j] - gv[i] * Us[t, j] - gv[j] * Us[t, i])
                C[i, j] = gm[i] * Us[t, j] - 2.0 * C[i, j]                # the cotangent of A
        _product(C, H, B)
        for i in range(4):
            for j in range(4):
                gP[i, j] += 0.5 * (B[i, j] + B[j, i])
        _product(gS, H, B)
        _t_product(H, B, C)
        for i in range(4):
            grad[4 + i] += gS[i, i] * r[i]
            gv[i] -= Us[t, i]
            for j in range(4):
                gP[i, j] += C[i, j]
        for i in range(4):
            grad[i] += gP[i, i] * q[i]
            gmp[i] = gm[i] - (H[0, i] * gv[0] + H[1, i] * gv[1] + H[2, i] * gv[2] + H[3, i] * gv[3])
        _product(gP, F, B)
        _product(B, Ps[t], C)
        _t_product(F, B, gP)
        for i in range(4):
            gm[i] = F[0, i] * gmp[0] + F[1, i] * gmp[1] + F[2, i] * gmp[2] + F[3, i] * gmp[3]
            for j in range(4):
                gF[i, j] += 2.0 * C[i, j] + gmp[i] * ms[t, j]
    for i in range(4):
        for j in range(4):
            grad[8] += gF[i, j] * F0[i, j]
    return grad
