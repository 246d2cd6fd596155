"""The table of the tests of sorting, searching and counting: label, function of one array, its shape.

`FREE` functions record no guard: their integers are computed by the tape. `GUARDED` ones depend on counts."""
from __future__ import annotations

import warnings

import numpy as np

from jitad.cache.keys.identity import unwrap
from jitad.trace.record import record

M, V, T3 = (3, 4), (6,), (2, 3, 4)
METHODS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
           "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest")


def grid():
    return np.array([-1.5, -0.5, 0.0, 0.5, 2.0])


def in_place(x, axis):
    x = np.array(x)
    x.sort(axis=axis)
    return x


def partitioned(x):
    x = np.array(x)
    x.partition(2)
    return x[2], x[:2].sum(), x[3:].max()


def stored(x, places):
    x = np.array(x)
    x[places] = 7
    return x


SORT = [
    ("sort", lambda x: np.sort(x), V), ("sort last", lambda x: np.sort(x), T3), ("sort 0", lambda x: np.sort(x, 0), T3),
    ("sort 1", lambda x: np.sort(x, axis=1), T3), ("sort None", lambda x: np.sort(x, axis=None), M),
    ("sort stable", lambda x: np.sort(x, kind="stable"), V), ("sort method", lambda x: in_place(x, -1), M),
    ("sort in place 0", lambda x: in_place(x, 0), M), ("argsort", lambda x: np.argsort(x, kind="stable"), V),
    ("argsort 0", lambda x: np.argsort(x, 0, stable=True), M), ("x.argsort", lambda x: x.argsort(-2, "stable"), T3),
    ("argsort None", lambda x: np.argsort(x, None, "stable"), M), ("sort number", lambda x: np.sort(x, None), ()),
    ("argsort number", lambda x: np.argsort(x), ()), ("descending", lambda x: -np.sort(-x)[::-1], V),
    ("by order", lambda x: x[np.argsort(x)][::2], V), ("lexsort", lambda x: np.lexsort((x[0], np.floor(x[1]))), M),
    ("lexsort array", lambda x: np.lexsort(x), M), ("lexsort axis", lambda x: np.lexsort((x, -x), axis=0), M),
    ("partition", lambda x: np.partition(x, 2)[2], V), ("partition in place", partitioned, V),
    ("partition axis", lambda x: np.partition(x, 1, axis=0)[1], M),
    ("argpartition", lambda x: x[np.argpartition(x, -2)[-2]], V),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.argsort(x, 1, "stable"), 1), M),
    ("ranks", lambda x: np.argsort(np.argsort(x, kind="stable"), kind="stable"), V),
    ("stored at order", lambda x: stored(x, np.argsort(x, kind="stable")[:2]), V),
    ("empty", lambda x: (np.sort(x), np.argsort(x), np.sort(x, 0)), (2, 0)),
]
ARG = [
    ("argmax", lambda x: np.argmax(x), M), ("argmin", lambda x: np.argmin(x), M),
    ("argmax 0", lambda x: x.argmax(0), M),
    ("argmin -1", lambda x: x.argmin(axis=-1), T3), ("argmax keepdims", lambda x: np.argmax(x, 1, keepdims=True), T3),
    ("argmin None keepdims", lambda x: np.argmin(x, keepdims=True), M), ("argmax number", lambda x: np.argmax(x), ()),
    ("as index", lambda x: x[np.argmax(x[:, 1])] * x[0, np.argmin(x[2])], M),
    ("rows", lambda x: x[np.arange(3), np.argmax(x, axis=1)], M), ("argmax of bool", lambda x: np.argmax(x > 1), V),
    ("unravel_index", lambda x: x[np.unravel_index(np.argmax(x), x.shape)], T3),
    ("unravel_index F", lambda x: np.unravel_index(np.argsort(x[0], kind="stable"), (2, 2), order="F"), M),
    ("ravel_multi_index", lambda x: np.ravel_multi_index((np.argmax(x, 0), np.argmin(x, 0)), (3, 5)), M),
    ("ravel_multi_index F", lambda x: np.ravel_multi_index((np.argmax(x, 0), 7), (3, 5), ("raise", "wrap"), "F"), M),
    ("argmax 0 of number", lambda x: (np.argmax(x, 0), np.argmin(x, -1, keepdims=True)), ()),
    ("argmax of expression", lambda x: np.argmax(np.sin(3 * x) * x), V),
    ("one hot", lambda x: np.where(np.arange(6) == np.argmax(x), x, 0), V),
    ("ptp", lambda x: np.ptp(x, axis=1), M),
]
SEARCH = [
    ("searchsorted", lambda x: np.searchsorted(grid(), x), M),
    ("searchsorted right", lambda x: np.searchsorted(grid(), x, side="right"), V),
    ("searchsorted number", lambda x: np.searchsorted(grid(), x), ()),
    ("searchsorted in x", lambda x: np.searchsorted(np.sort(x), np.array([0.5, 1.5])), V),
    ("searchsorted method", lambda x: np.sort(x).searchsorted(1.0, "right"), V),
    ("searchsorted sorter", lambda x: np.searchsorted(x, [0, 1], sorter=np.argsort(x)), V),
    ("long grid", lambda x: np.searchsorted(np.linspace(-2, 3, 50), x), M),
    ("digitize", lambda x: np.digitize(x, grid()), M),
    ("digitize right", lambda x: np.digitize(x, grid(), right=True), M),
    ("digitize down", lambda x: np.digitize(x, grid()[::-1]), M),
    ("digitize down right", lambda x: np.digitize(x, grid()[::-1], True), M),
    ("interp", lambda x: np.interp(x, grid(), np.exp(grid())), M),
    ("interp number", lambda x: np.interp(x, grid(), grid()), ()),
    ("interp left right", lambda x: np.interp(x, grid(), grid() ** 2, left=-1, right=9.0), M),
    ("interp fp", lambda x: np.interp([-2, -1, 0.25, 2, 3], grid()[:4], x[:4]), V),
    ("interp xp", lambda x: np.interp([-2, 0.3, 0.9, 1.4, 3], np.cumsum(x * x + 0.1), x), V),
    ("interp one point", lambda x: np.interp(x, [0.5], [2.0], 1.0), V),
    ("interp two points", lambda x: np.interp(x, [0.0, 1.0], [2.0, -1.0]), V),
    ("interp period", lambda x: np.interp(x, [0.3, 1.9, 0.8], [1.0, 4.0, 2.0], period=2.5), V),
    ("interp period xp", lambda x: np.interp([0.4, -3.0], x + np.arange(6) / 64, np.arange(6.0), period=1.25), V),
    ("isin", lambda x: np.isin(np.round(x), [0, 1, 4]), M),
    ("isin many", lambda x: np.isin(np.round(x), np.arange(40)), M),
    ("not isin", lambda x: np.isin(np.round(x), [0, 1], invert=True), V),
]
QUANTILE = [
    ("median", lambda x: np.median(x), M), ("median even", lambda x: np.median(x), V),
    ("median axes", lambda x: np.median(x, axis=(0, 2)), T3),
    ("median keepdims", lambda x: np.median(x, 1, keepdims=True), M),
    ("median 0", lambda x: np.median(x, 0), M), ("median number", lambda x: np.median(x), ()),
    ("quantile axes", lambda x: np.quantile(x, [0.2, 0.9], axis=(0, 2), keepdims=True), T3),
    ("quantile 2-d q", lambda x: np.quantile(x, [[0.2, 0.9, 0.5]], axis=0), M),
    ("quantile ends", lambda x: np.quantile(x, [0.0, 1.0], axis=1), M), ("quantile 1", lambda x: np.quantile(x, 1), V),
    ("quantile float64 q", lambda x: np.quantile(x, np.float64(0.3)), V),
    ("percentile", lambda x: np.percentile(x, [5, 50, 95]), M),
    ("percentile 30", lambda x: np.percentile(x, 30, 1), T3),
    ("traced q", lambda x: np.quantile([3.0, 1.0, 7.0, 5.0], np.exp(-np.abs(x))), V),
    ("weights", lambda x: np.quantile(x, 0.4, weights=np.arange(4.0), axis=1, method="inverted_cdf"), M),
    ("weights all", lambda x: np.percentile(x, [30, 70], weights=np.ones((3, 4)), method="inverted_cdf"), M),
    ("iqr", lambda x: np.subtract(*np.percentile(x, [75, 25])), V),
    *((f"quantile {m}", lambda x, m=m: np.quantile(x, [0.0, 0.1, 0.25, 0.5, 0.68, 1.0], axis=0, method=m), (4, 2))
      for m in METHODS),
    *((f"number {m}", lambda x, m=m: np.quantile(x, 0.45, method=m), (5,)) for m in METHODS),
]
NAN = [
    *((f.__name__, lambda x, f=f: f(x), M) for f in (
        np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nancumsum, np.nancumprod,
        np.nanmedian)),
    *((f"{f.__name__} 1", lambda x, f=f: f(x, axis=1, keepdims=True), M) for f in (
        np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nanmedian)),
    *((f"{f.__name__} (0, 2)", lambda x, f=f: f(x, axis=(0, 2)), T3) for f in (
        np.nansum, np.nanmean, np.nanvar, np.nanmax, np.nanmedian)),
    ("nanvar ddof", lambda x: np.nanvar(x, axis=0, ddof=1), M), ("nancumsum 1", lambda x: np.nancumsum(x, axis=1), M),
    ("nansum where", lambda x: np.nansum(x, axis=0, where=np.arange(4) > 1, initial=2.0), M),
    ("nanmax initial", lambda x: np.nanmax(x, axis=0, initial=1.0), M),
    ("nanmean where", lambda x: np.nanmean(x, axis=1, where=np.arange(4) > 1), M),
    *((f"nanquantile {m}", lambda x, m=m: np.nanquantile(x, [0.1, 0.5, 0.8], axis=1, method=m), M) for m in METHODS),
    ("nanpercentile", lambda x: np.nanpercentile(x, 35), M),
    ("nanquantile 0", lambda x: np.nanquantile(x, 0.3, axis=0), M),
]
OTHER = [
    ("cumprod", lambda x: np.cumprod(x), M), ("cumprod 0", lambda x: np.cumprod(x, axis=0), M),
    ("cumprod 1", lambda x: x.cumprod(axis=1), M), ("multiply.accumulate", lambda x: np.multiply.accumulate(x), M),
    ("cumulative_prod", lambda x: np.cumulative_prod(x, axis=1, include_initial=True), M),
    ("cumulative_sum", lambda x: np.cumulative_sum(x, axis=0), M), ("prod", lambda x: np.prod(x, axis=1), M),
    ("maximum.accumulate", lambda x: np.maximum.accumulate(x, axis=1), M),
    ("minimum.accumulate", lambda x: np.minimum.accumulate(x), V), ("cumprod number", lambda x: np.cumprod(x), ()),
    ("choose", lambda x: np.choose([1, 0, 2, 1], x), M),
    ("choose wrap", lambda x: np.choose([4, -1], [x[0], 2], mode="wrap"), V),
    ("choose clip", lambda x: np.choose((x > 0.5).astype(int) * 3, [x, -x, 2 * x], mode="clip"), M),
    ("select", lambda x: np.select([x < 0.3, x > 1], [x, x * x], 5), M),
    ("piecewise", lambda x: np.piecewise(x, [x < 0.5, x >= 1.5], [lambda t: t * 2, np.sin, 1.5]), M),
    ("insert", lambda x: np.insert(x, 1, 5, axis=1), M), ("insert values", lambda x: np.insert(x, [0, 3], x[:2]), V),
    ("insert rows", lambda x: np.insert(x, slice(0, 2), x[:2] * 2, axis=0), M),
    ("insert flat", lambda x: np.insert(x, 5, [1, 2]), M),
    ("delete", lambda x: np.delete(x, 1), V), ("delete axis", lambda x: np.delete(x, [0, -1], axis=1), M),
    ("delete slice", lambda x: np.delete(x, slice(1, 3), axis=0), M),
    ("delete mask", lambda x: np.delete(x, np.arange(6) > 3), V),
    ("delete argmax", lambda x: np.delete(x, np.argmax(x)), V),
    ("delete argmax 1", lambda x: np.delete(x, np.argmax(x[0]), 1), M),
    ("resize", lambda x: np.resize(x, (3, 5)), M), ("resize smaller", lambda x: np.resize(x, 4), V),
    ("ediff1d", lambda x: np.ediff1d(x, to_begin=x[0], to_end=[1, 2]), V),
    ("apply_along_axis", lambda x: np.apply_along_axis(lambda r: r[::-1] * r.sum(), 1, x), T3),
    ("apply_along_axis sum", lambda x: np.apply_along_axis(np.sum, 0, x), M),
    ("count_nonzero", lambda x: np.count_nonzero(x > 1, axis=1), M), ("isclose", lambda x: np.isclose(x, x + 1e-9), M),
    ("bincount minlength", lambda x: np.bincount([0, 2, 2, 5, 0, 1], weights=x, minlength=9), V),
    ("bincount weights", lambda x: np.bincount(np.array([0, 2, 2, 5, 0, 1]), x), V),
    ("histogram weights", lambda x: np.histogram([0.1, 0.5, 0.2, 2, 3, 1], bins=3, weights=x), V),
    ("histogram bins", lambda x: np.histogram(x, bins=[0.0, 0.5, 1.0, 4.0])[0], M),
    ("histogram density", lambda x: np.histogram(x, bins=4, range=(0, 3), density=True)[0], M),
    ("putmask", lambda x: stored(x, x > 1), V),
    ("array_equal", lambda x: (np.array_equal(x, x), np.array_equal(x, x[:2])), V),
]
FREE = {"sort": SORT, "arg": ARG, "search": SEARCH, "quantile": QUANTILE, "nan": NAN, "other": OTHER}


