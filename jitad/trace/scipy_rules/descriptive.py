"""Statistics of samples of scipy.stats, for arrays without missing values; definitions are those of its documentation.

Means by logarithms, moments about the mean, statistics of angles (Mardia and Jupp, Directional Statistics, 2000), power
transformations (Box and Cox 1964, Yeo and Johnson 2000).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.scipy_ufuncs import ufuncs as sp
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in, lift_with, refused
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import as_float

TURN = 2.0 * np.pi


def _sample(name: str, policy: str, a: Any, *others: Any) -> Any:
    """The sample in floats; raises for what is to be done about missing values."""
    a = as_float(lift_with(a, *others))
    if policy != "propagate":
        raise refused(a, f"scipy.stats.{name} with nan_policy={policy!r}",
                      "leave the option out, or use NumPy's functions for missing values, such as np.nanmean")
    return a if a.ndim else a.reshape(1)


def _along(a: Any, axis: int | None) -> tuple[Any, int]:
    """The sample, flattened for None, and its axis."""
    return (a.reshape(-1), 0) if axis is None else (a, axis)


# --- means -----------------------------------------------------------------------------------------

def _mean(name: str, a: Any, axis: Any, dtype: Any, weights: Any, policy: str, keepdims: Any, to: Any,
          back: Any) -> Any:
    """``back`` of the mean of ``to(a)``."""
    a = _sample(name, policy, a, weights)
    if dtype is not None:
        raise refused(a, f"scipy.stats.{name} with dtype=", "convert the sample with astype")
    a, axis = _along(a, axis)
    if weights is not None:
        weights = as_value(a.builder, weights)
        if weights.shape != a.shape:
            weights = np.broadcast_to(weights, a.shape)
    return back(np.average(to(a), axis=axis, weights=weights, keepdims=keepdims))


@substitute("scipy.stats", "gmean")
def gmean(a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *, nan_policy: str = "propagate",
          keepdims: bool = False) -> Any:
    return _mean("gmean", a, axis, dtype, weights, nan_policy, keepdims, np.log, np.exp)


@substitute("scipy.stats", "hmean")
def hmean(a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Any:
    return _mean("hmean", a, axis, dtype, weights, nan_policy, keepdims, lambda x: choose(x < 0, np.nan, 1.0 / x),
                 lambda x: 1.0 / x)


@substitute("scipy.stats", "pmean")
def pmean(a: Any, p: Any, *, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Any:
    if np.ndim(p):
        raise ValueError("Power mean only defined for exponent of type int or float.")
    traced = builder_in(p) is not None
    if p == 0:                                           # a recorded branch
        if traced:
            raise refused(as_value(builder_in(p), p), "scipy.stats.pmean with a traced power that is 0",
                          "use scipy.stats.gmean, whose derivative by the power is no other formula's")
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    if np.isinf(p):
        raise NotImplementedError("Power mean only implemented for finite `p`")
    return _mean("pmean", lift_with(a, weights, p), axis, dtype, weights, nan_policy, keepdims,
                 lambda x: choose(x < 0, np.nan, np.power(x, p)), lambda x: np.power(x, 1.0 / p))


# --- moments ---------------------------------------------------------------------------------------

@substitute("scipy.stats", "sem")
def sem(a: Any, axis: Any = 0, ddof: Any = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    a, axis = _along(_sample("sem", nan_policy, a), axis)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / np.sqrt(a.shape[axis])


@substitute("scipy.stats", "zscore")
def zscore(a: Any, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> Any:
    return zmap(a, a, axis, ddof, nan_policy)


@substitute("scipy.stats", "zmap")
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> Any:
    compare = _sample("zmap", nan_policy, compare, scores)
    scores = as_float(as_value(compare.builder, scores))
    mean, std = np.mean(compare, axis=axis, keepdims=True), np.std(compare, axis=axis, ddof=ddof, keepdims=True)
    return (scores - mean) / choose(std > 0, std, np.nan)


@substitute("scipy.stats", "gzscore")
def gzscore(a: Any, *, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> Any:
    return zscore(np.log(_sample("gzscore", nan_policy, a)), axis, ddof)


@substitute("scipy.stats", "gstd")
def gstd(a: Any, axis: Any = 0, ddof: Any = 1, *, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    return np.exp(np.std(np.log(_sample("gstd", nan_policy, a)), axis=axis, ddof=ddof, keepdims=keepdims))


@substitute("scipy.stats", "variation")
def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: Any = 0, *, keepdims: bool = False) -> Any:
    a = _sample("variation", nan_policy, a)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / np.mean(a, axis=axis, keepdims=keepdims)


def _central(a: Any, order: int, axis: int, keepdims: bool = False, center: Any = None) -> Any:
    mean = np.mean(a, axis=axis, keepdims=True) if center is None else center
    return np.mean((a - mean) ** order, axis=axis, keepdims=keepdims)


@substitute("scipy.stats", "moment")
def moment(a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None,
           keepdims: bool = False) -> Any:
    a, axis = _along(_sample("moment", nan_policy, a, center), axis)
    if np.ndim(order) or int(order) != order or order < 0:
        raise refused(a, "scipy.stats.moment of several orders", "ask for one natural number at a time")
    if order == 1 and center is None:
        return np.mean(a, axis=axis, keepdims=keepdims) * 0.0
    return _central(a, int(order), axis, keepdims, center)


@substitute("scipy.stats", "skew")
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    a, axis = _along(_sample("skew", nan_policy, a), axis)
    n, second, third = a.shape[axis], _central(a, 2, axis, keepdims), _central(a, 3, axis, keepdims)
    factor = 1.0 if bias or n <= 2 else np.sqrt((n - 1.0) * n) / (n - 2.0)
    return factor * third / np.power(choose(second > 0, second, np.nan), 1.5)


@substitute("scipy.stats", "kurtosis")
def kurtosis(a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate", *,
             keepdims: bool = False) -> Any:
    a, axis = _along(_sample("kurtosis", nan_policy, a), axis)
    n, second, fourth = a.shape[axis], _central(a, 2, axis, keepdims), _central(a, 4, axis, keepdims)
    value = fourth / np.square(choose(second > 0, second, np.nan))
    if not bias and n > 3:
        value = ((n * n - 1.0) * value - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0
    return value - 3.0 if fisher else value


# --- order statistics ------------------------------------------------------------------------------

@substitute("scipy.stats", "iqr")
def iqr(x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, nan_policy: str = "propagate",
        interpolation: Any = "linear", keepdims: Any = False) -> Any:
    x = _sample("iqr", nan_policy, x, scale)
    low, high = sorted(rng)
    ends = [np.percentile(x, q, axis=axis, method=interpolation, keepdims=keepdims) for q in (high, low)]
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} not a valid scale for `iqr`")
        scale = 2.0 * np.sqrt(2.0) * sp.erfinv(0.5)
    return (ends[0] - ends[1]) / scale


@substitute("scipy.stats", "median_abs_deviation")
def median_abs_deviation(x: Any, axis: Any = 0, center: Any = None, scale: Any = 1.0, nan_policy: str = "propagate", *,
                         keepdims: bool = False) -> Any:
    x, axis = _along(_sample("median_abs_deviation", nan_policy, x, scale), axis)
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} is not a valid scale value.")
        scale = float(sp.ndtri(0.75))
    middle = np.median(x, axis=axis, keepdims=True) if center in (None, np.median) else np.expand_dims(
        center(x, axis=axis), axis)
    return np.median(np.absolute(x - middle), axis=axis, keepdims=keepdims) / scale


# --- entropy ---------------------------------------------------------------------------------------

@substitute("scipy.stats", "entropy")
def entropy(pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate",
            keepdims: bool = False) -> Any:
    """Of what is divided by its sum first."""
    pk, axis = _along(_sample("entropy", nan_policy, pk, qk, base), axis)
    if base is not None and base <= 0:
        raise ValueError("`base` must be a positive number or `None`.")
    pk = pk / np.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        terms = sp.entr(pk)
    else:
        qk = as_float(as_value(pk.builder, qk))
        terms = sp.rel_entr(pk, qk / np.sum(qk, axis=axis, keepdims=True))
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    return total if base is None else total / np.log(base)


# --- angles ----------------------------------------------------------------------------------------

def _resultant(name: str, samples: Any, high: Any, low: Any, axis: Any, policy: str, keepdims: bool) -> Any:
    """Mean sine and cosine of the angles that the samples are."""
    samples = _sample(name, policy, samples, high, low)
    angles = (samples - low) * (TURN / (high - low))
    return tuple(np.mean(part, axis=axis, keepdims=keepdims) for part in (np.sin(angles), np.cos(angles)))


@substitute("scipy.stats", "circmean")
def circmean(samples: Any, high: Any = TURN, low: Any = 0, axis: Any = None, nan_policy: str = "propagate", *,
             keepdims: bool = False) -> Any:
    sine, cosine = _resultant("circmean", samples, high, low, axis, nan_policy, keepdims)
    return np.mod(np.arctan2(sine, cosine), TURN) * ((high - low) / TURN) + low


@substitute("scipy.stats", "circvar")
def circvar(samples: Any, high: Any = TURN, low: Any = 0, axis: Any = None, nan_policy: str = "propagate", *,
            keepdims: bool = False) -> Any:
    return 1.0 - np.minimum(1.0, np.hypot(*_resultant("circvar", samples, high, low, axis, nan_policy, keepdims)))


@substitute("scipy.stats", "circstd")
def circstd(samples: Any, high: Any = TURN, low: Any = 0, axis: Any = None, nan_policy: str = "propagate", *,
            normalize: bool = False, keepdims: bool = False) -> Any:
    length = np.minimum(1.0, np.hypot(*_resultant("circstd", samples, high, low, axis, nan_policy, keepdims)))
    spread = np.sqrt(-2.0 * np.log(length))
    return spread if normalize else spread * ((high - low) / TURN)


# --- power transformations -------------------------------------------------------------------------

@substitute("scipy.stats", "boxcox")
def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    x = lift_with(x, lmbda)
    if lmbda is None:
        raise refused(x, "scipy.stats.boxcox without lmbda", "maximise scipy.stats.boxcox_llf outside of the function")
    return sp.boxcox(x, lmbda)


@substitute("scipy.stats", "boxcox_llf")
def boxcox_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The variance of ``x**lmb / lmb`` is that of ``boxcox(x, lmb)``, which does not overflow about lmb = 0."""
    data, axis = _along(_sample("boxcox_llf", nan_policy, data, lmb), axis)
    n = data.shape[axis]
    variance = np.var(sp.boxcox(data, lmb), axis=axis, keepdims=keepdims)
    return (lmb - 1.0) * np.sum(np.log(data), axis=axis, keepdims=keepdims) - 0.5 * n * np.log(variance)


@substitute("scipy.stats", "yeojohnson")
def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    x = as_float(lift_with(x, lmbda))
    if lmbda is None:
        raise refused(x, "scipy.stats.yeojohnson without lmbda",
                      "maximise scipy.stats.yeojohnson_llf outside of the function")
    right = x >= 0
    return choose(right, sp.boxcox1p(choose(right, x, 0.0), lmbda), -sp.boxcox1p(choose(right, 0.0, -x), 2.0 - lmbda))


@substitute("scipy.stats", "yeojohnson_llf")
def yeojohnson_llf(lmb: Any, data: Any, *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    data, axis = _along(_sample("yeojohnson_llf", nan_policy, data, lmb), axis)
    variance = np.var(yeojohnson(data, lmb), axis=axis, keepdims=keepdims)
    logs = np.sum(np.sign(data) * np.log1p(np.absolute(data)), axis=axis, keepdims=keepdims)
    return (lmb - 1.0) * logs - 0.5 * data.shape[axis] * np.log(variance)
