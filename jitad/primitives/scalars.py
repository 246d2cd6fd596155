"""Scalar code of rows that are more than one machine operation or one call.

Each function maps scalar expressions to the expression whose value is NumPy's, at the special
points too (`tests/primitives/test_scalars.py` compares them). All sides of a `select` are computed, so that
loops vectorise; integer divisions are therefore given divisors that cannot trap.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from jitad.tape.expr import Expr, call, cast, const, select

LOWEST = -2**63
LOG2_E = 1.4426950408889634


def is_float(x: Expr) -> bool:
    return x.dtype in ("f8", "f4")


def nan_of(x: Expr) -> Expr:
    """True where `x` is NaN."""
    return x.ne(x) if is_float(x) else const(False, "b1")


# --- arithmetic --------------------------------------------------------------------------------

def add(a: Expr, b: Expr) -> Expr:
    return call("or", a, b) if a.dtype == "b1" else a + b


def multiply(a: Expr, b: Expr) -> Expr:
    return call("and", a, b) if a.dtype == "b1" else a * b


def absolute(x: Expr) -> Expr:
    return x if x.dtype == "b1" else abs(x)


def sign(x: Expr) -> Expr:
    one = select(x > 0, const(1, x.dtype), select(x < 0, const(-1, x.dtype), const(0, x.dtype)))
    return select(x.ne(x), x, one) if is_float(x) else one


def reciprocal(x: Expr) -> Expr:
    """1 / x; for integers truncated, and for 0 what the conversion of infinity gives on x86."""
    if is_float(x):
        return const(1, x.dtype) / x
    return select(x.eq(1) | x.eq(-1), x, select(x.eq(0), const(LOWEST, "i8"), const(0, "i8")))


def power(a: Expr, b: Expr) -> Expr:
    """Integers by repeated squaring, as long as the exponent asks; negative exponents, which NumPy refuses, give 1."""
    if is_float(a):
        return call("pow", a, b)
    fixed = b.args[0] if b.op == "const" else None
    result, exponent = const(1, a.dtype), b
    for bit in range(63 if fixed is None else max(int(fixed), 0).bit_length()):
        if fixed is None:
            result = select((exponent & 1).ne(0) & (b > 0), result * a, result)
            exponent = exponent >> 1
        elif int(fixed) >> bit & 1:
            result = a if result.op == "const" else result * a
        a = a * a
    return result


# --- division ----------------------------------------------------------------------------------

def _quotient(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Truncated quotient and remainder of integers; of a zero divisor 0 and 0."""
    tame = select(b.eq(0) | b.eq(-1), const(1, b.dtype), b)
    quotient = select(b.eq(-1), -a, select(b.eq(0), const(0, a.dtype), a / tame))
    return quotient, select(b.eq(0), const(0, a.dtype), a - quotient * b)


