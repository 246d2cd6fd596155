"""Steps along a stiff differential equation: the method Radau IIA of order 5.

Three stages are the solution of a system of equations, by Newton's iteration with the Jacobian at the step's start,
which is that of the recorded function; the error is that of an embedded formula of order 3, the control of steps as
Hairer and Wanner have it (Solving Ordinary Differential Equations II, section IV.8), and SciPy. The coefficients follow
from the collocation at the points `C`. In derivatives the stages are the solution of their system, by the implicit
function theorem: how many iterations found it does not matter.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.trace.dispatch import stopped
from jitad.trace.scipy_rules.classes import lifted
from jitad.trace.scipy_rules.solvers.callbacks import SolverCallback, floats, implicit, repeat
from jitad.trace.scipy_rules.solvers.steps import Attempt, Steps, norm

__all__ = ["Equations", "Radau"]

ROOT = 6**0.5
C = np.array([(4 - ROOT) / 10, (4 + ROOT) / 10, 1.0])
POWERS = C ** np.arange(1, 4)[:, None]                                # of each point, a row for each power
A = (POWERS / np.arange(1, 4)[:, None]).T @ np.linalg.inv(C[:, None] ** np.arange(3))
P = np.linalg.inv(POWERS)                                             # polynomials of the stages
E = np.array([-13 - 7 * ROOT, -13 + 7 * ROOT, -1.0]) / 3
MU = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)                                  # the real eigenvalue of the inverse of A
ITERATIONS = 6


def _eigenvectors() -> np.ndarray:
    """The inverse of the real eigenvectors of A, each with 1 as its last element: SciPy's norms are in this basis."""
    values, vectors = np.linalg.eig(A)
    vectors = vectors / vectors[2]
    real, pair = int(np.argmin(np.abs(values.imag))), int(np.argmax(values.imag))
    return np.linalg.inv(np.stack([vectors[:, real].real, vectors[:, pair].real, vectors[:, pair].imag], axis=1))


BASIS = _eigenvectors()


class Equations(SolverCallback):
    """A function of a solver's own, whose calls of the user's functions see to their branches."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function, (), name)

    def __call__(self, *points: Any, first: bool = True) -> Any:
        return floats(self.function(*points))


class Radau(Steps):
    """The method of three stages; `method` is not used."""

    @property
    def order(self) -> int:
        return 3

    def kept(self, t: Any, y: Any, size: Any) -> list[Any]:
        """The polynomial of the last step, its state and time and size; sizes and error that predict the next; whether
        the step before was rejected for its error."""
        zero = floats(0.0)
        return [np.broadcast_to(y[:, None] * 0.0, (y.shape[0], 3)), y, t, zero, size, zero, zero, floats(0.0) != 0.0]

    def _stages(self, t: Any, y: Any, h: Any, z: Any) -> Any:
        """What must be zero of the stages' changes."""
        slopes = np.stack([self.slope(t + float(c) * h, y + z[i]) for i, c in enumerate(C)])
        return z - h * (A @ slopes)

    def _iterated(self, t: Any, y: Any, h: Any, first: Any, jacobian: Any) -> tuple[Any, Any, Any, Any]:
        """The stages, whether the iteration converged, how many steps it took, and how fast it was."""
        n = y.shape[0]
        scale = self.atol + np.abs(y) * self.rtol
        coupled = (A[:, None, :, None] * jacobian[None, :, None, :]).reshape((3 * n, 3 * n))
        inverse = floats(np.linalg.inv(np.eye(3 * n) - h * coupled))
        tolerance = np.maximum(10 * np.finfo(float).eps / self.rtol, np.minimum(0.03, np.sqrt(self.rtol)))

        def step(k: Any, z: Any, before: Any, rate: Any, found: Any) -> tuple[Any, list[Any]]:
            left = self._stages(t, y, h, z)
            move = -(inverse @ left.reshape(-1)).reshape((3, n))
            size = norm((BASIS @ move / scale).reshape(-1))
            rate = np.where(k > 0, size / np.where(before > 0, before, 1.0), 0.0)
            ahead = rate / (1 - rate) * size
            bad = ~np.all(np.isfinite(left)) | ((k > 0) & (
                (rate >= 1) | (rate ** (ITERATIONS - k) / (1 - rate) * size > tolerance)))
            found = ~bad & ((size == 0) | ((k > 0) & (ahead < tolerance)))
            return ~bad & ~found & (k + 1 < ITERATIONS), [k + 1, np.where(bad, z, z + move), size, rate, found]

        zero = floats(0.0)
        k, z, _, rate, found = repeat(zero == 0.0, [lifted(0), first, zero, zero, zero != 0.0], step)
        return z, found, k, rate

    def attempt(self, t: Any, y: Any, f: Any, h: Any, again: Any, kept: list[Any]) -> Attempt:
        q, y_before, t_before, h_before, proposed, size_before, error_before, rejected = kept
        proposed = np.where(again, proposed, np.abs(h))
        name, n = self.function.name, y.shape[0]
        jacobian = stopped(Equations(lambda v: self.slope(t, v), name).jacobian(y))
        share = ((t + h * C - t_before) / np.where(h_before == 0, 1.0, h_before))[:, None]
        guess = y_before + np.concatenate([share, share**2, share**3], axis=1) @ q.T - y
        z, found, k, rate = self._iterated(t, y, h, np.where(h_before == 0, 0.0, guess), jacobian)
        stages = Equations(lambda flat: self._stages(t, y, h, flat.reshape((3, n))).reshape(-1), name)
        z = implicit(stages, z.reshape(-1), 0).reshape((3, n))
        new = y + z[2]
        error = self._estimated(t, y, f, h, z, new, jacobian, rejected)
        good = found & (error <= 1)
        many = (k > 2) & (rate > 1e-3)
        safety = 0.9 * (2 * ITERATIONS + 1) / (2 * ITERATIONS + k)
        known = (error_before > 0) & (error > 0)
        trend = np.where(known, np.abs(h) / np.where(size_before > 0, size_before, 1.0)
                         * (error_before / np.where(error > 0, error, 1.0)) ** 0.25, 1.0)
        power = safety * np.minimum(1.0, trend) * np.where(error > 0, error, 1e-30) ** -0.25
        grow = np.minimum(10.0, power)
        grow = np.where(~many & (grow < 1.2), 1.0, grow)
        size = np.abs(h) * np.where(good, grow, np.where(found, np.maximum(0.2, power), 0.5))
        slope, whole = self.slope(t + h, new), z.T @ P

        def between(x: Any) -> Any:
            x = x[:, None]
            return y + np.concatenate([x, x**2, x**3], axis=1) @ whole.T
        once = [stopped(v) for v in (whole, y, t, h)]
        return Attempt(good, new, slope, stopped(size), between, [
            *((True, v) for v in once), (False, proposed), (True, stopped(proposed)), (True, error),
            (False, (rejected | (found & ~good)) & ~good)])

    def _estimated(self, t: Any, y: Any, f: Any, h: Any, z: Any, new: Any, jacobian: Any, rejected: Any) -> Any:
        """The size of the error in units of the tolerances; asked twice where the step before was rejected."""
        matrix = MU / h * np.eye(y.shape[0]) - jacobian
        other = z.T @ E / h
        solved = lambda right: floats(np.linalg.solve(matrix, right))
        scale = self.atol + np.maximum(np.abs(y), np.abs(new)) * self.rtol
        first = solved(f + other)
        once = norm(first / scale)
        twice = norm(solved(self.slope(t, y + first) + other) / scale)
        return stopped(np.where(rejected & (once > 1), twice, once))
