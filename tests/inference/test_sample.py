"""Draws: against closed forms, reproducible, labelled, ready for ArviZ; points to start from; what is refused, why."""
from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import jitad
from jitad.constraints import interval, positive, real, simplex
from jitad.errors import SamplerError, SamplingWarning, SignatureError, StartError

pytest.importorskip("nutpie")
Y = np.array([1.2, 0.7, 2.1, 1.6, 0.4])
SIGMA = np.array([0.5, 1.0, 2.0, 1.0, 0.7])
QUICK = {"chains": 2, "cores": 2, "seed": 5, "tune": 400}


def logp(mu, tau, y, sigma):
    """Known errors and a N(0, 1) prior: mu is normal in closed form; tau has a Gamma(3, 2) prior and no data."""
    return -0.5 * np.sum(((y - mu) / sigma) ** 2) - 0.5 * mu**2 + 2 * np.log(tau) - 2 * tau


def test_draws_agree_with_closed_forms_and_are_labelled():
    post = jitad.posterior(
        logp, {"mu": real(), "tau": positive()}, (Y, SIGMA),
        log_likelihood=lambda mu, tau, y, sigma: -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma),
        generated=lambda mu, tau, y, sigma: {"fitted": mu + 0 * y, "above": mu > 1},
        dims={"fitted": ["day"], "y": ["day"]}, coords={"day": list("abcde")})
    trace = post.sample(3000, progress=False, **QUICK)
    mu, tau = trace.posterior["mu"].to_numpy(), trace.posterior["tau"].to_numpy()
    precision = 1 + np.sum(SIGMA**-2.0)
    assert abs(mu.mean() - np.sum(Y * SIGMA**-2.0) / precision) * np.sqrt(precision) < 0.1
    assert abs(mu.std() * np.sqrt(precision) - 1) < 0.1
    assert abs(tau.mean() - 1.5) < 0.08 and abs(tau.std() - np.sqrt(0.75)) < 0.1
    assert trace.posterior["fitted"].dims == ("chain", "draw", "day")
    assert list(trace.posterior["day"].to_numpy()) == list("abcde")
    assert trace.posterior["above"].dtype == bool
    np.testing.assert_array_equal(trace.posterior["above"], mu > 1)
    np.testing.assert_allclose(trace.log_likelihood["y"][1, 7], -0.5 * ((Y - mu[1, 7]) / SIGMA) ** 2 - np.log(SIGMA))
    np.testing.assert_array_equal(trace.constant_data["sigma"], SIGMA)
    assert trace.sample_stats["diverging"].shape == (2, 3000)
    assert trace.warmup_sample_stats["step_size"].shape == (2, 400)


def test_the_same_seed_gives_the_same_draws():
    post = jitad.posterior(logp, {"mu": real(), "tau": positive()}, (Y, SIGMA))
    one, two = (post.draws(50, chains=3, cores=cores, seed=7, tune=100) for cores in (1, 3))
    np.testing.assert_array_equal(one.free, two.free)
    assert one["tau"].shape == (3, 50) and list(one) == ["mu", "tau"] and len(one) == 2
    assert not np.array_equal(one.free, post.draws(50, chains=3, seed=8, tune=100).free)
    np.testing.assert_allclose(one["tau"], np.exp(one.free[..., 1]), rtol=1e-14)
    kept = post.draws(20, store_gradient=True, **QUICK)
    np.testing.assert_allclose(kept.statistics["gradient"][1, 3], post.value_and_grad(kept.free[1, 3])[1])


