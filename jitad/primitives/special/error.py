"""Error functions, their inverses, and exponential, trigonometric and Fresnel integrals of scipy.special."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.core import elementwise, full, select
from jitad.primitives.elementwise import cos, cosh, exp, gt, log, sin, sinh, square, sub
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.primitives.special.rows import near_zero, pointer, refusing, several
from jitad.primitives.special.ufuncs import INV_SQRT_2PI, TWO_OVER_SQRT_PI, erf, hazard
from jitad.tape.builder import Value

ANY, POSITIVE, UNIT = (-2.0, 2.0), (0.3, 3.0), (0.1, 0.9)
SQRT_2PI, HALF_SQRT_PI = math.sqrt(2.0 * math.pi), 0.5 * math.sqrt(math.pi)

# --- error functions -----------------------------------------------------------------------------
erfcx = elementwise("erfcx", ufuncs.erfcx, lambda y, x: 2.0 * x * y - TWO_OVER_SQRT_PI, cost=25)
erfi = pointer("erfi", lambda y, x: TWO_OVER_SQRT_PI * exp(square(x)), domain=ANY)
dawsn = pointer("dawsn", lambda y, x: 1.0 - 2.0 * x * y, domain=ANY)
ndtri = elementwise("ndtri", ufuncs.ndtri, lambda y, p: SQRT_2PI * exp(0.5 * square(y)), cost=40, domain=UNIT)
erfinv = elementwise("erfinv", ufuncs.erfinv, lambda y, x: HALF_SQRT_PI * exp(square(y)), cost=40,
                     domain=(-0.9, 0.9))
erfcinv = elementwise("erfcinv", ufuncs.erfcinv, lambda y, x: -HALF_SQRT_PI * exp(square(y)), cost=40,
                      domain=(0.1, 1.9))
ndtri_exp = pointer("ndtri_exp", lambda y, x: 1.0 / hazard(y, x), domain=(-3.0, -0.1))


def _owens_t(y: Value, h: Value, a: Value) -> Any:
    """Derivatives of T(h, a) from its integral; D. B. Owen, Ann. Math. Stat. 27 (1956) 1075."""
    half = -0.5 * square(h)
    return (-0.5 * INV_SQRT_2PI * exp(half) * erf(a * h * math.sqrt(0.5)),
            exp(half * (1.0 + square(a))) / (2.0 * math.pi * (1.0 + square(a))))


owens_t = pointer("owens_t", _owens_t, domain=(ANY, ANY))

# --- exponential integrals -----------------------------------------------------------------------
exp1 = pointer("exp1", lambda y, x: -exp(-x) / x, domain=POSITIVE)
expi = pointer("expi", lambda y, x: exp(x) / x, domain=POSITIVE)


def _expn(y: Value, n: Value, x: Value) -> Any:
    """DLMF 8.19.13; ``E_0 = exp(-x) / x``."""
    return (refusing(y, "expn", "its order", "the order is an integer"),
            select(gt(n, 0), -expn(sub(n, select(gt(n, 0), _ones(n), 0)), x), -(y + exp(-x) / square(x))))


def _ones(like: Value) -> Value:
    return full(like, 1, like.shape, like.dtype)


expn = pointer("expn", _expn, domain=(range(1, 5), POSITIVE))


def _sin_over(x: Value) -> Value:
    """``sin(x) / x``; a series near 0."""
    return near_zero(x, 0.1, _even(-1.0, lambda k: math.factorial(2 * k + 1), 6), lambda t: sin(t) / t)


def _sinh_over(x: Value) -> Value:
    return near_zero(x, 0.1, _even(1.0, lambda k: math.factorial(2 * k + 1), 6), lambda t: sinh(t) / t)


def _even(sign: float, divisor: Any, count: int) -> list[float]:
    """Coefficients of a series in even powers."""
    found: list[float] = []
    for k in range(count):
        found += [sign**k / divisor(k), 0.0]
    return found[:-1]


sici = several("sici", lambda i: (lambda y, x: _sin_over(x)) if i == 0 else (lambda y, x: cos(x) / x), POSITIVE, 2)
shichi = several("shichi", lambda i: (lambda y, x: _sinh_over(x)) if i == 0 else (lambda y, x: cosh(x) / x),
                 POSITIVE, 2)
fresnel = several("fresnel", lambda i: lambda y, x: (sin if i == 0 else cos)(0.5 * math.pi * square(x)), ANY, 2)


def _spence(y: Value, x: Value) -> Value:
    """``log(x) / (1 - x)``, a series about 1; DLMF 25.12.2."""
    series = [-((-1.0) ** k) / (k + 1) for k in range(16)]
    return near_zero(x - 1.0, 0.1, series, lambda d: -(log(1.0 + d) / d))


spence = pointer("spence", _spence, domain=POSITIVE)

__all__ = ["erfcx", "ndtri", "owens_t"]
