"""Sizes swept against what they may cost: ``python -m benchmarks.shapes [kind ...] [--all]``.

Value and gradient of one small function at many sizes, in turns with NumPy's forward evaluation of the same function,
of which they may take three times the time; products with NumPy's products of both sweeps, which are BLAS's and of
which they may take 1.1 times; and JAX's value and gradient where it is installed. What falls short is printed, with
``--all`` the rest too.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import benchmarks  # noqa: F401, I001  (sets the number of threads; before NumPy)

import warnings

import numpy as np

from benchmarks.shapes.kinds import KINDS, Case
from benchmarks.timing import from_call, paired_times, readable
from jitad import TapeMismatchWarning, value_and_grad

ROUNDS, SECONDS = 8, 2e-3
TRIES = 3                         # what falls short in all of them does


def measure(case: Case) -> tuple[float, dict[str, float]]:
    """Seconds of value and gradient, and what they may take by each yardstick."""
    gradient = value_and_grad(case.function)
    value, first = gradient(*case.arguments)
    np.testing.assert_allclose(value, case.function(*case.arguments), rtol=1e-4 if case.single else 1e-9)
    engines = [from_call("jitad", lambda: gradient(*case.arguments)),
               from_call("NumPy", lambda: case.function(*case.arguments))]
    if case.by_hand is not None:
        by_hand = case.by_hand
        np.testing.assert_allclose(first, by_hand(*case.arguments)[1], rtol=1e-3 if case.single else 1e-7, atol=1e-4)
        engines.append(from_call("BLAS", lambda: by_hand(*case.arguments)))
    if case.in_jax is not None:
        engines.append(from_call("JAX", case.in_jax))
    seconds = paired_times(engines, ROUNDS, SECONDS)
    allowed = {"3 x NumPy": 3 * seconds["NumPy"]}
    if "BLAS" in seconds:
        allowed = {"1.1 x BLAS": 1.1 * seconds["BLAS"]}
    if "JAX" in seconds:
        allowed["JAX"] = seconds["JAX"]
    return seconds["jitad"], allowed


def compared(case: Case) -> tuple[float, str, float]:
    """The factor by which the worst yardstick is missed, its name, and the seconds taken."""
    taken, allowed = measure(case)
    worst = max(allowed, key=lambda name: taken / allowed[name])
    return taken / allowed[worst], worst, taken


def main(arguments: list[str]) -> None:
    """Measure the kinds that are named, or all."""
    warnings.simplefilter("ignore", TapeMismatchWarning)
    named = [a for a in arguments if not a.startswith("-")]
    count = short = 0
    for kind in named or KINDS:
        for case in KINDS[kind]():
            found = compared(case)
            for _ in range(1, TRIES):
                found = min(found, compared(case)) if found[0] > 1 else found
            factor, worst, taken = found
            count, short = count + 1, short + (factor > 1)
            if factor > 1 or "--all" in arguments:
                print(f"{kind:12s} {case.name:34s} {readable(taken):>10s}  {factor:5.2f} of {worst}", flush=True)
    print(f"{short} of {count} fall short")


if __name__ == "__main__":
    main(sys.argv[1:])
