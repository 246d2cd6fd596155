"""What the math expansions are compared with: mpmath's functions, the points, and both ways of running them."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath as mp
import numba
import numpy as np
from scipy import special

from jitad.compile.math.table import EXPANSIONS
from jitad.compile.reference import scalar as scalar_numpy
from jitad.tape.expr import var
from tests.helpers.numba_math import intrinsic

HALF_PI, TINY, HUGE = math.pi / 2, 5e-324, 1.7976931348623157e308
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, -3.0, 0.5, TINY, -TINY, 2.0**-1022,
                    -(2.0**-1022), HUGE, -HUGE, 2.0**52, 2.0**53 + 2])
FOUR_ULP = {"erf", "erfc", "erfcx", "lgamma", "digamma", "ndtr", "log_ndtr", "ndtri", "erfinv", "i0", "i1",
            "i0e", "i1e", "exp_share"}
SIX_ULP = {"gamma_function", "erfcinv"}  # SciPy's gamma: 5.6; erfcinv beside 1.5 without fused operations: 4.1
POSITIVE = {"lgamma", "digamma"}  # the negative axis has a test of its own
BINARY = ("logaddexp", "arctan2", "hypot", "pow")
UNARY = [name for name in EXPANSIONS if name not in (*BINARY, "betaln")]
RNG = np.random.default_rng(7)
N = 400


def seed(name: str) -> None:
    """Let the points depend on `name` alone, not on what was drawn for other tests."""
    RNG.bit_generator.state = np.random.default_rng([7, *name.encode()]).bit_generator.state


def uniform(low: float, high: float, n: int = N) -> np.ndarray:
    return RNG.uniform(low, high, n)


def spread(low: float, high: float, n: int = N // 2) -> np.ndarray:
    """Both signs, magnitudes even in the exponent."""
    magnitude = 10.0 ** RNG.uniform(low, high, n)
    return np.concatenate([magnitude, -magnitude])


def near(points: Any) -> np.ndarray:
    """Close to the points, from one ulp to a tenth away."""
    offsets = spread(-16.5, -1, 60)
    return np.concatenate([p * (1 + offsets) if p else offsets for p in np.atleast_1d(points)])


def logistic_points() -> list[np.ndarray]:
    return [uniform(-746, 40), uniform(-40, 746), uniform(-40, 40), uniform(-3, 3)]


def gamma_points() -> list[np.ndarray]:
    return [uniform(0, 12), uniform(7, 100, 200), uniform(0.4, 2.6), near([0.5, 1.0, 1.25, 1.46163214, 2.0, 2.5, 8.0])]


def angles() -> list[np.ndarray]:
    multiples = np.unique((10.0 ** uniform(0, 15)).astype(np.int64))
    worst = [6381956970095103 * 2.0**797, 5319372648326541 * 2.0**-52, 0.7853981633974483, 0.7853981633974484]
    return [uniform(-8, 8), uniform(-1e5, 1e5), spread(5, 308), multiples * HALF_PI, np.arange(200) * (HALF_PI / 2),
            np.array(worst)]


def logarithm(base: float | None = None) -> Callable[..., Any]:
    return lambda x: mp.mpf("-inf") if x == 0 else mp.nan if x < 0 else mp.log(x) if base is None else mp.log(x, base)


def mp_log1p(x: Any) -> Any:
    return mp.log1p(x) if x > -1 else mp.mpf("-inf") if x == -1 else mp.nan


def mp_softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 800 else x


def mp_erfc(x: Any) -> Any:
    return mp.erfc(x) if abs(x) < 40 else mp.mpf(0 if x > 0 else 2)


def mp_log_ndtr(x: Any) -> Any:
    z = -x / mp.sqrt(2)
    if z < 500:
        return mp.log1p(-mp_erfc(-z) / 2) if x > 0 else mp.log(mp.erfc(z) / 2)
    y = 1 / (2 * z * z)
    return -z * z - mp.log(2 * z * mp.sqrt(mp.pi)) + mp.log1p(-y + 3 * y**2 - 15 * y**3)


def mp_erfcx(x: Any) -> Any:
    if abs(x) > 1000:
        return mp.inf if x < 0 else (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def within(low: float, high: float, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` within its domain, NaN outside."""
    return lambda x: function(x) if low <= x <= high else mp.nan


