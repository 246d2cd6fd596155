"""Pathfinder: exact on normal distributions, honest where it is not, its weights those of ArviZ."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.constraints import positive, real
from jitad.errors import SamplingWarning, SignatureError, StartError


def test_a_normal_distribution_is_found():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(5, 5))
    precision = half @ half.T + np.eye(5)
    post = jitad.posterior(lambda p: -0.5 * (p["x"] - 2) @ precision @ (p["x"] - 2), {"x": real(5)})
    draws = post.pathfinder(20000, seed=3)
    assert draws.free.shape == (1, 20000, 5) and np.all(draws.statistics["pareto_k"] < 0.7)
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    np.testing.assert_allclose(draws["x"][0].mean(0), 2, atol=0.08)
    np.testing.assert_allclose(draws["x"][0].std(0) / sd, 1, atol=0.08)
    np.testing.assert_array_equal(draws.free, post.pathfinder(20000, seed=3).free)


def test_draws_that_are_far_off_are_warned_of():
    funnel = jitad.posterior(lambda p: -p["s"] ** 2 / 18 - np.sum(0.5 * p["x"] ** 2 * np.exp(-p["s"]) + 0.5 * p["s"]),
                             {"s": real(), "x": real(8)})
    with pytest.warns(SamplingWarning, match="Pareto k .* to be below 0.7"):
        funnel.pathfinder(500, seed=0)
    with pytest.raises(StartError, match="no point to start from"):
        jitad.posterior(lambda p: np.log(-p["x"]), {"x": positive()}).pathfinder()


def test_few_draws_are_drawn_but_not_trusted():
    post = jitad.posterior(lambda p: -p["x"] ** 2, {"x": real()})
    with pytest.warns(SamplingWarning, match="Pareto k inf"):
        assert post.pathfinder(1, paths=1, seed=0).free.shape == (1, 1, 1)
    for wrong in ({"draws": 0}, {"paths": 0}, {"paths": 1.5}):
        with pytest.raises(SignatureError, match=f"{next(iter(wrong))} must be an integer, 1 or more"):
            post.pathfinder(**wrong)
