"""Branch-free modified Bessel functions of orders 0 and 1 in machine operations.

The table of this family is `table`; the conventions are those of `explog`.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from jitad.compile.math.explog import INF, NAN, clamp, exp_negative, exp_scaled, polynomial
from jitad.compile.math.special import constant_last, minus_square
from jitad.tape.expr import Expr, call, const, select

# I0(x) and 2 I1(x) / x in x**2 / 4 for |x| < 8: the power series, DLMF 10.25.2, whose terms have one sign
SMALL_0 = tuple(1 / math.factorial(k) ** 2 for k in range(25))
SMALL_1 = tuple(1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(25))
# the derivative of their logarithms, to 7%
SLOPE_0, SLOPE_1 = (0.559, -0.0382, 0.00113), (0.406, -0.0221, 0.000606)
# exp(-x) sqrt(x) I0(x) in 16 / x - 1 for x >= 8: relative error 1.5e-17
LARGE_0 = (
    0.4021765094450081, 0.0033605519836678913, 0.00013621607438951463, 1.114303378845176e-05,
    1.4838476780922646e-06, 2.9735992084667734e-07, 8.872014585661555e-08, 3.932512321137824e-08,
    2.156780676115673e-08, 7.559364098665437e-09, -6.856484545962442e-09, -1.3427511481900905e-08,
    -5.0175940345046716e-09, 7.600254486433509e-09, 6.522264862032271e-09, -3.5862834111582305e-09,
    -4.5305710768621196e-09, 1.6084886155781772e-09, 2.163681278413876e-09, -6.327909921997027e-10,
    -6.494591114401118e-10, 1.7698085539456536e-10, 9.114760157514253e-11, -2.4421972688131832e-11,
)
LARGE_1 = (
    0.38939845902587233, -0.009749577193235765, -0.00021923576383137776, -1.5038547198221758e-05,
    -1.8349102493990178e-06, -3.4838563464253135e-07, -1.0001075046243961e-07, -4.3128498031006734e-08,
    -2.3394122958362557e-08, -8.432168972932417e-09, 6.84757829926934e-09, 1.4051746928735543e-08,
    5.5720183980930355e-09, -7.687251308765992e-09, -6.9444186339873875e-09, 3.501765193290176e-09,
    4.763780078020254e-09, -1.5218214060680734e-09, -2.2624401109204446e-09, 5.870664618471487e-10,
    6.7727478454462e-10, -1.6283264322621244e-10, -9.491890392992048e-11, 2.2421768596847442e-11,
)


def _parts(x: Expr, small: tuple[float, ...], large: tuple[float, ...]) -> tuple[Expr, Expr, Expr, Expr]:
    """(a, whether a < 8, the series there, exp(-a) I(a) beyond) for a = |x|."""
    a = abs(x)
    near = a < 8.0
    inner, outer = select(near, a, 0.0), select(near, const(8.0), a)
    high, low = minus_square(0.5 * inner, -1.0)
    square = high + low
    series = constant_last(square, small)
    series = series + series * (((high - square) + low) * polynomial(square, SLOPE_0 if small is SMALL_0 else SLOPE_1))
    beyond = constant_last(16.0 / outer - 1.0, large) / call("sqrt", outer)
    return a, near, series, beyond


def _growing(order: int) -> Callable[[Expr], Expr]:
    small, large = (SMALL_0, LARGE_0) if order == 0 else (SMALL_1, LARGE_1)

    def function(x: Expr) -> Expr:
        a, near, series, beyond = _parts(x, small, large)
        far = select(a > 715.0, const(INF), exp_scaled(clamp(a, None, 715.0), const(0.0), beyond))
        far = select(a < INF, far, NAN)                               # as SciPy's
        if order == 0:
            return select(near, series, far)
        return select(near, 0.5 * x * series + 0.0, call("copysign", far, x))
    return function


def _scaled(order: int) -> Callable[[Expr], Expr]:
    small, large = (SMALL_0, LARGE_0) if order == 0 else (SMALL_1, LARGE_1)

    def function(x: Expr) -> Expr:
        a, near, series, beyond = _parts(x, small, large)
        inside = exp_negative(-a) * series
        if order == 0:
            return select(near, inside, beyond)
        return select(near, 0.5 * x * inside + 0.0, call("copysign", beyond, x))
    return function


i0, i1, i0e, i1e = _growing(0), _growing(1), _scaled(0), _scaled(1)
"""The power series below 8, where what x**2 / 4 loses by rounding is made good, else a polynomial in 16 / x: 3.8 ulp.
"""
