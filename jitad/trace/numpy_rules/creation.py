"""NumPy's functions that make arrays, as recorded code sees them: they give local arrays (see `values.local`)."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import FUNCTIONS, RESULTS, builder_in, call, detached, noted_line, plain, refused, repeated
from jitad.trace.numpy_rules import functions, substitutes  # noqa: F401  (fill the tables)
from jitad.trace.substitutes import SUBSTITUTES
from jitad.trace.values.local import local
from jitad.trace.values.pairs import Complex

MAKERS = """zeros ones full arange linspace logspace geomspace eye identity tri array asarray asanyarray copy
ascontiguousarray asfortranarray zeros_like ones_like full_like diag diagflat indices meshgrid vander fromfunction
concatenate stack hstack vstack dstack column_stack block append tile repeat outer kron tril triu""".split()
KEEP = frozenset({np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require})


def _maker(function: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    """`function` on concrete values, with a local array as result; `traced` if something is traced."""
    @wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        if out is not None and builder_in(plain(args), plain(kwargs)) is not None:
            return RESULTS.into(out, make(*args, **{**kwargs, "out": None}), function.__name__)
        return run(*args, **kwargs) if keeps(args, kwargs) else repeated((make, function), run, args, kwargs)

    def keeps(args: Any, kwargs: Any) -> bool:
        """Whether the result may be the argument, or a view of it, and not an array of its own."""
        return function in KEEP or (function in (np.array, np.meshgrid) and not kwargs.get("copy", True)) or (
            function is np.diag and getattr(args[0] if args else kwargs.get("v"), "ndim", 1) == 2)

    def run(*args: Any, **kwargs: Any) -> Any:
        if args and hasattr(type(args[0]), "jitad_array"):          # data with labels
            args = (args[0].jitad_array, *args[1:])
        given, kwargs = args, plain(kwargs)
        args = plain(args)
        builder = builder_in(args, kwargs)
        if builder is None:
            if function in KEEP and len(args) == 1 and getattr(type(args[0]), "__array_ufunc__", 0) is None:
                return args[0]                           # an array of one object, which answers for itself
            result = function(*args, **kwargs)
            return given[0] if given and result is args[0] and type(given[0]) is not np.ndarray else local(result)
        with noted_line(builder):
            result = traced(*args, **kwargs)
            if not keeps(args, kwargs):
                return local(detached(result, args))
            return given[0] if given and result is args[0] else result
    return make


def _empty(shape: Any = None, dtype: Any = float, order: Any = "C", **options: Any) -> Any:
    """Zeros: what NumPy finds in memory is no value that a tape could keep."""
    return np.zeros(shape, dtype, order)


def _empty_like(prototype: Any, *args: Any, **kwargs: Any) -> Any:
    return np.zeros_like(prototype, *args, **kwargs)


def _fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """``np.fromiter``, the elements of which may be traced."""
    items = plain([item for item, _ in zip(iter, range(count), strict=False)] if count >= 0 else list(iter))
    builder = builder_in(items)
    if builder is None or len(items) < count:
        return local(np.fromiter(items, dtype, count))
    with noted_line(builder):
        return local(SUBSTITUTES_OF_LISTS(items, dtype))


def _array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0,
           ndmax: int = 0, like: Any = None) -> Any:
    """``np.array`` of a traced value: a copy unless told otherwise."""
    if ndmax:
        raise refused(builder_in(object), "numpy.array with ndmax=", "leave the option out")
    if not isinstance(object, Value):
        return SUBSTITUTES_OF_LISTS(object, dtype, ndmin=ndmin)
    array: Any = object if object.ndim else _zero_dimensional(object)
    same = dtype is None or np.dtype(dtype) == array.dtype
    if not same:
        array = array.astype(dtype)
    elif copy:
        array = array.detached()
    else:
        array = _laid_out(array, order, copy)
    return array[(None,) * (ndmin - array.ndim)] if ndmin > array.ndim else array


def _zero_dimensional(number: Any) -> Any:
    """A number as an array of no dimensions."""
    if number.boxed:
        return number
    if isinstance(number, Complex):
        return Complex(_zero_dimensional(number.re), _zero_dimensional(number.im))
    return number.alone()


def _laid_out(array: Any, order: Any, copy: Any) -> Any:
    """The array itself, or a copy where NumPy makes one for the order that is asked for."""
    if isinstance(array, Complex):
        parts = array.re.laid_out(order), array.im.laid_out(order)
        return array if parts[0] is array.re else Complex(*parts)
    found = array.laid_out(order)
    if copy is False and found is not array:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return found


def _asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None,
             like: Any = None) -> Any:
    return _array(a, dtype, copy=copy, order=order)


def _ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return _array(a, dtype, copy=None, order="C", ndmin=1)


def _asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return _array(a, dtype, copy=None, order="F")


SUBSTITUTES_OF_LISTS: Callable[..., Any] = SUBSTITUTES[np.array]
_TRACED: dict[Any, Callable[..., Any]] = {np.array: _array, np.asarray: _asarray, np.asanyarray: _asarray,
                                          np.ascontiguousarray: _ascontiguousarray, np.asfortranarray: _asfortranarray}


def _fill() -> None:
    for name in MAKERS:
        function = getattr(np, name)
        rule = _TRACED.get(function) or SUBSTITUTES.get(function) or (
            partial(call, function) if function in FUNCTIONS else function)
        SUBSTITUTES[function] = _maker(function, rule)
    SUBSTITUTES[np.fromiter] = wraps(np.fromiter)(_fromiter)
    SUBSTITUTES[np.empty] = wraps(np.empty)(_maker(_empty, _empty))
    SUBSTITUTES[np.empty_like] = wraps(np.empty_like)(_maker(_empty_like, _empty_like))


_fill()
