"""Laplace's approximation of a marginal likelihood, with its exact gradient.

With g(theta, b) minus the log density, b^ its minimum over the n random numbers and H the Hessian there,
L(theta) = -g(theta, b^) + n log(2 pi) / 2 - log det H / 2. Its derivative has that of b^ by the implicit function
theorem and that of the determinant, tr(H^-1 dH), of which only the elements of H^-1 at the places of H are needed: they
weigh the columns of H that are computed together (H. Skaug, D. Fournier, CSDA 51, 2006; K. Kristensen et al., JSS 70,
2016).
"""
from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.api.derivatives import hvp, value_gradient_and_hessian
from jitad.api.transforms import jit, jit_grad
from jitad.api.vjp_jvp import jvp
from jitad.constraints.joint import Call, Stretch, along, loss_of, moved, weighted
from jitad.errors import StartError
from jitad.inference.density import FAR, NO_DENSITY
from jitad.inference.laplace.sparse import Factor, SparsePattern
from jitad.passes.sparsity.colours import single, star

STEPS, HALVINGS = 200, 40
SMALL = 1e-10                # decrease that Newton's method promises: below, one more step is exact to rounding
TINY, NEAR = 1e-18, 1e-2     # the same for steps by the factor of a point before: these are exact; these are tried
MANY = 1000                  # random numbers from which a factor takes longer than what saves one


class Mode(NamedTuple):
    """The random numbers at their mode, the loss there, and the factor of the Hessian."""

    b: np.ndarray
    loss: float
    factor: Factor


