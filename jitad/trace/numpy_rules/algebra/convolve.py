"""numpy.convolve and numpy.correlate: contractions with windows of the longer sequence, which are views."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.index import concatenate
from jitad.primitives.reduce import contract
from jitad.primitives.view import broadcast_to, expand_dims, slice_dims, spread, view
from jitad.trace.dispatch import as_value, implements, lift_all
from jitad.trace.numpy_rules.shapes.shape import at_least

MODES = ("valid", "same", "full")


def sliding(a: Any, v: Any, mode: str) -> Any:
    """``y[i] = sum_j a[i + j - left] v[j]`` for `a` not shorter than `v`, over the j where there is such an element."""
    n, m = a.shape[0], v.shape[0]
    left = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    right = {"valid": 0, "same": m - m // 2 - 1, "full": m - 1}[mode]
    count = n + left + right - m + 1
    if not left and not right:
        return contract(view(a, (count, m), ((0, ((0, 1), (1, 1))),)), v, "ij,j->i")
    if a.dtype.kind == "f":                           # zeros beyond the ends would make NaN of infinities in `v`
        products = broadcast_to(expand_dims(a, (1,)), (n, m)) * broadcast_to(v, (n, m))
        whole = spread(products, (n + m - 1,), ((m - 1, ((0, 1), (1, -1))),))
        return slice_dims(whole, (slice(m - 1 - left, m - 1 - left + count),))
    zeros = [as_value(a.builder, np.zeros(k, a.dtype)) if k else None for k in (left, right)]
    padded = concatenate(*(p for p in (zeros[0], a, zeros[1]) if p is not None), axis=0)
    return contract(view(padded, (count, m), ((0, ((0, 1), (1, 1))),)), v, "ij,j->i")


def _reversed(x: Any) -> Any:
    return slice_dims(x, (slice(None, None, -1),))


def _operands(function: Any, a: Any, v: Any, mode: str) -> tuple[Any, Any]:
    a, v = (at_least(x, 1) if function is np.convolve else x for x in lift_all(a, v))
    if a.ndim != 1 or v.ndim != 1 or not a.shape[0] or not v.shape[0] or mode not in MODES:
        function(np.zeros(a.shape), np.zeros(v.shape), mode)        # raises NumPy's own message
    dtype = np.result_type(a.dtype, v.dtype)
    return cast(a, dtype), cast(v, dtype)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = _operands(np.convolve, a, v, mode)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return sliding(a, _reversed(v), mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = _operands(np.correlate, a, v, mode)
    return _reversed(sliding(v, a, mode)) if v.shape[0] > a.shape[0] else sliding(a, v, mode)
