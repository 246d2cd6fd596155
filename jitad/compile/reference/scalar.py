"""Scalar expressions evaluated by NumPy, elementwise over arrays: their meaning in Python.

Tests compare the emitters and the rows' scalar code with it. It is strict where machines differ
or trap: integer division by zero, overflow of the lowest integer by -1, and arithmetic on
booleans are errors.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from jitad.compile.math.algorithms import ALGORITHMS
from jitad.primitives.numeric import ARRAYS
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape.expr import Expr

DTYPES: dict[str, np.dtype[Any]] = {
    "f8": np.dtype(np.float64), "f4": np.dtype(np.float32), "i8": np.dtype(np.int64), "b1": np.dtype(np.bool_)}
LOWEST = np.iinfo(np.int64).min

_NUMPY = ("exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh "
          "arctanh cbrt hypot fmod logaddexp")
_SCIPY = ("expit log_expit logit erf erfc erfcx digamma ndtr log_ndtr ndtri erfinv erfcinv i0 i1 i0e i1e betaln")
MATH: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _NUMPY.split()},
    **{name: getattr(special, name) for name in _SCIPY.split()},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power, "lgamma": special.gammaln,
    "gamma_function": special.gamma, "log1p_exp": lambda x: np.log1p(np.exp(x)),
    "exp_share": lambda x: np.exp(x) / (1.0 + np.exp(x)),
}
"""The functions behind the names that are not machine operations; they compute in float64."""


def math_function(name: str) -> Callable[..., Any] | None:
    """The function of that name in `MATH`, or after ``special_`` one of ours or of SciPy."""
    if name in ALGORITHMS:
        return partial(ALGORITHMS[name], ARRAYS)
    plain = name.removeprefix("special_")
    if plain == name:
        return MATH.get(name)
    found = getattr(ufuncs, plain, None)
    if found is None:
        plain, _, place = plain.rpartition("_")
        return lambda *operands: getattr(ufuncs, plain)(*operands)[int(place)]
    return found


def _divide(a: Any, b: Any) -> Any:
    """C division: floats by IEEE 754, integers truncated."""
    if a.dtype.kind == "f":
        return a / b
    if np.any(b == 0) or np.any((a == LOWEST) & (b == -1)):
        raise ZeroDivisionError("an integer division would trap: guard the divisor")
    exact = a // b
    return exact + ((exact * b != a) & ((a < 0) != (b < 0)))


def _shift_right(a: Any, b: Any) -> Any:
    return (a.view(np.uint64) >> b.astype(np.uint64)).view(np.int64)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "neg": np.negative, "abs": np.absolute,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "copysign": np.copysign,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.logical_not,
    "shl": np.left_shift, "ashr": np.right_shift, "lshr": _shift_right, "select": np.where,
}
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg", "abs"})
LEAVES = frozenset({"const", "var"})


def evaluate(expr: Expr, variables: Mapping[str, Any]) -> np.ndarray:
    """The value of `expr` with `variables` for its variables, as an array of its dtype.

    >>> from jitad.tape.expr import call, var
    >>> x = var("x", "f8")
    >>> evaluate(x * call("exp", -x), {"x": [0.0, 1.0]})
    array([0.        , 0.36787944])
    """
    values: dict[int, np.ndarray] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        operands = [] if node.op in LEAVES else [a for a in node.args if isinstance(a, Expr)]
        missing = [a for a in operands if id(a) not in values]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if id(node) not in values:
            with np.errstate(all="ignore"):
                values[id(node)] = _operation(node, [values[id(a)] for a in operands], variables)
    return values[id(expr)]


def _operation(node: Expr, operands: list[np.ndarray], variables: Mapping[str, Any]) -> np.ndarray:
    """One operation on evaluated operands."""
    dtype = DTYPES[node.dtype]
    if node.op == "var":
        return np.asarray(variables[node.args[0]], dtype)
    if node.op == "const":
        return _literal(node.args[0], dtype)
    if node.op == "load":
        buffer = np.asarray(variables[node.args[0]], dtype)
        return np.asarray(buffer[tuple(operands)])
    if node.op in ("bits", "unbits"):
        return np.ascontiguousarray(operands[0]).view(dtype).reshape(operands[0].shape)
    if node.op == "cast":
        return operands[0].astype(dtype)
    if node.op in ARITHMETIC and node.dtype == "b1":
        raise TypeError(f"{node.op} of booleans: use and, or, xor")
    if node.op in OPERATIONS:
        _check_operands(node, operands)
        return np.asarray(OPERATIONS[node.op](*operands), dtype)
    doubles = [o.astype(np.float64) for o in operands]
    function = math_function(node.op)
    if function is None:
        raise NotImplementedError(f"no meaning of the operation {node.op!r}")
    return np.asarray(function(*doubles), np.float64).astype(dtype)


def _check_operands(node: Expr, operands: list[np.ndarray]) -> None:
    """Machine operations take operands of one dtype."""
    compared = operands[1:] if node.op == "select" else operands
    if len({o.dtype for o in compared}) > 1:
        raise TypeError(f"{node.op} of operands of different dtypes: {[str(o.dtype) for o in compared]}")


def _literal(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """A literal; int64 literals may be written unsigned."""
    if dtype.kind == "i":
        return np.asarray((int(value) + 2**63) % 2**64 - 2**63, dtype)
    return np.asarray(value, dtype)
