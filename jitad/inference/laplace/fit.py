"""`Posterior.laplace`: random effects integrated out, the fixed parameters estimated."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitad.api.derivatives import jacobian
from jitad.constraints.joint import ParameterBlock, chosen_values, flat_values_of, reported
from jitad.errors import SignatureError, StartError
from jitad.inference.draws import Draws
from jitad.inference.estimate import Estimate, covariance_of, cut, delta_errors, minimised, newton, variances
from jitad.inference.given import FreeVector, calling, free_names
from jitad.inference.importance import PROPOSALS, Integral, integral, of_free, resampled
from jitad.inference.laplace.consistency import Consistency, consistency
from jitad.inference.laplace.marginal import Marginal, Mode, parts_of
from jitad.inference.laplace.nested import nested_draws
from jitad.inference.starts import require_count
from jitad.inference.trace import Trace, require_arviz

Posterior = Any              # that of `jitad.inference.model`, which imports this file
STEP = 1e-4                  # of the differences of exact gradients that make the Hessian of the fixed parameters


class Laplace:
    """The marginal posterior of the fixed parameters, random effects integrated out by Laplace's approximation.

    ``laplace.log_likelihood(theta)`` and ``laplace.value_and_grad(theta)`` take the free vector of the fixed
    parameters, of shape ``(dim,)``, or their values by name; `names` has a name for each number of it.
    """

    def __init__(self, post: Posterior, random: Sequence[str], jacobian: bool):
        free = post.free
        unknown = [name for name in random if name not in free.shapes]
        if isinstance(random, str) or unknown or not random:
            raise SignatureError(f"random must be a list of names of parameters, of {', '.join(free.shapes)}; "
                                 f"not {random!r}")
        self.post, self.jacobian, self.parts = post, jacobian, parts_of(free.blocks, random)
        if all(part.begin == part.end for part in self.parts if part.random):
            raise SignatureError(f"the random effects {', '.join(random)} have no elements; without them there is "
                                 "nothing to integrate out: estimate by post.optimise()")
        self.marginal = Marginal(post.call, self.parts, post.observed.values, jacobian)
        self.dim = self.marginal.sizes[0]
        self.blocks = tuple(ParameterBlock(p.name, p.constraint, p.begin, p.end) for p in self.parts if not p.random)
        self.names = free_names(self.blocks)
        self.is_random = np.concatenate([np.full(b.end - b.begin, part.random) for b, part in zip(
            free.blocks, self.parts, strict=True)])

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The marginal log-likelihood and its exact gradient, of shape ``(dim,)``. Raises `StartError` where the random
        effects have no mode."""
        return self.marginal.value_and_grad(self._vector(theta))

    def log_likelihood(self, theta: np.ndarray) -> float:
        return self.marginal.value(self._vector(theta))

    def importance(self, theta: np.ndarray, draws: int = 1000, *, seed: Any = 0) -> Integral:
        """The marginal log-likelihood by importance sampling around the mode of the random effects, with its standard
        error and Pareto's k: what Laplace's approximation lacks, as long as k is below 0.7.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import real
        >>> def logp(m, b, y):                         # a binary outcome for each of three
        ...     return np.sum(y * (m + b) - np.logaddexp(0.0, m + b)) - np.sum(0.5 * b**2 + 0.5 * np.log(2 * np.pi))
        >>> post = jitad.posterior(logp, dict(m=real(), b=real(3)), data=(np.array([1.0, 0.0, 1.0]),))
        >>> laplace = post.laplace(["b"])
        >>> theta = np.zeros(1)
        >>> round(laplace.log_likelihood(theta), 3), round(laplace.importance(theta, 20_000).log, 2)   # 3 log(1/2)
        (-2.102, -2.08)
        """
        require_count("draws", draws)
        theta, rng = self._vector(theta), np.random.default_rng(seed)
        mode = self.marginal.mode(theta)
        return integral(np.array([self._log_ratio(theta, mode, rng)[1] for _ in range(draws)]))

    def _log_ratio(self, theta: np.ndarray, mode: Mode, rng: np.random.Generator) -> tuple[Any, float]:
        """A draw of the random numbers by the normal distribution at their mode, and the log of the density over that
        of the draw."""
        z = rng.normal(size=self.marginal.sizes[1])
        b = mode.b + mode.factor.spread(z)
        drawn = 0.5 * (mode.factor.logdet() - z @ z - len(z) * math.log(2 * math.pi))
        return b, self.marginal.log_joint(theta, b) - float(drawn)

    def whole(self, theta: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The free vector of all parameters."""
        u = np.empty(self.is_random.size)
        u[~self.is_random], u[self.is_random] = theta, b
        return u

    def _vector(self, theta: Any) -> np.ndarray:
        if isinstance(theta, dict) and self.blocks:
            return FreeVector({block.name: block.constraint for block in self.blocks}).of(theta)
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.dim,):
            raise SignatureError(f"the free vector of the fixed parameters has shape ({self.dim},), not {theta.shape}: "
                                 f"{', '.join(self.names)}")
        return theta

    def fit(self, start: Any = None) -> LaplaceFit:
        """The maximum of the marginal likelihood, with standard errors of the fixed parameters and predictions of the
        random effects.

        `start` is a free vector of the fixed parameters, zeros by default, or their values by name. Raises `StartError`
        where the random effects have no mode there; warns with `EstimateWarning` where the likelihood is flat.
        """
        theta = np.zeros(self.dim) if start is None else self._vector(start)
        self.marginal.value(theta)                           # what is wrong there is said
        matrix, loss = np.zeros((0, 0)), self.marginal.loss
        if self.dim:
            theta, matrix = newton(loss, self._curvature, minimised(loss, theta))
        return LaplaceFit(self, theta, covariance_of(matrix, self.names), self.marginal.value_and_grad(theta))

    def _curvature(self, theta: np.ndarray) -> np.ndarray:
        loss, steps = self.marginal.loss, STEP * np.eye(self.dim) * (1 + abs(theta))
        rows = np.array([(loss(theta + s)[1] - loss(theta - s)[1]) / (2 * s.sum()) for s in steps])
        return 0.5 * (rows + rows.T)

    def draws(self, draws: int = 1000, *, tune: int = 1000, chains: int = 4, cores: int | None = None,
              seed: Any = None, start: Any = None, jitter: float | None = None, low_rank: bool = False,
              progress: bool = False, **options: Any) -> Draws:
        """Draws of all parameters: the fixed ones by NUTS on their marginal density, with the log-Jacobian of their
        constraints, and for each of these draws the random ones by the normal distribution at their mode.

        A chain then walks in the few dimensions of the fixed parameters, where random effects and their scales make no
        funnel. Arguments, errors and warnings as for `Posterior.draws`; points to start from are those of the fixed
        parameters.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import positive, real
        >>> def logp(mu, tau, b, y):
        ...     return (np.sum(-0.5 * (y - mu - b[:, None]) ** 2) - np.sum(0.5 * (b / tau) ** 2 + np.log(tau))
        ...             - 0.5 * tau - 0.02 * mu**2)
        >>> y = np.array([[1.0, 2.0, 0.5], [4.0, 3.0, 5.0], [2.0, 2.5, 1.0], [6.0, 5.0, 7.0]])
        >>> laplace = jitad.posterior(logp, dict(mu=real(), tau=positive(), b=real(4)), data=(y,)).laplace(["b"])
        >>> draws = laplace.draws(100, tune=100, chains=2, seed=1)
        >>> draws["b"].shape, draws["tau"].shape
        ((2, 100, 4), (2, 100))
        """
        chain = {"draws": draws, "tune": tune, "chains": chains, "cores": cores, "seed": seed, "start": start,
                 "jitter": jitter, "low_rank": low_rank, "progress": progress}
        return nested_draws(self, chain, options)

    def sample(self, draws: int = 1000, *, progress: bool = True, **options: Any) -> Any:
        """What `draws` gives, as ArviZ's InferenceData, with the groups of `Posterior.sample`."""
        require_arviz()
        return Trace(self.draws(draws, progress=progress, **options))


class LaplaceFit(Estimate):
    """The fixed parameters at the maximum, as `Estimate` has them; `random` has the modes of the random effects by name
    and `random_errors` their standard errors, the uncertainty of the fixed parameters included."""

    def __init__(self, laplace: Laplace, theta: np.ndarray, covariance: np.ndarray, at: tuple[float, np.ndarray]):
        self.laplace = laplace
        self.mode: Mode = laplace.marginal.mode(theta)
        fixed = chosen_values(laplace.parts, False)
        args = (theta, self.mode.b)
        super().__init__(fixed(*args), theta, covariance, at, delta_errors(fixed, args, covariance),
                         laplace.marginal.loss, laplace.blocks)
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
        laplace, post = self.laplace, self.laplace.post
        given = reported(laplace.parts, calling(function, "the function", post.free, post.observed))
        args = (self.free, self.mode.b, *post.observed.values)
        of_theta, of_b = jacobian(flat_values_of(given), (0, 1), on_mismatch="silent")(*args)
        total = of_theta + of_b @ self.sensitivity
        own = np.einsum("ij,ji->i", of_b, self.mode.factor.solve(np.ascontiguousarray(of_b.T)))
        values = given(*args)
        errors = cut(np.sqrt(variances(total, self.covariance) + own), values)
        return {name: (np.asarray(value), errors[name]) for name, value in values.items()}

    def draws(self, draws: int = 1000, *, seed: Any = None, importance: bool = False) -> Draws:
        """Independent draws of all parameters, as one chain: fixed ones by the normal distribution at the estimate,
        random ones by that at their mode for these. With `importance` they are resampled so that they are draws of the
        posterior (the log-Jacobian of the constraints included), as far as ``statistics["pareto_k"]`` is below 0.7.

        Raises `numpy.linalg.LinAlgError` where there is no covariance; warns with `SamplingWarning` of a larger k.
        """
        require_count("draws", draws)
        laplace, rng, free, logs = self.laplace, np.random.default_rng(seed), [], []
        root = np.linalg.cholesky(self.covariance)
        constant = np.sum(np.log(np.diag(root))) + 0.5 * laplace.dim * math.log(2 * math.pi)
        for _ in range(PROPOSALS * draws if importance else draws):
            z = rng.normal(size=laplace.dim)
            theta = self.free + root @ z
            try:
                b, ratio = laplace._log_ratio(theta, laplace.marginal.mode(theta), rng)
            except StartError:
                if not importance:
                    raise
                continue
            free.append(laplace.whole(theta, b))
            logs.append(ratio + 0.5 * z @ z + constant)
        us = np.array(free)
        if not importance:
            return of_free(laplace.post, us[None])
        return resampled(laplace.post, us, np.array(logs), draws, rng, "the draws of Laplace's approximation")

    def check(self, simulate: Callable[..., Any], *, simulations: int = 100, seed: Any = 0) -> Consistency:
        """Is Laplace's approximation good enough for this model? Data are simulated at the estimate, and the gradient
        of the marginal likelihood there is averaged over them: it has mean zero if the approximation is exact.

        ``simulate(rng, values)`` gets a `numpy.random.Generator` and the fixed parameters by name, draws random effects
        and data, and gives the data in the form in which `posterior` took them. The density must have no priors on the
        fixed parameters. Raises `SignatureError` for data that do not fit.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import real
        >>> def logp(mu, b, y):
        ...     return np.sum(-0.5 * (y - mu - b) ** 2) - np.sum(0.5 * b**2)
        >>> post = jitad.posterior(logp, dict(mu=real(), b=real(5)), data=(np.array([1.0, 2.0, 0.0, 3.0, 1.0]),))
        >>> fit = post.laplace(["b"]).fit()
        >>> report = fit.check(lambda rng, p: (p["mu"] + rng.normal(size=5) + rng.normal(size=5),), simulations=50)
        >>> bool(report.p_value > 0.01)                        # normal random effects: it is exact
        True
        """
        require_count("simulations", simulations, self.laplace.dim + 2)
        return consistency(self, simulate, simulations, seed)

    def __str__(self) -> str:
        lines = [super().__str__().replace("log density", "marginal log-likelihood", 1)]
        many = [f"{name} {np.shape(x)}" for name, x in self.random.items()]
        return "\n".join([*lines, f"integrated out: {', '.join(many)}"])
