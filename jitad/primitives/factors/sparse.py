"""Solutions and pivots of sparse systems of one pattern, by SciPy's SuperLU.

``P A Q = L U``. What is computed of the elements of A, `data`, is ``opaque`` on the tape, with rules of its own; the
factors of the last matrix are kept, so that a value and its gradient factorize once. The rules follow from
``P dA Q = dL U + L dU``: of M = L^-1 P dA Q U^-1 the part below the diagonal is L^-1 dL, the rest dU U^-1::

    x = A^-1 b           dx = A^-1 (db - dA x)             adjoint: A^-T ct, and -(A^-T ct)[i] x[j] for each element
    u = diag(U)          du = u * diag(M)                  adjoint: the elements (j, i) of Q U^-1 diag(ct u) L^-1 P

so that the gradient of a log-determinant takes no more than the elements of the inverse on the pattern
(`jitad.compile.sparse`). Second derivatives of pivots go by L^-1 P and Q U^-1 as full matrices, with
``d(L^-1 P) = -low(M) L^-1 P`` and ``d(Q U^-1) = -Q U^-1 up(M)``.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.primitives.custom import Code, opaque
from jitad.primitives.index import concatenate, gather, reshape, scatter
from jitad.primitives.linear import Cotangents
from jitad.primitives.reduce import contract
from jitad.primitives.sparse import sparse_columns, sparse_entries, sparse_rows
from jitad.primitives.view import slice_dims
from jitad.tape.builder import Value
from jitad.tape.types import Aval

__all__ = ["Ruled", "SELECTED", "SparseFactors", "SparseSystem"]

FLOAT = np.dtype(float)


class _Selected:
    """Elements of ``U^-1 D L^-1`` at the places of the factors, which `jitad.compile.sparse` says; None where the
    factors lost some of their places."""

    elements: Callable[..., np.ndarray | None] = staticmethod(lambda *given: None)


SELECTED = _Selected()


class SparseFactors:
    """SuperLU's factors of one matrix."""

    def __init__(self, lu: Any, system: SparseSystem) -> None:
        self.lu, self.system = lu, system
        self.pivots = lu.U.diagonal()

    def weighted(self, weights: np.ndarray) -> np.ndarray:
        """For each element (i, j) of the matrix the element (j, i) of ``Q U^-1 diag(weights) L^-1 P``."""
        lower, upper = self.lu.L.tocsc(), self.lu.U.tocsr()
        lower.sort_indices()
        upper.sort_indices()
        parts = [_without_diagonal(m) for m in (lower, upper)]
        i, j = self.lu.perm_r[self.system.rows], self.lu.perm_c[self.system.columns]
        found = SELECTED.elements(*parts[0], *parts[1], self.pivots, weights, i.astype(np.int64), j.astype(np.int64))
        if found is None:
            left, right = self.inverses()
            return np.einsum("ek,k,ke->e", right[self.system.columns], weights, left[:, self.system.rows])
        return found

    def slopes(self, change: np.ndarray) -> np.ndarray:
        """``diag(L^-1 P E Q U^-1)`` for a change E of the matrix."""
        left, right = self.inverses()
        return np.einsum("ke,e,ek->k", left[:, self.system.rows], change, right[self.system.columns])

    def inverses(self) -> tuple[np.ndarray, np.ndarray]:
        """``L^-1 P`` and ``Q U^-1`` as full matrices."""
        from scipy.sparse.linalg import spsolve_triangular

        n = self.system.n
        unit = np.eye(n)
        left = spsolve_triangular(self.lu.L.tocsr(), unit, lower=True, unit_diagonal=True)
        right = spsolve_triangular(self.lu.U.tocsr(), unit, lower=False)
        return left[:, self.lu.perm_r], right[self.lu.perm_c]


