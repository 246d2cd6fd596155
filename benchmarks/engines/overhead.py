"""What surrounds the kernels: the overhead of a warm call and the time of an import."""

import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.timing import Engine, bind, from_call

Array = np.ndarray
IMPORTS = ("numba, scipy.special", "jitad")


def four_arrays(a: Array, b: Array, c: Array, d: Array) -> float:
    """A function of four small arrays."""
    return np.sum(-0.5 * ((a - b) * c) ** 2 + d * a)


def small_arguments() -> tuple[Array, ...]:
    """Four arrays of eight elements."""
    return tuple(np.random.default_rng(7).normal(size=(4, 8)).copy())


def four_arrays_grad(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The gradient of ``four_arrays`` with respect to a."""
    return d - (a - b) * c**2


def overhead_engines() -> list[Engine]:
    """The gradient of ``four_arrays`` through the decorated function and through its bare kernel."""
    from jitad import jit_grad

    args = small_arguments()
    grad = jit_grad(four_arrays)
    compiled: Any = grad.compile(*args)
    return [from_call("kernel", bind(compiled.kernel, *args)), from_call("call", bind(grad, *args))]


def import_time(modules: str) -> float:
    """Seconds that ``import <modules>`` takes in a new process, without the start of the interpreter."""
    code = f"from time import perf_counter as t; a = t(); import {modules}; print(t() - a)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)
