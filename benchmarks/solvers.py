"""What SciPy does inside a function: ``python -m benchmarks.solvers``.

For each program the time of value and gradient, of SciPy's value alone, and their ratio: best of several calls.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate, interpolate, optimize, signal, sparse
from scipy.sparse import linalg

import jitad

KNOTS = np.linspace(0.0, 10.0, 50)
POINTS = np.linspace(0.1, 9.9, 1000)
TIMES = np.linspace(0.0, 10.0, 21)


def kepler(e: Any) -> Any:
    """The eccentric anomalies of a hundred epochs."""
    mean = np.linspace(0.1, 3.0, 100)
    return np.sum(np.cos(optimize.newton(lambda E: E - e * np.sin(E) - mean, mean, fprime=lambda E: 1 - e * np.cos(E))))


def root(a: Any) -> Any:
    """A bracketed root."""
    return optimize.brentq(lambda x: x**3 + x - a, 0.0, 10.0)


def integral(a: Any) -> Any:
    """A normal integral to infinity."""
    return integrate.quad(lambda x: np.exp(-a * x * x), 0.0, np.inf)[0]


def spline(y: Any) -> Any:
    """A cubic spline of fifty values at a thousand points."""
    return np.sum(np.sin(interpolate.CubicSpline(KNOTS, y)(POINTS)))


def lotka_volterra(p: Any) -> Any:
    """Predators and prey at 21 times, by RK45: four rates and two initial values."""
    def rates(t: Any, y: Any) -> Any:
        return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]
    return np.sum(integrate.solve_ivp(rates, (0.0, 10.0), p[4:], t_eval=TIMES, rtol=1e-6, atol=1e-8).y)


def robertson(p: Any) -> Any:
    """Three reactions, stiff, at three times, by Radau's method."""
    def rates(t: Any, y: Any) -> Any:
        slow, back, fast = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] ** 2
        return [-slow + back, slow - back - fast, fast]
    return np.sum(integrate.solve_ivp(rates, (0.0, 1e4), [1.0, 0.0, 0.0], method="Radau", t_eval=[1.0, 1e2, 1e4],
                                      rtol=1e-5, atol=1e-10).y)


def michaelis_menten(y: Any) -> Any:
    """The two constants of an enzyme, fitted to 21 rates."""
    best, covariance = optimize.curve_fit(lambda t, v, k: v * t / (k + t), TIMES, y, p0=[1.0, 1.0])
    return best[0] / best[1] + np.sqrt(covariance[0, 0])


def profile(a: Any) -> Any:
    """A function of two variables, minimized."""
    found = optimize.minimize(lambda x: (x[1] - x[0] ** 2) ** 2 + a * (1 - x[0]) ** 2 + 0.1 * a * x[1] ** 4, [0.0, 1.0])
    return found.fun + found.x[0]


def robust(y: Any) -> Any:
    """The two constants of an enzyme, within bounds and by a robust loss."""
    return np.sum(optimize.least_squares(lambda p: p[0] * TIMES / (p[1] + TIMES) - y, [1.0, 1.0], loss="soft_l1",
                                         f_scale=0.1, bounds=(0.0, 10.0)).x)


def filtered(x: Any) -> Any:
    """A signal of a thousand samples, filtered forwards and backwards."""
    b, a = signal.butter(4, 0.2)
    return np.sum(signal.filtfilt(b, a, x) ** 2)


def field(p: Any) -> Any:
    """A Gaussian Markov field on a grid of 60 by 60: its log-determinant and a solution."""
    precision = (sparse.identity(LAPLACE.shape[0]) * p[0] + LAPLACE * p[1]).tocsc()
    factors = linalg.splu(precision)
    ones = np.ones(LAPLACE.shape[0])
    return 0.5 * np.sum(np.log(factors.U.diagonal())) - 0.5 * ones @ factors.solve(ones)


def gradients(p: Any) -> Any:
    """A system on the same grid, by conjugate gradients."""
    return np.sum(linalg.cg(sparse.identity(LAPLACE.shape[0]) * p[0] + LAPLACE * p[1], FORCE)[0] ** 2)


SECOND = sparse.diags([2.0, -1.0, -1.0], [0, 1, -1], shape=(60, 60))
LAPLACE = (sparse.kron(SECOND, sparse.identity(60)) + sparse.kron(sparse.identity(60), SECOND)).tocsc()
FORCE = np.cos(np.arange(3600.0))
CASES: tuple[tuple[Callable[..., Any], Any], ...] = (
    (kepler, 0.3), (root, 4.0), (integral, 1.3), (spline, np.sin(KNOTS)),
    (lotka_volterra, np.array([0.8, 0.5, 0.7, 0.3, 2.0, 1.0])),
    (robertson, np.array([0.04, 1e4, 3e7])),
    (michaelis_menten, 2.0 * TIMES / (0.7 + TIMES) + 0.05 * np.cos(7.0 * TIMES)),
    (profile, 1.3), (robust, 2.0 * TIMES / (0.7 + TIMES) + 0.05 * np.cos(7.0 * TIMES)),
    (filtered, np.sin(np.arange(1000.0))), (field, np.array([0.5, 1.0])), (gradients, np.array([0.5, 1.0])))


def best(call: Callable[[], Any], times: int) -> float:
    """Microseconds of the fastest call."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found) * 1e6


def main(calls: int = 200) -> None:
    print(f"{'program':16}{'value and gradient':>20}{'SciPy, value':>16}{'ratio':>8}")
    for function, x in CASES:
        compiled = jitad.value_and_grad(function)
        compiled(x)
        ours = best(lambda g=compiled, x=x: g(x), calls)
        theirs = best(lambda f=function, x=x: f(x), max(calls // 20, 2))
        print(f"{function.__name__:16}{ours:17.1f} us{theirs:13.1f} us{ours / theirs:8.3f}", flush=True)


if __name__ == "__main__":
    main()
