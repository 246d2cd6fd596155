"""Factorizations of small matrices whose elements are scalar expressions, as straight-line code."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitad.compile.loops import STATUS_LINALG, Return, Statement
from jitad.tape.expr import Expr, call, const, select
from jitad.tape.types import TABLE, Primitive


class Matrices:
    """Each method takes and gives arrays of expressions; `name` makes a variable of one."""

    def __init__(self, statements: list[Statement], name: Callable[..., Expr]):
        self.statements, self.name = statements, name

    def require(self, condition: Expr) -> None:
        self.statements.append(Return(condition, STATUS_LINALG))

    def cholesky(self, a: np.ndarray, upper: bool = False) -> np.ndarray:
        a, n = a.T if upper else a, len(a)
        result = np.full((n, n), const(0.0), object)
        for j in range(n):
            pivot = self._minus(a[j, j], [(result[j, k], result[j, k]) for k in range(j)])
            self.require(pivot > 0.0)
            result[j, j] = self.name(call("sqrt", pivot))
            inverse = self.name(1.0 / result[j, j])
            for i in range(j + 1, n):
                below = self._minus(a[i, j], [(result[i, k], result[j, k]) for k in range(j)])
                result[i, j] = self.name(below * inverse)
        return result

    def cholesky_inverse(self, factor: np.ndarray) -> np.ndarray:
        lower = self.solve_triangular(factor, self._eye(len(factor)), lower=True, trans=False, unit=False)
        return self._product(lower.T, lower)

    def cholesky_cotangent(self, factor: np.ndarray, ct: np.ndarray) -> np.ndarray:
        """``sym(L^-T P(L^T ct) L^-1)``, see `jitad.primitives.linalg.cholesky`."""
        n = len(factor)
        middle = np.full((n, n), const(0.0), object)
        for i in range(n):
            for j in range(i + 1):
                total = self.name(_sum([factor[k, i] * ct[k, j] for k in range(i, n)]))
                middle[i, j] = self.name(total * 0.5) if i == j else total
        left = self.solve_triangular(factor, middle, lower=True, trans=True, unit=False)
        both = self.solve_triangular(factor, left.T, lower=True, trans=True, unit=False)
        for i in range(n):
            for j in range(i):
                both[i, j] = both[j, i] = self.name((both[i, j] + both[j, i]) * 0.5)
        return both

    def _product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = np.empty((len(a), b.shape[1]), object)
        for i, j in np.ndindex(result.shape):
            result[i, j] = self.name(_sum([a[i, k] * b[k, j] for k in range(len(b))]))
        return result

    @staticmethod
    def _eye(n: int) -> np.ndarray:
        eye = np.full((n, n), const(0.0), object)
        np.fill_diagonal(eye, const(1.0))
        return eye

    def _minus(self, x: Expr, products: list[tuple[Expr, Expr]]) -> Expr:
        for a, b in products:
            x = x - a * b
        return self.name(x)

    def solve_triangular(self, a: np.ndarray, b: np.ndarray, lower: bool, trans: bool, unit: bool) -> np.ndarray:
        matrix = a.T if trans else a
        n, forwards = len(a), lower != trans
        x = np.empty(b.shape, object)
        inverses = [None if unit else self.name(1.0 / matrix[i, i]) for i in range(n)]
        if not unit:
            for i in range(n):
                self.require(matrix[i, i].ne(0.0))
        for i in range(n) if forwards else reversed(range(n)):
            done = range(i) if forwards else range(i + 1, n)
            for k in range(b.shape[1]):
                rest = self._minus(b[i, k], [(matrix[i, j], x[j, k]) for j in done])
                x[i, k] = rest if unit else self.name(rest * inverses[i])
        return x

    def solve(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        pivots, _, upper, right = self._eliminated(a, b)
        for pivot in pivots:
            self.require(pivot.ne(0.0))
        return self._back(upper, right, [self.name(1.0 / p) for p in pivots])

    def inv(self, a: np.ndarray, strict: bool = True) -> np.ndarray:
        return self.solve(a, self._eye(len(a)))

    def det(self, a: np.ndarray) -> np.ndarray:
        pivots, sign, _, _ = self._eliminated(a, np.empty((len(a), 0), object))
        for pivot in pivots:
            sign = sign * pivot
        return np.array(sign, object)

    def slogdet_log(self, a: np.ndarray) -> np.ndarray:
        pivots, _, _, _ = self._eliminated(a, np.empty((len(a), 0), object))
        logs = [call("log", abs(p)) for p in pivots]
        total = logs[0]
        for term in logs[1:]:
            total = total + term
        return np.array(total, object)

    def slogdet_sign(self, a: np.ndarray) -> np.ndarray:
        pivots, sign, _, _ = self._eliminated(a, np.empty((len(a), 0), object))
        for p in pivots:
            sign = sign * select(p > 0.0, const(1.0), select(p < 0.0, const(-1.0), p))
        return np.array(sign, object)

    def _eliminated(self, a: np.ndarray, b: np.ndarray) -> tuple[list[Expr], Expr, np.ndarray, np.ndarray]:
        """Pivots, sign, triangle and right side of Gaussian elimination; the largest element of a column becomes its
        pivot by exchanges of rows that are selections."""
        n, rows, sign = len(a), np.concatenate([a, b], 1), const(1.0)
        pivots: list[Expr] = []
        for j in range(n):
            for i in range(j + 1, n):
                larger = self.name(abs(rows[i, j]) > abs(rows[j, j]))
                for k in range(j, rows.shape[1]):
                    up, down = rows[i, k], rows[j, k]
                    rows[j, k] = self.name(select(larger, up, down))
                    rows[i, k] = self.name(select(larger, down, up))
                sign = self.name(select(larger, -sign, sign))
            pivots.append(rows[j, j])
            inverse = self.name(select(pivots[-1].eq(0.0), const(0.0), 1.0 / pivots[-1]))
            for i in range(j + 1, n):
                factor = self.name(rows[i, j] * inverse)
                for k in range(j + 1, rows.shape[1]):
                    rows[i, k] = self.name(rows[i, k] - factor * rows[j, k])
        return pivots, sign, rows[:, :n], rows[:, n:]

    def _back(self, upper: np.ndarray, b: np.ndarray, inverses: list[Expr]) -> np.ndarray:
        x = np.empty(b.shape, object)
        for i in reversed(range(len(b))):
            for k in range(b.shape[1]):
                x[i, k] = self.name(self._minus(b[i, k], [(upper[i, j], x[j, k]) for j in range(i + 1, len(b))])
                                    * inverses[i])
        return x


def _sum(terms: list[Expr]) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


STRAIGHT: dict[Primitive, Callable[..., np.ndarray]] = {TABLE[name]: getattr(Matrices, name) for name in (
    "cholesky", "cholesky_cotangent", "cholesky_inverse", "solve_triangular", "inv", "solve", "det", "slogdet_log",
    "slogdet_sign")}
