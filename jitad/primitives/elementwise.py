"""Elementwise arithmetic and the elementary functions: one row each."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math

import numpy as np

from jitad.primitives import scalars
from jitad.primitives.core import elementwise, full, select
from jitad.tape.types import TABLE, Node

LN2 = math.log(2.0)
LN10 = math.log(10.0)
ANY = (-3.0, 3.0)
POSITIVE = (0.1, 4.0)
STEP = (1.1, 1.4)                              # where rounding is constant


def _finite(*constants: np.ndarray | None) -> bool:
    return all(c is None or bool(np.isfinite(c).all()) for c in constants)


def _of_integers(node: Node) -> bool:
    """A negative power of an integer is an error."""
    return node.aval.dtype.kind not in "fb"


# --- arithmetic ------------------------------------------------------------------------------
add = elementwise("add", np.add, lambda y, a, b: (1.0, 1.0), scalar=scalars.add, commutes=True, tame=True,
                  overflows=True)
sub = elementwise("sub", np.subtract, lambda y, a, b: (1.0, -1.0), tame=True, overflows=True)
mul = elementwise("mul", np.multiply, lambda y, a, b: (b, a), scalar=scalars.multiply, commutes=True, tame=_finite,
                  unbounded=True, overflows=True)
div = elementwise("div", np.true_divide, lambda y, a, b: (1.0 / b, -(y * (1.0 / b))), cost=4, domain=(ANY, POSITIVE),
                  tame=lambda a, b: b is not None and bool((b != 0).all()))
neg = elementwise("neg", np.negative, lambda y, a: -1.0, tame=True)
absolute = elementwise("abs", np.absolute, lambda y, a: sign(a), scalar=scalars.absolute, tame=True)
sign = elementwise("sign", np.sign, lambda y, a: None, scalar=scalars.sign)
positive = elementwise("positive", np.positive, lambda y, a: 1.0, scalar=lambda x: x, tame=True)
reciprocal = elementwise("reciprocal", np.reciprocal, lambda y, a: -y * y, scalar=scalars.reciprocal, cost=4,
                         domain=POSITIVE)
square = elementwise("square", np.square, lambda y, a: 2.0 * a, scalar=lambda x: x * x, tame=True,
                     unbounded=True, overflows=True)
sqrt = elementwise("sqrt", np.sqrt, lambda y, a: 0.5 / y, cost=4, domain=POSITIVE)
cbrt = elementwise("cbrt", np.cbrt, lambda y, a: 1.0 / (3.0 * y * y), cost=20, domain=POSITIVE)


def _power(y, a, b):  # type: ignore[no-untyped-def]
    """d x**0 is 0, also at x = 0; 0**b has slope 0 in b > 0, the limit."""
    return (select(ne(b, 0.0), b * pow(a, b - 1.0), 0.0),
            select(logical_or(ne(a, 0.0), lt(b, 0.0)), y * log(a), 0.0))


pow = elementwise("pow", np.power, _power, scalar=scalars.power, cost=30, domain=(POSITIVE, ANY),
                  tame=lambda a, b: b is not None and bool((b >= 1).all()), can_fail=_of_integers, overflows=True)
pow.evaluate = lambda a, b: np.power(np.atleast_1d(a), np.array(np.atleast_1d(b), order="C")).reshape(np.shape(a))
"""Not what NumPy makes of a single exponent, the root for 0.5: where it does, that is on the tape."""
float_power = elementwise("float_power", np.float_power, _power, scalar="pow", cost=30, domain=(POSITIVE, ANY))
hypot = elementwise("hypot", np.hypot, lambda y, a, b: (
    select(ne(y, 0.0), a / y, 0.0), select(ne(y, 0.0), b / y, 0.0)), cost=20)
copysign = elementwise("copysign", np.copysign, lambda y, a, b: (sign(y) * sign(a), None))
floor_divide = elementwise("floor_divide", np.floor_divide, lambda y, a, b: (None, None), cost=10,
                           scalar=scalars.floor_divide, domain=(ANY, POSITIVE))
remainder = elementwise("remainder", np.remainder, lambda y, a, b: (1.0, -floor_divide(a, b)), cost=10,
                        scalar=scalars.remainder, domain=(ANY, POSITIVE))
fmod = elementwise("fmod", np.fmod, lambda y, a, b: (1.0, -rint((a - y) / b)), cost=10, scalar=scalars.fmod,
                   domain=(ANY, POSITIVE))
heaviside = elementwise("heaviside", np.heaviside, lambda y, a, b: (None, select(eq(a, 0.0), _one(a), 0.0)),
                        scalar=scalars.heaviside)

# --- exponentials and logarithms -------------------------------------------------------------
exp = elementwise("exp", np.exp, lambda y, a: y, cost=10, tame=True, unbounded=True, overflows=True)
exp2 = elementwise("exp2", np.exp2, lambda y, a: LN2 * y, cost=10)
expm1 = elementwise("expm1", np.expm1, lambda y, a: exp(a), cost=12, tame=True, unbounded=True, overflows=True)
log = elementwise("log", np.log, lambda y, a: 1.0 / a, cost=10, domain=POSITIVE)
log2 = elementwise("log2", np.log2, lambda y, a: 1.0 / (LN2 * a), cost=10, domain=POSITIVE)
log10 = elementwise("log10", np.log10, lambda y, a: 1.0 / (LN10 * a), cost=10, domain=POSITIVE)
log1p = elementwise("log1p", np.log1p, lambda y, a: 1.0 / (1.0 + a), cost=12, domain=(-0.8, 4.0))
logaddexp = elementwise("logaddexp", np.logaddexp, lambda y, a, b: _shares(a, b), cost=25)
logaddexp2 = elementwise("logaddexp2", np.logaddexp2, lambda y, a, b: _shares(a, b, LN2),
                         scalar=scalars.logaddexp2, cost=25)


def _shares(a, b, base=1.0):  # type: ignore[no-untyped-def]
    """exp(a) and exp(b) over their sum; equal infinities share. One difference serves both."""
    expit = TABLE["expit"]
    equal, difference = logical_and(eq(a, b), isinf(a)), (a - b) * base
    return select(equal, 0.5, expit(difference)), select(equal, 0.5, expit(-difference))


# --- trigonometry ----------------------------------------------------------------------------
sin = elementwise("sin", np.sin, lambda y, a: cos(a), cost=12, tame=True, unbounded=True)
cos = elementwise("cos", np.cos, lambda y, a: -sin(a), cost=12, tame=True, unbounded=True)
tan = elementwise("tan", np.tan, lambda y, a: 1.0 + y * y, cost=20, domain=(-1.3, 1.3))
arcsin = elementwise("arcsin", np.arcsin, lambda y, a: 1.0 / sqrt((1.0 - a) * (1.0 + a)), cost=20, domain=(-0.9, 0.9))
arccos = elementwise("arccos", np.arccos, lambda y, a: -1.0 / sqrt((1.0 - a) * (1.0 + a)), cost=20, domain=(-0.9, 0.9))
arctan = elementwise("arctan", np.arctan, lambda y, a: 1.0 / (1.0 + a * a), cost=20, tame=True)
sinh = elementwise("sinh", np.sinh, lambda y, a: cosh(a), cost=15, tame=True, unbounded=True, overflows=True)
cosh = elementwise("cosh", np.cosh, lambda y, a: sinh(a), cost=15, tame=True, unbounded=True, overflows=True)
tanh = elementwise("tanh", np.tanh, lambda y, a: 1.0 - y * y, cost=15, tame=True)
arcsinh = elementwise("arcsinh", np.arcsinh, lambda y, a: 1.0 / hypot(a, 1.0), cost=20)
arccosh = elementwise("arccosh", np.arccosh, lambda y, a: 1.0 / (sqrt(a - 1.0) * sqrt(a + 1.0)), cost=20,
                      domain=(1.1, 4.0))
arctanh = elementwise("arctanh", np.arctanh, lambda y, a: 1.0 / ((1.0 - a) * (1.0 + a)), cost=20, domain=(-0.9, 0.9))
arctan2 = elementwise("arctan2", np.arctan2, lambda y, a, b: _angle(a, b), cost=25, domain=(POSITIVE, ANY))


def _angle(a, b):  # type: ignore[no-untyped-def]
    """``(b, -a) / (a^2 + b^2)`` without overflow; NaN at the origin, where the angle is undefined."""
    radius = hypot(a, b)
    return b / radius / radius, -a / radius / radius


deg2rad = elementwise("deg2rad", np.deg2rad, lambda y, a: math.pi / 180, scalar=lambda x: x * (math.pi / 180))
rad2deg = elementwise("rad2deg", np.rad2deg, lambda y, a: 180 / math.pi, scalar=lambda x: x * (180 / math.pi))

# --- extrema: ties share ---------------------------------------------------------------------
maximum = elementwise("maximum", np.maximum, lambda y, a, b: (_wins(a, b, ge(a, b)), _wins(b, a, ge(b, a))),
                      scalar=scalars.maximum, tame=True)
minimum = elementwise("minimum", np.minimum, lambda y, a, b: (_wins(a, b, le(a, b)), _wins(b, a, le(b, a))),
                      scalar=scalars.minimum, tame=True)
fmax = elementwise("fmax", np.fmax, lambda y, a, b: (
    _wins(a, b, _or_alone(a, b, ge(a, b))), _wins(b, a, _or_alone(b, a, ge(b, a)))), scalar=scalars.fmax)
fmin = elementwise("fmin", np.fmin, lambda y, a, b: (
    _wins(a, b, _or_alone(a, b, le(a, b))), _wins(b, a, _or_alone(b, a, le(b, a)))), scalar=scalars.fmin)


def _one(like):  # type: ignore[no-untyped-def]
    return full(like, 1.0, like.shape, like.dtype)


def _wins(a, b, as_good):  # type: ignore[no-untyped-def]
    """The share of `a`. It does not ask whether `a` equals the result: a kernel may compute `a` again, in
    another loop with another last bit."""
    return select(as_good, select(eq(a, b), 0.5, _one(a)), 0.0)


def _or_alone(a, b, as_good):  # type: ignore[no-untyped-def]
    """Or `b` alone is NaN."""
    return logical_or(as_good, logical_and(isnan(b), eq(a, a)))


# --- comparisons, logic, rounding: no derivative ---------------------------------------------
lt = elementwise("lt", np.less)
le = elementwise("le", np.less_equal)
gt = elementwise("gt", np.greater)
ge = elementwise("ge", np.greater_equal)
eq = elementwise("eq", np.equal)
ne = elementwise("ne", np.not_equal)
logical_and = elementwise("logical_and", np.logical_and, scalar=scalars.logical("and"))
logical_or = elementwise("logical_or", np.logical_or, scalar=scalars.logical("or"))
logical_xor = elementwise("logical_xor", np.logical_xor, scalar=scalars.logical("xor"))
logical_not = elementwise("logical_not", np.logical_not, scalar=scalars.logical("not"))
isnan = elementwise("isnan", np.isnan, scalar=scalars.nan_of)
isfinite = elementwise("isfinite", np.isfinite, scalar=scalars.isfinite)
isinf = elementwise("isinf", np.isinf, scalar=scalars.isinf)
signbit = elementwise("signbit", np.signbit, scalar=scalars.signbit)
floor = elementwise("floor", np.floor, lambda y, a: None, domain=STEP, scalar=scalars.rounding("floor"))
ceil = elementwise("ceil", np.ceil, lambda y, a: None, domain=STEP, scalar=scalars.rounding("ceil"))
trunc = elementwise("trunc", np.trunc, lambda y, a: None, domain=STEP, scalar=scalars.rounding("trunc"))
rint = elementwise("rint", np.rint, lambda y, a: None, domain=STEP)
_bitwise = {"bitwise_and": (np.bitwise_and, "and"), "bitwise_or": (np.bitwise_or, "or"),
            "bitwise_xor": (np.bitwise_xor, "xor")}
for _name, (_ufunc, _op) in _bitwise.items():
    elementwise(_name, _ufunc, scalar=_op, domain=range(-9, 10))
invert = elementwise("invert", np.invert, scalar=scalars.invert, domain=range(-9, 10))
