"""NumPy's and SciPy's ufuncs on traced values: rows of the table, a few compositions, and their methods."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.core import aligned, alignment, cast, select
from jitad.primitives.special.rows import SEVERAL
from jitad.tape.builder import NO_PARAMS, Value
from jitad.tape.types import TABLE, Primitive
from jitad.trace.dispatch import (
    COMPLEX,
    RESULTS,
    builder_in,
    call,
    checked,
    complex_in,
    detached,
    lift_all,
    name_of,
    plain,
    refused,
)
from jitad.trace.reasons import advice

_ROWS: dict[np.ufunc, Primitive] = {}
_entered: set[str] = set()                       # the names of the rows that were looked through
COMPOSED: dict[np.ufunc, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}      # of ufuncs, by name: ``METHODS["reduce"](ufunc, x, ...)``


def composed(*ufuncs: np.ufunc) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as the meaning of `ufuncs` that are no primitives."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED.update(dict.fromkeys(ufuncs, impl))
        return impl
    return enter


def row_of(ufunc: np.ufunc) -> Primitive | None:
    row = _ROWS.get(ufunc)
    if row is None and len(TABLE) > len(_entered):
        _ROWS.update((p.ufunc, p) for p in TABLE.values() if p.ufunc is not None)
        _entered.update(TABLE)
        row = _ROWS.get(ufunc)
    return row


def usual(x: Any, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    """``ufunc(*operands)``, of which the tracer `x` is one, for arrays and numbers of the usual kinds, without the
    questions that others raise. None if it is something else."""
    row, builder, kind = row_of(ufunc), x.builder, type(x)
    if row is None or ufunc is np.power or ufunc in COMPOSED or kind is not builder.wrap:
        return None
    nodes, shapes, keys, numbers, strong = builder.nodes, [], [], [], False
    for operand in operands:
        if type(operand) is kind:
            if operand.builder is not builder:
                return None
            number = operand.fixed if operand.storage is None else operand.number
            aval = nodes[number].aval
            shapes.append(aval.shape)
            keys.append(_WEAK.get(aval.dtype.kind, aval.dtype) if operand.weak else aval.dtype)
            strong = strong or not operand.weak
            numbers.append(number)
        elif type(operand) is float or type(operand) is int:
            shapes.append(())
            keys.append(type(operand))
        elif type(operand) is np.ndarray or type(operand) is np.float64:
            shapes.append(operand.shape)
            keys.append(operand.dtype)
            strong = True
        else:
            return None
    if not strong or (ufunc is np.square and nodes[numbers[0]].prim.ufunc is np.hypot):
        return None
    try:
        plan = alignment(row, tuple(shapes), tuple(keys))
        still = plan.still and len(numbers) == len(keys)
        inputs = tuple(numbers) if still else aligned(builder, operands, plan)
    except Exception:
        return None                                                 # the long way raises it, and says where
    return kind(builder, builder.enter(row, inputs, NO_PARAMS, (), plan.aval))


_WEAK: dict[str, Any] = {"f": float, "i": int}


def apply_ufunc(ufunc: np.ufunc, *operands: Any) -> Any:
    """``ufunc(*operands)``, at least one operand being traced."""
    operands = plain(operands)
    if complex_in(*operands):
        return COMPLEX.ufunc(ufunc, *operands)
    if ufunc in COMPOSED:
        return COMPOSED[ufunc](*operands)
    row, builder = row_of(ufunc), builder_in(operands)
    if row is None:
        raise refused(builder, name_of(ufunc), advice(name_of(ufunc)))
    operands = tuple(_operand(builder, o) for o in operands)
    if all(is_weak(o) for o in operands):
        operands = tuple(strong(o) for o in operands)
    if ufunc is np.square and (modulus := _modulus(operands[0])) is not None:
        return modulus
    if ufunc is np.power:
        _check_power(builder, *operands)
        return _power(row, *operands)
    return row(*operands)


def _power(row: Primitive, base: Any, exponent: Any) -> Any:
    """NumPy takes the root of an array to the power 0.5, which at -inf and -0.0 is another number."""
    result = row(base, exponent)
    arrays = any(isinstance(x, np.ndarray) or (isinstance(x, Value) and (x.ndim or getattr(x, "boxed", False)))
                 for x in (base, exponent))
    base, exponent = (x if isinstance(x, Value) else np.asarray(x) for x in (base, exponent))
    if not arrays or exponent.ndim or result.dtype.kind != "f":
        return result
    half = exponent.node.constant if isinstance(exponent, Value) else exponent
    if half is not None:
        return TABLE["sqrt"](cast(result.builder.lift(base), result.dtype)) if half == 0.5 else result
    other = TABLE["logical_and"](TABLE["eq"](exponent, 0.5), TABLE["le"](base, 0.0))
    with result.builder.plain():
        factor = select(other, select(TABLE["lt"](base, 0.0), np.nan, TABLE["copysign"](1.0, base)), 1.0)
        factor = cast(TABLE["stop_gradient"](factor), result.dtype)
    return result * factor


def _modulus(x: Any) -> Any:
    """``a * a + b * b`` where `x` is ``hypot(a, b)``, which is infinite where one of them is, be the other NaN: no
    root, and no quotient in the derivative."""
    if not isinstance(x, Value) or x.node.prim.ufunc is not np.hypot:
        return None
    a, b = (x.builder.value(i) for i in x.node.inputs)
    total = a * a + b * b
    infinite = TABLE["logical_or"](TABLE["isinf"](a), TABLE["isinf"](b))
    return select(TABLE["logical_and"](infinite, TABLE["isnan"](total)), np.inf, total)


def _operand(builder: Any, operand: Any) -> Any:
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, (list, tuple)) and builder_in(operand):
        return lift_all(operand)[0]
    return checked(builder, operand)


def is_weak(x: Any) -> bool:
    """Whether `x` is a Python number, or stands for one."""
    return x.aval.weak if isinstance(x, Value) else type(x) in (int, float, bool, complex)


def strong(x: Any) -> Any:
    """`x` as NumPy's number of the same value."""
    if not isinstance(x, Value):
        return np.asarray(x)
    value: Any = x.builder.value(x.number)
    value.weak = False
    return value


