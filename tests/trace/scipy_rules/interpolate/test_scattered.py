"""Values at scattered points, and surfaces of splines on a grid."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate as si

from jitad import jit
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import together
from tests.programs.table import interpreted

RNG = np.random.default_rng(7)
POINTS, VALUES = RNG.uniform(0.0, 1.0, (14, 2)), RNG.normal(size=14)
SPACE, PLACES = RNG.uniform(0.0, 1.0, (11, 3)), np.array([[0.4, 0.5], [0.6, 0.3], [0.5, 0.45], [3.0, 0.5]])
X, Y = np.cumsum(RNG.uniform(0.5, 1.0, 6)), np.cumsum(RNG.uniform(0.5, 1.0, 7))
GRID = RNG.normal(size=(6, 7))
WITHIN = np.array([[1.1, 1.3], [2.2, 1.9], [2.7, 3.1], [9.0, 2.0]])

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def test_between_scattered_points():
    """By points, values and places; the last place is outside."""
    outside = si.LinearNDInterpolator(POINTS, VALUES, fill_value=0.3)
    table = si.LinearNDInterpolator(POINTS, np.stack([VALUES, VALUES**2], 1), fill_value=1.0, rescale=True)
    together([lambda p, v, q: si.griddata(p, v, q, fill_value=0.5), lambda p, v, q: outside(q),
              lambda p, v, q: si.griddata((p[:, 0], p[:, 1]), v, (q[:, :1], q[:, 1]), method="linear", fill_value=0.0),
              lambda p, v, q: si.LinearNDInterpolator(p, v, 0.2, rescale=True)(q[0, 0], 0.45), lambda p, v, q: table(q),
              lambda p, v, q: si.griddata(p, v, q, "nearest"),
              lambda p, v, q: si.NearestNDInterpolator(p, v)(q),
              lambda p, v, q: si.griddata(p[:, 0], v, q[:3, 0], "linear")], POINTS, VALUES, PLACES, run=interpreted)


def test_by_the_kernel():
    together([lambda v, q: si.griddata(POINTS, v, q, fill_value=0.5),
              lambda v, q: si.RBFInterpolator(POINTS, v, kernel="cubic")(q)], VALUES, PLACES)


def test_in_space():
    places = np.full((3, 3), 0.5) + 0.05 * RNG.normal(size=(3, 3))
    together([lambda v, q: si.griddata(SPACE, v, q), lambda v, q: si.RBFInterpolator(SPACE, v)(q)], VALUES[:11], places,
             run=interpreted)


@pytest.mark.parametrize("kernel", ["linear", "thin_plate_spline", "cubic", "quintic", "multiquadric",
                                    "inverse_multiquadric", "inverse_quadratic", "gaussian"])
def test_radial_functions(kernel):
    """One of the places is one of the points, where the distance has no derivative and the functions have theirs."""
    at = np.concatenate([PLACES, POINTS[:1]]) if kernel != "linear" else PLACES
    together([lambda p, v, q: si.RBFInterpolator(p, v, degree=2, kernel=kernel, epsilon=1.0 + 0.1 * v[0])(q)], POINTS,
             VALUES, at, slope_rtol=1e-4, run=interpreted)


def test_radial_functions_of_neighbours_and_made_outside():
    made = si.RBFInterpolator(POINTS, np.stack([VALUES, VALUES**2], 1), smoothing=0.1)
    near = si.RBFInterpolator(POINTS, VALUES, neighbors=7)
    together([lambda p, v, q: si.RBFInterpolator(p, v, neighbors=8, kernel="gaussian", epsilon=1.5)(q[:2]),
              lambda p, v, q: made(q), lambda p, v, q: near(q)], POINTS, VALUES, PLACES, run=interpreted)


def test_surfaces():
    """Beyond the grid, where the last place is, a surface is constant."""
    made = si.RectBivariateSpline(X, Y, GRID, kx=3, ky=2)
    rough = si.SmoothBivariateSpline(*(v.ravel() for v in np.meshgrid(X, Y, indexing="ij")), GRID.ravel(), s=40.0)
    inside = lambda z, q: si.RectBivariateSpline(X, Y, z)
    together([lambda z, q: inside(z, q).ev(q[:, 0], q[:, 1]), lambda z, q: inside(z, q)(X[:3] + z[0, 0] ** 2, q[:2, 1]),
              lambda z, q: inside(z, q).ev(q[:, 0], q[0, 1], dx=1, dy=2), lambda z, q: made(q[0, 0], q[0, 1], dy=1),
              lambda z, q: inside(z, q).integral(q[0, 0], 2.5, -1.0, q[1, 1]), lambda z, q: rough.ev(q[:, 0], q[:, 1]),
              lambda z, q: si.bisplev(q[0, 0], q[:2, 1], (*made.tck, 3, 2))], GRID, WITHIN,
             run=interpreted)


@pytest.mark.parametrize(("function", "says"), [
    (lambda v: si.griddata(POINTS, v, PLACES, "cubic"), "griddata with method='cubic'"),
    (lambda v: si.NearestNDInterpolator(POINTS, v)(PLACES, eps=0.1), "NearestNDInterpolator with eps="),
    (lambda v: si.RectBivariateSpline(X, Y, v[0] * GRID, s=1.0), "RectBivariateSpline with s= or bbox="),
    (lambda v: si.SmoothBivariateSpline(v, v, v), "SmoothBivariateSpline of traced values")])
def test_refusals(function, says):
    with pytest.raises(UnsupportedOperationError, match=says):
        jit(function)(VALUES)


def test_arguments_that_do_not_fit():
    for wrong, says in ((lambda v: si.griddata(POINTS[:3], v, PLACES), "different number of values and points"),
                        (lambda v: si.RBFInterpolator(POINTS, v, kernel="gaussian"), "`epsilon` must be specified"),
                        (lambda v: si.RectBivariateSpline(X[::-1], Y, v[0] * GRID), "x must be strictly increasing")):
        with pytest.raises(ValueError, match=says):
            jit(lambda v, f=wrong: f(v))(VALUES)
