"""Orthogonal polynomials of scipy.special: by the argument, DLMF 18.9.15, 18.9.19 to 18.9.25."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitad.primitives.core import cast, full, select
from jitad.primitives.elementwise import gt, sub
from jitad.primitives.special.rows import pointer, refusing
from jitad.tape.builder import Value
from jitad.tape.types import Primitive

DEGREE, UNIT, ANY, SHAPE = range(1, 5), (-0.9, 0.9), (-2.0, 2.0), (0.6, 2.0)


def _row(name: str, slope: Callable[..., Value], argument: Any, *parameters: Any) -> Primitive:
    """`slope(degree as a float, degree - 1, *parameters, x)`: the derivative by x for degrees above 0."""
    def partials(y: Value, n: Value, *rest: Value) -> Any:
        positive = gt(n, 0)
        one_less = select(positive, sub(n, full(n, 1, n.shape, n.dtype)), 0)
        fixed = (refusing(y, name, "a parameter") for _ in rest[1:])
        degree = cast(n, y.dtype)
        return (refusing(y, name, "its degree"), *fixed, select(positive, slope(degree, one_less, *rest), 0.0))

    fixed = tuple(range(1, len(parameters) + 1))
    return pointer(name, partials, domain=(DEGREE, *parameters, argument), cost=100, fixed=fixed)


def _jacobi(n: Value, less: Value, a: Value, b: Value, x: Value) -> Value:
    return 0.5 * (n + a + b + 1.0) * eval_jacobi(less, a + 1.0, b + 1.0, x)


def _like(x: Value, number: float) -> Value:
    return full(x, number, x.shape, x.dtype)


eval_jacobi = _row("eval_jacobi", _jacobi, UNIT, SHAPE, SHAPE)
eval_gegenbauer = _row("eval_gegenbauer", lambda n, less, a, x: 2.0 * a * eval_gegenbauer(less, a + 1.0, x), UNIT,
                       SHAPE)
eval_legendre = _row("eval_legendre", lambda n, less, x: _jacobi(n, less, _like(x, 0.0), _like(x, 0.0), x), UNIT)
eval_chebyt = _row("eval_chebyt", lambda n, less, x: n * eval_chebyu(less, x), UNIT)
eval_chebyu = _row("eval_chebyu", lambda n, less, x: 2.0 * eval_gegenbauer(less, _like(x, 2.0), x), UNIT)
eval_genlaguerre = _row("eval_genlaguerre", lambda n, less, a, x: -eval_genlaguerre(less, a + 1.0, x), ANY, SHAPE)
eval_laguerre = _row("eval_laguerre", lambda n, less, x: -eval_genlaguerre(less, _like(x, 1.0), x), ANY)
eval_hermite = _row("eval_hermite", lambda n, less, x: 2.0 * n * eval_hermite(less, x), ANY)
eval_hermitenorm = _row("eval_hermitenorm", lambda n, less, x: n * eval_hermitenorm(less, x), ANY)

__all__ = ["eval_jacobi", "eval_legendre"]
