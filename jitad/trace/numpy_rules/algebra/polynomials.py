"""NumPy's functions on polynomials that are arrays of coefficients, the highest power first."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.core import cast
from jitad.tape.builder import Value
from jitad.trace.dispatch import SOMETIMES, as_value, builder_in, call, implements, lift_all, refused
from jitad.trace.numpy_rules.algebra.factors import eigen_values
from jitad.trace.numpy_rules.shapes.shape import at_least


def _coefficients(*polynomials: Any) -> list[Any]:
    """Arrays of coefficients on the tape; a ``poly1d`` by its own."""
    given = [p.coeffs if isinstance(p, np.poly1d) else p for p in polynomials]
    builder = builder_in(*given)
    return [at_least(as_value(builder, p), 1) for p in given]


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Horner's rule."""
    if isinstance(x, np.poly1d):
        raise refused(builder_in(p, x.coeffs), "numpy.polyval at a polynomial")
    if isinstance(p, np.poly1d):
        p = p.coeffs
    builder = builder_in(p, x)
    p, x = as_value(builder, p), as_value(builder, x)
    if isinstance(p, Value) and p.node.constant is not None:
        p = p.node.constant
    y: Any = np.zeros(x.shape, x.dtype)
    for coefficient in p:
        y = y * x + coefficient
    return y


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    return _sum(a1, a2, np.add)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    return _sum(a1, a2, np.subtract)


def _sum(a1: Any, a2: Any, ufunc: np.ufunc) -> Any:
    a1, a2 = _coefficients(a1, a2)
    longest = max(len(a1), len(a2))
    return ufunc(*(np.concatenate([np.zeros(longest - len(a), a.dtype), a]) for a in (a1, a2)))


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    a1, a2 = (call(np.trim_zeros, a, "f") if a.size else a for a in _coefficients(a1, a2))     # as poly1d does
    return call(np.convolve, *(np.zeros(1, a.dtype) if not a.size else a for a in (a1, a2)))


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    u, v = (a + 0.0 for a in _coefficients(u, v))
    dtype = np.result_type(u.dtype, v.dtype)
    m, n = len(u) - 1, len(v) - 1
    scale = 1.0 / v[0]
    quotient: list[Any] = []
    rest: Any = cast(u, dtype)
    for k in range(m - n + 1):
        d = scale * rest[k]
        quotient.append(d)
        rest = np.concatenate([rest[:k], rest[k:k + n + 1] - d * v, rest[k + n + 1:]])
    q: Any = np.stack(quotient) if quotient else as_value(u.builder, np.zeros(1, dtype))
    while len(rest) > 1 and np.allclose(rest[0], 0, rtol=1e-14):    # recorded branches
        rest = rest[1:]
    return cast(q, dtype), rest


def _one_dimension(function: Any, p: Any) -> None:
    if not isinstance(p, np.poly1d) and np.ndim(p) != 1:
        function(np.zeros(np.shape(p)))                             # NumPy's own errors
        raise refused(builder_in(p), f"numpy.{function.__name__} of an array that has not one dimension")


SOMETIMES[np.polyint] = SOMETIMES[np.polyder] = lambda p, m=1, *constants, **options: m == 0


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    _one_dimension(np.polyint, p)
    p, *rest = _coefficients(p, *(() if k is None else (k,)))
    constants = rest[0] if rest else np.zeros(m)
    if len(constants) == 1 and m > 1:
        constants = constants[0] * np.ones(m)
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        p = np.concatenate([p / np.arange(len(p), 0, -1), constants[i:i + 1]])
    return p


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    _one_dimension(np.polyder, p)
    p, = _coefficients(p)
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    zeros = at_least(lift_all(seq_of_zeros)[0], 1)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.size:
        raise refused(zeros, "numpy.poly of a matrix", "pass its eigenvalues")
    if zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not zeros.size:
        return 1.0
    a: Any = as_value(zeros.builder, np.ones(1, zeros.dtype))
    nothing = np.zeros(1, zeros.dtype)
    for zero in zeros:
        a = np.concatenate([a, nothing]) - zero * np.concatenate([nothing, a])
    return a


