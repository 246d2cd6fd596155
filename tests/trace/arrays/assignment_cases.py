"""Functions that assign, for the tests: plain NumPy of one vector of five numbers."""
from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def recursion(x):
    a = np.zeros(5)
    a[0] = x[0]
    for t in range(1, 5):
        a[t] = np.sin(a[t - 1]) * x[t]
    return np.sum(a**2)


def lagged(x):
    a = np.empty(8)
    a[:2] = x[:2]
    for t in range(2, 8):
        a[t] = np.dot(x[:2], a[t - 2:t]) + np.sum(a[:t]) * x[t % 5]
    return a[-1] * a.mean()


def views_of_views(x):
    a = np.zeros((3, 4))
    b = a[1:]
    c, d, e = b.T, a.reshape(-1), a.ravel()
    c[0] = x[:2]
    d[3] = x[4] * 2
    e[11] = x[0] * x[1]
    b[0, 1:] += x[1:4]
    a[:, 2] *= x[:3]
    return np.sum(a * np.arange(12.0).reshape(3, 4)) + b.sum() + c[1, 0] * 3


def reshapes(x):
    a = np.zeros((2, 6), order="F")
    b = a.T.reshape(3, 4)
    c = a.reshape(-1)                        # a copy
    d = np.ravel(a, order="F")               # a view
    b[1] = x[:4]
    c[2] = 100 * x[4]
    d[0] = x[1] * x[2]
    e = a[:, ::2]
    e[1] = -e[0] + x[3]
    a.T[2:4, 1] += x[0]
    return np.sum(a * np.arange(12.0).reshape(2, 6)) + np.sum(c * x[0]) + np.sum(b[2] ** 2) + d[5]


def masks(x):
    a = np.arange(6).astype(float)
    m = a > 2
    a[m] = x[:3]
    a[[0, 0, 1]] = x[2:]                     # the last one stays
    a[[2, -1]] += x[0]
    a[~m] *= 3.0
    return np.sum(a**2)


def traced_masks(x):
    a = x * 2
    a[x < 0] = 0.0
    a[a > 2] += x[0]
    return np.sum(a**2 * np.arange(5.0))


def lists(x):
    return np.sum(np.array([x[0], 1, x[1] * x[2]]) ** 2) * np.sum(np.asarray([[v * 2, v] for v in x])[:, 0])


def at(x):
    a = np.ones(3)
    np.add.at(a, [0, 2, 0, 1, 0], x)
    np.subtract.at(a, [0], x[0] ** 2)
    np.multiply.at(a, [1, 2], x[3])
    b = np.zeros((3, 5))
    np.add.at(b, (slice(None), [1, 1]), x[:3, None])
    return np.sum(a**3) + np.sum(b**2)


def diagonals(x):
    K = np.outer(x, x)
    np.fill_diagonal(K, x**2 + 1)
    K[0, 1] = K[1, 0] = x[2]
    A = np.zeros((7, 3))
    np.fill_diagonal(A, x[:2], wrap=True)
    return np.sum(K * np.arange(25.0).reshape(5, 5)) + np.sum(A * np.arange(21.0).reshape(7, 3))


def functions(x):
    a = np.full((2, 5), 0.5)
    np.copyto(a, x, where=np.array([[True], [False]]))
    np.put(a, [6, -1], x[:2])
    np.put(a, [13], x[2], mode="wrap")
    np.place(a, np.eye(2, 5) > 0, x[3:])
    np.put_along_axis(a, np.array([[1], [2]]), x[:2, None], 1)
    a.flat[4] = x[0]
    b = np.zeros(4)
    np.putmask(b, np.array([True, False, True, True]), x[:3])
    b[1:].fill(x[4])
    return np.sum(a**2 * np.arange(10.0).reshape(2, 5)) + np.sum(b)


def aliases(x):
    a = x.copy()
    b = a
    b += 1
    c = np.asarray(a)
    c[0] = x[1]
    d = np.array(a)
    d[0] = 100 * x[0]
    e = a.flatten()
    e[1] = 1e3
    return np.sum(a**2) + d.sum() + e[1:2].sum()


def in_place(x):
    a = np.empty_like(x)
    a[:] = x
    a[1:] -= a[:-1]
    a *= 2
    a /= x
    a **= 2
    a[::2] = -a[::-1][::2]
    a[...] = a % 0.7
    a //= -0.3
    b = np.ones(5)
    b @= np.outer(x, x)
    return a.sum() * x[0] + b.sum()


def integers(x):
    a = np.zeros(5, int)
    a[:] = x * 3
    b = np.zeros(5, np.float32)
    b[1:] = a[:-1] * 0.1
    c = np.outer(x, x)
    c[np.int64(0), 1] = 0.5                      # NumPy's integers are indices as Python's are
    c[np.argmax([1, 2]), np.uint8(2)] *= x[3]
    return np.sum(a * x) + b[2] + np.sum(c)


