"""Order, search and places: rows with integer results, through which no derivative flows, and the linear recurrence.

Sorting, quantiles and interpolation are gathers by such integers (see `jitad/trace/numpy_rules/`), so
that their derivatives are those of `gather`: a derivative goes where the element went.
"""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jitad.primitives.core import cast, full, select
from jitad.primitives.linear import Cotangents
from jitad.primitives.reduce import kept, reduce_max, reduce_min, reduce_sum, restore
from jitad.primitives.view import Map, broadcast_to, expand_dims, slice_dims, spread
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive

INTP = np.dtype(np.int64)
Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]


def _with_ties(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers of which some are equal, zeros of both signs among them."""
    return np.round(rng.normal(size=shape) * 2.0) * 0.5


argsort = Primitive(
    "argsort", evaluate=lambda x: np.argsort(x, axis=-1, kind="stable"), infer=lambda x: Aval(x.shape, INTP), cost=100,
    samples=lambda rng: [((_with_ties(rng, 3, 7),), {}), ((_with_ties(rng, 70),), {}), ((rng.normal(size=(2, 1)),), {}),
                         ((np.array([np.nan, 1.0, -np.inf, np.nan, np.inf, 0.0, -0.0]),), {}),
                         ((rng.integers(-3, 3, size=40),), {}), ((np.zeros((2, 0)),), {})],
    batch=lambda prim, operands, length: prim(operands[0][0]),
    below=lambda x: x.shape[-1], distinct=True,
    numbers=lambda x, out: (x.size // max(x.shape[-1], 1), x.shape[-1]))
"""The places of the elements along the last axis in ascending order. Equal ones keep their order; NaN come last."""



def _select_places(x: Any, ranks: Any) -> Any:
    order = np.argsort(x, axis=-1, kind="stable")
    ranks = np.broadcast_to(np.clip(ranks, 0, x.shape[-1] - 1), (*x.shape[:-1], ranks.shape[-1]))
    return np.take_along_axis(order, ranks, -1)


def _ranked(x: Aval, ranks: Aval) -> Aval:
    if not x.shape[-1] or ranks.shape[:-1] not in ((), x.shape[:-1]):
        raise ValueError(f"ranks of shape {ranks.shape} in lines of shape {x.shape}")
    return Aval((*x.shape[:-1], ranks.shape[-1]), INTP)


def _select_of_batch(prim: Any, operands: Any, length: int) -> Value:
    """Ranks of one dimension are for all lines; else there are as many lines of them as of elements."""
    (x, many), (ranks, each) = operands
    if each:
        x = x if many else broadcast_to(expand_dims(x, (0,)), (length, *x.shape))
        if ranks.ndim < x.ndim:
            ranks = expand_dims(ranks, tuple(range(1, 1 + x.ndim - ranks.ndim)))
            ranks = broadcast_to(ranks, (*x.shape[:-1], ranks.shape[-1]))
    elif many and ranks.ndim > 1:
        ranks = broadcast_to(expand_dims(ranks, (0,)), (length, *ranks.shape))
    return prim(x, ranks)


select_places = Primitive(
    "select_places", evaluate=_select_places, infer=_ranked, cost=50, samples=lambda rng: [
        ((_with_ties(rng, 3, 7), np.array([0, 3, 6])), {}),
        ((rng.normal(size=2100), np.array([1050, 2099, 0, 77])), {}),
        ((_with_ties(rng, 3000), np.array([1499])), {}), ((_with_ties(rng, 2, 40), np.array([[3, 39], [20, 20]])), {}),
        ((np.array([np.nan, 1.0, -np.inf, np.nan, np.inf, 0.0, -0.0]), np.arange(7)), {}),
        ((rng.integers(-3, 3, size=90), np.array([44, 45, 89])), {})],
    batch=_select_of_batch, below=lambda x, ranks: x.shape[-1],
    numbers=lambda x, ranks, out: (x.size // max(x.shape[-1], 1), x.shape[-1], ranks.shape[-1],
                                   ranks.shape[-1] if ranks.ndim > 1 else 0))
"""The places along the last axis of the elements of these ranks in the order of `argsort`, without the others': ranks
of one dimension are for all lines."""

positions = Primitive(
    "positions", evaluate=lambda mask, count: np.resize(
        np.append(np.flatnonzero(mask), np.zeros(count, np.int64))[:count], (count,)),
    infer=lambda mask, count: Aval((count,), INTP), cost=10,
    samples=lambda rng: [((rng.uniform(size=20) < 0.5,), {"count": 8}),
                         ((np.array([True, False, True]),), {"count": 2}), ((np.array([False, True]),), {"count": 0})],
    below=lambda mask, count: mask.size, distinct=True, numbers=lambda mask, out: (mask.size, out.size))
"""The places of the first `count` true elements of a mask of one dimension, then zeros. A recording guards the count,
so that there are just so many."""

searchsorted = Primitive(
    "searchsorted", kind="search", evaluate=lambda a, v, side: np.searchsorted(a, v, side),
    infer=lambda a, v, side: Aval(v.shape, INTP), cost=30, virtual=True, counting=True, storable=True,
    below=lambda a, v, side: a.shape[0] + 1,
    samples=lambda rng: [
        ((np.sort(_with_ties(rng, n)), _with_ties(rng, 3, 4)), {"side": side})
        for n in (1, 2, 7, 8, 9, 33) for side in ("left", "right")] + [
        ((np.array([1.0, 2.0, np.nan, np.nan]), np.array([np.nan, 1.5, np.inf, -np.inf])), {"side": "left"}),
        ((np.array([1.0, 2.0, np.nan, np.nan]), np.array([np.nan, 2.0, np.inf])), {"side": "right"}),
        ((np.zeros(0), np.ones(2)), {"side": "left"})])
"""For each element of `v` its place in the ascending `a` of the same dtype: before the elements that equal it
(`side` ``left``) or after them. NaN are greater than all numbers. For an `a` that does not ascend it is any integer
from 0 to ``len(a)``."""


def _iota(x: Any, axis: int) -> Any:
    n = x.shape[axis]
    return np.broadcast_to(np.arange(n).reshape((-1,) + (1,) * (x.ndim - 1 - axis)), x.shape)


iota = Primitive(
    "iota", kind="iota", evaluate=_iota, infer=lambda x, axis: Aval(x.shape, INTP),
    cost=0, virtual=True, counting=True, shape_only=True, below=lambda x, axis: x.shape[axis],
    samples=lambda rng: [((rng.normal(size=(3, 4)),), {"axis": 1}), ((rng.normal(size=5),), {"axis": 0})])
"""For each element of `x` its place along `axis`."""


reduce_first = Primitive(
    "reduce_first", kind="reduce", evaluate=lambda x, axes, below: np.min(x, axis=axes),
    infer=lambda x, axes, below: Aval(kept(x.shape, axes), x.dtype),
    accumulate="min", identity=np.iinfo(INTP).max, can_fail=False, separable=True, below=lambda x, axes, below: below,
    samples=lambda rng: [((rng.integers(0, 9, size=(3, 4)),), {"axes": (1,), "below": 9})])
"""The least of integers from 0 on that are less than `below`: a place that needs no check when it is an index."""


def arg_extremum(x: Value, axis: int, largest: bool) -> Value:
    """The place of the first largest (or smallest) element along `axis`, which is lost; NaN counts as such."""
    x = cast(x, INTP) if x.dtype.kind == "b" else x
    best = (reduce_max if largest else reduce_min)(x, axes=(axis,))
    hit = TABLE["eq"](x, restore(best, x.shape, (axis,)))
    if x.dtype.kind == "f":
        hit = TABLE["logical_or"](hit, TABLE["isnan"](x))
    last = x.shape[axis] - 1
    return reduce_first(select(hit, iota(x, axis=axis), last), axes=(axis,), below=last + 1)


def count_true(mask: Value) -> Value:
    """How many elements of a mask are true, as int64."""
    return reduce_sum(cast(mask, INTP), tuple(range(mask.ndim)))


# --- the linear recurrence -------------------------------------------------------------------------

def _recurrence(a: Any, b: Any, axis: int, reverse: bool, late: bool) -> Any:
    a, b = (np.moveaxis(x, axis, 0) for x in (a, b))
    y = np.array(b)
    order = range(len(y))[::-1] if reverse else range(len(y))
    for before, i in pairwise(order):
        y[i] = a[before if late else i] * y[before] + b[i]
    return np.moveaxis(y, 0, axis)


def _early(x: Value, axis: int, reverse: bool) -> Value:
    """All but the last step."""
    return slice_dims(x, _steps(x.ndim, axis, slice(1, None) if reverse else slice(None, x.shape[axis] - 1)))


def _late(x: Value, axis: int, reverse: bool) -> Value:
    """All but the first step."""
    return _early(x, axis, not reverse)


def _steps(ndim: int, axis: int, steps: slice) -> tuple[slice, ...]:
    return tuple(steps if d == axis else slice(None) for d in range(ndim))


def _placed(part: Value, like: Value, axis: int, first: bool) -> Value:
    """`part`, one step shorter than `like`, from the first place on or from the second."""
    index: Map = tuple((0 if first or d != axis else 1, ((d, 1),)) for d in range(like.ndim))
    return spread(part, like.shape, index)


def _recurrence_vjp(ct: Value, y: Value, a: Value, b: Value, axis: int, reverse: bool, late: bool) -> Cotangents:
    """``b_bar[i] = ct[i] + c[i + 1] b_bar[i + 1]`` with c[i + 1] the factor from step i to the next one, whose
    cotangent is ``b_bar[i + 1] y[i]``."""
    b_bar = recurrence(a, ct, axis=axis, reverse=not reverse, late=not late)
    if y.shape[axis] < 2:
        return None, b_bar
    factor_bar = _late(b_bar, axis, reverse) * _early(y, axis, reverse)
    return _placed(factor_bar, a, axis, first=late != reverse), b_bar


def _recurrence_jvp(tangents: Cotangents, y: Value, a: Value, b: Value, axis: int, reverse: bool,
                    late: bool) -> Value | None:
    da, db = tangents
    moved = db
    if da is not None and y.shape[axis] > 1:
        factor = (_early if late else _late)(da, axis, reverse)
        term = _placed(factor * _early(y, axis, reverse), a, axis, first=reverse)
        moved = term if db is None else term + db
    return None if moved is None else recurrence(a, moved, axis=axis, reverse=reverse, late=late)


def _recurrence_batch(prim: Primitive, operands: Any, length: int, axis: int, **params: Any) -> Value:
    """Along the axis, which is one further on, in every example."""
    full = (x if batched else broadcast_to(x, (length, *x.shape)) for x, batched in operands)
    return prim(*full, axis=axis + 1, **params)


def _recurrence_samples(rng: np.random.Generator) -> Samples:
    draw = lambda *shape: (rng.normal(size=shape), rng.normal(size=shape))
    zero = np.array([2.0, 0.0, -1.5, 3.0])
    return [(draw(5), {"axis": 0, "reverse": False, "late": False}),
            (draw(3, 4), {"axis": 1, "reverse": True, "late": False}),
            (draw(3, 2), {"axis": 0, "reverse": False, "late": True}),
            (draw(4), {"axis": 0, "reverse": True, "late": True}),
            ((zero, zero[::-1].copy()), {"axis": 0, "reverse": False, "late": False}),
            (draw(1), {"axis": 0, "reverse": False, "late": False})]


recurrence: Primitive = Primitive(
    "recurrence", kind="recurrence", evaluate=_recurrence, infer=lambda a, b, **params: Aval(b.shape, b.dtype),
    vjp=_recurrence_vjp, jvp=_recurrence_jvp, batch=_recurrence_batch, samples=_recurrence_samples)
"""``y[i] = a[i] * y[i - 1] + b[i]`` along `axis`, from ``y[0] = b[0]``; the first factor is not read. With `reverse`
from the end, with `late` each factor is that of the step before: ``y[i] = a[i - 1] * y[i - 1] + b[i]``."""


def cumprod(x: Value, axis: int) -> Value:
    """Cumulative products. The derivatives do not divide, so that they are right at zeros; adding -0.0 changes
    nothing, not even the sign of a zero."""
    first = TABLE["eq"](iota(x, axis=axis), 0)
    nothing = full(x, -0.0 if x.dtype.kind == "f" else 0, x.shape, x.dtype)
    return recurrence(x, select(first, x, nothing), axis=axis, reverse=False, late=False)


__all__ = ["arg_extremum", "argsort", "count_true", "cumprod", "iota", "positions", "recurrence", "reduce_first",
           "searchsorted", "select_places"]