@implements(np.roots)
def roots(p: Any) -> Any:
    """The eigenvalues of the companion matrix, as NumPy has them; which coefficients at the ends are 0 are branches."""
    p = at_least(lift_all(p)[0], 1)
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    first, last = 0, len(p)
    while first < last and p[first] == 0:
        first += 1
    while last > first and p[last - 1] == 0:
        last -= 1
    if first == last:
        return np.array([])
    p, zeros = p[first:last] + 0.0, len(p) - last
    n = len(p) - 1
    if not n:
        return np.zeros(zeros)
    companion = np.concatenate([(-p[1:] / p[0])[None], np.eye(n)[:-1]], axis=0)
    found = eigen_values(rows.eig(companion)) if isinstance(companion, Value) else call(np.linalg.eigvals, companion)
    return np.concatenate([found, np.zeros(zeros)]) if zeros else found


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    x, = lift_all(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = len(x) if N is None else int(N)
    x = cast(x, np.promote_types(x.dtype, int))
    if count <= 0:
        return np.zeros((len(x), 0), x.dtype)
    columns: list[Any] = [as_value(x.builder, np.ones(len(x), x.dtype))]
    while len(columns) < count:
        columns.append(columns[-1] * x if len(columns) > 1 else x)
    return np.stack(columns if increasing else columns[::-1], axis=1)


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    builder, order = builder_in(x, y, w), int(deg) + 1
    x, y = (as_value(builder, v) + 0.0 for v in (x, y))
    if order < 1:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or len(x) != len(y):
        raise TypeError("expected 1D vector for x" if x.ndim != 1 else "expected non-empty vector for x" if not x.size
                        else "expected 1D or 2D array for y" if y.ndim not in (1, 2)
                        else "expected x and y to have same length")
    left, right = vander(x, order), y
    if w is not None:
        w = as_value(builder, w) + 0.0
        if w.ndim != 1 or len(w) != len(y):
            raise TypeError("expected a 1-d array for weights" if w.ndim != 1
                            else "expected w and y to have the same length")
        left, right = left * w[:, None], right * (w[:, None] if y.ndim == 2 else w)
    scale = np.sqrt((left * left).sum(axis=0))
    left = left / scale
    rcond = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    found, residuals, rank, singular = call(np.linalg.lstsq, left, right, rcond)
    c = (found.T / scale).T
    if full:
        return c, residuals, rank, singular, rcond
    if not cov:
        return c
    base = np.linalg.inv(left.T @ left) / np.outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    else:
        if len(x) <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (len(x) - order)
    return c, base * factor if y.ndim == 1 else base[:, :, None] * factor


# --- those of numpy.polynomial that dispatch; the others run as they are --------------------------------

def _at_points(c: Any, x: Any, tensor: bool) -> Any:
    """A polynomial whose coefficients are along the first axis of `c`, the lowest power first, at `x`."""
    c = c.reshape(c.shape + (1,) * x.ndim) if tensor else c
    value = c[-1] + x * 0
    for i in range(2, len(c) + 1):
        value = c[-i] + value * x
    return value


@implements(np.polynomial.polynomial.polyval2d)
def polyval2d(x: Any, y: Any, c: Any) -> Any:
    x, y, c = lift_all(x, y, c)
    if x.shape != y.shape:
        raise ValueError("x, y are incompatible")
    return _at_points(_at_points(c, x, True), y, False)


@implements(np.polynomial.polynomial.polygrid2d)
def polygrid2d(x: Any, y: Any, c: Any) -> Any:
    x, y, c = lift_all(x, y, c)
    return _at_points(_at_points(c, x, True), y, True)
