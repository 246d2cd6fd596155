"""What memory a gradient takes beyond its inputs: ``python -m benchmarks.memory``, on Linux.

The peak of a warm call is measured, jitad's beside the hand-written kernel's. Aim: inputs and peak together at most 1.2
times what they are by hand.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmarks  # noqa: I001, F401  (sets the number of threads; before NumPy)

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.handwritten import densities as handwritten
from benchmarks.models import densities

AIM = 1.2


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def peak(call: Callable[[], Any]) -> int:
    """Bytes that a call adds to the resident memory at its peak."""
    call()
    Path("/proc/self/clear_refs").write_text("5")            # the peak starts again from what is there
    before = _status("VmRSS")
    call()
    return max(_status("VmHWM") - before, 0)


def problems(rows: int) -> dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]:
    """By name: the density, its hand-written kernel, the arguments."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    X = rng.normal(size=(rows // 20, 100))
    return {
        "logistic": (densities.logistic_1d, handwritten.logistic_1d,
                     (np.array([0.3, -0.8]), x, np.round(rng.random(rows)))),
        "glm": (densities.logistic, handwritten.glm, (rng.normal(size=100), X, np.round(rng.random(len(X))))),
    }


def measure(density: Callable[..., Any], by_hand: Callable[..., Any],
            arguments: tuple[Any, ...]) -> tuple[int, int, int]:
    """Bytes of the inputs, and of the peaks of jitad and of the hand-written kernel."""
    from jitad import value_and_grad

    g = value_and_grad(density)
    return sum(a.nbytes for a in arguments), peak(lambda: g(*arguments)), peak(lambda: by_hand(*arguments))


def main(rows: int = 1_000_000) -> None:
    print(f"{'':10}{'inputs':>12}{'jitad':>12}{'by hand':>12}{'ratio':>8}   (at most {AIM:g} wanted)")
    for name, (density, by_hand, arguments) in problems(rows).items():
        inputs, ours, theirs = measure(density, by_hand, arguments)
        print(f"{name:10}{inputs / 1e6:9.2f} MB{ours / 1e6:9.2f} MB{theirs / 1e6:9.2f} MB"
              f"{(inputs + ours) / (inputs + theirs):8.3f}")


if __name__ == "__main__":
    main()
