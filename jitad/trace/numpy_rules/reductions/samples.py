"""The functions of Python's `statistics` on lists, arrays and iterators of what is traced; their results are Python's
floats."""
from __future__ import annotations

from collections.abc import Callable, Iterator, ValuesView
from functools import wraps
from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.tape.builder import Value
from jitad.trace.arrays.positions import flat_positions
from jitad.trace.dispatch import as_value, builder_in, lift_with, noted_line
from jitad.trace.substitutes import substitute
from jitad.trace.values.seen import as_python

__all__: list[str] = []


def _rule(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as the rule of ``statistics.name``, for iterators too."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(impl)
        def of_any(*args: Any, **kwargs: Any) -> Any:
            args = tuple(list(a) if isinstance(a, (Iterator, ValuesView)) else a for a in args)
            builder = builder_in(args, kwargs)
            if builder is None:
                import statistics

                return getattr(statistics, name)(*args, **kwargs)
            with noted_line(builder):
                return impl(*args, **kwargs)
        substitute("statistics", name, always=True)(of_any)
        return impl
    return enter


def _sample(data: Any, least: int, name: str, *others: Any) -> Any:
    """The data as a vector of floats, where they or the others are traced; raises what `statistics` raises of too
    few."""
    x = lift_with(list(data) if not isinstance(data, (list, tuple)) and builder_in(data) is None else data, *others)
    if x.ndim != 1:
        raise TypeError(f"statistics.{name} takes numbers, not arrays")
    if len(x) < least:
        import statistics

        words = {1: "requires at least one data point", 2: "requires at least two data points"}[least]
        raise statistics.StatisticsError(f"{name} {words}")
    return x.astype(float)


def _python(x: Any) -> Any:
    return as_python(x, float)


@_rule("mean")
def mean(data: Any) -> Any:
    return _python(np.mean(_sample(data, 1, "mean")))


@_rule("fmean")
def fmean(data: Any, weights: Any = None) -> Any:
    x = _sample(data, 1, "fmean", weights)
    return _python(np.mean(x) if weights is None else _weighted(x, weights))


def _weighted(x: Any, weights: Any) -> Any:
    """The mean with weights; raises what `statistics` raises of them."""
    import statistics

    w = as_value(x.builder, weights if builder_in(weights) is not None else list(weights)).astype(float)
    if w.shape != x.shape:
        raise statistics.StatisticsError("data and weights must be the same length")
    total = np.sum(w)
    if total == 0:                                       # a recorded branch
        raise statistics.StatisticsError("sum of weights must be non-zero")
    return np.sum(x * w) / total


@_rule("geometric_mean")
def geometric_mean(data: Any) -> Any:
    return _python(np.exp(np.mean(np.log(_sample(data, 1, "geometric_mean")))))


@_rule("harmonic_mean")
def harmonic_mean(data: Any, weights: Any = None) -> Any:
    x = _sample(data, 1, "harmonic_mean", weights)
    return _python(1.0 / (np.mean(1.0 / x) if weights is None else _weighted(1.0 / x, weights)))


@_rule("median")
def median(data: Any) -> Any:
    return _python(np.median(_sample(data, 1, "median")))


@_rule("median_low")
def median_low(data: Any) -> Any:
    x = np.sort(_sample(data, 1, "median_low"))
    return _python(x[(len(x) - 1) // 2])


@_rule("median_high")
def median_high(data: Any) -> Any:
    x = np.sort(_sample(data, 1, "median_high"))
    return _python(x[len(x) // 2])


def _spread(data: Any, center: Any, ddof: int, name: str) -> Any:
    x = _sample(data, 1 + ddof, name, center)
    return np.sum(np.square(x - (np.mean(x) if center is None else center))) / (len(x) - ddof)


@_rule("variance")
def variance(data: Any, xbar: Any = None) -> Any:
    return _python(_spread(data, xbar, 1, "variance"))


@_rule("pvariance")
def pvariance(data: Any, mu: Any = None) -> Any:
    return _python(_spread(data, mu, 0, "pvariance"))


@_rule("stdev")
def stdev(data: Any, xbar: Any = None) -> Any:
    return _python(np.sqrt(_spread(data, xbar, 1, "stdev")))


@_rule("pstdev")
def pstdev(data: Any, mu: Any = None) -> Any:
    return _python(np.sqrt(_spread(data, mu, 0, "pstdev")))


# --- two samples -------------------------------------------------------------------------------

def _pair(x: Any, y: Any, what: str) -> tuple[Any, Any]:
    import statistics

    x, y = (_sample(v, 0, what, x, y) for v in (x, y))
    if len(x) != len(y):
        raise statistics.StatisticsError(f"{what} requires that both inputs have same number of data points")
    if len(x) < 2:
        raise statistics.StatisticsError(f"{what} requires at least two data points")
    return x, y


def _centred(x: Any) -> Any:
    return x - np.mean(x)


@_rule("covariance")
def covariance(x: Any, y: Any, /) -> Any:
    x, y = _pair(x, y, "covariance")
    return _python(_centred(x) @ _centred(y) / (len(x) - 1))


@_rule("correlation")
def correlation(x: Any, y: Any, /, *, method: str = "linear") -> Any:
    import statistics

    if method not in ("linear", "ranked"):
        raise ValueError(f"Unknown method: {method!r}")
    x, y = _pair(x, y, "correlation")
    if method == "ranked":
        x, y = ((np.sum(v < v[:, None], -1) + np.sum(v <= v[:, None], -1)) / 2.0 for v in (x, y))
    x, y = _centred(x), _centred(y)
    total = (x @ x) * (y @ y)
    if total == 0:                                       # a recorded branch
        raise statistics.StatisticsError("at least one of the inputs is constant")
    return _python(x @ y / np.sqrt(total))


@_rule("linear_regression")
def linear_regression(x: Any, y: Any, /, *, proportional: bool = False) -> Any:
    import statistics

    x, y = _pair(x, y, "linear regression")
    u, v = (x, y) if proportional else (_centred(x), _centred(y))
    total = u @ u
    if total == 0:                                       # a recorded branch
        raise statistics.StatisticsError("x is constant")
    slope = u @ v / total
    intercept = 0.0 if proportional else _python(np.mean(y) - slope * np.mean(x))
    return statistics.LinearRegression(slope=_python(slope), intercept=intercept)


# --- the most common, and the middle of a class -------------------------------------------------------

def _counts(x: Any) -> Any:
    """How often each element is there."""
    return np.sum(x[:, None] == x, axis=-1)


@_rule("mode")
def mode(data: Any) -> Any:
    x = _values(data)
    if not len(x):
        import statistics

        raise statistics.StatisticsError("no mode for empty data")
    return x[np.argmax(_counts(x))]


@_rule("multimode")
def multimode(data: Any) -> list[Any]:
    """How many there are is a branch."""
    x = _values(data)
    if not len(x):
        return []
    counts = _counts(x)
    earlier = np.any((x[:, None] == x) & (np.arange(len(x)) < np.arange(len(x))[:, None]), axis=-1)
    return list(x[flat_positions((counts == np.max(counts)) & ~earlier)])


def _values(data: Any) -> Any:
    return lift_with(list(data) if not isinstance(data, (list, tuple, Value)) else data, data)


@_rule("median_grouped")
def median_grouped(data: Any, interval: Any = 1.0) -> Any:
    """As in `statistics`: the middle of the class of the median, moved by how many are below it."""
    x = _sample(data, 0, "median_grouped", interval)
    if not len(x):
        import statistics

        raise statistics.StatisticsError("no median for empty data")
    middle = np.sort(x)[len(x) // 2]
    below, inside = np.sum(x < middle), np.sum(x == middle)
    return _python(middle - interval / 2.0 + interval * (len(x) / 2 - below) / inside)


# --- what the methods of `statistics.NormalDist` call, which run as a user's do ------------------------

@substitute("statistics", "_normal_dist_inv_cdf")
def _normal_dist_inv_cdf(p: Any, mu: Any, sigma: Any) -> Any:
    return _python(mu + sigma * sp.ndtri(lift_with(p, mu, sigma)))


@_rule("_mean_stdev")
def _mean_stdev(data: Any) -> Any:
    return mean(data), stdev(data)
