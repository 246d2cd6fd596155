"""Functions that act on the real and the imaginary parts of complex values alike: structural and linear ones."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from jitad.primitives.core import full
from jitad.tape.builder import Value
from jitad.trace.dispatch import FUNCTIONS, builder_in, call, complex_in, name_of, refused
from jitad.trace.leaves import is_complex
from jitad.trace.numpy_rules import functions as numpy_functions  # noqa: F401  (fills the table)
from jitad.trace.values.pairs import ADVICE, Complex, pair

PARTWISE: dict[Any, tuple[str, ...]] = {}
"""The functions, with the names of the parameters that are data; none: the first."""

_SIGNATURES: dict[Any, inspect.Signature] = {}


def partwise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function of the real parts and of the imaginary parts of its data."""
    signature = _SIGNATURES.get(function)
    if signature is None:
        signature = _SIGNATURES[function] = inspect.signature(FUNCTIONS[function])
    bound = signature.bind(*args, **kwargs)
    names = PARTWISE[function] or (next(iter(signature.parameters)),)
    other = [n for n, v in bound.arguments.items() if n not in names and complex_in(v)]
    if other:
        raise refused(builder_in(args, kwargs), f"{name_of(function)} with complex {', '.join(other)}", ADVICE)
    found = []
    for part in (0, 1):
        arguments = {n: part_of(v, part) if n in names else v for n, v in bound.arguments.items()}
        taken = inspect.BoundArguments(signature, arguments)              # type: ignore[arg-type]
        builder = builder_in(taken.args, taken.kwargs)
        found.append(call(function, *taken.args, **taken.kwargs) if builder is not None else function(
            *taken.args, **taken.kwargs))
    return joined(*found)


def part_of(value: Any, part: int) -> Any:
    """Real (0) or imaginary (1) parts of data, also in lists; of what is real the latter is 0."""
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(part_of(v, part) for v in value)     # named ones too
    if isinstance(value, Complex):
        return value.im if part else value.re
    if is_complex(value):
        return value.imag if part else value.real
    if not part or value is np._NoValue or value is None:
        return value
    if isinstance(value, Value):
        return full(value, 0, value.shape, value.dtype)
    return value * 0


def joined(re: Any, im: Any) -> Any:
    """The complex values of two results of one structure."""
    if isinstance(re, (list, tuple)):
        parts = [joined(a, b) for a, b in zip(re, im, strict=True)]
        return type(re)(parts) if type(re) in (list, tuple) else type(re)(*parts)
    if isinstance(re, Value) and isinstance(im, Value) and re.dtype == im.dtype and re.dtype.kind == "f":
        return Complex(re, im)
    return pair(re, im)


_FIRST = """reshape ravel transpose matrix_transpose permute_dims swapaxes moveaxis rollaxis expand_dims squeeze flip
fliplr flipud rot90 diagonal broadcast_to split array_split hsplit vsplit dsplit unstack sum mean cumsum cumulative_sum
roll repeat tile trapezoid trace tril triu take take_along_axis compress delete diag diagflat average resize copy
linalg.diagonal linalg.trace linalg.matrix_transpose gradient extract
fft.fftshift fft.ifftshift""".split()
_SEVERAL = {
    "concatenate": "arrays", "stack": "arrays", "hstack": "tup", "vstack": "tup", "dstack": "tup",
    "column_stack": "tup", "append": "arr values", "block": "arrays", "broadcast_arrays": "args", "where": "branches",
    "select": "choicelist default", "insert": "arr values", "pad": "array constant_values", "diff": "a prepend append",
    "ediff1d": "ary to_end to_begin", "atleast_1d": "arys", "atleast_2d": "arys", "atleast_3d": "arys",
    "choose": "choices"}


def function_named(name: str) -> Any:
    found: Any = np
    for step in name.split("."):
        found = getattr(found, step, None)
    return found


def fill() -> None:
    """Enter the functions that act part by part."""
    for name in _FIRST:
        if function_named(name) in FUNCTIONS:
            PARTWISE[function_named(name)] = ()
    for name, parameters in _SEVERAL.items():
        if function_named(name) in FUNCTIONS:
            PARTWISE[function_named(name)] = tuple(parameters.split())


fill()
