"""Arithmetic and elementary functions of complex values, by their real parts.

Every rule takes parts ``(re, im)`` of each operand, of which the imaginary one is the constant 0 for what is real, and
gives parts. Signs of zeros and infinities are NumPy's, since branch cuts depend on them, but for one thing: what is a
constant without real part, such as 1j, has none in products, as in C99 (Annex G), so that ``np.exp(1j * x)`` needs no
second exponential. Formulas: W. Kahan, Branch cuts for complex elementary functions (1987); division by R. L. Smith,
CACM 5 (1962) 435.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import full, select
from jitad.tape.types import TABLE, Primitive, seen_through
from jitad.trace import ufuncs
from jitad.trace.dispatch import COMPLEX, builder_in, name_of, refused
from jitad.trace.values.pairs import ADVICE, Complex, constant, is_zero, pair, parts_of

Parts = tuple[Any, Any]
RULES: dict[np.ufunc, Callable[..., Any]] = {}
LARGEST_POWER = 100                        # below which NumPy multiplies

r: dict[str, Primitive] = TABLE


def apply(ufunc: np.ufunc, *operands: Any) -> Any:
    """``ufunc(*operands)``, at least one operand being complex and one traced."""
    builder = builder_in(operands)
    if ufunc in FUNCTIONS:
        return COMPLEX.function(FUNCTIONS[ufunc], operands, {})
    if ufunc not in RULES:
        raise refused(builder, f"{name_of(ufunc)} of complex values", ADVICE)
    boxed = any(getattr(o, "boxed", False) for o in operands)
    found = RULES[ufunc](*(parts_of(builder, o) for o in operands))
    if not isinstance(found, tuple):
        return found
    result = pair(*found)
    if boxed and not result.ndim:
        result.boxed = result.re.boxed = result.im.boxed = True
    return result


def rule(*functions: np.ufunc) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(functions, impl))
        return impl
    return enter


# --- sums of products with zeros ---------------------------------------------------------------------

def _known(x: Any) -> Any:
    """The value of a constant, else None."""
    return x.node.constant


def _product(a: Any, b: Any) -> Any:
    """``a * b``, or None for nothing. A factor 0 of what is real says only what sign a zero has, and is no way for a
    derivative."""
    if is_zero(a) or is_zero(b):
        return None
    return a * b


def _sign_of_zero(a: Any, zero: Any) -> Any:
    """``a * 0``, which matters for the signs of zeros and for infinities; None where `a` itself is nothing."""
    if is_zero(a):
        return None
    known = _known(a)
    if known is not None and np.all(np.isfinite(known)):
        product = known * 0.0
        return None if not np.signbit(product).any() else a.builder.const(product)
    return r["stop_gradient"](a * 0.0)


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _minus(a: Any, b: Any) -> Any:
    return a if b is None else -b if a is None else a - b


def _or_zero(x: Any, like: Any) -> Any:
    return like.builder.const(np.zeros((), like.dtype if like.dtype.kind == "f" else float)) if x is None else x


def _is_real(z: Parts) -> bool:
    """Whether the imaginary part is the constant 0 of an operand that is real."""
    return is_zero(z[1]) and not np.signbit(_constant_of(z[1]))


def _constant_of(x: Any) -> Any:
    value: Any = seen_through(x.builder.nodes, x.node).constant
    return value.ravel()[0]


# --- arithmetic --------------------------------------------------------------------------------------

@rule(np.add)
def add(a: Parts, b: Parts) -> Parts:
    return a[0] + b[0], a[1] + b[1]


@rule(np.subtract)
def subtract(a: Parts, b: Parts) -> Parts:
    return a[0] - b[0], a[1] - b[1]


@rule(np.negative)
def negative(a: Parts) -> Parts:
    return -a[0], -a[1]


@rule(np.positive)
def positive(a: Parts) -> Parts:
    return a


@rule(np.conjugate)
def conjugate(a: Parts) -> Parts:
    return a[0], -a[1]


@rule(np.multiply)
def multiply(a: Parts, b: Parts) -> Parts:
    (ar, ai), (br, bi) = a, b
    if _is_real(a) and _is_real(b):
        return ar * br, ai
    if _is_real(a):
        return multiply(b, a)
    if _is_real(b):
        re, im = _product(ar, br), _product(ai, br)
        if not is_zero(ar):
            re = _minus(re, _sign_of_zero(ai, bi))
            im = _plus(im, _sign_of_zero(ar, bi))
        return _or_zero(re, br), _or_zero(im, br)
    re = _minus(_product(ar, br), _product(ai, bi))
    im = _plus(_product(ar, bi), _product(ai, br))
    if is_zero(ar) or is_zero(br):
        im = _or_zero(im, br) + 0.0
    return _or_zero(re, br), _or_zero(im, br)


@rule(np.square)
def square(a: Parts) -> Parts:
    ar, ai = a
    if is_zero(ar):
        return -(ai * ai), ar
    cross = ar * ai
    return ar * ar - ai * ai, cross + cross


@rule(np.true_divide)
def divide(a: Parts, b: Parts) -> Parts:
    """Smith's algorithm, its two cases by one formula."""
    (ar, ai), (br, bi) = a, b
    if _is_real(b):
        below = br + 0.0                                            # NumPy divides by |0|
        ratio = r["stop_gradient"](r["copysign"](0.0, below))
        return (ar + r["stop_gradient"](ai * ratio)) / below, (ai - r["stop_gradient"](ar * ratio)) / below
    wide = r["abs"](br) >= r["abs"](bi)
    large, small = select(wide, br, bi), select(wide, bi, br)
    nothing = r["eq"](large, 0.0)
    ratio = select(nothing, 0.0, small / large)
    scale = 1.0 / (select(nothing, r["abs"](large), large) + small * ratio)
    first, second = select(wide, ar, ai), select(wide, ai, ar)
    im = (second - first * ratio) * scale
    return (first + second * ratio) * scale, select(wide, im, -im)


