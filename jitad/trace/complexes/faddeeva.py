"""The error functions of complex numbers, by the Faddeeva function (DLMF 7.5)."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.arrays.choice import choose
from jitad.trace.complexes.ufuncs import Parts, rule
from jitad.trace.numpy_rules.elements.faddeeva import faddeeva, upper

SERIES = 16                                   # terms of erf where abs(z) < 1/2


@rule(sp.wofz)
def wofz(a: Parts) -> Parts:
    return faddeeva(a[0] + 0.0 * a[1], a[1] + 0.0 * a[0])


def _series(x: Any, y: Any) -> Parts:
    """``erf(z)`` of small z."""
    re, im = x * x - y * y, 2.0 * x * y
    coefficients = [2.0 / np.sqrt(np.pi) * (-1.0) ** n / ((2 * n + 1) * float(sp.gamma(n + 1.0)))
                    for n in range(SERIES)]
    total: Parts = (coefficients[-1] + 0.0 * re, 0.0 * im)
    for c in reversed(coefficients[:-1]):
        total = total[0] * re - total[1] * im + c, total[0] * im + total[1] * re
    return total[0] * x - total[1] * y, total[0] * y + total[1] * x


def _complement(x: Any, y: Any) -> Parts:
    """``erfc(z) = exp(-z**2) w(i z)`` for a real part that is not negative."""
    re, im = upper(-y, x)
    scale, cosine, sine = np.exp((y - x) * (y + x)), np.cos(2.0 * x * y), np.sin(2.0 * x * y)
    return scale * (cosine * re + sine * im), scale * (cosine * im - sine * re)


def _small_and_rest(a: Parts) -> tuple[Any, Any, Any, Parts, Parts]:
    """Whether z is small, the sign of its real part, and where not ``erf(z)`` by series, ``erfc(sign z)``."""
    x, y = a[0] + 0.0 * a[1], a[1] + 0.0 * a[0]
    small, left = x * x + y * y < 0.25, x < 0
    sign = choose(left, -1.0, 1.0)
    series = _series(choose(small, x, 0.0), choose(small, y, 0.0))
    rest = _complement(choose(small, 1.0, x * sign), choose(small, 0.0, y * sign))
    return small, left, sign, series, rest


@rule(sp.erf)
def erf(a: Parts) -> Parts:
    small, _, sign, series, rest = _small_and_rest(a)
    return choose(small, series[0], sign * (1.0 - rest[0])), choose(small, series[1], -sign * rest[1])


@rule(sp.erfc)
def erfc(a: Parts) -> Parts:
    small, left, sign, series, rest = _small_and_rest(a)
    return (choose(small, 1.0 - series[0], choose(left, 2.0 - rest[0], rest[0])),
            choose(small, -series[1], sign * rest[1]))


@rule(sp.erfcx)
def erfcx(a: Parts) -> Parts:
    """``w(i z)``."""
    return wofz((-a[1], a[0]))
