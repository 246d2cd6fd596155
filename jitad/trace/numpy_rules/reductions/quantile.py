"""Medians and quantiles: sorted elements picked by place, with NumPy's formula for each method between them.

The methods are those of R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages" (1996), and NumPy's own.
The derivative goes to the elements that were picked; of equal ones, to those that a stable sort puts there.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.view import broadcast_to
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.arrays.indexing import getitem
from jitad.trace.dispatch import as_value, builder_in, implements, lift_all, refused
from jitad.trace.numpy_rules.reductions.order import SHORT, places_of_ranks, sorting_order, taken
from jitad.trace.numpy_rules.reductions.reduce import axes_of, fresh, keep, weights_beside
from jitad.trace.numpy_rules.shapes.shape import flatten_end, move_to_end
from jitad.trace.ufuncs import apply_ufunc

LAST = (Ellipsis, -1)
FEW, MOST = 2, 12         # ranks that take less time than a sort, one by one and at once


class Lines:
    """Arrays reduced over some axes: `a` with these in one last dimension, sorted on demand, or with elements
    selected by rank where few are asked for. `skip`: NaN do not count, so that each line has a length of its own."""

    def __init__(self, a: Value, axis: Any, skip: bool):
        self.ndim, self.axes = a.ndim, axes_of(axis, a.ndim, strict=True)
        self.a = flatten_end(move_to_end(a, self.axes), len(self.axes))
        self.ranks: list[int] = []
        self.n: Any = self.a.shape[-1]
        self.floats, self.skip = a.dtype.kind == "f", skip and a.dtype.kind == "f"
        if self.skip:
            self.n = np.sum(~np.isnan(self.a), axis=-1, keepdims=True)

    @cached_property
    def order(self) -> Any:
        """The places of the sorted elements: all, or those of `ranks`."""
        return places_of_ranks(self.a, np.array(self.ranks)) if self.ranks else sorting_order(self.a)

    def ask(self, *places: Any) -> None:
        """`pick` will be for these places: without a sort, if they are few and known."""
        length = self.a.shape[-1]
        if not self.skip and length > SHORT and not any(isinstance(p, Value) for p in places):
            ranks = {length - 1, *(int(p) % length for p in np.concatenate(places))}
            self.ranks = sorted(ranks) if len(ranks) <= MOST else []

    def pick(self, places: Any) -> Any:
        """The sorted elements at these places of each line: one dimension of places, or as many as lines have."""
        traced = isinstance(places, Value)
        if self.ranks:
            places = [self.ranks.index(int(p) % self.a.shape[-1]) for p in places]
        elif "order" not in vars(self) and self.a.shape[-1] > SHORT and places.shape[-1] <= FEW:
            return taken(self.a, places_of_ranks(self.a, places))
        if not traced:
            return taken(self.a, getitem(self.order, (Ellipsis, places)))
        if places.ndim < self.a.ndim:
            places = broadcast_to(places, (*self.a.shape[:-1], *places.shape))
        return taken(self.a, taken(self.order, places))

    def with_nan(self, result: Any) -> Any:
        """NaN for the lines that have one (which is sorted to the end), or that are empty without theirs."""
        if self.skip:
            return choose(self.n == 0, np.nan, result)
        last = self.pick(np.array([self.a.shape[-1] - 1]))
        return choose(np.isnan(last), last, result) if self.floats else result

    def result(self, found: Any, keepdims: Any) -> Any:
        return keep(found, self.axes, keepdims, self.ndim)


# --- median ----------------------------------------------------------------------------------------------

def _median(function: Any, skip: bool) -> None:
    @implements(function)
    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
               keepdims: Any = False) -> Any:
        a, = lift_all(a)
        a = cast(a, np.int64) if a.dtype.kind == "b" else a          # which have a mean
        lines = Lines(a, axis, skip)
        if lines.a.shape[-1] == 0:
            dtype = a.dtype if lines.floats else np.dtype(np.float64)
            return lines.result(as_value(a.builder, np.full(lines.a.shape[:-1], np.nan, dtype)), keepdims)
        middle = getitem(lines.with_nan(_centre(lines)), LAST)
        return lines.result(middle if middle.ndim else fresh(middle), keepdims)


def _centre(lines: Lines) -> Any:
    """The middle element, or the mean of two."""
    n = lines.n
    if lines.skip:
        low, high = lines.pick(np.maximum((n - 1) // 2, 0)), lines.pick(n // 2)
        return choose(n % 2 == 1, low, (low + high) / 2)
    lines.ask([n // 2 - 1 + n % 2, n // 2])
    high = lines.pick(np.array([n // 2]))
    return high / 1 if n % 2 else (lines.pick(np.array([n // 2 - 1])) + high) / 2


_median(np.median, False)
_median(np.nanmedian, True)


# --- quantiles -------------------------------------------------------------------------------------------

def _rounded(n: Any, q: Any) -> Any:
    """``n q``, which is at most n, as it is rounded: a product that is fused with the subtraction after it would not be
    the whole number at which a method jumps."""
    return np.minimum(n * q, n)


def _weighted_place(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _integer(x: Any) -> Any:
    return x.astype(np.int64)


def _stepped(place: Any, stays: Callable[[Any, Any], Any]) -> Any:
    """The next place, or the one before where `stays`; none below 0."""
    before = np.floor(place)
    return _integer(np.maximum(_where(stays(place - before, before), before, before + 1), 0))


def _where(condition: Any, a: Any, b: Any) -> Any:
    return choose(condition, a, b) if builder_in(condition, a, b) is not None else np.where(condition, a, b)


PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "inverted_cdf": lambda n, q: _stepped(_rounded(n, q) - 1, lambda rest, before: rest == 0),
    "averaged_inverted_cdf": lambda n, q: _rounded(n, q) - 1,
    "closest_observation": lambda n, q: _stepped(
        _rounded(n, q) - 1 - 0.5, lambda rest, before: (rest == 0) & (before % 2 == 1)),
    "interpolated_inverted_cdf": _weighted_place(0, 1), "hazen": _weighted_place(0.5, 0.5),
    "weibull": _weighted_place(0, 0), "linear": lambda n, q: (n - 1) * q,
    "median_unbiased": _weighted_place(1 / 3.0, 1 / 3.0), "normal_unbiased": _weighted_place(3 / 8.0, 3 / 8.0),
    "lower": lambda n, q: _integer(np.floor((n - 1) * q)), "higher": lambda n, q: _integer(np.ceil((n - 1) * q)),
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "nearest": lambda n, q: _integer(np.round((n - 1) * q))}
"""Where in `n` sorted elements the quantile `q` is; integers for the methods that take one element."""

TAKEN = frozenset(("inverted_cdf", "closest_observation", "linear", "lower", "higher", "nearest"))
"""The methods whose integer places exist: those of the others may be before the first element or after the last."""

SHARES: dict[str, Callable[[Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda share, place: _where(share == 0, 0.5, 1.0),
    "midpoint": lambda share, place: _where(place % 1 == 0, 0.0, 0.5)}
"""The share of the upper neighbour, where it is not the fractional part of the place."""


def _quantile(lines: Lines, q: Any, weak: bool, method: str) -> Any:
    """The quantiles `q`, of one dimension, in the last dimension of the result."""
    if method not in PLACES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {PLACES.keys()}")
    n = cast(lines.n, q.dtype) if lines.skip and q.dtype.kind == "f" else lines.n     # a Python number in NumPy
    place = PLACES[method](n, q)
    last = lines.n - 1
    if place.dtype.kind in "iu" and method in TAKEN:
        places = _kept(place, last, lines.skip)
        lines.ask(places)
        return lines.with_nan(lines.pick(places))
    before = np.floor(place)
    share = place - before
    share = SHARES[method](share, place).astype(place.dtype) if method in SHARES else share
    inside = _where(place >= last, last, _where(place < 0, 0, before))
    after = _where(place >= last, last, _where(place < 0, 0, before + 1))
    places, following = (_kept(_integer(m), last, lines.skip) for m in (inside, after))
    lines.ask(places, following)
    low, high = lines.pick(places), lines.pick(following)
    if weak and not isinstance(share, Value):
        share = float(share[0])
    elif weak and lines.floats:
        share = cast(share, lines.a.dtype)
    return lines.with_nan(_between(low, high, share))


def _kept(places: Any, last: Any, clip: bool) -> Any:
    """Places that exist, also in lines that are empty."""
    return np.maximum(np.minimum(places, last), 0) if clip or isinstance(places, Value) else places


def _between(a: Any, b: Any, share: Any) -> Any:
    """NumPy's interpolation, from the nearer end."""
    step = apply_ufunc(np.subtract, b, a)
    if isinstance(share, float):
        return b - step * (1 - share) if share >= 0.5 else a + step * share
    return _where(share >= 0.5, b - step * (1 - share), a + step * share)


