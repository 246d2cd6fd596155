"""The functions of `cmath` in recorded code: NumPy's on complex numbers, with the exceptions of `cmath`."""
from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.dispatch import COMPLEX, builder_in, refused
from jitad.trace.substitutes import substitute
from jitad.trace.values.pairs import Complex, pair
from jitad.trace.values.seen import as_python

__all__: list[str] = []


def _operand(builder: Any, x: Any) -> Any:
    """A number as Python's complex, as `cmath` takes it."""
    return as_python(x, complex) if isinstance(x, Value) else COMPLEX.constant(builder, complex(x))


def _finite(z: Any) -> Value:
    with z.builder.plain():
        parts = [TABLE["isfinite"](Value(z.builder, part.number)) for part in (z.re, z.im)]
        both: Value = TABLE["logical_and"](*parts)
        return both


def _checked(function: Callable[..., Any], result: Any, operands: list[Any]) -> Any:
    """The result, which must be finite of finite numbers: `cmath` raises there."""
    recorder = result.builder
    with recorder.plain():
        bad = TABLE["logical_not"](_finite(result))
        for z in operands:
            bad = TABLE["logical_and"](bad, _finite(z))
    if recorder.decide(bad):
        function(*(complex(*(recorder.concrete(part.number).item() for part in (z.re, z.im))) for z in operands))
        raise refused(result, f"cmath.{function.__name__} of a number for which NumPy and cmath disagree whether it is "
                      "an error", "use NumPy's function")
    return result


def _enter(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    @substitute(function)
    def impl(z: Any, /) -> Any:
        operand = _operand(builder_in(z), z)
        return _checked(function, as_python(ufunc(operand), complex), [operand])


for _name in "exp log10 sqrt sin cos tan sinh cosh tanh".split():
    _enter(getattr(cmath, _name), getattr(np, _name))


@substitute(cmath.log)
def log(z: Any, base: Any = None, /) -> Any:
    builder = builder_in(z, base)
    z = _operand(builder, z)
    result = _checked(cmath.log, as_python(np.log(z), complex), [z])
    return result if base is None else as_python(result / log(_operand(builder, base)), complex)


@substitute(cmath.phase)
def phase(z: Any, /) -> Any:
    z = _operand(builder_in(z), z)
    return as_python(np.arctan2(z.im, z.re), float)


@substitute(cmath.polar)
def polar(z: Any, /) -> Any:
    z = _operand(builder_in(z), z)
    return as_python(np.absolute(z), float), phase(z)


@substitute(cmath.rect)
def rect(r: Any, phi: Any, /) -> Any:
    builder = builder_in(r, phi)
    r, phi = (as_python(builder.lift(x), float) for x in (r, phi))              # type: ignore[union-attr]
    z: Complex = pair(r * np.cos(phi), r * np.sin(phi))
    return as_python(z, complex)


def _asks(function: Callable[..., Any], ufunc: np.ufunc, join: np.ufunc) -> None:
    @substitute(function)
    def impl(z: Any, /) -> Any:
        z = _operand(builder_in(z), z)
        return as_python(join(ufunc(z.re), ufunc(z.im)))


_asks(cmath.isfinite, np.isfinite, np.logical_and)
_asks(cmath.isnan, np.isnan, np.logical_or)
_asks(cmath.isinf, np.isinf, np.logical_or)