def rows(x):
    a = np.zeros((4, 5))
    for i in range(4):
        a[i] = x * i if i < 2 else a[i - 1] + a[i - 2] * x
    for row in a:
        row[0] = row[1] * x[0]
    return np.sum(a**2)


def columns(x):
    a = np.ones((5, 3))
    for j in range(1, 3):
        a[:, j] = a[:, j - 1] * x
    return np.sum(a @ np.arange(3.0))


def triangles(x):
    L = np.eye(3)
    L[np.tril_indices(3, -1)] = x[:3]
    L[np.diag_indices(3)] = np.exp(x[:3])
    M = np.zeros((3, 3))
    M[np.triu_indices(3)] = np.arange(6.0)
    M += M.T
    for i in range(3):
        M[i, :i] = x[:i]
    return np.sum((L @ L.T) ** 2) + np.sum(M**2) + np.linalg.det(M + 10 * np.eye(3))


def strides(x):
    a = np.ones(9)
    a[::3] = x[:3]
    a[1::4] = x[3:]
    a[::-2] += a[::2]
    return np.sum(a * np.arange(9.0))


def overlaps(x):
    a = np.zeros((3, 3))
    a[:, 1] = x[:3]
    a[1, :] = x[2:]
    a[:2, :2] += x[0]
    a[1:, 1:].T[0] = x[1]
    return np.sum(a * np.arange(9.0).reshape(3, 3))


def broadcasts(x):
    a = np.zeros((2, 3, 2))
    a[:, 1] = x[:2]
    a[0, :, 1] = x[4]
    a[1] = x[:3, None]
    a[..., 0] = np.ones((1, 2, 3)) * x[3] + a[..., 1]
    a[:, [0, 2], 1] = x[:2][:, None]
    a[[0, 1], :, [1, 0]] -= x[:3]
    return np.sum(a * np.arange(12.0).reshape(2, 3, 2) ** 2)


def no_dimensions(x):
    s = np.zeros(())
    t = s
    s += x[0]
    s[()] = s * x[1]
    a = x.copy()
    b = a[..., 2]
    b += 5
    b[...] = b * x[0]
    return t**2 + np.sum(a)


def strong_zero(x):
    y = np.sqrt(x - x[0])                    # slope infinite at the first
    y[0] = 3.0
    z = y.copy()
    z[::2] = 0.0
    return np.nansum(y) if False else np.sum(z[1:2] ** 2) + y[0] * x[1]


def local_functions(x):
    table = np.zeros((3, 2))

    def store(i, v):
        table[i] = v

    for i in range(3):
        store(i, x[i:i + 2])
    return logsumexp(table, axis=0).sum() + logsumexp(table[:, 0], b=np.arange(1.0, 4))


def bookkeeping(x):
    """Concrete arrays stay concrete: indices, conditions, shapes."""
    order = np.zeros(5, int)
    for i in range(5):
        order[4 - i] = i
    counts = np.zeros(3)
    counts[order[0] - 3] += 2
    a = np.zeros(int(counts[1] + order.max()))
    if counts.sum() > 1 and order[0] == 4:
        a[:5] = x[order]
    assert isinstance(counts, np.ndarray) and isinstance(a, np.ndarray) and len(a) == 6
    return np.sum(a * np.arange(6.0)) * float(counts[1])


def computed(x):
    """Integers that are known only when the compiled function runs."""
    i = np.floor(np.abs(x)).astype(int) % 5
    a = np.zeros(5)
    a[i] = x * 2
    a[i[0]] += x[1]
    b = np.ones((2, 5))
    b[1, i] *= x
    b[:, i[2]] = x[3]
    np.add.at(b, (0, i), x)
    return np.sum(a**2) + np.sum(b * np.arange(10.0).reshape(2, 5))


def swaps(x):
    a = x.copy()
    a[0], a[1] = a[1] * 2, a[0]
    a[[2, 3]] = a[[3, 2]]
    a[1:] = a[:-1]
    return np.sum(a * np.array([1.0, 4, 9, 16, 25]))


def of_one(x):
    a = np.stack([x, x * x])
    b = np.maximum.accumulate(a[1:])         # of one row: a copy
    b[...] = 7.0
    c = np.linalg.matrix_power(a[:, :2], 1)  # the matrix itself
    c[0, 0] *= 3.0
    return np.sum(a * b) + np.sum(c)


CASES = [recursion, lagged, views_of_views, reshapes, masks, traced_masks, lists, at, diagonals, functions, aliases,
         in_place, integers, rows, columns, triangles, strides, overlaps, broadcasts, no_dimensions, strong_zero,
         local_functions, bookkeeping, computed, swaps,
         of_one]
