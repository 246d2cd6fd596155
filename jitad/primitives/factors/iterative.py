"""Sparse systems by SciPy's iterative solvers, and a few eigenvalues by ARPACK: called through Python, with rules.

A solution's derivatives are those of `SparseSystem`, by solutions of the same solver to a tight tolerance. A simple
eigenvalue of a symmetric matrix, with a vector v of length 1, and its vector change by

    dl = v^T dA v,      [A - l, v; v^T, 0] [dv; -dl] = [-dA v; 0]

(Magnus, On differentiating eigenvalues and eigenvectors, Econometric Theory 1, 1985), so that a cotangent of the vector
costs one factorization of this bordered matrix, and one of the value alone nothing.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.custom import opaque
from jitad.primitives.factors.sparse import Ruled, SparseSystem
from jitad.primitives.index import concatenate, reshape, scatter
from jitad.primitives.linear import Cotangents
from jitad.primitives.reduce import contract
from jitad.primitives.view import broadcast_to, slice_dims, transpose
from jitad.tape.builder import Value
from jitad.tape.types import Aval

__all__ = ["EigenPairs", "IterativeSystem", "Preconditioner"]

TIGHT = 1e-12            # the relative residual of a solution that is part of a derivative
SYMMETRIC = ("cg", "minres")
FLOAT = np.dtype(float)


def _csc(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n: int) -> Any:
    from scipy.sparse import csc_array

    return csc_array((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=(n, n))


def _first(x: Value, start: int, stop: int) -> Value:
    return slice_dims(x, (slice(start, stop),))


class Preconditioner:
    """A matrix whose elements are an operand, or, without `indices`, whatever SciPy takes."""

    def __init__(self, operator: Any = None, indices: Any = None, indptr: Any = None) -> None:
        self.operator, self.indices, self.indptr = operator, indices, indptr

    def of(self, data: np.ndarray, n: int, transposed: bool) -> Any:
        matrix = self.operator if self.indices is None else _csc(data, self.indices, self.indptr, n)
        return matrix.T if transposed and matrix is not None else matrix


class IterativeSystem(SparseSystem):
    """As `SparseSystem`, solved by SciPy's `solver`."""

    def __init__(self, n: int, indices: np.ndarray, indptr: np.ndarray, solver: str, options: dict[str, Any],
                 preconditioner: Preconditioner) -> None:
        super().__init__(n, indices, indptr, {}, f"scipy.sparse.linalg.{solver}")
        self.solver, self.given, self.preconditioner = solver, options, preconditioner
        self._parts: np.ndarray = np.zeros(0)

    def _run(self, data: np.ndarray, b: np.ndarray, parts: np.ndarray, transposed: bool,
             **options: Any) -> tuple[np.ndarray, int]:
        from scipy.sparse import linalg

        matrix, turned = _csc(data, self.indices, self.indptr, self.n), transposed and self.solver not in SYMMETRIC
        near = self.preconditioner.of(parts, self.n, turned)
        if near is not None:                             # `qmr` knows no M=
            options["M"] = near
        return getattr(linalg, self.solver)(matrix.T if turned else matrix, b, **options)      # type: ignore

    def found(self, data: Value, b: Value, start: Value, parts: Value) -> Value:
        """The solution for a vector, and, as the last element, what SciPy says of convergence."""
        n = self.n

        def serve(d: np.ndarray, right: np.ndarray, x0: np.ndarray, m: np.ndarray) -> np.ndarray:
            self._parts = parts = m.copy()               # for derivatives, of which it decides the speed alone
            x, info = self._run(d, right, parts, False, x0=x0.copy(), **self.given)
            return np.append(x, float(info))

        def vjp(ct: Value, y: Value, d: Value, *rest: Value) -> Cotangents:
            return (*self.solve_vjp(_first(ct, 0, n), _first(y, 0, n), d, False), None, None)

        def jvp(tangents: Cotangents, y: Value, d: Value, *rest: Value) -> Value | None:
            moved = self.solve_jvp(tangents[:2], _first(y, 0, n), d, False)
            return None if moved is None else concatenate(moved, y.builder.lift(np.zeros(1)), axis=0)
        code = Ruled(self.name, serve, [*self.types((n,), (n,)), Aval(parts.shape, FLOAT)], n + 1, vjp, jvp)
        return opaque(data, b, start, parts, code=code)

    def solved(self, data: np.ndarray, b: np.ndarray, transposed: bool) -> np.ndarray:
        tight = {k: v for k, v in self.given.items() if k not in ("rtol", "atol", "maxiter")}
        columns = []
        for right in b.reshape(self.n, -1).T:
            x, info = self._run(data, right, self._parts, transposed, rtol=TIGHT, **tight)
            columns.append(x if info == 0 else x * np.nan)
        return np.stack(columns, axis=1).reshape(b.shape)