def _divmod(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """``(a - mod) / b``, the C remainder, and the remainder with the sign of `b`, as in NumPy's ``npy_divmod``."""
    mod = call("fmod", a, b)
    other = call("xor", b < 0, mod < 0) & mod.ne(0)
    quotient = (a - mod) / b
    quotient = select(other, quotient - 1, quotient)
    signed = select(mod.eq(0), call("copysign", const(0, a.dtype), b), select(other, mod + b, mod))
    return quotient, mod, signed


def floor_divide(a: Expr, b: Expr) -> Expr:
    if not is_float(a):
        quotient, rest = _quotient(a, b)
        return select(rest.ne(0) & call("xor", rest < 0, b < 0), quotient - 1, quotient)
    quotient = _divmod(a, b)[0]
    down = call("floor", quotient)
    down = select(quotient - down > 0.5, down + 1, down)
    down = select(quotient.eq(0), call("copysign", const(0, a.dtype), a / b), down)
    return select(b.eq(0), a / b, down)


def remainder(a: Expr, b: Expr) -> Expr:
    if not is_float(a):
        rest = _quotient(a, b)[1]
        return select(rest.ne(0) & call("xor", rest < 0, b < 0), rest + b, rest)
    _, mod, signed = _divmod(a, b)
    return select(b.eq(0), mod, signed)


def fmod(a: Expr, b: Expr) -> Expr:
    return call("fmod", a, b) if is_float(a) else _quotient(a, b)[1]


# --- extrema: NaN wins in maximum and minimum, loses in fmax and fmin ------------------------------

def maximum(a: Expr, b: Expr) -> Expr:
    return select((a >= b) | nan_of(a), a, b)


def minimum(a: Expr, b: Expr) -> Expr:
    return select((a <= b) | nan_of(a), a, b)


def fmax(a: Expr, b: Expr) -> Expr:
    return select((a >= b) | nan_of(b), a, b)


def fmin(a: Expr, b: Expr) -> Expr:
    return select((a <= b) | nan_of(b), a, b)


# --- logic, classes, rounding --------------------------------------------------------------------

def truth(x: Expr) -> Expr:
    return x if x.dtype == "b1" else x.ne(0)


def logical(op: str) -> Callable[..., Expr]:
    return lambda *xs: call(op, *map(truth, xs))


def isfinite(x: Expr) -> Expr:
    return (abs(x) < math.inf) if is_float(x) else const(True, "b1")


def isinf(x: Expr) -> Expr:
    return abs(x).eq(math.inf) if is_float(x) else const(False, "b1")


def signbit(x: Expr) -> Expr:
    return call("copysign", const(1, x.dtype), x) < 0


def invert(x: Expr) -> Expr:
    return call("not", x) if x.dtype == "b1" else x ^ const(-1, x.dtype)


def rounding(op: str) -> Callable[[Expr], Expr]:
    """floor, ceil, trunc: integers stay."""
    return lambda x: call(op, x) if is_float(x) else x


def heaviside(x: Expr, at_zero: Expr) -> Expr:
    step = select(x < 0, const(0, x.dtype), select(x > 0, const(1, x.dtype), at_zero))
    return select(x.ne(x), x, step)


# --- functions -------------------------------------------------------------------------------------

def logaddexp2(a: Expr, b: Expr) -> Expr:
    distance = abs(a - b)
    larger = select(a > b, a, b)
    total = larger + LOG2_E * call("log1p", call("exp2", -distance))
    return select(a.eq(b), a + 1, select(distance.ne(distance), distance, total))


def xlogy(a: Expr, b: Expr) -> Expr:
    return select(a.eq(0) & b.eq(b), const(0, a.dtype), a * call("log", b))


def xlog1py(a: Expr, b: Expr) -> Expr:
    return select(a.eq(0) & b.eq(b), const(0, a.dtype), a * call("log1p", b))


def logit(x: Expr) -> Expr:
    """Near 1/2, where ``x / (1 - x)`` is near 1, by log1p of ``(2 x - 1) / (1 - x)`` (Sterbenz: exact numerator)."""
    far = (x < 0.3) | (x > 0.65)
    return select(far, call("log", x / (1 - x)), call("log1p", (2 * x - 1) / (1 - x)))


def cot_derivative(n: int) -> list[float]:
    """Coefficients of the polynomial in c = cot(pi x) that is ``d^n c / dx^n``: dc/dx = -pi (1 + c^2)."""
    p = [0.0, 1.0]
    for _ in range(n):
        slope = [k * p[k] for k in range(1, len(p))]
        p = [-math.pi * (s + t) for s, t in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return p


def polygamma(x: Expr, n: int) -> Expr:
    """For x >= 0 by recurrence to x + 12 or more and the asymptotic series DLMF 5.15.8, in powers of u, its
    reciprocal; the reflection 5.15.6 for x < 0. In float64 throughout, so that powers have room."""
    if x.dtype == "f4":
        return cast(polygamma(cast(x, "f8"), n), "f4")
    negative = x < 0
    z = select(negative, 1 - x, x)
    shift = 12 + n
    steps = _power(1 / z, n + 1)
    for k in range(1, shift):
        steps = steps + _power(1 / (z + k), n + 1)
    u = 1 / (z + shift)
    series = const(0, x.dtype)
    for j, bernoulli in reversed(list(enumerate(BERNOULLI, 1))):
        series = series * (u * u) + bernoulli * math.factorial(2 * j + n - 1) / math.factorial(2 * j)
    tail = _power(u, n) * (math.factorial(n - 1) + u * (math.factorial(n) / 2 + u * series))
    value = (-1.0) ** (n + 1) * (tail + math.factorial(n) * steps)
    angle = (x - call("rint", x)) * math.pi
    cot = call("cos", angle) / call("sin", angle)
    coefficients = cot_derivative(n)
    slope = const(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        slope = slope * cot + c
    return select(negative, (-1.0) ** n * value - math.pi * slope, value)


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers B_2, B_4, ..."""


def _power(x: Expr, n: int) -> Expr:
    result = x
    for _ in range(n - 1):
        result = result * x
    return result
