"""The engines under comparison, behind one face: a callable without arguments and a loop that calls it many times.

jitad and JAX are imported only when an engine of theirs is made.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import repeat
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.lowlevel import call_address, loop
from benchmarks.models import MODELS, Data, Model, fresh

Array = np.ndarray
LEAST = 3                     # turns of the slowest engine
ValueAndGrad = tuple[float, Array]


@dataclass(frozen=True)
class Engine:
    """``call()`` gives (value, gradient) once; ``run(n)`` does the same n times as cheaply as it can, and returns the
    seconds that this took if it knows better than a clock around it.

    ``owner`` is kept alive with the engine.
    """

    name: str
    call: Callable[[], Any]
    run: Callable[[int], float | None]
    owner: Any = None

    def seconds(self, n: int) -> float:
        """The time of n calls."""
        start = perf_counter()
        known = self.run(n)
        return perf_counter() - start if known is None else known


def from_call(name: str, call: Callable[[], Any]) -> Engine:
    """An engine that Python calls each time."""

    def run(n: int) -> None:
        for _ in repeat(None, n):
            call()

    return Engine(name, call, run)


def from_run(name: str, seconds: Callable[[int], float]) -> Engine:
    """An engine elsewhere, of which only the time of n calls is known."""
    return Engine(name, lambda: seconds(1), seconds)


def bind(f: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """``f(*args)`` without arguments; a lambda is cheaper than a partial here."""
    if len(args) == 2:
        a, b = args
        return lambda: f(a, b)
    if len(args) == 3:
        a, b, c = args
        return lambda: f(a, b, c)
    if len(args) == 4:
        a, b, c, d = args
        return lambda: f(a, b, c, d)
    return lambda: f(*args)


def handwritten_engine(model: Model, theta: Array, data: Data) -> Engine:
    """The numba kernel of ``handwritten``, called from Python."""
    assert model.numba_value_and_grad is not None
    return from_call("handwritten", bind(model.numba_value_and_grad, theta, *data))


def jitad_engine(model: Model, theta: Array, data: Data) -> Engine:
    """``value_and_grad`` of the log density, called from Python."""
    from jitad import value_and_grad

    return from_call("jitad", bind(value_and_grad(model.logp), theta, *data))


def pointer_engine(model: Model, theta: Array, data: Data) -> Engine:
    """The C function that jitad gives to samplers, called from a compiled loop."""
    from jitad import jit_grad

    cfunc = jit_grad(model.logp).compile(theta, *data).cfunc
    x, grad, value = theta.copy(), np.empty_like(theta), np.empty(1)
    address, pointer = _as_integer(cfunc.address), _as_integer(cfunc.data)

    def run(n: int) -> None:
        _run_pointer(address, pointer, x, grad, value, n)

    def call() -> ValueAndGrad:
        status = _run_pointer(address, pointer, x, grad, value, 1)
        if status:
            raise ArithmeticError(f"the C function of {model.name} returned {status}")
        return float(value[0]), grad.copy()

    return Engine("jitad C", call, run, owner=cfunc)  # it holds what the addresses point to


def _as_integer(pointer: Any) -> int:
    """An address, given as an integer or as a ctypes pointer, as signed 64 bits."""
    address = getattr(pointer, "value", pointer) or 0
    return address - (1 << 64) if address >= 1 << 63 else address


@loop
def _run_pointer(address: int, data: int, x: Array, grad: Array, value: Array, n: int) -> int:
    """Call the function n times; 0 if it always returned 0."""
    status = 0
    for _ in range(n):
        status |= call_address(address, x.shape[0], x.ctypes.data, grad.ctypes.data, value.ctypes.data, data)
    return status


def jax_engine(model: Model, theta: Array, data: Data) -> Engine:
    """``jit(value_and_grad)``, with asynchronous calls."""
    from benchmarks.jax_apart import jax_call

    return from_call("jax", jax_call(model, theta, data))


def autograd_engine(model: Model, theta: Array, data: Data) -> Engine:
    """autograd's ``value_and_grad``."""
    from autograd import value_and_grad

    return from_call("autograd", bind(value_and_grad(model.autograd_logp()), theta, *data))


def pytensor_engine(model: Model, theta: Array, data: Data) -> Engine:
    """PyTensor in numba mode, on the models of ``peers``."""
    return from_call("pytensor", bind(peers.pytensor_function(model.name, theta, data), theta))


def casadi_engine(model: Model, theta: Array, data: Data) -> Engine:
    """CasADi, on the models of ``peers``."""
    return from_call("casadi", bind(peers.casadi_function(model.name, theta, data), theta))


MAKERS: dict[str, Callable[[Model, Array, Data], Engine]] = {
    "handwritten": handwritten_engine,
    "jitad": jitad_engine,
    "jitad C": pointer_engine,
    "jax": jax_engine,
    "autograd": autograd_engine,
    "pytensor": pytensor_engine,
    "casadi": casadi_engine,
}


def installed(package: str) -> bool:
    """Whether a package can be imported; a folder without ``__init__`` does not count."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def available(model: Model | None = None) -> list[str]:
    """Names of the engines whose packages are installed, and which have the model if one is given."""
    names = [name for name in MAKERS if name == "handwritten" or installed(name.split()[0])]
    if model is None:
        return names
    lacking = {"pytensor", "casadi"} if model.name not in peers.DENSITIES or model.name not in MODELS else set()
    return [name for name in names if name not in lacking and (name != "handwritten" or model.numba_value_and_grad)]


def first_call(name: str, model: Model, theta: Array, data: Data) -> Callable[[], Any]:
    """Forget all that ``name`` has compiled, then return the call that compiles the model anew."""
    if name == "jitad":
        from jitad import cache, value_and_grad
        from jitad.trace import templates

        cache.clear()
        templates.forget()
        return bind(value_and_grad(fresh(model.logp)), theta, *data)
    import jax

    from benchmarks.jax_apart import jax_call

    jax.clear_caches()
    return jax_call(model, theta, data)


def assert_same(result: ValueAndGrad, expected: ValueAndGrad, rtol: float = 1e-9) -> None:
    """Equal values, and gradients equal in proportion to their largest element."""
    np.testing.assert_allclose(result[0], expected[0], rtol=rtol)
    scale = float(np.max(np.abs(expected[1])))
    np.testing.assert_allclose(result[1], expected[1], rtol=rtol, atol=rtol * scale)


def paired_times(engines: list[Engine], rounds: int = 30, seconds: float = 4e-3) -> dict[str, float]:
    """Best time of one call in seconds for each engine, measured in turns so that all meet the same noise. An engine
    that a single call keeps for long has fewer turns."""
    counts = [calls_within(engine, seconds) for engine in engines]
    best, spent = [float("inf")] * len(engines), [0.0] * len(engines)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            for k, engine in enumerate(engines):
                if turn < LEAST or spent[k] < 2 * rounds * seconds:
                    taken = engine.seconds(counts[k])
                    spent[k] += taken
                    best[k] = min(best[k], taken / counts[k])
    finally:
        if collecting:
            gc.enable()
    return {engine.name: time for engine, time in zip(engines, best, strict=True)}


def calls_within(engine: Engine, seconds: float) -> int:
    """How many calls take about that long (at least one)."""
    engine.call()
    n = 1
    while True:
        elapsed = engine.seconds(n)
        if elapsed >= seconds / 2:
            return max(1, round(n * seconds / elapsed))
        n *= 2
