"""numpy.linalg by eigenvalues, singular values and QR."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.primitives import linalg as rows
from jitad.primitives.core import cast, full, select
from jitad.primitives.index import concatenate
from jitad.primitives.linalg.matrices import matmul, mT, triangle
from jitad.primitives.view import expand_dims, slice_dims
from jitad.primitives.view import squeeze as drop
from jitad.tape.builder import Value
from jitad.tape.types import TABLE
from jitad.trace.dispatch import as_value, builder_in, implements, lift_all, order_of, refused
from jitad.trace.numpy_rules.algebra.linalg import check_square, inv, norm, solve
from jitad.trace.numpy_rules.reductions.reduce import max_, sum_
from jitad.trace.numpy_rules.shapes.shape import ravel
from jitad.trace.ufuncs import as_float
from jitad.trace.values.pairs import Complex, pair

_EigResult = type(np.linalg.eig(np.eye(1)))
EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))
_QRResult = type(np.linalg.qr(np.eye(1)))
Absent = np._NoValue
NOTHING = 1e-8             # relative size up to which singular values that are cut off count as zero in derivatives


def matrices(a: Any) -> Any:
    """`a` in a floating dtype, if it is a stack of matrices."""
    a, = lift_all(a)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return as_float(a)


def eps(a: Any) -> float:
    return float(np.finfo(a.dtype).eps)


def static(value: Any, like: Any, what: str) -> Any:
    """`value`, unless it is traced."""
    if builder_in(value) is not None:
        raise refused(like, what, "pass a number")
    return value


# --- eigenvalues -------------------------------------------------------------------------------

@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    y = decomposed(a, UPLO)
    n = y.shape[-2]
    return EighResult(rows.column(y, 0), mT(rows.columns(y, 1, n + 1)))  # type: ignore[arg-type]


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return rows.column(decomposed(a, UPLO), 0)


def decomposed(a: Any, UPLO: str, **params: bool) -> Any:
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    a = check_square(lift_all(a)[0])
    return rows.eigh(a, upper=True, **params) if UPLO.upper() == "U" else rows.eigh(a, **params)


_REAL = np.linalg.eigvals(np.eye(1)).dtype.kind == "f"       # before NumPy 2.5, where all are real


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    return eigen_pairs(rows.eig(check_square(as_float(lift_all(a)[0]))), _REAL)


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    return eigen_values(rows.eig(check_square(as_float(lift_all(a)[0]))), _REAL)


def eigen_values(y: Any, real: bool = True) -> Any:
    """The values in an array of `rows.eig`: real where all are, if they may be, which is a branch."""
    values, _ = rows.eig_parts(y, y.shape[-2])
    return values.re if real and not np.any(values.im != 0) else pair(values.re, values.im)


def eigen_pairs(y: Any, real: bool = True) -> Any:
    """Values and vectors, both real or both complex."""
    _, vectors = rows.eig_parts(y, y.shape[-2])
    values = eigen_values(y, real)
    if not isinstance(values, Complex):
        return _EigResult(values, vectors.re)  # type: ignore[arg-type]
    return _EigResult(values, pair(vectors.re, vectors.im))  # type: ignore[arg-type]


def only_right(builder: Any, b: Any, left: bool, options: dict[str, Any]) -> None:
    """Raise for what the rules for eigenvalues do not have."""
    if b is not None or left or options.get("homogeneous_eigvals"):
        raise refused(builder, "scipy.linalg.eig with b, left vectors or homogeneous values",
                      "solve with b first; left vectors are those of the transpose")


# --- singular values ---------------------------------------------------------------------------

@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = matrices(a)
    if hermitian:
        if compute_uv:
            raise refused(a, "numpy.linalg.svd with hermitian=True", "leave the option out, or use numpy.linalg.eigh")
        a = mirrored(check_square(a))
    if not compute_uv:
        return svdvals(a)
    m, n = a.shape[-2:]
    if full_matrices and m != n:
        raise refused(a, "numpy.linalg.svd with full_matrices=True of matrices that are not square",
                      "pass full_matrices=False: the vectors beyond are any basis of what is left")
    s, left, right = rows.svd_parts(rows.svd(a), a)
    return SVDResult(mT(left), s, right)  # type: ignore[arg-type]


def mirrored(a: Any) -> Any:
    """The symmetric matrices of which `a` has the lower triangles."""
    return triangle(a, lower=True) + mT(triangle(a, lower=True, strict=True))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return singular_values(x)


def singular_values(x: Any, **params: bool) -> Any:
    x = matrices(x)
    return rows.column(rows.svd(x, **params), 0) if min(x.shape[-2:]) else full(x, 0, (*x.shape[:-2], 0), x.dtype)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    x = matrices(x)
    if 0 in x.shape:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = rows.column(s, 0), rows.column(s, s.shape[-1] - 1)
        r = TABLE["div"](*((last, first) if p == -2 else (first, last)))
    else:
        x = check_square(x)
        r = TABLE["mul"](norm(x, p, (-2, -1)), norm(rows.inv(x, strict=False), p, (-2, -1)))
    known = TABLE["reduce_all"](TABLE["eq"](x, x), axes=(x.ndim - 2, x.ndim - 1))
    return select(TABLE["logical_and"](TABLE["ne"](r, r), known), np.inf, r)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    a = lift_all(A)[0]
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if a.ndim < 2:
        return cast(TABLE["reduce_any"](a != 0, axes=tuple(range(a.ndim))), np.int64)
    a = mirrored(check_square(a)) if hermitian else as_float(a)
    s = svdvals(a)
    if tol is None:
        relative = max(a.shape[-2:]) * eps(a) if rtol is None else as_value(a.builder, rtol)[..., None]
        tol = max_(s, -1, keepdims=True, initial=0) * relative
    else:
        tol = as_value(a.builder, tol)[..., None]
    return sum_(s > tol, -1)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = Absent) -> Any:
    given, = lift_all(a)
    a = matrices(given)
    if rcond is not None and rtol is not Absent:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is Absent else max(a.shape[-2:]) * eps(a) if rtol is None else rtol
    static(rcond, a, "numpy.linalg.pinv with a traced rcond")
    if np.ndim(rcond):
        raise refused(a, "numpy.linalg.pinv with an array for rcond", "pass one number")
    if 0 in a.shape[-2:] and given.dtype.kind in "iu":
        return full(a, 0, (*a.shape[:-2], a.shape[-1], a.shape[-2]), given.dtype)
    return pinv_of(mirrored(check_square(a)) if hermitian else a, float(rcond))


def pinv_of(a: Any, rcond: float) -> Any:
    """The row `pinv` takes what is cut off for nothing; where it may be more, by singular values."""
    if 0 in a.shape[-2:]:
        return full(a, 0, (*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if rcond <= NOTHING:
        return rows.pinv(a, rcond=rcond)
    s, left, right = rows.svd_parts(rows.svd(a), a)
    large = TABLE["gt"](s, max_(s, -1, keepdims=True) * rcond)
    inverse = select(large, 1.0 / select(large, s, 1.0), 0.0)
    return matmul(mT(right) * expand_dims(inverse, (s.ndim - 1,)), left)


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """By the pseudoinverse; whether there are residuals is a branch on the rank."""
    a, b = lift_all(a, b)
    if a.ndim != 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise np.linalg.LinAlgError(f"{b.ndim}-dimensional array given. Array must be two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    dtype = np.result_type(as_float(a).dtype, as_float(b).dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")
    rcond = static(max(a.shape) * eps(a) if rcond is None else rcond, a, "numpy.linalg.lstsq with a traced rcond")
    x, residuals, rank, s = least_squares(a, b, float(rcond) if rcond >= 0 else eps(a), vector_residuals=True)
    return x, residuals, cast(rank, np.int32), s


def least_squares(a: Any, b: Any, rcond: float, vector_residuals: bool) -> Any:
    """Solution, residuals, rank, singular values; residuals of a vector are an array of one if `vector_residuals`."""
    (m, n), s = a.shape, svdvals(a)
    columns = b if b.ndim == 2 else expand_dims(b, (1,))
    x = matmul(pinv_of(a, rcond), columns)
    rank = matrix_rank(a, rtol=rcond)
    residuals = full(a, 0, (0,), a.dtype)
    if m > n and bool(rank == n):
        rest = columns - matmul(a, x)
        residuals = sum_(rest * rest, 0)
        if b.ndim == 1 and not vector_residuals:
            residuals = residuals[0]
    return drop(x, (1,)) if b.ndim == 1 else x, residuals, rank, s


# --- QR ----------------------------------------------------------------------------------------

@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    a = matrices(a)
    if mode in ("f", "full", "e", "economic", "raw"):
        raise refused(a, f"numpy.linalg.qr with mode={mode!r}", "use 'reduced' or 'r'")
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    if mode == "complete" and a.shape[-2] > a.shape[-1]:
        raise refused(a, "numpy.linalg.qr with mode='complete' of matrices with more rows than columns",
                      "use 'reduced': the columns beyond are any basis of what is left")
    q, r = qr_of(a)
    return r if mode == "r" else _QRResult(q, r)


def qr_of(a: Any) -> tuple[Any, Any]:
    """Q and R; of wide matrices from the square part on the left."""
    m, n = a.shape[-2:]
    if not min(m, n):
        return full(a, 0, (*a.shape[:-1], 0), a.dtype), full(a, 0, (*a.shape[:-2], 0, n), a.dtype)
    lead = (slice(None),) * (a.ndim - 1)
    square = slice_dims(a, (*lead, slice(0, min(m, n))))
    q, r = rows.qr_parts(rows.qr(square), square)
    q = mT(q)
    if n > m:
        r = concatenate(r, matmul(mT(q), slice_dims(a, (*lead, slice(m, n)))), axis=a.ndim - 1)
    return q, r


# --- the order of rows in LU factors -------------------------------------------------------------

def inverse_order(order: Value) -> Value:
    """The permutation back."""
    n = order.shape[-1]
    hit = expand_dims(order, (order.ndim - 1,)) == np.arange(n)[:, None]
    return sum_(cast(hit, np.int64) * np.arange(n), -1)


def order_of_rows(builder: Any, pivots: Any) -> Value:
    """What the pivots of `lu_factor` were made of; captured ones, or an argument, are what the tape is for."""
    if isinstance(pivots, Value):
        node = pivots.node
        while node.prim.name in ("cast", "alias"):
            node = builder.nodes[node.inputs[0]]
        if node.prim is rows.lu_pivots:
            return builder.value(node.inputs[0])
    return as_value(builder, rows.order_of_pivots(np.asarray(order_of(pivots))))


# --- tensors -----------------------------------------------------------------------------------

@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    a = lift_all(a)[0]
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = a.shape[ind:] + a.shape[:ind]
    return inv(a.reshape(math.prod(a.shape[ind:]), -1)).reshape(*shape)


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    a, b = lift_all(a, b)
    if axes is not None:
        order = list(range(a.ndim))
        for k in axes:
            order.remove(k)
            order.insert(a.ndim, k)
        a = np.transpose(a, order)
    shape = a.shape[-(a.ndim - b.ndim):]
    size = math.prod(shape)
    if a.aval.size != size**2:
        raise np.linalg.LinAlgError("Input arrays must satisfy the requirement "
                                    "            prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return solve(a.reshape(size, size), ravel(b)).reshape(*shape)


@implements(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = lift_all(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
                         f"{x1.shape[axis]} and {x2.shape[axis]} dimensional instead.")
    return cross_of(x1, x2, axis=axis)


_CROSSED = (2, 3) if np.lib.NumpyVersion(np.__version__) < "2.5.0" else (3,)       # dimensions of vectors


@implements(np.cross)
def cross_of(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    a, b = lift_all(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    if a.shape[-1] not in _CROSSED or b.shape[-1] not in _CROSSED:
        np.cross(np.zeros(a.shape[-1]), np.zeros(b.shape[-1]))        # raises
    p, q = ([x[..., i] for i in range(x.shape[-1])] for x in (a, b))
    last = p[0] * q[1] - p[1] * q[0]
    if len(p) == len(q) == 2:
        return last
    first = ([p[1] * q[2], -p[0] * q[2]] if len(p) == 2 else [-p[2] * q[1], p[2] * q[0]] if len(q) == 2 else
             [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2]])
    return np.moveaxis(np.stack([*first, last], axis=-1), -1, axisc)


__all__ = ["least_squares", "qr_of"]
