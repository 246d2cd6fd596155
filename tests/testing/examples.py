"""Calls for those functions that none of the patterns of `walk` fits: expression and arguments by name."""
from __future__ import annotations

from typing import Any

import numpy as np

v, m = np.array([0.5, 1.5, 0.7, 2.5]), np.array([[2.0, 0.5, 0.3], [0.5, 3.0, 0.2], [0.3, 0.2, 4.0]])
w = np.array([3.0, 1.0, 2.0, 2.5])
cube = np.arange(24.0).reshape(2, 3, 4)
up = np.array([0.0, 1.0, 2.5, 3.0])


def _writing(call: str) -> str:
    """What is left in an array after a function has written into it."""
    return f"(lambda a: ({call}, a)[1])(1.0 * x)"


NUMPY = {
    "apply_along_axis": ("np.apply_along_axis(np.sum, 0, x)", (m,)),
    "apply_over_axes": ("np.apply_over_axes(np.sum, x, [0])", (m,)), "array_split": ("np.array_split(x, 2)", (v,)),
    "bincount": ("np.bincount([0, 1, 1, 0], x)", (v,)), "broadcast_to": ("np.broadcast_to(x, (2, 4))", (v,)),
    "c_": ("np.c_[x, x]", (v,)), "r_": ("np.r_[x, 1.0]", (v,)), "choose": ("np.choose([0, 1, 0, 1], [x, y])", (v, w)),
    "copyto": (_writing("np.copyto(a[:2], x[2:])"), (v,)), "delete": ("np.delete(x, 1)", (v,)),
    "dsplit": ("np.dsplit(x, 2)", (cube,)), "einsum": ("np.einsum('ij,jk', x, x)", (m,)),
    "expand_dims": ("np.expand_dims(x, 0)", (v,)), "fill_diagonal": (_writing("np.fill_diagonal(a, 0.0)"), (m,)),
    "fromfunction": ("np.fromfunction(lambda i, j: x * i + j, (2, 3))", (1.5,)),
    "fromiter": ("np.fromiter((2 * e for e in x), float)", (v,)), "full": ("np.full(3, x)", (1.5,)),
    "hsplit": ("np.hsplit(x, 2)", (v,)), "imag": ("np.imag(1j * x)", (v,)), "insert": ("np.insert(x, 1, y)", (v, 1.5)),
    "moveaxis": ("np.moveaxis(x, 0, 1)", (m,)), "nanquantile": ("np.nanquantile(x, 0.4)", (v,)),
    "ndenumerate": ("[e * i[0] for i, e in np.ndenumerate(x)]", (v,)), "pad": ("np.pad(x, 2)", (v,)),
    "partition": ("np.partition(x, 2)", (v,)), "piecewise": ("np.piecewise(x, [x > 1], [np.sin, 0.0])", (v,)),
    "place": (_writing("np.place(a, x > 1, [0.5])"), (v,)), "polyfit": ("np.polyfit(x, y, 1)", (v, w)),
    "put": (_writing("np.put(a, [0], 0.5)"), (v,)), "putmask": (_writing("np.putmask(a, x > 1, 0.5)"), (v,)),
    "put_along_axis": (_writing("np.put_along_axis(a, np.array([[0]]), 0.5, 0)"), (m,)),
    "quantile": ("np.quantile(x, 0.4)", (v,)), "nanpercentile": ("np.nanpercentile(x, 40)", (v,)),
    "percentile": ("np.percentile(x, 40)", (v,)), "repeat": ("np.repeat(x, 2)", (v,)),
    "reshape": ("np.reshape(x, (2, 2))", (v,)), "resize": ("np.resize(x, 7)", (v,)), "roll": ("np.roll(x, 1)", (v,)),
    "rollaxis": ("np.rollaxis(x, 1)", (m,)), "split": ("np.split(x, 2)", (v,)),
    "swapaxes": ("np.swapaxes(x, 0, 1)", (m,)), "take": ("np.take(x, [0, 2])", (v,)),
    "take_along_axis": ("np.take_along_axis(x, np.array([[0]]), 0)", (m,)), "tile": ("np.tile(x, 2)", (v,)),
    "vectorize": ("np.vectorize(lambda e: 2.0 * e)(x)", (v,)), "vsplit": ("np.vsplit(x, 3)", (m,)),
    "histogram": ("np.histogram([0.1, 0.9], 2, weights=x[:2])[0]", (v,)), "asarray_chkfinite": (
        "np.asarray_chkfinite(x)", (v,)), "select": ("np.select([x > 1], [x])", (v,)),
    "arange": ("np.arange(x, 3.0)", (0.5,)), "unique_counts": ("np.unique_counts(x).values", (v,)),
    "interp": ("np.interp(x, [0.0, 1.0, 3.0], [1.0, 2.0, 0.0])", (v,)), "cross": ("np.cross(x[0], x[1])", (m,)),
    "copy": ("np.copy(x)", (v,)), "ldexp": ("np.ldexp(x, 2)", (v,)), "tensordot": ("np.tensordot(x, x, 1)", (m,)),
    "nanmedian": ("np.nanmedian(x)", (v,)), "conjugate": ("np.conjugate(x)", (v,)),
}
LINALG = {"matrix_power": ("np.linalg.matrix_power(x, 2)", (m,)), "multi_dot": ("np.linalg.multi_dot([x, x, x])", (m,)),
          "tensorsolve": ("np.linalg.tensorsolve(x, y)", (m, v[:3])),
          "tensorinv": ("np.linalg.tensorinv(x, 1)", (m,))}


