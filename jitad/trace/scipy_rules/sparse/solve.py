"""scipy.sparse.linalg's direct solvers: `spsolve`, `splu` and `factorized`, by SciPy's SuperLU itself.

The pattern is analysed once for a recording; the factors of the last matrix are kept, so that a value and its gradient
factorize once. A solution costs one more with the transposed factors in reverse. The diagonal of U, of which users make
log-determinants, costs in reverse the elements of the inverse on the pattern (`jitad.primitives.factors`).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.primitives.core import cast
from jitad.primitives.factors.sparse import SparseSystem
from jitad.tape.builder import Value
from jitad.trace.dispatch import refused
from jitad.trace.scipy_rules.classes import lifted, method, this_recorder
from jitad.trace.scipy_rules.sparse.build import maker
from jitad.trace.scipy_rules.sparse.values import TracedSparse, as_sparse, is_sparse

__all__ = ["setting"]

MODULE = "scipy.sparse.linalg"


class Factorized:
    """What recorded code gets for SuperLU's factors of a matrix."""

    __slots__ = ("_data", "_name", "_system", "shape")

    def __init__(self, name: str, A: Any, options: dict[str, Any], singular: bool = False) -> None:
        if not (type(A) is TracedSparse or is_sparse(A)):
            raise refused(this_recorder(), f"{name} of a matrix that is not sparse", "use scipy.linalg")
        matrix = as_sparse(A).asformat("csc")
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError("can only factor square matrices")
        places, inverse = matrix.places.ordered(by_columns=True)
        if len(places.rows) < len(inverse) or not np.array_equal(inverse, np.arange(len(inverse))):
            matrix = as_sparse(matrix.asformat("coo")).asformat("csc")
        self.shape, self._name = matrix.shape, name
        indices, indptr = matrix.jitad_holds[1:]
        if not isinstance(indices, np.ndarray):
            indices, indptr = places.rows, np.concatenate([[0], np.cumsum(np.bincount(
                places.columns, minlength=self.shape[1]))])
        self._data = _double(matrix.elements)
        self._system = SparseSystem(self.shape[0], indices, indptr, options, name, singular)

    @property
    def jitad_holds(self) -> tuple[Any, ...]:
        return (self._data,)

    @method
    def solve(self, rhs: Any, trans: str = "N") -> Any:
        b = lifted(rhs)
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        if b.ndim not in (1, 2) or b.shape[0] != self.shape[0]:
            raise ValueError("b is of incompatible size")
        return _traced(self._system.solve(Value(this_recorder(), self._data.number), Value(
            this_recorder(), _double(b).number), trans != "N"))

    @property
    def U(self) -> Any:
        return _Triangle(self, lambda: _traced(self._system.pivots(Value(this_recorder(), self._data.number))))

    @property
    def L(self) -> Any:
        return _Triangle(self, lambda: np.ones(self.shape[0]))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in ("perm_c", "perm_r", "nnz"):
            raise AttributeError(f"'SuperLU' object has no attribute {name!r}")
        raise refused(this_recorder(), f"the attribute .{name} of {self._name}", "use .solve, .L.diagonal() and "
                                                                               ".U.diagonal()")


class _Triangle:
    """L or U, of which the diagonal is known."""

    __slots__ = ("_diagonal", "_owner", "shape")

    def __init__(self, owner: Factorized, diagonal: Callable[[], Any]) -> None:
        self._owner, self._diagonal, self.shape = owner, diagonal, owner.shape

    def diagonal(self, k: int = 0) -> Any:
        if k:
            return self.__getattr__("diagonal with k=")
        return self._diagonal()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused(this_recorder(), f".{name} of the factors L and U of {self._owner._name}", "use .diagonal()")


def _double(x: Any) -> Any:
    return this_recorder().value(cast(lifted(x), np.float64).number)


def _traced(x: Value) -> Any:
    return this_recorder().value(x.number)


@maker("splu", MODULE)
def splu(A: Any, permc_spec: Any = None, diag_pivot_thresh: Any = None, relax: Any = None, panel_size: Any = None,
         options: Any = None) -> Any:
    given = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax,
             "panel_size": panel_size, "options": options}
    return Factorized(f"{MODULE}.splu", A, {k: setting(v) for k, v in given.items() if v is not None})


def setting(value: Any) -> Any:
    """A setting of SuperLU's; of a traced one, by a guard."""
    if isinstance(value, dict):
        return {k: setting(v) for k, v in value.items()}
    return this_recorder().decide_all(value).item() if isinstance(value, Value) else value


@maker("factorized", MODULE)
def factorized(A: Any) -> Any:
    return Factorized(f"{MODULE}.factorized", A, {}).solve


@maker("spsolve", MODULE)
def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    if type(b) is TracedSparse or is_sparse(b):
        raise refused(this_recorder(), f"{MODULE}.spsolve with a sparse right-hand side", "use b.toarray()")
    right = lifted(b)
    if as_sparse(A).shape[0] != as_sparse(A).shape[1]:
        raise ValueError(f"matrix must be square (has shape {A.shape})")
    if right.ndim not in (1, 2) or right.shape[0] != A.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({A.shape} - {right.shape[0]})")
    dtype = np.result_type(as_sparse(A).dtype, right.dtype)
    factors = Factorized(f"{MODULE}.spsolve", A, {} if permc_spec is None else {"permc_spec": permc_spec}, True)
    found = factors.solve(right.reshape(-1) if right.ndim == 2 and right.shape[1] == 1 else right)
    return cast(found, dtype if dtype.kind == "f" else np.float64)
