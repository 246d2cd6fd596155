"""Functions of scipy.special: derivatives by parameters against mpmath, values and derivatives at edges, refusals."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import jitad.primitives
import jitad.trace.record  # noqa: F401  (fills the tables)
from jitad import jit
from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.modes import pullback
from jitad.primitives.numeric import ARRAYS, ROUTINES
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.tape import Tape
from jitad.tape.types import TABLE
from jitad.testing.rules import Case, CaseGraph
from jitad.trace.substitutes import SUBSTITUTES
from tests.helpers.cases.functions import gradients, tape_of, traced

INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(11)


def powers(low: float, high: float, n: int) -> np.ndarray:
    return 10.0 ** RNG.uniform(low, high, n)


# --- derivatives by parameters, against mpmath ---------------------------------------------------------

def slope_of(function: Callable[..., Any], at: float, order: int = 1) -> Any:
    """The derivative of a function of mpmath, by differences at 50 digits."""
    with mp.workdps(50):
        return mp.diff(function, mp.mpf(at), order, h=mp.mpf(10) ** -14)


def gammainc(a: Any, x: Any) -> Any:
    """P, or -Q where P is near 1: they have the same derivatives."""
    return mp.gammainc(a, 0, x, regularized=True) if x < a else -mp.gammainc(a, x, regularized=True)


def betainc(a: Any, b: Any, x: Any) -> Any:
    if x * (a + b) < a:
        return mp.betainc(a, b, 0, x, regularized=True)
    return -mp.betainc(b, a, 0, 1 - mp.mpf(x), regularized=True)


def stdtr(v: Any, t: Any) -> Any:
    tail = mp.betainc(v / 2, mp.mpf(1) / 2, 0, v / (v + mp.mpf(t) ** 2), regularized=True) / 2
    return tail if t < 0 else -tail


def ive(v: Any, x: Any) -> Any:
    return mp.besseli(v, x) * mp.exp(-x)


def kve(v: Any, x: Any) -> Any:
    return mp.besselk(v, x) * mp.exp(x)


SHAPES = powers(-2, 3, 30)
NEAR = SHAPES * np.exp(RNG.normal(size=30) / (1 + np.sqrt(SHAPES)))
A, B = powers(-1, 2, 30), powers(-1, 2, 30)
ORDERS, ARGUMENTS = powers(-2, 1.5, 24), powers(-1, 2, 24)

# name of the routine: function of mpmath, which argument, order, arguments, largest error of the derivative
SLOPES: dict[str, tuple[Callable[..., Any], int, int, tuple[Any, ...], float]] = {
    "gammainc_slope": (gammainc, 0, 1, (SHAPES, NEAR), 1e-12),
    "gammainc_curve": (gammainc, 0, 2, ([0.3, 2.0, 15.0, 30.0, 400.0, 3.0], [0.1, 5.0, 9.0, 20.0, 430.0, 60.0]), 1e-10),
    "betainc_slope": (betainc, 0, 1, (A, B, RNG.beta(A, B)), 1e-12),
    "betainc_slope_b": (betainc, 1, 1, (A, B, RNG.beta(A, B)), 1e-12),
    "stdtr_slope": (stdtr, 0, 1, (powers(-1, 4, 30), RNG.standard_cauchy(30)), 1e-12),
    "zeta_slope": (mp.zeta, 0, 1, (1 + powers(-2, 1, 20), powers(-1, 1, 20)), 1e-12),
    "riemann_slope": (mp.zeta, 0, 1, (RNG.uniform(-9.5, 9, 20),), 1e-11),
    "kve_order1": (kve, 0, 1, (ORDERS, ARGUMENTS), 1e-12),
    "kve_order2": (kve, 0, 2, (ORDERS[:8], ARGUMENTS[:8]), 1e-12),
    "kve_order3": (kve, 0, 3, (ORDERS[:5], ARGUMENTS[:5]), 1e-12),
    "ive_order1": (ive, 0, 1, (np.concatenate([ORDERS, [-1.3, -0.4]]), np.concatenate([ARGUMENTS, [2.0, 9.0]])), 1e-10),
    "jv_order1": (mp.besselj, 0, 1, (ORDERS, ARGUMENTS), 1e-8),
    "yv_order1": (mp.bessely, 0, 1, (ORDERS, ARGUMENTS), 1e-8),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_by_parameters(name: str) -> None:
    function, place, order, arguments, tolerance = SLOPES[name]
    columns = [np.asarray(a, np.float64) for a in arguments]
    got = TABLE[name].evaluate(*columns)
    for row in range(len(columns[0])):
        values = [float(c[row]) for c in columns]

        def along(s: Any, values: list[float] = values) -> Any:
            return function(*(s if i == place else mp.mpf(v) for i, v in enumerate(values)))

        exact = slope_of(along, values[place], order)
        if abs(exact) < 1e-35:                           # less than the digits of the differences
            continue
        assert abs(got[row] - exact) <= tolerance * abs(exact), (name, values, got[row], float(exact))


@pytest.mark.parametrize("name", ["digamma_gap", "half_lgamma_gap", "half_digamma_gap", "log1p_rest",
                                  "trigamma_positive"])
def test_differences_without_cancellation(name: str) -> None:
    exact: dict[str, Callable[..., Any]] = {
        "digamma_gap": lambda a, b: mp.digamma(a + b) - mp.digamma(a),
        "half_lgamma_gap": lambda a: mp.loggamma(a + 0.5) - mp.loggamma(a),
        "half_digamma_gap": lambda a: mp.digamma(a + 0.5) - mp.digamma(a) - 1 / (2 * a),
        "log1p_rest": lambda a: mp.log1p(a) - a, "trigamma_positive": lambda a: mp.polygamma(1, a)}
    columns = [powers(-6, 6, 60) for _ in range(2 if name == "digamma_gap" else 1)]
    got = ROUTINES[f"special_{name}"](ARRAYS, *columns)
    with mp.workdps(50):
        for g, *values in zip(got, *columns, strict=True):
            e = exact[name](*map(mp.mpf, values))
            assert abs(g - e) <= 4e-15 * abs(e) + (4e-16 if name == "half_lgamma_gap" else 0), (name, values)


# --- values at edges ---------------------------------------------------------------------------------

def test_zeta_at_special_points() -> None:
    points = np.array([-INF, -3.0, -2.5, -2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 40.0, 1e5, INF, NAN])
    s, q = np.meshgrid(points, points)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ROUTINES["special_zeta"](ARRAYS, s, q), special.zeta(s, q), rtol=4e-15)
        np.testing.assert_allclose(ROUTINES["special_riemann"](ARRAYS, points), special.zeta(points), rtol=1e-14)


def grad(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """The gradient of the sum, by the interpreter."""
    arrays = [np.asarray(a, np.float64) for a in args]
    tape = tape_of(lambda *xs: np.sum(function(*xs)), *arrays)
    return gradients(tape, arrays, [1.0])


EDGES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "xlogy": (special.xlogy, (0.0, 0.0), (-INF, 0.0)),
    "xlogy with a weight of zero": (lambda y: special.xlogy([0.0, 2.0], y), ([0.0, 2.0],), ([0.0, 1.0],)),
    "entr": (special.entr, ([0.0, 1.0],), ([INF, -1.0],)),
    "rel_entr": (special.rel_entr, ([0.0, 1.0], [1.0, 2.0]), ([-INF, 1.0 - math.log(2)], [0.0, -0.5])),
    "kl_div": (special.kl_div, ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]), ([-INF, 0.0, math.log(2)], [1.0, 0.0, -1.0])),
    "logit": (special.logit, ([0.0, 1.0],), ([INF, INF],)),
    "betaln near 0": (special.betaln, (1e-300, 1.0), (-1e300, 0.0)),
    "betaln, large": (special.betaln, (1e15, 2.0), (-2e-15, 1 - np.euler_gamma - math.log(1e15))),
    "gamma": (special.gamma, (-0.5,), (-2 * math.sqrt(math.pi) * 0.03648997397857652,)),
    "rgamma at its zeros": (special.rgamma, ([0.0, -1.0, -2.0, -3.0],), ([1.0, -1.0, 2.0, -6.0],)),
    "gammaln below 0": (special.gammaln, (-0.5,), (0.03648997397857652,)),
    "exprel": (special.exprel, ([0.0, 1.0],), ([0.5, 1.0],)),
    "boxcox": (special.boxcox, ([3.0, 1.0], [0.0, 0.0]), ([1 / 3, 1.0], [math.log(3) ** 2 / 2, 0.0])),
    "boxcox at 0": (special.boxcox, (0.0, 2.0), (0.0, 0.25)),
    "boxcox at the other end": (special.boxcox, ([INF, INF, 0.0, NAN], [-2.0, 2.0, -2.0, 2.0]),
                                ([0.0, INF, INF, NAN], [0.25, INF, INF, NAN])),
    "boxcox1p": (special.boxcox1p, (2.0, 0.0), (1 / 3, math.log(3) ** 2 / 2)),
    "inv_boxcox": (special.inv_boxcox, (1.0, 0.0), (math.e, -math.e / 2)),
    "sinc": (special.sinc, ([0.0, 1.0],), ([0.0, -1.0],)),
    "spence": (special.spence, ([1.0, 2.0],), ([-1.0, -math.log(2)],)),
    "erfinv": (special.erfinv, ([-1.0, 0.0, 1.0],), ([INF, math.sqrt(math.pi) / 2, INF],)),
    "ndtri": (special.ndtri, ([0.0, 0.5, 1.0],), ([INF, math.sqrt(2 * math.pi), INF],)),
    "log_ndtr": (special.log_ndtr, ([-1e10, -40.0, 40.0],), ([1e10, 40.02496884720726, 0.0],)),
    "ndtri_exp": (special.ndtri_exp, ([-1e10, math.log(0.5)],), ([7.071067816029778e-06, math.sqrt(math.pi / 2)],)),
    "gammainc": (special.gammainc, ([2.0, 2.0], [0.0, INF]), ([0.0, 0.0], [0.0, 0.0])),
    "gammainc with a = 0": (special.gammainc, (0.0, 1.0), (-special.exp1(1.0), 0.0)),
    "betainc": (special.betainc, ([2.0, 2.0], [3.0, 3.0], [0.0, 1.0]), ([0.0, 0.0],) * 3),
    "i1": (special.i1, (0.0,), (0.5,)), "j1": (special.j1, (0.0,), (0.5,)), "j0": (special.j0, (0.0,), (0.0,)),
    "poch at a zero": (special.poch, (-1.0, 3.0), (-1.0, 0.0)),
    "binom beyond": (special.binom, (3.0, 4.0), (0.25, -0.25)),
    "ellipk": (special.ellipk, (0.0,), (math.pi / 8,)), "ellipe": (special.ellipe, (0.0,), (-math.pi / 8,)),
    "sici": (lambda x: special.sici(x)[0], (0.0,), (1.0,)),
    r"eval_legendre at 1": (lambda x: special.eval_legendre(3, x), (1.0,), (6.0,)),
    "logsumexp with b": (lambda a: SUBSTITUTES[special.logsumexp](a, b=[1.0, 0.0]), ([0.0, INF],), ([1.0, 0.0],)),
    "owens_t": (special.owens_t, (0.0, 1.0), (0.0, 1 / (4 * math.pi))),
    "kv, even in the order": (special.kv, (0.0, 1.0), (0.0, -special.k1(1.0))),
    "iv at order 0": (special.ive, (0.0, 1.0), (-special.k0(1.0) / math.e, special.i1e(1.0) - special.i0e(1.0))),
}


@pytest.mark.parametrize("name", EDGES)
def test_derivatives_at_edges(name: str) -> None:
    function, args, expected = EDGES[name]
    for got, e in zip(grad(function, *args), expected, strict=True):
        np.testing.assert_allclose(got, e, rtol=2e-13, atol=1e-15)


def test_second_derivatives_of_transforms_at_zero() -> None:
    """d2/dp2 of (x**p - 1) / p at p = 0 is log(x)**3 / 3; of the inverse exp(y) (2 y**3 / 3 + y**4 / 4)."""
    for name, x, expected in (("boxcox", 3.0, math.log(3.0) ** 3 / 3), ("inv_boxcox", 1.0, math.e * (2 / 3 + 1 / 4)),
                              ("boxcox1p", 2.0, math.log(3.0) ** 3 / 3)):
        function = getattr(special, name)
        tape = tape_of(lambda p, f=function, x=x: f(x, p), np.float64(0.0))
        twice = derivative(derivative(tape))
        assert float(evaluate(twice, np.float64(0.0))[0]) == pytest.approx(expected, rel=1e-13)


def derivative(tape: Tape) -> Tape:
    """The tape of the derivative of a function of one number."""
    builder = Builder()
    x = builder.input(tape.nodes[tape.inputs[0]].aval, "x")
    (y,) = builder.replay(tape, [x])
    return builder.finish(pullback(builder, [y], [builder.const(1.0)], [x]))


# --- functions that SciPy writes in Python ---------------------------------------------------------------

def values(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    return evaluate(tape_of(function, *args), *args)


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}])
def test_logsumexp_with_signs(options: dict[str, Any]) -> None:
    x, b = RNG.normal(size=(3, 4)), np.array([1.0, -2.0, 0.0, -0.5])
    substitute = SUBSTITUTES[special.logsumexp]
    expected = special.logsumexp(x, b=b, return_sign=True, **options)
    for got, e in zip(values(lambda a: substitute(a, b=b, return_sign=True, **options), x), expected, strict=True):
        np.testing.assert_allclose(got, e, rtol=1e-14, strict=True)


PYTHON: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "comb": (lambda n, k: special.comb(n, k), (np.array([5.0, 3.0, -1.0, 4.0]), np.array([2.0, 4.0, 1.0, -1.0]))),
    "perm": (lambda n, k: special.perm(n, k), (np.array([5.0, 3.0, -1.0]), np.array([2.0, 4.0, 1.0]))),
    "factorial": (lambda n: special.factorial(n), (np.array([0.0, 3.0, 4.5, -1.5]),)),
    "softplus": (lambda x: special.softplus(x), (np.array([-2.0, 30.0]),)),
    "zeta": (lambda s: special.zeta(s), (np.array([2.0, 0.5, -3.0]),)),
    "jvp": (lambda x: special.jvp(1.5, x, 3), (np.array([1.0, 4.0]),)),
    "kvp": (lambda x: special.kvp(1.5, x, 2), (np.array([1.0, 4.0]),)),
    "multigammaln": (lambda a: special.multigammaln(a, 4), (np.array([2.0, 7.5]),)),
}


@pytest.mark.parametrize("name", PYTHON)
def test_functions_written_in_python(name: str) -> None:
    import jitad

    function, args = PYTHON[name]
    np.testing.assert_allclose(jitad.jit(function)(*args), function(*args), rtol=1e-13)


def test_repetitions() -> None:
    x, k = np.array([3.0, 0.0]), np.array([2.0, 0.0])
    comb = SUBSTITUTES[special.comb]
    (got,) = values(lambda n: comb(n, k, repetition=True), x)
    np.testing.assert_array_equal(got, special.comb(x, k, repetition=True))


# --- refusals ------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "expn": (special.expn, r"expn at .* has no derivative with respect to its order: the order is an integer"),
    "eval_legendre": (special.eval_legendre, r"eval_legendre at .* no derivative with respect to its degree"),
    "hyp1f1": (lambda a: special.hyp1f1(a, 2.0, 0.5), r"hyp1f1 .* a parameter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_without_derivative(name: str) -> None:
    function, message = REFUSED[name]
    second = (0.5,) if name != "hyp1f1" else ()
    with pytest.raises(UnsupportedOperationError, match=message):
        grad(lambda n: function(n, *second), 2.0)


def test_second_derivative_by_a_shape_is_refused_by_name() -> None:
    graph = CaseGraph(Case(TABLE["betainc"], (np.float64(2.0), np.float64(3.0), np.float64(0.4)), {}))
    with pytest.raises(UnsupportedOperationError, match=r"betainc .* shape parameters, a second time"):
        pullback(graph.builder, graph.reverse(), graph.ts, graph.wrt)


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: SUBSTITUTES[special.comb](x, 2, exact=True), "comb with exact=True"),
    (lambda x: SUBSTITUTES[special.factorial](x, extend="complex"), r"factorial with extend="),
    (lambda x: SUBSTITUTES[special.multigammaln](4.0, x), "multigammaln with a dimension that is traced"),
    (lambda x: SUBSTITUTES[special.jvp](1, x, x), "jvp with an order of the derivative that is traced"),
])
def test_refused_calls(function: Callable[..., Any], message: str) -> None:
    (x,) = traced(np.float64(2.0))
    with pytest.raises(UnsupportedOperationError, match=message):
        function(x)


def test_other_arguments_of_refused_functions_have_derivatives() -> None:
    (got,) = grad(lambda x: special.expn(2, x), 1.5)
    assert float(got) == pytest.approx(-special.expn(1, 1.5))
    (got,) = grad(lambda x: special.hyp2f1(0.5, 1.5, 2.5, x), 0.3)
    assert float(got) == pytest.approx(0.3 * special.hyp2f1(1.5, 2.5, 3.5, 0.3))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
def test_log_factorials_of_integers(dtype):
    """They need neither recurrence nor reflection, and no other value comes out."""
    n = np.arange(-3 if dtype[0] == "i" else 0, 120).astype(dtype)
    n = np.concatenate([n, 2 ** np.arange(8, 62)]) if dtype == "int64" else n
    for f, more in ((lambda n: special.gammaln(n + 1), 1), (lambda n: special.gammaln(n + 2.0), 2)):
        for got, k in zip(jit(f, on_mismatch="silent")(n), (int(k) + more for k in n), strict=True):
            with mp.workprec(180):
                exact = mp.loggamma(k) if k > 0 else mp.inf
            assert got == exact or abs(got - exact) <= math.ulp(float(exact)), (k, got)
    half = jit(lambda n: special.gammaln(n + 0.5), on_mismatch="silent")
    np.testing.assert_allclose(half(n), special.gammaln(n + 0.5), rtol=1e-14)
