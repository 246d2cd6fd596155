"""`cross_validate`: how well a posterior predicts rows of the data that it has not seen."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitad.errors import SignatureError, StartError
from jitad.inference.many.datasets import checked_sets, places_of
from jitad.inference.many.draws import draws_of_each
from jitad.inference.starts import require_count

Posterior = Any              # that of `jitad.inference.model`


class CrossValidation(NamedTuple):
    """Made by `cross_validate`: the expected log predictive density `elpd` with its standard `error`; what each row
    adds to it in `rows`; the fold of each row in `fold`; and words for fits that are not to be trusted by number of the
    fold in `problems`."""

    elpd: float
    error: float
    rows: np.ndarray
    fold: np.ndarray
    problems: dict[int, str]

    def __str__(self) -> str:
        return (f"elpd {self.elpd:.2f} +- {self.error:.2f} of {len(self.rows)} rows in {self.fold.max() + 1} folds, "
                f"{len(self.problems)} with problems")


def cross_validate(post: Posterior, folds: int = 10, *, groups: Any = None, rows: Sequence[str] | None = None,
                   client: Any = None, seed: Any = 0, **options: Any) -> CrossValidation:
    """K-fold or leave-group-out cross-validation: each fold is predicted by draws that have seen all others.

    Parameters
    ----------
    post
        A `jitad.posterior` with `log_likelihood`, the log-likelihood of each row.
    folds
        How many parts the rows are dealt into at random, of sizes that differ by one at most.
    groups
        A label for each row, in place of `folds`: rows with the same label are left out together.
    rows
        Names of the data that have a row for each observation; by default all arrays that are as long as the longest.
    client, seed, options
        As for `fit_many` with ``method="sample"``.

    Raises `SignatureError` for posteriors without `log_likelihood`, folds and groups that do not fit, before anything
    runs; `StartError` if a fold has no draws, with what was wrong; and what `fit_many` does.

    Examples
    --------
    >>> import numpy as np, jitad
    >>> from jitad.constraints import real
    >>> def each(mu, y):
    ...     return -0.5 * (y - mu) ** 2 - 0.5 * np.log(2 * np.pi)
    >>> post = jitad.posterior(lambda mu, y: np.sum(each(mu, y)), dict(mu=real()), data=(np.arange(6.0) / 3,),
    ...                        log_likelihood=each)
    >>> found = jitad.cross_validate(post, 3, chains=1, draws=300, tune=200)
    >>> found.rows.shape, bool(-9 < found.elpd < -6)
    ((6,), True)
    """
    if post.options.get("log_likelihood") is None:
        raise SignatureError("cross-validation needs the log-likelihood of each row: posterior(log_likelihood=...)")
    places, count = _with_rows(post, rows)
    fold = _folds(count, folds, groups, seed)
    parts = [[_chosen(post, places, keep) for keep in (fold != k, fold == k)] for k in range(fold.max() + 1)]
    found, problems = np.full(count, np.nan), {}
    for k, draws, words in draws_of_each(post, checked_sets(post, [seen for seen, _ in parts]), client, seed, options):
        if draws is None:
            raise StartError(f"fold {k} has no draws: {words}")
        if words:
            problems[k] = words
        found[fold == k] = _predicted(post.with_data(*parts[k][1]), draws.free, int(np.sum(fold == k)))
    error = math.sqrt(count * float(np.var(found, ddof=1))) if count > 1 else math.nan
    return CrossValidation(float(found.sum()), error, found, fold, problems)


def _with_rows(post: Posterior, names: Sequence[str] | None) -> tuple[set[int], int]:
    """The places of the data that have rows, and the number of rows."""
    known: Mapping[str, np.ndarray] = post.data
    sizes = {name: len(x) for name, x in known.items() if np.ndim(x)}
    if names is None:
        longest = max(sizes.values(), default=0)
        names = [name for name, size in sizes.items() if size == longest]
    wrong = [name for name in names if name not in sizes]
    if isinstance(names, str) or wrong or len({sizes[name] for name in names}) != 1:
        raise SignatureError(f"rows must name data of one length; the arrays are {sizes}, and rows is {names!r}")
    return set(places_of(post, names)), sizes[names[0]]


def _folds(count: int, folds: int, groups: Any, seed: Any) -> np.ndarray:
    """The number of the fold of each row."""
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (count,) or len(np.unique(groups)) < 2:
            raise SignatureError(f"groups must have a label for each of {count} rows, and two labels at least; it has "
                                 f"shape {groups.shape}")
        return np.unique(groups, return_inverse=True)[1]
    require_count("folds", folds, 2)
    if folds > count:
        raise SignatureError(f"there are {count} rows, too few for {folds} folds")
    fold = np.empty(count, dtype=int)
    fold[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    return fold


def _chosen(post: Posterior, places: set[int], keep: np.ndarray) -> tuple[Any, ...]:
    return tuple(x[keep] if place in places else x for place, x in enumerate(post.observed.values))


def _predicted(post: Posterior, free: np.ndarray, count: int) -> np.ndarray:
    """The log of the mean density of each row over the draws."""
    from scipy.special import logsumexp

    found = post.expanded(free.reshape(-1, free.shape[-1]))["log_likelihood"]
    for name, x in found.items():
        if x.shape[1:2] != (count,):
            raise SignatureError(f"log_likelihood gives {name!r} of shape {x.shape[1:]} for {count} rows; its first "
                                 "axis must be the rows")
    total = sum(x.reshape(len(x), count, -1).sum(2) for x in found.values())
    return np.asarray(logsumexp(total, axis=0) - math.log(len(total)))
