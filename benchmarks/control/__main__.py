"""Loops that branch, end by a value, or look at more of an array with each step: ``python -m benchmarks.control``.

For each program of `models.control`: how many compilations random draws of the parameters took; the first call; a warm
call, against plain NumPy's value, the hand-written kernel of `handwritten.control` and JAX where there is one; and with
which power of the number of steps first calls grow. ``python -m benchmarks.control tank pairs --draws 100``.
"""

import benchmarks  # noqa: I001, F401  (sets the number of threads; before NumPy)

import argparse
import math
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from benchmarks.checks import assert_same
from benchmarks.engines.makers import installed
from benchmarks.models import jax_control
from benchmarks.models.control import PROGRAMS
from benchmarks.timing import bind, from_call, paired_times, readable


def kernel_of(name: str) -> Callable[..., Any] | None:
    """The hand-written value and gradient, where there is one."""
    from benchmarks.handwritten import control

    return getattr(control, name, None)


def in_jax(name: str, arguments: tuple[Any, ...]) -> Callable[[], Any] | None:
    """A call of JAX's value and gradient, where JAX can say the program."""
    make = getattr(jax_control, name, None)
    if make is None or not installed("jax"):
        return None
    import jax

    jax.config.update("jax_enable_x64", True)
    both = jax.jit(jax.value_and_grad(make()))
    theta, *data = arguments
    held = [jax.numpy.asarray(a) for a in data]
    return lambda: tuple(map(np.asarray, both(theta, *held)))


def first_seconds(name: str, steps: int) -> float:
    """Processor seconds of a first call."""
    from jitad import cache, value_and_grad

    f, make, _ = PROGRAMS[name]
    arguments = make(steps)
    cache.clear()
    start = process_time()
    value_and_grad(f)(*arguments)
    return process_time() - start


def compilations(name: str, draws: int) -> int:
    """How many kernels the program needs when its parameters vary by a tenth. Each value is NumPy's."""
    from jitad import cache, value_and_grad

    f, make, steps = PROGRAMS[name]
    theta, *data = make(steps)
    cache.clear()
    g, rng = value_and_grad(f), np.random.default_rng(5)
    for _ in range(draws):
        drawn = theta * (1 + 0.1 * rng.standard_normal(theta.shape))
        np.testing.assert_allclose(g(drawn, *data)[0], f(drawn, *data), rtol=1e-8)
    return int(cache.info(g).compiles)


def measure(name: str, draws: int, rounds: int) -> str:
    """One line of the table, after the results have been compared."""
    from jitad import value_and_grad

    f, make, steps = PROGRAMS[name]
    count = compilations(name, draws)
    half = first_seconds(name, steps // 2)
    first = first_seconds(name, steps)
    arguments = make(steps)
    ours = bind(value_and_grad(f), *arguments)
    engines = [from_call("jitad", ours), from_call("numpy", bind(f, *arguments))]
    kernel, jax = kernel_of(name), in_jax(name, arguments)
    for other, call in (("hand", kernel and bind(kernel, *arguments)), ("jax", jax)):
        if call is not None:
            assert_same(ours(), call(), 1e-7)
            engines.append(from_call(other, call))
    warm = paired_times(engines, rounds)
    ratio = lambda a, b: f"{warm[a] / warm[b]:9.2f}" if a in warm and b in warm else " " * 9
    return (f"{name:14}{steps:6}{count:6}{first:9.2f} s{math.log2(first / half):7.2f}{readable(warm['jitad']):>10}"
            + ratio("numpy", "jitad") + ratio("jitad", "hand") + ratio("jax", "jitad"))


def main(given: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])       # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(PROGRAMS))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args(given)
    from jitad import TapeMismatchWarning, value_and_grad

    value_and_grad(lambda x: np.sum(np.sin(x)))(np.ones(3))                     # what a process loads once
    print(f"{'program':14}{'steps':>6}{'kinds':>6}{'first call':>11}{'power':>7}{'warm':>10}{'numpy/':>9}{'/hand':>9}"
          f"{'jax/':>9}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TapeMismatchWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for name in chosen.names or PROGRAMS:
            print(measure(name, chosen.draws, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
