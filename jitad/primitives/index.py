"""Gather, scatter and assignment, reshape, concatenate, triangles."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.errors import TapeError
from jitad.primitives.core import full, pointwise, select, zeros_like
from jitad.primitives.linear import linear
from jitad.primitives.view import (
    Map,
    broadcast_to,
    checked,
    expand_dims,
    identity_map,
    places,
    slice_dims,
    squeeze,
    view,
)
from jitad.tape import expr as scalar
from jitad.tape.builder import Value
from jitad.tape.types import TABLE, Aval, Primitive


def _front(x: Any, axes: tuple[int, ...]) -> Any:
    return np.moveaxis(x, axes, range(len(axes)))


def _gather(x: Any, *index: Any, axes: tuple[int, ...]) -> Any:
    return _front(x, axes)[index]


def _gather_infer(x: Aval, *index: Aval, axes: tuple[int, ...]) -> Aval:
    rest = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    return Aval(index[0].shape + rest, x.dtype)


def _scatter(x: Any, *index: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, x.dtype)
    np.add.at(_front(out, axes), index, x)
    return out


gather: Primitive = linear(
    "gather", kind="gather", evaluate=_gather, infer=_gather_infer, virtual=True, rearranges=True, counting=True,
    indexed=True, moves=True, tame=True, separable=lambda batched: not batched[0],
    vjp=lambda ct, y, x, *index, axes: (scatter(ct, *index, axes=axes, shape=x.shape), *(None for _ in index)),
    samples=lambda rng: [((rng.normal(size=(3, 4)), np.array([2, 0, 2])), {"axes": (0,)}),
                         ((rng.normal(size=(3, 4, 2)), np.array([1, -1]), np.array([0, 3])), {"axes": (2, 1)})])
"""`x` indexed along `axes` by integer arrays of one shape, whose dimensions come first in the result."""

scatter: Primitive = linear(
    "scatter", kind="scatter", evaluate=_scatter, indexed=True, scatters=True, moves=True, tame=True,
    infer=lambda x, *index, axes, shape: Aval(shape, x.dtype),
    vjp=lambda ct, y, x, *index, axes, shape: (gather(ct, *index, axes=axes), *(None for _ in index)),
    samples=lambda rng: [((rng.normal(size=(3, 4)), np.array([2, 0, 2])), {"axes": (1,), "shape": (4, 5)})])
"""The adjoint of `gather`: zeros of `shape`, into which each element of `x` is added."""


CHECKED = "made of an index that is checked elsewhere"


def _place(*index: Any, lengths: tuple[int, ...]) -> Any:
    choose: Any = scalar.select if isinstance(index[0], scalar.Expr) else np.where
    total: Any = None
    for i, n in zip(index, lengths, strict=True):
        own = choose(i < 0, i + n, i)
        total = own if total is None else total * n + own
    return total


def _within(*index: Any, lengths: tuple[int, ...]) -> Any:
    if not all(np.all((i >= -n) & (i < n)) for i, n in zip(index, lengths, strict=True)):
        raise IndexError("an index is out of bounds")
    return _place(*(i.astype(np.int64) for i in index), lengths=lengths)


def _index_samples(rng: np.random.Generator) -> list[Any]:
    return [((rng.integers(-4, 4, size=(2, 3)),), {"lengths": (4,)}),
            ((rng.integers(-4, 4, size=5), rng.integers(-2, 2, size=5)), {"lengths": (4, 2)})]


def _whole(*keys: Any) -> tuple[np.dtype[Any], ...]:
    return (np.dtype(np.int64),) * (len(keys) + 1)


wrapped = pointwise("wrapped", evaluate=_place, infer=lambda *i, lengths: i[0], scalar=_place, resolve=_whole,
                    samples=_index_samples, trusts=CHECKED)
"""Indices with NumPy's meaning of negative ones, as places: made once for a gather and the scatter beside it. Several
are a place in C order among their combinations. They are checked where they are used, by what uses them."""

within = pointwise("within", evaluate=_within, infer=lambda *i, lengths: Aval(i[0].shape, np.dtype(np.int64)),
                   scalar=_place, resolve=_whole, samples=_index_samples, can_fail=True, trusts=CHECKED)
"""The same of indices that are known before a kernel is made: the evaluation fails if one is out of bounds."""

trusted = pointwise("trusted", evaluate=lambda i, length: i, infer=lambda i, length: i, scalar=lambda i, length: i,
                    cost=0, samples=lambda rng: [((rng.integers(0, 4, size=6),), {"length": 4})],
                    resolve=_whole, below=lambda i, length: length, trusts=CHECKED)
"""Places that `within` gave: nothing needs to look at them again."""


def _reshape_infer(x: Aval, shape: tuple[int, ...]) -> Aval:
    out = Aval(shape, x.dtype)
    if out.size != x.size:
        raise TapeError(f"{x.size} elements in the shape {shape}")
    return out


_reshape = linear(
    "reshape", kind="reshape", cost=0, rearranges=True, shows=True, can_fail=False,
    virtual=True, moves=True, tame=True, separable=True,
    evaluate=lambda x, shape: np.reshape(x, shape), infer=_reshape_infer,
    vjp=lambda ct, y, x, shape: (reshape(ct, x.shape),),
    samples=lambda rng: [((rng.normal(size=(2, 6)),), {"shape": (3, 4)})])


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` in C order with another shape; a view where only unit dimensions come or go."""
    if not isinstance(x, Value):
        return np.reshape(x, shape)
    if x.shape == shape:
        return x
    if tuple(n for n in x.shape if n != 1) == tuple(n for n in shape if n != 1):
        bare = squeeze(x, tuple(d for d, n in enumerate(x.shape) if n == 1))
        return expand_dims(bare, tuple(d for d, n in enumerate(shape) if n == 1))
    if x.node.prim is _reshape:
        return reshape(x.builder.value(x.node.inputs[0]), shape)
    return _reshape(x, shape=shape)


