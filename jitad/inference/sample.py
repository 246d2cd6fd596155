"""Draws of a posterior: points to start from, chains, and what is stored of them."""
from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitad.call.messages import issue
from jitad.errors import SamplingWarning, SignatureError, StartError
from jitad.inference.check import unused
from jitad.inference.draws import Draws, checked_labels, require_names
from jitad.inference.importance import of_free
from jitad.inference.many.chains import RemoteChains
from jitad.inference.nuts import Chains, Progress, chain_seeds
from jitad.inference.starts import require_count, starts

PATIENCE = 1.0               # seconds of sampling, after which the import of ArviZ is hidden behind the rest
TARGET = 0.9                 # acceptance: a little dearer than the usual 0.8, with fewer divergences

Posterior = Any              # that of `jitad.inference.model`, which imports this file


def drawn(post: Posterior, draws: int, tune: int, chains: int, cores: int | None, seed: Any, start: Any,
          jitter: float | None, low_rank: bool, progress: bool, arviz: bool, client: Any,
          options: Mapping[str, Any]) -> Draws:
    """The draws, as `Posterior.draws` has them; with `arviz`, that is imported while chains run that take long."""
    require_count("draws", draws)
    require_count("tune", tune, 0)
    require_count("chains", chains)
    if seed is None:
        seed = np.random.SeedSequence().entropy
    points = starts(post.density, post.free, start, jitter, chains, seed)
    _require_used(post, points[0])
    settings = settings_of(draws, tune, options)
    seeds, bar = chain_seeds(seed, chains), Progress(chains) if progress else None
    running: Any = Chains(post.density.compile(points[0]), points, seeds, cores_for(cores, chains), settings, low_rank,
                          bar) if client is None else RemoteChains(
                              post.density, points, seeds, client, settings, low_rank, bar)
    try:
        _require_stored(post, points[0])
        if arviz and not running.ended(within=PATIENCE):
            importlib.import_module("arviz")
        found = running.wait()
    except KeyboardInterrupt:
        running.stop()
        found = running.had()
        if not found:
            raise
        issue(f"sampling was interrupted: here are the draws of the {len(found)} of {chains} chains that had ended",
              SamplingWarning)
    finally:
        running.stop()
    result = of_free(post, *stacked_chains(found, tune))
    result.warn(float(settings["target_accept"]), int(options.get("maxdepth", 10)))
    return result


def settings_of(draws: int, tune: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the sampler."""
    return {"num_tune": tune, "num_draws": draws, "target_accept": TARGET, **options}


def stacked_chains(found: list[tuple[np.ndarray, dict[str, np.ndarray]]], tune: int) -> tuple[
        np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The draws of all chains after the warm-up, of shape (chains, draws, dim), and the statistics after it and of
    it."""
    after = {name: np.stack([s[name][tune:] for _, s in found]) for name in found[0][1]}
    before = {name: np.stack([s[name][:tune] for _, s in found]) for name in found[0][1]} if tune else {}
    return np.stack([vectors[tune:] for vectors, _ in found]), after, before


def cores_for(cores: int | None, chains: int) -> int:
    """How many chains run at once: what is said, or as many as there are processors."""
    if cores:
        return cores
    try:
        return min(chains, len(os.sched_getaffinity(0)))
    except AttributeError:                              # not on all systems
        return min(chains, os.cpu_count() or 1)


def _require_used(post: Posterior, u: np.ndarray) -> None:
    """Raise `StartError` for parameters without influence, of which the posterior is no density."""
    bounded = {block.name for block in post.free.blocks if block.constraint.bounded}
    found = [name for name in unused(post.likelihood, post.density, u, post.names) if name not in bounded]
    if found:
        them = "it" if len(found) == 1 else "them"
        raise StartError(f"the density does not depend on {', '.join(map(repr, found))}: there is no distribution to "
                         f"draw from. Use {them} in logp (a prior is enough), or leave {them} out of the parameters")


def _require_stored(post: Posterior, u: np.ndarray) -> None:
    """One ordinary call of what is stored, so that what is wrong with it is said before the end."""
    with np.errstate(all="ignore"):
        groups = post.stored(u)
    shapes: dict[str, tuple[int, ...]] = {}
    for group, values in groups.items():
        if group == "generated":
            if not isinstance(values, dict):
                raise SignatureError(f"generated must give a dict of arrays by name, not {type(values).__name__}")
            require_names(list(values), "what generated gives")
            twice = [name for name in values if name in shapes]
            if twice:
                raise SignatureError(f"generated gives {twice[0]!r}, which is the name of a parameter")
        given = values if isinstance(values, dict) else {"y": values}
        shapes.update({name: np.shape(x) for name, x in given.items()})
    checked_labels(post.options.get("dims"), post.options.get("coords"), shapes)