class EigenPairs:
    """A few eigenvalues, and vectors, of symmetric matrices with elements at the same places in the order of CSC."""

    def __init__(self, n: int, indices: np.ndarray, indptr: np.ndarray, k: int, options: dict[str, Any]) -> None:
        self.n, self.k, self.options = n, k, options
        self.name = "scipy.sparse.linalg.eigsh"
        self.system = SparseSystem(n, indices, indptr, {}, self.name)
        self._last: tuple[np.ndarray, Any] | None = None
        self._bordered: tuple[SparseSystem, np.ndarray] | None = None
        types = self.system.types()
        self._values = Ruled(self.name, lambda d: self.pairs(d)[0], types, k, self._values_vjp, self._values_jvp)
        self._vectors = Ruled(self.name, lambda d: self.pairs(d)[1].reshape(-1), types, n * k, self._vectors_vjp,
                              self._vectors_jvp)

    def pairs(self, data: np.ndarray) -> Any:
        from scipy.sparse.linalg import eigsh

        last = self._last                                # of whatever thread
        if last is None or not np.array_equal(last[0], data):
            start = np.random.default_rng(0).normal(size=self.n)         # each call finds the same
            found = eigsh(_csc(data, self.system.indices, self.system.indptr, self.n), self.k, **{
                "v0": start, **self.options})
            self._last = last = data.copy(), found
        return last[1]

    def values(self, data: Value) -> Value:
        return opaque(data, code=self._values)

    def vectors(self, data: Value) -> Value:
        """In columns."""
        return reshape(opaque(data, code=self._vectors), (self.n, self.k))

    def _values_vjp(self, ct: Value, y: Value, d: Value) -> Cotangents:
        vectors = self.vectors(d)
        return (self.system.outer(contract(vectors, ct, "ik,k->ik"), vectors),)

    def _values_jvp(self, tangents: Cotangents, y: Value, d: Value) -> Value | None:
        if tangents[0] is None:
            return None
        vectors = self.vectors(d)
        return contract(vectors, self.system.times(tangents[0], vectors, False), "ik,ik->k")

    def _vectors_vjp(self, ct: Value, y: Value, d: Value) -> Cotangents:
        total: Value | None = None
        cts = reshape(ct, (self.n, self.k))
        for value, vector, j in self._each(d, y):
            z = self._moved(d, value, vector, _column(cts, j))
            term = self.system.outer(z, vector)
            total = term if total is None else total + term
        return (None if total is None else -total,)

    def _vectors_jvp(self, tangents: Cotangents, y: Value, d: Value) -> Value | None:
        if tangents[0] is None:
            return None
        rows = [reshape(self._moved(d, value, vector, -self.system.times(tangents[0], vector, False)), (1, self.n))
                for value, vector, _ in self._each(d, y)]
        return reshape(transpose(concatenate(*rows, axis=0), (1, 0)), (self.n * self.k,))

    def _each(self, d: Value, y: Value) -> Any:
        """Each value with its vector, and its number."""
        values, vectors = self.values(d), reshape(y, (self.n, self.k))
        return [(_first(values, j, j + 1), _column(vectors, j), j) for j in range(self.k)]

    def _moved(self, d: Value, value: Value, vector: Value, right: Value) -> Value:
        """The first n elements of the solution with the bordered matrix."""
        if self._bordered is None:
            self._bordered = self._border()
        system, places = self._bordered
        n, lift = self.n, d.builder.lift
        elements = concatenate(d, broadcast_to(-value, (n,)), vector, vector, axis=0)
        whole = scatter(elements, lift(places), axes=(0,), shape=(len(system.indices),))
        return _first(system.solve(whole, concatenate(right, lift(np.zeros(1)), axis=0)), 0, n)

    def _border(self) -> tuple[SparseSystem, np.ndarray]:
        """The bordered matrices, and where there the elements of the matrix, its diagonal and the borders are."""
        n, each, last = self.n, np.arange(self.n), np.full(self.n, self.n)
        rows = np.concatenate([self.system.rows, each, each, last])
        columns = np.concatenate([self.system.columns, each, last, each])
        keys, places = np.unique(columns * (n + 1) + rows, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys // (n + 1), minlength=n + 1))])
        return SparseSystem(n + 1, keys % (n + 1), starts, {}, self.name), places.reshape(-1)


def _column(x: Value, j: int) -> Value:
    return reshape(slice_dims(x, (slice(None), slice(j, j + 1))), (x.shape[0],))