def _concat_vjp(ct: Value, y: Value, *parts: Value, axis: int) -> list[Value]:
    result, start = [], 0
    for part in parts:
        stop = start + part.shape[axis]
        result.append(slice_dims(ct, tuple(slice(start, stop) if d == axis else slice(None) for d in range(ct.ndim))))
        start = stop
    return result


def _concat_infer(*parts: Aval, axis: int) -> Aval:
    shape = list(parts[0].shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    return Aval(tuple(shape), parts[0].dtype)


def _concat_jvp(tangents: Any, y: Value, *parts: Value, axis: int) -> Value:
    return concatenate(*_filled(tangents, parts), axis=axis)


def _filled(tangents: Any, inputs: Any) -> list[Value]:
    """Tangents with zeros where there are none."""
    return [zeros_like(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)]


concatenate = Primitive(
    "concatenate", kind="concatenate", can_fail=False, moves=True, tame=True, separable=True,
    evaluate=lambda *parts, axis: np.concatenate(parts, axis),
    infer=_concat_infer, vjp=_concat_vjp, jvp=_concat_jvp,
    samples=lambda rng: [((rng.normal(size=(2, 3)), rng.normal(size=(2, 1))), {"axis": 1})])
"""Parts of one dtype joined along `axis`."""


# --- assignment --------------------------------------------------------------------------------


def _update(base: Any, *values: Any, indices: tuple[Map, ...]) -> Any:
    out = np.array(base)
    for value, index in zip(values, indices, strict=True):
        out[places(index, value.shape)] = value
    return out


def _update_infer(base: Aval, *values: Aval, indices: tuple[Map, ...]) -> Aval:
    for value, index in zip(values, indices, strict=True):
        checked(base.shape, value.shape, index)
    return Aval(base.shape, base.dtype)


def _update_vjp(ct: Value, y: Value, base: Value, *values: Value, indices: tuple[Map, ...]) -> list[Value | None]:
    kept = np.ones(base.shape, bool)
    for value, index in zip(values, indices, strict=True):
        kept[places(index, value.shape)] = False
    below = select(ct.builder.const(kept), ct, 0.0) if kept.any() else None
    return [below, *(view(ct, v.shape, index) for v, index in zip(values, indices, strict=True))]


def _update_jvp(tangents: Any, y: Value, *inputs: Value, indices: tuple[Map, ...]) -> Value:
    return update(*_filled(tangents, inputs), indices=indices)


update: Primitive = linear(
    "update", kind="update", evaluate=_update, infer=_update_infer,
    vjp=_update_vjp, jvp=_update_jvp, moves=True, tame=True,
    samples=lambda rng: [((rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=())), {
        "indices": (((0, ((0, 1),)), (2, ())), ((1, ()), (3, ())))}),
        ((rng.normal(size=6), rng.normal(size=3)), {"indices": (((5, ((0, -2),)),),)})])
