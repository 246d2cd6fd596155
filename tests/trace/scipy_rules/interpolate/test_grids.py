"""Interpolation in tables: `interp1d`, `RegularGridInterpolator`, `interpn`."""
from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate as si

from jitad import jit
from jitad.errors import UnsupportedOperationError
from tests.helpers.solvers import together
from tests.programs.table import interpreted

RNG = np.random.default_rng(5)
X = np.cumsum(RNG.uniform(0.5, 1.5, 8))
Y, COLUMNS = RNG.normal(size=8), RNG.normal(size=(8, 2))
INSIDE, AROUND = RNG.uniform(X[0], X[-1], 5), RNG.uniform(X[0] - 1.0, X[-1] + 1.0, 5)
KINDS = ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 5]
GRID = (np.array([0, 1, 2.5, 4]), np.array([0, 0.7, 2.0]), np.array([0.0, 1.0, 3, 5, 6]))
VALUES, PLACES = RNG.normal(size=(4, 3, 5)), RNG.uniform(0.0, 1.0, (5, 3)) * [4.0, 2.0, 6.0]


pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def test_lines_of_all_kinds():
    together([lambda x, y, q, k=k: si.interp1d(x, y, kind=k)(q) for k in KINDS], X, Y, INSIDE)


def test_beyond_the_points_and_unsorted_ones():
    together([*(lambda y, q, k=k: si.interp1d(X, y[:, 0], kind=k, fill_value="extrapolate")(q)
                for k in ("linear", "nearest", "cubic")),
              lambda y, q: np.nan_to_num(si.interp1d(X, y[:, 0], kind="next", fill_value="extrapolate")(q)),
              lambda y, q: si.interp1d(X, y[:, 0], bounds_error=False, fill_value=(1.0, 2.0))(q),
              lambda y, q: si.interp1d(X, y, axis=0, fill_value=3.0, bounds_error=False)(q),
              lambda y, q: si.interp1d(X, y.T, fill_value="extrapolate")(q),
              lambda y, q: si.interp1d(X[::-1], y[:, 1], fill_value="extrapolate")(q)], COLUMNS, AROUND)


def test_tables_that_were_made_outside():
    made = [si.interp1d(X, Y, kind=k, fill_value="extrapolate") for k in ("linear", "cubic", "quadratic", "zero")]
    grid = si.RegularGridInterpolator(GRID, VALUES, bounds_error=False, fill_value=None)
    together([*(lambda q, s=s: s(q) for s in made), lambda q: grid((q[0], q[1:3], 1.0)),
              lambda q: grid(np.stack([q, q, q], axis=-1))], AROUND)


def test_grids_by_values_places_and_themselves():
    together([lambda v, p: si.RegularGridInterpolator(GRID, v)(p), lambda v, p: si.interpn(GRID, v, p),
              lambda v, p: si.RegularGridInterpolator(GRID, v, method="nearest")(p),
              lambda v, p: si.RegularGridInterpolator(GRID, v, bounds_error=False, fill_value=None)(p + 2.0),
              lambda v, p: si.RegularGridInterpolator(GRID, v, bounds_error=False, fill_value=9.0)(p + 1.0),
              lambda v, p: si.RegularGridInterpolator(GRID[:2], v)(p[:, :2])], VALUES, PLACES)
    together([lambda g, p: si.RegularGridInterpolator((g, *GRID[1:]), VALUES, bounds_error=False, fill_value=None)(p)],
             GRID[0], PLACES)


def test_bounds_are_kept_by_every_call():
    line = jit(lambda q: si.interp1d(X, Y)(q))
    grid = jit(lambda p: si.RegularGridInterpolator(GRID, VALUES)(p))
    line(INSIDE), grid(PLACES)
    with pytest.raises(ValueError, match="above the interpolation range"):
        line(INSIDE + 9.0)
    with pytest.raises(ValueError, match="below the interpolation range"):
        line(INSIDE - 9.0)
    with pytest.raises(ValueError, match="out of bounds"):
        grid(PLACES + 5.0)


def test_what_is_missing_is_named():
    with pytest.raises(UnsupportedOperationError, match=r"RegularGridInterpolator with method='pchip' at .*test_grids"):
        jit(lambda v: si.RegularGridInterpolator(GRID, v, method="pchip")((1.0, 1.0, 1.0)))(VALUES)
    with pytest.raises(NotImplementedError, match="kinky is unsupported"):
        jit(lambda y: si.interp1d(X, y, kind="kinky")(2.0))(Y)


def test_descending_grids():
    grid = (GRID[0][::-1], GRID[1], GRID[2][::-1])
    together([lambda g, v: si.RegularGridInterpolator((g, *grid[1:]), v)(PLACES),
              lambda g, v: si.interpn((g, *grid[1:]), v, PLACES, method="nearest")], grid[0], VALUES)


def test_splines_of_several_dimensions():
    """SciPy finds coefficients by iterations that stop at 1e-6, those of `RectBivariateSpline` exactly."""
    x, y = np.array([0.0, 1, 2.5, 3, 4, 5.5]), np.array([0.0, 0.7, 2, 3, 4.5, 5, 6])
    values, places = RNG.normal(size=(6, 7)), RNG.uniform(0.5, 5.0, (4, 2))
    made = {k: si.RegularGridInterpolator((x, y), values, k) for k in ("slinear", "cubic", "quintic")}
    together([lambda v, q, s=s: s(q) for s in made.values()], values, places, run=interpreted)
    table = lambda v, q, k: si.RegularGridInterpolator((x, y), v, k, bounds_error=False, fill_value=None)(q)
    exact = lambda v, q: [si.RectBivariateSpline(x, y, v, kx=k, ky=k).ev(*q.T) for k in (3, 5)]
    found = interpreted(jit(lambda v, q: (table(v, q, "cubic"), table(v, q, "quintic"))), (values, places))
    np.testing.assert_allclose(found, exact(values, places), rtol=1e-9, atol=1e-9)
    together([lambda v, q: table(v, q, "slinear"), lambda v, q: table(v, 8.0 - q[:1], "slinear"),
              lambda v, q: si.interpn((x, y), v, q, "cubic") - table(v, q, "cubic")], values, places, run=interpreted)
