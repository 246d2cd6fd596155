"""Value and gradient of some programs of `models.control`: forward with what the way back needs, then backward.

Each kernel takes ``(theta, *data)`` and returns ``(value, gradient)``, and has the name of its program.
"""

import numpy as np

from benchmarks.handwritten.lowlevel import loop
from benchmarks.handwritten.vectormath import exp

Array = np.ndarray
Result = tuple[float, Array]


@loop
def tank(p: Array, rain: Array) -> Result:
    """Two flags a day, and what was in the store before it flowed."""
    n = rain.shape[0]
    before, held, dry = np.empty(n), np.empty(n), np.empty(n, np.bool_)
    s, value = 1.0, 0.0
    for t in range(n):
        before[t] = s
        s = s + rain[t] - p[2] * s
        dry[t] = s < 0
        if dry[t]:
            s = 0.0
        held[t] = s
        q = p[0] * (s - p[1]) if s > p[1] else 0.0
        s -= q
        value += (q - 0.3) ** 2
    grad, ct = np.zeros(3), 0.0
    for t in range(n - 1, -1, -1):
        s = held[t]
        if s > p[1]:
            q_ct = 2.0 * (p[0] * (s - p[1]) - 0.3) - ct
            grad[0] += q_ct * (s - p[1])
            grad[1] -= q_ct * p[0]
            ct += q_ct * p[0]
        if dry[t]:
            ct = 0.0
        grad[2] -= ct * before[t]
        ct *= 1.0 - p[2]
    return value, grad


@loop
def threshold(p: Array, e: Array) -> Result:
    """The states say which way was taken."""
    n = e.shape[0]
    x, value = np.empty(n + 1), 0.0
    x[0] = p[0]
    for t in range(n):
        x[t + 1] = (p[1] if x[t] > 0 else p[2]) * x[t] + e[t]
        value += x[t + 1] ** 2
    grad, ct = np.zeros(3), 0.0
    for t in range(n - 1, -1, -1):
        ct += 2.0 * x[t + 1]
        if x[t] > 0:
            grad[1] += ct * x[t]
            ct *= p[1]
        else:
            grad[2] += ct * x[t]
            ct *= p[2]
    grad[0] = ct
    return value, grad


@loop
def neuron(p: Array, current: Array) -> Result:
    """The potential before it is reset."""
    n = current.shape[0]
    potential, value, v = np.empty(n), 0.0, 0.0
    for t in range(n):
        v = v + 0.1 * (p[0] * current[t] - v)
        potential[t] = v
        if v > p[1]:
            value += (v - p[1]) * p[2]
            v = 0.0
        value += 0.01 * v * v
    grad, ct = np.zeros(3), 0.0
    for t in range(n - 1, -1, -1):
        v = potential[t]
        if v > p[1]:
            grad[2] += v - p[1]
            grad[1] -= p[2]
            ct = p[2]
        else:
            ct += 0.02 * v
        grad[0] += ct * 0.1 * current[t]
        ct *= 0.9
    return value, grad