"""`base` with each of `values` stored where its map points. No two elements are stored at one place."""


def _put(base: Any, values: Any, *index: Any, axes: tuple[int, ...]) -> Any:
    out = np.array(base)
    _front(out, axes)[index] = values
    return out


def _put_vjp(ct: Value, y: Value, base: Value, values: Value, *index: Value, axes: tuple[int, ...]) -> list[Any]:
    kept = put(full(ct, True, base.shape, bool), full(ct, False, values.shape, bool), *index, axes=axes)
    taken = gather(ct, *index, axes=axes)
    board = tuple(base.shape[a] for a in axes)
    if len(index) == 1 and index[0].ndim == 1 and index[0].node.prim.distinct:
        return [select(kept, ct, 0.0), taken, None]
    known = [i.node.constant for i in index]
    if all(i is not None for i in known):
        flat = np.asarray(np.ravel_multi_index(known, board, mode="wrap"))      # type: ignore[call-overload]
        if np.unique(flat).size == flat.size:
            return [select(kept, ct, 0.0), taken, *(None for _ in index)]
    order = ct.builder.const(np.arange(index[0].aval.size).reshape(index[0].shape))
    last = put(full(ct, 0, board, np.int64), order, *index, axes=tuple(range(len(board))))
    won = TABLE["eq"](gather(last, *index, axes=tuple(range(len(board)))), order)
    won = expand_dims(won, tuple(range(won.ndim, values.ndim)))
    return [select(kept, ct, 0.0), select(broadcast_to(won, values.shape), taken, 0.0), *(None for _ in index)]


def _put_jvp(tangents: Any, y: Value, *inputs: Value, axes: tuple[int, ...]) -> Value:
    return put(*_filled(tangents[:2], inputs[:2]), *inputs[2:], axes=axes)


put: Primitive = linear(
    "put", kind="put", evaluate=_put, infer=lambda base, values, *index, axes: Aval(base.shape, base.dtype),
    vjp=_put_vjp, jvp=_put_jvp, moves=True, tame=True, stores=True,
    samples=lambda rng: [((rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), np.array([2, 0, 2])), {"axes": (0,)}),
                         ((rng.normal(size=(3, 4)), rng.normal(size=3), np.array([2, 0, 1]), np.array([-1, 0, 1])),
                          {"axes": (0, 1)})])
"""`base` with `values` stored where the integer arrays of one dimension point, as in `gather`; at a place that is met
twice the last one stays."""


def _triangle(name: str, function: Any) -> Primitive:
    prim = linear(name, kind="triangle", evaluate=lambda x, k: function(x, k),
                  infer=lambda x, k: Aval(x.shape, x.dtype),
                  vjp=lambda ct, y, x, k: (prim(ct, k=k),), lower=name == "tril", cost=0, can_fail=False, virtual=True,
                  counting=True, storable=True,
                  moves=True, tame=True, separable=True,
                  samples=lambda rng: [((rng.normal(size=(3, 4)),), {"k": 1}),
                                       ((rng.normal(size=(2, 3, 3)),), {"k": -1})])
    return prim


tril = _triangle("tril", np.tril)
triu = _triangle("triu", np.triu)

__all__ = ["concatenate", "gather", "identity_map", "put", "reshape", "scatter", "tril", "triu", "update"]
