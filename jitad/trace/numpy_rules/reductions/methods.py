"""The methods of NumPy's binary ufuncs: ``reduce``, ``accumulate``, ``reduceat`` and ``outer``.

What NumPy computes with dtypes, shapes and errors is asked of NumPy itself, on ones of the same kind.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import concatenate, scatter
from jitad.primitives.scan import loop
from jitad.tape.builder import Builder
from jitad.tape.types import Aval
from jitad.trace.arrays.choice import truth
from jitad.trace.dispatch import ADVICE, as_value, builder_in, call, lift_all, name_of, refused
from jitad.trace.numpy_rules.reductions.logsumexp import logsumexp
from jitad.trace.numpy_rules.reductions.reduce import axes_of, keep, masked, total_dtype, tree
from jitad.trace.numpy_rules.shapes.shape import flatten_end, move_to_end
from jitad.trace.ufuncs import METHODS, apply_ufunc

Absent = np._NoValue
# The functions that are a ufunc's reduction.
_FUNCTIONS: dict[np.ufunc, Any] = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
                                   np.logical_and: np.all, np.logical_or: np.any}
_ASSOCIATIVE = frozenset({np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2,
                          np.hypot, np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or,
                          np.bitwise_xor})
_ORDERED = frozenset({np.subtract, np.true_divide, np.floor_divide})     # from the left, one after the other
_LOGICAL = frozenset({np.logical_and, np.logical_or, np.logical_xor})


def _outer(ufunc: np.ufunc, a: Any, b: Any, dtype: Any = None) -> Any:
    a, b = lift_all(a, b)
    a = a.reshape(a.shape + (1,) * b.ndim)
    return apply_ufunc(ufunc, a, b) if dtype is None else ufunc(a, b, dtype=dtype)


def _ones(x: Any) -> np.ndarray:
    """Ones of the dtype of `x` and of a small shape that is as good as its own."""
    return np.ones(tuple(min(n, 2) for n in x.shape), x.dtype)


def _operands(ufunc: np.ufunc, x: Any, dtype: Any, found: np.dtype[Any]) -> Any:
    """`x` in the dtype in which its elements are combined."""
    if ufunc in (np.add, np.multiply):
        return cast(x, total_dtype(x, dtype, name_of(ufunc).removeprefix("numpy.")))
    return truth(x) if ufunc in _LOGICAL else cast(x, found)


def _reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
            initial: Any = Absent, where: Any = True) -> Any:
    given = {} if initial is Absent or initial is None else {"initial": initial}
    chosen = {} if where is True or where is Absent else {"where": where}
    if ufunc in _FUNCTIONS and not (given and ufunc in _LOGICAL):
        typed = {} if dtype is None or ufunc not in (np.add, np.multiply) else {"dtype": dtype}
        return call(_FUNCTIONS[ufunc], array, axis=axis, keepdims=keepdims, **given, **chosen, **typed)
    x = as_value(builder_in(array, initial, where), array)
    options: dict[str, Any] = {**dict.fromkeys(given, 1), **({"where": np.ones((1,) * x.ndim, bool)} if chosen else {})}
    probe = ufunc.reduce(_ones(x), axis=axis, dtype=dtype, keepdims=keepdims, **options)      # NumPy's own errors
    axes = axes_of(axis, x.ndim)
    x = _operands(ufunc, x, dtype, probe.dtype)
    if chosen:
        if ufunc.identity is None and ufunc not in (np.fmax, np.fmin):
            raise refused(x, f"{name_of(ufunc)}.reduce with where=")
        neutral = initial if ufunc.identity is None else ufunc.identity
        x = masked(x, where, cast(as_value(x.builder, neutral), x.dtype))
    lines = flatten_end(move_to_end(x, axes), len(axes))
    result = _lines(ufunc, lines, cast(as_value(x.builder, initial), x.dtype) if given else None)
    return keep(cast(result, probe.dtype), axes, keepdims, x.ndim)


def _lines(ufunc: np.ufunc, x: Any, start: Any) -> Any:
    """Each last line combined to one element."""
    join = lambda a, b: apply_ufunc(ufunc, a, b)
    n = x.shape[-1]
    if ufunc is np.logaddexp and n:
        total = logsumexp(x, axis=-1)
    elif ufunc in _ASSOCIATIVE:
        total = tree(join, x, 0 if ufunc.identity is None else ufunc.identity)
    elif start is None and n:
        return _folded(join, x[..., 0], x, 1)
    else:
        return _folded(join, np.broadcast_to(start if start is not None else as_value(
            x.builder, np.asarray(ufunc.identity, x.dtype)), x.shape[:-1]), x, 0)
    return total if start is None else join(start, total)


def _folded(join: Callable[[Any, Any], Any], total: Any, x: Any, first: int) -> Any:
    for i in range(first, x.shape[-1]):
        total = join(total, x[..., i])
    return total


def _accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    x = as_value(builder_in(array), array)
    found = ufunc.accumulate(_ones(x), axis=axis, dtype=dtype).dtype        # NumPy's own errors
    if ufunc in (np.add, np.multiply):
        return call(np.cumsum if ufunc is np.add else np.cumprod, x, axis, dtype)
    x = _operands(ufunc, x, dtype, found)
    steps: Any = np.moveaxis(x, axis, 0)
    if len(steps) < 2:
        return x
    rest = _walked(ufunc, steps)
    return cast(np.moveaxis(concatenate(steps[:1], rest, axis=0), 0, axis), found)


def _walked(ufunc: np.ufunc, steps: Any) -> Any:
    """What the elements from the second on come to with all before them, one after the other."""
    body = Builder()
    aval = Aval(steps.shape[1:], steps.dtype)
    joined = cast(apply_ufunc(ufunc, body.input(aval, "total"), body.input(aval, "element")), steps.dtype)
    _, (stack,) = loop(steps.builder, body.finish([joined, joined]), [steps[0]], [(steps, 1, 1)], [], len(steps) - 1)
    return stack


def _reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """Segments from each index to the next; a single element where the next index is not larger."""
    builder: Any = builder_in(array, indices)
    x = as_value(builder, array)
    if not x.ndim:
        raise TypeError("cannot reduceat on a scalar")
    if builder_in(indices) is not None:
        indices = builder.decide_all(as_value(builder, indices))            # shapes depend on them
    starts = np.asarray(indices)
    found = ufunc.reduceat(np.ones(x.shape[axis], x.dtype), starts, dtype=dtype).dtype    # NumPy's own errors
    x = np.moveaxis(_operands(ufunc, x, dtype, found), axis, 0)
    ends = np.append(starts[1:], x.shape[0])
    if ufunc is np.add and (starts < ends).all():
        segment = np.repeat(np.arange(len(starts)), ends - starts)
        rows = x[int(starts[0]):]
        total: Any = scatter(rows, as_value(builder, segment), axes=(0,), shape=(len(starts), *x.shape[1:]))
        total = cast(total, found)
        return np.moveaxis(total, 0, axis)
    parts: list[Any] = [x[i] if i >= j else _lines(ufunc, np.moveaxis(x[i:j], 0, -1), None)
             for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]
    segments: Any = [cast(p, found) for p in parts]
    return np.stack(segments, axis=axis)


def _of_joins(rule: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The rule, for ufuncs by which many elements can be joined."""
    def method(ufunc: np.ufunc, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc not in _ASSOCIATIVE | _ORDERED:
            raise refused(builder_in(inputs, kwargs), f"{name_of(ufunc)}.{name}", ADVICE)
        return rule(ufunc, *inputs, **kwargs)
    return method


METHODS["outer"] = _outer
METHODS.update((name, _of_joins(rule, name)) for name, rule in (
    ("reduce", _reduce), ("accumulate", _accumulate), ("reduceat", _reduceat)))