def _family(home: str, prefix: str) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Those of the polynomials that take a degree or an exponent."""
    p = f"np.polynomial.{home}.{prefix}"
    found: dict[str, tuple[str, tuple[Any, ...]]] = {
        "fit": (f"{p}fit(x, y, 1)", (v, w)), "pow": (f"{p}pow(x, 2)", (v,)), "vander": (f"{p}vander(x, 2)", (v,)),
        "vander2d": (f"{p}vander2d(x, y, (1, 2))", (v, w)),
        "vander3d": (f"{p}vander3d(x, y, x, (1, 1, 1))", (v, w)), "val3d": (f"{p}val3d(x, x, x, y)", (v, cube)),
        "grid3d": (f"{p}grid3d(x, x, x, y)", (v, cube)), "val2d": (f"{p}val2d(x, x, y)", (v, m)),
        "grid2d": (f"{p}grid2d(x, x, y)", (v, m)), "companion": (f"{p}companion(x)", (v,)),
        "interpolate": (f"{p}interpolate(lambda t: x * t, 2)", (1.5,))}
    one = home.title().replace("_", "")
    return {one: (f"np.polynomial.{one}(x)(0.5)", (v,)), **{prefix + name: call for name, call in found.items()}}


S, I = "scipy.linalg.", "scipy.interpolate."
_SOS = "[[0.2, 0.3, 0.1, 1.0, -0.5, 0.1]]"
_TCK = "np.array([0, 0, 0, 0, 1, 1, 1, 1.0]), x, 3"
EXAMPLES: dict[str, dict[str, tuple[str, tuple[Any, ...]]]] = {
    "numpy.polynomial": {name: (f"np.polynomial.{name}(x)(0.5)", (v,)) for name in (
        "Chebyshev", "Hermite", "HermiteE", "Laguerre", "Legendre", "Polynomial")},
    "numpy": NUMPY, "numpy.linalg": LINALG,
    **{f"numpy.polynomial.{home}": _family(home, prefix) for home, prefix in (
        ("polynomial", "poly"), ("chebyshev", "cheb"), ("legendre", "leg"), ("laguerre", "lag"), ("hermite", "herm"),
        ("hermite_e", "herme"))},
    "scipy.linalg": {
        "convolution_matrix": ("scipy.linalg.convolution_matrix(x, 5)", (v,)),
        "eigvalsh_tridiagonal": ("scipy.linalg.eigvalsh_tridiagonal(x, x[1:])", (v,)),
        "leslie": ("scipy.linalg.leslie(x, x[1:])", (v,)),
        "fractional_matrix_power": (f"{S}fractional_matrix_power(x @ x.T + np.eye(3), 0.5)", (m,)),
        "cho_solve": (f"{S}cho_solve({S}cho_factor(x), x)", (m,)),
        "lu_solve": (f"{S}lu_solve({S}lu_factor(x), x)", (m,)),
        "solve_banded": (f"{S}solve_banded((1, 1), x, y)", (m, v[:3])),
        "solve_sylvester": (f"{S}solve_sylvester(x, x, x)", (m,)),
        "solveh_banded": (f"{S}solveh_banded(np.stack([0.1 * x[0], x[1] + 5.0]), y)", (m, v[:3]))},
    "scipy.interpolate": {
        **{name: (f"{I}{name}(y, x)(1.2)", (v, up)) for name in (
            "CubicSpline", "PchipInterpolator", "Akima1DInterpolator", "InterpolatedUnivariateSpline", "interp1d",
            "make_interp_spline", "pchip")},
        "UnivariateSpline": (f"{I}UnivariateSpline(y, x, s=0)(1.2)", (v, up)),
        "LSQUnivariateSpline": (f"{I}LSQUnivariateSpline(y, x, [], k=1)(1.2)", (v, up)),
        "make_lsq_spline": (f"{I}make_lsq_spline(y, x, np.r_[y[0], y[0], y[-1], y[-1]], 1)(1.2)", (v, up)),
        "splrep": (f"{I}splrep(y, x)[1]", (v, up)),
        "CubicHermiteSpline": (f"{I}CubicHermiteSpline(y, x, x)(1.2)", (v, up)),
        "PPoly": (f"{I}PPoly(x, [0.0, 1.0, 2.0, 4.0])(1.2)", (m,)), "BSpline": (f"{I}BSpline({_TCK})(0.4)", (v,)),
        "splev": (f"{I}splev(0.4, ({_TCK}))", (v,)), "splint": (f"{I}splint(0.1, 0.4, ({_TCK}))", (v,)),
        "RegularGridInterpolator": (f"{I}RegularGridInterpolator((y[:3], y[:3]), x)((1.2, 0.4))", (m, up)),
        "interpn": (f"{I}interpn((y[:3], y[:3]), x, (1.2, 0.4))", (m, up)),
        "RectBivariateSpline": (f"{I}RectBivariateSpline(y[:3], y[:3], x, kx=1, ky=1)(1.2, 0.4)", (m, up)),
        "bisplev": (f"{I}bisplev(0.4, 0.3, ([0, 0, 1.0, 1], [0, 0, 1.0, 1], x, 1, 1))", (v,)),
        **{name: (f"{I}{name}([[0, 0], [2, 0], [0, 2.0], [2, 2]], x)({at})", (v,)) for name, at in (
            ("LinearNDInterpolator", "0.6, 0.3"), ("NearestNDInterpolator", "0.6, 0.3"),
            ("RBFInterpolator", "[[0.6, 0.3]]"))},
        "griddata": (f"{I}griddata([[0, 0], [2, 0], [0, 2.0], [2, 2]], x, (0.6, 0.3))", (v,)),
        **{name: (f"{I}{name}([0, 1, 2] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2], np.arange(9.0), {more}kx=1, ky=1).ev(x, x)",
                  (v,)) for name, more in (("SmoothBivariateSpline", ""), ("LSQBivariateSpline", "[1.0], [1.0], "))}},
    "scipy.special": {
        **{f"spherical_{k}n": (f"scipy.special.spherical_{k}n(2, x)", (v,)) for k in "jyik"},
        "sph_harm_y": ("scipy.special.sph_harm_y(2, 1, x, 0.3)", (v,)),
        "sph_harm": ("scipy.special.sph_harm(1, 2, x, 0.3)", (v,)),
        "eval_hermite": ("scipy.special.eval_hermite(2, x)", (v,)),
        "eval_hermitenorm": ("scipy.special.eval_hermitenorm(2, x)", (v,)),
        "eval_jacobi": ("scipy.special.eval_jacobi(2, 0.5, 0.5, x)", (v,)),
        "hyp2f1": ("scipy.special.hyp2f1(0.5, 1.5, 2.0, x)", (0.3,)),
        "comb": ("scipy.special.comb(x, 2.0)", (5.5,)), "multigammaln": ("scipy.special.multigammaln(x, 2)", (3.5,)),
        "polygamma": ("scipy.special.polygamma(1, x)", (v,)), "factorial": ("scipy.special.factorial(x)", (v,))},
    "scipy.integrate": {
        "quad": ("scipy.integrate.quad(lambda t: x * t, 0.0, 1.0)[0]", (1.5,)),
        "quad_vec": ("scipy.integrate.quad_vec(lambda t: x * t, 0.0, 1.0)[0]", (1.5,)),
        "dblquad": ("scipy.integrate.dblquad(lambda t, s: x * t * s, 0.0, 1.0, 0.0, 1.0)[0]", (1.5,)),
        "tplquad": ("scipy.integrate.tplquad(lambda r, t, s: x * r, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)[0]", (1.5,)),
        "nquad": ("scipy.integrate.nquad(lambda t: x * t, [(0.0, 1.0)])[0]", (1.5,)),
        "solve_ivp": ("scipy.integrate.solve_ivp(lambda t, s: -x * s, (0.0, 1.0), [1.0]).y[0, -1]", (1.5,)),
        "odeint": ("scipy.integrate.odeint(lambda s, t: -x * s, 1.0, [0.0, 1.0])", (1.5,)),
        "simpson": ("scipy.integrate.simpson(x, x=y)", (v, up)), "romb": ("scipy.integrate.romb(x[:3])", (v,)),
        "cumulative_trapezoid": ("scipy.integrate.cumulative_trapezoid(x, y)", (v, up)),
        "fixed_quad": ("scipy.integrate.fixed_quad(np.sin, 0.0, x)[0]", (1.5,))},
    "scipy.signal": {
        **{name: (f"scipy.signal.{name}(2, {ripple}x)[0]", (0.3,)) for name, ripple in (
            ("butter", ""), ("cheby1", "1.0, "), ("cheby2", "20.0, "), ("ellip", "1.0, 20.0, "))},
        "decimate": ("scipy.signal.decimate(x, 2)", (np.arange(40.0),)), "kaiser_beta": (
            "scipy.signal.kaiser_beta(x)", (30.0,)),
        "filtfilt": ("scipy.signal.filtfilt([0.5], [1.0, -0.5], x)", (np.arange(9.0),)),
        "resample": ("scipy.signal.resample(x, 3)", (v,)),
        "resample_poly": ("scipy.signal.resample_poly(x, 2, 3)", (v,)),
        "savgol_filter": ("scipy.signal.savgol_filter(x, 3, 1)", (v,)),
        **{name: (f"scipy.signal.{name}({_SOS}, x)", (np.arange(12.0),)) for name in ("sosfilt", "sosfiltfilt")},
        "sosfilt_zi": (f"scipy.signal.sosfilt_zi(x * np.array({_SOS}))", (1.5,))},
    "scipy.ndimage": {
        "affine_transform": ("scipy.ndimage.affine_transform(x, np.eye(3), 0.5)", (m,)),
        "gaussian_filter1d": ("scipy.ndimage.gaussian_filter1d(x, 1.5)", (v,)),
        "map_coordinates": ("scipy.ndimage.map_coordinates(x, [[0.5, 1.0], [0.2, 1.7]])", (m,)),
        "shift": ("scipy.ndimage.shift(x, 0.5)", (v,)),
        "uniform_filter1d": ("scipy.ndimage.uniform_filter1d(x, 3)", (v,))},
    "scipy.spatial.distance": {
        "squareform": ("scipy.spatial.distance.squareform(x[:3])", (v,)),
        "mahalanobis": ("scipy.spatial.distance.mahalanobis(x[0], x[1], x)", (m,)),
        "seuclidean": ("scipy.spatial.distance.seuclidean(x[0], x[1], x[2])", (m,)),
        "pdist": ("scipy.spatial.distance.pdist(x)", (m,)), "cdist": ("scipy.spatial.distance.cdist(x, x.T)", (m,))},
    "scipy.stats": {"gaussian_kde": ("scipy.stats.gaussian_kde(x)(x[:2])", (np.array([0.3, 1.0, 2.5]),))},
}