def _without_diagonal(m: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the lines of a triangular matrix begin, their places, their elements."""
    lines = np.repeat(np.arange(m.shape[0]), np.diff(m.indptr))
    keep = lines != m.indices
    starts = np.concatenate([[0], np.cumsum(np.bincount(lines[keep], minlength=m.shape[0]))])
    return starts.astype(np.int64), m.indices[keep].astype(np.int64), m.data[keep]


class Ruled(Code):
    """Code with derivatives: `vjp(ct, y, *inputs)` and `jvp(tangents, y, *inputs)`."""

    def __init__(self, name: str, serve: Callable[..., np.ndarray], operands: Sequence[Aval], size: int,
                 vjp: Callable[..., Cotangents], jvp: Callable[..., Value | None]) -> None:
        super().__init__(name, serve, lambda arrays: np.ascontiguousarray(serve(*arrays), dtype=float).reshape(-1),
                         tuple(operands), size, FLOAT)
        self.vjp, self.jvp = vjp, jvp


class SparseSystem:
    """All square matrices with elements at the places `rows` and `columns`, in the order of CSC, without doubles.
    `options` are `splu`'s; where a singular one is no error, its solutions are NaN."""

    def __init__(self, n: int, indices: np.ndarray, indptr: np.ndarray, options: dict[str, Any], name: str,
                 singular: bool = False) -> None:
        self.n, self.options, self.name, self.singular = n, options, name, singular
        self.indices, self.indptr = indices.astype(np.int64), indptr.astype(np.int64)
        self.rows, self.columns = self.indices, np.repeat(np.arange(n), np.diff(indptr))
        self._last: tuple[np.ndarray, SparseFactors] | None = None
        self._codes: dict[Any, Ruled] = {}

    def factors(self, data: np.ndarray) -> SparseFactors:
        """Those of the matrix with these elements, once for one matrix after the other."""
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        last = self._last
        if last is not None and np.array_equal(last[0], data):
            return last[1]
        matrix = csc_array((data, self.indices.astype(np.int32), self.indptr.astype(np.int32)), shape=(self.n, self.n))
        found = SparseFactors(splu(matrix, **self.options), self)
        self._last = data.copy(), found
        return found

    # --- solutions ---------------------------------------------------------------------------------
    def solve(self, data: Value, b: Value, transposed: bool = False) -> Value:
        """The solution for a vector or a matrix `b`."""
        shape = b.shape
        code = self._code(("solve", transposed, shape), lambda: Ruled(
            self.name, lambda d, r: self.solved(d, r, transposed), self.types(shape), int(np.prod(shape)),
            lambda ct, y, d, r: self.solve_vjp(reshape(ct, shape), reshape(y, shape), d, transposed),
            lambda tangents, y, d, r: self.solve_jvp(tangents, reshape(y, shape), d, transposed)))
        return reshape(opaque(data, b, code=code), shape)

    def solved(self, data: np.ndarray, b: np.ndarray, transposed: bool) -> np.ndarray:
        if not b.size:
            return np.zeros(b.shape)
        try:
            return self.factors(data).lu.solve(b, "T" if transposed else "N")        # type: ignore[no-any-return]
        except RuntimeError:
            if not self.singular:
                raise
            return np.full(b.shape, np.nan)

    def solve_vjp(self, ct: Value, x: Value, data: Value, transposed: bool) -> Cotangents:
        back = self.solve(data, ct, not transposed)
        first, second = (x, back) if transposed else (back, x)
        return -self.outer(first, second), reshape(back, ct.shape)

    def solve_jvp(self, tangents: Cotangents, x: Value, data: Value, transposed: bool) -> Value | None:
        change, right = tangents
        if change is not None:
            moved = self.times(change, x, transposed)
            right = -moved if right is None else right - moved
        return None if right is None else reshape(self.solve(data, right, transposed), (x.aval.size,))

    def _constant(self, like: Value, array: np.ndarray) -> Value:
        return like.builder.lift(array)

    def _places(self, like: Value) -> tuple[Value, Value]:
        return self._constant(like, self.indices), self._constant(like, self.indptr)

    def outer(self, u: Value, x: Value) -> Value:
        """``u[i] . x[j]`` for each element (i, j)."""
        return sparse_entries(x, *self._places(x), u)

    def times(self, data: Value, x: Value, transposed: bool) -> Value:
        """``A x``, or ``A.T x``."""
        if transposed:
            return sparse_rows(data, *self._places(x), x)
        return sparse_columns(data, *self._places(x), x, columns=self.n)

    # --- pivots --------------------------------------------------------------------------------------
    def pivots(self, data: Value) -> Value:
        """The diagonal of U."""
        code = self._code("pivots", lambda: Ruled(
            self.name, lambda d: self.factors(d).pivots, self.types(), self.n,
            lambda ct, y, d: (self._weighted(d, ct * y),),
            lambda tangents, y, d: None if tangents[0] is None else y * self._slopes(d, tangents[0])))
        return opaque(data, code=code)

    def _weighted(self, data: Value, weights: Value) -> Value:
        """`SparseFactors.weighted`, linear in the weights."""
        def vjp(ct: Value, y: Value, d: Value, w: Value) -> Cotangents:
            left, right = self._inverses(d)
            full = self._full(ct, transposed=True)                   # of Q U^-1 diag(w) L^-1 P
            scaled = contract(left, w, "kj,k->kj")
            of_right = contract(full, scaled, "ij,kj->ik")
            of_left = contract(contract(right, w, "ik,k->ik"), full, "ik,ij->kj")
            return self._from_inverses(left, right, of_left, of_right), self._slopes(d, ct)

        def jvp(tangents: Cotangents, y: Value, d: Value, w: Value) -> Value | None:
            change, moved = tangents
            total = None if moved is None else self._weighted(d, moved)
            if change is not None:
                left, right = self._inverses(d)
                m = self._between(left, change, right)
                low, up = self._halves(m)
                inner = contract(up, w, "ij,j->ij") + contract(low, w, "ij,i->ij")
                whole = contract(contract(right, inner, "ij,jk->ik"), left, "ik,kl->il")
                term = -self._at_places(whole, transposed=True)
                total = term if total is None else total + term
            return total
        code = self._code("weighted", lambda: Ruled(
            self.name, lambda d, w: self.factors(d).weighted(w), self.types((self.n,)), len(self.indices), vjp, jvp))
        return opaque(data, weights, code=code)

    def _slopes(self, data: Value, change: Value) -> Value:
        """`SparseFactors.slopes`, linear in the change: the transpose of `_weighted`."""
        def vjp(ct: Value, y: Value, d: Value, e: Value) -> Cotangents:
            left, right = self._inverses(d)
            full = self._full(e)
            of_left = contract(contract(full, right, "ij,jk->ik"), ct, "ik,k->ki")
            of_right = contract(contract(left, full, "ki,ij->kj"), ct, "kj,k->jk")
            return self._from_inverses(left, right, of_left, of_right), self._weighted(d, ct)

        def jvp(tangents: Cotangents, y: Value, d: Value, e: Value) -> Value | None:
            moved, other = tangents
            total = None if other is None else self._slopes(d, other)
            if moved is not None:
                left, right = self._inverses(d)
                m, own = self._between(left, moved, right), self._between(left, e, right)
                low, up = self._halves(m)
                term = -contract(low, own, "ij,ji->i") - contract(own, up, "ij,ji->i")
                total = term if total is None else total + term
            return total
        code = self._code("slopes", lambda: Ruled(
            self.name, lambda d, e: self.factors(d).slopes(e), self.types((len(self.indices),)), self.n, vjp, jvp))
        return opaque(data, change, code=code)

    # --- full matrices, for second derivatives ---------------------------------------------------------
    def _inverses(self, data: Value) -> tuple[Value, Value]:
        """``L^-1 P`` and ``Q U^-1``."""
        n = self.n

        def vjp(ct: Value, y: Value, d: Value) -> Cotangents:
            halves, cts = reshape(y, (2, n, n)), reshape(ct, (2, n, n))
            left, right, of_left, of_right = (_part(x, k) for x in (halves, cts) for k in (0, 1))
            return (self._from_inverses(left, right, of_left, of_right),)

        def jvp(tangents: Cotangents, y: Value, d: Value) -> Value | None:
            if tangents[0] is None:
                return None
            left, right = (_part(reshape(y, (2, n, n)), k) for k in (0, 1))
            low, up = self._halves(self._between(left, tangents[0], right))
            return _joined(-contract(low, left, "ij,jk->ik"), -contract(right, up, "ij,jk->ik"))
        code = self._code("inverses", lambda: Ruled(
            self.name, lambda d: np.stack(self.factors(d).inverses()), self.types(), 2 * n * n, vjp, jvp))
        both = reshape(opaque(data, code=code), (2, n, n))
        return _part(both, 0), _part(both, 1)

    def _from_inverses(self, left: Value, right: Value, of_left: Value, of_right: Value) -> Value:
        """The cotangent of the elements, from those of both inverses."""
        low, _ = self._halves(contract(of_left, left, "ij,kj->ik"))
        _, up = self._halves(contract(right, of_right, "ji,jk->ik"))
        m = -(low + up)
        return self._at_places(contract(contract(left, m, "ji,jk->ik"), right, "ij,kj->ik"))

    def _between(self, left: Value, change: Value, right: Value) -> Value:
        return contract(contract(left, self._full(change), "ij,jk->ik"), right, "ij,jk->ik")

    def _halves(self, m: Value) -> tuple[Value, Value]:
        """What lies below the diagonal, and the rest."""
        below = np.tril(np.ones((self.n, self.n)), -1)
        return m * self._constant(m, below), m * self._constant(m, 1.0 - below)

    def _full(self, data: Value, transposed: bool = False) -> Value:
        flat = self.columns * self.n + self.rows if transposed else self.rows * self.n + self.columns
        return reshape(scatter(data, self._constant(data, flat), axes=(0,), shape=(self.n * self.n,)), (self.n, self.n))

    def _at_places(self, full: Value, transposed: bool = False) -> Value:
        flat = self.columns * self.n + self.rows if transposed else self.rows * self.n + self.columns
        return gather(reshape(full, (self.n * self.n,)), self._constant(full, flat), axes=(0,))

    # --- the codes -------------------------------------------------------------------------------------
    def types(self, *shapes: tuple[int, ...]) -> list[Aval]:
        return [Aval(shape, FLOAT) for shape in ((len(self.indices),), *shapes)]

    def _code(self, key: Any, make: Callable[[], Ruled]) -> Ruled:
        if key not in self._codes:
            self._codes[key] = make()
        return self._codes[key]


def _part(both: Value, k: int) -> Value:
    return reshape(slice_dims(both, (slice(k, k + 1), slice(None), slice(None))), both.shape[1:])


def _joined(a: Value, b: Value) -> Value:
    return concatenate(*(reshape(x, (x.aval.size,)) for x in (a, b)), axis=0)
