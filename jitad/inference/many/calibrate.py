"""`calibrate`: whether what a posterior says is right on the average over its own prior.

If parameters are drawn from the prior and data by them, the rank of each parameter among its draws is uniform
(S. Talts, M. Betancourt, D. Simpson, A. Vehtari, A. Gelman, arXiv:1804.06788, 2018).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitad.errors import ArgumentTypeError, SignatureError, StartError
from jitad.inference.given import labels
from jitad.inference.many.datasets import checked_sets
from jitad.inference.many.draws import draws_of_each
from jitad.inference.starts import require_count

Posterior = Any              # that of `jitad.inference.model`
KEPT = 99                    # draws of each fit, far enough from each other to be taken for independent
BINS = (20, 10, 5, 4, 2)     # which divide the ranks evenly
LEAST = 5                    # simulations that are expected in a bin


def calibrate(post: Posterior, simulate: Callable[[np.random.Generator], tuple[Any, Any]], *, simulations: int = 200,
              client: Any = None, seed: Any = 0, **options: Any) -> Calibration:
    """Simulation-based calibration: fits to data that are simulated with known parameters.

    Parameters
    ----------
    post
        A `jitad.posterior`; its own data only show what data look like.
    simulate
        ``simulate(rng) -> (values, data)``: the parameters drawn from the prior by a `numpy.random.Generator`, as a
        dict by name, and data drawn by them, as `Posterior.with_data` takes them.
    simulations
        How many times; a hundred show gross faults.
    client, seed, options
        As for `fit_many` with ``method="sample"``.

    Returns
    -------
    Calibration
        `ranks` by name, and their histograms by `plot`.

    Raises what `fit_many` does; `ArgumentTypeError` unless `simulate` gives a pair; `StartError` if no fit succeeds.

    Examples
    --------
    >>> import numpy as np, jitad
    >>> from jitad.constraints import real
    >>> def logp(mu, y):
    ...     return -0.5 * mu**2 - 0.5 * np.sum((y - mu) ** 2)
    >>> def simulate(rng):
    ...     mu = rng.normal()
    ...     return {"mu": mu}, mu + rng.normal(size=4)
    >>> post = jitad.posterior(logp, dict(mu=real()), data=(np.zeros(4),))
    >>> found = jitad.calibrate(post, simulate, simulations=20, chains=1, draws=200, tune=200)
    >>> found.ranks["mu"].shape, bool(found.p_values()["mu"] > 0.001)
    ((20,), True)
    >>> figure = found.plot()                                          # by matplotlib
    """
    require_count("simulations", simulations)
    truths, data = [], []
    for own in np.random.SeedSequence(seed).spawn(simulations):
        given = simulate(np.random.default_rng(own))
        if not isinstance(given, tuple) or len(given) != 2:
            raise ArgumentTypeError("simulate must give a pair, the values of the parameters and the data, not "
                                    f"{type(given).__name__}")
        post.unconstrain(given[0])                           # what is wrong with the values is said here
        truths.append(post.free.values(given[0]))
        data.append(given[1])
    ranks = {name: np.full((simulations, *shape), -1) for name, shape in post.shapes.items()}
    problems: dict[int, str] = {}
    for number, draws, words in draws_of_each(post, checked_sets(post, data), client, seed, options):
        if words:
            problems[number] = words
        if draws is None:
            continue
        for name in post.shapes:
            pooled = draws[name].reshape(-1, *post.shapes[name])
            if len(pooled) < KEPT:
                raise SignatureError(f"calibration needs {KEPT} draws of each fit, and chains have {len(pooled)}")
            places = np.linspace(0, len(pooled) - 1, KEPT).astype(int)
            ranks[name][number] = np.sum(pooled[places] < truths[number][name], axis=0)
    fine = [n for n in range(simulations) if all((r[n] >= 0).all() for r in ranks.values())]
    if not fine:
        raise StartError(f"none of {simulations} fits gave draws: {problems[0]}")
    return Calibration({name: found[fine] for name, found in ranks.items()}, simulations, problems)


class Calibration:
    """Made by `calibrate`. `ranks` has arrays by name, of shape ``(simulations, *shape)``, of ranks from 0 to 99;
    `problems` says by number of the simulation which fits failed, and so have no ranks, or are not to be trusted."""

    def __init__(self, ranks: Mapping[str, np.ndarray], simulations: int, problems: Mapping[int, str]):
        self.ranks, self.simulations, self.problems = dict(ranks), simulations, dict(sorted(problems.items()))
        self.used = len(next(iter(self.ranks.values())))
        self.bins = next((bins for bins in BINS if self.used >= LEAST * bins), BINS[-1])

    def p_values(self) -> dict[str, np.ndarray]:
        """How probable histograms at least as uneven are if all is right, by the chi-square test, for each element."""
        from scipy.stats import chi2

        expected = self.used / self.bins
        return {name: chi2.sf(np.sum((self._counts(found) - expected) ** 2, axis=0) / expected, self.bins - 1)
                for name, found in self.ranks.items()}

    def _counts(self, found: np.ndarray) -> np.ndarray:
        """How many ranks are in each bin, of shape (bins, *shape)."""
        bins = found * self.bins // (KEPT + 1)
        return np.array([np.sum(bins == number, axis=0) for number in range(self.bins)])

    def plot(self, names: Sequence[str] | None = None) -> Any:
        """Histograms of the ranks as a matplotlib figure, with the band in which 95 of 100 bars lie if all is right: a
        hill says that the draws are too wide, a valley too narrow, a slope too high or too low."""
        import matplotlib.pyplot as plt
        from scipy.stats import binom

        unknown = [name for name in names or () if name not in self.ranks]
        if unknown:
            raise SignatureError(f"there is no parameter {unknown[0]!r}; there are {', '.join(self.ranks)}")
        shown = [(label, column) for name in names or self.ranks for label, column in zip(
            labels(name, self.ranks[name].shape[1:]), self._counts(self.ranks[name]).reshape(self.bins, -1).T,
            strict=True)]
        rows = -(-len(shown) // 3)
        figure, axes = plt.subplots(rows, 3, figsize=(9, 2 * rows), squeeze=False, layout="constrained")
        band = binom.ppf([0.025, 0.975], self.used, 1 / self.bins)
        for axis, (label, counts) in zip(axes.flat, shown, strict=False):
            axis.axhspan(*band, color="0.85")
            axis.bar((np.arange(self.bins) + 0.5) * (KEPT + 1) / self.bins, counts, (KEPT + 1) / self.bins * 0.9)
            axis.set_title(label, fontsize="medium")
        for axis in axes.flat[len(shown):]:
            axis.set_visible(False)
        return figure

    def __str__(self) -> str:
        least = {name: float(np.min(p)) for name, p in self.p_values().items()}
        lines = [f"{self.used} of {self.simulations} simulations, {len(self.problems)} with problems"]
        return "\n".join([*lines, *(f"{name}: least p {p:.3g} of {self.ranks[name][0].size}"
                                    for name, p in least.items())])
