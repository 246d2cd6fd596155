"""The logarithm of a sum of exponentials: ``scipy.special.logsumexp``, ``np.logaddexp.reduce``."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import stop_gradient
from jitad.primitives.view import expand_dims, view
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in
from jitad.trace.numpy_rules.reductions.reduce import axes_of, fresh, keep, max_, sum_
from jitad.trace.ufuncs import as_float


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``m + log(sum(b * exp(a - m)))``; terms with ``b == 0`` do not count, whatever their `a`. With `return_sign`
    also the sign of the sum, and the logarithm of its absolute value.

    The derivative is the softmax, and 0 where all terms are -inf.
    """
    a = as_float(as_value(builder_in(a, b), a))
    if b is not None:
        a, b = np.broadcast_arrays(a, as_value(a.builder, b))
    if not a.ndim:                                                         # as SciPy takes a number
        a, b = expand_dims(a, (0,)), None if b is None else expand_dims(b, (0,))
    axes = axes_of(axis, a.ndim)
    if any(a.shape[d] == 0 for d in axes):
        empty = np.log(sum_(a, axes, keepdims=keepdims))                # log of an empty sum, -inf
        return (empty, np.zeros(empty.shape)) if return_sign else empty
    top = max_(stop_gradient(a if b is None else choose(b == 0, -np.inf, a)), axes)
    top = choose(np.isfinite(top), top, 0.0)
    kept = [d for d in range(a.ndim) if d not in axes]
    terms = a - (view(top, a.shape, tuple((0, ((d, 1),)) for d in kept)) if kept else top)
    terms = np.exp(terms) if b is None else b * np.exp(np.minimum(terms, np.log(np.finfo(a.dtype).max) - 1))
    total = sum_(terms, axes)
    sign, size = (np.sign(total), np.abs(total)) if return_sign else (None, total)
    result = choose(size == 0, -np.inf, np.log(size) + top)
    found = [keep(fresh(r), axes, keepdims, a.ndim) for r in ((result, sign) if return_sign else (result,))]
    return tuple(found) if return_sign else found[0]
