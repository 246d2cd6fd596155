"""Products of complex values: functions that are linear in each of several operands, by expansion."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.complexes.parts import function_named, joined
from jitad.trace.dispatch import as_value, builder_in, call, name_of, plain, refused
from jitad.trace.leaves import is_complex
from jitad.trace.ufuncs import apply_ufunc
from jitad.trace.values.pairs import ADVICE, Complex, parts_of

MULTILINEAR: dict[Any, Callable[..., tuple[list[Any], Callable[..., Any]]]] = {}
"""The functions, each with what gives, from its arguments, the operands and what is to be called with them."""


def expanded(operands: list[Any], function: Callable[..., Any]) -> Any:
    """``function(*operands)``, linear in each: the sum over real and imaginary parts of the complex ones."""
    builder = builder_in(operands)
    total: list[Any] = [None, None]
    if not any(isinstance(o, Complex) or is_complex(o) for o in operands):
        raise refused(builder, "a complex value in this argument", ADVICE)

    def descend(taken: list[Any], power: int) -> None:
        if len(taken) == len(operands):
            term = function(*taken)
            part, minus = power % 2, power % 4 >= 2
            before = total[part]
            total[part] = (-term if minus else term) if before is None else (
                before - term if minus else before + term)
            return
        operand = operands[len(taken)]
        if isinstance(operand, Complex) or is_complex(operand):
            re, im = parts_of(builder, operand)
            descend([*taken, re], power)
            descend([*taken, im], power + 1)
        else:
            descend([*taken, operand], power)
    descend([], 0)
    return joined(*total)


def _plainly(function: Any, count: int, conjugated: int | None = None) -> Callable[..., Any]:
    """The first `count` arguments are the operands, one of them perhaps conjugated."""
    def take(*args: Any, **kwargs: Any) -> tuple[list[Any], Callable[..., Any]]:
        operands = [plain(a) for a in args[:count]]
        if len(operands) < count:
            raise refused(builder_in(args, kwargs), f"{name_of(function)} of complex values called by keyword",
                          "pass the arrays by position")
        builder = builder_in(operands)
        operands = [as_operand(builder, o) for o in operands]
        if conjugated is not None and (isinstance(operands[conjugated], Complex)):
            operands[conjugated] = np.conjugate(operands[conjugated])
        return operands, lambda *parts: call_real(function, *parts, *args[count:], **kwargs)
    return take


def as_operand(builder: Any, operand: Any) -> Any:
    """An operand of a product: complex, traced, or a concrete array."""
    if isinstance(operand, Value):
        return operand
    if builder_in(operand) is not None or is_complex(np.asarray(operand) if not isinstance(
            operand, np.ndarray) else operand):
        return as_value(builder, np.asarray(operand) if builder_in(operand) is None else operand)
    return operand


def call_real(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function or ufunc of real operands, traced or not."""
    if builder_in(args) is None:
        return function(*args, **kwargs)
    return ufunc_or_call(function, *args, **kwargs)


def ufunc_or_call(function: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(function, np.ufunc):
        return apply_ufunc(function, *args)
    return call(function, *args, **kwargs)


for _name in ("dot", "matmul", "inner", "outer", "tensordot", "kron", "cross", "convolve", "matvec",
              "linalg.matmul", "linalg.outer", "linalg.tensordot", "linalg.cross"):
    if function_named(_name) is not None:
        MULTILINEAR[function_named(_name)] = _plainly(function_named(_name), 2)
for _name, _conjugated in (("vdot", 0), ("vecdot", 0), ("vecmat", 0), ("linalg.vecdot", 0), ("correlate", 1)):
    if function_named(_name) is not None:
        MULTILINEAR[function_named(_name)] = _plainly(function_named(_name), 2, _conjugated)


def _einsum(*operands: Any, dtype: Any = None, **options: Any) -> tuple[list[Any], Callable[..., Any]]:
    if not isinstance(operands[0], str):
        raise refused(builder_in(operands), "numpy.einsum of complex values with lists of subscripts",
                      "write the subscripts as a string")
    spec, *arrays = operands
    builder = builder_in(arrays)
    return [as_operand(builder, plain(a)) for a in arrays], lambda *parts: call_real(np.einsum, spec, *parts, **options)


def _multi_dot(arrays: Any, **options: Any) -> tuple[list[Any], Callable[..., Any]]:
    builder = builder_in(arrays)
    return [as_operand(builder, plain(a)) for a in arrays], lambda *parts: call_real(np.linalg.multi_dot, list(parts))


MULTILINEAR[np.einsum], MULTILINEAR[np.linalg.multi_dot] = _einsum, _multi_dot
