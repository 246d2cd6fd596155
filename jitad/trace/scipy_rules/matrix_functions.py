"""Functions of matrices of scipy.linalg: exponential, square root, logarithm, powers, and the circular ones."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.linalg.matrices import matmul
from jitad.trace.dispatch import builder_in, lift_all, lift_with
from jitad.trace.numpy_rules.algebra.linalg import check_square
from jitad.trace.substitutes import substitute
from jitad.trace.ufuncs import as_float

LARGEST_ROOT = 60                 # square roots after which every matrix that has a logarithm is near 1


@substitute("scipy.linalg", "expm")
def expm(A: Any) -> Any:
    a, = lift_all(A)
    if a.ndim == 0:
        return np.exp(a).reshape(1, 1)
    if a.ndim < 2:
        raise np.linalg.LinAlgError("The input array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return np.exp(as_float(a)) if a.shape[-1] == 1 else rows.expm(as_float(a))


@substitute("scipy.linalg", "sqrtm")
def sqrtm(A: Any, **options: Any) -> Any:
    """The real square root; LinAlgError where there is none and SciPy's would be complex."""
    return rows.sqrtm(check_square(lift_all(A)[0]))


@substitute("scipy.linalg", "logm")
def logm(A: Any, **options: Any) -> Any:
    """By square roots until the matrix is near 1, and Gauss-Legendre quadrature of the integral of its logarithm, which
    is Pade's approximation (N. J. Higham, Functions of Matrices, 2008, section 11.4). The real logarithm: LinAlgError
    where there is none."""
    a, roots = check_square(as_float(lift_all(A)[0])), 0
    one = np.eye(a.shape[-1], dtype=a.dtype)
    while not np.all(np.sum(np.absolute(a - one), axis=-2) < 0.2):                               # a recorded branch
        if roots == LARGEST_ROOT:
            raise np.linalg.LinAlgError("the matrix has no real logarithm: it is singular, or not finite")
        a, roots = rows.sqrtm(a), roots + 1
    x = a - one
    total: Any = None
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        part = (0.5 * weight) * rows.solve(one + x * (0.5 + 0.5 * node), x)
        total = part if total is None else total + part
    return total * 2.0 ** roots


@substitute("scipy.linalg", "fractional_matrix_power")
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """A whole power of any matrix; another one by the real logarithm."""
    if np.ndim(t):
        raise TypeError("the power must be a number")
    if builder_in(t) is None and t == int(t):
        return np.linalg.matrix_power(check_square(as_float(lift_all(A)[0])), int(t))
    return expm(logm(lift_with(A, t)) * t)


@substitute("scipy.linalg", "signm")
def signm(A: Any, **options: Any) -> Any:
    a = check_square(as_float(lift_all(A)[0]))
    return matmul(a, rows.inv(rows.sqrtm(matmul(a, a))))


def _circular(A: Any) -> tuple[Any, Any]:
    """Cosine and sine of a matrix, from the exponential of a real one of twice the size."""
    a = check_square(as_float(lift_all(A)[0]))
    n, nothing = a.shape[-1], a * 0.0
    whole = rows.expm(np.concatenate([np.concatenate([nothing, -a], axis=-1), np.concatenate([a, nothing], axis=-1)],
                                     axis=-2))
    return whole[..., :n, :n], whole[..., n:, :n]


@substitute("scipy.linalg", "cosm")
def cosm(A: Any) -> Any:
    return _circular(A)[0]


@substitute("scipy.linalg", "sinm")
def sinm(A: Any) -> Any:
    return _circular(A)[1]


@substitute("scipy.linalg", "tanm")
def tanm(A: Any) -> Any:
    return rows.solve(*_circular(A))


@substitute("scipy.linalg", "coshm")
def coshm(A: Any) -> Any:
    a = check_square(as_float(lift_all(A)[0]))
    return 0.5 * (rows.expm(a) + rows.expm(-a))


@substitute("scipy.linalg", "sinhm")
def sinhm(A: Any) -> Any:
    a = check_square(as_float(lift_all(A)[0]))
    return 0.5 * (rows.expm(a) - rows.expm(-a))


@substitute("scipy.linalg", "tanhm")
def tanhm(A: Any) -> Any:
    return rows.solve(coshm(A), sinhm(A))
