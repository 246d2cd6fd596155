"""Index maps: every slice, transpose, broadcast, flip and diagonal is one `view`.

A map says for each dimension of the source which of its elements an element of
the result reads: ``source[k] = offset_k + sum(step * result[d])``. Maps compose,
so a chain of views is one view, and none of them costs a copy: the generated
loop reads through the map. The adjoint of `view` is `spread`, which adds each
element of its input where the map points.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jitad.errors import TapeError
from jitad.primitives.linear import linear, made
from jitad.tape.builder import Builder, Value
from jitad.tape.types import TABLE, Aval, Node, Primitive

Term = tuple[int, int]                       # (dimension of the result, step)
Map = tuple[tuple[int, tuple[Term, ...]], ...]   # for each dimension of the source: (offset, terms)


def identity_map(ndim: int) -> Map:
    return tuple((0, ((d, 1),)) for d in range(ndim))


@lru_cache(maxsize=4096)
def compose(outer: Map, inner: Map) -> Map:
    """The map of ``view(view(x, inner), outer)``."""
    result = []
    for offset, terms in inner:
        steps: dict[int, int] = {}
        for dim, step in terms:
            offset += step * outer[dim][0]
            for out, by in outer[dim][1]:
                steps[out] = steps.get(out, 0) + step * by
        result.append((offset, tuple(sorted((d, s) for d, s in steps.items() if s))))
    return tuple(result)


def _normal(index: Map, shape: tuple[int, ...]) -> Map:
    """Without terms over dimensions of length one, which never move."""
    return tuple((offset, tuple(t for t in terms if shape[t[0]] != 1)) for offset, terms in index)


@lru_cache(maxsize=1024)
def _nothing(shape: tuple[int, ...]) -> Map:
    """The map of a view of all of an array."""
    return _normal(identity_map(len(shape)), shape)


KEPT = 1024      # elements of index arrays that are kept for the next time


def _indices(index: Map, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return _kept_indices(index, shape) if max(shape, default=0) <= KEPT else _new_indices(index, shape)


def _new_indices(index: Map, shape: tuple[int, ...]) -> tuple[Any, ...]:
    grid = np.ogrid[tuple(slice(n) for n in shape)] if shape else []
    return tuple(np.asarray(offset + sum((step * grid[d] for d, step in terms), 0)) for offset, terms in index)


_kept_indices = lru_cache(maxsize=512)(_new_indices)


def places(index: Map, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The source's indices of every element of a result of `shape`, as NumPy's integer arrays."""
    return tuple(np.broadcast_to(i, shape) for i in _indices(index, shape))


@lru_cache(maxsize=4096)
def outside(source: tuple[int, ...], walked: tuple[int, ...], index: Map) -> str:
    """What is wrong with a map from a result of the shape `walked` into a `source`; "" if every element exists."""
    if len(index) != len(source):
        return f"an index map of {len(index)} dimensions into an array of {len(source)}"
    if 0 in walked:
        return ""
    for length, (offset, terms) in zip(source, index, strict=True):
        if any(not 0 <= dim < len(walked) for dim, _ in terms):
            return f"an index map over dimensions that are not there: {terms}"
        ends = [step * (walked[dim] - 1) for dim, step in terms]
        low, high = offset + sum(e for e in ends if e < 0), offset + sum(e for e in ends if e > 0)
        if low < 0 or high >= length:
            return f"an index map reaches from {low} to {high} in a dimension of {length}"
    return ""


def checked(source: tuple[int, ...], walked: tuple[int, ...], index: Map) -> None:
    """Raise `TapeError` unless all that the map points at exists: a kernel reads there without another look."""
    wrong = outside(source, walked, index)
    if wrong:
        raise TapeError(wrong)


def _infer_view(x: Aval, shape: tuple[int, ...], index: Map) -> Aval:
    checked(x.shape, shape, index)
    return Aval(shape, x.dtype)