class Marginal:
    """The marginal log-likelihood of the fixed free numbers. `value_and_grad` keeps the last mode to begin with."""

    def __init__(self, call: Call, parts: tuple[Stretch, ...], data: tuple[Any, ...], jacobian: bool):
        self.data = data
        self.sizes = tuple(sum(p.end - p.begin for p in parts if p.random is kind) for kind in (False, True))
        self.joint = loss_of(call, parts, jacobian)
        silent: dict[str, Any] = {"on_mismatch": "silent"}
        self._newton = value_gradient_and_hessian(self.joint, 1, sparse=True, **silent)
        self._joint_value = jit(self.joint, **silent)
        slope = jit_grad(self.joint, 1, **silent)
        self._curvature = jit_grad(weighted(hvp(self.joint, 1, **silent)), (0, 1), **silent)
        self._moved = jit_grad(moved(self.joint, slope), 0, **silent)
        self._along = jit(along(slope, jvp), **silent)
        self.pattern: SparsePattern | None = None
        self.raw: Any = None
        self.seen: Any = None                                # the last Hessian, whose places are known
        self.last: tuple[np.ndarray, Mode] | None = None     # of the last fixed numbers

    def with_data(self, data: tuple[Any, ...]) -> Marginal:
        """The same with other data. Nothing is compiled again for data of the same shapes and types."""
        found = copy.copy(self)
        found.data, found.last = data, None
        return found

    def loss(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the value and the gradient; FAR where the random effects have no mode."""
        try:
            value, gradient = self.value_and_grad(theta)
        except StartError:
            return FAR, np.zeros(len(theta))
        fine = math.isfinite(value) and np.isfinite(gradient).all()
        return (-value, -gradient) if fine else (FAR, np.zeros(len(theta)))

    # --- the mode --------------------------------------------------------------------------------------------
    def mode(self, theta: np.ndarray) -> Mode:
        """The mode of the random numbers, by Newton's method with halved steps. Near it, the factor of a Hessian before
        serves as long as each step promises a thousandth of the one before. Raises `StartError` where there is none."""
        b, state, factor = self._start(theta)
        fresh, before = factor is None, math.inf
        for _ in range(STEPS):
            value, gradient, hessian = state
            if factor is None:
                factor, fresh = self._factor(hessian), True
            step = -factor.solve(gradient)
            promised = -0.5 * float(gradient @ step)
            there, moved = b, None
            if fresh or promised <= min(NEAR, 1e-3 * before):
                there, moved = self._moved_along(theta, b, step, value, promised)
            if moved is None and not fresh:
                factor = None
                continue
            b, state = there, moved
            if promised <= (SMALL if fresh else TINY) or state is None:
                break
            before, fresh, factor = promised, False, factor if promised <= NEAR else None
        value, _, hessian = state if state is not None else self._at(theta, b)  # type: ignore[misc]
        last = self._exact(hessian)
        if last is None or promised > 1e-6 * (1 + abs(value)):
            raise StartError(f"the random effects have no mode that Newton's method finds in {STEPS} steps; is the "
                             "density bounded in each of them? `Posterior.check` finds flat directions")
        mode = Mode(b, value, last)
        self.last = theta.copy(), mode
        return mode

    def _start(self, theta: np.ndarray) -> tuple[np.ndarray, Any, Factor | None]:
        """Where Newton's method begins, the state there, and a factor to try: the last mode, moved as far as the fixed
        numbers have by the derivative of the mode, or zeros."""
        points: list[tuple[np.ndarray, Factor | None]] = [(np.zeros(self.sizes[1]), None)]
        if self.last is not None:
            known, mode = self.last
            points.insert(0, (mode.b, None))
            if self.sizes[1] >= MANY and abs(theta - known).max(initial=0.0) < 0.5:
                slope = mode.factor.solve(self._along(known, mode.b, theta - known, *self.data))
                points.insert(0, (mode.b - slope, mode.factor))
        for b, factor in points:
            state = self._at(theta, b)
            if state is not None:
                return b, state, factor
        raise StartError("the density is not finite where the mode of the random effects is looked for first: "
                         f"{self._why(theta, points[0][0])}")

    def _moved_along(self, theta: np.ndarray, b: np.ndarray, step: np.ndarray, value: float,
                     promised: float) -> tuple[np.ndarray, Any]:
        """The first of the halved steps that decreases the loss, and the state there; None where none does."""
        length = 1.0
        for _ in range(HALVINGS):
            there = b + length * step
            state = self._at(theta, there)
            if state is not None and state[0] <= value - 1e-4 * length * promised + 1e-12 * abs(value):
                return there, state
            length *= 0.5
        return b, None

    def _at(self, theta: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, Any] | None:
        """Value, gradient and Hessian; None where they are not finite."""
        try:
            value, gradient, hessian = self._newton(theta, b, *self.data)
        except NO_DENSITY:
            return None
        fine = math.isfinite(value) and np.isfinite(gradient).all() and np.isfinite(hessian.data).all()
        return (value, gradient, hessian) if fine else None

    def _why(self, theta: np.ndarray, b: np.ndarray) -> str:
        try:
            jit_grad(self.joint, (0, 1), on_mismatch="silent").check_finite(theta, b, *self.data)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "a second derivative is not finite"

    def _elements(self, hessian: Any) -> np.ndarray:
        """The elements in the order of the pattern, which is made anew where the matrix has other places."""
        if hessian is not self.seen and (self.raw is None or not _same_places(self.raw, hessian)):
            numbered = hessian.copy()
            numbered.data = np.arange(1.0, hessian.nnz + 1)
            whole = _whole(numbered)
            self.raw, self.source = hessian, whole.data.astype(np.int64) - 1
            self.pattern = SparsePattern(whole)
            self._colour(whole)
        self.seen = hessian
        return np.append(hessian.data, 0.0)[self.source] if len(self.source) > hessian.nnz else hessian.data

    def _exact(self, hessian: Any) -> Factor | None:
        return self.pattern_of(hessian).factor(self._elements(hessian))

    def pattern_of(self, hessian: Any) -> SparsePattern:
        self._elements(hessian)
        assert self.pattern is not None
        return self.pattern

    def _factor(self, hessian: Any) -> Factor:
        """The factor of the Hessian, with as much added to its diagonal as makes it positive definite."""
        data, pattern, added = self._elements(hessian), self.pattern_of(hessian), 0.0
        factor, least = pattern.factor(data), 0.0
        while factor is None:
            least = least or 1e-6 * max(float(abs(data[pattern.diagonal]).max(initial=0.0)), 1e-8)
            added = max(least, 4 * added)
            raised = data.copy()
            raised[pattern.diagonal] += added
            factor = pattern.factor(raised)
        return factor

    def log_joint(self, theta: np.ndarray, b: np.ndarray) -> float:
        """The log density of both; minus infinity where there is none."""
        try:
            value = float(self._joint_value(theta, b, *self.data))
        except NO_DENSITY:
            return -math.inf
        return -value if math.isfinite(value) else -math.inf

    # --- the marginal likelihood --------------------------------------------------------------------------------
    def value(self, theta: np.ndarray) -> float:
        mode = self.mode(theta)
        return self._value(mode)

    def _value(self, mode: Mode) -> float:
        return -mode.loss + 0.5 * (self.sizes[1] * math.log(2 * math.pi) - mode.factor.logdet())

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        mode = self.mode(theta)
        of_theta, of_b = np.zeros(self.sizes[0]), np.zeros(self.sizes[1])
        weights = np.zeros(self.seeds.shape)
        weights.ravel()[:] = np.bincount(self.places, mode.factor.inverse(), weights.size)
        for seed, weight in zip(self.seeds, weights, strict=True):
            first, second = self._curvature(theta, mode.b, seed, weight, *self.data)
            of_theta += 0.5 * first
            of_b += 0.5 * second
        x = mode.factor.solve(of_b)
        return self._value(mode), -(self._moved(theta, mode.b, x, *self.data) + of_theta)

    def _colour(self, hessian: Any) -> None:
        """Which columns of the Hessian are computed together, and at which place of the result each element is."""
        table = hessian.astype(bool)
        colours, n = star(table), self.sizes[1]
        rows, columns = np.repeat(np.arange(n), np.diff(table.indptr)), table.indices.astype(np.int64)
        alone = single(table, colours)
        here, there = colours[columns] * n + rows, colours[rows] * n + columns
        self.places = np.where(alone, here, there)
        self.seeds = (np.arange(int(colours.max()) + 1)[:, None] == colours).astype(np.float64)

    def sensitivity(self, theta: np.ndarray, mode: Mode) -> np.ndarray:
        """The derivative of the mode, of shape (random, fixed): -H^-1 times the mixed second derivatives."""
        columns = [self._along(theta, mode.b, direction, *self.data) for direction in np.eye(self.sizes[0])]
        return -mode.factor.solve(np.stack(columns, axis=1)) if columns else np.zeros((self.sizes[1], 0))


def _same_places(one: Any, other: Any) -> bool:
    return np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)


def _whole(hessian: Any) -> Any:
    """The matrix with all of its diagonal."""
    from scipy.sparse import csr_array

    n = hessian.shape[0]
    rows = np.repeat(np.arange(n), np.diff(hessian.indptr))
    if np.count_nonzero(rows == hessian.indices) == n:
        return hessian
    whole = csr_array((np.r_[hessian.data, np.zeros(n)], (np.r_[rows, np.arange(n)], np.r_[hessian.indices, np.arange(
        n)])), shape=(n, n))
    whole.sum_duplicates()
    whole.sort_indices()
    return whole


def parts_of(blocks: Any, random: Sequence[str]) -> tuple[Stretch, ...]:
    """The parameters in order, those with the names `random` to be integrated over, each with its place
    among the fixed or among the random free numbers."""
    ends, found = {False: 0, True: 0}, []
    for block in blocks:
        kind, size = block.name in random, block.end - block.begin
        found.append(Stretch(block.name, block.constraint, kind, ends[kind], ends[kind] + size))
        ends[kind] += size
    return tuple(found)
