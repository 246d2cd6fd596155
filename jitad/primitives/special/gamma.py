"""Gamma and beta functions of scipy.special: complete and incomplete, with the derivatives by all their parameters."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.core import cast, elementwise, select
from jitad.primitives.elementwise import eq, exp, gt, le, log, log1p, logical_and, rint
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.primitives.special import incomplete as special_incomplete  # noqa: F401  (fills the table of routines)
from jitad.primitives.special.rows import own, pointer, refusing
from jitad.primitives.special.ufuncs import digamma, gammaln, trigamma, xlog1py, xlogy
from jitad.tape.builder import Value

UNIT, SHAPE, WIDE = (0.1, 0.9), (0.4, 4.0), (0.3, 6.0)

# --- complete ------------------------------------------------------------------------------------
gamma = elementwise("gamma", ufuncs.gamma, lambda y, x: y * digamma(x), domain=SHAPE, scalar="gamma_function", cost=60)
loggamma = pointer("loggamma", lambda y, x: digamma(x), domain=WIDE)
rgamma = pointer("rgamma", lambda y, x: rgamma_slope(x), domain=WIDE)
rgamma_slope = own("rgamma_slope", lambda y, x: rgamma(x) * (digamma(x) * digamma(x) - trigamma(x)), WIDE)
gammasgn = pointer("gammasgn", lambda y, x: None, domain=WIDE)
beta = pointer("beta", lambda y, a, b: (-(y * digamma_gap(a, b)), -(y * digamma_gap(b, a))), domain=(SHAPE, SHAPE))
betaln = elementwise("betaln", ufuncs.betaln, lambda y, a, b: (-digamma_gap(a, b), -digamma_gap(b, a)), cost=120,
                     domain=(SHAPE, SHAPE))
digamma_gap = own("digamma_gap", lambda y, a, b: (trigamma(a + b) - trigamma(a), trigamma(a + b)), (SHAPE, SHAPE))


def _poch(y: Value, z: Value, m: Value) -> Any:
    """``gamma(z + m) / gamma(z)``; at the zeros, where gamma(z) has a pole, by the derivative of its reciprocal."""
    zero = logical_and(_is_pole(z), eq(y, 0.0))
    return (select(zero, gamma(z + m) * rgamma_slope(z), y * digamma_gap(_away(z), m)),
            select(zero, 0.0, y * digamma(z + m)))


def _binom(y: Value, n: Value, k: Value) -> Any:
    """By the reciprocal of a gamma function where that is what makes it zero."""
    rest = n - k + 1.0
    lower, upper = _is_pole(k + 1.0), _is_pole(rest)
    by_rest = gamma(n + 1.0) * rgamma(k + 1.0) * rgamma_slope(rest)
    by_k = gamma(n + 1.0) * rgamma(rest) * rgamma_slope(k + 1.0)
    return (select(upper, by_rest, select(lower, 0.0, y * digamma_gap(_away(rest), k))),
            select(upper, -by_rest, select(lower, by_k, y * digamma_gap(_away(k + 1.0), n - 2.0 * k))))


def _is_pole(x: Value) -> Value:
    return logical_and(le(x, 0.0), eq(x, rint(x)))


def _away(x: Value) -> Value:
    return select(_is_pole(x), 1.0 + 0.0 * x, x)


poch = pointer("poch", _poch, domain=(SHAPE, SHAPE))
binom = pointer("binom", _binom, domain=((5.0, 8.0), (1.0, 3.0)))

# --- incomplete gamma ----------------------------------------------------------------------------


def gamma_density(a: Value, x: Value) -> Value:
    """``x**(a - 1) exp(-x) / gamma(a)``."""
    return select(eq(x, math.inf), 0.0, exp(xlogy(a - 1.0, x) - x - gammaln(a)))


def _by_a_and_x(a: Value, x: Value) -> Value:
    """The mixed derivative of P(a, x): zero at the ends, where a logarithm is infinite."""
    density = gamma_density(a, x)
    return select(gt(density, 0.0), density * (log(x) - digamma(a)), 0.0)


gammainc = pointer("gammainc", lambda y, a, x: (gammainc_slope(a, x), gamma_density(a, x)), domain=(SHAPE, WIDE))
gammaincc = pointer("gammaincc", lambda y, a, x: (-gammainc_slope(a, x), -gamma_density(a, x)), domain=(SHAPE, WIDE))
gammainc_slope = own("gammainc_slope", lambda y, a, x: (gammainc_curve(a, x), _by_a_and_x(a, x)), (SHAPE, WIDE),
                     refuses=True)


def _gamma_curve(y: Value, a: Value, x: Value) -> Any:
    density = gamma_density(a, x)
    score = log(x) - digamma(a)
    return (refusing(y, "gammainc", "its first argument, a third time"),
            select(gt(density, 0.0), density * (score * score - trigamma(a)), 0.0))


gammainc_curve = own("gammainc_curve", _gamma_curve, (SHAPE, WIDE), fixed=(0,))


def _gamma_quantile(sign: float) -> Any:
    def partials(y: Value, a: Value, p: Value) -> Any:
        density = gamma_density(a, y)
        return -(gammainc_slope(a, y) / density), sign / density
    return partials


gammaincinv = pointer("gammaincinv", _gamma_quantile(1.0), domain=((1.0, 4.0), UNIT))
gammainccinv = pointer("gammainccinv", _gamma_quantile(-1.0), domain=((1.0, 4.0), UNIT))

# --- incomplete beta -----------------------------------------------------------------------------


def in_double(rule: Any) -> Any:
    """The rule computed in float64, where single precision would lose digits between its steps."""
    def partials(y: Value, *operands: Value) -> Any:
        found = rule(*(cast(v, "float64") for v in (y, *operands)))
        return tuple(cast(p, y.dtype) for p in found)
    return partials


def beta_density(a: Value, b: Value, x: Value) -> Value:
    """``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``."""
    return exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))


def _betainc(y: Value, a: Value, b: Value, x: Value) -> Any:
    return betainc_slope(a, b, x), betainc_slope_b(a, b, x), beta_density(a, b, x)


def _beta_curves(which: int) -> Any:
    def partials(y: Value, a: Value, b: Value, x: Value) -> Any:
        density = beta_density(a, b, x)
        score = log(x) + digamma_gap(a, b) if which == 0 else log1p(-x) + digamma_gap(b, a)
        reason = "the second derivative by the shape parameters is not implemented"
        return (refusing(y, "betainc", "its shape parameters, a second time", reason),
                refusing(y, "betainc", "its shape parameters, a second time", reason),
                select(gt(density, 0.0), density * score, 0.0))
    return partials


betainc = pointer("betainc", _betainc, domain=(SHAPE, SHAPE, UNIT), refuses=True)
betaincc = pointer("betaincc", lambda y, a, b, x: tuple(-p for p in _betainc(y, a, b, x)),
                   domain=(SHAPE, SHAPE, UNIT), refuses=True)
betainc_slope = own("betainc_slope", _beta_curves(0), (SHAPE, SHAPE, UNIT), fixed=(0, 1))
betainc_slope_b = own("betainc_slope_b", _beta_curves(1), (SHAPE, SHAPE, UNIT), fixed=(0, 1))


def _beta_quantile(sign: float) -> Any:
    def partials(y: Value, a: Value, b: Value, p: Value) -> Any:
        density = beta_density(a, b, y)
        return -(betainc_slope(a, b, y) / density), -(betainc_slope_b(a, b, y) / density), sign / density
    return in_double(partials)


betaincinv = pointer("betaincinv", _beta_quantile(1.0), domain=(SHAPE, SHAPE, UNIT), refuses=True)
betainccinv = pointer("betainccinv", _beta_quantile(-1.0), domain=(SHAPE, SHAPE, UNIT), refuses=True)

__all__ = ["beta", "betainc", "betaln", "binom", "digamma_gap", "gamma", "gammainc", "gammaincc", "poch", "rgamma"]
