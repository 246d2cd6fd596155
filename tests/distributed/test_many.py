"""Many fits of one posterior, here and on a cluster; calibration and cross-validation against closed forms."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.constraints import positive, real
from jitad.inference.many import modes
from jitad.inference.many.datasets import checked_sets, padded
from jitad.inference.many.newton import best_modes
from jitad.inference.many.rows import Estimates

RNG = np.random.default_rng(3)


def each(mu, tau, y):
    return -0.5 * ((y - mu) / tau) ** 2 - np.log(tau)


def logp(mu, tau, y):
    return np.sum(each(mu, tau, y)) - tau - 0.5 * np.sum(mu**2)


POST = jitad.posterior(logp, dict(mu=real(2), tau=positive()), data=(np.zeros((5, 2)),))
SETS = {f"s{k}": RNG.normal(k, 1.0, size=(5, 2)) for k in range(40)}
QUICK = {"draws": 150, "tune": 150, "chains": 1}


def test_modes_side_by_side_are_those_of_optimise_and_those_of_a_cluster(client):
    found = jitad.fit_many(POST, SETS)
    assert list(found.index) == list(SETS) and found["fit"]["converged"].all()
    for label in ("s0", "s33"):
        one = POST.with_data(SETS[label]).optimise()
        np.testing.assert_allclose(found["estimate"].loc[label], [*one["mu"], one["tau"]], rtol=1e-7)
        np.testing.assert_allclose(found["error"].loc[label], [*one.errors["mu"], one.errors["tau"]], rtol=1e-6)
        assert found["fit"]["value"][label] == pytest.approx(one.value)
    assert found.equals(jitad.fit_many(POST, SETS, client=client))


def test_a_bad_data_set_has_words_and_the_others_rows():
    bad = {**{k: SETS[k] for k in ("s0", "s1", "s2")}, "bad": np.full((5, 2), np.nan), "short": SETS["s3"][:2]}
    found = jitad.fit_many(POST, bad, starts=1, jacobian=True)
    assert list(found["fit"]["converged"]) == [True, True, True, False, True]
    assert "no point to start from" in found["fit"]["problem"]["bad"] and np.isnan(found["estimate"]["tau"]["bad"])
    np.testing.assert_allclose(found["estimate"]["tau"]["short"], POST.with_data(bad["short"]).optimise(
        jacobian=True)["tau"], rtol=1e-7)
    flat = jitad.posterior(lambda a, b, y: -np.sum((y - a - b) ** 2), dict(a=real(), b=real()), data=(np.zeros(2),))
    assert "not positive definite" in jitad.fit_many(flat, [np.ones(2)] * 4, starts=1)["fit"]["problem"][3]


def test_normal_distributions_at_the_modes_and_those_of_a_cluster(client):
    found = jitad.fit_many(POST, SETS, method="laplace", draws=4000)
    for label in ("s0", "s33"):
        one = POST.with_data(SETS[label]).normal()
        draws = one.draws(4000, seed=5)
        for kind, statistic in (("mean", np.mean), ("95%", lambda x, axis: np.quantile(x, 0.95, axis))):
            np.testing.assert_allclose(found[kind].loc[label], [*statistic(draws["mu"][0], axis=0), statistic(
                draws["tau"][0], axis=0)], rtol=0.05, atol=0.1)
        assert found["fit"]["log_evidence"][label] == pytest.approx(one.log_evidence)
    assert found.equals(jitad.fit_many(POST, SETS, method="laplace", draws=4000, client=client))
    alone = jitad.fit_many(POST, {"s0": SETS["s0"], "bad": np.full((5, 2), np.nan)}, method="laplace", draws=4000)
    assert abs(alone["sd"]["mu[1]"]["s0"] - found["sd"]["mu[1]"]["s0"]) < 0.05
    assert np.isnan(alone["sd"]["tau"]["bad"]) and "no point to start from" in alone["fit"]["problem"]["bad"]


def test_data_sets_of_like_lengths_are_padded_and_share_a_kernel():
    def weighted(mu, y, w):
        return np.sum(-0.5 * w * (y - mu) ** 2) - 0.5 * mu**2
    post = jitad.posterior(weighted, dict(mu=real()), data=dict(y=np.zeros(3), w=np.ones(3)))
    sets = [dict(y=RNG.normal(size=n), w=np.ones(n)) for n in (20, 17, 16, 19, 12, 11)]
    together = padded(post, checked_sets(post, sets), {"y": 0.0, "w": 0})
    assert [len(y) for y, _ in together.values] == [20, 20, 20, 20, 12, 12]
    found = jitad.fit_many(post, sets, pad={"y": 0.0, "w": 0.0})
    np.testing.assert_allclose(found["estimate"]["mu"], [each["y"].sum() / (len(each["y"]) + 1) for each in sets])
    for pad, value in (({"y": 0.0}, "nan"), ({"y": 0.0, "w": 1.0}, "-")):
        with pytest.raises(jitad.SignatureError, match=f"changes the density of data set 1 from -.* to {value}"):
            jitad.fit_many(post, sets, pad=pad)


def test_fits_that_newton_does_not_find_are_repaired_where_they_run(monkeypatch):
    def lost(*given):
        found = best_modes(*given)
        found.found[[0, 3]] = False
        return found._replace(free=np.where(found.found[:, None], found.free, 9.0))
    sets = {k: SETS[k] for k in list(SETS)[:5]}
    expected = jitad.fit_many(POST, sets)
    monkeypatch.setattr(modes, "best_modes", lost)
    monkeypatch.setattr(Estimates, "one", None)              # which is for what cannot be repaired
    found = jitad.fit_many(POST, sets)
    np.testing.assert_allclose(found["estimate"], expected["estimate"], rtol=1e-6)
    np.testing.assert_allclose(found["error"], expected["error"], rtol=1e-5)
    assert found["fit"]["converged"].all()


def test_of_several_modes_the_best_is_found_by_every_data_set():
    two = jitad.posterior(lambda x, y: -(x**2 - y) ** 2 + 0.5 * x, dict(x=real()), data=(np.array(1.0),))
    found = jitad.fit_many(two, [np.array(v) for v in np.linspace(0.5, 2, 8)], starts=6)
    assert (found["estimate"]["x"] > 0.5).all()


def test_draws_of_many_are_those_of_a_cluster(client):
    sets = {k: SETS[k] for k in ("s0", "s1", "s2")}
    here, there = (jitad.fit_many(POST, sets, method="sample", client=where, **QUICK) for where in (None, client))
    assert here.equals(there)
    assert abs(here["mean"]["mu[0]"]["s2"] - SETS["s2"][:, 0].mean()) < 1.0
    assert (here["5%"]["tau"] < here["mean"]["tau"]).all() and (here["fit"]["rhat"] < 1.2).all()


def simulate(rng, wrong=1.0):
    mu, tau = rng.normal(size=2), rng.exponential()
    return {"mu": mu, "tau": tau}, mu + wrong * tau * rng.normal(size=(5, 2))


def test_calibration_tells_right_from_wrong():
    right = jitad.calibrate(POST, simulate, simulations=25, **QUICK)
    wrong = jitad.calibrate(POST, lambda rng: simulate(rng, 4.0), simulations=25, **QUICK)
    assert right.ranks["mu"].shape == (right.used, 2) and right.ranks["tau"].max() <= 99
    assert right.p_values()["tau"] > 1e-3 and right.p_values()["mu"].min() > 1e-3
    assert wrong.p_values()["tau"] < 1e-5
    assert len(wrong.plot(["mu", "tau"]).axes) == 3 and "tau: least p" in str(wrong)


def test_rows_are_predicted_by_draws_that_have_not_seen_them():
    y = RNG.normal(size=12)
    post = jitad.posterior(lambda mu, y: -0.5 * mu**2 - 0.5 * np.sum((y - mu) ** 2), dict(mu=real()), data=dict(y=y),
                           log_likelihood=lambda mu, y: -0.5 * (y - mu) ** 2 - 0.5 * np.log(2 * np.pi))
    groups = np.repeat(["a", "b", "c"], 4)
    found = jitad.cross_validate(post, groups=groups, chains=1, draws=4000, tune=300)
    for k, label in enumerate("abc"):
        seen, left = y[groups != label], y[groups == label]
        mean, variance = seen.sum() / (len(seen) + 1), 1 + 1 / (len(seen) + 1)
        exact = -0.5 * (left - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
        np.testing.assert_allclose(found.rows[found.fold == k], exact, atol=0.03)
    assert found.elpd == pytest.approx(found.rows.sum()) and "of 12 rows in 3 folds" in str(found)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jitad.fit_many(POST, np.zeros((3, 5, 2))), "datasets must be a list .* not ndarray"),
    (lambda: jitad.fit_many(POST, []), "datasets is empty"),
    (lambda: jitad.fit_many(POST, [(SETS["s0"], 1.0)]), "has 1 data, and 2 were given"),
    (lambda: jitad.fit_many(POST, [SETS["s0"]], method="guess"), '"optimise", "laplace" or "sample", not \'guess\''),
    (lambda: jitad.fit_many(POST, [SETS["s0"]], pad={"z": 0}), "values for missing rows of some of y; not {'z': 0}"),
    (lambda: jitad.fit_many(POST, [SETS["s0"]], method="laplace", jacobian=True), "has no option 'jacobian'; it has"),
    (lambda: jitad.fit_many(POST, [SETS["s0"]], draws=3), "has no option 'draws'"),
    (lambda: jitad.fit_many(POST, [SETS["s0"]], method="sample", wrong=3), "nutpie has no option 'wrong'"),
    (lambda: jitad.calibrate(POST, lambda rng: {"mu": 0.0}), "simulate must give a pair"),
    (lambda: jitad.calibrate(POST, lambda rng: ({"mu": np.zeros(2)}, SETS["s0"])), "without 'tau'"),
    (lambda: jitad.calibrate(POST, simulate, simulations=1, chains=1, draws=50, tune=50), "needs 99 draws of each"),
    (lambda: jitad.cross_validate(POST), "needs the log-likelihood of each row"),
    (lambda: jitad.cross_validate(WITH_ROWS, 9), "there are 5 rows, too few for 9 folds"),
    (lambda: jitad.cross_validate(WITH_ROWS, groups=np.zeros(5)), "two labels at least"),
    (lambda: jitad.cross_validate(WITH_ROWS, rows=["z"]), "rows must name data of one length; the arrays are {'y': 5}"),
    (lambda: jitad.cross_validate(WITH_ROWS, 2, **QUICK), r"of shape \(2,\) for \d rows; its first axis"),
])
def test_bad_input_is_an_error_at_once(call, words):
    with pytest.raises((jitad.ArgumentTypeError, jitad.SignatureError), match=words):
        call()


WITH_ROWS = jitad.posterior(logp, dict(mu=real(2), tau=positive()), data=dict(y=SETS["s0"]),
                            log_likelihood=lambda mu, tau, y: np.sum(each(mu, tau, y), axis=0))


def test_what_cannot_be_sent_is_refused(client):
    branching = jitad.posterior(lambda x, y: -(x - y)**2 if x > 0 else -2.0 * (x - y)**2, dict(x=real()),
                                data=(np.array(1.0),))
    with pytest.raises(jitad.UnsupportedOperationError, match=r"different ways .* at .*test_many.py:\d+"):
        jitad.fit_many(branching, [np.array(1.0)], client=client)
    many = jitad.posterior(lambda x, y: -np.sum((x - y)**2), dict(x=real(51)), data=(np.array(1.0),))
    with pytest.raises(jitad.UnsupportedOperationError, match="for up to 50 free numbers"):
        jitad.fit_many(many, [np.array(1.0)], client=client)
