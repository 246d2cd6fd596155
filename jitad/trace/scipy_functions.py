"""SciPy functions that are written in Python and do not dispatch.

`SUBSTITUTES` maps each to a replacement which the function copies of a recording
see in its place. A replacement calls the original when nothing is traced.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from jitad.primitives.core import cast, stop_gradient
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape import Value
from jitad.trace import numpy_functions  # noqa: F401  (fills the table)
from jitad.trace.dispatch import as_value, builder_in, call, lift_all, noted_line, plain, refused
from jitad.trace.numpy_elementwise import choose
from jitad.trace.numpy_linalg import check_square, det, inv, row, with_columns
from jitad.trace.numpy_reduce import axes_of, fresh, max_, sum_
from jitad.trace.numpy_shape import at_least, drop
from jitad.trace.ufuncs import apply_ufunc, as_float


class Substitutes(dict[Any, Callable[..., Any]]):
    """Replacements by original. Those for modules that are not imported yet wait: their functions cannot be met."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[tuple[str, str], Callable[..., Any]] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        self._enter()
        return super().get(key, default)

    def __missing__(self, key: Any) -> Callable[..., Any]:
        self._enter()
        if key not in self:
            raise KeyError(key)
        return self[key]

    def _enter(self) -> None:
        for module, name in list(self.waiting):
            original = getattr(sys.modules.get(module), name, None)
            if original is not None:
                impl = self.waiting.pop((module, name), None)
                if impl is not None:
                    self[original] = _replacement(original, impl)


SUBSTITUTES = Substitutes()