def mp_lgamma(x: Any) -> Any:
    if x > 1e16:
        return (x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2
    return mp.re(mp.loggamma(x)) if abs(x) > 1e-30 else -mp.log(abs(x)) - mp.euler * x


def mp_digamma(x: Any) -> Any:
    if x > 1e16:
        return mp.log(x) - 1 / (2 * x)
    return mp.digamma(x) if abs(x) > 1e-30 else -1 / x - mp.euler


def newton(start: Callable[[float], Any], residual: Callable[..., Any]) -> Callable[..., Any]:
    """The inverse of a function with the derivative of erf, but for the sign, from a value of SciPy."""
    def inverse(y: Any) -> Any:
        x = mp.mpf(float(start(float(y))))
        for _ in range(4 if mp.isfinite(x) else 0):
            u = residual(x, y) * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
            x -= u / (1 + x * u)
        return x
    return inverse


mp_erfcinv = newton(special.erfcinv, lambda x, y: y - mp.erfc(x))
mp_erfinv = newton(special.erfinv, lambda x, y: mp.erf(x) - y)


def mp_ndtri(p: Any) -> Any:
    return -mp.sqrt(2) * mp_erfcinv(2 * p)


def mp_bessel(order: int, scaled: bool) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        a, sign = abs(x), -1 if order and x < 0 else 1
        if a > 1000:
            series, term = mp.mpf(1), mp.mpf(1)
            for k in range(1, 20):                                   # DLMF 10.40.1
                term *= -mp.mpf(4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * a)
                series += term
            return sign * (series / mp.sqrt(2 * mp.pi * a) if scaled else mp.inf)
        return sign * mp.besseli(order, a) * (mp.exp(-a) if scaled else 1)
    return function


def overflowing(function: Callable[..., Any], beyond: Any) -> Callable[..., Any]:
    """`function`, but `beyond` where exp(x) is infinite."""
    return lambda x: beyond if x > 709.782712893384 else function(x)


def mp_gamma(x: Any) -> Any:
    if x <= 0 and x == mp.floor(x):
        return mp.nan
    return mp.inf if x > 172 else mp.mpf(0) if x < -190 else mp.gamma(x)


def bessel_points() -> list[np.ndarray]:
    return [uniform(-12, 12), uniform(-711, 711), near([8.0, -8.0])]


# name: (exact function, the function whose special values count, hard points)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[[], list[np.ndarray]]]] = {
    "exp": (mp.exp, np.exp, lambda: [uniform(-746, 710), uniform(-1, 1), uniform(709, 710), uniform(-746, -708)]),
    "exp2": (lambda x: mp.mpf(2) ** x, np.exp2, lambda: [uniform(-1076, 1025), uniform(-1, 1), uniform(-1075, -1021)]),
    "expm1": (mp.expm1, np.expm1, lambda: [uniform(-50, 710), uniform(-2, 2), uniform(-0.4, 0.4), near([0.0])]),
    "log": (logarithm(), np.log, lambda: [near([1.0]), uniform(0, 3), uniform(0.6, 1.6)]),
    "log2": (logarithm(2), np.log2, lambda: [near([1.0]), uniform(0, 3), 2.0 ** np.arange(-1074, 1024)]),
    "log10": (logarithm(10), np.log10, lambda: [near([1.0]), uniform(0, 3)]),
    "log1p": (mp_log1p, np.log1p, lambda: [near([-1.0, 0.0]), uniform(-1, 3), uniform(-0.4, 0.6)]),
    "tanh": (mp.tanh, np.tanh, lambda: [uniform(-20, 20), uniform(-1, 1), near([0.0, 0.55])]),
    "sinh": (mp.sinh, np.sinh, lambda: [uniform(-711, 711), uniform(-3, 3), uniform(709, 711), near([0.0])]),
    "cosh": (mp.cosh, np.cosh, lambda: [uniform(-711, 711), uniform(-3, 3), uniform(709, 711)]),
    "sin": (mp.sin, np.sin, angles),
    "cos": (mp.cos, np.cos, angles),
    "tan": (mp.tan, np.tan, angles),
    "arctan": (mp.atan, np.arctan, lambda: [uniform(-10, 10), uniform(-1, 1), near([1.0])]),
    "arcsin": (within(-1, 1, mp.asin), np.arcsin, lambda: [uniform(-1, 1), near([1.0, 0.5, 0.55])]),
    "arccos": (within(-1, 1, mp.acos), np.arccos, lambda: [uniform(-1, 1), near([1.0, -1.0, 0.5, 0.55])]),
    "arcsinh": (mp.asinh, np.arcsinh, lambda: [uniform(-5, 5), spread(-5, -3), spread(8, 10), near([0.0])]),
    "arccosh": (within(1, np.inf, mp.acosh), np.arccosh, lambda: [uniform(1, 5), near([1.0]), spread(8, 10)]),
    "arctanh": (within(-1, 1, mp.atanh), np.arctanh, lambda: [uniform(-1, 1), near([0.0, 1.0, -1.0])]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt, lambda: [uniform(-10, 10), near([1.0])]),
    "erfcx": (mp_erfcx, special.erfcx, lambda: [uniform(-27, 30), uniform(-3, 3), near([0.0, 0.65, -0.65])]),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), special.expit, logistic_points),
    "softplus": (mp_softplus, lambda x: np.logaddexp(0, x), logistic_points),
    "log_expit": (lambda x: -mp_softplus(-x), special.log_expit, logistic_points),
    "log1p_exp": (overflowing(mp_softplus, mp.inf), lambda x: np.log1p(np.exp(x)), logistic_points),
    "exp_share": (overflowing(lambda x: 1 / (1 + mp.exp(-x)), mp.nan), lambda x: np.exp(x) / (1 + np.exp(x)),
                  logistic_points),
    "erf": (mp.erf, special.erf, lambda: [uniform(-6, 6), uniform(-1, 1)]),
    "erfc": (mp_erfc, special.erfc, lambda: [uniform(-6, 28), uniform(-1, 1), uniform(26, 27.3)]),
    "ndtr": (lambda x: mp_erfc(-x / mp.sqrt(2)) / 2, special.ndtr, lambda: [uniform(-39, 10), uniform(-2, 2)]),
    "log_ndtr": (mp_log_ndtr, special.log_ndtr, lambda: [uniform(-39, 39), uniform(-2, 2), uniform(-1.8e154, -1e154)]),
    "lgamma": (mp_lgamma, special.gammaln, gamma_points),
    "digamma": (mp_digamma, special.digamma, gamma_points),
    "ndtri": (within(0, 1, mp_ndtri), special.ndtri, lambda: [uniform(0, 1), near([0.25, 0.5, 0.75, 1.0])]),
    "erfinv": (within(-1, 1, mp_erfinv), special.erfinv, lambda: [uniform(-1, 1), near([0.5, -0.5, 1.0, -1.0])]),
    "erfcinv": (within(0, 2, mp_erfcinv), special.erfcinv, lambda: [uniform(0, 2), near([0.5, 1.0, 1.5, 2.0])]),
    "i0": (mp_bessel(0, False), special.i0, bessel_points), "i0e": (mp_bessel(0, True), special.i0e, bessel_points),
    "i1": (mp_bessel(1, False), special.i1, bessel_points), "i1e": (mp_bessel(1, True), special.i1e, bessel_points),
    "gamma_function": (mp_gamma, special.gamma, lambda: [
        uniform(-12, 12), uniform(-184, 171.6), uniform(0, 171.6), near([0.5, 1.25, 2.5, 8.0, -0.5, -1.0, -7.5])]),
}


