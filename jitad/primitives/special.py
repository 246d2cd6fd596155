"""Functions of scipy.special that are ufuncs: one row each."""
from __future__ import annotations

import math

import numpy as np
from scipy import special

from jitad.compile.scalar import call, const
from jitad.compile.scalar import select as pick
from jitad.primitives.core import Primitive, elementwise, select
from jitad.primitives.elementwise import exp, log, log1p, ne, square
from jitad.tape import Aval, Value

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)

expit = elementwise("expit", special.expit, lambda y, x: y * expit(-x), cost=12)
logit = elementwise("logit", special.logit, lambda y, x: 1.0 / (x * (1.0 - x)), cost=15, domain=(0.05, 0.95),
                    scalar=lambda x: call("log", x / (1.0 - x)))
log_expit = elementwise("log_expit", special.log_expit, lambda y, x: expit(-x), cost=20)
gammaln = elementwise("gammaln", special.gammaln, lambda y, x: digamma(x), scalar="lgamma", cost=30, domain=(0.1, 6.0))
digamma = elementwise("digamma", special.digamma, lambda y, x: trigamma(x), cost=30, domain=(0.1, 6.0))
erf = elementwise("erf", special.erf, lambda y, x: TWO_OVER_SQRT_PI * exp(-square(x)), cost=25)
erfc = elementwise("erfc", special.erfc, lambda y, x: -TWO_OVER_SQRT_PI * exp(-square(x)), cost=25)
ndtr = elementwise("ndtr", special.ndtr, lambda y, x: INV_SQRT_2PI * exp(-0.5 * square(x)), cost=25)
log_ndtr = elementwise("log_ndtr", special.log_ndtr,
                       lambda y, x: INV_SQRT_2PI * exp(-0.5 * square(x) - y), cost=30)
xlogy = elementwise("xlogy", special.xlogy, lambda y, a, b: (
    log(b), select(ne(a, 0.0), a / b, 0.0)), cost=12, domain=((0.1, 3.0), (0.1, 3.0)),
    scalar=lambda a, b: pick(a.eq(0) & b.eq(b), const(0, a.dtype), a * call("log", b)))
xlog1py = elementwise("xlog1py", special.xlog1py, lambda y, a, b: (
    log1p(b), select(ne(a, 0.0), a / (1.0 + b), 0.0)), cost=12, domain=((0.1, 3.0), (-0.5, 3.0)),
    scalar=lambda a, b: pick(a.eq(0) & b.eq(b), const(0, a.dtype), a * call("log1p", b)))


def _polygamma_infer(x: Aval, n: int) -> Aval:
    return x


polygamma = Primitive(
    "polygamma", kind="elementwise", cost=60,
    evaluate=lambda x, n: special.polygamma(n, x).astype(x.dtype), infer=_polygamma_infer,
    partials=lambda y, x, n: polygamma(x, n=n + 1),
    scalar=lambda x, n: (-1.0) ** (n + 1) * math.factorial(n) * call("zeta", const(n + 1.0, x.dtype), x),
    info={"resolve": lambda key: (np.dtype({float: "f8", int: "f8"}.get(key, key)),)},
    samples=lambda rng: [((rng.uniform(0.2, 5.0, 4),), {"n": 1}), ((rng.uniform(0.2, 5.0, 4),), {"n": 2})])
"""The n-th derivative of digamma, n >= 1: ``(-1)**(n + 1) * n! * zeta(n + 1, x)`` (DLMF 5.15.1)."""


def trigamma(x: Value) -> Value:
    return polygamma(x, n=1)


__all__ = ["digamma", "erf", "erfc", "expit", "gammaln", "log_expit", "log_ndtr", "logit", "ndtr", "xlog1py",
           "xlogy"]
