"""Splines, piecewise polynomials and B-splines: by points, values, knots and coefficients."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate as si

from jitad import hessian, jit, value_and_grad
from jitad.errors import UnsupportedOperationError
from jitad.testing import check_grads
from tests.helpers.solvers import agrees, together
from tests.programs.table import interpreted

RNG = np.random.default_rng(3)
X = np.cumsum(RNG.uniform(0.5, 1.5, 8))
Y, COLUMNS = RNG.normal(size=8), RNG.normal(size=(8, 3))
INSIDE, AROUND = RNG.uniform(X[0], X[-1], 5), RNG.uniform(X[0] - 1.0, X[-1] + 1.0, 5)
T = np.array([0, 0, 0, 0, 1, 2, 2.5, 3.5, 5, 5, 5, 5.0])
C = RNG.normal(size=8)

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def cubic(bc_type, x, y, q, **options):
    if bc_type == "periodic":
        y = np.concatenate([y[:-1], y[:1]])
    return si.CubicSpline(x, y, bc_type=bc_type, **options)(q)


CONDITIONS = ["not-a-knot", "natural", "clamped", "periodic", ((1, 0.3), (2, -0.2)), ((2, 0.5), "not-a-knot")]


def test_cubic_splines_of_all_conditions_by_points_values_and_places():
    together([lambda x, y, q, bc=bc: cubic(bc, x, y, q) for bc in CONDITIONS], X, Y, AROUND)


def test_few_points_and_several_columns():
    together([*(lambda y, q, bc=bc, n=n: cubic(bc, X[:n], y[:n, 0], q) for bc in CONDITIONS[:4:3] for n in (2, 3, 4)),
              *(lambda y, q, bc=bc: cubic(bc, X, y, q) for bc in CONDITIONS[1:4:2]),
              lambda y, q: si.CubicSpline(X, y.T, axis=1)(q.reshape(1, 5)),
              lambda y, q: si.PchipInterpolator(X[:2], y[:2])(q),
              lambda y, q: si.Akima1DInterpolator(X[:2], y[:2], extrapolate=True)(q)], COLUMNS, AROUND)


def test_local_rules():
    together([lambda x, y, q: si.PchipInterpolator(x, y)(q),
              lambda x, y, q: si.PchipInterpolator(x, np.cumsum(y**2))(q),
              *(lambda x, y, q, m=m: si.Akima1DInterpolator(x, y, method=m)(q) for m in ("akima", "makima")),
              lambda x, y, q: si.CubicHermiteSpline(x, y, y[::-1])(q),
              lambda x, y, q: si.PPoly(np.stack([y[1:]] * 3), x)(q)],
             X, Y, INSIDE)


def test_derivatives_antiderivatives_and_integrals():
    together([*(lambda y, q, nu=nu: si.CubicSpline(X, y)(q, nu) for nu in (2, 4)),
              lambda y, q: si.CubicSpline(X, y).derivative()(q), lambda y, q: si.CubicSpline(X, y).antiderivative()(q),
              lambda y, q: si.CubicSpline(X, y).integrate(q[0], q[1]),
              lambda y, q: si.CubicSpline(X, np.append(y[:-1], y[0]), bc_type="periodic").integrate(q[0] - 9, q[1] + 9),
              lambda y, q: si.make_interp_spline(X, y).derivative()(q)], Y, AROUND)


def test_b_splines():
    q = RNG.uniform(0.0, 5.0, 5)
    spline = lambda c, **options: si.BSpline(T, c, 3, **options)
    padded = lambda c: (T, np.append(c, np.zeros(4)), 3)
    together([lambda c, q: spline(c)(q), lambda c, q: spline(c)(q, 1), lambda c, q: spline(c)(q + 1.0),
              lambda c, q: spline(c).antiderivative()(q), lambda c, q: spline(c).integrate(q[0], q[1]),
              lambda c, q: spline(c, extrapolate=False).integrate(q[0] - 7.0, q[1]),
              lambda c, q: spline(c, extrapolate="periodic")(q + 7.0), lambda c, q: spline(np.stack([c, c**2], 1))(q),
              lambda c, q: si.splev(q, padded(c)), lambda c, q: si.splev(q + 1.0, padded(c), der=1, ext=1),
              lambda c, q: si.splev(q + 1.0, padded(c), ext=3), lambda c, q: si.splint(q[0], q[1], padded(c))], C, q)


def test_b_splines_by_their_inner_knots_and_interpolation_by_them():
    def at_knots(inner, q):
        return si.BSpline(np.concatenate([np.zeros(4), inner, np.full(4, 5.0)]), C, 3)(q)

    agrees(lambda inner, q: np.sum(np.sin(at_knots(inner, q))), T[4:8], RNG.uniform(0.0, 5.0, 5))
    together([lambda x, y, q, k=k: si.make_interp_spline(x, y, k)(q) for k in (1, 2, 3, 5)], X, Y, AROUND)


def test_splines_that_were_made_outside_are_captures():
    smooth = si.UnivariateSpline(X, Y, s=0.1)
    made = [si.CubicSpline(X, Y), si.PchipInterpolator(X, Y), si.Akima1DInterpolator(X, Y, extrapolate=True),
            si.make_interp_spline(X, COLUMNS, k=2), si.CubicSpline(X, Y).derivative(), smooth,
            si.InterpolatedUnivariateSpline(X, Y, ext=1)]
    together([*(lambda q, s=s: s(q) for s in made), lambda q: smooth.derivative()(q) + smooth(q, 2),
              lambda q: smooth.integral(q[0], q[1]), lambda q: made[0].antiderivative()(q)], AROUND)


def test_what_is_written_into_a_captured_spline_is_seen():
    spline = si.CubicSpline(X, Y)
    compiled = jit(lambda q: spline(q))
    compiled(2.0)
    spline.c *= 2.0
    np.testing.assert_allclose(compiled(2.0), spline(2.0))
    spline = si.CubicSpline(X, Y**2)
    np.testing.assert_allclose(compiled(2.5), spline(2.5))


def test_higher_derivatives_both_modes_batches_and_loops():
    def curve(y, q):
        return np.sum(np.exp(-si.CubicSpline(X[:4], y)(q)))

    check_grads(curve, (Y[:4], INSIDE), order=2)
    second = hessian(lambda q: si.CubicSpline(X, Y)(q))(3.3)
    np.testing.assert_allclose(second, si.CubicSpline(X, Y)(3.3, 2), rtol=1e-10)

    def stepped(y):
        spline, t = si.CubicSpline(X, y), 2.0
        for _ in range(30):
            t = t + 0.1 * np.tanh(spline(t))
        return t
    agrees(stepped, Y)


def test_errors_are_scipys_and_what_is_missing_is_named():
    compiled = jit(lambda x, y: si.CubicSpline(x, y)(2.0))
    compiled(X, Y)
    for x in (X[::-1].copy(), np.full(8, 1.0)):
        with pytest.raises(ValueError, match="strictly increasing"):
            compiled(x, Y)
    with pytest.raises(ValueError, match="finite"):
        compiled(X, Y * np.nan)
    with pytest.raises(ValueError, match="is not allowed"):
        jit(lambda y: si.CubicSpline(X, y, bc_type="free")(2.0))(Y)
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.interpolate\.CubicSpline\.roots at .*test_splines"):
        jit(lambda y: si.CubicSpline(X, y).roots())(Y)
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.interpolate\.UnivariateSpline of traced"):
        jit(lambda y: si.UnivariateSpline(X, y)(2.0))(Y)
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.interpolate\.BarycentricInterpolator at .*:"):
        jit(lambda y: si.BarycentricInterpolator(X, y)(2.0))(Y)


def test_a_stand_in_is_an_instance_of_its_class():
    def typed(y):
        spline = si.PchipInterpolator(X, y)
        assert isinstance(spline, si.PchipInterpolator) and isinstance(spline, si.PPoly)
        return spline(2.0) + 0.0 * spline.c[0, 0]
    np.testing.assert_allclose(value_and_grad(typed)(Y)[0], si.PchipInterpolator(X, Y)(2.0))


def test_fitted_splines_keep_what_they_are_beyond_their_knots():
    made = [si.UnivariateSpline(X, Y, s=0, ext=ext) for ext in (0, 1, 3)]
    together([lambda q, s=s, f=f: f(s)(q) for s in made for f in (
        lambda s: s, lambda s: s.derivative(), lambda s: s.antiderivative(), lambda s: s.derivative(2))], AROUND)
    strict = si.UnivariateSpline(X, Y, s=0, ext=2)
    with pytest.raises(ValueError, match="bispev"):
        jit(lambda q: strict.derivative()(q))(X[-1] + 1.0)


def test_an_axis_that_there_is_not():
    for function in (lambda y: si.BSpline(T, y, 3, axis=1)(2.0), lambda y: si.make_interp_spline(X, y, axis=-2)(2.0),
                     lambda y: si.interp1d(X, y, axis=2)(2.0)):
        with pytest.raises(IndexError, match=r"out of (bounds|range)"):
            jit(function)(Y)


def test_fitted_splines_with_knots_that_are_chosen():
    """Through all points, or the least squares with knots that are given."""
    inner, weights = np.array([X[2] + 0.1, X[5] - 0.1]), RNG.uniform(0.5, 2.0, 8)
    knots = np.concatenate([[X[0]] * 3, inner, [X[-1]] * 3])
    together([*(lambda x, y, q, k=k: si.UnivariateSpline(x, y, k=k, s=0)(q) for k in (1, 2, 3, 4, 5)),
              lambda x, y, q: si.UnivariateSpline(x, y, weights, s=0, ext=3)(q + 1.0),
              lambda x, y, q: si.InterpolatedUnivariateSpline(x, y, k=2).derivatives(q[0]),
              lambda x, y, q: si.LSQUnivariateSpline(x, y, inner, k=2)(q),
              lambda x, y, q: si.LSQUnivariateSpline(x, y, inner, w=weights * y[0])(q, nu=1),
              lambda x, y, q: si.LSQUnivariateSpline(x, y, [inner[0] + 0.01 * y[1]]).get_knots(),
              lambda x, y, q: si.make_lsq_spline(X, np.stack([y, y**2], 1), knots, 2, w=weights)(q),
              lambda x, y, q: si.splev(q, si.splrep(x, y), der=1),
              lambda x, y, q: si.splev(q, si.splrep(x, y, weights, t=inner)),
              lambda x, y, q: si.splint(X[0], q[0], si.splrep(x, y, weights, s=0, k=2))], X, Y, INSIDE, run=interpreted)
    for make, says in ((lambda y: si.splrep(X, y, weights)[1], "splrep with s= or w="),
                       (lambda y: si.LSQUnivariateSpline(X, y, inner, bbox=[0.0, 9.0])(2.0), "Spline with bbox=")):
        with pytest.raises(UnsupportedOperationError, match=says):
            jit(make)(Y)
    with pytest.raises(ValueError, match="Schoenberg-Whitney"):
        jit(lambda y: si.LSQUnivariateSpline(X, y, inner[::-1].copy())(2.0))(Y)