def placed(x):
    x = np.array(x)
    np.place(x, x > 1, [7, 8])
    return x


def masked_update(x):
    x = np.array(x)
    x[x > 1] *= 2
    x[x < 0.5] = np.sort(x[x < 0.5])
    return x


GUARDED = [
    ("mask", lambda x: x[x > 1], V), ("mask rows", lambda x: x[x[:, 0] > 1], M),
    ("mask columns", lambda x: x[:, x[0] > 1], M),
    ("2-d mask", lambda x: x[x > 1], M), ("2-d mask of 3", lambda x: x[x[..., 0] > 1], T3),
    ("3-d mask", lambda x: x[x < 1], T3),
    ("mask and index", lambda x: x[x[:, 0] > -9, [0, 1, 3]], M), ("mask of constant", lambda x: np.arange(6)[x > 1], V),
    ("mask sums", lambda x: (x[x > 1].sum(), x[x <= 1].mean()), V), ("masked update", masked_update, V),
    ("place", placed, M),
    ("nonzero", lambda x: np.nonzero(x > 1), M), ("x.nonzero", lambda x: (x > 1).nonzero(), V),
    ("where", lambda x: np.where(x > 1), T3), ("flatnonzero", lambda x: np.flatnonzero(x > 1), M),
    ("argwhere", lambda x: np.argwhere(x > 1), M), ("extract", lambda x: np.extract(x > 1, x), M),
    ("compress", lambda x: np.compress(x[0] > 1, x, axis=1), M),
    ("x.compress", lambda x: x.compress(x.ravel()[:5] > 1), M),
    ("compress known", lambda x: np.compress([True, False, True], x, axis=0), M),
    ("unique", lambda x: np.unique(np.round(x)), M),
    ("unique all", lambda x: np.unique(np.round(x), return_index=True, return_inverse=True, return_counts=True), M),
    ("unique_counts", lambda x: tuple(np.unique_counts(np.round(x))), V),
    ("unique axis", lambda x: np.unique(x, axis=0), V),
    ("bincount", lambda x: np.bincount(np.abs(np.round(x)).astype(int)), V),
    ("bincount both", lambda x: np.bincount(np.abs(np.round(x)).astype(int), weights=x * x), V),
    ("histogram", lambda x: np.histogram(x, bins=5), M), ("histogram of constant", lambda x: np.histogram(x * 0, 2), V),
    ("edges", lambda x: np.histogram_bin_edges(x, 3), V), ("trim_zeros", lambda x: np.trim_zeros(x * (x > 1)), V),
    ("trim front", lambda x: np.trim_zeros(x * (x > 1), "f"), V), ("nanargmax", lambda x: np.nanargmax(x, axis=1), M),
    ("nanargmin", lambda x: np.nanargmin(x), M),
    ("choose computed", lambda x: np.choose((x > 1).astype(int), [x, -x]), V),
    ("piecewise reduced", lambda x: np.piecewise(x, [x < 1], [lambda t: t - t.mean(), 0]), V),
    ("sorted", lambda x: np.array(sorted(x)), V), ("max", lambda x: max(x) - min(*x), V),
    ("int(argmax)", lambda x: x[:int(np.argmax(x)) + 1].sum(), V),
    ("digitize traced", lambda x: np.digitize([0.5, 1.0], np.sort(x)), V),
    ("histogram traced edges", lambda x: np.histogram([0.2, 0.9, 1.1, 2.0], np.sort(x)), V),
    ("delete many", lambda x: np.delete(x, np.argsort(x)[:2]), V),
    ("delete traced mask", lambda x: np.delete(x, x > 1), V),
    ("allclose", lambda x: x if np.allclose(x, 1) else -x, V),
]


def tape_of(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record(unwrap(function), args).tape()


def numbers(shape, kind, seed=0):
    """Data of one kind; the shape is cut out of a wider array, so that it is strided."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.6, 2.9, size=(*shape, 2))[..., 0]
    if kind == "int64":
        return np.asarray(rng.integers(-1, 5, size=shape))
    if kind == "float32":
        return x.astype(np.float32)
    if kind == "ties":
        return np.round(x * 2) / 2
    if kind == "nan" and x.size > 2:
        x.reshape(-1)[[1, -1]] = np.nan
        x = np.asfortranarray(x)
    if kind == "infinite" and x.size > 2:
        x.reshape(-1)[[0, 2]] = np.inf, -np.inf
    return x
