"""Values on a tape taken apart as linear combinations, and matrices that are known to be triangular.

The rules of linear algebra use what is known of their cotangents: a factor that is the same for all of a matrix is
taken out of a system, and the cotangent of a Cholesky factor is recognised where it has a closed form.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.rules import Rules
from jitad.primitives.view import Map, broadcast_to, expand_dims, places, view
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE

Polynomial = dict[tuple[int, ...], float]      # products of nodes, each with a number: their sum
Form = dict[int, Polynomial]                   # for each node its coefficient
ONE: Polynomial = {(): 1.0}
Views = Callable[[Value], Value]               # a chain of views
LINEAR = ("neg", "add", "sub", "mul", "div")
LONGEST = 16                                   # terms of a form that are looked at
STEPS = 256                                    # nodes that are taken apart
DEEPEST = 12                                   # operations within a coefficient


# --- coefficients ------------------------------------------------------------------------------

def times(p: Polynomial, q: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for a, x in p.items():
        for b, y in q.items():
            key = tuple(sorted(a + b))
            result[key] = result.get(key, 0.0) + x * y
    return result


def plus(p: Polynomial, q: Polynomial) -> Polynomial:
    result = dict(p)
    for key, x in q.items():
        result[key] = result.get(key, 0.0) + x
    return result


def equal(p: Polynomial, q: Polynomial) -> bool:
    """Whether they agree but for rounding of the numbers."""
    return all(math.isclose(p.get(k, 0.0), q.get(k, 0.0), rel_tol=1e-14) for k in {*p, *q})


def scaled(value: Value, coefficient: Polynomial) -> Value:
    """`value` times a coefficient, which varies with the leading dimensions only."""
    total: Any = None
    for numbers, x in coefficient.items():
        factor: Any = x
        for number in numbers:
            known = value.builder.value(number)
            factor = known if isinstance(factor, float) and factor == 1.0 else known * factor
        total = factor if total is None else total + factor
    if isinstance(total, float):
        return value if total == 1.0 else -value if total == -1.0 else value * total
    total = expand_dims(total, tuple(range(total.ndim, value.ndim)))
    return value * broadcast_to(total, value.shape)


# --- forms -------------------------------------------------------------------------------------

def _same(v: Value) -> Value:
    return v


def coefficient_of(x: Value, core: int, outside: Views = _same, depth: int = 0) -> Polynomial | None:
    """``outside(x)`` as a coefficient, if it is the same along its last `core` dimensions."""
    name, builder = x.node.prim.name, x.builder
    if depth < DEEPEST and name in LINEAR:
        parts: list[Polynomial] = []
        for i in x.node.inputs:
            part = coefficient_of(builder.value(i), core, outside, depth + 1)
            if part is None or len(part) > LONGEST:
                return None
            parts.append(part)
        return _combined(name, parts, builder)
    if depth < DEEPEST and name == "view" and builder.nodes[x.node.inputs[0]].prim.name in LINEAR:
        return coefficient_of(builder.value(x.node.inputs[0]), core, _through(x, outside), depth + 1)
    return _uniform(outside(x), core)


def _through(x: Value, outside: Views) -> Views:
    """`outside` of the view that `x` is."""
    shape, index = x.node.params["shape"], x.node.params["index"]
    return lambda v: outside(view(v, shape, index))


def _combined(name: str, parts: list[Polynomial], builder: Builder) -> Polynomial | None:
    if name == "neg":
        return times(parts[0], {(): -1.0})
    if name == "mul":
        return times(*parts)
    if name == "div":
        divisor = _reciprocal(parts[1], builder)
        return None if divisor is None else times(parts[0], divisor)
    return plus(parts[0], parts[1] if name == "add" else times(parts[1], {(): -1.0}))


def _uniform(x: Value, core: int) -> Polynomial | None:
    node, builder = x.node, x.builder
    if node.prim.kind == "const" and node.aval.ndim == 0:
        return {(): float(node.params["value"].value)}
    if node.prim.kind != "view":
        return {(x.number,): 1.0} if core == 0 else None
    index: Map = node.params["index"]
    batch = x.shape[:x.ndim - core]
    if any(d >= len(batch) for _, terms in index for d, _ in terms):
        return None
    source = builder.value(node.inputs[0])
    if source.node.prim.kind == "const" and source.ndim == 0:
        return {(): float(source.node.params["value"].value)}
    return {(view(source, batch, index).number,): 1.0}


def form_of(x: Value, core: int) -> Form | None:
    """`x` as a sum of coefficients times nodes of its shape; coefficients are the same along the last `core`
    dimensions. None if there are too many terms."""
    form: Form = {}
    stack: list[tuple[Value, Views, Polynomial]] = [(x, _same, ONE)]
    for _ in range(STEPS):
        if not stack or len(form) > LONGEST:
            break
        part, outside, scale = stack.pop()
        inside = _taken_apart(part, outside, core)
        if inside is None:
            number = outside(part).number
            form[number] = plus(form.get(number, {}), scale)
        else:
            stack += [(value, views, times(scale, factor)) for value, views, factor in inside]
    return form if not stack and len(form) <= LONGEST else None


def _taken_apart(x: Value, outside: Views, core: int) -> list[tuple[Value, Views, Polynomial]] | None:
    """The terms of ``outside(x)``, each a value in a chain of views with a coefficient; None if it is one."""
    node, value = x.node, x.builder.value
    name = node.prim.name
    if name == "neg":
        return [(value(node.inputs[0]), outside, {(): -1.0})]
    if name in ("add", "sub"):
        sign = 1.0 if name == "add" else -1.0
        return [(value(node.inputs[0]), outside, ONE), (value(node.inputs[1]), outside, {(): sign})]
    if name in ("mul", "div"):
        first, second = map(value, node.inputs)
        for rest, other in ((first, second), (second, first))[:1 if name == "div" else 2]:
            factor = coefficient_of(other, core, outside)
            if factor is not None and name == "div":
                factor = _reciprocal(factor, x.builder)
            if factor is not None:
                return [(rest, outside, factor)]
    inside = _without_mask(x, core) if name == "select" else None
    if inside is not None:
        return [(inside, outside, ONE)]
    if name == "view" and value(node.inputs[0]).node.prim.name in LINEAR:
        return [(value(node.inputs[0]), _through(x, outside), ONE)]
    return None


def _without_mask(x: Value, core: int) -> Value | None:
    """The y of ``select(mask, y, 0)`` with a constant mask that takes away only what is zero in y anyway."""
    condition, inside, other = (x.builder.value(i) for i in x.node.inputs)
    mask = _constant_mask(condition)
    if mask is None or coefficient_of(other, x.ndim) != {(): 0.0}:
        return None
    for number in form_of(inside, core) or {}:
        part = x.builder.value(number)
        if part.node.prim.name == "tril":
            outside = np.tril(~mask, part.node.params["k"])
        elif part.node.prim.kind == "spread":
            outside = ~mask[places(part.node.params["index"], _operand(part).shape)]
        else:
            return None
        if outside.any():
            return None
    return inside


def _constant_mask(condition: Value) -> Any:
    """The array of a constant condition, or of several."""
    name = condition.node.prim.name
    if name == "const":
        return np.broadcast_to(condition.node.params["value"].value, condition.shape)
    if name not in ("logical_or", "logical_and"):
        return None
    parts = [_constant_mask(_operand(condition, i)) for i in range(2)]
    return None if any(p is None for p in parts) else TABLE[name].evaluate(*parts)


def _reciprocal(factor: Polynomial, builder: Builder) -> Polynomial | None:
    if len(factor) != 1:
        return None
    (numbers, x), = factor.items()
    inverse: Polynomial = {(): 1.0 / x if x else math.inf}
    for number in numbers:
        inverse = times(inverse, {((1.0 / builder.value(number)).number,): 1.0})
    return inverse


def single(x: Value, core: int) -> tuple[Polynomial, Value]:
    """`x` as one coefficient times one node."""
    form = form_of(x, core)
    if form is None or len(form) != 1:
        return ONE, x
    (number, coefficient), = form.items()
    return coefficient, x.builder.value(number)


def _operand(x: Value, place: int = 0) -> Value:
    return x.builder.value(x.node.inputs[place])


# --- zeros by structure ------------------------------------------------------------------------

LARGEST = 1 << 22          # elements of an array whose places are looked at
LEVELS = 100               # operations through which it is followed


class _Marks:
    """1 where a value may be other than zero, by how it was put together. A product with a structural zero is one only
    if `vanishing`: the other factor may be infinite."""

    def __init__(self, vanishing: bool):
        self.vanishing = vanishing
        self.known: dict[int, Any] = {}

    def of(self, x: Value, level: int = 0) -> Any:
        if x.number not in self.known:
            self.known[x.number] = self._of(x, level + 1) if level < LEVELS and x.aval.size <= LARGEST else (
                np.broadcast_to(1.0, x.shape))
        return self.known[x.number]

    def _of(self, x: Value, level: int) -> Any:
        rule = MARKS.of(x.node.prim) or (_moved if x.node.prim.moves else None)
        marks = None if rule is None else rule(self, x, level)
        return np.broadcast_to(1.0, x.shape) if marks is None else marks

    def held(self, x: Value, level: int) -> Any:
        """The marks of floats; integers, and None where these are not known."""
        return self.of(x, level) if x.dtype.kind == "f" else x.node.constant


MARKS: Rules[Callable[[_Marks, Value, int], Any]] = Rules()
MARKS("const")(lambda marks, x, level: np.asarray(x.node.constant != 0, np.float64))
MARKS("cholesky")(lambda marks, x, level: np.tril(np.ones(x.shape)))
MARKS("add", "sub")(lambda marks, x, level: np.maximum(*(marks.of(_operand(x, i), level) for i in range(2))))
MARKS("mul")(lambda marks, x, level: math.prod(
    marks.of(_operand(x, i), level) for i in range(2)) if marks.vanishing else None)


@MARKS("select")
def _chosen(marks: _Marks, x: Value, level: int) -> Any:
    mask, first, second = _constant_mask(_operand(x)), *(marks.of(_operand(x, i), level) for i in (1, 2))
    return np.maximum(first, second) if mask is None else np.where(mask, first, second)


@MARKS("neg", "cast")
def _moved(marks: _Marks, x: Value, level: int) -> Any:
    """Of what moves elements, the marks move along."""
    held = [marks.held(_operand(x, i), level) for i in range(len(x.node.inputs))]
    return None if any(h is None for h in held) else np.asarray(
        x.node.prim.evaluate(*held, **x.node.params) != 0, np.float64)


def support(x: Value) -> Any:
    """A boolean array, false where `x` is structurally zero: by how it was put together."""
    return _Marks(vanishing=True).of(x) != 0


# --- triangles ---------------------------------------------------------------------------------

def triangles(x: Value, level: int = 0) -> tuple[bool, bool]:
    """Whether the matrices of `x` are known to be lower, and upper, triangular: by the way in which they are made,
    which also gives the other elements no derivative."""
    if x.ndim < 2 or level > DEEPEST:
        return False, False
    rule = TRIANGLES.of(x.node.prim)
    return rule(x, level + 1) if rule is not None else (False, False)


TRIANGLES: Rules[Callable[[Value, int], tuple[bool, bool]]] = Rules()
TRIANGLES("cholesky")(lambda x, level: (True, False))
TRIANGLES("neg", "cast")(lambda x, level: triangles(_operand(x), level))


@TRIANGLES("triangle")
def _of_triangle(x: Value, level: int) -> tuple[bool, bool]:
    (lower, upper), lowers, k = triangles(_operand(x), level), x.node.prim.lower, x.node.params["k"]
    return lower or (lowers and k <= 0), upper or (not lowers and k >= 0)


@TRIANGLES("add", "sub")
def _of_sum(x: Value, level: int) -> tuple[bool, bool]:
    first, second = triangles(_operand(x), level), triangles(_operand(x, 1), level)
    return first[0] and second[0], first[1] and second[1]


@TRIANGLES("const", "spread", "update", "put", "reshape", "concatenate", "gather", "scatter", "select")
def _of_placed(x: Value, level: int) -> tuple[bool, bool]:
    """Of what puts elements at places, by the marks."""
    if x.aval.size > LARGEST:
        return False, False
    marks = _Marks(vanishing=False).of(x)
    return not np.triu(marks, 1).any(), not np.tril(marks, -1).any()


@TRIANGLES("view")
def _of_view(x: Value, level: int) -> tuple[bool, bool]:
    source, index = _operand(x), x.node.params["index"]
    if source.node.constant is not None and not source.node.constant.any():
        return True, True
    if source.ndim < 2 or source.shape[-2:] not in (x.shape[-2:], x.shape[:-3:-1]):
        return False, False
    rows, columns = index[-2:]
    last = x.ndim - 1
    if (rows, columns) == ((0, ((last - 1, 1),)), (0, ((last, 1),))):
        return triangles(source, level)
    if (rows, columns) == ((0, ((last, 1),)), (0, ((last - 1, 1),))):
        lower, upper = triangles(source, level)
        return upper, lower
    return False, False


@TRIANGLES("mul", "div")
def _of_scaled(x: Value, level: int) -> tuple[bool, bool]:
    first, second = _operand(x), _operand(x, 1)
    if coefficient_of(second, 2) is not None:
        return triangles(first, level)
    if x.node.prim.commutes and coefficient_of(first, 2) is not None:
        return triangles(second, level)
    return False, False


def positive_diagonal(x: Value) -> bool:
    """Whether the matrices of `x` are Cholesky factors or their transposes."""
    while x.node.index_map is not None and triangles(x) != (False, False):
        x = _operand(x)
    return x.node.prim is TABLE["cholesky"]