def _entry(function: Any, skip: bool, scale: float) -> None:
    what = "Quantiles must be in the range [0, 1]" if scale == 1 else "Percentiles must be in the range [0, 100]"

    @implements(function)
    def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
                 method: str = "linear", keepdims: Any = False, *, weights: Any = None) -> Any:
        builder = builder_in(a, q, weights)
        a = as_value(builder, a)
        traced = builder_in(q) is not None
        weak = q.aval.weak if isinstance(q, Value) else type(q) in (int, float)
        q = as_value(builder, q) if traced else np.asarray(q)
        q = q if scale == 1 else q / scale
        if q.ndim > 2:
            raise ValueError("q must be a scalar or 1d")
        if not ((q >= 0) & (q <= 1)).all():                          # if q is traced, a recorded branch
            raise ValueError(what)
        if skip and not a.aval.size:
            return np.nanmean(a, axis, keepdims=keepdims)           # as in NumPy, without the dimensions of `q`
        lines = Lines(a, axis, skip)
        flat = q.reshape(-1)
        if lines.a.shape[-1] == 0:
            function(np.zeros(a.shape), 0.5, axis)                   # NumPy's own error, if it has one
            shape = (*q.shape, *lines.a.shape[:-1])
            return _kept_dims(lines, as_value(builder, np.full(shape, np.nan, a.dtype)), q.ndim, keepdims)
        found = _quantile(lines, flat, weak, method) if weights is None else _of_weights(
            lines, flat, method, weights, axis, a)
        found = np.moveaxis(found, -1, 0).reshape((*q.shape, *lines.a.shape[:-1]))
        return _kept_dims(lines, found, q.ndim, keepdims)


