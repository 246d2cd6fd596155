"""The compiled density of a posterior: one C function for values and gradients, and words for where it has none."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from jitad.api.transforms import value_and_grad
from jitad.constraints.joint import ParameterBlock, constrained
from jitad.errors import JitadError, NonFiniteError, OutputError, SamplerError, StartError
from jitad.trace.where import is_library_file

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
FINE, NOT_FINITE = 0, 1
FAR = 1e300
NO_DENSITY = (ValueError, ArithmeticError, np.linalg.LinAlgError)    # with which a function refuses a point


class Density:
    """The log density `function` of the free vector, with its data; compiled when it is first needed."""

    def __init__(self, function: Callable[..., Any], blocks: tuple[ParameterBlock, ...], data: tuple[Any, ...]):
        self.function, self.blocks, self.data, self.dim = function, blocks, data, blocks[-1].end
        self.gradient = value_and_grad(function, on_mismatch="silent")
        self._compiled: Any = None

    def compile(self, u: np.ndarray) -> Any:
        """The C function, recorded at `u` if it is not there yet: see `CompiledTape.cfunc`. What does not depend on the
        free vector is computed once."""
        if self._compiled is None:
            self._compiled = self.bound.cfunc(u)
        return self._compiled

    @cached_property
    def bound(self) -> Any:
        """The value and gradient with the data bound."""
        return self.gradient.bind(*self.data)

    @cached_property
    def _call(self) -> Any:
        return _FUNCTION(self._compiled.address)

    def at(self, u: np.ndarray) -> tuple[int, float, np.ndarray]:
        """(status, value, gradient) at a vector; the status is 0 where all of it is finite."""
        u = np.ascontiguousarray(u, dtype=np.float64)
        value, gradient = ctypes.c_double(np.nan), np.full(self.dim, np.nan)
        try:
            data = self.compile(u).data
        except NO_DENSITY as error:
            if isinstance(error, JitadError):
                raise
            return NOT_FINITE, np.nan, gradient
        status = self._call(self.dim, u.ctypes.data, gradient.ctypes.data, ctypes.addressof(value), data)
        if status < 0:
            self.in_python(u)                                  # raises what the function raised
            raise SamplerError(f"the compiled density stopped with status {status}")
        return status, value.value, gradient

    def in_python(self, u: np.ndarray) -> float:
        """The value as the user's own code gives it in NumPy, with its own exceptions."""
        with np.errstate(all="ignore"):
            return float(self.function(u, *self.data))

    def value_and_grad(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Also where they are not finite."""
        status, value, gradient = self.at(u)
        if status == FINE:
            return value, gradient
        return self.bound(u)

    def finite(self, u: np.ndarray) -> bool:
        return self.at(u)[0] == FINE

    def loss(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the value and the gradient; FAR where there is no density, a number that SciPy's line searches bear."""
        status, value, gradient = self.at(u)
        return (-value, -gradient) if status == FINE else (FAR, np.zeros(self.dim))

    # --- where there is no density -------------------------------------------------------------------------
    def why_not(self, u: np.ndarray) -> str:
        """What is wrong at a vector: the exception or the operation with its line, and the parameters concerned."""
        words = self._cause(u)
        with np.errstate(all="ignore"):
            values = constrained(self.blocks, u)[0]
        shown = "; ".join(f"{name} = {_short(values[name])}" for name in self._concerned(u))
        return f"{words}\nThe parameters there: {shown}"

    def _cause(self, u: np.ndarray) -> str:
        try:
            value = self.in_python(u)
        except Exception as error:
            return f"{type(error).__name__}: {error}{raised_at(error)}"
        try:
            self.gradient.check_finite(u, *self.data)
        except NonFiniteError as error:
            return str(error)
        except NO_DENSITY as error:
            return f"{type(error).__name__}: {error}"
        return f"the value is {value}"

    def _concerned(self, u: np.ndarray) -> list[str]:
        """The parameters with respect to which the gradient is not finite; all of them if there is no gradient."""
        try:
            gradient = self.bound(u)[1]
        except Exception:
            return [block.name for block in self.blocks]
        found = [b.name for b in self.blocks if not np.isfinite(gradient[b.begin:b.end]).all()]
        return found or [block.name for block in self.blocks]

    def require(self, u: np.ndarray, where: str) -> None:
        """Raise `StartError` unless the density is finite at `u`."""
        if not self.finite(u):
            raise StartError(f"the density is not finite {where}: {self.why_not(u)}")


def require_number(found: Any) -> None:
    """Raise `OutputError` unless what a density gave is one real number."""
    if np.ndim(found) or np.asarray(found).dtype.kind not in "fiu":
        what = f"an array of shape {np.shape(found)}" if np.ndim(found) else f"a {type(found).__name__}"
        raise OutputError(f"logp must give one real number, not {what}; sum it: np.sum(...)")


def _short(value: Any) -> str:
    return np.array2string(np.asarray(value), threshold=6, edgeitems=2, precision=4).replace("\n", "")


def raised_at(error: BaseException) -> str:
    """Where the user's code raised it: the innermost line that is the user's."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not is_library_file(name):
            found = f" (at {name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found
