"""Functions of scipy.special that SciPy writes in Python."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.core import cast, stop_gradient
from jitad.primitives.scipy_ufuncs import ufuncs
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import builder_in, lift_all, refused
from jitad.trace.numpy_rules.algebra.linalg import row
from jitad.trace.numpy_rules.reductions.logsumexp import logsumexp
from jitad.trace.numpy_rules.reductions.reduce import axes_of, max_, sum_
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import apply_ufunc, as_float

substitute("scipy.special", "logsumexp")(logsumexp)


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
