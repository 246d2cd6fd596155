"""`fit_many`: one posterior fitted to many data sets, as a data frame."""
from __future__ import annotations

from typing import Any

import numpy as np

from jitad.errors import SignatureError
from jitad.inference.draws import Draws
from jitad.inference.given import labels
from jitad.inference.many.datasets import checked_sets
from jitad.inference.many.draws import draws_of_each
from jitad.inference.many.modes import modes_of
from jitad.inference.starts import require_count

Posterior = Any              # that of `jitad.inference.model`


def fit_many(post: Posterior, datasets: Any, *, method: str = "optimise", client: Any = None, seed: Any = 0,
             **options: Any) -> Any:
    """A posterior fitted to each of many data sets: subjects, simulations, halves of the data.

    Parameters
    ----------
    post
        A `jitad.posterior`; its own data only show what data look like.
    datasets
        A list of data, each as `Posterior.with_data` takes them, a tuple in order or a dict by name, or the one array;
        or a dict of such data by label.
    method
        ``"optimise"`` for modes and standard errors, with the options `start`, `starts` and `jacobian` of
        `Posterior.optimise`; ``"sample"`` for draws, with the options of `Posterior.draws`.
    client
        A `distributed.Client`, on whose workers the fits run. Their code travels as tapes, not as functions.
    seed
        The same one gives the same rows, however many workers there are, on one kind of processor.

    Returns
    -------
    pandas.DataFrame
        A row for each data set, with pairs as columns: ``frame["estimate"]["mu"]`` and ``frame["error"]["mu"]``, or of
        draws ``"mean"``, ``"sd"``, ``"5%"`` and ``"95%"``, for each element of the parameters; ``frame["fit"]`` has
        `value` and `converged`, or `rhat` and `diverging`, and `problem`: words for fits that failed, which are NaN, or
        that are not to be trusted. One bad data set does not end the others.

    Raises
    ------
    ArgumentTypeError, SignatureError
        For data sets, methods and options that are none, before anything runs.
    UnsupportedOperationError, TapeFileError, ClusterError
        With `client`: for densities with branches, and such that call Python; where workers differ or are gone.

    Notes
    -----
    Modes of four data sets or more that have the same shapes, of at most 50 free numbers, are looked for side by side
    in one kernel, by Newton's method; where it ends at no mode, `Posterior.optimise` begins anew. Other shapes are
    other kernels: nothing is padded, since only you know what a missing value is.

    Examples
    --------
    >>> import numpy as np, jitad
    >>> from jitad.constraints import positive, real
    >>> def logp(mu, sigma, y):
    ...     return np.sum(-0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma))
    >>> post = jitad.posterior(logp, dict(mu=real(), sigma=positive()), data=(np.arange(3.0),))
    >>> people = {name: np.array([1.0, 2.0, 4.0]) * k for k, name in enumerate("abcd", 1)}
    >>> jitad.fit_many(post, people)["estimate"].round(3)
          mu  sigma
    a  2.333  1.247
    b  4.667  2.494
    c  7.000  3.742
    d  9.333  4.989
    """
    import pandas

    sets = checked_sets(post, datasets)
    if method == "optimise":
        unknown = set(options) - {"start", "starts", "jacobian"}
        if unknown:
            raise SignatureError(f'method="optimise" has no option {min(unknown)!r}; it has start, starts, jacobian')
        starts = options.get("starts", 4)
        require_count("starts", starts)
        rows = modes_of(post, sets, client, seed, options.get("start"), starts, bool(options.get("jacobian", False)))
    elif method == "sample":
        found = {number: _summary(post, draws, words) for number, draws, words in draws_of_each(
            post, sets, client, seed, options)}
        rows = [found[number] for number in range(len(sets.values))]
    else:
        raise SignatureError(f'method must be "optimise" or "sample", not {method!r}')
    frame = pandas.DataFrame(rows, index=pandas.Index(sets.labels, tupleize_cols=False))
    frame.columns = pandas.MultiIndex.from_tuples(frame.columns)
    return frame


def _summary(post: Posterior, draws: Draws | None, problem: str) -> dict[Any, Any]:
    row: dict[Any, Any] = {}
    kinds = {"mean": np.mean, "sd": lambda x, axis: np.std(x, axis, ddof=1),
             "5%": lambda x, axis: np.quantile(x, 0.05, axis), "95%": lambda x, axis: np.quantile(x, 0.95, axis)}
    for kind, statistic in kinds.items():
        for name, shape in post.shapes.items():
            values = np.full(shape, np.nan) if draws is None else statistic(  # type: ignore[operator]
                draws[name].reshape(-1, *shape), 0)
            row |= {(kind, label): x for label, x in zip(labels(name, shape), np.ravel(values), strict=True)}
    return row | {("fit", "rhat"): np.nan if draws is None else float(draws.rhat().max()),
                  ("fit", "diverging"): 0 if draws is None else int(draws.statistics["diverging"].sum()),
                  ("fit", "problem"): problem}
