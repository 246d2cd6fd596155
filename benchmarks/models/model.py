"""What a model is: a log density in plain NumPy, its data, and the same source under JAX and autograd."""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from scipy import special

Array = np.ndarray
Data = tuple[Array, ...]


@dataclass(frozen=True)
class Model:
    """One log density, its data, and its hand-written derivative if there is one.

    ``jax`` makes the density for JAX where its source does not do as it is.
    """

    name: str
    logp: Callable[..., Any]
    make: Callable[[np.random.Generator], tuple[Array, Data]]
    numba_value_and_grad: Callable[..., tuple[float, Array]] | None = None
    jax: Callable[[], Callable[..., Any]] | None = None

    def jax_logp(self) -> Callable[..., Any]:
        """The density for JAX, in float64."""
        import jax

        jax.config.update("jax_enable_x64", True)
        if self.jax is not None:
            return self.jax()
        return rebound(self.logp, jax.numpy, __import__("jax.scipy.special").scipy.special)

    def autograd_logp(self) -> Callable[..., Any]:
        """The same source under autograd."""
        import autograd.numpy
        import autograd.scipy.special

        return rebound(self.logp, autograd.numpy, autograd.scipy.special)

    def problem(self) -> tuple[Array, Data]:
        """The starting point and the data; the same in every run."""
        return self.make(np.random.default_rng(20240229))


def fresh(f: Callable[..., Any]) -> FunctionType:
    """A new function object with the code of ``f``."""
    return FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def rebound(f: Callable[..., Any], numpy: Any, scipy_special: Any) -> FunctionType:
    """A copy of ``f``, and of the functions of its module that it may call, with other modules for NumPy and
    scipy.special."""
    names: dict[str, Any] = {}
    for name, value in f.__globals__.items():
        if value is np:
            value = numpy
        elif value is special:
            value = scipy_special
        elif callable(value) and value is getattr(special, name, None):
            value = getattr(scipy_special, name, value)
        elif isinstance(value, FunctionType) and value.__module__ == f.__module__:
            value = FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
        names[name] = value
    return FunctionType(f.__code__, names, f.__name__, f.__defaults__, f.__closure__)