def substitute(original: Any, name: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as what recorded code sees in place of `original`, or of `name` in that module."""
    def enter(impl: Callable[..., Any]) -> Callable[..., Any]:
        if name:
            SUBSTITUTES.waiting[original, name] = impl
        else:
            SUBSTITUTES[original] = _replacement(original, impl)
        return impl
    return enter


def _replacement(original: Callable[..., Any], impl: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = plain(args), plain(kwargs)
        builder = builder_in(args, kwargs)
        if builder is None:
            return original(*args, **kwargs)
        with noted_line(builder):
            return impl(*args, **kwargs)
    return replacement


# --- scipy.special -----------------------------------------------------------------------------

@substitute("scipy.special", "logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    if return_sign:
        raise refused(builder_in(a, b), "scipy.special.logsumexp with return_sign=True")
    return traced_logsumexp(a, axis, b, keepdims)


def traced_logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """``m + log(sum(b * exp(a - m)))``; terms with ``b == 0`` do not count, whatever their `a`.

    The derivative is the softmax, and 0 where all terms are -inf.
    """
    a = as_float(as_value(builder_in(a, b), a))
    if b is not None:
        a, b = np.broadcast_arrays(a, as_value(a.builder, b))
    axes = axes_of(axis, a.ndim)
    if b is None and any(a.shape[d] == 0 for d in axes):
        return np.log(sum_(a, axes, keepdims=keepdims))             # log of an empty sum, -inf
    top = max_(stop_gradient(a if b is None else choose(b == 0, -np.inf, a)), axes, keepdims=True)
    top = choose(np.isfinite(top), top, 0.0)
    terms = a - top
    terms = np.exp(terms) if b is None else b * np.exp(np.minimum(terms, np.log(np.finfo(a.dtype).max) - 1))
    total = sum_(terms, axes, keepdims=True)
    result = choose(total == 0, -np.inf, np.log(total) + top)
    return fresh(result if keepdims else drop(result, axes))


def _softmax_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return axes_of(axis, ndim)


@substitute("scipy.special", "softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    x = as_float(lift_all(x)[0])
    axes = _softmax_axes(axis, x.ndim)
    e = np.exp(x - stop_gradient(max_(x, axes, keepdims=True)))
    return e / sum_(e, axes, keepdims=True)


@substitute("scipy.special", "log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    x = as_float(lift_all(x)[0])
    axes = _softmax_axes(axis, x.ndim)
    top = stop_gradient(max_(x, axes, keepdims=True))
    shifted = x - choose(np.isfinite(top), top, 0.0)
    return shifted - np.log(sum_(np.exp(shifted), axes, keepdims=True))


@substitute("scipy.special", "polygamma")
def polygamma(n: Any, x: Any) -> Any:
    if builder_in(n) is not None:
        raise refused(builder_in(n), "scipy.special.polygamma with a traced order", "pass the order as a static value")
    x = cast(lift_all(x)[0], np.float64)
    if np.ndim(n) or int(n) != n or n < 0:
        raise refused(x, "scipy.special.polygamma with an order that is no natural number")
    return apply_ufunc(ufuncs.psi, x) if n == 0 else row("polygamma")(x, n=int(n))


# --- scipy.linalg ------------------------------------------------------------------------------

@substitute("scipy.linalg", "solve_triangular")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
                     overwrite_b: bool = False, check_finite: bool = True) -> Any:
    a, b = lift_all(a, b)
    trans = {"N": 0, "T": 1, "C": 1, 2: 1}.get(trans, trans)
    vector = b.ndim == 1
    return with_columns(lambda p, q: row("solve_triangular")(p, q, lower=bool(lower), trans=int(trans),
                                                             unit=bool(unit_diagonal)), check_square(a), b, vector)


@substitute("scipy.linalg", "cholesky")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    a = check_square(lift_all(a)[0])
    if lower:
        return row("cholesky")(a)
    return np.swapaxes(row("cholesky")(np.swapaxes(a, -1, -2)), -1, -2)


@substitute("scipy.linalg", "cho_factor")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The other triangle of the factor, which SciPy leaves undefined, is zero."""
    return cholesky(a, lower), bool(lower)


@substitute("scipy.linalg", "cho_solve")
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    first = solve_triangular(c, b, trans=0 if lower else 1, lower=lower)
    return solve_triangular(c, first, trans=1 if lower else 0, lower=lower)


@substitute("scipy.linalg", "solve")
def solve(a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
          check_finite: bool = True, assume_a: Any = None, transposed: bool = False) -> Any:
    a, b = lift_all(a, b)
    a = check_square(a)
    kind = {None: "general", "gen": "general", "symmetric": "sym", "hermitian": "sym", "her": "sym",
            "positive definite": "pos"}.get(assume_a, assume_a)
    if kind in ("sym", "pos"):                                      # only one triangle is read
        half = np.tril(a) if lower else np.triu(a)
        a = half + np.swapaxes(np.tril(a, -1) if lower else np.triu(a, 1), -1, -2)
    elif kind != "general":
        raise refused(a, f"scipy.linalg.solve with assume_a={assume_a!r}", "leave assume_a out")
    a = np.swapaxes(a, -1, -2) if transposed else a
    return with_columns(lambda p, q: row("solve")(p, q), a, b, b.ndim == 1)


@substitute("scipy.linalg", "inv")
def inv_(a: Any, overwrite_a: bool = False, check_finite: bool = True, **options: Any) -> Any:
    _no_options(a, "scipy.linalg.inv", options)
    return inv(a)


@substitute("scipy.linalg", "det")
def det_(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return det(a)


def _no_options(a: Any, name: str, options: dict[str, Any]) -> None:
    if any(v not in (None, False) for v in options.values()):
        raise refused(builder_in(a), f"{name} with {', '.join(options)}=", "leave the option out")


# --- NumPy functions that do not dispatch on all of their arguments ------------------------------

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
    return result if dtype is None else result.astype(dtype)


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


@substitute(np.isscalar)
def isscalar(element: Any) -> bool:
    """NumPy's function does not dispatch: a traced number is a scalar, an array of no dimensions is not."""
    return isinstance(element, Value) and element.ndim == 0 and not getattr(element, "boxed", False)
