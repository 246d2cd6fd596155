"""Zeta functions, elliptic integrals, hypergeometric functions and orthogonal polynomials of scipy.special."""
# mypy: disable-error-code="has-type"
from __future__ import annotations

import math
from typing import Any

from jitad.primitives.core import elementwise, select
from jitad.primitives.elementwise import cos, eq, sin, sqrt, square
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.primitives.special import orders as special_orders  # noqa: F401  (fills the table of routines)
from jitad.primitives.special.rows import code_of, near_zero, own, pointer, refusing, several
from jitad.tape.builder import Value

SHAPE, UNIT, ANY = (0.5, 3.0), (0.05, 0.9), (-2.0, 2.0)

# --- zeta ------------------------------------------------------------------------------------------


def _zeta_partials(y: Value, s: Value, q: Value) -> Any:
    """DLMF 25.11.17 for q."""
    return zeta_slope(s, q), -s * zeta(s + 1.0, q)


def _zeta_slope_partials(y: Value, s: Value, q: Value) -> Any:
    return (refusing(y, "zeta", "its exponent, a second time", "it is not implemented"),
            -zeta(s + 1.0, q) - s * zeta_slope(s + 1.0, q))


zeta = elementwise("zeta", ufuncs._zeta, _zeta_partials, scalar=code_of("special_zeta"), cost=300,
                   domain=((1.5, 5.0), SHAPE), refuses=True)
zeta_slope = own("zeta_slope", _zeta_slope_partials, ((1.5, 5.0), SHAPE), cost=400, fixed=(0,))
riemann = elementwise("riemann", ufuncs._riemann_zeta, lambda y, s: riemann_slope(s),
                      scalar=code_of("special_riemann"), cost=300, domain=(1.5, 5.0), refuses=True)
riemann_slope = own("riemann_slope", lambda y, s: refusing(
    y, "zeta", "its exponent, a second time", "it is not implemented"), (1.5, 5.0), cost=400, fixed=(0,))
zetac = pointer("zetac", lambda y, s: riemann_slope(s), domain=(1.5, 5.0), refuses=True)

# --- elliptic --------------------------------------------------------------------------------------
ellipk = pointer("ellipk", lambda y, m: 0.5 * (y - elliptic_d(m)) / (1.0 - m), domain=UNIT)
ellipe = pointer("ellipe", lambda y, m: -0.5 * elliptic_d(m), domain=UNIT)
ellipkm1 = pointer("ellipkm1", lambda y, p: -0.5 * (y - elliptic_d(1.0 - p)) / p, domain=UNIT)
elliptic_d = own("elliptic_d", lambda y, m: _elliptic_d(y, m), UNIT)
"""``D(m) = (K(m) - E(m)) / m``, as Carlson's ``R_D(0, 1 - m, 1) / 3``: DLMF 19.25.1, which has no difference."""


def _elliptic_d(y: Value, m: Value) -> Value:
    """``(K - 2 D + m D) / (2 m (1 - m))``, near 0 by the power series of D."""
    coefficients = [math.pi / 2 * math.prod((2 * i - 1) / (2 * i) for i in range(1, k + 1)) ** 2 *
                    ((2 * k + 1) / (2 * k + 2)) for k in range(14)]
    series = [k * c for k, c in enumerate(coefficients)][1:]
    return near_zero(m, 0.05, series, lambda t: (ellipk(t) - 2.0 * elliptic_d(t) + t * elliptic_d(t))
                     / (2.0 * t * (1.0 - t)))


def _jacobi(i: int) -> Any:
    """sn, cn, dn and the amplitude: DLMF 22.13.1."""
    def partials(y: Value, u: Value, m: Value) -> Any:
        sn, cn, dn = (ellipj[j](u, m) for j in range(3))
        by_u = (cn * dn, -(sn * dn), -(m * sn * cn), dn)[i]
        return by_u, refusing(y, "ellipj", "its parameter m", "it is not implemented")
    return partials


ellipj = several("ellipj", _jacobi, (ANY, UNIT), 4, fixed=(1,))


def _root(phi: Value, m: Value) -> Value:
    return sqrt(1.0 - m * square(sin(phi)))


ellipkinc = pointer("ellipkinc", lambda y, phi, m: (1.0 / _root(phi, m), _kinc_by_m(y, phi, m)), domain=(ANY, UNIT))
ellipeinc = pointer("ellipeinc", lambda y, phi, m: (_root(phi, m), _einc_by_m(y, phi, m)), domain=(ANY, UNIT))


def _kinc_by_m(y: Value, phi: Value, m: Value) -> Value:
    """DLMF 19.4.5; at m = 0 the limit."""
    zero = eq(m, 0.0)
    k = select(zero, 0.5, m)
    value = (ellipeinc(phi, m) / (1.0 - k) - y) / (2.0 * k) - sin(phi) * cos(phi) / (2.0 * (1.0 - k) * _root(phi, k))
    return select(zero, 0.25 * (phi - sin(phi) * cos(phi)), value)


def _einc_by_m(y: Value, phi: Value, m: Value) -> Value:
    """DLMF 19.4.6."""
    zero = eq(m, 0.0)
    return select(zero, -0.25 * (phi - sin(phi) * cos(phi)), (y - ellipkinc(phi, m)) / (2.0 * select(zero, 0.5, m)))


# --- hypergeometric: by the argument, DLMF 13.3.15, 13.3.22, 15.5.1 ----------------------------------

# (hyp0f1 is not here: SciPy's prints tracebacks where it divides by zero.)
def _fixed(y: Value, name: str, count: int) -> tuple[Any, ...]:
    return tuple(refusing(y, name, "a parameter") for _ in range(count))


hyp1f1 = pointer("hyp1f1", lambda y, a, b, x: (*_fixed(y, "hyp1f1", 2), a / b * hyp1f1(a + 1.0, b + 1.0, x)),
                 domain=(SHAPE, SHAPE, ANY), fixed=(0, 1))
hyperu = pointer("hyperu", lambda y, a, b, x: (*_fixed(y, "hyperu", 2), -a * hyperu(a + 1.0, b + 1.0, x)),
                 domain=(SHAPE, SHAPE, SHAPE), fixed=(0, 1))
hyp2f1 = pointer("hyp2f1", lambda y, a, b, c, x: (
    *_fixed(y, "hyp2f1", 3), a * b / c * hyp2f1(a + 1.0, b + 1.0, c + 1.0, x)),
    domain=(SHAPE, SHAPE, SHAPE, (-0.6, 0.6)), fixed=(0, 1, 2))

__all__ = ["ellipe", "ellipk", "hyp2f1", "zeta"]
