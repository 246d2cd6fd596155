"""First calls of programs that grow: ``python -m benchmarks.firstcalls [NAME ...]``.

For each program and size: the processor time of the first call, that of a second one by the same kernel, and the power
of the size with which first calls grow. The disk is not used.
"""
from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jitad

Case = tuple[Callable[..., Any], tuple[Any, ...]]
rng = np.random.default_rng(0)


def pairs(size: int) -> Case:
    """Slices that shrink with the step."""
    def f(q: Any, x: Any) -> Any:
        total = 0.0
        for t in range(len(x) - 1):
            total += np.sum(np.exp(-q * np.abs(x[t + 1:] - x[t])))
        return total
    return jitad.value_and_grad(f, on_mismatch="silent"), (0.5, rng.normal(size=size))


def renewal(size: int) -> Case:
    """A history that grows with the step."""
    def f(q: Any, w: Any) -> Any:
        out = np.zeros(len(w))
        out[0] = q[0]
        for t in range(1, len(w)):
            out[t] = q[1] * np.tanh(out[:t] @ w[t - 1::-1])
        return np.sum(out)
    w = np.exp(-np.arange(size) / 5.0)
    return jitad.value_and_grad(f, on_mismatch="silent"), (np.array([1.0, 1.2]), w / w.sum())


def epidemic(size: int) -> Case:
    """Renewals and deaths in fourteen countries, `size` days."""
    def f(theta: Any, infects: Any, dies: Any, deaths: Any) -> Any:
        total = 0.0
        for m in range(len(deaths)):
            cases = np.zeros(size)
            cases[:6] = np.exp(theta[m])
            for t in range(6, size):
                rate = theta[-2] * np.exp(-theta[-1] * (t > 30))
                cases[t] = (1.0 - np.sum(cases[:t]) / 1e7) * rate * (cases[:t] @ infects[t - 1::-1])
            expected = np.stack([0.01 * (cases[:t] @ dies[t - 1::-1]) for t in range(1, size)])
            total = total + np.sum(deaths[m, 1:] * np.log(expected + 1e-9) - expected)
        return total
    days = np.arange(size)
    infects, dies = np.exp(-days / 6.0), np.exp(-(days - 20) ** 2 / 50.0)
    theta = np.array([*np.ones(14), 2.0, 0.5])
    return jitad.value_and_grad(f, on_mismatch="silent"), (theta, infects / infects.sum(), dies / dies.sum(),
                                     rng.poisson(3.0, (14, size)).astype(float))


def every_third(size: int) -> Case:
    """Every third step is another one."""
    def f(x: Any) -> Any:
        s = x
        for i in range(size):
            s = np.sin(s) + i % 7 * x if i % 3 else s * 0.9
        return s
    return jitad.value_and_grad(f, on_mismatch="silent"), (0.3,)


def ragged(size: int) -> Case:
    """Groups of different lengths."""
    groups = [rng.normal(size=n) for n in rng.integers(1, 12, size)]

    def f(q: Any, groups: Any) -> Any:
        s = q[0]
        total = 0.0
        for group in groups:
            s = np.tanh(s + np.mean(group) * q[1])
            total = total + np.sum(np.cos(group * s))
        return total
    return jitad.value_and_grad(f, on_mismatch="silent"), (np.array([0.1, 0.4]), groups)


def lines(size: int, numbers: bool) -> Case:
    """Different lines, of states that are vectors or numbers."""
    own = np.random.default_rng(1)
    forms = ("np.sin({a})", "np.exp(-{a} * {a})", "np.tanh({a} * {b})", "{a} * q[0] - {b}", "{a} / (1 + {b} * {b})",
             "np.arctan2({a}, 2 + {b} * {b})", "np.where({a} > {b}, {a}, 0.5 * {b})", "{a} + 0.1 * np.sum({b})")
    text = ["def f(q, x):", "    a, b, c = x, x * q[0], np.sin(x)"]
    for _ in range(size):
        target, first, second = ("abc"[i] for i in own.integers(0, 3, 3))
        form = forms[own.integers(len(forms) - 3 * numbers)].format(a=first, b=second)
        text.append(f"    {target} = 0.5 * {target} + {form} * {own.uniform():.3f}")
    space: dict[str, Any] = {"np": np}
    exec("\n".join([*text, "    return np.sum(a + b + c)"]), space)
    x = 0.3 if numbers else rng.normal(size=100)
    return jitad.value_and_grad(space["f"], on_mismatch="silent"), (np.array([0.5]), x)


def inlined(size: int) -> Case:
    """A gradient inside of another function."""
    y = rng.normal(size=size)

    def f(p: Any) -> Any:
        s, total = p[0], 0.0
        for t in range(size):
            s = p[0] + p[1] * np.tanh(s) * y[t] + p[2] * s
            total = total - 0.5 * (s * s + y[t] ** 2 / (1 + s * s))
        return total
    gradient = jitad.jit_grad(f)
    return jitad.jit(lambda p: gradient(p)), (np.array([0.2, 0.2, 0.5]),)


PROGRAMS: dict[str, tuple[Callable[[int], Case], tuple[int, ...]]] = {
    "pairs": (pairs, (75, 150, 300, 600)), "renewal": (renewal, (75, 150, 300)), "epidemic": (epidemic, (50, 100)),
    "every_third": (every_third, (300, 1000, 3000, 20_000)), "ragged": (ragged, (100, 200, 400)),
    "vector lines": (lambda n: lines(n, numbers=False), (50, 100, 200, 1000)),
    "number lines": (lambda n: lines(n, numbers=True), (1000, 3000, 10_000)), "inlined": (inlined, (100, 400))}


def measured(case: Case) -> tuple[float, float]:
    """Seconds of the first call; the least of some later ones. Another process may compile meanwhile."""
    f, args = case
    start = time.process_time()
    f(*args)
    first, warm = time.process_time() - start, math.inf
    for _ in range(20):
        start = time.perf_counter()
        f(*args)
        warm = min(warm, time.perf_counter() - start)
    return first, warm


def main(names: list[str]) -> None:
    """Print a row for each program and size."""
    jitad.value_and_grad(lambda x: np.sum(np.sin(x)))(np.ones(3))
    print(f"{'program':14}{'size':>8}{'first call, s':>15}{'warm, us':>12}{'power':>8}")
    for name in names or PROGRAMS:
        make, sizes = PROGRAMS[name]
        before: tuple[int, float] | None = None
        for size in sizes:
            first, warm = measured(make(size))
            power = "" if before is None else f"{math.log(first / before[1]) / math.log(size / before[0]):.2f}"
            print(f"{name:14}{size:8}{first:15.2f}{warm * 1e6:12.1f}{power:>8}", flush=True)
            before = size, first


if __name__ == "__main__":
    os.environ["JITAD_DISK_CACHE"] = "0"
    main(sys.argv[1:])
