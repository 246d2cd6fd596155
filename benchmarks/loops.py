"""Recurrences written as plain Python loops, against hand-written numba: ``python -m benchmarks.loops [name ...]``.

Prints for each the time of a warm value and gradient, its ratio to the kernel of `handwritten.recurrences`, and the
time of the first call. ``python -m benchmarks.loops --growth`` prints, for GARCH over longer and longer series, the
time and the memory that the first call takes, each in a process of its own.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: I001, F401  (sets the number of threads; before NumPy)

import argparse
import resource
import subprocess
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.checks import assert_same
from benchmarks.models.recurrences import garch, hmm, kalman, kalman_by_inverse, make_garch, make_hmm, make_kalman
from benchmarks.timing import bind, from_call, paired_times, readable

Array = np.ndarray
LENGTHS = (25_000, 50_000, 100_000)


#: Name: density, its kernel, its arguments for a length, the length.
LOOPS: dict[str, tuple[Callable[..., float], str, Callable[[int], tuple[Array, ...]], int]] = {
    "garch": (garch, "garch", make_garch, 1000),
    "hmm": (hmm, "hmm", make_hmm, 1000),
    "kalman": (kalman, "kalman", make_kalman, 500),
    "kalman_by_inverse": (kalman_by_inverse, "kalman", make_kalman, 500),
}


def measure(name: str, rounds: int) -> str:
    """One line of the table, after the results have been compared."""
    from benchmarks.handwritten import recurrences as kernels
    from jitad import cache, value_and_grad

    density, kernel, make, n = LOOPS[name]
    arguments = make(n)
    by_hand = getattr(kernels, kernel)
    expected = by_hand(*arguments)
    np.testing.assert_allclose(expected[0], density(*arguments), rtol=1e-9)
    cache.clear()
    start = perf_counter()
    result = value_and_grad(density)(*arguments)
    first = perf_counter() - start
    assert_same(result, expected, 1e-8)
    engines = [from_call("hand", bind(by_hand, *arguments)),
               from_call("jitad", bind(value_and_grad(density), *arguments))]
    warm = paired_times(engines, rounds)
    return (f"{name:18} n = {n:6}   handwritten {readable(warm['hand']):>9}   jitad {readable(warm['jitad']):>9}   "
            f"ratio {warm['jitad'] / warm['hand']:5.2f}   first call {readable(first)}")


def grow(n: int) -> str:
    """Time and peak memory of a first call over `n` observations; call it in a process of its own."""
    from jitad import value_and_grad

    g, (theta, y) = value_and_grad(garch), make_garch(n)
    value_and_grad(lambda x: np.sum(x * x))(theta)       # what a process loads once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, own = perf_counter(), process_time()
    g(theta, y)
    seconds, own = perf_counter() - start, process_time() - own
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return (f"garch n = {n:7}   first call {seconds:6.2f} s   processor {own:6.2f} s, {own / n * 1e6:5.1f} us/step   "
            f"memory {memory:7.0f} MB")


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])       # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(LOOPS))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--growth", action="store_true", help="how first calls grow with the length")
    parser.add_argument("--length", type=int, help="one first call of GARCH of that length")
    chosen = parser.parse_args(arguments)
    if chosen.length:
        print(grow(chosen.length))
    elif chosen.growth:
        for n in LENGTHS:
            subprocess.run([sys.executable, "-m", "benchmarks.loops", "--length", str(n)], check=True)
    else:
        for name in chosen.names or LOOPS:
            print(measure(name, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
