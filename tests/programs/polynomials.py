"""Polynomials as objects, of traced coefficients and captured, special functions with degrees and branches, and factors,
triangular systems and determinants of complex matrices."""
from __future__ import annotations

import inspect

import numpy as np
from numpy import c_, r_
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial

from scipy import linalg, special as sp
from scipy.spatial.distance import correlation

from tests.programs.table import P3, X3, Table

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

# --- special functions -----------------------------------------------------------------------

PLAIN = (False,) if "centered" in inspect.signature(correlation).parameters else ()

for _kind in ("jn", "yn", "in", "kn"):
    _f = getattr(sp, f"spherical_{_kind}")
    rows(f"spherical_{_kind}", lambda x, f=_f: f(2, x) + f(0, x), P3)
    rows(f"spherical_{_kind} of negative numbers", lambda x, f=_f: f(3, -x), P3)
    rows(f"spherical_{_kind} derivative", lambda x, f=_f: f([0, 1, 3], x, derivative=True), P3)
rows("spherical_jn of many orders", lambda x: sp.spherical_jn(np.arange(3)[:, None], x), P3)
rows("spherical_jn of a number", lambda x: sp.spherical_jn(1, x, True), 0.7)
rows("spherical_jn of nothing", lambda x: sp.spherical_jn(1, x[:0]) + np.sum(x), P3)
rows("spherical_jn at zero", lambda x: sp.spherical_jn([0, 1, 2], 0.0 * x) + sp.spherical_in([0, 1, 2], 0.0 * x))
rows("lambertw", lambda x: sp.lambertw(x), P3)
rows("lambertw real part", lambda x: np.real(sp.lambertw(np.append(x, 50.0))), P3)
rows("lambertw at zero", lambda x: sp.lambertw(x).real, 0.0)
rows("lambertw lower branch", lambda x: sp.lambertw(-x / 9, k=-1).real, P3)
rows("lambertw beyond the branch point", lambda x: sp.lambertw(-x), P3)
rows("lambertw of complex numbers", lambda x: sp.lambertw(x + 1j * x[::-1]), X3)
rows("lambertw branches", lambda x: sp.lambertw(x, [0, 2, -3]), P3)
rows("lambertw of nothing", lambda x: np.abs(sp.lambertw(x[:0])) + np.sum(x), P3)
rows("an order of a traced number", lambda x: sp.spherical_jn(np.round(x[1]).astype(int), x[0]), P3)
rows("c_ and r_ by their names", lambda x: np.sum(c_[x, 2 * x], axis=0) + r_[x, x][:2])
rows("array with every option", lambda x: np.array(x, ndmax=0) if "ndmax" in str(np.array.__doc__) else np.array(x))
rows("a correlation that is not centered", lambda x: correlation(x, np.array([1.0, 2.0, 4.0]), None, *PLAIN), P3)
rows.refused("a complex argument", lambda x: np.sum(sp.spherical_jn(1, 1j * x).real), says=("spherical_jn", "complex"))

if hasattr(sp, "sph_harm_y"):                   # SciPy 1.15 and later
    from scipy.special import sph_harm_y

    rows("sph_harm_y", lambda x: sp.sph_harm_y(3, -2, x, x[::-1]), P3)
    rows("sph_harm_y squared", lambda x: np.abs(sp.sph_harm_y(10, 7, x[0], x[1])) ** 2, P3)
    rows("sph_harm_y of many", lambda x: sp.sph_harm_y(np.array([[1], [2], [0]]), np.array([1, -1, 0]), x, 0.3), P3)
    rows("sph_harm_y order above degree", lambda x: sp.sph_harm_y(1, 2, x, 0.3) + x, P3)
    rows("sph_harm_y by its name", lambda x: sph_harm_y(2, 1, x, 0.3), P3)
    rows.refused("sph_harm_y with derivatives", lambda x: sp.sph_harm_y(1, 1, x, 0.3, diff_n=1)[0].real.sum(), says=("diff_n",))


# --- complex matrices ------------------------------------------------------------------------------

rng = np.random.default_rng(4)
A = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
H = A @ A.conj().T + np.eye(4)
b = rng.normal(size=4) + 1j * rng.normal(size=4)
X = np.array([0.8, 0.7, 1.2, 0.5])
known, definite, real = linalg.lu_factor(A), linalg.cho_factor(H), linalg.lu_factor(A.real)


def general(x):
    return A * x[0] + np.diag(x) * (1 + 2j)


def hermitian(x):
    return H * x[0] ** 2 + np.diag(x ** 2)


rows("qr of a complex matrix", lambda x: tuple(np.linalg.qr(general(x))), X)
rows("qr of a tall one", lambda x: np.linalg.qr(general(x)[:, :2])[0], X)
rows("qr of a wide one", lambda x: np.linalg.qr(general(x)[:2], mode="r"), X)
rows("qr of several", lambda x: np.linalg.qr(np.stack([general(x), general(2 * x)])).Q, X)
rows("scipy qr", lambda x: linalg.qr(general(x), mode="economic")[0] @ b, X)
rows("lu of a complex matrix", lambda x: linalg.lu(general(x))[1:], X)
rows("lu put together", lambda x: np.linalg.multi_dot(linalg.lu(general(x))), X)
rows("lu with indices", lambda x: linalg.lu(general(x), p_indices=True)[1], X)
rows("lu_factor and lu_solve", lambda x: linalg.lu_solve(linalg.lu_factor(general(x)), b), X)
rows("lu_solve of captured factors", lambda x: linalg.lu_solve(known, b * x), X)
rows("lu_solve of captured real factors", lambda x: linalg.lu_solve(real, x), X)
rows("transposed lu_solve", lambda x: linalg.lu_solve(known, b * x, trans=1), X)
rows("adjoint lu_solve", lambda x: linalg.lu_solve(linalg.lu_factor(general(x)), A, trans=2), X)
rows("solve_triangular", lambda x: linalg.solve_triangular(np.tril(general(x)), b, lower=True), X)
rows("solve_triangular, adjoint", lambda x: linalg.solve_triangular(general(x), A * x, trans="C"), X)
rows("solve_triangular, transposed", lambda x: linalg.solve_triangular(general(x), b, trans="T", unit_diagonal=True), X)
rows("cho_factor and cho_solve", lambda x: linalg.cho_solve(linalg.cho_factor(hermitian(x)), b), X)
rows("cho_solve of a lower factor", lambda x: linalg.cho_solve((np.linalg.cholesky(hermitian(x)), True), A), X)
rows("cho_solve of captured factors", lambda x: linalg.cho_solve(definite, b * x), X)
rows("scipy cholesky", lambda x: linalg.cholesky(hermitian(x)), X)
rows("determinant", lambda x: np.atleast_1d(np.linalg.det(general(x))), X)
rows("determinants of several", lambda x: linalg.det(np.stack([general(x), general(-x)])), X)
rows("slogdet", lambda x: np.stack(np.linalg.slogdet(general(x))), X)
rows.refused("a singular triangle", lambda x: np.abs(linalg.solve_triangular(np.diag(x * b * [1, 0, 1, 1]), b)).sum(), X, raises=np.linalg.LinAlgError, says=("ingular",))