@rule(np.reciprocal)
def reciprocal(a: Parts) -> Parts:
    return divide((_number(a[0], 1.0), _number(a[0], 0.0)), a)


def _number(like: Any, x: float) -> Any:
    return like.builder.const(np.asarray(x, like.dtype if like.dtype.kind == "f" else np.float64))


@rule(np.power, np.float_power)
def power(a: Parts, b: Parts) -> Parts:
    """Repeated products for small whole exponents, the root for 0.5, else ``exp(b * log(a))``; powers of 0 are 0."""
    exponent = _known(b[0]) if _is_real(b) else None
    if exponent is not None and exponent.ndim == 0:
        if float(exponent) == 0.5:
            return sqrt(a)
        if float(exponent).is_integer() and abs(exponent) < LARGEST_POWER:
            return _whole_power(a, int(exponent))
    br, bi = b
    nothing = r["logical_and"](r["eq"](a[0], 0.0), r["eq"](a[1], 0.0))
    safe = select(nothing, 1.0, a[0]), a[1]
    re, im = exp(multiply(b, log(safe)))
    unit = r["logical_and"](r["eq"](br, 0.0), r["eq"](bi, 0.0))
    of_zero = select(unit, 1.0, select(r["gt"](br, 0.0), 0.0, np.nan))
    return (select(nothing, of_zero, select(unit, 1.0, re)),
            select(nothing, select(unit, 0.0, of_zero), select(unit, 0.0, im)))


def _whole_power(a: Parts, n: int) -> Parts:
    if n == 0:
        return full(a[0], 1.0, a[0].shape, np.result_type(a[0].dtype, np.float32)), _number(a[0], 0.0)
    result, base, left = None, a, abs(n)
    while True:
        if left & 1:
            result = base if result is None else multiply(result, base)
        left >>= 1
        if not left:
            break
        base = square(base)
    assert result is not None
    return reciprocal(result) if n < 0 else result


# --- exponentials and logarithms -----------------------------------------------------------------------

@rule(np.exp)
def exp(a: Parts) -> Parts:
    ar, ai = a
    if is_zero(ar):
        return r["cos"](ai), r["sin"](ai)
    size = r["exp"](ar)
    if is_zero(ai):
        return size, ai
    return _times(size, r["cos"](ai)), select(r["eq"](ai, 0.0), ai, _times(size, r["sin"](ai)))


def _times(size: Any, phase: Any) -> Any:
    """The product, 0 where the size is: the phase may be that of an infinity."""
    return select(r["eq"](size, 0.0), 0.0, size * phase)