def test_chains_start_where_they_are_told_to():
    post = jitad.posterior(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": real(2)})
    given = [{"x": np.array([1.0, 2.0])}, np.array([3.0, 4.0])]
    for start in (given, lambda rng: {"x": rng.normal(size=2)}, {"x": np.ones(2)}, np.ones((2, 2))):
        assert post.draws(10, start=start, **QUICK).free.shape == (2, 10, 2)
    from jitad.inference.starts import starts
    np.testing.assert_array_equal(starts(post.density, post.free, given, None, 2, 0), [[1, 2], [3, 4]])
    near = np.array(starts(post.density, post.free, given, 0.5, 2, 0))
    assert np.all(abs(near - [[1, 2], [3, 4]]) < 0.5) and np.all(near != [[1, 2], [3, 4]])
    with pytest.raises(SignatureError, match="3 points to start from, for 2 chains"):
        post.draws(start=[np.zeros(2)] * 3, **QUICK)


def test_points_are_looked_for_until_the_density_is_finite():
    post = jitad.posterior(lambda p: np.sum(np.log(p["x"] - 1.5) - p["x"]), {"x": real()})
    assert np.all(post.draws(50, **QUICK)["x"] > 1.5)


def test_no_point_to_start_from_names_line_and_parameter():
    post = jitad.posterior(lambda p: np.log(p["x"] - 50.0) - p["x"] - p["other"] ** 2, {"other": real(), "x": real()})
    with pytest.raises(StartError) as caught:
        post.sample(progress=False)
    words = str(caught.value)
    assert "100 points within 2 of zero" in words and "test_sample.py" in words
    assert "parameters there: other = " in words

    def refuses(p):
        raise ValueError("the scale must be known")
    with pytest.raises(StartError, match=r"ValueError: the scale must be known \(at .*test_sample.py"):
        jitad.posterior(refuses, {"x": real()}).draws()
    with pytest.raises(StartError, match="at the point to start from"):
        post.draws(start={"x": 1.0, "other": 0.0})


@pytest.mark.parametrize(("parameters", "words"), [
    ({"a": real(), "b": positive(2)}, "does not depend on 'b'"),
    ({"a": real(), "v": real(3)}, r"does not depend on 'v\[2\]'"),
    ({"a": real(), "b": real(), "c": real()}, "does not depend on 'b', 'c'"),
])
def test_parameters_without_influence(parameters, words):
    def density(p):
        return -p["a"] ** 2 - (np.sum(p["v"][:2] ** 2) if "v" in p else 0.0)
    with pytest.raises(StartError, match=words):
        jitad.posterior(density, parameters).draws()
    free = jitad.posterior(lambda p: -p["a"] ** 2, {"a": real(), "p": simplex(3), "q": interval(0.0, 1.0)})
    assert abs(free.draws(500, **QUICK)["p"].mean() - 1 / 3) < 0.05       # uniform, which is a density


def test_what_is_stored_is_checked_before_the_end():
    post = {"logp": lambda p: -p["a"] ** 2, "parameters": {"a": real()}}
    for options, words in (({"generated": lambda p: p["a"]}, "must give a dict"),
                           ({"generated": lambda p: {"draw": p["a"]}}, "must not be called 'draw'"),
                           ({"generated": lambda p: {"a": p["a"]}}, "name of a parameter"),
                           ({"dims": {"b": ["x"]}}, "dims names 'b', which is not stored"),
                           ({"dims": {"a": ["x"]}}, "has 1 names, but the shape is"),
                           ({"generated": lambda p: {"g": p["a"] + np.zeros(2)}, "dims": {"g": ["x"]},
                             "coords": {"x": [1, 2, 3]}}, "3 labels, but 'g' has 2")):
        with pytest.raises(SignatureError, match=words):
            jitad.posterior(**post, **options).draws(10, **QUICK)
    with pytest.raises(SignatureError, match="must not be called 'chain'"):
        jitad.posterior(lambda p: -p["chain"] ** 2, {"chain": real()})
    for options, words in (({"nonsense": 1}, "no option 'nonsense'; it has .*maxdepth"), ({"draws": 0}, "1 or more"),
                           ({"sampler": "hmc"}, "must be \"nutpie\"")):
        with pytest.raises(SignatureError, match=words):
            jitad.posterior(**post).draws(**options)


def test_warnings_say_what_to_change():
    funnel = jitad.posterior(lambda p: -p["s"] ** 2 / 18 - np.sum(0.5 * p["x"] ** 2 * np.exp(-p["s"]) + 0.5 * p["s"]),
                             {"s": real(), "x": real(5)})
    with pytest.warns(SamplingWarning) as caught:
        funnel.draws(200, chains=2, seed=1, tune=100, target_accept=0.6)
    assert any("diverged" in str(w.message) and "try 0.8" in str(w.message) for w in caught)
    assert all(w.filename == __file__ for w in caught)
    modes = jitad.posterior(lambda p: np.logaddexp(-0.5 * (p["x"] - 20) ** 2, -0.5 * (p["x"] + 20) ** 2), {"x": real()})
    with pytest.warns(SamplingWarning, match="chains do not agree yet .*x "):
        modes.draws(100, start=[np.array([20.0]), np.array([-20.0])], **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jitad.posterior(lambda p: -0.5 * p["x"] ** 2, {"x": real()}).draws(500, **QUICK)


def test_a_density_that_fails_while_it_is_sampled_stops_with_an_error_of_ours():
    def density(p):
        if p["x"] > 0.5:
            raise KeyError("beyond")
        return -0.5 * p["x"] ** 2
    post = jitad.posterior(density, {"x": real()})
    with pytest.raises(SamplerError, match="the density raised the error that is printed above"):
        post.draws(500, start={"x": 0.0}, **QUICK)


def test_draws_need_neither_arviz_nor_numba():
    code = ("import sys, numpy as np, jitad; from jitad.constraints import real\n"
            "post = jitad.posterior(lambda p: -0.5 * np.sum(p['x'] ** 2), {'x': real(2)})\n"
            "post.draws(20, tune=50, chains=2), post.sample(20, tune=50, chains=2, progress=False)\n"
            "heavy = ('arviz', 'pandas', 'numba', 'matplotlib', 'nutpie.sample', 'scipy.special')\n"
            "print([m for m in heavy if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_trace_is_inference_data_however_it_is_first_looked_at():
    import arviz

    post = jitad.posterior(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": real(2)})
    new = lambda seed=5: post.sample(300, progress=False, **{**QUICK, "tune": 100, "seed": seed})
    assert isinstance(new(), arviz.InferenceData) and "posterior" in new() and len(new()) == len(list(new()))
    assert repr(new()).startswith("Inference data") and {**new()}.keys() == set(new().groups())
    shape = (2, 300, 2)
    for trace in (copy.copy(new()), copy.deepcopy(new()), pickle.loads(pickle.dumps(new()))):
        assert type(trace) is arviz.InferenceData and trace["posterior"]["x"].shape == shape
    assert arviz.concat(new(), new(6), dim="chain").posterior["x"].shape == (4, 300, 2)
    trace = new()
    trace.note = "kept"
    assert trace.note == "kept" and trace == trace and list(arviz.summary(new()).index) == ["x[0]", "x[1]"]
    del trace.sample_stats
    assert "sample_stats" not in trace.groups()


def test_without_arviz_is_said_before_the_draws(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    post = jitad.posterior(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": real(2)})
    with pytest.raises(ModuleNotFoundError, match="ArviZ, which is not installed"):
        post.sample()


def test_a_line_of_progress(capsys):
    jitad.posterior(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": real(2)}).draws(4000, progress=True, **QUICK)
    shown = capsys.readouterr().err
    assert not shown or "of 8800 draws" in shown
