"""scipy.spatial.distance: distances of two points, of all pairs of rows, and their two forms.

The derivative of a distance at points that coincide is 0, that of a norm.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in, refused
from jitad.trace.numpy_rules.reductions.reduce import root, sum_
from jitad.trace.substitutes import substitute

MODULE = "scipy.spatial.distance"


def _weighted(x: Any, w: Any) -> Any:
    return x if w is None else w * x


def _sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    return sum_(_weighted(np.square(u - v), w), -1)


def _euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return root(_sqeuclidean(u, v, w))


def _cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return sum_(_weighted(np.abs(u - v), w), -1)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    distance = np.abs(u - v)
    return np.max(distance if w is None else choose(as_value(distance.builder, w) > 0, distance, 0.0), axis=-1)


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if builder_in(p) is None and p == 1:
        return _cityblock(u, v, w)
    if builder_in(p) is None and p == 2:
        return _euclidean(u, v, w)
    total = sum_(_weighted(np.abs(u - v) ** p, w), -1)
    return choose(total == 0, 0.0, choose(total == 0, 1.0, total) ** (1.0 / p))


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    uv, uu, vv = (sum_(_weighted(a * b, w), -1) for a, b in ((u, v), (u, u), (v, v)))
    distance = 1.0 - uv / np.sqrt(uu * vv)
    return choose(distance < 0, 0.0, choose(distance > 2, 2.0, distance))


def _correlation(u: Any, v: Any, w: Any = None, centered: Any = True) -> Any:
    if not centered:
        return _cosine(u, v) if w is None else _cosine(u, v, as_value(u.builder, w) / np.sum(w))
    if w is None:
        return _cosine(u - u.mean(-1, keepdims=True), v - v.mean(-1, keepdims=True))
    w = as_value(u.builder, w) / np.sum(w)
    return _cosine(u - sum_(u * w, -1, keepdims=True), v - sum_(v * w, -1, keepdims=True), w)


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    size = np.abs(u) + np.abs(v)
    return sum_(_weighted(choose(size == 0, 0.0, np.abs(u - v) / choose(size == 0, 1.0, size)), w), -1)


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return sum_(_weighted(np.abs(u - v), w), -1) / sum_(_weighted(np.abs(u + v), w), -1)


def _seuclidean(u: Any, v: Any, V: Any) -> Any:
    return root(sum_(np.square(u - v) / V, -1))


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    d = u - v
    return root(np.einsum("...i,...ij,...j->...", d, as_value(d.builder, VI), d))


METRICS: dict[str, Callable[..., Any]] = {f.__name__[1:]: f for f in (
    _sqeuclidean, _euclidean, _cityblock, _chebyshev, _minkowski, _cosine, _correlation, _canberra, _braycurtis,
    _seuclidean, _mahalanobis)}
_ALIASES = {"euclid": "euclidean", "eu": "euclidean", "e": "euclidean", "sqe": "sqeuclidean",
            "sqeuclid": "sqeuclidean", "cityblock": "cityblock", "cblock": "cityblock", "cb": "cityblock",
            "c": "cityblock", "manhattan": "cityblock", "chebychev": "chebyshev", "cheby": "chebyshev",
            "cheb": "chebyshev", "ch": "chebyshev", "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski",
            "cos": "cosine", "co": "correlation", "mahal": "mahalanobis", "se": "seuclidean", "s": "seuclidean"}


def _point(name: str) -> None:
    metric = METRICS[name]

    @substitute(MODULE, name)
    def between(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        builder = builder_in(u, v, args, kwargs)
        u, v = (as_value(builder, p) for p in (u, v))
        u, v = (p.reshape(-1) if p.ndim == 2 and 1 in p.shape else p for p in (u, v))
        if u.ndim != 1 or v.ndim != 1:
            raise ValueError("Input vector should be 1-D.")
        if name not in ("sqeuclidean", "euclidean", "minkowski") or "f" not in u.dtype.kind + v.dtype.kind:
            u, v = cast(u, np.float64), cast(v, np.float64)
        result = metric(u, v, *args, **kwargs)
        return result if name == "sqeuclidean" else cast(result, np.float64)


for _name in METRICS:
    _point(_name)


def _metric(builder: Any, metric: Any, options: dict[str, Any], function: str) -> Callable[..., Any]:
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "")
    name = _ALIASES.get(name.lower(), name.lower())
    if name not in METRICS or (not isinstance(metric, str) and not metric.__module__.startswith(MODULE)):
        raise refused(builder, f"{MODULE}.{function} with metric={metric!r}", "use one of " + ", ".join(METRICS))
    if name == "seuclidean" and options.get("V") is None:
        raise refused(builder, f"{MODULE}.{function} with metric='seuclidean' and no V", "pass the variances as V=")
    if name == "mahalanobis" and options.get("VI") is None:
        raise refused(builder, f"{MODULE}.{function} with metric='mahalanobis' and no VI", "pass the inverse as VI=")
    return METRICS[name]


def _points(builder: Any, x: Any, name: str) -> Any:
    x = cast(as_value(builder, x), np.float64)
    if x.ndim != 2:
        raise ValueError("A 2-dimensional array must be passed." if name == "X" else
                         f"{name} must be a 2-dimensional array.")
    return x


@substitute(MODULE, "cdist")
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    builder = builder_in(XA, XB, kwargs)
    if out is not None:
        raise refused(builder, f"{MODULE}.cdist with out=", "use the returned array instead")
    a, b = _points(builder, XA, "XA"), _points(builder, XB, "XB")
    if a.shape[1] != b.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return _metric(builder, metric, kwargs, "cdist")(a[:, None, :], b[None, :, :], **kwargs)


@substitute(MODULE, "pdist")
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    builder = builder_in(X, kwargs)
    if out is not None:
        raise refused(builder, f"{MODULE}.pdist with out=", "use the returned array instead")
    x = _points(builder, X, "X")
    i, j = np.triu_indices(x.shape[0], 1)
    return _metric(builder, metric, kwargs, "pdist")(x[i], x[j], **kwargs)


@substitute(MODULE, "squareform")
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    x = as_value(builder_in(X), X)
    if force.lower() in ("tomatrix", "tovector") and x.ndim != (1 if force.lower() == "tomatrix" else 2):
        raise ValueError(f"Forcing '{force.lower()}' but input X is not a "
                         + ("distance vector." if x.ndim != 1 else "distance matrix."))
    if x.ndim == 1:
        n = max(int(np.ceil(np.sqrt(x.size * 2))), 1)
        if n * (n - 1) != x.size * 2:
            raise ValueError("Incompatible vector size. It must be a binomial coefficient n choose 2 for some "
                             "integer n >= 2.")
        if not x.size:
            return np.zeros((1, 1), x.dtype)
        where = np.zeros((n, n), np.int64)
        where[np.triu_indices(n, 1)] = np.arange(x.size)
        return choose(np.eye(n, dtype=bool), np.zeros((), x.dtype), x[where + where.T])
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError("The matrix argument must be square." if x.ndim == 2 else
                         "The first argument must be one or two dimensional array. A "
                         f"{x.ndim}-dimensional array is not permitted")
    if checks and not (x == x.T).all():                             # recorded branches
        raise ValueError("Distance matrix 'X' must be symmetric.")
    if checks and not (np.diagonal(x) == 0).all():
        raise ValueError("Distance matrix 'X' diagonal must be zero.")
    return x[np.triu_indices(x.shape[0], 1)]
