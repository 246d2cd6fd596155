"""`Posterior.laplace`: random effects integrated out, the fixed parameters estimated."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitad.api.derivatives import jacobian
from jitad.constraints.joint import Call, chosen_values, flat_values_of, reported
from jitad.errors import SignatureError
from jitad.inference.estimate import Estimate, covariance_of, cut, delta_errors, minimised, newton, variances
from jitad.inference.given import Data, FreeVector, calling
from jitad.inference.marginal import Marginal, Mode, parts_of

STEP = 1e-4                  # of the differences of exact gradients that make the Hessian of the fixed parameters


class Laplace:
    """The marginal posterior of the fixed parameters, random effects integrated out by Laplace's approximation.

    ``laplace.log_likelihood(theta)`` and ``laplace.value_and_grad(theta)`` take the free vector of the fixed
    parameters, of shape ``(dim,)``; `names` has a name for each number of it.
    """

    def __init__(self, call: Call, free: FreeVector, data: Data, random: Sequence[str], jacobian: bool):
        unknown = [name for name in random if name not in free.shapes]
        if isinstance(random, str) or unknown or not random:
            raise SignatureError(f"random must be a list of names of parameters, of {', '.join(free.shapes)}; "
                                 f"not {random!r}")
        self.parts = parts_of(free.blocks, random)
        self.free, self.observed = free, data
        self.marginal = Marginal(call, self.parts, data.values, jacobian)
        self.dim = self.marginal.sizes[0]
        kinds = np.concatenate([np.full(b.end - b.begin, part.random) for b, part in zip(
            free.blocks, self.parts, strict=True)])
        self.names = [name for name, is_random in zip(free.names, kinds, strict=True) if not is_random]

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The marginal log-likelihood and its exact gradient, of shape ``(dim,)``. Raises `StartError` where the random
        effects have no mode."""
        return self.marginal.value_and_grad(self._vector(theta))

    def log_likelihood(self, theta: np.ndarray) -> float:
        return self.marginal.value(self._vector(theta))

    def _vector(self, theta: Any) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.dim,):
            raise SignatureError(f"the free vector of the fixed parameters has shape ({self.dim},), not {theta.shape}: "
                                 f"{', '.join(self.names)}")
        return theta

    def fit(self, start: np.ndarray | None = None) -> LaplaceFit:
        """The maximum of the marginal likelihood, with standard errors of the fixed parameters and predictions of the
        random effects.

        `start` is a free vector of the fixed parameters, zeros by default. Warns with `EstimateWarning` where the
        likelihood is flat.
        """
        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.marginal.value_and_grad(theta)
            return -value, -gradient

        def curvature(theta: np.ndarray) -> np.ndarray:
            steps = STEP * np.eye(self.dim) * (1 + abs(theta))
            rows = [(loss(theta + s)[1] - loss(theta - s)[1]) / (2 * s.sum()) for s in steps]
            return 0.5 * (np.array(rows) + np.array(rows).T)
        theta = np.zeros(self.dim) if start is None else self._vector(start)
        theta, matrix = newton(loss, curvature, minimised(loss, theta)) if self.dim else (theta, np.zeros((0, 0)))
        value, gradient = self.marginal.value_and_grad(theta)
        return LaplaceFit(self, theta, covariance_of(matrix, self.names), value, gradient)


class LaplaceFit(Estimate):
    """The fixed parameters at the maximum, as `Estimate` has them; `random` has the modes of the random effects by name
    and `random_errors` their standard errors, the uncertainty of the fixed parameters included."""

    def __init__(self, laplace: Laplace, theta: np.ndarray, covariance: np.ndarray, value: float, gradient: np.ndarray):
        self.laplace = laplace
        self.mode: Mode = laplace.marginal.mode(theta)
        fixed = chosen_values(laplace.parts, False)
        args = (theta, self.mode.b)
        super().__init__(fixed(*args), theta, covariance, value, gradient, delta_errors(fixed, args, covariance))
        self.random = chosen_values(laplace.parts, True)(*args)

    @cached_property
    def sensitivity(self) -> np.ndarray:
        """How the modes of the free random numbers change with the free fixed ones, of shape (random, fixed)."""
        return self.laplace.marginal.sensitivity(self.free, self.mode)

    @cached_property
    def random_errors(self) -> dict[str, np.ndarray]:
        """For effects of constraint `real`; the free numbers of others have theirs under ``name.free``."""
        pattern = self.mode.factor.pattern
        own = self.mode.factor.inverse()[pattern.diagonal]
        errors, found = np.sqrt(own + variances(self.sensitivity, self.covariance)), {}
        for part in self.laplace.parts:
            if part.random:
                plain = part.constraint.name == "real"
                found[part.name if plain else f"{part.name}.free"] = errors[part.begin:part.end].reshape(
                    part.constraint.shape if plain else (-1,))
        return found

    def report(self, function: Callable[..., Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """What a function gives at the estimate, a dict of arrays by name, each with its standard error by the delta
        method from the joint precision of fixed parameters and random effects. It is called as `logp` is."""
        laplace = self.laplace
        given = reported(laplace.parts, calling(function, "the function", laplace.free, laplace.observed))
        args = (self.free, self.mode.b, *laplace.observed.values)
        of_theta, of_b = jacobian(flat_values_of(given), (0, 1), on_mismatch="silent")(*args)
        total = of_theta + of_b @ self.sensitivity
        own = np.einsum("ij,ji->i", of_b, self.mode.factor.solve(np.ascontiguousarray(of_b.T)))
        values = given(*args)
        errors = cut(np.sqrt(variances(total, self.covariance) + own), values)
        return {name: (np.asarray(value), errors[name]) for name, value in values.items()}

    def __str__(self) -> str:
        lines = [super().__str__().replace("log density", "marginal log-likelihood", 1)]
        many = [f"{name} {np.shape(x)}" for name, x in self.random.items()]
        return "\n".join([*lines, f"integrated out: {', '.join(many)}"])
