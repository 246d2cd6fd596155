"""Functions whose code goes to the disk, for `test_stored`; run as a program it calls each and prints what it gave."""
from __future__ import annotations

import collections
import dataclasses
import json
import sys

import numpy as np

from jitad import cache, jit, jit_grad, value_and_grad
from jitad.call.rungs import stored
from tests.helpers.light import LINALG

x3, x5 = np.array([1.0, 2.0, 3.0]), np.linspace(-1.0, 1.0, 5)
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
X = np.arange(24.0).reshape(8, 3) / 10
SCALE, MODE = 2.0, "square"
Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Box:
    a: object
    b: object


class Model:
    def __init__(self, data, scale):
        self.data, self.scale = data, scale

    @value_and_grad
    def logp(self, theta):
        return -self.scale * np.sum((self.data - theta) ** 2)


def helper(x):
    return x * x if MODE == "square" else x


@jit_grad
def logistic(theta, X, y):
    eta = X @ theta
    return y @ eta - np.sum(np.log1p(np.exp(eta)))


@jit_grad
def branches(x):
    if np.sum(x) > 0:
        return np.sum(x**3)
    return np.sum(np.abs(x)) * (2.0 if x[0] > -5 else 3.0)


@value_and_grad
def routines(m):
    L = np.linalg.cholesky(m @ m.T + 3 * np.eye(3))
    return np.sum(np.linalg.solve(m + 5 * np.eye(3), L)) + np.linalg.slogdet(m)[1] + np.sum(np.linalg.inv(m))


@jit_grad
def captures(x):
    return SCALE * np.sum(helper(x) * x3)


@jit_grad
def trees(p):
    return np.sum(p["a"] * p["b"].a) + p["c"][0].b * p["b"].b


@value_and_grad
def masks(x, k):
    total = 0.0
    for i in range(k):
        total = total + np.sum(x[x > i] * i)
    return total


vectors = jit(lambda x: {"sin": np.sin(x), "many": (x[:, None] * x, int(x.size))})
singles = value_and_grad(lambda x: np.sum(np.tanh(x)), argnums=0)
both = jit_grad(lambda a, b: np.sum(a * b**2), argnums=(0, 1))
made = [value_and_grad(lambda x, k=k: np.sum(x) * k) for k in (1.5, 2.5)]
tree = {"a": x3, "b": Pair(x3 + 1, 2.0), "c": [Box(0.0, 3.0)]}

CASES = {
    "logistic": lambda: logistic(x3, X, np.ones(8)),
    "F order": lambda: logistic(x3, np.asfortranarray(X), np.ones(8)),
    "strided": lambda: logistic(x3, np.repeat(X, 2, axis=1)[:, ::2], np.ones(8)),
    "shape": lambda: logistic(x3, X[:4].copy(), np.ones(4)),
    "way 1": lambda: branches(x3), "way 2": lambda: branches(-x3), "way 3": lambda: branches(-9 * x3),
    "routines": lambda: routines(A), "captures": lambda: captures(x3), "method": lambda: Model(x3, 2.0).logp(x3 + 1),
    "trees": lambda: trees(tree), "masks": lambda: masks(x5, 2), "vectors": lambda: vectors(x3),
    "float32": lambda: singles(x3.astype("f4")), "float": lambda: singles(1.0), "0-d": lambda: singles(np.array(1.0)),
    "several": lambda: both(x3, 2.0), "value": lambda: both.value(x3, 2.0), "made": lambda: [g(x3) for g in made],
}
TAPES = len(CASES) - 2  # the layouts of `logistic` share one


def outcome(case):
    return repr(CASES[case]())


def main():
    import warnings

    warnings.simplefilter("error", cache.ShapeChurnWarning)
    results = {case: outcome(case) for case in CASES}
    info = cache.info()
    modules = ("numba", "jitad.compile.entry.kernel", "jitad.compile.lower.lower", "jitad.compile.emit.llvm",
               *LINALG, "scipy.special")
    print(json.dumps({"build": stored._build(), "results": results, "compiles": info.compiles, "misses": info.misses,
                      "modules": [m for m in modules if m in sys.modules]}))


if __name__ == "__main__":
    main()