@loop
def burn_in(p: Array, y: Array) -> Result:
    """Two loops each way."""
    n = y.shape[0]
    m, value = np.empty(n + 1), 0.0
    m[0] = p[0]
    for t in range(n):
        m[t + 1] = p[1] * m[t] + p[2] * y[t]
    for t in range(n // 4, n):
        value += (y[t] - m[t + 1]) ** 2
    grad, ct = np.zeros(3), 0.0
    for t in range(n - 1, -1, -1):
        if t >= n // 4:
            ct -= 2.0 * (y[t] - m[t + 1])
        grad[1] += ct * m[t]
        grad[2] += ct * y[t]
        ct *= p[1]
    grad[0] = ct
    return value, grad


@loop
def pairs(q: Array, x: Array) -> Result:
    """Value and derivative in one loop."""
    value, slope = 0.0, 0.0
    for t in range(x.shape[0] - 1):
        rest, here = x[t + 1:], x[t]
        for j in range(rest.shape[0]):
            distance = abs(rest[j] - here)
            term = exp(-q[0] * distance)
            value += term
            slope -= distance * term
    grad = np.empty(1)
    grad[0] = slope
    return value, grad


@loop
def renewal(q: Array, w: Array) -> Result:
    """A dot product a step, and on the way back a multiple of the weights."""
    n = w.shape[0]
    out, high = np.zeros(n), np.empty(n)
    turned = w[::-1].copy()
    out[0] = q[0]
    for t in range(1, n):
        total, weights = 0.0, turned[n - t:]
        for j in range(t):
            total += out[j] * weights[j]
        high[t] = np.tanh(total)
        out[t] = q[1] * high[t]
    cts, grad = np.ones(n), np.zeros(2)
    for t in range(n - 1, 0, -1):
        grad[1] += cts[t] * high[t]
        inner, weights = cts[t] * q[1] * (1.0 - high[t] ** 2), turned[n - t:]
        for j in range(t):
            cts[j] += inner * weights[j]
    grad[0] = cts[0]
    return np.sum(out), grad


@loop
def adaptive(p: Array, end: float) -> Result:
    """What each try was begun with, in arrays that grow; the step sizes depend on the parameters too."""
    most = 64
    kept = np.empty((most, 5))
    t, y, h, value, n = 0.0, 1.0, 0.1, 0.0, 0
    while t < end:
        if n == most:
            more = np.empty((2 * most, 5))
            more[:most] = kept
            kept, most = more, 2 * most
        last = t + h > end
        kept[n, 0], kept[n, 1], kept[n, 2], kept[n, 3] = t, y, h, 1.0 if last else 0.0
        if last:
            h = end - t
        k1 = -p[0] * y + np.sin(p[1] * t)
        k2 = -p[0] * (y + h * k1) + np.sin(p[1] * (t + h))
        err = abs(h * (k2 - k1) / 2)
        good = err < 1e-4
        kept[n, 4] = 1.0 if good else 0.0
        if good:
            t, y = t + h, y + h * (k1 + k2) / 2
            value += h * y * y
        h = h * min(max(0.9 * (1e-4 / (err + 1e-12)) ** 0.5, 0.3), 2.0)
        n += 1
    grad = np.zeros(2)
    t_ct, y_ct, h_ct = 0.0, 0.0, 0.0
    for i in range(n - 1, -1, -1):
        t, y, h = kept[i, 0], kept[i, 1], kept[i, 2]
        last, good = kept[i, 3] > 0, kept[i, 4] > 0
        if last:
            h = end - t
        k1 = -p[0] * y + np.sin(p[1] * t)
        k2 = -p[0] * (y + h * k1) + np.sin(p[1] * (t + h))
        half = h * (k2 - k1) / 2
        err = abs(half)
        root = 0.9 * (1e-4 / (err + 1e-12)) ** 0.5
        factor = min(max(root, 0.3), 2.0)
        err_ct = 0.0
        if 0.3 < root < 2.0:
            err_ct = -0.5 * h_ct * h * root / (err + 1e-12)
        now = h_ct * factor                              # of h in this step
        k1_ct = k2_ct = before = 0.0                     # before: of y as it was
        since = t_ct                                     # of t as it was
        if good:
            new = y + h * (k1 + k2) / 2
            out = y_ct + 2.0 * h * new
            now += new * new + out * (k1 + k2) / 2 + t_ct
            k1_ct += out * h / 2
            k2_ct += out * h / 2
            before += out
        else:
            before += y_ct
        signed = err_ct if half > 0 else -err_ct
        now += signed * (k2 - k1) / 2
        k2_ct += signed * h / 2
        k1_ct -= signed * h / 2
        wave = k2_ct * np.cos(p[1] * (t + h))
        grad[1] += wave * (t + h)
        since += wave * p[1]
        now += wave * p[1] - k2_ct * p[0] * k1
        grad[0] -= k2_ct * (y + h * k1)
        before -= k2_ct * p[0]
        k1_ct -= k2_ct * p[0] * h
        grad[0] -= k1_ct * y
        before -= k1_ct * p[0]
        grad[1] += k1_ct * np.cos(p[1] * t) * t
        since += k1_ct * np.cos(p[1] * t) * p[1]
        if last:
            since -= now
            now = 0.0
        t_ct, y_ct, h_ct = since, before, now
    return value, grad