@rule(np.exp2)
def exp2(a: Parts) -> Parts:
    return exp(multiply(a, (_number(a[0], math.log(2.0)), _number(a[0], 0.0))))


@rule(np.expm1)
def expm1(a: Parts) -> Parts:
    """``expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y)``."""
    half = r["sin"](0.5 * a[1])
    return r["expm1"](a[0]) * r["cos"](a[1]) - 2.0 * half * half, r["exp"](a[0]) * r["sin"](a[1])


@rule(np.log)
def log(a: Parts) -> Parts:
    return r["log"](absolute(a)), r["arctan2"](a[1], a[0])


@rule(np.log2)
def log2(a: Parts) -> Parts:
    return r["log2"](absolute(a)), r["arctan2"](a[1], a[0]) * (1.0 / math.log(2.0))


@rule(np.log10)
def log10(a: Parts) -> Parts:
    return r["log10"](absolute(a)), r["arctan2"](a[1], a[0]) * (1.0 / math.log(10.0))


@rule(np.log1p)
def log1p(a: Parts) -> Parts:
    """``log1p(2x + x^2 + y^2) / 2`` near 0."""
    near = r["lt"](r["abs"](a[0]) + r["abs"](a[1]), 0.5)
    x, y = select(near, a[0], 0.0), select(near, a[1], 0.0)
    right = a[0] + 1.0
    return (select(near, 0.5 * r["log1p"](x * (2.0 + x) + y * y), r["log"](absolute((right, a[1])))),
            r["arctan2"](a[1], right))


@rule(np.sqrt)
def sqrt(a: Parts) -> Parts:
    """``t = sqrt((|x| + |z|) / 2)``; t and y / 2t, or |y| / 2t and t with the sign of y."""
    x, y = a
    right, sign = r["ge"](x, 0.0), r["stop_gradient"](r["copysign"](1.0, y))
    infinite = r["isinf"](y)
    t = select(infinite, np.inf, r["sqrt"](0.5 * (select(right, x, -x) + absolute(a))))
    other = select(r["eq"](t, 0.0), r["abs"](y), select(infinite, t, sign * y / (2.0 * t)))
    return select(right, t, other), sign * select(right, other, t)


# --- real results ------------------------------------------------------------------------------------------

@rule(np.absolute)
def absolute(a: Parts) -> Any:
    """Without overflow; its derivative at 0 is 0."""
    return r["hypot"](*a)


@rule(np.sign)
def sign(a: Parts) -> Parts:
    size = absolute(a)
    nothing = r["eq"](size, 0.0)
    safe = select(nothing, 1.0, size)
    return a[0] / safe, a[1] / safe


def angle(z: Any) -> Any:
    """The argument, in (-pi, pi]."""
    re, im = parts_of(builder_in(z), z)
    return r["arctan2"](im, re)


@rule(np.equal)
def equal(a: Parts, b: Parts) -> Any:
    return r["logical_and"](r["eq"](a[0], b[0]), r["eq"](a[1], b[1]))


@rule(np.not_equal)
def not_equal(a: Parts, b: Parts) -> Any:
    return r["logical_or"](r["ne"](a[0], b[0]), r["ne"](a[1], b[1]))


def _asked(ufunc: np.ufunc, join: str) -> None:
    """A question about one number, asked of both parts."""
    @rule(ufunc)
    def ask(a: Parts) -> Any:
        return r[join](ufuncs.apply_ufunc(ufunc, a[0]), ufuncs.apply_ufunc(ufunc, a[1]))


def _logical(ufunc: np.ufunc) -> None:
    @rule(ufunc)
    def logic(*operands: Parts) -> Any:
        return ufuncs.apply_ufunc(ufunc, *(r["logical_or"](r["ne"](x, 0.0), r["ne"](y, 0.0)) for x, y in operands))


_asked(np.isnan, "logical_or")
_asked(np.isinf, "logical_or")
_asked(np.isfinite, "logical_and")
for _ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not):
    _logical(_ufunc)

FUNCTIONS: dict[np.ufunc, Any] = {getattr(np, name): getattr(np, name) for name in (
    "matmul", "vecdot", "matvec", "vecmat") if hasattr(np, name)}
"""Generalised ufuncs, whose rules are those of functions."""

__all__ = ["RULES", "Complex", "angle", "apply", "constant"]
