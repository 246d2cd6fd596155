"""Profile intervals: how far a number may go until the density, greatest over all others, has fallen too far.

The deviance D is twice the fall from the maximum; an interval of a level ends where it is that quantile of the
chi-square distribution with one degree of freedom (D. J. Venzon, S. H. Moolgavkar, Applied Statistics 37, 1988). The
root of D, which is nearly straight, is followed outward and then bracketed.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitad.call.messages import issue
from jitad.errors import EstimateWarning

Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]
DOUBLINGS = 14               # of the distance, before an end is taken to be at infinity
FLAT = 1e-3                  # increase of D over a doubling below which it does not grow any more
NEAR = 1e-7                  # accuracy of an end, in standard errors
BETTER = 1e-4                # fall below the deviance of the estimate that says that this was no maximum


class ProfileLine:
    """The other free numbers at their best while number `i` moves by steps of its standard error. They are sought where
    the normal distribution at the estimate has them, in coordinates in which that is a standard one."""

    def __init__(self, loss: Loss, free: np.ndarray, covariance: np.ndarray, i: int, name: str):
        self.loss, self.free, self.i, self.name, self.best = loss, free, i, name, loss(free)[0]
        self.others = np.arange(len(free)) != i
        self.scale, self.slope = math.sqrt(covariance[i, i]), covariance[:, i] / covariance[i, i]
        rest = covariance - np.outer(self.slope, covariance[i])
        self.root = np.linalg.cholesky(rest[np.ix_(self.others, self.others)])
        self.last, self.lost, self.torn = np.zeros(len(free) - 1), 0.0, False

    def deviance(self, t: float) -> float:
        """D at `t` standard errors from the estimate; infinite where there is no density."""
        centre = self.free + t * self.scale * self.slope

        def shifted(v: np.ndarray) -> tuple[float, np.ndarray]:
            u = centre.copy()
            u[self.others] += self.root @ v
            value, gradient = self.loss(u)
            return value, self.root.T @ gradient[self.others]
        value = shifted(self.last)[0] if not self.last.size else self._least(shifted)
        deviance = 2 * (value - self.best)
        self.lost = min(self.lost, deviance)
        return max(deviance, 0.0)

    def _least(self, shifted: Loss) -> float:
        from scipy.optimize import minimize

        begin = min((self.last, np.zeros_like(self.last)), key=lambda v: shifted(v)[0])
        found = minimize(shifted, begin, jac=True, method="BFGS", options={"gtol": 1e-5})
        self.last = found.x
        return float(found.fun)

    def excess(self, t: float, z: float) -> float:
        """The root of D less z; z at most, so that where the density ends is no different from where it falls."""
        return min(math.sqrt(self.deviance(t)) - z, z)

    def end(self, side: int, z: float) -> float:
        """Where the free number ends on a side; infinite where D stays below z^2."""
        self.last = np.zeros_like(self.last)
        inside, below, t = 0.0, -z, z
        for _ in range(DOUBLINGS):
            found = self.excess(side * t, z)
            if found >= -NEAR * z:
                break
            if t > 6 * z and (z + found) ** 2 < (z + below) ** 2 + FLAT:
                return side * math.inf
            inside, below = t, found
            t *= 2.0 if found < -0.5 * z else min(2.0, 1.2 * z / (z + found))
        else:
            return side * math.inf
        return float(self.free[self.i] + side * self._root(side, z, (inside, below), (t, found)) * self.scale)

    def _root(self, side: int, z: float, inner: tuple[float, float], outer: tuple[float, float]) -> float:
        """Between two places with the excess there."""
        from scipy.optimize import brentq

        known = dict((inner, outer))

        def excess(t: float) -> float:
            found = known.get(t)
            if found is None:
                found = self.excess(side * t, z)
                known[t] = found = 0.0 if abs(found) <= NEAR * z else found
            return found
        if abs(outer[1]) <= NEAR * z:
            return outer[0]
        root = float(brentq(excess, inner[0], outer[0], xtol=0.1 * NEAR * outer[0]))
        above = min((t for t, found in known.items() if t >= root and found > 0), default=None)
        self.torn |= known.get(root, 1.0) != 0 and above is not None and known[above] >= z   # no density beyond
        return root


def profiled(loss: Loss, free: np.ndarray, covariance: np.ndarray, names: list[str], wanted: np.ndarray,
             level: float) -> np.ndarray:
    """The ends of the intervals of the free numbers with these places, of shape (len(wanted), 2); NaN where the
    covariance is not known."""
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + 0.5 * level))
    if not np.isfinite(covariance).all():
        return np.full((len(wanted), 2), math.nan)
    lines = [ProfileLine(loss, free, covariance, int(i), names[i]) for i in wanted]
    found = np.array([[line.end(-1, z), line.end(1, z)] for line in lines]).reshape(-1, 2)
    worst = min(lines, key=lambda line: line.lost, default=None)
    if worst is not None and worst.lost < -BETTER:
        issue(f"the density is greater by {-0.5 * worst.lost:.3g} on the profile of {worst.name} than at the estimate, "
              "which is only a local maximum: give another `start`, or more `starts`", EstimateWarning)
    torn = [line.name for line in lines if line.torn]
    if torn:
        issue(f"the intervals of {', '.join(torn)} end where the density does (it raises, or is not finite beyond); "
              "they may reach further along that border", EstimateWarning)
    return found


def mapped(constraint: Any, free: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The ends in the values of a parameter, of shape (*shape, 2), for a constraint that holds element by element."""
    found = np.empty((len(free), 2))
    with np.errstate(all="ignore"):
        for j in range(len(free)):
            for side in range(2):
                moved = free.copy()
                moved[j] = ends[j, side]
                found[j, side] = np.ravel(constraint.forward(moved, {})[0])[j]
    return np.sort(found, axis=1).reshape((*constraint.shape, 2))
