"""Programs whose loops branch, end by a value, or look at more and more of an array: plain NumPy, with seeded data.

`PROGRAMS` has for each function what makes its arguments; the first of them is differentiated.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


# --- the way of a step depends on values ----------------------------------------------------------
def tank(p: Any, rain: Any) -> Any:
    """A store that overflows and runs dry."""
    s, total = 1.0, 0.0
    for r in rain:
        s = s + r - p[2] * s
        if s < 0:
            s = 0.0
        q = p[0] * (s - p[1]) if s > p[1] else 0.0
        s = s - q
        total = total + (q - 0.3) ** 2
    return total


def threshold(p: Any, e: Any) -> Any:
    """An autoregression with two regimes."""
    x, total = p[0], 0.0
    for u in e:
        x = p[1] * x + u if x > 0 else p[2] * x + u
        total = total + x * x
    return total


def snow(p: Any, rain: Any, warmth: Any) -> Any:
    """Degree days: three ways through a day."""
    pack, total = 0.0, 0.0
    for r, w in zip(rain, warmth, strict=True):
        if w < p[0]:
            pack = pack + r
            out = 0.0
        else:
            melt = p[1] * (w - p[0])
            if melt > pack:
                melt = pack
            pack = pack - melt
            out = r + melt
        total = total + (out - 0.5) ** 2
    return total


def inventory(p: Any, demand: Any) -> Any:
    """Order up to a level once the stock is below another."""
    stock, cost = p[1], 0.0
    for d in demand:
        if stock < p[0]:
            cost = cost + 1.0 + 0.5 * (p[1] - stock)
            stock = p[1]
        stock = stock - d
        cost += 0.1 * stock if stock > 0 else -2.0 * stock
    return cost


def neuron(p: Any, current: Any) -> Any:
    """Leaky integration until a spike."""
    v, total = 0.0, 0.0
    for i in current:
        v = v + 0.1 * (p[0] * i - v)
        if v > p[1]:
            total = total + (v - p[1]) * p[2]
            v = 0.0
        total = total + 0.01 * v * v
    return total


def limited_flow(p: Any, z: Any) -> Any:
    """A branch in a loop in a loop."""
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


# --- how many steps depends on values ---------------------------------------------------------------
def adaptive(p: Any, end: Any) -> Any:
    """An integrator that chooses its steps, and takes some again."""
    t, y, h, total = 0.0, 1.0, 0.1, 0.0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = -p[0] * y + np.sin(p[1] * t)
        k2 = -p[0] * (y + h * k1) + np.sin(p[1] * (t + h))
        err = abs(h * (k2 - k1) / 2)
        if err < 1e-4:
            t, y = t + h, y + h * (k1 + k2) / 2
            total = total + h * y * y
        h = h * min(max(0.9 * (1e-4 / (err + 1e-12)) ** 0.5, 0.3), 2.0)
    return total


def first_passage(p: Any, x: Any) -> Any:
    """A return and a break from within."""
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


def newton(p: Any, y: Any) -> Any:
    """A root for each observation, each until it is good enough."""
    total = 0.0
    for v in y:
        x = 1.0
        while abs(x**3 + p[0] * x - v) > 1e-9:
            x = x - (x**3 + p[0] * x - v) / (3 * x**2 + p[0])
        total = total + p[1] * x * x
    return total


# --- factorisations in the step -------------------------------------------------------------------------
def kalman(p: Any, y: Any) -> Any:
    """A filter that leaves out what is missing."""
    m, P, ll = np.zeros(2), np.eye(2), 0.0
    A, H = np.array([[p[0], 0.1], [0.0, 0.9]]), np.eye(2)
    for t in range(len(y)):
        m = A @ m
        P = A @ P @ A.T + p[1] * np.eye(2)
        if np.isnan(y[t, 0]):
            continue
        S = H @ P @ H.T + p[2] * np.eye(2)
        inverse = np.linalg.inv(S)
        e = y[t] - H @ m
        K = P @ H.T @ inverse
        m = m + K @ e
        P = P - K @ H @ P
        ll += -0.5 * (e @ inverse @ e + np.log(np.linalg.det(S)))
    return ll


def correlations(p: Any, y: Any) -> Any:
    """Dynamic conditional correlations, with a way out."""
    k, ll = y.shape[1], 0.0
    Q = np.eye(k)
    for t in range(1, len(y)):
        Q = (1 - p[0] - p[1]) * np.eye(k) + p[0] * np.outer(y[t - 1], y[t - 1]) + p[1] * Q
        sign, logdet = np.linalg.slogdet(Q)
        if sign <= 0:
            return -np.inf
        ll += -0.5 * (logdet + y[t] @ np.linalg.inv(Q) @ y[t])
    return ll


def field(p: Any, core: Any, rounds: int) -> Any:
    """A self-consistent field: Cholesky, inverse and eigenvectors in each round."""
    n, energy = len(core), 0.0
    density = np.eye(n) * 0.3
    for _ in range(rounds):
        overlap = np.eye(n) + p[0] * 0.1 * density
        L = np.linalg.cholesky(overlap)
        inverse = np.linalg.inv(L)
        fock = core + p[1] * density
        w, V = np.linalg.eigh(inverse @ fock @ inverse.T)
        C = inverse.T @ V
        density = 0.5 * density + 0.5 * C[:, :2] @ C[:, :2].T
        energy = w[0] + w[1]
    return energy + np.sum(density * core)


# --- slices whose ends move ---------------------------------------------------------------------------------
def pairs(q: Any, x: Any) -> Any:
    """Slices that shrink with the step."""
    total = 0.0
    for t in range(len(x) - 1):
        total += np.sum(np.exp(-q[0] * np.abs(x[t + 1:] - x[t])))
    return total


def renewal(q: Any, w: Any) -> Any:
    """A history that grows with the step."""
    out = np.zeros(len(w))
    out[0] = q[0]
    for t in range(1, len(w)):
        out[t] = q[1] * np.tanh(out[:t] @ w[t - 1::-1])
    return np.sum(out)


def windows(q: Any, x: Any) -> Any:
    """A window that slides."""
    total = 0.0
    for t in range(10, len(x)):
        seen = x[t - 10:t]
        total += np.log(q[0] + q[1] * np.mean(seen) ** 2) + q[0] * np.max(seen)
    return total


def triangle(q: Any, a: Any) -> Any:
    """Rows of a triangle: a substitution."""
    x = np.zeros(len(a))
    for i in range(len(a)):
        x[i] = (q[0] - q[1] * (a[i, :i] @ x[:i])) / a[i, i]
    return np.sum(x * x)


# --- steps that data or their number tell apart ------------------------------------------------------------
def every_third(x: Any, steps: int) -> Any:
    """Every third step is another one."""
    s = x[0]
    for i in range(steps):
        s = np.sin(s) + i % 7 * x[0] if i % 3 else s * 0.9
    return s


def burn_in(p: Any, y: Any) -> Any:
    """The first steps do not count."""
    m, total = p[0], 0.0
    for t in range(len(y)):
        m = p[1] * m + p[2] * y[t]
        if t < len(y) // 4:
            continue
        total = total + (y[t] - m) ** 2
    return total


def edges(p: Any, pairs: Any, y: Any) -> Any:
    """Indices that come from data."""
    total = 0.0
    for i, j in pairs:
        total += np.tanh(p[i] - p[j]) * y[i]
    return total


def ragged(q: Any, groups: Any) -> Any:
    """Groups of different lengths."""
    s, total = q[0], 0.0
    for group in groups:
        s = np.tanh(s + np.mean(group) * q[1])
        total = total + np.sum(np.cos(group * s))
    return total


def _rng() -> Any:
    return np.random.default_rng(2)


def _rain(n: int) -> Any:
    rng = _rng()
    return rng.exponential(1.0, n) * (rng.random(n) < 0.3) - 0.1


def _holes(n: int) -> Any:
    y = _rng().normal(size=(n, 2))
    y[_rng().random(n) < 0.3] = np.nan
    return y


def _core(n: int) -> Any:
    a = _rng().normal(size=(n, n))
    return a + a.T


def _lower(n: int) -> Any:
    return np.tril(_rng().normal(size=(n, n))) / n + 2 * np.eye(n)


def _pairs(n: int) -> Any:
    return [(int(i), int(j)) for i, j in _rng().integers(0, 20, (n, 2))]


def _weights(n: int) -> Any:
    w = np.exp(-np.arange(n) / 5.0)
    return w / w.sum()


#: Name: function, and what makes its arguments for a number of steps, that number.
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]], int]] = {
    f.__name__: (f, make, n) for f, make, n in (
        (tank, lambda n: (np.array([0.3, 1.2, 0.1]), _rain(n)), 365),
        (threshold, lambda n: (np.array([1.0, 0.5, -0.8]), _rng().normal(size=n)), 365),
        (snow, lambda n: (np.array([0.3, 0.4]), np.abs(_rain(n)), _rng().normal(size=n)), 365),
        (inventory, lambda n: (np.array([2.0, 8.0]), _rng().exponential(1.0, n)), 365),
        (neuron, lambda n: (np.array([2.0, 0.5, 0.3]), 1 + _rng().normal(size=n)), 365),
        (limited_flow, lambda n: (np.array([0.3, 0.2, 0.1]), _rng().normal(size=n)), 40),
        (adaptive, lambda n: (np.array([3.0, 2.0]), n / 10), 50),
        (first_passage, lambda n: (np.array([1.0, 4.0, 3.0]), _rng().normal(size=n)), 60),
        (newton, lambda n: (np.array([1.0, 0.5]), _rng().normal(size=n) + 2), 50),
        (kalman, lambda n: (np.array([0.8, 0.5, 0.3]), _holes(n)), 60),
        (correlations, lambda n: (np.array([0.1, 0.5]), _rng().normal(size=(n, 2))), 64),
        (field, lambda n: (np.array([0.5, 0.3]), _core(6), n), 32),
        (pairs, lambda n: (np.array([0.5]), _rng().normal(size=n)), 300),
        (renewal, lambda n: (np.array([1.0, 1.2]), _weights(n)), 200),
        (windows, lambda n: (np.array([1.0, 0.5]), _rng().normal(size=n)), 300),
        (triangle, lambda n: (np.array([1.0, 0.5]), _lower(n)), 100),
        (every_third, lambda n: (np.array([0.3]), n), 3000),
        (burn_in, lambda n: (np.array([0.1, 0.8, 0.2]), _rng().normal(size=n)), 365),
        (edges, lambda n: (_rng().normal(size=20), _pairs(n), _rng().normal(size=20)), 300),
        (ragged, lambda n: (np.array([0.1, 0.4]), [_rng().normal(size=k) for k in _rng().integers(1, 12, n)]), 100))}
