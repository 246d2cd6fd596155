"""Profile intervals against closed forms and published ones."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

import jitad
from jitad.constraints import lower, ordered, positive, real, upper
from jitad.errors import EstimateWarning, SignatureError
from tests.inference.test_laplace import DYESTUFF, batches, normal

Y = np.array([1.2, 0.7, 2.1, 1.6, 0.4, 3.0])


def test_a_normal_sample_has_its_closed_form():
    """The deviance of the mean m is n log(1 + (m - mean)^2 / variance); of s, n (r^2 - 1 - 2 log r), r = sd / s."""
    estimate = jitad.posterior(normal_sample, {"m": real(), "s": positive(), "u": upper(9.0)}, (Y,)).optimise()
    for level in (0.5, 0.95):
        found, cut = estimate.profile(level=level), chi2.ppf(level, 1)
        half = Y.std() * np.sqrt(np.expm1(cut / Y.size))
        np.testing.assert_allclose(found["m"], Y.mean() + half * np.array([-1, 1]), rtol=1e-5)

        def excess(r, cut=cut):
            return Y.size * (r * r - 1 - 2 * np.log(r)) - cut
        ends = [Y.std() / brentq(excess, 1.0, 50.0), Y.std() / brentq(excess, 1e-9, 1.0)]
        np.testing.assert_allclose(found["s"], ends, rtol=1e-5)
        np.testing.assert_allclose(found["u"], [1.0 - np.sqrt(cut), 1.0 + np.sqrt(cut)], rtol=1e-5)
    assert list(estimate.profile("s")) == ["s"]
    with pytest.raises(SignatureError, match="no parameter 'sd'; there are m, s, u"):
        estimate.profile(["sd"])
    with pytest.raises(SignatureError, match="level must lie between 0 and 1, not 95"):
        estimate.profile(level=95)


def normal_sample(m, s, u, y):
    return normal(y, m, s) - 0.5 * (u - 1.0) ** 2


def test_dyestuff_by_maximum_likelihood():
    """lme4 (D. Bates et al., JSS 67, 2015): 1486.451 to 1568.549 for the mean, log(sigma) from 3.643622 to 4.214456,
    12.197 to 84.063 between batches. At 99 % batches need not differ at all."""
    post = jitad.posterior(batches, {"mu": real(), "sd": positive(), "sb": positive(), "b": real(6)}, (DYESTUFF,))
    fit = post.laplace(["b"]).fit({"mu": 1500.0, "sd": 50.0, "sb": 50.0})
    found = fit.profile()
    np.testing.assert_allclose(found["mu"], [1486.4515, 1568.5485], atol=1e-3)
    np.testing.assert_allclose(np.log(found["sd"]), [3.643622, 4.214456], atol=1e-5)
    np.testing.assert_allclose(found["sb"], [12.197, 84.063], atol=2e-3)
    assert fit.profile("sb", level=0.99)["sb"][0] == 0.0


def test_elements_that_are_bound_to_each_other_have_the_intervals_of_their_free_numbers():
    def logp(a, top, x):
        return -0.5 * np.sum((a - np.array([0.0, 2.0, 3.0])) ** 2) - 0.5 * (top - 2.0) ** 2 - 0.5 * np.sum(x**2)
    parameters = {"x": real(2), "a": ordered(3), "top": lower(lambda p: p["x"][0] - 9.0)}
    found = jitad.posterior(logp, parameters).optimise().profile(["a", "top", "x"], level=0.68)
    assert set(found) == {"a.free", "top.free", "x"} and found["a.free"].shape == (3, 2)
    np.testing.assert_allclose(found["x"], [[-0.99446, 0.99446]] * 2, atol=1e-4)
    np.testing.assert_allclose(found["a.free"][0], [-0.99446, 0.99446], atol=1e-4)         # a[0] itself


def test_a_profile_that_finds_a_greater_density_says_so():
    def logp(x, y):
        return np.logaddexp(-9.0 * (x + 1) ** 2, 3.0 - 9.0 * (x - 1) ** 2) - 0.5 * (y - x) ** 2
    estimate = jitad.posterior(logp, {"x": real(), "y": real()}).optimise({"x": -1.0, "y": -1.0})
    assert estimate["x"] < 0
    with pytest.warns(EstimateWarning, match="greater by 2.9. on the profile of .* only a local maximum"):
        assert estimate.profile("x", level=0.9999)["x"][1] > 1.0


def test_where_there_is_no_covariance_there_is_no_interval():
    with pytest.warns(EstimateWarning, match="not positive definite"):
        estimate = jitad.posterior(lambda a, b: -a**2, {"a": real(), "b": real()}).optimise({"a": 1.0, "b": 0.0})
    assert np.isnan(estimate.profile()["a"]).all()


def test_an_interval_that_ends_where_the_density_does_says_so():
    def logp(x, y):
        if x > 1.3:
            raise ValueError("beyond")
        return -0.5 * x * x - 0.5 * (y - x) ** 2
    estimate = jitad.posterior(logp, {"x": real(), "y": real()}).optimise({"x": 0.1, "y": 0.0})
    with pytest.warns(EstimateWarning, match="the intervals of x end where the density does"):
        np.testing.assert_allclose(estimate.profile("x")["x"], [-1.95996, 1.3], atol=1e-5)
