"""Draws of one posterior with each of many data sets."""
from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jitad.distributed.tasks import Tasks
from jitad.errors import JitadError, SamplingWarning
from jitad.inference.draws import Draws
from jitad.inference.importance import of_free
from jitad.inference.many.chains import chains_of, packed_in_one_way
from jitad.inference.many.datasets import DataSets
from jitad.inference.nuts import chain_seeds, settings_of_one
from jitad.inference.sample import settings_of, stacked_chains
from jitad.inference.starts import require_count, starts

Posterior = Any              # that of `jitad.inference.model`
Found = tuple[int, Draws | None, str]        # number of the data set, draws if there are any, what is wrong with them


def draws_of_each(post: Posterior, sets: DataSets, client: Any, seed: Any, options: Mapping[str, Any]) -> Iterator[
        Found]:
    """The draws for each data set, as `Posterior.draws` gives them with these options, in any order."""
    chain = {"draws": 1000, "tune": 1000, "chains": 4, "start": None, "jitter": None, "low_rank": False, **options}
    further = {name: chain.pop(name) for name in list(chain) if name not in (
        "draws", "tune", "chains", "start", "jitter", "low_rank", "cores")}
    for name, least in (("draws", 1), ("tune", 0), ("chains", 1)):
        require_count(name, chain[name], least)
    settings = settings_of(chain["draws"], chain["tune"], further)
    settings_of_one(settings, chain["low_rank"], 0)
    seeds = [int(x) for x in np.random.SeedSequence(seed).generate_state(len(sets.values), np.uint64)]
    if client is None:
        for number, data in enumerate(sets.values):
            found, words = None, ""
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", SamplingWarning)
                try:
                    found = post.with_data(*data).draws(seed=seeds[number], **chain, **further)
                except JitadError as error:
                    words = str(error).splitlines()[0]
            yield number, found, words or _told(said)
    else:
        yield from _there(post, sets, client, seeds, chain, settings)


def _there(post: Posterior, sets: DataSets, client: Any, seeds: list[int], chain: Mapping[str, Any],
           settings: Mapping[str, Any]) -> Iterator[Found]:
    posts, calls, numbers = [], [], []
    for number, data in enumerate(sets.values):
        own = post.with_data(*data)
        try:
            points = starts(own.density, own.free, chain["start"], chain["jitter"], chain["chains"], seeds[number])
        except JitadError as error:
            yield number, None, str(error).splitlines()[0]
            continue
        posts.append(own)
        numbers.append(number)
        calls.append((packed_in_one_way(own.density, points[0]), points, chain_seeds(seeds[number], len(points)),
                      dict(settings), chain["low_rank"]))
    for place, found in Tasks(client, _chains, b"", calls, libraries=("nutpie",)).each():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", SamplingWarning)
            draws = of_free(posts[place], *stacked_chains(found, chain["tune"]))
            draws.warn(float(settings["target_accept"]), int(settings.get("maxdepth", 10)))
        yield numbers[place], draws, _told(said)


def _chains(nothing: bytes, *call: Any) -> Any:
    """Runs on a worker."""
    return chains_of(*call)


def _told(said: list[warnings.WarningMessage]) -> str:
    return "; ".join(str(each.message) for each in said if issubclass(each.category, SamplingWarning))
