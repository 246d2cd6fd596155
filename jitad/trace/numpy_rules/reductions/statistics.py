"""NumPy's covariances, differences along axes, and phases."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in, implements, lift_all
from jitad.trace.numpy_rules.shapes.shape import at_least
from jitad.trace.ufuncs import as_float


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None,
        aweights: Any = None, *, dtype: Any = None) -> Any:
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    builder = builder_in(m, y, fweights, aweights)
    parts = [as_value(builder, p) for p in (m, y) if p is not None]
    if any(p.ndim > 2 for p in parts):
        raise ValueError("m has more than 2 dimensions" if parts[0].ndim > 2 else "y has more than 2 dimensions")
    common = np.result_type(*(p.dtype for p in parts), np.float64) if dtype is None else np.dtype(dtype)
    rows = [at_least(cast(p, common), 2) for p in parts]
    rows = [r.T if not rowvar and r.shape[0] != 1 else r for r in rows]
    x = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=0)
    w = _weights(builder, x.shape[1], fweights, aweights)
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    if w is None:
        total: Any = x.shape[1]
        centred = x - x.mean(axis=1, keepdims=True)
        weighted = centred
        free: Any = total - ddof
    else:
        total = w.sum()
        centred = x - ((x * w).sum(axis=1) / total)[:, None]
        weighted = centred * w
        lost: Any = ddof
        if ddof and aweights is not None:
            aweights = aweights if builder_in(aweights) is not None else np.asarray(aweights)
            lost = ddof * (w * aweights).sum() / total
        free = total - lost
    if builder_in(free) is None:
        free = max(float(free), 0.0)
    result: Any = cast(centred @ weighted.T * np.true_divide(1, free), common)
    return np.squeeze(result)


def _weights(builder: Any, n: int, fweights: Any, aweights: Any) -> Any:
    """The product of both kinds of weights, or None."""
    w: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        given = as_value(builder, given) if builder_in(given) is not None else np.asarray(given, float)
        if given.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if given.shape[0] != n:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if (given < 0).any():                                        # a recorded branch if it is traced
            raise ValueError(f"{name} cannot be negative")
        w = given if w is None else w * given
    return w


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diag(c))
    c = c / deviation[:, None] / deviation[None, :]
    return choose(np.abs(c) > 1, np.sign(c), c)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    builder = builder_in(f, varargs)
    f = as_value(builder, f)
    if f.dtype.kind == "b":
        np.gradient(np.zeros(2, bool))                              # raises NumPy's own error
    f = f if f.dtype.kind == "f" else as_float(f)
    axes = tuple(range(f.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, f.ndim)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 != len(axes) and np.ndim(varargs[0]) > 0):
        raise TypeError("invalid number of arguments")
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if any(f.shape[d] < edge_order + 1 for d in axes):
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
                         "elements are required.")
    found = [_along(f, d, _spacing(builder, f, d, h), edge_order) for d, h in zip(axes, steps, strict=True)]
    return found[0] if len(axes) == 1 else tuple(found)


def _spacing(builder: Any, f: Any, axis: int, h: Any) -> Any:
    """A number, or the differences of coordinates in the direction of `axis`."""
    h = as_value(builder, h) if builder_in(h) is not None else np.asarray(h)
    if h.ndim == 0:
        return h[()]
    if h.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if len(h) != f.shape[axis]:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    h = np.diff(h if h.dtype.kind == "f" else h.astype(np.float64))
    if builder_in(h) is None and h.size and (h == h[0]).all():
        return h[0]
    return h.reshape((-1,) + (1,) * (f.ndim - axis - 1))


def _along(f: Any, axis: int, h: Any, edge_order: int) -> Any:
    """Second-order central differences inside, one-sided ones at both ends."""
    lead = (slice(None),) * axis
    at = lambda *s: f[(*lead, slice(*s))]
    uneven = np.ndim(h) > 0
    if uneven:
        left, right = h[:-1], h[1:]
        inside = (-(right / (left * (left + right))) * at(-2) + ((right - left) / (left * right)) * at(1, -1)
                  + (left / (right * (left + right))) * at(2, None))
    else:
        inside = (at(2, None) - at(-2)) / (2.0 * h)
    if edge_order == 1:
        first = (at(1, 2) - at(1)) / (h[:1] if uneven else h)
        last = (at(-1, None) - at(-2, -1)) / (h[-1:] if uneven else h)
    elif uneven:
        a, b = h[:1], h[1:2]
        first = (-(2.0 * a + b) / (a * (a + b)) * at(1) + (a + b) / (a * b) * at(1, 2) - a / (b * (a + b)) * at(2, 3))
        a, b = h[-2:-1], h[-1:]
        last = (b / (a * (a + b)) * at(-3, -2) - (b + a) / (a * b) * at(-2, -1)
                + (2.0 * b + a) / (b * (a + b)) * at(-1, None))
    else:
        first = -1.5 / h * at(1) + 2.0 / h * at(1, 2) - 0.5 / h * at(2, 3)
        last = 0.5 / h * at(-3, -2) - 2.0 / h * at(-2, -1) + 1.5 / h * at(-1, None)
    joined: Any = np.concatenate([first, inside, last], axis=axis)
    return cast(joined, f.dtype)


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    builder = builder_in(p, discont, period)
    p = as_value(builder, p)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, p.ndim))
    steps = np.diff(p, axis=axis)
    discont = period / 2 if discont is None else discont
    whole = builder_in(period) is None and isinstance(period, (int, np.integer)) and steps.dtype.kind in "iu"
    if whole:
        high, over = divmod(period, 2)
        boundary = over == 0
    else:
        high, boundary = period / 2, True
    low = -high
    wrapped = np.mod(steps - low, period) + low
    if boundary:
        wrapped = choose((wrapped == low) & (steps > 0), high, wrapped)
    correction = choose(np.abs(steps) < discont, 0, wrapped - steps)
    lead = (slice(None),) * axis
    rest = p[(*lead, slice(1, None))] + np.cumsum(correction, axis=axis)
    return np.concatenate([p[(*lead, slice(1))].astype(rest.dtype), rest], axis=axis)


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    x, = lift_all(x)
    return x == np.inf


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    x, = lift_all(x)
    return x == -np.inf
