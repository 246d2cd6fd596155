"""Functions of scipy.special with integer degrees and orders: spherical Bessel functions and harmonics, and Lambert's W
by its branch.

Degrees and orders are plain integers; by them there is no derivative.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.special.lambert import lambert_im_, lambert_re_
from jitad.primitives.special.spherical import SIGNS, SPHERICAL, slope
from jitad.tape.builder import Value
from jitad.trace.arrays.choice import choose
from jitad.trace.dispatch import as_value, builder_in, call, lift_all, refused
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import as_float
from jitad.trace.values.pairs import Complex, pair

__all__: list[str] = []


def _integers(what: str, *given: Any) -> list[Any]:
    """Degrees or orders, which are known integers."""
    found = []
    for n in given:
        n = n.node.constant if isinstance(n, Value) and n.node.constant is not None else n
        if isinstance(n, Value):
            raise refused(n, f"{what} with a traced degree or order", "pass it as a plain integer")
        if np.asarray(n).dtype.kind not in "iub":
            raise TypeError(f"{what}: degrees and orders must be integers")
        found.append(np.asarray(n, np.int64))
    return found


# --- spherical Bessel functions --------------------------------------------------------------------

def _spherical(kind: str) -> None:
    name, row = f"scipy.special.spherical_{kind}n", SPHERICAL[kind]

    @substitute("scipy.special", f"spherical_{kind}n")
    def spherical(n: Any, z: Any, derivative: Any = False) -> Any:
        import scipy.special

        if isinstance(z, Complex):
            raise refused(builder_in(z), f"{name} of a complex argument", "use it of real ones")
        (n,) = _integers(name, n)
        z = as_float(lift_all(z)[0])
        dtype = getattr(scipy.special, f"spherical_{kind}n")(1, np.ones(1, z.dtype)).dtype     # not of one rule in all
        n, z = as_value(z.builder, n.astype(float)), cast(z, np.float64)
        if not derivative:
            return cast(row(n, z), dtype)
        n, z = call(np.broadcast_arrays, n, z)
        return cast(slope(row, n, z, *SIGNS[kind]), dtype)


for _kind in SIGNS:
    _spherical(_kind)


# --- spherical harmonics -----------------------------------------------------------------------

def _on_the_sphere(n: int, m: int) -> tuple[float, float]:
    """With norm 1 on the sphere."""
    return (2 * n + 1) * (2 * n - 1) / ((n - m) * (n + m)), (
        (2 * n + 1) * (n + m - 1) * (n - m - 1) / ((2 * n - 3) * (n - m) * (n + m)) if n > m + 1 else 0.0)


def _associated(n: int, m: int, x: Any, root: Any) -> Any:
    """``sqrt((2 n + 1) / (4 pi) (n - m)! / (n + m)!)`` times the associated Legendre function of the first kind, with
    the phase of Condon and Shortley, of x = cos(theta), sin(theta) being `root`: by the recurrence in n from n = m
    (DLMF 14.10.3, 14.30.1)."""
    order = abs(m)
    if n < 0 or order > n:
        return 0.0 * x
    scale = math.sqrt(math.prod((2 * i + 1) / (2 * i) for i in range(1, order + 1)) / (4.0 * math.pi))
    before, here = 0.0 * x, (-1.0) ** order * scale * _power(root, order, x)
    for k in range(order + 1, n + 1):
        a, b = map(math.sqrt, _on_the_sphere(k, order))
        before, here = here, a * x * here - b * before
    return here if m >= 0 or order % 2 == 0 else -here


def _power(root: Any, order: int, x: Any) -> Any:
    return root ** order if order else 1.0 + 0.0 * x


def _each(function: Callable[..., Any], n: Any, m: Any, *points: Any) -> tuple[Any, ...]:
    """``function(n, m, *points)``, a tuple, where degrees and orders are arrays."""
    shape = np.broadcast_shapes(np.shape(n), np.shape(m), *(p.shape for p in points))
    n, m = np.broadcast_arrays(n, m)
    pairs = [*dict.fromkeys(zip(n.ravel().tolist(), m.ravel().tolist(), strict=True))] or [(0, 0)]
    every = [function(*pair_, *points) for pair_ in pairs]
    found: list[Any] = [call(np.broadcast_to, part, shape) for part in every[0]]
    for (degree, order), parts in zip(pairs[1:], every[1:], strict=True):
        here = (n == degree) & (m == order)
        found = [choose(here, part, old) for part, old in zip(parts, found, strict=True)]
    return tuple(found)


@substitute("scipy.special", "sph_harm_y")
def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: Any = 0) -> Any:
    if diff_n:
        raise refused(builder_in(theta, phi), "scipy.special.sph_harm_y with diff_n=", "differentiate it with jitad")
    n, m = _integers("scipy.special.sph_harm_y", n, m)
    theta, phi = (cast(v, np.float64) for v in lift_all(theta, phi))

    def parts(n: int, m: int, theta: Any, phi: Any) -> tuple[Any, Any]:
        size = _associated(n, m, np.cos(theta), np.absolute(np.sin(theta)))
        return size * np.cos(m * phi), size * np.sin(m * phi)
    return pair(*_each(parts, n, m, theta, phi))


@substitute("scipy.special", "sph_harm")
def sph_harm(m: Any, n: Any, theta: Any, phi: Any) -> Any:
    return sph_harm_y(n, m, phi, theta)


# --- Lambert's W ----------------------------------------------------------------------------------------

@substitute("scipy.special", "lambertw")
def lambertw(z: Any, k: Any = 0, tol: Any = 1e-8) -> Any:
    if builder_in(tol) is not None:
        raise refused(builder_in(tol), "scipy.special.lambertw with a traced tol=", "leave the option out")
    (k,) = _integers("scipy.special.lambertw", k)
    z = lift_all(z)[0] if not isinstance(z, Complex) else z
    x, y = (z.re, z.im) if isinstance(z, Complex) else (cast(z, np.float64), 0.0)
    branch, y = as_value(x.builder, k.astype(float)), as_value(x.builder, y)
    return pair(*(row(branch, cast(x, np.float64), cast(y, np.float64)) for row in (lambert_re_, lambert_im_)))
