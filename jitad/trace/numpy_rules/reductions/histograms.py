"""Histograms along one axis and several: counts, or sums of weights, by bin."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import scatter
from jitad.primitives.view import broadcast_to, expand_dims
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in, implements, refused
from jitad.trace.numpy_rules.reductions.order import searchsorted
from jitad.trace.numpy_rules.shapes.shape import ravel


def _outer_edges(a: Any, limits: Any) -> tuple[Any, Any]:
    """First and last edge as NumPy chooses them; comparisons of traced ones are recorded branches."""
    if limits is not None:
        first, last = limits
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        what = "supplied"
    else:
        first, last = (np.min(a), np.max(a)) if a.size else (0, 1)
        what = "autodetected"
    if not (np.isfinite(first) and np.isfinite(last)):
        raise ValueError(f"{what} range of [{first}, {last}] is not finite")
    if first == last:
        first, last = first - 0.5, last + 0.5
    return first, last


def _edges(a: Any, bins: Any, limits: Any) -> Any:
    if isinstance(bins, str):
        raise refused(builder_in(a, limits), f"numpy.histogram with bins={bins!r}",
                      "the number of bins would depend on data; give a number of bins or their edges")
    if builder_in(bins) is None:
        np.histogram_bin_edges(np.zeros(0), bins)                   # NumPy's own errors
    else:
        bins = as_value(builder_in(bins), bins)
        if bins.ndim > 1:
            raise ValueError("`bins` must be 1d, when an array")
        if bins.ndim and (bins[:-1] > bins[1:]).any():
            raise ValueError("`bins` must increase monotonically, when an array")
    if np.ndim(bins):
        return bins if isinstance(bins, Value) else np.asarray(bins)
    first, last = _outer_edges(a, limits)
    dtype = np.result_type(*(_number_key(v) for v in (first, last)), a.dtype)
    dtype = dtype if dtype.kind == "f" else np.result_type(dtype, float)
    if builder_in(first, last) is None:
        return np.linspace(first, last, int(bins) + 1, endpoint=True, dtype=dtype)
    low, high = (cast(as_value(builder_in(first, last), v), dtype) for v in (first, last))
    inner = np.arange(int(bins)).astype(dtype) * ((high - low) / int(bins)) + low
    return np.concatenate([inner, expand_dims(high, (0,))])


def _number_key(x: Any) -> Any:
    return x.dtype if isinstance(x, Value) else x if type(x) in (int, float) else np.asarray(x).dtype


def _sample(a: Any, *others: Any) -> Any:
    """What is counted, in one dimension; Booleans as numbers."""
    traced = builder_in(a) is not None
    a = as_value(builder_in(a, others), a) if traced else np.asarray(a)
    a = a.astype(np.uint8) if a.dtype.kind == "b" else a
    return a.reshape(-1)


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _edges(_sample(a, bins, range), bins, range)


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    builder = builder_in(a, bins, range, weights)
    if weights is not None and np.shape(weights) != np.shape(a):
        raise ValueError("weights should have the same shape as a.")
    sample = _sample(a, bins, range, weights)
    edges = _edges(sample, bins, range)
    counts: Any = _summed(builder, [sample], [edges], np.int64(1) if weights is None else weights)
    if density:
        counts = counts / np.diff(edges) / np.sum(counts)
    return counts, edges


def _summed(builder: Any, samples: list[Any], edges: list[Any], weights: Any) -> Any:
    """The weights of the points, one by one, where each lies between the edges of every axis; all others count for
    nothing."""
    places, shape, inside = [], [], None
    for x, borders in zip(samples, edges, strict=True):
        traced, last = builder_in(x, borders), np.shape(borders)[0] - 2
        x, borders = (as_value(builder, v) for v in (x, borders)) if traced else (x, borders)
        find = searchsorted if traced else np.searchsorted
        places.append(as_value(builder, np.minimum(np.maximum(find(borders, x, "right") - 1, 0), last)))
        within = (x >= borders[0]) & ~(x > borders[-1]) & (x == x)
        inside = within if inside is None else inside & within
        shape.append(last + 1)
    added = as_value(builder, weights)
    added = ravel(added) if added.ndim else broadcast_to(added, places[0].shape)
    added = choose(as_value(builder, inside), added, np.zeros((), added.dtype))
    return scatter(added, *places, axes=tuple(np.arange(len(places)).tolist()), shape=tuple(shape))


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    builder = builder_in(sample, bins, range, weights)
    columns = _columns(sample)
    count = len(columns)
    bins = list(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else [bins] * count
    if len(bins) != count:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    limits = [None] * count if range is None else list(range)
    if len(limits) != count:
        raise ValueError("range argument must have one entry per dimension")
    if weights is not None and np.shape(weights) != np.shape(columns[0]):
        raise ValueError("The weights and list don't have the same length.")
    columns = [_sample(x, bins, range, weights) for x in columns]
    edges = [_edges(x, b, r) for x, b, r in zip(columns, bins, limits, strict=True)]
    counts: Any = cast(_summed(builder, columns, edges, 1.0 if weights is None else weights), np.float64)
    if density:
        total = np.sum(counts)
        for d, borders in enumerate(edges):
            counts = counts / np.reshape(np.diff(borders), tuple(-1 if i == d else 1 for i in np.arange(count)))
        counts = counts / total
    return counts, tuple(edges)


def _columns(sample: Any) -> list[Any]:
    """The coordinates of the points, axis by axis: of a list of them, or of an array with a row for each point."""
    if isinstance(sample, (list, tuple)):
        return list(sample)
    sample = as_value(builder_in(sample), sample) if builder_in(sample) is not None else np.asarray(sample)
    if sample.ndim == 1:
        return [sample]
    if sample.ndim != 2:
        raise ValueError("too many values to unpack (expected 2)")
    return [sample[:, d] for d in np.arange(sample.shape[1])]


@implements(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if np.shape(x) != np.shape(y):
        raise ValueError("x and y must have the same length.")
    if (isinstance(bins, (list, tuple)) or np.ndim(bins)) and len(bins) not in (1, 2):
        bins = [bins, bins]                              # edges for both
    counts, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return counts, first, second


__all__ = ["histogram"]
