"""Modes with standard errors: by SciPy's optimisers, of a density or of a marginal likelihood."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.api.derivatives import hessian, hvp, jacobian
from jitad.call.messages import issue
from jitad.constraints.joint import ParameterBlock, flat_values_of
from jitad.errors import EstimateWarning, SignatureError
from jitad.inference.density import Density
from jitad.inference.given import free_names, labels
from jitad.inference.profile import mapped, profiled

METHODS = ("L-BFGS-B", "trust-exact", "trust-krylov")
POLISH = 30                  # steps of Newton's method after an optimiser, at most
MANY = 100                   # elements of a value that are no longer printed
DENSE = 300                  # free numbers up to which the Hessian is written out

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]         # (loss, gradient) of a free vector


class Estimate:
    """A mode: ``estimate["tau"]`` is a value; `free` the free vector, `covariance` the inverse of the negative Hessian
    there, `value` the log density or log-likelihood, `errors` the standard errors of the values by the delta method.
    `converged` says whether the gradient vanishes. Prints as a table."""

    def __init__(self, values: Mapping[str, Any], free: np.ndarray, covariance: np.ndarray, at: tuple[
            float, np.ndarray], errors: Mapping[str, np.ndarray], loss: Function, blocks: Sequence[ParameterBlock]):
        self.values, self.free, self.covariance = dict(values), free, covariance
        (self.value, self.gradient), self.errors = at, dict(errors)
        self.loss, self.blocks = loss, blocks
        gradient, value = self.gradient, self.value
        promised = 0.5 * gradient @ covariance @ gradient if len(gradient) else 0.0
        self.converged = bool(abs(promised) < 1e-6 * (1 + abs(value)))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def profile(self, names: Sequence[str] | str | None = None, *, level: float = 0.95) -> dict[str, np.ndarray]:
        """Intervals by the profile of the density: ``profile()["tau"]`` has shape ``(*shape, 2)``, the ends for each
        element, infinite or at the border of the set where the density never falls far enough. Unlike standard errors
        they need no symmetry, and do not change with the scale on which a parameter is measured.

        `names` are parameters, all by default. One whose elements are bound to each other (ordered, a simplex, bounds
        that are functions) has the intervals of its free numbers, under ``name.free``. They are NaN where there is no
        covariance. Raises `SignatureError` for names that there are not and levels outside of (0, 1); warns with
        `EstimateWarning` where a greater density is found, or the density ends.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import positive
        >>> post = jitad.posterior(lambda rate, y: np.sum(np.log(rate) - rate * y), dict(rate=positive()),
        ...                        data=(np.array([0.3, 1.2, 0.4, 2.0, 0.6]),))
        >>> post.optimise().profile()["rate"].round(3)
        array([0.398, 2.388])
        """
        wanted = [names] if isinstance(names, str) else names
        known = {block.name: block for block in self.blocks}
        unknown = [name for name in wanted or () if name not in known]
        if unknown or not 0.0 < level < 1.0:
            raise SignatureError(f"there is no parameter {unknown[0]!r}; there are {', '.join(known)}" if unknown else (
                f"level must lie between 0 and 1, not {level!r}"))
        found = {}
        for block in [known[name] for name in wanted] if wanted is not None else self.blocks:
            places = np.arange(block.begin, block.end)
            ends = profiled(self.loss, self.free, self.covariance, free_names(self.blocks), places, level)
            if block.constraint.separate:
                found[block.name] = mapped(block.constraint, self.free[places], ends)
            else:
                found[f"{block.name}.free"] = ends
        return found

    def __str__(self) -> str:
        lines = [f"log density {self.value:.4f}" + ("" if self.converged else "  (not converged)")]
        rows = [row for name, x in self.values.items() if np.size(x) <= MANY for row in zip(
            labels(name, np.shape(x)), np.ravel(x), np.ravel(self.errors[name]), strict=True)]
        width = max((len(label) for label, _, _ in rows), default=0)
        lines += [f"{label:<{width}}  {value:>12.6g}  +- {error:.4g}" for label, value, error in rows]
        return "\n".join(lines)


def maximised(density: Density, points: Sequence[np.ndarray], method: str) -> np.ndarray:
    """The best of the modes that are reached from these points. Raises `SignatureError` for an unknown method."""
    if method not in METHODS:
        raise SignatureError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    options: dict[str, Any] = {}
    if method == "trust-exact":
        curvature = hessian(density.function, on_mismatch="silent")
        options["hess"] = lambda u: -curvature(u, *density.data)
    elif method == "trust-krylov":
        product = hvp(density.function, on_mismatch="silent")
        options["hessp"] = lambda u, v: -product(u, *density.data, v)

    found = [minimised(density.loss, point, method, options) for point in points]
    return max(found, key=lambda u: density.at(u)[1])


def minimised(loss: Function, start: np.ndarray, method: str = "L-BFGS-B",
              options: Mapping[str, Any] | None = None) -> np.ndarray:
    """Where SciPy's optimiser ends: near enough for Newton's method."""
    from scipy.optimize import minimize

    stop = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-10, "gtol": 1e-5, "maxcor": 20} if (
        method == "L-BFGS-B") else {"gtol": 1e-8}
    return minimize(loss, start, jac=True, method=method, options=stop, **(options or {})).x


def newton(loss: Function, curvature: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> tuple[
        np.ndarray, np.ndarray]:
    """The point and the Hessian of the loss after steps of Newton's method that decrease the loss, as far as rounding
    allows."""
    value, gradient = loss(u)
    for _ in range(POLISH):
        matrix = curvature(u)
        try:
            np.linalg.cholesky(matrix)
            step = -np.linalg.solve(matrix, gradient)
        except np.linalg.LinAlgError:
            return u, matrix
        promised = -0.5 * float(gradient @ step)
        length = 1.0
        while length > 1e-4:
            there = u + length * step
            new, slope = loss(there)
            if new < value or (new <= value + 1e-12 * abs(value) and np.linalg.norm(slope) < np.linalg.norm(gradient)):
                u, value, gradient = there, new, slope
                break
            length *= 0.5
        if length <= 1e-4 or promised < 1e-14 * (1 + abs(value)):
            return u, matrix
    return u, curvature(u)


def density_curvature(density: Density) -> Callable[[np.ndarray], np.ndarray]:
    """Minus the Hessian of a log density, dense."""
    if density.dim <= DENSE:
        dense = hessian(density.function, on_mismatch="silent")
        return lambda u: -dense(u, *density.data)
    sparse = hessian(density.function, sparse=True, on_mismatch="silent")
    return lambda u: -sparse(u, *density.data).toarray()


def covariance_of(curvature: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The inverse of the Hessian of the loss; NaN, with an `EstimateWarning`, where that is not positive definite."""
    try:
        root = np.linalg.inv(np.linalg.cholesky(curvature))
        return root.T @ root
    except np.linalg.LinAlgError:
        scales, directions = np.linalg.eigh(np.where(np.isfinite(curvature), curvature, 0.0))
        worst = ", ".join(names[i] for i in np.argsort(-abs(directions[:, 0]))[:3])
        issue(f"the Hessian at the estimate is not positive definite (least curvature {scales[0]:.3g}, along {worst}): "
              "there are no standard errors. `Posterior.check` finds flat directions", EstimateWarning)
        return np.full(curvature.shape, math.nan)


def delta_errors(values: Callable[..., Any], args: tuple[Any, ...], covariance: np.ndarray) -> dict[
        str, np.ndarray]:
    """The standard errors of what ``values(*args)`` gives by name: sqrt(diag(J V J')) of its Jacobian J."""
    slopes = jacobian(flat_values_of(values), 0, on_mismatch="silent")(*args)
    return cut(np.sqrt(variances(slopes, covariance)), values(*args))


def variances(slopes: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Of what moves with numbers of this covariance by these slopes: the diagonal of J V J'."""
    return np.maximum(np.einsum("ij,jk,ik->i", slopes, covariance, slopes), 0.0)


def cut(flat: np.ndarray, like: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A vector as arrays by name, in the order and the shapes of `like`."""
    found, begin = {}, 0
    for name, value in like.items():
        found[name] = flat[begin:begin + np.size(value)].reshape(np.shape(value))
        begin += np.size(value)
    return found
