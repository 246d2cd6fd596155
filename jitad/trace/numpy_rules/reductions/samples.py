"""The functions of Python's `statistics` on lists and arrays that are traced; their results are Python's floats."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.trace.dispatch import as_value, builder_in, lift_with
from jitad.trace.substitutes import substitute
from jitad.trace.values.seen import as_python

__all__: list[str] = []


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


@substitute("statistics", "mean")
def mean(data: Any) -> Any:
    return _python(np.mean(_sample(data, 1, "mean")))


@substitute("statistics", "fmean")
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


@substitute("statistics", "geometric_mean")
def geometric_mean(data: Any) -> Any:
    return _python(np.exp(np.mean(np.log(_sample(data, 1, "geometric_mean")))))


@substitute("statistics", "harmonic_mean")
def harmonic_mean(data: Any, weights: Any = None) -> Any:
    x = _sample(data, 1, "harmonic_mean", weights)
    return _python(1.0 / (np.mean(1.0 / x) if weights is None else _weighted(1.0 / x, weights)))


@substitute("statistics", "median")
def median(data: Any) -> Any:
    return _python(np.median(_sample(data, 1, "median")))


@substitute("statistics", "median_low")
def median_low(data: Any) -> Any:
    x = np.sort(_sample(data, 1, "median_low"))
    return _python(x[(len(x) - 1) // 2])


@substitute("statistics", "median_high")
def median_high(data: Any) -> Any:
    x = np.sort(_sample(data, 1, "median_high"))
    return _python(x[len(x) // 2])


def _spread(data: Any, center: Any, ddof: int, name: str) -> Any:
    x = _sample(data, 1 + ddof, name, center)
    return np.sum(np.square(x - (np.mean(x) if center is None else center))) / (len(x) - ddof)


@substitute("statistics", "variance")
def variance(data: Any, xbar: Any = None) -> Any:
    return _python(_spread(data, xbar, 1, "variance"))


@substitute("statistics", "pvariance")
def pvariance(data: Any, mu: Any = None) -> Any:
    return _python(_spread(data, mu, 0, "pvariance"))


@substitute("statistics", "stdev")
def stdev(data: Any, xbar: Any = None) -> Any:
    return _python(np.sqrt(_spread(data, xbar, 1, "stdev")))


@substitute("statistics", "pstdev")
def pstdev(data: Any, mu: Any = None) -> Any:
    return _python(np.sqrt(_spread(data, mu, 0, "pstdev")))
