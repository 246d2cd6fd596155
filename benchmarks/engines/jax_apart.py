"""JAX in a process of its own, where calls are synchronous: ``JAX_CPU_ENABLE_ASYNC_DISPATCH`` counts when JAX starts.

Which of the two ways is faster depends on the model. The child takes a number of calls a line and answers with the
seconds that they took, so that it can be timed in turns with the engines here.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.models.model import Array, Data, Model
from benchmarks.models.outside import models_in
from benchmarks.models.second.table import SECOND
from benchmarks.models.table import MODELS


def jax_call(model: Model, theta: Array, data: Data) -> Callable[[], tuple[float, Array]]:
    """``jit(value_and_grad)`` in float64: theta goes in and the result comes out as NumPy, the data stays with JAX.
    Numbers among the data are part of the program."""
    import jax
    import numpy as np

    logp = model.jax_logp()
    static = tuple(i + 1 for i, a in enumerate(data) if not isinstance(a, np.ndarray))
    f = jax.jit(jax.value_and_grad(logp), static_argnums=static)
    on_device = tuple(jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in data)

    def call() -> tuple[float, Array]:
        value, grad = f(theta, *on_device)
        return float(value), np.asarray(grad)

    return call


def root_environment() -> dict[str, str]:
    """The environment for a new process that is to find this package."""
    root = str(Path(__file__).resolve().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])}


class Apart:
    """The child of one model; `seconds(n)` is the time of n calls."""

    def __init__(self, name: str, folders: tuple[Path, Path] | None):
        environment = {**root_environment(), "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false"}
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.engines.jax_apart", name, *map(str, folders or ())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self._answer()

    def _answer(self) -> float:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise ChildProcessError("JAX's own process has ended")
        return float(line)

    def seconds(self, n: int) -> float:
        assert self.process.stdin is not None
        print(n, file=self.process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        self.process.communicate()


def main(arguments: Any) -> None:
    """Serve the calls of one model until the input ends."""
    name, *folders = arguments
    model = (models_in(*map(Path, folders)) if folders else {**MODELS, **SECOND})[name]
    theta, data = model.problem()
    call = jax_call(model, theta, data)
    call()
    print(0.0, flush=True)
    for line in sys.stdin:
        start = perf_counter()
        for _ in repeat(None, int(line)):
            call()
        print(perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