def _infer_spread(x: Aval, shape: tuple[int, ...], index: Map) -> Aval:
    checked(shape, x.shape, index)
    return Aval(shape, x.dtype)


def _view(x: Any, shape: tuple[int, ...], index: Map) -> Any:
    if not index:
        return np.broadcast_to(x, shape)
    found = x[_indices(index, shape)]
    return found if found.shape == shape else np.broadcast_to(found, shape)


def _spread(x: Any, shape: tuple[int, ...], index: Map) -> Any:
    out = np.zeros(shape, x.dtype)
    at = tuple(np.broadcast_to(i, x.shape) for i in _indices(index, x.shape))
    np.add.at(out, at if at else (), x if at else x.sum())
    return out


def _samples(rng: np.random.Generator) -> list[Any]:
    return [((rng.normal(size=(3, 4)),), {"shape": (4, 3), "index": ((0, ((1, 1),)), (0, ((0, 1),)))}),
            ((rng.normal(size=6),), {"shape": (2,), "index": ((5, ((0, -3),)),)}),
            ((rng.normal(size=3),), {"shape": (2, 3), "index": ((0, ((1, 1),)),)})]


_view_prim: Primitive = linear(
    "view", kind="view", evaluate=_view, cost=0, rearranges=True, shows=True, mapped=True, can_fail=False, virtual=True,
    moves=True, tame=True, separable=True,
    infer=_infer_view,
    vjp=lambda ct, y, x, shape, index: (spread(ct, x.shape, index),),
    samples=_samples)

_spread_prim: Primitive = linear(
    "spread", kind="spread", evaluate=_spread, mapped=True, scatters=True, can_fail=False,
    moves=True, tame=True, separable=True,
    infer=_infer_spread,
    vjp=lambda ct, y, x, shape, index: (view(ct, x.shape, index),),
    samples=lambda rng: [((rng.normal(size=(3, 2)),), {"shape": (4, 5), "index": ((1, ((0, 1),)), (4, ((1, -2),)))})])


def view(x: Any, shape: tuple[int, ...], index: Map) -> Any:
    """``y[i, j, ...] = x[index(i, j, ...)]``; views of views and views of nothing collapse."""
    if not isinstance(x, Value):
        return _view(np.asarray(x), shape, index)
    number = shown(x.builder, x.number, shape, index)
    return x if number == x.number else x.builder.value(number)


def shown(builder: Builder, number: int, shape: tuple[int, ...], index: Map) -> int:
    """As `view`, of a node by its number."""
    node = builder.nodes[number]
    if type(node) is not Node:                       # what it is shows when the template that is being made is used
        return builder.apply(_view_prim, (number,), {"shape": shape, "index": index})
    if node.prim is _view_prim:
        index = compose(index, node.params["index"])
        number = node.inputs[0]
        node = builder.nodes[number]
    if 1 in shape:
        index = _normal(index, shape)
    if node.prim.kind == "concatenate":
        part = _part(builder, node, shape, index)
        if part is not None:
            return part
    if shape == node.aval.shape and index == _nothing(shape):
        return number
    checked(node.aval.shape, shape, index)
    return builder.enter(_view_prim, (number,), {"shape": shape, "index": index}, (("index", index), ("shape", shape)),
                         made(shape, node.aval.dtype))


def _part(builder: Builder, node: Node, shape: tuple[int, ...], index: Map) -> int | None:
    """A view of a concatenation that stays within one part is a view of that part."""
    if 0 in shape:
        return None
    axis, start = node.params["axis"], 0
    offset, terms = index[axis]
    ends = [step * (shape[d] - 1) for d, step in terms]
    low, high = offset + sum(e for e in ends if e < 0), offset + sum(e for e in ends if e > 0)
    for number in node.inputs:
        stop = start + builder.nodes[number].aval.shape[axis]
        if start <= low and high < stop:
            within = (*index[:axis], (offset - start, terms), *index[axis + 1:])
            return shown(builder, number, shape, within)
        start = stop
    return None


