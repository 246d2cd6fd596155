"""Filters of scipy.ndimage, and splines at any place."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import ndimage

from jitad import jit
from tests.helpers.solvers import together

RNG = np.random.default_rng(6)
IMAGE, WEIGHTS, MASK = RNG.normal(size=(6, 7)), RNG.normal(size=4), RNG.normal(size=(3, 2))
INSIDE, AROUND = RNG.uniform(0.1, 4.9, (2, 9)), RNG.uniform(-9, 14, (2, 25))
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")

pytestmark = pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")


def test_weighted_neighbours():
    together([*(lambda x, w, m, c, e=e, o=o: ndimage.correlate1d(x, w, 0, None, e, c, o) for e, o in product(
        MODES, (0, 1))), lambda x, w, m, c: ndimage.convolve1d(x, w, 1, origin=-1),
        *(lambda x, w, m, c, f=f, e=e: f(x, m, None, e, c, (-1, 0)) for f, e in product(
            (ndimage.correlate, ndimage.convolve), ("reflect", "constant"))),
        lambda x, w, m, c: ndimage.correlate(x, w, axes=(0,), mode="wrap")], IMAGE, WEIGHTS, MASK, 0.3)


def test_gaussians_means_and_edges():
    together([lambda x, s: ndimage.gaussian_filter(x, [s, 0.7], order=(1, 2), mode="mirror"),
              lambda x, s: ndimage.gaussian_filter(x, s, radius=9, axes=1), lambda x, s: ndimage.gaussian_laplace(x, s),
              lambda x, s: ndimage.gaussian_filter1d(x, s, 0, 3), lambda x, s: ndimage.uniform_filter(x, (4, 1)),
              lambda x, s: ndimage.gaussian_gradient_magnitude(x, s, mode="wrap"), lambda x, s: ndimage.sobel(x, 0),
              lambda x, s: ndimage.laplace(x), lambda x, s: ndimage.prewitt(x)], IMAGE, 1.2)


def test_splines_by_values_and_places():
    together([*(lambda x, p, s, k=k: ndimage.map_coordinates(x, p, order=k) for k in (1, 3, 4)),
              lambda x, p, s: ndimage.shift(x, [s, -0.3], order=2, mode="reflect"),
              lambda x, p, s: ndimage.affine_transform(x, np.array([[np.cos(s), 0.1], [0.2, 0.9]]), [s, 0.1]),
              lambda x, p, s: ndimage.spline_filter(x)], IMAGE, INSIDE, 0.4)


def test_splines_beyond_the_edges():
    long = RNG.normal(size=(80, 2))                      # coefficients by recursive filters
    cases = [lambda x, y, m=m, k=k: np.concatenate([
        ndimage.map_coordinates(x, AROUND, order=k, mode=m, cval=0.4),
        ndimage.map_coordinates(y[:, 0], AROUND[:1] * 8, order=k, mode=m),
        np.ravel(ndimage.spline_filter1d(y, max(k, 2), 0, mode=m))])
        for m, k in (("constant", 3), ("nearest", 5), ("mirror", 2), ("reflect", 3), ("wrap", 1), ("grid-wrap", 4),
                     ("grid-constant", 3), ("nearest", 0))]
    for found, case in zip(jit(lambda x, y: tuple(c(x, y) for c in cases))(IMAGE, long), cases, strict=True):
        np.testing.assert_allclose(found, case(IMAGE, long), atol=1e-11)


def test_dtypes():
    single = IMAGE.astype(np.float32)
    y, z = jit(lambda x: (ndimage.gaussian_filter(x, 1.0), ndimage.map_coordinates(x, INSIDE)))(single)
    assert y.dtype == z.dtype == np.float32
    np.testing.assert_allclose(y, ndimage.gaussian_filter(single, 1.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: ndimage.correlate1d(x, [1.0, 2.0], origin=2), "Invalid origin"),
    (lambda x: ndimage.gaussian_filter(x, 1.0, mode="bounce"), "boundary mode not supported"),
    (lambda x: ndimage.map_coordinates(x, INSIDE[:1]), "invalid shape for coordinate array"),
    (lambda x: ndimage.map_coordinates(x, INSIDE, order=6), "spline order not supported"),
    (lambda x: ndimage.median_filter(x, 3), r"scipy.ndimage.median_filter at .*test_images")])
def test_what_is_refused(call, message):
    with pytest.raises(Exception, match=message):
        jit(call)(IMAGE)
