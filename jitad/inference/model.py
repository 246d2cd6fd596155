"""`posterior`: a log density in plain NumPy, with constrained parameters and data, as one object to estimate from."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitad.api.batch import batch
from jitad.api.transforms import jit
from jitad.constraints.joint import constrained, density_of, likelihood_of, values_alone, values_of
from jitad.errors import SignatureError
from jitad.inference.check import PosteriorReport, report
from jitad.inference.density import NO_DENSITY, Density, require_number
from jitad.inference.draws import Draws, require_names
from jitad.inference.estimate import Estimate, covariance_of, delta_errors, density_curvature, maximised, newton
from jitad.inference.given import Data, FreeVector, Values, calling
from jitad.inference.normal import Normal
from jitad.inference.pathfinder import pathfound
from jitad.inference.starts import count_of, require_count
from jitad.inference.starts import starts as find_starts
from jitad.inference.trace import Trace, require_arviz

__all__ = ["Posterior", "posterior"]

Function = Callable[..., Any]


def posterior(logp: Function, parameters: Any, data: Any = (), *, log_likelihood: Function | None = None,
              generated: Function | None = None, dims: Mapping[str, Sequence[str]] | None = None,
              coords: Mapping[str, Sequence[Any]] | None = None) -> Posterior:
    """A posterior: a log density in plain NumPy, the constraints of its parameters, and its data.

    Parameters
    ----------
    logp
        The log density of the constrained values up to a constant, without any Jacobian: ``logp(values, *data)`` with
        a dict of arrays (Python numbers for the shape ()), or, where each parameter's name is the name of an argument,
        ``logp(mu=..., tau=..., y=...)`` by name.
    parameters
        A constraint of `jitad.constraints` for each name, in order: ``dict(mu=real(), tau=positive(), eta=real(8))``.
        With a dataclass or a named tuple of constraints `logp` gets one of values.
    data
        What `logp` takes besides: a tuple, or a dict by name. Copied when the density is compiled; what depends on data
        alone is computed once. `Posterior.with_data` has the same posterior with other data.
    log_likelihood
        Called as `logp`; gives the log-likelihood of each observation, an array or a dict of arrays, which `sample`
        stores in ArviZ's group of that name.
    generated
        Called as `logp`; gives a dict of further quantities to be stored with each draw.
    dims, coords
        Names of the dimensions of what is stored, and their labels, as in ArviZ.

    Returns
    -------
    Posterior

    Raises
    ------
    SignatureError
        For parameters, data or functions that do not fit together.
    OutputError
        If `logp` gives anything but one real number.

    Whatever else `logp` raises at its first call, which is an ordinary one in NumPy, is passed on; `ValueError` and
    `ArithmeticError` say that there is no density at that point.

    Examples
    --------
    >>> import numpy as np, jitad
    >>> from jitad.constraints import positive, real
    >>> def logp(p, y):
    ...     z = (y - p["mu"]) / p["tau"]
    ...     return -0.5 * np.sum(z * z) - y.size * np.log(p["tau"]) - p["tau"] - 0.5 * p["mu"] ** 2
    >>> post = jitad.posterior(logp, dict(mu=real(), tau=positive()), data=(np.array([1.2, 0.7, 2.1]),))
    >>> post.dim, post.names
    (2, ['mu', 'tau'])
    >>> u = post.unconstrain({"mu": 1.0, "tau": 2.0})
    >>> round(post.logp(u), 4), post.value_and_grad(u)[1].round(4)
    (-4.0538, array([-0.75 , -3.665]))
    >>> post.constrain([0.5, 0.0]), post.cfunc.address > 0, list(post.data)
    ({'mu': np.float64(0.5), 'tau': np.float64(1.0)}, True, ['y'])
    """
    return Posterior(logp, parameters, data, log_likelihood=log_likelihood, generated=generated, dims=dims,
                     coords=coords)


class Posterior:
    """Made by `posterior`. `dim` is the number of free numbers, `names` has a name for each, `shapes` the shapes of the
    values by name."""

    def __init__(self, logp: Function, parameters: Any, data: Any, **options: Any):
        self.given, self.options = (logp, parameters), options
        self.free, self.observed = FreeVector(parameters), Data(data)
        free = self.free
        require_names(list(free.shapes), "a parameter")
        self.dim, self.names, self.shapes = free.dim, free.names, free.shapes
        self.call = calling(logp, "logp", free, self.observed)
        further = {name: calling(options[name], name, free, self.observed)
                   for name in ("log_likelihood", "generated") if options.get(name) is not None}
        self.density = Density(density_of(self.call, free.blocks), free.blocks, self.observed.values)
        self.likelihood = likelihood_of(self.call, free.blocks)
        self.stored_function = values_of(free.blocks, further)
        self._require_number()

    def _require_number(self) -> None:
        """One ordinary call in NumPy, so that what is wrong with the arguments or the result is said at once."""
        try:
            with np.errstate(all="ignore"):
                found = self.likelihood(np.full(self.dim, 0.1), *self.observed.values)
        except NO_DENSITY:
            return
        require_number(found)

    # --- the density ---------------------------------------------------------------------------------------
    def logp(self, u: np.ndarray) -> float:
        """The log density at a free vector of shape ``(dim,)``, the log-Jacobian of the constraints included."""
        return self.value_and_grad(u)[0]

    def value_and_grad(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """`logp` and its gradient, of shape ``(dim,)``, from one sweep."""
        return self.density.value_and_grad(self._vector(u))

    @property
    def cfunc(self) -> Any:
        """`value_and_grad` as a C function, for samplers in other languages: see `CompiledTape.cfunc`."""
        return self.density.compile(np.full(self.dim, 0.1))

    def _vector(self, u: Any) -> np.ndarray:
        u = np.asarray(u, dtype=np.float64)
        if u.shape != (self.dim,):
            self.free.vector(u, "the argument")
        return u

    # --- from free vectors to values and back ------------------------------------------------------------------
    def constrain(self, u: np.ndarray) -> Values:
        """The values at a free vector, by name; at an array of them, of shape ``(..., dim)``, arrays of shape
        ``(..., *shape)``, all computed in one kernel."""
        u = np.asarray(u, dtype=np.float64)
        if u.ndim == 1:
            values = constrained(self.free.blocks, self._vector(u))[0]
        else:
            values = self.expanded(u)["posterior"]
        return values if self.free.make is None else self.free.make(**values)

    def unconstrain(self, values: Values) -> np.ndarray:
        """The free vector, of shape ``(dim,)``, of values by name.

        Raises `SignatureError` unless there is one for each parameter, `ConstraintError` for one outside of its set.
        """
        return self.free.of(values)

    def expanded(self, u: np.ndarray) -> dict[str, Any]:
        """What is stored of free vectors of shape ``(..., dim)``: a dict with the groups ``"posterior"`` and, as far as
        there are functions for them, ``"generated"`` and ``"log_likelihood"``."""
        lead = u.shape[:-1]
        if u.shape[-1:] != (self.dim,):
            raise SignatureError(f"free vectors have shape (..., {self.dim}), not {u.shape}")
        flat = np.ascontiguousarray(u.reshape(-1, self.dim), dtype=np.float64)
        found = self._batched(flat, *self.observed.values)
        return {group: _reshaped(values, lead, group) for group, values in found.items()}

    @cached_property
    def _batched(self) -> Any:
        axes = (0, *[None] * len(self.observed.values))
        return batch(jit(self.stored_function, on_mismatch="silent"), in_axes=axes)

    def stored(self, u: np.ndarray) -> dict[str, Any]:
        """The same of one free vector, by an ordinary call in NumPy."""
        return self.stored_function(u, *self.observed.values)

    @property
    def data(self) -> dict[str, np.ndarray]:
        """The numbers among the data, by the names that the data or the arguments of `logp` have."""
        return self.observed.named(self.given[0], self.free)

    # --- draws -----------------------------------------------------------------------------------------------------
    def sample(self, draws: int = 1000, *, tune: int = 1000, chains: int = 4, cores: int | None = None,
               seed: Any = None, start: Any = None, jitter: float | None = None, sampler: str = "nutpie",
               low_rank: bool = False, progress: bool = True, client: Any = None, **options: Any) -> Any:
        """Draws by NUTS as ArviZ's InferenceData, with the groups posterior (with what `generated` gives),
        log_likelihood, constant_data, sample_stats and warmup_sample_stats. ArviZ is imported when it is first looked
        at, or while chains run that take more than a second.

        Parameters
        ----------
        draws, tune
            How many draws each chain keeps, and how many it takes before to adapt.
        chains, cores
            How many chains, and how many of them run at once; by default as many as there are processors.
        seed
            An integer; the same one gives the same draws.
        start
            Where the chains begin: values of the parameters or a free vector, a list with one for each chain, or a
            function of a `numpy.random.Generator` that makes them. By default points are looked for whose free numbers
            are within 2 of zero.
        jitter
            Half the side of the cube around `start` in which a chain begins; 0 by default where `start` is given.
        sampler
            ``"nutpie"``.
        low_rank
            Adapt to correlations by a mass matrix of low rank.
        progress
            Show a line of progress on the error stream. An interrupt gives the chains that have ended, if any.
        client
            A `distributed.Client`, on whose workers the chains run, `cores` having no meaning. Draws are those of one
            machine with such a processor, however many workers there are; chains of lost workers are done again.
        options
            Others of nutpie: target_accept (0.9 by default), maxdepth, store_gradient, store_mass_matrix,
            store_divergences, ...

        Raises
        ------
        StartError
            Where no point to start from has a finite density: with the line and the parameters; for parameters that
            have no influence on the density.
        SignatureError
            For options that there are not, and names or labels that do not fit.
        SamplerError, ModuleNotFoundError
            Where the sampler stops; without nutpie or ArviZ.
        UnsupportedOperationError, TapeFileError, ClusterError
            With `client`: for densities with branches, and such that call Python; where workers differ or are gone.

        Warns
        -----
        SamplingWarning
            Of divergences, chains that do not agree, and others, with what to change.

        Examples
        --------
        >>> import numpy as np, jitad
        >>> from jitad.constraints import positive
        >>> post = jitad.posterior(lambda p: 2 * np.log(p["x"]) - p["x"], dict(x=positive()))
        >>> trace = post.sample(200, tune=200, chains=2, seed=1, progress=False)
        >>> trace.posterior["x"].shape, post.draws(200, tune=200, chains=2, seed=1)["x"].shape
        ((2, 200), (2, 200))
        """
        require_arviz()
        return Trace(self._drawn(draws, tune, chains, cores, seed, start, jitter, sampler, low_rank, progress, True,
                                 client, options))

    def draws(self, draws: int = 1000, *, tune: int = 1000, chains: int = 4, cores: int | None = None,
              seed: Any = None, start: Any = None, jitter: float | None = None, sampler: str = "nutpie",
              low_rank: bool = False, progress: bool = False, client: Any = None, **options: Any) -> Draws:
        """What `sample` draws, as NumPy arrays by name, without importing ArviZ, which takes longer than most models;
        ``draws.arviz()`` is the rest of the way. Arguments, errors and warnings as for `sample`."""
        return self._drawn(draws, tune, chains, cores, seed, start, jitter, sampler, low_rank, progress, False,
                           client, options)

    def _drawn(self, draws: int, tune: int, chains: int, cores: int | None, seed: Any, start: Any,
               jitter: float | None, sampler: str, low_rank: bool, progress: bool, arviz: bool, client: Any,
               options: Mapping[str, Any]) -> Draws:
        if sampler != "nutpie":
            raise SignatureError(f'sampler must be "nutpie", not {sampler!r}; `cfunc` and `value_and_grad` are there '
                                 "for others")
        from jitad.inference.sample import drawn

        return drawn(self, draws, tune, chains, cores, seed, start, jitter, low_rank, progress, arviz, client,
                     options)

    # --- modes, and what is made of them --------------------------------------------------------------------------
    def optimise(self, start: Any = None, *, starts: int = 4, seed: Any = 0, method: str = "L-BFGS-B",
                 jacobian: bool = False) -> Estimate:
        """The values at which `logp` is greatest, with standard errors from its Hessian.

        Parameters
        ----------
        start, starts, seed
            Where to begin, as for `sample`, a list or an array of shape ``(points, dim)`` of any length; by default, or
            by a function, at as many points as `starts` says. The best of what is reached counts.
        method
            ``"L-BFGS-B"``, ``"trust-exact"`` with Hessians, ``"trust-krylov"`` with products of the Hessian and
            vectors; Newton's method ends each.
        jacobian
            Whether the log-Jacobian of the constraints counts. Without it this is the maximum over the values, a
            maximum likelihood estimate if there are no priors; with it, over the free vector.

        Raises `StartError`, `SignatureError`; warns with `EstimateWarning` where the density is flat or not bounded.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import positive, real
        >>> def logp(mu, sigma, y):
        ...     return np.sum(-0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma))
        >>> y = np.array([1.0, 2.0, 3.0, 4.0])
        >>> print(jitad.posterior(logp, dict(mu=real(), sigma=positive()), data=(y,)).optimise())
        log density -2.4463
        mu              2.5  +- 0.559
        sigma       1.11803  +- 0.3953
        """
        density = self.density if jacobian else self.likelihood_density
        require_count("starts", starts)
        points = find_starts(density, self.free, start, None, count_of(start, starts), seed)
        u, curvature = newton(density.loss, density_curvature(density), maximised(density, points, method))
        covariance = covariance_of(curvature, self.names)
        errors = delta_errors(values_alone(self.free.blocks), (u,), covariance)
        return Estimate(self.constrain(u), u, covariance, density.at(u)[1:], errors, density.loss, self.free.blocks)

    @cached_property
    def likelihood_density(self) -> Density:
        """The density of the values, without the log-Jacobian."""
        return Density(self.likelihood, self.free.blocks, self.observed.values)

    def normal(self, start: Any = None, *, starts: int = 4, seed: Any = 0) -> Normal:
        """The normal distribution of the free vector at the mode of its density, with the inverse of the Hessian as
        covariance. Arguments as for `optimise`.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import real
        >>> post = jitad.posterior(lambda p: -0.5 * np.sum((p["x"] - 1) ** 2 / np.array([1.0, 4.0])), dict(x=real(2)))
        >>> approximation = post.normal()
        >>> approximation.mean.round(6), approximation.covariance.round(6)
        (array([1., 1.]), array([[1., 0.],
               [0., 4.]]))
        >>> approximation.draws(1000, seed=1)["x"].shape
        (1, 1000, 2)
        """
        mode = self.optimise(start, starts=starts, seed=seed, jacobian=True)
        return Normal(self, mode.free, mode.covariance, mode.value)

    def pathfinder(self, draws: int = 1000, *, paths: int = 4, seed: Any = None, start: Any = None) -> Draws:
        """Quick approximate draws, as one chain: of normal distributions along the ways of an optimiser from `paths`
        points, resampled by Pareto-smoothed importance weights. ``statistics["pareto_k"]`` above 0.7, of which a
        `SamplingWarning` speaks, says that they are good only to start from: ``post.sample(start=list(draws.free[0,
        :4]))``. `seed`, `start` and errors as for `sample`.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import positive
        >>> post = jitad.posterior(lambda p: 30 * np.log(p["x"]) - 10 * p["x"], dict(x=positive()))
        >>> draws = post.pathfinder(2000, seed=1)
        >>> bool(abs(draws["x"].mean() - 3.1) < 0.1), bool(draws.statistics["pareto_k"][0, 0] < 0.7)
        (True, True)
        """
        return pathfound(self, draws, paths, seed, start)

    def laplace(self, random: Sequence[str], *, jacobian: bool = False) -> Any:
        """The marginal likelihood of the other parameters, with the `random` ones integrated out by Laplace's
        approximation: at their mode, by the determinant of the sparse Hessian there.

        It is exact where the density is normal in the random effects. The log-Jacobian of the other parameters'
        constraints counts with `jacobian` only. Raises `SignatureError` for names that there are not.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import positive, real
        >>> def logp(mu, tau, b, y):                                   # four batches, three yields each
        ...     return (np.sum(-0.5 * (y - mu - b[:, None]) ** 2) - np.sum(0.5 * (b / tau) ** 2 + np.log(tau)))
        >>> y = np.array([[1.0, 2.0, 0.5], [4.0, 3.0, 5.0], [2.0, 2.5, 1.0], [6.0, 5.0, 7.0]])
        >>> fit = jitad.posterior(logp, dict(mu=real(), tau=positive(), b=real(4)), data=(y,)).laplace(["b"]).fit()
        >>> round(float(fit["mu"]), 4), round(float(fit["tau"] ** 2), 4)
        (3.25, 3.2847)
        """
        from jitad.inference.laplace.fit import Laplace  # which imports numba

        return Laplace(self, random, jacobian)

    # --- checks ---------------------------------------------------------------------------------------------------
    def check(self, values: Values | np.ndarray | None = None) -> PosteriorReport:
        """Check the posterior at values of the parameters (or a free vector): derivatives against differences, flat
        directions by the Hessian, parameters without influence. The report prints itself.

        Raises `StartError` where the density is not finite, with the parameter and the line; `CheckFailure` where the
        derivatives are wrong.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import real
        >>> print(jitad.posterior(lambda p: -(p["a"] + p["b"]) ** 2, dict(a=real(), b=real(), c=real())).check())
        log density -0.04; derivatives agree with differences
        no influence on the density: c
        flat: -0.71 a, +0.71 b
        flat: +1.00 c
        """
        u = np.full(self.dim, 0.1) if values is None else self.free.vector(values, "the point of the check")
        return report(self.density, self.likelihood, self.names, u)

    # --- the same with other data --------------------------------------------------------------------------------
    def with_data(self, *args: Any, **kwargs: Any) -> Posterior:
        """This posterior with other data: all of them in order, or some of them by name.

        Nothing is recorded again for data of the same shapes and types.

        >>> import numpy as np, jitad
        >>> from jitad.constraints import real
        >>> post = jitad.posterior(lambda p, y: -np.sum((y - p["mu"]) ** 2), dict(mu=real()), dict(y=np.zeros(3)))
        >>> post.with_data(y=np.ones(3)).logp(np.zeros(1))
        -3.0
        """
        return Posterior(*self.given, self.observed.changed(args, kwargs), **self.options)

    def __repr__(self) -> str:
        return f"<Posterior of {self.dim} free numbers: {', '.join(map(str, self._listed()))}>"

    def _listed(self) -> list[str]:
        return [f"{block.name} {block.constraint}" for block in self.free.blocks]


def _reshaped(values: Any, lead: tuple[int, ...], group: str) -> dict[str, np.ndarray]:
    if not isinstance(values, dict):
        values = {"y" if group == "log_likelihood" else group: values}
    return {name: np.asarray(x).reshape((*lead, *np.shape(x)[1:])) for name, x in values.items()}
