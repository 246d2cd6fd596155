"""NUTS on a marginal density: each step finds the mode of the random effects anew."""
from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitad.compile.entry.callback import PythonCallback
from jitad.errors import SignatureError, StartError
from jitad.inference.density import FAR, FINE, NOT_FINITE
from jitad.inference.draws import Draws
from jitad.inference.given import FreeVector
from jitad.inference.importance import of_free
from jitad.inference.laplace.marginal import Marginal
from jitad.inference.nuts import Chains, Progress, chain_seeds
from jitad.inference.sample import cores_for, settings_of, stacked_chains
from jitad.inference.starts import require_count, starts

Laplace = Any                # that of `jitad.inference.laplace.fit`, which imports this file


class MarginalDensity:
    """A marginal density as samplers ask for it. Each thread, that is each chain, begins the search for a mode at its
    own last one."""

    def __init__(self, marginal: Marginal):
        self.marginal, self.dim, self.own = marginal, marginal.sizes[0], threading.local()
        self.cfunc = PythonCallback(self.dim, self._value_and_grad)

    def _value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        mine = getattr(self.own, "marginal", None)
        if mine is None:
            mine = self.own.marginal = self.marginal.with_data(self.marginal.data)
        loss, slope = mine.loss(theta)
        if loss == FAR:
            raise StartError("the random effects have no mode there")
        return -loss, -slope

    def at(self, theta: np.ndarray) -> tuple[int, float, np.ndarray]:
        """(status, value, gradient), as of `Density`."""
        loss, slope = self.marginal.loss(theta)
        return (NOT_FINITE if loss == FAR else FINE), -loss, -slope

    def finite(self, theta: np.ndarray) -> bool:
        return self.at(theta)[0] == FINE

    def why_not(self, theta: np.ndarray) -> str:
        """What is wrong at a vector of the fixed parameters."""
        try:
            value, gradient = self.marginal.value_and_grad(theta)
        except StartError as error:
            return str(error)
        return f"the value is {value}, the gradient {gradient}"


def nested_draws(laplace: Laplace, chain: Mapping[str, Any], options: Mapping[str, Any]) -> Draws:
    """Draws of all parameters: see `Laplace.draws`."""
    for name, least in (("draws", 1), ("tune", 0), ("chains", 1)):
        require_count(name, chain[name], least)
    if not laplace.blocks:
        raise SignatureError("all parameters are random: there is nothing to sample; see `fit`")
    if not laplace.jacobian:
        laplace = type(laplace)(laplace.post, [part.name for part in laplace.parts if part.random], True)
    seed = np.random.SeedSequence().entropy if chain["seed"] is None else chain["seed"]
    density = MarginalDensity(laplace.marginal)
    fixed = FreeVector({block.name: block.constraint for block in laplace.blocks})
    points = starts(density, fixed, chain["start"], chain["jitter"], chain["chains"], seed)
    settings = settings_of(chain["draws"], chain["tune"], options)
    found = Chains(density.cfunc, points, chain_seeds(seed, len(points)), cores_for(chain["cores"], chain["chains"]),
                   settings, chain["low_rank"], Progress(len(points)) if chain["progress"] else None).wait()
    thetas, after, before = stacked_chains(found, chain["tune"])
    rng = np.random.default_rng([0, *np.atleast_1d(np.random.SeedSequence(seed).generate_state(2))])
    free = [[_completed(laplace, theta, rng) for theta in vectors] for vectors in thetas]
    result = of_free(laplace.post, np.array(free), after, before)
    result.warn(float(settings["target_accept"]), int(options.get("maxdepth", 10)))
    return result


def _completed(laplace: Laplace, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw of the random effects beside one of the fixed parameters, as one free vector."""
    mode = laplace.marginal.mode(theta)
    return laplace.whole(theta, mode.b + mode.factor.spread(rng.normal(size=len(mode.b))))
