"""Circular and hyperbolic functions of complex values and their inverses; see `complexes.ufuncs`."""
from __future__ import annotations

import numpy as np

from jitad.tape.types import TABLE as r
from jitad.trace.complexes.ufuncs import Parts, log1p, multiply, rule, sqrt

# --- circular and hyperbolic functions -------------------------------------------------------------------

@rule(np.cosh)
def cosh(a: Parts) -> Parts:
    return r["cosh"](a[0]) * r["cos"](a[1]), r["sinh"](a[0]) * r["sin"](a[1])


@rule(np.sinh)
def sinh(a: Parts) -> Parts:
    return r["sinh"](a[0]) * r["cos"](a[1]), r["cosh"](a[0]) * r["sin"](a[1])


@rule(np.tanh)
def tanh(a: Parts) -> Parts:
    """With u = tanh(x), v = tan(y): ``(u (1 + v^2) + i v / cosh(x)^2) / (1 + u^2 v^2)``."""
    u, v, below = r["tanh"](a[0]), r["tan"](a[1]), 1.0 / r["cosh"](a[0])
    scale = 1.0 / (1.0 + u * u * v * v)
    return u * (1.0 + v * v) * scale, v * below * below * scale


@rule(np.cos)
def cos(a: Parts) -> Parts:
    return r["cos"](a[0]) * r["cosh"](a[1]), -(r["sin"](a[0]) * r["sinh"](a[1]))


@rule(np.sin)
def sin(a: Parts) -> Parts:
    return r["sin"](a[0]) * r["cosh"](a[1]), r["cos"](a[0]) * r["sinh"](a[1])


@rule(np.tan)
def tan(a: Parts) -> Parts:
    re, im = tanh((-a[1], a[0]))
    return im, -re


# --- their inverses (Kahan) --------------------------------------------------------------------------------

def _shifted(a: Parts, sign: float) -> Parts:
    """``1 + sign * a``."""
    return 1.0 + sign * a[0], sign * a[1]


@rule(np.arcsin)
def arcsin(a: Parts) -> Parts:
    low, high = sqrt(_shifted(a, -1.0)), sqrt(_shifted(a, 1.0))
    return r["arctan2"](a[0], multiply(low, high)[0]), r["arcsinh"](low[0] * high[1] - low[1] * high[0])


@rule(np.arccos)
def arccos(a: Parts) -> Parts:
    low, high = sqrt(_shifted(a, -1.0)), sqrt(_shifted(a, 1.0))
    return 2.0 * r["arctan2"](low[0], high[0]), r["arcsinh"](high[0] * low[1] - high[1] * low[0])


@rule(np.arccosh)
def arccosh(a: Parts) -> Parts:
    low, high = sqrt((a[0] - 1.0, a[1])), sqrt((a[0] + 1.0, a[1]))
    return r["arcsinh"](low[0] * high[0] + low[1] * high[1]), 2.0 * r["arctan2"](low[1], high[0])


@rule(np.arcsinh)
def arcsinh(a: Parts) -> Parts:
    re, im = arcsin((-a[1], a[0]))
    return im, -re


@rule(np.arctanh)
def arctanh(a: Parts) -> Parts:
    up, down = log1p(a), log1p((-a[0], -a[1]))
    return 0.5 * (up[0] - down[0]), 0.5 * (up[1] - down[1])


@rule(np.arctan)
def arctan(a: Parts) -> Parts:
    re, im = arctanh((-a[1], a[0]))
    return im, -re
