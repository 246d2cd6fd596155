"""Densities of scipy.stats against the same expressions written out: ``python -m benchmarks.densities [name ...]``.

A kernel for each, value and gradient with respect to two parameters, timed in turns; the best of many rounds counts.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: F401, I001  (sets the number of threads; before NumPy)

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import scipy.stats as st
from scipy.special import gammaln, xlog1py, xlogy

import jitad

HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
SIZE = 10_000
Density = Callable[[float, float, Any], Any]


def _t(a: float, b: float, y: Any) -> Any:
    constant = gammaln(0.5 * (a + 1.0)) - gammaln(0.5 * a) - 0.5 * np.log(a * np.pi) - np.log(b)
    return (constant - 0.5 * (a + 1.0) * np.log1p((y / b) ** 2 / a)).sum()


def _gamma(a: float, b: float, y: Any) -> Any:
    return np.where(y >= 0, xlogy(a - 1.0, y / b) - y / b - gammaln(a) - np.log(b), -np.inf).sum()


#: Name: the call of scipy.stats, the expression, and which data.
PAIRS: dict[str, tuple[Density, Density, str]] = {
    "norm": (lambda a, b, y: st.norm.logpdf(y, a, b).sum(),
             lambda a, b, y: (-0.5 * ((y - a) / b) ** 2 - np.log(b) - HALF_LOG_2PI).sum(), "real"),
    "laplace": (lambda a, b, y: st.laplace.logpdf(y, a, b).sum(),
                lambda a, b, y: (-np.abs((y - a) / b) - np.log(2.0 * b)).sum(), "real"),
    "t": (lambda a, b, y: st.t.logpdf(y, a, 0.0, b).sum(), _t, "real"),
    "gamma": (lambda a, b, y: st.gamma.logpdf(y, a, scale=b).sum(), _gamma, "positive"),
    "expon": (lambda a, b, y: st.expon.logpdf(y, a - 3.0, b).sum(),
              lambda a, b, y: np.where(y >= a - 3.0, -(y - a + 3.0) / b - np.log(b), -np.inf).sum(), "positive"),
    "poisson": (lambda a, b, y: st.poisson.logpmf(y, a * b).sum(),
                lambda a, b, y: (xlogy(y, a * b) - gammaln(y + 1.0) - a * b).sum(), "counts"),
    "bernoulli": (lambda a, b, y: st.bernoulli.logpmf(y, a / b).sum(),
                  lambda a, b, y: (xlogy(y, a / b) + xlog1py(1.0 - y, -a / b)).sum(), "binary"),
}


def data(kind: str) -> Any:
    rng = np.random.default_rng(0)
    y = rng.normal(size=SIZE)
    found = {"real": y, "positive": np.abs(y) + 0.1, "counts": rng.poisson(3.0, SIZE) * 1.0, "binary": (y > 0) * 1.0}
    return found[kind]


def ratio(name: str, rounds: int = 300) -> tuple[float, float]:
    """Best times of the density and of the expression in seconds."""
    density, expression, kind = PAIRS[name]
    args = (1.3, 2.1, data(kind))
    ours = jitad.value_and_grad(density, argnums=(0, 1))
    written = jitad.value_and_grad(expression, argnums=(0, 1))
    np.testing.assert_allclose(ours(*args)[0], written(*args)[0], rtol=1e-11)
    np.testing.assert_allclose(ours(*args)[1], written(*args)[1], rtol=1e-9)
    best = [np.inf, np.inf]
    for _ in range(rounds):
        for i, f in enumerate((ours, written)):
            start = perf_counter()
            f(*args)
            best[i] = min(best[i], perf_counter() - start)
    return best[0], best[1]


def main(names: list[str]) -> None:
    for name in names or PAIRS:
        ours, written = ratio(name)
        print(f"{name:10s} {ours * 1e6:8.1f} us {written * 1e6:8.1f} us, ratio {ours / written:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
