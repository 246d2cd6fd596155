"""Functions of scipy.special that are ufuncs: one row each."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math

import numpy as np

from jitad.primitives import scalars
from jitad.primitives.core import elementwise, loop_dtypes, pointwise, select
from jitad.primitives.elementwise import exp, log, log1p, lt, ne, square
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape.builder import Value
from jitad.tape.types import Aval

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)

expit = elementwise("expit", ufuncs.expit, lambda y, x: y * expit(-x), cost=12, tame=True)
logit = elementwise("logit", ufuncs.logit, lambda y, x: 1.0 / (x * (1.0 - x)), cost=15, domain=(0.05, 0.95),
                    scalar=scalars.logit)
log_expit = elementwise("log_expit", ufuncs.log_expit, lambda y, x: expit(-x), cost=20)
gammaln = elementwise("gammaln", ufuncs.gammaln, lambda y, x: digamma(x), scalar="lgamma", cost=30, domain=(0.1, 6.0))
digamma = elementwise("digamma", ufuncs.psi, lambda y, x: trigamma(x), cost=30, domain=(0.1, 6.0))
erf = elementwise("erf", ufuncs.erf, lambda y, x: TWO_OVER_SQRT_PI * exp(-square(x)), cost=25, tame=True)
erfc = elementwise("erfc", ufuncs.erfc, lambda y, x: -TWO_OVER_SQRT_PI * exp(-square(x)), cost=25)
ndtr = elementwise("ndtr", ufuncs.ndtr, lambda y, x: INV_SQRT_2PI * exp(-0.5 * square(x)), cost=25)
log_ndtr = elementwise("log_ndtr", ufuncs.log_ndtr, lambda y, x: hazard(x, y), cost=30)
xlogy = elementwise("xlogy", ufuncs.xlogy, lambda y, a, b: (
    log(b), select(ne(a, 0.0), a / b, 0.0)), cost=12, domain=((0.1, 3.0), (0.1, 3.0)), scalar=scalars.xlogy)
xlog1py = elementwise("xlog1py", ufuncs.xlog1py, lambda y, a, b: (
    log1p(b), select(ne(a, 0.0), a / (1.0 + b), 0.0)), cost=12, domain=((0.1, 3.0), (-0.5, 3.0)),
    scalar=scalars.xlog1py)

MILLS = (1.0, -2.0, 10.0, -74.0, 706.0, -8162.0, 110410.0, -1708394.0, 29752066.0)
"""``h(-t) = t + sum(MILLS[k] / t**(2 k + 1))`` for the h of `hazard`: the reciprocal of the asymptotic
series of Mills' ratio, DLMF 7.12.1."""


def hazard(x: Value, log_cdf: Value) -> Value:
    """h(x) = pdf(x) / cdf(x) of the normal distribution; by its asymptotic series for x < -30, where the
    exponents of numerator and denominator cancel."""
    inverse = 1.0 / x
    u = square(inverse)
    series = MILLS[-1] * u + MILLS[-2]
    for c in reversed(MILLS[:-2]):
        series = series * u + c
    return select(lt(x, -30.0), -x - series * inverse, INV_SQRT_2PI * exp(-0.5 * square(x) - log_cdf))


def _polygamma(x: np.ndarray, n: int) -> np.ndarray:
    """`special.polygamma`; for x < 0, where it needs -x steps, by the reflection DLMF 5.15.6."""
    from scipy import special

    x = np.asarray(x)
    double = x.astype(np.float64)
    with np.errstate(all="ignore"):
        value = special.polygamma(n, np.where(double < 0, 1.0 - double, double))
        angle = np.pi * (double - np.rint(double))
        cot = np.cos(angle) / np.sin(angle)
        *rest, last = scalars.cot_derivative(n)
        slope = np.full_like(cot, last)
        for c in reversed(rest):
            slope = slope * cot + c
        return np.where(double < 0, (-1.0) ** n * value - np.pi * slope, value).astype(x.dtype)


polygamma = pointwise(
    "polygamma", cost=60, evaluate=_polygamma,
    infer=lambda x, n: Aval(x.shape, x.dtype),
    partials=lambda y, x, n: polygamma(x, n=n + 1), scalar=scalars.polygamma,
    resolve=lambda key: loop_dtypes(ufuncs.psi, (key,)),
    samples=lambda rng: [((rng.uniform(0.2, 5.0, 4),), {"n": 1}), ((rng.uniform(-1.9, -1.1, (2, 2)),), {"n": 2}),
                         ((rng.uniform(-0.9, -0.1, ()),), {"n": 3})])
"""The n-th derivative of digamma, n >= 1: ``(-1)**(n + 1) * n! * zeta(n + 1, x)`` (DLMF 5.15.1)."""


def trigamma(x: Value) -> Value:
    return polygamma(x, n=1)


__all__ = ["digamma", "erf", "erfc", "expit", "gammaln", "hazard", "log_expit", "log_ndtr", "logit", "ndtr",
           "polygamma", "xlog1py", "xlogy"]
