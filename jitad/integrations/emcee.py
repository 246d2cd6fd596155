"""A log density in plain NumPy for emcee's ensemble: all walkers of a move in one compiled kernel.

>>> import emcee
>>> import numpy as np
>>> from jitad.integrations.emcee import ensemble
>>> def logp(theta, y):
...     return -0.5 * np.sum((y - theta[0]) ** 2) - 0.5 * np.sum(theta**2)
>>> sampler = emcee.EnsembleSampler(8, 2, **ensemble(logp, data=(np.array([1.0, 2.0]),)))
>>> state = sampler.run_mcmc(np.random.default_rng(1).normal(size=(8, 2)), 10)
>>> sampler.get_chain().shape
(10, 8, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitad.api.batch import batch

__all__ = ["ensemble"]


def ensemble(logp: Callable[..., Any], data: Sequence[Any] = ()) -> dict[str, Any]:
    """The arguments ``log_prob_fn`` and ``vectorize`` of ``emcee.EnsembleSampler``.

    Parameters
    ----------
    logp
        ``logp(theta, *data) -> scalar``, plain NumPy, of a float64 vector of shape ``(d,)``, up to a constant;
        ``-inf`` where nothing is allowed.
    data
        What `logp` takes after `theta`.

    Returns
    -------
    arguments
        ``{"log_prob_fn": f, "vectorize": True}``, where ``f`` takes walkers of shape ``(n, d)`` and gives ``(n,)``
        values by `jitad.batch`. Walkers that take different ways through the branches of `logp` are computed one after
        the other, with one warning; ``np.where`` is no branch. What is wrong with `logp` is raised at the first
        evaluation.

    Examples
    --------
    >>> ensemble(lambda theta: -np.sum(theta**2))["log_prob_fn"](np.array([[0.0, 1.0], [2.0, 0.0]]))
    array([-1., -4.])
    """
    extra = tuple(data)
    of_walkers = batch(logp, in_axes=(0, *(None for _ in extra)), on_mismatch="silent")  # emcee moves halves

    def log_prob(walkers: np.ndarray) -> np.ndarray:
        return np.asarray(of_walkers(walkers, *extra))

    return {"log_prob_fn": log_prob, "vectorize": True}
