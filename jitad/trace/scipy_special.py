"""Functions of scipy.special that SciPy writes in Python."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast, stop_gradient
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.trace import numpy_functions  # noqa: F401  (fills the table)
from jitad.trace.dispatch import as_value, builder_in, lift_all, refused
from jitad.trace.numpy_elementwise import choose
from jitad.trace.numpy_linalg import row
from jitad.trace.numpy_reduce import axes_of, fresh, max_, sum_
from jitad.trace.numpy_shape import drop
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import apply_ufunc, as_float


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
