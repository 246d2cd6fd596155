"""Whether Laplace's approximation is good enough, by simulation: the score of the marginal likelihood at the parameters
with which data were made has mean zero if that likelihood is right (K. Kristensen et al., JSS 70, 2016, section 3)."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitad.errors import SignatureError
from jitad.inference.given import Data

Fit = Any                    # that of `jitad.inference.laplace.fit`, which imports this file
DOUBTFUL = 0.05              # chance of such a mean, below which the approximation is said to be biased


@dataclass(frozen=True)
class Consistency:
    """What `LaplaceFit.check` found: the mean gradient, the chance `p_value` of one as far from zero where the
    approximation is exact, and by how much the estimates are off then, `bias`, with its standard error."""

    names: tuple[str, ...]
    gradients: np.ndarray
    p_value: float
    bias: np.ndarray
    errors: np.ndarray

    def __str__(self) -> str:
        width = max(map(len, self.names))
        verdict = "no bias is seen" if self.p_value > DOUBTFUL else "the estimates are biased"
        head = f"{len(self.gradients)} simulations: {verdict} (p = {self.p_value:.3g}). Bias of the free numbers:"
        rows = zip(self.names, self.bias, self.errors, strict=True)
        return "\n".join([head, *(f"{name:<{width}}  {bias:>12.4g}  +- {error:.4g}" for name, bias, error in rows)])


def consistency(fit: Fit, simulate: Callable[..., Any], simulations: int, seed: Any) -> Consistency:
    """The report of data that `simulate` makes at the estimate."""
    from scipy.stats import f

    laplace, rng, found = fit.laplace, np.random.default_rng(seed), []
    for _ in range(simulations):
        found.append(laplace.marginal.with_data(_like(laplace.post.observed, simulate(rng, dict(
            fit.values)))).value_and_grad(fit.free)[1])
    gradients = np.array(found)
    n, dim = gradients.shape
    mean, spread = gradients.mean(axis=0), np.atleast_2d(np.cov(gradients.T))
    towards = np.linalg.solve(spread, mean)                   # Hotelling's test, and one step of scoring
    statistic = n * float(mean @ towards) * (n - dim) / (dim * (n - 1))
    errors = np.sqrt(np.diag(np.linalg.inv(spread)) / n)
    return Consistency(tuple(laplace.names), gradients, float(f.sf(statistic, dim, n - dim)), towards, errors)


def _like(observed: Data, given: Any) -> tuple[Any, ...]:
    """Simulated data in the order of those that are observed; raises `SignatureError` unless there are as many, with
    the same names and shapes."""
    data = Data(given)
    if data.names is not None and observed.names is not None and set(data.names) == set(observed.names):
        values = tuple(data.values[data.names.index(name)] for name in observed.names)
    elif data.names is None and observed.names is None and len(data.values) == len(observed.values):
        values = data.values
    else:
        raise SignatureError(f"simulate must give data as posterior took them: {_listed(observed)}; "
                             f"not {_listed(data)}")
    for new, old in zip(values, observed.values, strict=True):
        if np.shape(new) != np.shape(old):
            raise SignatureError(f"simulate gives data of shape {np.shape(new)} in the place of {np.shape(old)}")
    return values


def _listed(data: Data) -> str:
    return f"a dict with {', '.join(data.names)}" if data.names is not None else f"a tuple of {len(data.values)}"
