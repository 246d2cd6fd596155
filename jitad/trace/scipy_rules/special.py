"""Functions of scipy.special that SciPy writes in Python."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast, stop_gradient
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.primitives.view import view
from jitad.tape.builder import Value
from jitad.trace.dispatch import as_value, builder_in, lift_all, refused
from jitad.trace.numpy_rules import functions as numpy_functions  # noqa: F401  (fills the table)
from jitad.trace.numpy_rules.algebra.linalg import row
from jitad.trace.numpy_rules.elements.elementwise import choose
from jitad.trace.numpy_rules.reductions.reduce import axes_of, fresh, keep, max_, sum_
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import apply_ufunc, as_float


@substitute("scipy.special", "logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    return traced_logsumexp(a, axis, b, keepdims, return_sign)


def traced_logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``m + log(sum(b * exp(a - m)))``; terms with ``b == 0`` do not count, whatever their `a`. With `return_sign`
    also the sign of the sum, and the logarithm of its absolute value.

    The derivative is the softmax, and 0 where all terms are -inf.
    """
    a = as_float(as_value(builder_in(a, b), a))
    if b is not None:
        a, b = np.broadcast_arrays(a, as_value(a.builder, b))
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


@substitute("scipy.special", "softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    x = as_float(lift_all(x)[0])
    axes = axes_of(axis, x.ndim)
    e = np.exp(x - stop_gradient(max_(x, axes, keepdims=True)))
    return e / sum_(e, axes, keepdims=True)


@substitute("scipy.special", "log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    x = as_float(lift_all(x)[0])
    axes = axes_of(axis, x.ndim)
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


@substitute("scipy.special", "zeta")
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    if out is not None:
        raise refused(builder_in(x, q), "scipy.special.zeta with out=", "use the returned array instead")
    return apply_ufunc(ufuncs._riemann_zeta, x) if q is None else apply_ufunc(ufuncs._zeta, x, q)


@substitute("scipy.special", "softplus")
def softplus(x: Any, **kwargs: Any) -> Any:
    return np.logaddexp(0, x, **kwargs)


@substitute("scipy.special", "multigammaln")
def multigammaln(a: Any, d: Any) -> Any:
    """``d (d - 1) / 4 log(pi) + sum(gammaln(a - j / 2) for j in range(d))``, also where SciPy refuses: the condition
    ``a > (d - 1) / 2`` is a guard."""
    d = _whole(d, "scipy.special.multigammaln with a dimension")
    a = cast(lift_all(a)[0], np.float64)
    if np.any(a <= 0.5 * (d - 1)):
        raise ValueError(f"condition a > 0.5 * (d-1) ({0.5 * (d - 1)}) not met")
    total = apply_ufunc(ufuncs.gammaln, a) + d * (d - 1) * 0.25 * np.log(np.pi)
    for j in range(1, d):
        total = total + apply_ufunc(ufuncs.gammaln, a - 0.5 * j)
    return total


def _whole(n: Any, what: str) -> int:
    """`n`, which is no traced value, as an integer."""
    if isinstance(n, Value):
        raise refused(n, f"{what} that is traced", "pass it as a plain integer from outside the function")
    if np.ndim(n) or int(n) != n:
        raise ValueError(f"{what} that is no integer")
    return int(n)


@substitute("scipy.special", "comb")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    N, k = _counts("comb", exact, N, k)
    if repetition:
        return choose((k == 0) & (N >= 0), 1.0, apply_ufunc(ufuncs.binom, N + k - 1, k))
    return choose(_counted(N, k), apply_ufunc(ufuncs.binom, N, k), 0.0)


@substitute("scipy.special", "perm")
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    N, k = _counts("perm", exact, N, k)
    return choose(_counted(N, k), apply_ufunc(ufuncs.poch, N - k + 1, k), 0.0)


@substitute("scipy.special", "factorial")
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    (n,) = _counts("factorial", exact, n)
    if extend != "zero":
        raise refused(n, f"scipy.special.factorial with extend={extend!r}", "use scipy.special.gamma(n + 1)")
    return choose(n < 0, 0.0, apply_ufunc(ufuncs.gamma, n + 1))


def _counts(name: str, exact: bool, *numbers: Any) -> list[Any]:
    values = lift_all(*numbers)
    if exact:
        raise refused(values[0], f"scipy.special.{name} with exact=True", "leave exact out")
    return values


def _counted(N: Any, k: Any) -> Any:
    return (k <= N) & (N >= 0) & (k >= 0)


def _neighbours(name: str, scale: float, signs: float) -> None:
    """``jvp`` and its kin: the n-th derivative by the argument, ``scale**n`` times a sum of neighbours in order."""
    ufunc = getattr(ufuncs, name)

    @substitute("scipy.special", f"{name}p")
    def derivative(v: Any, z: Any, n: int = 1) -> Any:
        n = _whole(n, f"scipy.special.{name}p with an order of the derivative")
        total, weight = apply_ufunc(ufunc, v - n, z), 1.0
        for i in range(1, n + 1):
            weight = signs * weight * (n - i + 1) / i
            total = total + weight * apply_ufunc(ufunc, v - n + 2 * i, z)
        return total * scale**n


for _name, _scale, _signs in (("jv", 0.5, -1.0), ("yv", 0.5, -1.0), ("iv", 0.5, 1.0), ("kv", -0.5, 1.0)):
    _neighbours(_name, _scale, _signs)