def spread(x: Value, shape: tuple[int, ...], index: Map) -> Value:
    """The adjoint of `view`: zeros of `shape`, into which each element of `x` is added where
    the map points. Dimensions that the map ignores are summed first."""
    used = {d for _, terms in index for d, _ in terms}
    ignored = tuple(d for d in range(x.ndim) if d not in used)
    if ignored:
        x = TABLE["reduce_sum"](x, axes=ignored) if any(x.shape[d] != 1 for d in ignored) else squeeze(x, ignored)
        renamed = {d: i for i, d in enumerate(sorted(used))}
        index = tuple((o, tuple((renamed[d], s) for d, s in terms)) for o, terms in index)
    inverse = _inverse(index, x.shape, shape)
    return view(x, shape, inverse) if inverse is not None else _spread_prim(x, shape=shape, index=index)


def _inverse(index: Map, source: tuple[int, ...], result: tuple[int, ...]) -> Map | None:
    """The map back, where `index` reaches every element exactly once (transposes, flips, unit dimensions)."""
    back: dict[int, tuple[int, tuple[Term, ...]]] = {}
    for dim, (offset, terms) in enumerate(index):
        if not terms:
            if result[dim] != 1:
                return None
            continue
        (source_dim, step), *more = terms
        if more or abs(step) != 1 or source_dim in back or source[source_dim] != result[dim]:
            return None
        back[source_dim] = (offset, ((dim, 1),)) if step == 1 else (offset, ((dim, -1),))
    return tuple(back.get(d, (0, ())) for d in range(len(source)))


# --- the views by their usual names --------------------------------------------------------

def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else view(x, shape, stretched(x.shape, shape))


@lru_cache(maxsize=1024)
def stretched(source: tuple[int, ...], shape: tuple[int, ...]) -> Map:
    """The map by which an array of one shape is broadcast to another."""
    lead = len(shape) - len(source)
    return tuple((0, () if n == 1 else ((lead + d, 1),)) for d, n in enumerate(source))


def transpose(x: Any, axes: tuple[int, ...]) -> Any:
    place = {a: i for i, a in enumerate(axes)}
    return view(x, tuple(x.shape[a] for a in axes), tuple((0, ((place[d], 1),)) for d in range(x.ndim)))


def slice_dims(x: Any, slices: tuple[slice | int | None, ...]) -> Any:
    """Basic indexing with one entry for each dimension of `x`, in order, and None for new dimensions."""
    shape: list[int] = []
    index: list[tuple[int, tuple[Term, ...]]] = []
    for entry in slices:
        if entry is None:
            shape.append(1)
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(x.shape[len(index)])
            index.append((start, ((len(shape), step),)))
            shape.append(len(range(start, stop, step)))
        else:
            index.append((int(entry), ()))
    return view(x, tuple(shape), tuple(index))


def squeeze(x: Any, axes: tuple[int, ...]) -> Any:
    return slice_dims(x, tuple(0 if d in axes else slice(None) for d in range(x.ndim)))


def expand_dims(x: Any, axes: tuple[int, ...]) -> Any:
    """New dimensions of length one at `axes` of the result."""
    entries: list[slice | int | None] = []
    for d in range(x.ndim + len(axes)):
        entries.append(None if d in axes else slice(None))
    return slice_dims(x, tuple(entries))


def diagonal(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    """The diagonal of the two axes as last dimension."""
    rows, columns = x.shape[axis1], x.shape[axis2]
    first, second = max(-offset, 0), max(offset, 0)
    length = max(min(rows - first, columns - second), 0)
    others = [d for d in range(x.ndim) if d not in (axis1, axis2)]
    last = len(others)
    places: dict[int, tuple[int, tuple[Term, ...]]] = {d: (0, ((i, 1),)) for i, d in enumerate(others)}
    places[axis1], places[axis2] = (first, ((last, 1),)), (second, ((last, 1),))
    return view(x, (*(x.shape[d] for d in others), length), tuple(places[d] for d in range(x.ndim)))
