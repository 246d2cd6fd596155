"""Gather and scatter by integer arrays, reshape, concatenate, triangles."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import Primitive, linear
from jitad.primitives.view import expand_dims, identity_map, slice_dims, squeeze
from jitad.tape import Aval, Value


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
    "gather", kind="gather", evaluate=_gather, infer=_gather_infer,
    vjp=lambda ct, y, x, *index, axes: (scatter(ct, *index, axes=axes, shape=x.shape), *(None for _ in index)),
    samples=lambda rng: [((rng.normal(size=(3, 4)), np.array([2, 0, 2])), {"axes": (0,)}),
                         ((rng.normal(size=(3, 4, 2)), np.array([1, -1]), np.array([0, 3])), {"axes": (2, 1)})])
"""`x` indexed along `axes` by integer arrays of one shape, whose dimensions come first in the result."""

scatter: Primitive = linear(
    "scatter", kind="scatter", evaluate=_scatter,
    infer=lambda x, *index, axes, shape: Aval(shape, x.dtype),
    vjp=lambda ct, y, x, *index, axes, shape: (gather(ct, *index, axes=axes), *(None for _ in index)),
    samples=lambda rng: [((rng.normal(size=(3, 4)), np.array([2, 0, 2])), {"axes": (1,), "shape": (4, 5)})])
"""The adjoint of `gather`: zeros of `shape`, into which each element of `x` is added."""


_reshape = linear(
    "reshape", kind="reshape", evaluate=lambda x, shape: np.reshape(x, shape),
    infer=lambda x, shape: Aval(shape, x.dtype),
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
    from jitad.primitives.core import zeros_like

    return concatenate(*(zeros_like(x) if t is None else t for t, x in zip(tangents, parts, strict=True)), axis=axis)


concatenate = Primitive(
    "concatenate", kind="concatenate", evaluate=lambda *parts, axis: np.concatenate(parts, axis),
    infer=_concat_infer, vjp=_concat_vjp, jvp=_concat_jvp,
    samples=lambda rng: [((rng.normal(size=(2, 3)), rng.normal(size=(2, 1))), {"axis": 1})])
"""Parts of one dtype joined along `axis`."""


def _triangle(name: str, function: Any) -> Primitive:
    prim = linear(name, kind="triangle", evaluate=lambda x, k: function(x, k),
                  infer=lambda x, k: Aval(x.shape, x.dtype),
                  vjp=lambda ct, y, x, k: (prim(ct, k=k),), lower=name == "tril",
                  samples=lambda rng: [((rng.normal(size=(3, 4)),), {"k": 1}),
                                       ((rng.normal(size=(2, 3, 3)),), {"k": -1})])
    return prim


tril = _triangle("tril", np.tril)
triu = _triangle("triu", np.triu)

__all__ = ["concatenate", "gather", "identity_map", "reshape", "scatter", "tril", "triu"]