@cache
def reference(name: str) -> tuple[np.ndarray, list[Any]]:
    """Hard points and the exact values there."""
    exact, _, points = CASES[name]
    seed(name)
    x = np.concatenate([spread(-320, 308.2), *points()])
    x = x[x > 0] if name in POSITIVE else x
    with mp.workprec(180):
        return x, [exact(mp.mpf(float(v))) for v in x]


@cache
def compiled(name: str, arity: int) -> Any:
    """A loop over the function; its own fast-math flags must not reach into the expansion."""
    function, loose = intrinsic(name), {"contract", "nsz", "reassoc", "arcp"}
    if arity == 2:
        @numba.njit(fastmath=loose)
        def both(x: Any, y: Any, out: Any) -> None:
            for i in range(out.size):
                out[i] = function(x[i], y[i])
        return both

    @numba.njit(fastmath=loose)
    def loop(x: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = function(x[i])
    return loop


def run(name: str, way: str, *x: np.ndarray) -> np.ndarray:
    if way == "numpy":
        names = [f"x{i}" for i in range(len(x))]
        expr = EXPANSIONS[name](*(var(n, "f8") for n in names))
        return np.asarray(scalar_numpy.evaluate(expr, dict(zip(names, x, strict=True))))
    out = np.empty(x[0].shape)
    compiled(name, len(x))(*x, out)
    return out


def ulp_error(got: float, exact: Any) -> float:
    """|got - exact| in units of the last place that float64 has at `exact`."""
    if mp.isnan(exact) or np.isnan(got):
        return 0.0 if mp.isnan(exact) and np.isnan(got) else np.inf
    if abs(exact) >= mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54) or np.isinf(got):
        return 0.0 if abs(exact) > HUGE and got == math.copysign(np.inf, exact) else np.inf
    exponent = max(int(mp.floor(mp.log(abs(exact), 2))) - 52, -1074) if exact else -1074
    return float(abs(mp.mpf(float(got)) - exact) / mp.mpf(2) ** exponent)


def largest_error(name: str, got: np.ndarray) -> tuple[float, float]:
    """The largest error and where it is."""
    x, exact = reference(name)
    with mp.workprec(180):
        errors = [ulp_error(g, e) for g, e in zip(got, exact, strict=True)]
    return max(zip(errors, x, strict=True))
