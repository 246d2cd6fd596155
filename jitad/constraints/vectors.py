"""Vectors whose elements are bound to each other. Definitions after the chapter "Constraint Transforms" of Stan's
reference manual: "Ordered vector", "Positive ordered vector", "Zero sum vector", "Unit simplex" (the isometric
log-ratio of version 2.37, and the stick-breaking of those before), "Stochastic Matrix", "Unit vector".
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitad.constraints.base import Constraint, Earlier, Number, Shape, natural, shape_of


class Ordered(Constraint):
    """x[0] = u[0], x[k] = x[k - 1] + exp(u[k])."""

    def __init__(self, shape: Shape):
        super().__init__("ordered", shape, math.prod(shape))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        free = u.reshape(self.shape)
        steps = free[..., 1:]
        return np.cumsum(np.concatenate([free[..., :1], np.exp(steps)], axis=-1), axis=-1), np.sum(steps)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = self.checked(value)
        steps = np.diff(x, axis=-1)
        self.require(steps > 0, "increasing", value)
        return np.concatenate([x[..., :1], np.log(steps)], axis=-1).ravel()


class PositiveOrdered(Constraint):
    """x[0] = exp(u[0]), x[k] = x[k - 1] + exp(u[k])."""

    def __init__(self, shape: Shape):
        super().__init__("positive_ordered", shape, math.prod(shape))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        return np.cumsum(np.exp(u.reshape(self.shape)), axis=-1), np.sum(u)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = self.checked(value)
        steps = np.diff(x, axis=-1, prepend=0.0)
        self.require(steps > 0, "positive and increasing", value)
        return np.log(steps).ravel()


class SumToZero(Constraint):
    """An orthonormal basis of the vectors that sum to zero: column n has 1 / sqrt(n (n + 1)) in its first n elements
    and -n / sqrt(n (n + 1)) in the next. Lengths are kept, so the log-Jacobian is 0."""

    def __init__(self, shape: Shape):
        super().__init__("sum_to_zero", shape, math.prod(shape[:-1]) * (shape[-1] - 1))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        return centred(u.reshape((*self.shape[:-1], self.shape[-1] - 1))), 0.0

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = self.checked(value)
        self.require(abs(x.sum(-1)) <= 1e-8 * (1 + abs(x).max(-1)), "of sum zero", value)
        return uncentred(x).ravel()


class Simplex(Constraint):
    """x = softmax(V u) with the basis V of `SumToZero`. The log-Jacobian, of the first K - 1 elements, is
    log(K) / 2 + the sum of log x. `by_columns`: the free numbers of a matrix lie column after column."""

    bounded = True

    def __init__(self, name: str, shape: Shape, by_columns: bool = False):
        super().__init__(name, shape, math.prod(shape[:-1]) * (shape[-1] - 1))
        self.by_columns = by_columns
        self.constant = 0.5 * math.prod(shape[:-1]) * math.log(shape[-1])

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        lead, k = self.shape[:-1], self.shape[-1]
        free = u.reshape((k - 1, *lead)).T if self.by_columns else u.reshape((*lead, k - 1))
        s = centred(free)
        top = np.max(s, axis=-1, keepdims=True)
        log_x = s - (top + np.log(np.sum(np.exp(s - top), axis=-1, keepdims=True)))
        return np.exp(log_x), np.sum(log_x) + self.constant

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = _simplex(self, value)
        free = uncentred(np.log(x))
        return free.T.ravel() if self.by_columns else free.ravel()


class StickBreaking(Constraint):
    """x[k] is a part z[k] = 1 / (1 + exp(log(K - 1 - k) - u[k])) of what x[:k] has left of 1, for k = 0, ..., K - 2."""

    bounded = True

    def __init__(self, shape: Shape):
        super().__init__("stick_breaking", shape, math.prod(shape[:-1]) * (shape[-1] - 1))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        k = self.shape[-1]
        y = u.reshape((*self.shape[:-1], k - 1)) - np.log(np.arange(k - 1.0, 0.0, -1.0))
        rest = -np.logaddexp(0.0, y)                             # log(1 - z)
        left = np.cumsum(rest, axis=-1)
        before = left - rest                                     # the log of what is left when z[k] is taken
        x = np.concatenate([np.exp(before + rest + y), np.exp(left[..., -1:])], axis=-1)
        return x, np.sum(before + rest + rest + y)               # log z = y + log(1 - z)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = _simplex(self, value)
        after = np.cumsum(x[..., ::-1], axis=-1)[..., -2::-1]    # the sum of the elements behind each
        return (np.log(x[..., :-1]) - np.log(after) + np.log(np.arange(self.shape[-1] - 1.0, 0.0, -1.0))).ravel()


class UnitVector(Constraint):
    """x = u / |u|, with K free numbers of which the length is normal: log-Jacobian -|u|^2 / 2. Undefined at u = 0."""

    bounded = True

    def __init__(self, shape: Shape):
        super().__init__("unit_vector", shape, math.prod(shape))

    def forward(self, u: Number, earlier: Earlier) -> tuple[Number, Number]:
        free = u.reshape(self.shape)
        squares = np.sum(free * free, axis=-1, keepdims=True)
        return free / np.sqrt(squares), -0.5 * np.sum(squares)

    def inverse(self, value: Any, earlier: Earlier) -> np.ndarray:
        x = self.checked(value)
        self.require(abs(np.sum(x * x, axis=-1) - 1) < 1e-8, "of length one", value)
        return x.ravel()


def centred(z: Number) -> Number:
    """V z along the last dimension: K - 1 numbers become K with sum zero."""
    n = np.arange(1.0, z.shape[-1] + 1.0)
    w = z / np.sqrt(n * (n + 1.0))
    zero = np.zeros((*z.shape[:-1], 1))
    behind = np.cumsum(w[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([behind, zero], axis=-1) - np.concatenate([zero, n * w], axis=-1)


def uncentred(s: Number) -> Number:
    """The transpose of V, which undoes it."""
    n = np.arange(1.0, s.shape[-1])
    return (np.cumsum(s, axis=-1)[..., :-1] - n * s[..., 1:]) / np.sqrt(n * (n + 1.0))


def _simplex(constraint: Constraint, value: Any) -> np.ndarray:
    x = constraint.checked(value)
    constraint.require((x > 0) & (abs(x.sum(-1, keepdims=True) - 1) < 1e-8), "positive with sum one", value)
    return x


# --- as users call them --------------------------------------------------------------------------------------

def ordered(k: int, batch: Any = ()) -> Constraint:
    """Vectors of `k` increasing numbers; `batch` is the shape of an array of them, ``ordered(3, batch=5)`` of (5, 3).

    >>> ordered(3).forward(np.zeros(3), {})[0]
    array([0., 1., 2.])
    """
    return Ordered(_vectors("ordered", k, batch, 1))


def positive_ordered(k: int, batch: Any = ()) -> Constraint:
    """Vectors of `k` positive increasing numbers; `batch` as for `ordered`.

    >>> positive_ordered(3).forward(np.zeros(3), {})[0]
    array([1., 2., 3.])
    """
    return PositiveOrdered(_vectors("positive_ordered", k, batch, 1))


def sum_to_zero(k: int, batch: Any = ()) -> Constraint:
    """Vectors of `k` numbers whose sum is zero, of `k` - 1 free ones; `batch` as for `ordered`. The map keeps lengths:
    independent standard normal free numbers give a vector whose elements have variance (k - 1) / k.

    >>> sum_to_zero(2).forward(np.sqrt([2.0]), {})[0].round(12)
    array([ 1., -1.])
    """
    return SumToZero(_vectors("sum_to_zero", k, batch, 1))


def simplex(k: int, batch: Any = ()) -> Constraint:
    """Vectors of `k` positive numbers whose sum is one, of `k` - 1 free ones, by the isometric log-ratio as in Stan
    since version 2.37; `batch` as for `ordered`. Stan's older map is `stick_breaking`.

    >>> simplex(4).forward(np.zeros(3), {})[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    return Simplex("simplex", _vectors("simplex", k, batch, 1))


def stick_breaking(k: int, batch: Any = ()) -> Constraint:
    """The set of `simplex` by the map of Stan before version 2.37: each element takes its part of what is left.

    >>> stick_breaking(4).forward(np.zeros(3), {})[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    return StickBreaking(_vectors("stick_breaking", k, batch, 1))


def stochastic_rows(n: int, k: int) -> Constraint:
    """Matrices of shape (n, k) whose rows are as `simplex` has them. As in Stan the free numbers, a matrix of shape
    (n, k - 1), lie column after column.

    >>> stochastic_rows(2, 2).forward(np.zeros(2), {})[0]
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return Simplex("stochastic_rows", (natural(n, "the number of rows"), natural(k, "the number of columns")), True)


def unit_vector(k: int, batch: Any = ()) -> Constraint:
    """Vectors of length one of `k` elements, k > 1, of `k` free numbers; `batch` as for `ordered`.

    >>> unit_vector(2).forward(np.array([3.0, 4.0]), {})[0]
    array([0.6, 0.8])
    """
    return UnitVector(_vectors("unit_vector", k, batch, 2))


def _vectors(name: str, k: Any, batch: Any, least: int) -> Shape:
    return (*shape_of((batch,), name), natural(k, f"the number of elements of {name}", least))
