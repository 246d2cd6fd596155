"""How elementwise rows are made, with casts and broadcasts of their operands, and the rows that all others need.

A row says once, in one place, how a primitive is evaluated by NumPy, what shape
and dtype it gives, its derivative, its scalar code and the inputs of its tests.
`elementwise` rows get both modes from one list of partial derivatives.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import UnsupportedOperationError
from jitad.primitives.linear import made
from jitad.primitives.view import broadcast_to, shown, stretched
from jitad.tape.builder import Builder, Value
from jitad.tape.expr import Expr, call
from jitad.tape.types import TABLE, Aval, Primitive

SUPPORTED = frozenset("float64 float32 int8 int16 int32 int64 uint8 uint16 uint32 bool".split())
FLOATS = frozenset("fd")


# --- elementwise -----------------------------------------------------------------------------

@lru_cache(maxsize=4096)
def loop_dtypes(ufunc: np.ufunc, dtypes: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """The dtypes in which `ufunc` computes, and that of its result, by NumPy's own rules."""
    resolved = ufunc.resolve_dtypes((*dtypes, None))
    for dtype in resolved:
        if dtype.name not in SUPPORTED:
            raise UnsupportedOperationError(
                f"numpy.{ufunc.__name__} of {', '.join(map(str, dtypes))} computes in {dtype}, "
                "which jitad does not support; convert the argument to float64 or int64")
    return resolved


def _dtype_key(operand: Any) -> Any:
    if isinstance(operand, Value):
        aval = operand.aval
        return {"f": float, "i": int}.get(aval.dtype.kind, aval.dtype) if aval.weak else aval.dtype
    return type(operand) if type(operand) in (int, float) else np.asarray(operand).dtype


class Alignment(NamedTuple):
    """How operands come to one shape and to the dtypes of a row's loop. `maps`: for each operand the map by which it is
    broadcast, or None. `aval` is the result's, if it is known. `still`: values of these dtypes stay as they are."""

    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]
    maps: tuple[Any, ...]
    aval: Aval | None
    still: bool


@lru_cache(maxsize=4096)
def alignment(prim: Primitive, shapes: tuple[tuple[int, ...], ...], keys: tuple[Any, ...]) -> Alignment:
    """For operands of these shapes; keys are dtypes, `float` and `int` for Python's numbers."""
    dtypes = loop_dtypes(prim.ufunc, keys) if prim.ufunc is not None else prim.resolve(*keys)    # type: ignore[misc]
    dtypes = dtypes[:len(keys)]
    shape = _broadcast_shapes(prim, shapes)
    maps = tuple(None if own == shape else stretched(own, shape) for own in shapes)
    known = prim.ufunc is not None or prim is select
    return Alignment(shape, dtypes, maps, prim.infer(*(made(shape, d) for d in dtypes)) if known else None,
                     keys == dtypes and not any(isinstance(k, type) for k in keys) and all(m is None for m in maps))


def aligned(builder: Builder, operands: Sequence[Any], plan: Alignment) -> tuple[int, ...]:
    """The nodes of values and constants, cast and broadcast."""
    nodes, numbers = builder.nodes, []
    for operand, dtype, index in zip(operands, plan.dtypes, plan.maps, strict=True):
        if isinstance(operand, Value):
            number = operand.number
            if nodes[number].aval.dtype is not dtype:
                number = cast(operand, dtype).number
        elif dtype == np.float64 and type(operand) in (float, int):
            number = builder.number(float(operand))
        else:
            number = builder.const(np.asarray(operand, dtype) if type(operand) is int else
                                   np.asarray(operand).astype(dtype)).number    # an int that does not fit is an error
        numbers.append(number if index is None else shown(builder, number, plan.shape, index))
    return tuple(numbers)


