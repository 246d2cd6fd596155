"""Polynomials of numpy.polynomial as objects: made of traced coefficients, and captured."""
from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial

from tests.programs.table import X3, Table

rows = Table()
captured = Polynomial([1.0, 2.0, 3.0])
shifted = Chebyshev([1.0, 0.5, 0.2], domain=[0, 3])
ts = np.linspace(0.0, 2.0, 7)
ys = np.sin(ts)

for _family in (Polynomial, Chebyshev, Legendre, Laguerre, Hermite, HermiteE):
    rows(f"{_family.__name__} of traced coefficients", lambda x, P=_family: P(x)(ts))
    rows(f"{_family.__name__} derivative and integral", lambda x, P=_family: P(x).deriv()(0.3) + P(x).integ()(0.5))
    rows(f"{_family.__name__} convert", lambda x, P=_family: P(x).convert(kind=Polynomial).coef)
rows("product", lambda x: (Chebyshev(x) * Chebyshev([1.0, 2.0]) - Chebyshev(x)).coef)
rows("fit", lambda x: Polynomial.fit(ts, ys * x[0] + x[1], 2)(1.5))
rows("basis", lambda x: HermiteE.basis(2)(x))
rows("a captured one", lambda x: captured(x))
rows("a captured one's derivative", lambda x: shifted.deriv(2)(x) + shifted.integ()(x))
rows("captured times traced", lambda x: (x[0] * captured + x[1])(0.5))
rows("arithmetic", lambda x: (1 - (Polynomial(x) + 1) * 2 - captured / 2)(0.3))
rows("power and sign", lambda x: (-(Polynomial(x) ** 3))(0.5))
rows("quotient and rest", lambda x: np.concatenate([(Polynomial(x) // captured).coef, (Polynomial(x) % captured).coef]))
rows("composed", lambda x: captured(Polynomial(x))(0.5))
rows("a list of coefficients", lambda x: Polynomial([x[0], 1, x[1]], domain=[0, 2])(0.5))
rows("linspace", lambda x: Polynomial(x).linspace(5)[1])
rows("cut and truncated", lambda x: np.concatenate([Polynomial(x).cutdeg(1).coef, Polynomial(x).truncate(2).coef]))
rows("sorted", lambda x: np.sort(np.array([1.0, 2.0, 1.0]) + 1j * x), X3)
rows("complex roots", lambda x: Polynomial([5.0 + x[0], -2.0, 1.0]).roots())
rows("sort_complex", lambda x: np.sort_complex(x))
rows("from roots", lambda x: Polynomial.fromroots(x)(1.5))
rows("roots", lambda x: Polynomial([6.0, -5.0 + 0.01 * x[0], 1.0]).roots())
rows("constants of integration", lambda x: Polynomial(x).integ(1, [0.5], lbnd=x[0])(x[1]))
rows("cast", lambda x: Legendre.cast(Polynomial(x))(0.3))
rows("weights of a fit", lambda x: Chebyshev.fit(ts, ys * x[0], 2, w=1.0 + ts)(0.5))
rows("coefficients and domain", lambda x: captured.coef * x + shifted.domain[1] * shifted.degree())
rows("iterated", lambda x: sum(c * len(Polynomial(x)) for c in Polynomial(x)))
rows("by their modules", lambda x: np.polynomial.Legendre(x).deriv()(0.5))


@rows.of()
def imported_inside(x):
    from numpy.polynomial import Polynomial as P

    return P(x)(0.5)


class Calibration:
    def __init__(self, coefficients):
        self.curve = Legendre(coefficients, domain=[0, 2])

    def __call__(self, t):
        return self.curve(t) + self.curve.deriv()(t)


rows("in a class", lambda x: Calibration(x)(ts))