def _check_power(builder: Any, base: Any, exponent: Any) -> None:
    """Integers to negative integer powers: NumPy's error, which depends on the exponents' values."""
    if _kind(base) not in "iub" or _kind(exponent) != "i":
        return
    known = exponent.node.constant if isinstance(exponent, Value) else np.asarray(exponent)
    if known is None:
        raise refused(builder, "an integer to the power of a traced integer",
                      "make one of them float64, e.g. 2.0 ** k")
    if np.any(known < 0):
        raise ValueError("Integers to negative integer powers are not allowed.")


def _kind(operand: Any) -> str:
    return operand.dtype.kind if isinstance(operand, Value) else np.asarray(operand).dtype.kind


_USUAL: dict[str, Any] = {"where": True, "casting": "same_kind", "order": "K", "subok": True,
                          "keepdims": False}     # as if left out


def array_ufunc(ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """The meaning of ``__array_ufunc__``."""
    out = kwargs.pop("out", None) or ()
    inputs, kwargs = plain(inputs), plain(kwargs)
    name = name_of(ufunc) + ("" if method == "__call__" else f".{method}")
    if method == "at":
        return METHODS["at"](ufunc, *inputs)
    if any(o is not None for o in out):
        return _into(out, ufunc, method, name, inputs, kwargs)
    if method == "__call__":
        return _call(ufunc, name, inputs, kwargs)
    rule = METHODS.get(method)
    if rule is None or ufunc.nin != 2 or ufunc.signature is not None:
        raise refused(builder_in(inputs, kwargs), name)
    return detached(rule(ufunc, *inputs, **kwargs), inputs)


def _call(ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    builder = builder_in(inputs, kwargs)
    if kwargs.get("dtype") is not None:
        inputs = tuple(_cast_inputs(ufunc, inputs, np.dtype(kwargs.pop("dtype"))))
    kwargs.pop("dtype", None)
    kwargs = {k: v for k, v in kwargs.items() if k not in _USUAL or v is not _USUAL[k]}
    masked, mask = "where" in kwargs, kwargs.pop("where", True)
    if kwargs:
        raise refused(builder, f"{name} with {', '.join(kwargs)}=", "leave the option out")
    result = apply_ufunc(ufunc, *inputs)
    if not masked:
        return result
    found = tuple(_where(mask, r, builder, name) for r in (result if isinstance(result, tuple) else (result,)))
    return found if isinstance(result, tuple) else found[0]


def _where(mask: Any, result: Any, builder: Any, name: str) -> Any:
    """A result where ``where=`` says so; NaN elsewhere, of which NumPy leaves undefined what it is."""
    if result.dtype.kind != "f":
        raise refused(builder, f"{name} with where= and no out=, of which NumPy leaves the rest undefined,",
                      "say out=np.zeros(...), or use np.where")
    return call(np.where, mask, result, np.nan)


def _into(out: tuple[Any, ...], ufunc: np.ufunc, method: str, name: str, inputs: tuple[Any, ...],
          kwargs: dict[str, Any]) -> Any:
    """The results go into arrays that were given for them, where ``where=`` says so."""
    mask = kwargs.pop("where", True) if method == "__call__" else True
    if builder_in(inputs, kwargs) is None:
        results = getattr(ufunc, method)(*inputs, **kwargs)
    else:
        results = array_ufunc(ufunc, method, *inputs, **kwargs)
    every = results if isinstance(results, tuple) else (results,)
    stored = []
    for target, result in zip(out, every, strict=True):
        whole = target is not None and method == "__call__" and mask is True and isinstance(target, Value)
        if target is None:
            stored.append(result)
        elif whole and target.shape == result.shape:
            target.assign(ufunc, result, inputs)                # type: ignore[attr-defined]  # with NumPy's messages
            stored.append(target)
        else:
            stored.append(RESULTS.into(target, result, name, mask))
    return tuple(stored) if isinstance(results, tuple) else stored[0]


def _cast_inputs(ufunc: np.ufunc, inputs: Any, dtype: np.dtype) -> list[Any]:
    inputs = lift_all(*inputs)
    loop = ufunc.resolve_dtypes((*(x.dtype for x in inputs), *(None,) * ufunc.nout),
                                signature=(*(None,) * ufunc.nin, *(dtype,) * ufunc.nout), casting="same_kind")
    return [cast(x, d) for x, d in zip(inputs, loop, strict=False)]


@composed(np.divmod)
def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    return apply_ufunc(np.floor_divide, a, b), apply_ufunc(np.remainder, a, b)


@composed(np.degrees)
def _degrees(x: Any) -> Any:
    return apply_ufunc(np.rad2deg, x)


@composed(np.radians)
def _radians(x: Any) -> Any:
    return apply_ufunc(np.deg2rad, x)


@composed(np.modf)
def _modf(x: Any) -> tuple[Any, Any]:
    x = computed_as(np.modf, x)
    fraction = call(np.where, np.isinf(x), np.copysign(0.0, x), np.fmod(x, 1.0))
    return (fraction if fraction.ndim else fraction.builder.value(fraction.number)), np.trunc(x)


@composed(np.fabs)
def _fabs(x: Any) -> Any:
    return np.absolute(computed_as(np.fabs, x))


@composed(np.conjugate)
def _conjugate(x: Any) -> Any:
    return np.positive(x) if x.dtype.kind != "b" else x


def _several(rows: list[Primitive]) -> Callable[..., tuple[Any, ...]]:
    """The rule of a function with several results."""
    return lambda *operands: tuple(row(*operands) for row in rows)


for _function, _rows in SEVERAL.items():
    COMPOSED[_function] = _several(_rows)


def _gufunc(signature: str) -> Callable[..., Any]:
    def rule(a: Any, b: Any) -> Any:
        a, b = lift_all(a, b)
        left, rest = signature.split(",")
        right, out = rest.split("->")
        return call(np.einsum, f"...{left},...{right}->...{out}", a, b)
    return rule


for _name, _signature in (("vecdot", "n,n->"), ("matvec", "mn,n->m"), ("vecmat", "n,nm->m")):
    if hasattr(np, _name):                                           # NumPy 2.2 and later
        COMPOSED[getattr(np, _name)] = _gufunc(_signature)


def computed_as(ufunc: np.ufunc, x: Any) -> Any:
    """`x` in the dtype in which a function of one argument computes."""
    dtype = ufunc.resolve_dtypes((x.dtype, *(None,) * (ufunc.nargs - 1)))[0]
    if dtype == np.float16:
        raise refused(x, f"{name_of(ufunc)} of {x.dtype}, which computes in float16", "use x.astype(float)")
    return cast(x, dtype)


def as_float(x: Any) -> Any:
    """`x` in the floating dtype in which NumPy's float functions compute."""
    if x.dtype.kind in "fc":
        return x
    return cast(x, np.float64)


__all__ = ["apply_ufunc", "array_ufunc", "as_float", "composed", "row_of"]
