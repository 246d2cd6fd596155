"""Distribution functions of scipy.special and their inverses, with the derivatives by the parameters."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.core import cast, select
from jitad.primitives.elementwise import exp, floor, gt, log1p, sqrt, square
from jitad.primitives.special import incomplete as special_incomplete  # noqa: F401  (fills the table of routines)
from jitad.primitives.special.gamma import beta_density, betainc_slope, betainc_slope_b, gamma_density, gammainc_slope
from jitad.primitives.special.rows import own, pointer, refusing
from jitad.primitives.special.ufuncs import digamma
from jitad.tape.builder import Value

SHAPE, POSITIVE, UNIT, ANY = (0.6, 4.0), (0.3, 6.0), (0.1, 0.9), (-2.0, 2.0)
WHOLE = "it is rounded to a whole number"
ONCE = "the second derivative by the parameters is not implemented"

# --- Student's t ---------------------------------------------------------------------------------


def t_density(df: Value, t: Value) -> Value:
    return exp(_half_gap(0.5 * df) - 0.5 * (df + 1.0) * log1p(square(t) / df)) / sqrt(df * math.pi)


_half_gap = own("half_lgamma_gap", lambda y, x: digamma(x + 0.5) - digamma(x), POSITIVE)


def _t_slope(y: Value, df: Value, t: Value) -> Any:
    z = square(t) / df
    score = digamma(0.5 * df + 0.5) - digamma(0.5 * df) - 1.0 / df - log1p(z) + (df + 1.0) / df * (z / (1.0 + z))
    return refusing(y, "stdtr", "its degrees of freedom, a second time", ONCE), 0.5 * t_density(df, t) * score


stdtr_slope = own("stdtr_slope", _t_slope, (SHAPE, ANY), fixed=(0,))
stdtr = pointer("stdtr", lambda y, df, t: (stdtr_slope(df, t), t_density(df, t)), domain=(SHAPE, ANY),
                refuses=True)


def _stdtrit(y: Value, df: Value, p: Value) -> Any:
    density = t_density(df, y)
    return -(stdtr_slope(df, y) / density), 1.0 / density


stdtrit = pointer("stdtrit", _stdtrit, domain=(SHAPE, UNIT), refuses=True)

# --- by the incomplete gamma function ------------------------------------------------------------


def _chi2(sign: float) -> Any:
    def partials(y: Value, v: Value, x: Value) -> Any:
        a, half = 0.5 * v, 0.5 * x
        return (0.5 * sign) * gammainc_slope(a, half), (0.5 * sign) * gamma_density(a, half)
    return partials


def _chdtri(y: Value, v: Value, p: Value) -> Any:
    a, half = 0.5 * v, 0.5 * y
    density = gamma_density(a, half)
    return -(gammainc_slope(a, half) / density), -2.0 / density


def _gamma_cdf(sign: float) -> Any:
    def partials(y: Value, a: Value, b: Value, x: Value) -> Any:
        density = sign * gamma_density(b, a * x)
        return density * x, sign * gammainc_slope(b, a * x), density * a
    return partials


chdtr = pointer("chdtr", _chi2(1.0), domain=(SHAPE, POSITIVE))
chdtrc = pointer("chdtrc", _chi2(-1.0), domain=(SHAPE, POSITIVE))
chdtri = pointer("chdtri", _chdtri, domain=((1.0, 4.0), UNIT))
gdtr = pointer("gdtr", _gamma_cdf(1.0), domain=(SHAPE, SHAPE, POSITIVE))
gdtrc = pointer("gdtrc", _gamma_cdf(-1.0), domain=(SHAPE, SHAPE, POSITIVE))


def _poisson(sign: float) -> Any:
    """Of ``gammaincc(floor(k) + 1, m)``."""
    def partials(y: Value, k: Value, m: Value) -> Any:
        return None, -sign * gamma_density(floor(k) + 1.0, m)
    return partials


pdtr = pointer("pdtr", _poisson(1.0), domain=((2.1, 2.9), POSITIVE))
pdtrc = pointer("pdtrc", _poisson(-1.0), domain=((2.1, 2.9), POSITIVE))

# --- by the incomplete beta function -------------------------------------------------------------


def _binomial(sign: float, name: str) -> Any:
    """Of ``betainc(n - k, k + 1, 1 - p)``."""
    def partials(y: Value, k: Value, n: Value, p: Value) -> Any:
        count = cast(n, y.dtype)
        k = floor(cast(k, y.dtype))
        return None, refusing(y, name, "its second argument", WHOLE), -sign * beta_density(count - k, k + 1.0, 1.0 - p)
    return partials


def _negative_binomial(sign: float, name: str) -> Any:
    """Of ``betainc(n, k + 1, p)``."""
    def partials(y: Value, k: Value, n: Value, p: Value) -> Any:
        k, n = cast(k, y.dtype), cast(n, y.dtype)
        return (refusing(y, name, "its first argument", WHOLE), refusing(y, name, "its second argument", WHOLE),
                sign * beta_density(n, k + 1.0, p))
    return partials


bdtr = pointer("bdtr", _binomial(1.0, "bdtr"), domain=((2.1, 2.9), range(5, 8), UNIT))
bdtrc = pointer("bdtrc", _binomial(-1.0, "bdtrc"), domain=((2.1, 2.9), range(5, 8), UNIT))
nbdtr = pointer("nbdtr", _negative_binomial(1.0, "nbdtr"), domain=(range(1, 5), range(2, 6), UNIT))
nbdtrc = pointer("nbdtrc", _negative_binomial(-1.0, "nbdtrc"), domain=(range(1, 5), range(2, 6), UNIT))


def _f(sign: float) -> Any:
    """Of ``betainc(m / 2, n / 2, w)`` with ``w = m x / (m x + n)``."""
    def partials(y: Value, m: Value, n: Value, x: Value) -> Any:
        total = m * x + n
        w, a, b = m * x / total, 0.5 * m, 0.5 * n
        density = (sign * beta_density(a, b, w)) / square(total)
        inside = gt(x, 0.0)
        return (select(inside, (0.5 * sign) * betainc_slope(a, b, w) + density * x * n, 0.0),
                select(inside, (0.5 * sign) * betainc_slope_b(a, b, w) - density * m * x, 0.0), density * m * n)
    return partials


fdtr = pointer("fdtr", _f(1.0), domain=(SHAPE, SHAPE, POSITIVE), refuses=True)
fdtrc = pointer("fdtrc", _f(-1.0), domain=(SHAPE, SHAPE, POSITIVE), refuses=True)

__all__ = ["stdtr", "stdtrit", "t_density"]
