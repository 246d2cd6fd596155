"""NumPy functions that do not dispatch on all of their arguments."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, call, refused
from jitad.trace.impure import Impure
from jitad.trace.numpy_rules import functions as numpy_functions  # noqa: F401  (fills the table)
from jitad.trace.numpy_rules.reductions.reduce import fresh
from jitad.trace.numpy_rules.shapes.shape import at_least
from jitad.trace.recorder import current
from jitad.trace.substitutes import substitute
from jitad.trace.where import user_line


@substitute(np.take)
def take(*args: Any, **kwargs: Any) -> Any:
    return call(np.take, *args, **kwargs)


@substitute(np.full_like)
def full_like(*args: Any, **kwargs: Any) -> Any:
    return call(np.full_like, *args, **kwargs)


@substitute(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None,
         like: Any = None) -> Any:
    value = as_value(builder_in(shape, fill_value), fill_value)
    result = fresh(np.broadcast_to(value, shape))
    result = result if dtype is None else result.astype(dtype)
    return result.alone() if getattr(result, "is_number", False) else result


@substitute(np.array)
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0,
          like: Any = None) -> Any:
    """Lists of traced values; an array that is traced itself stays what `Tracer.__array__` says."""
    if isinstance(object, Value):
        return np.asarray(object)
    result = at_least(as_value(builder_in(object), object), ndmin)
    return result if dtype is None else result.astype(dtype)


@substitute(np.asarray)
def asarray(a: Any, dtype: Any = None, order: str | None = None, *, device: Any = None, copy: Any = None,
            like: Any = None) -> Any:
    return array(a, dtype)


if _row_stack := vars(np).get("row_stack"):                          # until NumPy drops it
    @substitute(_row_stack)
    def row_stack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
        return call(np.vstack, tup, dtype=dtype, casting=casting)


@substitute(np.isscalar)
def isscalar(element: Any) -> bool:
    """NumPy's function does not dispatch: a traced number is a scalar, an array of no dimensions is not."""
    return isinstance(element, Value) and element.ndim == 0 and not getattr(element, "boxed", False)


# --- what lets NumPy raise because of values, which compiled code does not ---------------------------

def _refuse(what: str) -> None:
    raise refused(current(), f"{what}, by which NumPy raises because of values,",
                  "test the values instead, for example by np.isfinite, and raise yourself")


def view_errstate(**ways: Any) -> Any:
    """``np.errstate`` in recorded code."""
    for kind, way in ways.items():
        if way in ("raise", "call", "log"):
            _refuse(f"np.errstate({kind}={way!r})")
    return np.errstate(**ways)


@substitute(warnings.simplefilter, always=True)
def simplefilter(action: Any, *args: Any, **options: Any) -> None:
    if action == "error":
        _refuse("warnings.simplefilter('error')")
    warnings.simplefilter(action, *args, **options)


@substitute(warnings.filterwarnings, always=True)
def filterwarnings(action: Any, *args: Any, **options: Any) -> None:
    if action == "error":
        _refuse("warnings.filterwarnings('error')")
    warnings.filterwarnings(action, *args, **options)


@substitute(warnings.catch_warnings, always=True)
def catch_warnings(*args: Any, **options: Any) -> Any:
    if options.get("action") == "error":
        _refuse("warnings.catch_warnings(action='error')")
    if options.get("record"):
        Impure("warnings.catch_warnings(record=True)", "asks for warnings, of which compiled code gives none",
               user_line)()
    return warnings.catch_warnings(*args, **options)
