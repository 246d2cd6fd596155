"""`fit_many`: one posterior fitted to many data sets, as a data frame."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitad.errors import SignatureError
from jitad.inference.draws import Draws
from jitad.inference.many.datasets import checked_sets, padded
from jitad.inference.many.draws import draws_of_each
from jitad.inference.many.modes import modes_of
from jitad.inference.many.rows import Estimates, Normals, Row, summarised
from jitad.inference.starts import require_count

Posterior = Any              # that of `jitad.inference.model`
OPTIONS: dict[str, dict[str, Any]] = {"optimise": {"start": None, "starts": 4, "jacobian": False},
                                      "laplace": {"start": None, "starts": 4, "draws": 1000}}


def fit_many(post: Posterior, datasets: Any, *, method: str = "optimise", client: Any = None, seed: Any = 0,
             pad: Mapping[str, Any] | None = None, **options: Any) -> Any:
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
        `Posterior.optimise`; ``"laplace"`` for the normal distributions of the free vector at the modes, as
        `Posterior.normal` gives them, with the options `start`, `starts` and `draws`; ``"sample"`` for draws, with the
        options of `Posterior.draws`.
    client
        A `distributed.Client`, on whose workers the fits run. Their code travels as tapes, not as functions.
    seed
        The same one gives the same rows, however many workers there are, on one kind of processor.
    pad
        Values for rows that are missing, by the names of arrays, such as ``{"y": 0.0, "weight": 0.0}``: these arrays
        get further rows of them, as many as a quarter of their own at most, so that few lengths are left, each of which
        is compiled once. Only you know which rows add nothing to the density; that these do is tried with each data
        set.

    Returns
    -------
    pandas.DataFrame
        A row for each data set, with pairs as columns: ``frame["estimate"]["mu"]`` and ``frame["error"]["mu"]``, or of
        draws ``"mean"``, ``"sd"``, ``"5%"`` and ``"95%"``, for each element of the parameters; ``frame["fit"]`` has
        `value` and `converged`, `log_evidence` and `converged`, or `rhat` and `diverging`, and `problem`: words for
        fits that failed, which are NaN, or that are not to be trusted. One bad data set does not end the others.

    Raises
    ------
    ArgumentTypeError, SignatureError
        For data sets, methods and options that are none, before anything runs.
    UnsupportedOperationError, TapeFileError, ClusterError
        With `client`: for densities with branches, and such that call Python; where workers differ or are gone.

    Notes
    -----
    Modes of four data sets or more that have the same shapes, of at most 50 free numbers, are looked for side by side
    in one kernel, by Newton's method, and by L-BFGS where it ends at no mode, on the workers if there are such. Where
    both do, `Posterior.optimise` begins anew, and says what is wrong. Other shapes are other kernels, but for what
    `pad` says.

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
    if pad is not None:
        sets = padded(post, sets, pad)
    if method == "sample":
        found = {number: _summary(post, draws, words) for number, draws, words in draws_of_each(
            post, sets, client, seed, options)}
        rows = [found[number] for number in range(len(sets.values))]
    elif method in OPTIONS:
        unknown = [name for name in options if name not in OPTIONS[method]]
        if unknown:
            raise SignatureError(f'method="{method}" has no option {unknown[0]!r}; it has {", ".join(OPTIONS[method])}')
        given = {**OPTIONS[method], **options}
        start, starts = given["start"], given["starts"]
        require_count("starts", starts)
        rows_of = Estimates(post, seed, start, starts, bool(given["jacobian"])) if method == "optimise" else Normals(
            post, seed, start, starts, given["draws"], len(sets.values))
        rows = modes_of(post, sets, client, seed, start, starts, rows_of)
    else:
        raise SignatureError(f'method must be "optimise", "laplace" or "sample", not {method!r}')
    frame = pandas.DataFrame(rows, index=pandas.Index(sets.labels, tupleize_cols=False))
    frame.columns = pandas.MultiIndex.from_tuples(frame.columns)
    return frame


def _summary(post: Posterior, draws: Draws | None, problem: str) -> Row:
    values = None if draws is None else np.concatenate(
        [draws[name].reshape(-1, int(np.prod(shape))) for name, shape in post.shapes.items()], axis=1)
    return summarised(post, values) | {("fit", "rhat"): np.nan if draws is None else float(draws.rhat().max()),
                                       ("fit", "diverging"): 0 if draws is None else int(
                                           draws.statistics["diverging"].sum()), ("fit", "problem"): problem}
