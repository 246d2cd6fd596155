"""Elementwise rows as ONNX operators. What ONNX computes in float64 only is an operator; the rest is written in those.

Formulas with their sources: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.14.1, for
log1p and expm1; NIST DLMF 5.5.1, 5.5.3, 5.11.1 for the log of gamma and 5.5.2, 5.5.4, 5.11.2 for digamma.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jitad.export.onnx.graph import Graph, Tensor, refused, rule
from jitad.tape.types import Node

OPERATORS = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "neg": "Neg", "abs": "Abs", "sign": "Sign", "sqrt": "Sqrt", "exp": "Exp",
    "log": "Log", "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "expit": "Sigmoid", "floor": "Floor", "ceil": "Ceil",
    "rint": "Round", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal",
    "isnan": "IsNaN", "isinf": "IsInf", "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor", "invert": "BitwiseNot", "select": "Where", "stop_gradient": "Identity",
    "alias": "Identity", "condition": "Identity", "positive": "Identity", "div": "Div", "pow": "Pow",
    "float_power": "Pow", "reciprocal": "Reciprocal",
}
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not"}
FORMULAS: dict[str, Callable[..., Scalar]] = {}


class Scalar:
    """A tensor with arithmetic: formulas are ordinary expressions."""

    __slots__ = ("graph", "name", "dtype")

    def __init__(self, graph: Graph, name: str, dtype: np.dtype):
        self.graph, self.name, self.dtype = graph, name, dtype

    def to(self, op: str, *others: Scalar | float, dtype: type | np.dtype | None = None, **how: int) -> Scalar:
        """An operator applied; numbers take the dtype of the tensor."""
        names = [o.name if isinstance(o, Scalar) else self.graph.const(o, self.dtype) for o in others]
        return Scalar(self.graph, self.graph.op(op, self.name, *names, **how), np.dtype(dtype or self.dtype))

    def __add__(self, o: Scalar | float) -> Scalar: return self.to("Add", o)
    def __radd__(self, o: float) -> Scalar: return self.to("Add", o)
    def __sub__(self, o: Scalar | float) -> Scalar: return self.to("Sub", o)
    def __rsub__(self, o: float) -> Scalar: return self.to("Neg") + o
    def __mul__(self, o: Scalar | float) -> Scalar: return self.to("Mul", o)
    def __rmul__(self, o: float) -> Scalar: return self.to("Mul", o)
    def __truediv__(self, o: Scalar | float) -> Scalar: return self.to("Div", o)
    def __rtruediv__(self, o: float) -> Scalar: return self.to("Reciprocal") * o
    def __neg__(self) -> Scalar: return self.to("Neg")
    def __abs__(self) -> Scalar: return self.to("Abs")
    def __lt__(self, o: Scalar | float) -> Scalar: return self.to("Less", o, dtype=bool)
    def __gt__(self, o: Scalar | float) -> Scalar: return self.to("Greater", o, dtype=bool)
    def __ge__(self, o: Scalar | float) -> Scalar: return self.to("GreaterOrEqual", o, dtype=bool)
    def __and__(self, o: Scalar) -> Scalar: return self.to("And", o, dtype=bool)
    def __or__(self, o: Scalar) -> Scalar: return self.to("Or", o, dtype=bool)
    def __invert__(self) -> Scalar: return self.to("Not", dtype=bool)
    def eq(self, o: Scalar | float) -> Scalar: return self.to("Equal", o, dtype=bool)

    def select(self, a: Scalar | float, b: Scalar | float, like: Scalar | None = None) -> Scalar:
        """`a` where this is true, else `b`; numbers have the dtype of the other one, or of `like`."""
        dtype = next(x.dtype for x in (a, b, like) if isinstance(x, Scalar))
        names = [x.name if isinstance(x, Scalar) else self.graph.const(x, dtype) for x in (a, b)]
        return Scalar(self.graph, self.graph.where(self.name, *names), dtype)


def exp(x: Scalar) -> Scalar: return x.to("Exp")
def log(x: Scalar) -> Scalar: return x.to("Log")
def sqrt(x: Scalar) -> Scalar: return x.to("Sqrt")
def sin(x: Scalar) -> Scalar: return x.to("Sin")
def cos(x: Scalar) -> Scalar: return x.to("Cos")
def isnan(x: Scalar) -> Scalar: return x.to("IsNaN", dtype=bool)


def formula(*names: str) -> Callable[[Callable[..., Scalar]], Callable[..., Scalar]]:
    """Register the formula of elementwise rows."""
    def register(function: Callable[..., Scalar]) -> Callable[..., Scalar]:
        FORMULAS.update(dict.fromkeys(names, function))
        return function
    return register


@rule("elementwise")
def elementwise(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    """An operator, or a formula."""
    name = str(node.prim)
    if name in OPERATORS:
        return g.op(OPERATORS[name], *(x.name for x in operands))
    if name in LOGICAL:
        return g.op(LOGICAL[name], *(g.cast(x.name, bool) for x in operands))
    if name not in FORMULAS:
        raise refused(node)
    return FORMULAS[name](*(Scalar(g, x.name, x.aval.dtype) for x in operands)).name


@rule("cast")
def cast(g: Graph, node: Node, operands: Sequence[Tensor]) -> str:
    return g.cast(operands[0].name, node.aval.dtype)


# --- exponentials and logarithms -----------------------------------------------------------------

@formula("log1p")
def log1p(x: Scalar) -> Scalar:
    u = x + 1.0
    return (u.eq(1.0) | u.eq(math.inf)).select(x, log(u) * (x / (u - 1.0)))


@formula("expm1")
def expm1(x: Scalar) -> Scalar:
    u = exp(x)
    value = (u < 0.5).select(u - 1.0, (u - 1.0) * (x / log(u)))
    return u.eq(1.0).select(x, u.eq(math.inf).select(u, value))


@formula("log_expit")
def log_expit(x: Scalar) -> Scalar: return (x < 0.0).select(x, 0.0) - log1p(exp(-abs(x)))
@formula("logit")
def logit(x: Scalar) -> Scalar: return log(x) - log1p(-x)
@formula("log2")
def log2(x: Scalar) -> Scalar: return log(x) / math.log(2)
@formula("log10")
def log10(x: Scalar) -> Scalar: return log(x) / math.log(10)
@formula("exp2")
def exp2(x: Scalar) -> Scalar: return (x.eq(x)).select(2.0, x).to("Pow", x)


@formula("logaddexp")
def logaddexp(a: Scalar, b: Scalar) -> Scalar:
    return a.eq(b).select(a + math.log(2), maximum(a, b) + log1p(exp(-abs(a - b))))


@formula("logaddexp2")
def logaddexp2(a: Scalar, b: Scalar) -> Scalar: return logaddexp(a * math.log(2), b * math.log(2)) / math.log(2)
@formula("xlogy")
def xlogy(x: Scalar, y: Scalar) -> Scalar: return (x.eq(0.0) & ~isnan(y)).select(0.0, x * log(y))
@formula("xlog1py")
def xlog1py(x: Scalar, y: Scalar) -> Scalar: return (x.eq(0.0) & ~isnan(y)).select(0.0, x * log1p(y))


# --- algebra -------------------------------------------------------------------------------------

@formula("square")
def square(x: Scalar) -> Scalar: return x * x
@formula("ne")
def ne(a: Scalar, b: Scalar) -> Scalar: return ~a.eq(b)
@formula("isfinite")
def isfinite(x: Scalar) -> Scalar: return abs(x) < math.inf
@formula("signbit")
def signbit(x: Scalar) -> Scalar: return (x < 0.0) | (x.eq(0.0) & (1.0 / x < 0.0))
@formula("trunc")
def trunc(x: Scalar) -> Scalar: return (x < 0.0).select(x.to("Ceil"), x.to("Floor"))
@formula("copysign")
def copysign(a: Scalar, b: Scalar) -> Scalar: return signbit(b).select(-abs(a), abs(a))
@formula("deg2rad")
def deg2rad(x: Scalar) -> Scalar: return x * (math.pi / 180)
@formula("rad2deg")
def rad2deg(x: Scalar) -> Scalar: return x * (180 / math.pi)
@formula("maximum")
def maximum(a: Scalar, b: Scalar) -> Scalar: return (isnan(a) | (a > b)).select(a, b)
@formula("minimum")
def minimum(a: Scalar, b: Scalar) -> Scalar: return (isnan(a) | (a < b)).select(a, b)
@formula("fmax")
def fmax(a: Scalar, b: Scalar) -> Scalar: return isnan(b).select(a, (a > b).select(a, b))
@formula("fmin")
def fmin(a: Scalar, b: Scalar) -> Scalar: return isnan(b).select(a, (a < b).select(a, b))
@formula("fmod")
def fmod(a: Scalar, b: Scalar) -> Scalar: return a.to("Mod", b, fmod=1)
@formula("floor_divide")
def floor_divide(a: Scalar, b: Scalar) -> Scalar: return (a / b).to("Floor")


@formula("remainder")
def remainder(a: Scalar, b: Scalar) -> Scalar:
    rest = fmod(a, b)
    return (~rest.eq(0.0) & (rest * b < 0.0)).select(rest + b, rest)


@formula("hypot")
def hypot(a: Scalar, b: Scalar) -> Scalar:
    large, small = maximum(abs(a), abs(b)), minimum(abs(a), abs(b))
    ratio = large.eq(0.0).select(0.0, small / large)
    infinite = abs(a).eq(math.inf) | abs(b).eq(math.inf)
    return infinite.select(math.inf, large * sqrt(1.0 + ratio * ratio))


@formula("cbrt")
def cbrt(x: Scalar) -> Scalar:
    root = x.to("Sign") * exp(log(abs(x)) / 3.0)
    better = root - (root * root * root - x) / (3.0 * root * root)
    return (isfinite(x) & ~x.eq(0.0)).select(better, x)


@formula("heaviside")
def heaviside(x: Scalar, at_zero: Scalar) -> Scalar:
    return x.eq(0.0).select(at_zero, isnan(x).select(x, (x > 0.0).select(1.0, 0.0, like=x)))


# --- trigonometry --------------------------------------------------------------------------------

@formula("tan")
def tan(x: Scalar) -> Scalar: return sin(x) / cos(x)


@formula("sinh")
def sinh(x: Scalar) -> Scalar:
    half = expm1(abs(x)) * 0.5
    value = half + half / (2.0 * half + 1.0)
    return x.to("Sign") * (half.eq(math.inf)).select(half, value)


@formula("cosh")
def cosh(x: Scalar) -> Scalar:
    return 0.5 * (exp(x) + exp(-x))


@formula("arcsinh")
def arcsinh(x: Scalar) -> Scalar:
    a = abs(x)
    return x.to("Sign") * (a > 1e150).select(log(a) + math.log(2), log1p(a + a * a / (1.0 + sqrt(1.0 + a * a))))


@formula("arccosh")
def arccosh(x: Scalar) -> Scalar: return log(x + sqrt(x - 1.0) * sqrt(x + 1.0))
@formula("arctanh")
def arctanh(x: Scalar) -> Scalar: return 0.5 * log1p(2.0 * x / (1.0 - x))


@formula("arctan")
def arctan(x: Scalar) -> Scalar:
    """ONNX has it in single precision; two steps of Newton on ``cos(y) x = sin(y)`` give the rest."""
    single = Scalar(x.graph, x.graph.cast(x.name, np.float32), np.dtype(np.float32)).to("Atan")
    y = Scalar(x.graph, x.graph.cast(single.name, x.dtype), x.dtype)
    for _ in range(2):
        s, c = sin(y), cos(y)
        y = isfinite(x).select(y + (c * x - s) / (c + s * x), y)
    return (abs(x) > 1e16).select(x.to("Sign") * (math.pi / 2), y)


@formula("arcsin")
def arcsin(x: Scalar) -> Scalar: return arctan(x / sqrt((1.0 - x) * (1.0 + x)))
@formula("arccos")
def arccos(x: Scalar) -> Scalar: return arctan2(sqrt((1.0 - x) * (1.0 + x)), x)


@formula("arctan2")
def arctan2(y: Scalar, x: Scalar) -> Scalar:
    half = signbit(y).select(-math.pi / 2, math.pi / 2, like=y)
    both = abs(y).eq(math.inf) & abs(x).eq(math.inf)
    y, x = both.select(y.to("Sign"), y), both.select(x.to("Sign"), x)
    beyond = half - arctan(x / y)                                   # |y| > |x|
    within = x.eq(0.0).select(y, arctan(y / x)) + signbit(x).select(2.0 * half, 0.0)
    return (abs(y) > abs(x)).select(beyond, within)


# --- special functions ---------------------------------------------------------------------------

SHIFT = 10                                      # Stirling's series starts from here on


@formula("gammaln")
def gammaln(x: Scalar) -> Scalar:
    reflected = x < 0.5
    z = reflected.select(1.0 - x, x)
    product, y = isnan(z).select(z, 1.0), z
    for _ in range(SHIFT):
        product, y = (y < float(SHIFT)).select(product * y, product), (y < float(SHIFT)).select(y + 1.0, y)
    inverse = 1.0 / y
    tail = _series(inverse, (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)) * inverse
    value = (y - 0.5) * log(y) - y + 0.5 * math.log(2 * math.pi) + tail - log(product)
    sine = abs(sin(math.pi * (x - 2.0 * (x * 0.5).to("Round"))))
    value = reflected.select(math.log(math.pi) - log(sine) - value, value)
    pole = (x.eq(x.to("Floor")) & ~(x > 0.0)) | x.eq(math.inf)
    return x.eq(-math.inf).select(x, pole.select(math.inf, value))


@formula("digamma")
def digamma(x: Scalar) -> Scalar:
    reflected = x < 0.5
    z = reflected.select(1.0 - x, x)
    total, y = isnan(z).select(z, 0.0), z
    for _ in range(SHIFT):
        total, y = (y < float(SHIFT)).select(total + 1.0 / y, total), (y < float(SHIFT)).select(y + 1.0, y)
    inverse = 1.0 / y
    tail = _series(inverse, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)) * inverse * inverse
    value = log(y) - 0.5 * inverse - tail - total
    angle = math.pi * (x - x.to("Floor"))
    value = reflected.select(value - math.pi * cos(angle) / sin(angle), value)
    pole = x.eq(x.to("Floor")) & ~(x > 0.0)
    return pole.select(x.eq(0.0).select(-1.0 / x, math.nan), value)


def _series(inverse: Scalar, coefficients: Sequence[float]) -> Scalar:
    """The even powers of `inverse` with these coefficients, summed."""
    square_ = inverse * inverse
    total = square_ * coefficients[-1] + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        total = total * square_ + c
    return total