def _kept_dims(lines: Lines, found: Any, lead: int, keepdims: Any) -> Any:
    """The result, whose first `lead` dimensions are those of `q`."""
    if not keepdims or keepdims is np._NoValue:
        return found.builder.value(found.number)
    return keep(found, tuple(d + lead for d in lines.axes), keepdims, lines.ndim)


def _of_weights(lines: Lines, q: Any, method: str, weights: Any, axis: Any, a: Value) -> Any:
    """The first element at which the cumulated weights reach the quantile."""
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    if lines.skip:
        raise refused(a, "numpy.nanquantile with weights", "give the elements that are NaN the weight 0 and another "
                      "value")
    w: Any = as_value(a.builder, weights)
    w = weights_beside(w, a, axis)
    if (w < 0).any():
        raise ValueError("Weights must be non-negative.")
    w = broadcast_to(w, a.shape)
    w = taken(flatten_end(move_to_end(w, lines.axes), len(lines.axes)), lines.order)
    total: Any = np.cumsum(w, axis=-1, dtype=np.float64)
    total = total / total[..., -1:]
    if np.isnan(total[LAST]).any():
        raise ValueError("Weights included NaN, inf or were all zero.")
    if q.dtype.kind == "f":
        total = cast(total, q.dtype)
    total = choose(total == 0, -1.0, total)
    places = np.sum(total[..., None, :] < q[:, None], axis=-1)
    return lines.with_nan(lines.pick(np.minimum(places, lines.a.shape[-1] - 1)))


for _function, _skip, _scale in ((np.quantile, False, 1.0), (np.percentile, False, 100.0), (np.nanquantile, True, 1.0),
                                 (np.nanpercentile, True, 100.0)):
    _entry(_function, _skip, _scale)
