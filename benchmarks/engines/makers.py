"""The engines under comparison, each made for a model; what they are is said in `timing`.

jitad and JAX are imported only when an engine of theirs is made.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.checks import ValueAndGrad
from benchmarks.engines import peers
from benchmarks.handwritten.lowlevel import call_address, loop
from benchmarks.models.model import Array, Data, Model, fresh
from benchmarks.models.table import MODELS
from benchmarks.timing import Engine, bind, from_call


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
    from benchmarks.engines.jax_apart import jax_call

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

    from benchmarks.engines.jax_apart import jax_call

    jax.clear_caches()
    return jax_call(model, theta, data)
