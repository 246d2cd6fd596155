"""Positive definite and semidefinite matrices of multivariate distributions: determinants, and squares of points."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.primitives.linalg.failures import FAILS
from jitad.tape.types import TABLE
from jitad.trace.attempts import require_finite
from jitad.trace.dispatch import builder_in, stopped
from jitad.trace.scipy_rules.linalg import solve_triangular
from jitad.trace.scipy_rules.stats.family import LOG_2PI, where

SINGULAR = 1e6 * float(np.finfo(np.float64).eps)        # eigenvalues up to this, of the largest, are zero to SciPy


class PositiveMatrix:
    """Logarithm of the determinant of a positive definite matrix, and its square root at work."""

    def __init__(self, cov: Any, dim: int) -> None:
        require_finite(True, cov)
        if cov.ndim == 2:
            try:
                self.factor = np.linalg.cholesky(cov)
            except np.linalg.LinAlgError:                           # of numbers, or where the user would catch it
                raise refusal(np.linalg.eigvalsh(cov)) from None
            self.log_det = 2.0 * np.sum(np.log(np.diag(self.factor)))
            return
        if not np.all(cov > 0):
            raise refusal(cov)
        self.factor = np.broadcast_to(np.sqrt(cov), (dim,))         # plain: the diagonal
        self.log_det = 2.0 * np.sum(np.log(self.factor))

    def squares(self, dev: Any) -> Any:
        """``dev @ inv(cov) @ dev`` along the last axis."""
        if self.factor.ndim == 1:
            return np.sum(np.square(dev / self.factor), axis=-1)
        if dev.ndim == 1:
            return np.sum(np.square(solved(self.factor, dev)))
        lead = dev.shape[:-1]
        flat = dev.reshape(-1, dev.shape[-1])
        return np.sum(np.square(solved(self.factor, flat.T)), axis=0).reshape(lead)


def refusal(values: Any) -> Exception:
    """What SciPy raises for a matrix with such eigenvalues, not all of which are positive."""
    if np.min(values) < -1e6 * np.finfo(np.float64).eps * np.max(np.absolute(values)):
        return ValueError("The input matrix must be symmetric positive semidefinite.")
    return np.linalg.LinAlgError("When `allow_singular is False`, the input matrix must be symmetric positive "
                                 "definite.")


def solved(factor: Any, b: Any, trans: Any = "N") -> Any:
    """``inv(factor) @ b`` for a lower triangle, or that of its transpose."""
    if builder_in(factor, b):
        return solve_triangular(factor, b, trans=trans, lower=True, check_finite=False)
    return np.linalg.solve(factor if trans == "N" else factor.T, b)


class Semidefinite:
    """The same of a positive semidefinite matrix: pseudo-determinant and pseudoinverse over the eigenvalues that are
    above rounding, as SciPy has it.

    Derivatives are those among matrices of this rank, to any order. With P the projector on the null space, held fixed,
    ``A = cov + s P`` has a determinant, and ``W = s inv(A) P`` projects on the null space of what `cov` becomes; so
    det(A) is ``pdet(cov) s**k / det(I - P + W' W)``, and ``inv(A)`` is `pinv(cov)` between points of the support.
    """

    def __init__(self, cov: Any, dim: int) -> None:
        require_finite(True, cov)
        cov = cov if cov.ndim == 2 else cov * np.eye(dim)
        values, vectors = np.linalg.eigh(cov)
        top = np.max(np.absolute(values))
        self.eps = 1e9 * np.finfo(np.float64).eps * top
        if np.min(values) < -1e-3 * self.eps:
            raise refusal(values)
        top = np.where(top > 0.0, top, 1.0)
        null = values <= 1e-3 * self.eps
        self.null, top, self.rest = (stopped(v) if builder_in(v) is not None else v for v in (
            (vectors * null) @ vectors.T, top, np.sum(null)))
        self.full = PositiveMatrix(cov + top * self.null, dim)
        onto = solved(self.full.factor, solved(self.full.factor, top * self.null), "T")
        tilt = np.linalg.slogdet(np.eye(dim) - self.null + onto.T @ onto)[1]
        self.log_pdet = self.full.log_det + tilt - self.rest * np.log(top)
        self.log_det = self.log_pdet - self.rest * LOG_2PI
        self.cov = cov

    def off(self, dev: Any) -> Any:
        """Which points are off the support."""
        return (self.rest > 0) & (np.sqrt(np.sum(np.square(dev @ self.null), axis=-1)) >= self.eps)

    def squares(self, dev: Any) -> Any:
        """``dev @ pinv(cov) @ dev`` along the last axis, infinite off the support."""
        return where(self.off(dev), np.inf, self.full.squares(dev))

    def seen(self, dev: Any) -> Any:
        """The same of what of `dev` lies in the support."""
        inverse = np.linalg.pinv(self.cov, SINGULAR, hermitian=True)
        return np.sum(dev @ inverse * dev, axis=-1)


def is_definite(shape: Any) -> Any:
    """Whether no eigenvalue of the matrix is near `SINGULAR` times the largest, or less."""
    if shape.ndim < 2 or builder_in(shape) is None:
        return shape.ndim < 2 or np.min(values := np.linalg.eigvalsh(shape)) > SINGULAR * np.max(values)
    shifted = shape - SINGULAR * np.trace(shape) * np.eye(shape.shape[0])
    return ~FAILS[TABLE["cholesky"]](shifted, leading=0, caught=True)


__all__ = ["PositiveMatrix", "Semidefinite", "is_definite", "refusal", "solved"]
