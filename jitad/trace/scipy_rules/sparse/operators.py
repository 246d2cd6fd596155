"""scipy.sparse.linalg's `LinearOperator` and `aslinearoperator`: functions that stand for matrices.

What is asked of the matrix beside products, as solvers do, is asked of the matrix itself: the derivative of the
function, which is as many products as it has columns, once a call. That is a full matrix, and refused past `LARGEST`
columns.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import StandIn, lifted, method, stands_for, this_recorder
from jitad.trace.scipy_rules.solvers.systems import Residuals
from jitad.trace.scipy_rules.sparse.build import maker
from jitad.trace.scipy_rules.sparse.values import TracedSparse, is_sparse

__all__ = ["Operator"]

MODULE = "scipy.sparse.linalg"
LARGEST = 3000


class Operator(StandIn):
    """A `LinearOperator` in recorded code; `function` gives products with vectors."""

    __slots__ = ("_function", "_matrix", "shape")

    def __init__(self, kind: type, shape: Any, function: Callable[[Any], Any], matrix: Any = None) -> None:
        super().__init__(kind)
        self.shape: tuple[int, int] = tuple(int(n) for n in shape)                           # type: ignore[assignment]
        self._function, self._matrix = function, matrix

    @property
    def jitad_holds(self) -> tuple[Any, ...]:
        return (self.matrix,)

    @property
    def dtype(self) -> Any:
        return np.dtype(float)

    @property
    def matrix(self) -> Any:
        """The full matrix, which is made once."""
        if self._matrix is None:
            n = self.shape[1]
            if max(self.shape) > LARGEST:
                raise refused(this_recorder(), f"{MODULE}.LinearOperator of {max(self.shape)} rows or columns in a "
                              "solver", "give the sparse matrix itself")
            whole = Residuals(self._function, (), f"{MODULE}.LinearOperator").jacobian(lifted(np.zeros(n)))
            self._matrix = whole.reshape(self.shape)
        return self._matrix

    def _like(self, function: Callable[[Any], Any], shape: Any = None) -> Operator:
        return Operator(self.jitad_kind, self.shape if shape is None else shape, function)

    @method
    def matvec(self, x: Any) -> Any:
        x = lifted(x)
        if x.shape not in ((self.shape[1],), (self.shape[1], 1)):
            raise ValueError("dimension mismatch")
        return lifted(self._function(x.reshape(-1))).reshape((self.shape[0],) if x.ndim == 1 else (self.shape[0], 1))

    @method
    def matmat(self, X: Any) -> Any:
        X = lifted(X)
        if X.ndim != 2 or X.shape[0] != self.shape[1]:
            raise ValueError(f"dimension mismatch: {self.shape}, {X.shape}")
        return self.matrix @ X

    @method
    def rmatvec(self, x: Any) -> Any:
        return self.T.matvec(x)

    @property
    def T(self) -> Operator:
        turned = self.matrix.T
        return Operator(self.jitad_kind, self.shape[::-1], lambda v: turned @ v, turned)

    H = T

    def adjoint(self) -> Operator:
        return self.T

    transpose = adjoint

    @method
    def dot(self, x: Any) -> Any:
        if type(x) is Operator:
            if self.shape[1] != x.shape[0]:
                raise ValueError(f"cannot multiply operators of the shapes {self.shape} and {x.shape}")
            return self._like(lambda v: self._function(x._function(v)), (self.shape[0], x.shape[1]))
        given = lifted(x)
        if not given.ndim:
            return self._like(lambda v: given * self._function(v))
        return self.matvec(x) if given.ndim == 1 or given.shape[1] == 1 else self.matmat(x)

    __matmul__ = __call__ = __mul__ = dot

    @method
    def __rmul__(self, x: Any) -> Any:
        return self.dot(x) if not np.ndim(x) else NotImplemented

    @method
    def __add__(self, other: Any) -> Any:
        if type(other) is not Operator:
            return NotImplemented
        if other.shape != self.shape:
            raise ValueError(f"cannot add operators of the shapes {self.shape} and {other.shape}: shape mismatch")
        return self._like(lambda v: self._function(v) + other._function(v))

    def __neg__(self) -> Any:
        return self._like(lambda v: -self._function(v))

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) is Operator else NotImplemented


def _kind() -> type:
    from scipy.sparse.linalg import LinearOperator

    return LinearOperator


def _captured(kind: type, function: Any, shape: Any) -> Operator:
    return Operator(kind, shape, function)


@stands_for(f"{MODULE}._CustomLinearOperator", _captured, "_CustomLinearOperator__matvec_impl shape")
def _made_of_functions(*given: Any, **options: Any) -> Operator:
    return _linear_operator(*given, **options)                                               # type: ignore[no-any-return]


@stands_for(f"{MODULE}.MatrixLinearOperator", lambda kind, A: Operator(kind, A.shape, lambda v: A @ v), "A")
def _made_of_a_matrix(A: Any) -> Operator:
    return _as_operator(A)                                                                    # type: ignore[no-any-return]


@stands_for(f"{MODULE}.LinearOperator", _captured, "_matvec shape", always=True)
def _linear_operator(shape: Any, matvec: Any, rmatvec: Any = None, matmat: Any = None, dtype: Any = None,
                     rmatmat: Any = None) -> Operator:
    return Operator(_kind(), shape, matvec)


@maker("aslinearoperator", MODULE)
def _as_operator(A: Any) -> Any:
    if type(A) is Operator:
        return A
    if type(A) is TracedSparse or is_sparse(A):
        return Operator(_kind(), A.shape, lambda v: A @ v)
    dense = lifted(A)
    if dense.ndim > 2:
        raise ValueError("array must have ndim <= 2")
    matrix: Any = np.atleast_2d(dense)
    return Operator(_kind(), matrix.shape, lambda v: matrix @ v, matrix)