def _entered(builder: Builder, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> int:
    """The node of an elementwise row: its inputs all have its shape and its loop's dtypes."""
    plan = alignment(prim, tuple([o.shape if isinstance(o, Value) else np.shape(o) for o in operands]),
                     tuple([_dtype_key(o) for o in operands]))
    for operand in operands:
        if isinstance(operand, Value) and operand.builder is not builder:
            builder.lift(operand)                                               # raises
    inputs = aligned(builder, operands, plan)
    if plan.aval is None or params:
        return builder.apply(prim, inputs, params)
    return builder.enter(prim, inputs, params, (), plan.aval)


def _broadcast_shapes(prim: Primitive, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    if len(set(shapes)) == 1:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        if prim.ufunc is None:
            raise
        prim.ufunc(*(np.broadcast_to(np.float64(1), s) for s in shapes))   # raises NumPy's own message
        raise


def elementwise(name: str, ufunc: np.ufunc, partials: Callable[..., Any] | None = None, *,
                scalar: Callable[..., Expr] | str | None = None, domain: Any = None, **traits: Any) -> Primitive:
    """A row for a NumPy or SciPy ufunc.

    `partials(y, *inputs)` gives the partial derivative for each input (None: no
    derivative); a lone input may give its partial bare. `scalar` maps scalar
    expressions to the scalar expression of the code, by default the operation of
    the row's name. `domain`: intervals from which the tests draw, one for each input or one for
    all; a range stands for integers. `traits`: further fields of the row.
    """
    def infer(*avals: Aval) -> Aval:
        return Aval(avals[0].shape, loop_dtypes(ufunc, tuple(a.dtype for a in avals))[-1])

    code = scalar if callable(scalar) else (lambda *xs: call(scalar or name, *xs))
    intervals: Any = domain or (-2.0, 2.0)
    if isinstance(intervals, range) or not isinstance(intervals[0], (tuple, range)):
        intervals = (intervals,) * ufunc.nin

    def samples(rng: np.random.Generator) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(tuple(draw(rng, i, shape) for i in intervals), {}) for shape in ((2, 3), (5,), ())]

    return pointwise(name, ufunc, infer, partials=partials, scalar=code, ufunc=ufunc, samples=samples, **traits)


def pointwise(name: str, evaluate: Callable[..., Any], infer: Callable[..., Aval], **traits: Any) -> Primitive:
    """A row of which one element of each operand makes one of the result. What is no ufunc has a rule `resolve`."""
    traits.setdefault("can_fail", False)
    return Primitive(name, evaluate, infer, "elementwise", enter=_entered, virtual=True, storable=True,
                     separable=True, **traits)


def draw(rng: np.random.Generator, interval: Any, shape: tuple[int, ...]) -> Any:
    """Random numbers of an interval; integers of a range."""
    if isinstance(interval, range):
        return np.asarray(rng.integers(interval.start, interval.stop, shape))
    low, high = interval
    return np.asarray(rng.uniform(low, high, shape))


def boolean_like(*keys: Any) -> tuple[np.dtype[Any], ...]:
    """Loop dtypes of ``select(condition, a, b)``."""
    result = np.result_type(*(0.0 if k is float else 0 if k is int else k for k in keys[1:]))
    if result.name not in SUPPORTED:
        raise UnsupportedOperationError(f"numpy.where gives {result}, which jitad does not support")
    return (np.dtype(bool), result, result)


def _as_it_is(key: Any) -> tuple[np.dtype[Any], ...]:
    """Loop dtypes of what does not compute."""
    return (np.dtype({float: "f8", int: "i8"}.get(key, key)),)


select: Primitive = pointwise(
    "select",
    evaluate=lambda c, a, b: np.where(c, a, b),
    infer=lambda c, a, b: Aval(c.shape, a.dtype),
    scalar=lambda c, a, b: call("select", c, a, b, dtype=a.dtype),
    resolve=boolean_like, tame=True,
    vjp=lambda ct, y, c, a, b: (None, select(c, ct, 0.0), select(TABLE["logical_not"](c), ct, 0.0)),
    jvp=lambda tangents, y, c, a, b: select(c, *(zeros_like(x) if t is None else t
                                                 for t, x in zip(tangents[1:], (a, b), strict=True))),
    samples=lambda rng: [((rng.uniform(size=s) < 0.5, rng.normal(size=s), rng.normal(size=s)), {})
                         for s in ((2, 3), ())])


_cast = pointwise(
    "cast",
    evaluate=lambda x, dtype: np.asarray(x).astype(dtype),
    infer=lambda x, dtype: Aval(x.shape, np.dtype(dtype)),
    resolve=_as_it_is, tame=True,
    vjp=lambda ct, y, x, dtype: (cast(ct, x.dtype),),
    jvp=lambda tangents, y, x, dtype: cast(tangents[0], y.dtype),
    samples=lambda rng: [((rng.normal(size=4),), {"dtype": "float32"}), ((np.arange(4),), {"dtype": "float64"}),
                         ((rng.normal(size=3),), {"dtype": "int64"})])


def cast(x: Value, dtype: Any) -> Value:
    """`x` in `dtype`; no node when it has it already."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if dtype.kind == "c" and hasattr(x.builder, "as_complex"):
        return x.builder.as_complex(x, dtype)
    if dtype.name not in SUPPORTED:
        raise UnsupportedOperationError(f"dtype {dtype} is not supported; use float64, float32, an integer or bool")
    return _cast(x, dtype=dtype.name)


stop_gradient = pointwise("stop_gradient", evaluate=lambda x: x, infer=lambda x: x, scalar=lambda x: x,
                          resolve=_as_it_is, tame=True, stops=True)


alias = pointwise(
    "alias", evaluate=lambda x, slot: np.array(x), infer=lambda x, slot: x,
    partials=lambda y, x, slot: 1.0, scalar=lambda x, slot: x,
    resolve=_as_it_is, tame=True, given=True,
    samples=lambda rng: [((rng.normal(size=3),), {"slot": 0})])
"""The same value as a node of its own; `slot` keeps two aliases of one value apart. An inner
differentiation is with respect to an alias, so that it does not see other uses of the value."""


def zeros_like(x: Value) -> Value:
    return full(x, 0, x.shape, x.dtype)


def full(like: Value, number: float, shape: tuple[int, ...], dtype: Any) -> Value:
    """A constant of `shape` on the tape of `like`."""
    return broadcast_to(like.builder.const(np.asarray(number, dtype)), shape)
