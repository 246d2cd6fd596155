"""Marginal likelihoods by Laplace's approximation: closed forms, published figures, another way to the same numbers."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad.constraints import interval, positive, real
from jitad.errors import EstimateWarning, SignatureError, StartError
from jitad.inference.laplace import marginal
from jitad.inference.laplace.sparse import SparsePattern
from tests.inference import mixed_data as data

DYESTUFF = data.DYESTUFF.reshape(6, 5)


def normal(x, mean, sd):
    return np.sum(-0.5 * ((x - mean) / sd) ** 2 - np.log(sd + 0 * x) - 0.5 * np.log(2 * np.pi))


def batches(mu, sd, sb, b, y):
    return normal(y, mu + b[:, None], sd) + normal(b, 0.0, sb)


def test_dyestuff_by_maximum_likelihood():
    """lme4 prints the deviance 327.3271, the variances 1388 and 2451; the design is balanced, so that these, 1388.333
    and 2451.25, have a closed form."""
    post = jitad.posterior(batches, {"mu": real(), "sd": positive(), "sb": positive(), "b": real(6)}, (DYESTUFF,))
    fit = post.laplace(["b"]).fit(np.array([1500.0, 4.0, 4.0]))
    assert fit.converged and fit["mu"] == pytest.approx(1527.5, rel=1e-9)
    assert fit["sd"] ** 2 == pytest.approx(2451.25, rel=1e-6) and fit["sb"] ** 2 == pytest.approx(1388.3333, rel=1e-6)
    assert -2 * fit.value == pytest.approx(327.3271, abs=5e-5)
    assert fit.errors["mu"] == pytest.approx(17.69, abs=5e-3)
    # best linear unbiased predictions, for known variances: shrunken means
    shrink = fit["sb"] ** 2 / (fit["sb"] ** 2 + fit["sd"] ** 2 / 5)
    np.testing.assert_allclose(fit.random["b"], shrink * (DYESTUFF.mean(1) - 1527.5), rtol=1e-7)
    assert np.all(fit.random_errors["b"] ** 2 > fit["sb"] ** 2 * (1 - shrink))
    means = fit.report(lambda mu, sd, sb, b, y: {"mean": mu + b, "share": sb**2 / (sb**2 + sd**2)})
    assert means["share"][0] == pytest.approx(1388.3333 / (1388.3333 + 2451.25), rel=1e-6)
    assert means["mean"][1].shape == (6,) and "integrated out: b (6,)" in str(fit)


def test_crossed_effects_of_a_linear_model_are_exact():
    """The marginal density is a normal one, of which value and gradient are known without any mode."""
    rng = np.random.default_rng(0)
    i, j, y = rng.integers(0, 7, 60), rng.integers(0, 5, 60), rng.normal(size=60)

    def logp(mu, s, su, sv, u, v, y):
        return normal(y, mu + su * u[i] + v[j], s) + normal(u, 0.0, 1.0) + normal(v, 0.0, sv)
    parameters = {"u": real(7), "mu": real(), "s": positive(), "v": real(5), "su": positive(), "sv": positive()}
    laplace = jitad.posterior(logp, parameters, (y,)).laplace(["u", "v"])
    assert laplace.names == ["mu", "s", "su", "sv"]

    def exact(t, y):
        s, su, sv = np.exp(t[1]), np.exp(t[2]), np.exp(t[3])
        cov = s**2 * np.eye(60) + su**2 * (i[:, None] == i) + sv**2 * (j[:, None] == j)
        factor = np.linalg.cholesky(cov)
        z = np.linalg.solve(factor, y - t[0])
        return -0.5 * z @ z - np.sum(np.log(np.diag(factor))) - 30 * np.log(2 * np.pi)
    for t in (np.zeros(4), np.array([0.3, -0.4, 0.2, -0.7])):
        value, gradient = laplace.value_and_grad(t)
        expected = jitad.value_and_grad(exact)(t, y)
        assert value == pytest.approx(expected[0], rel=1e-11) and laplace.log_likelihood(t) == pytest.approx(value)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-7, atol=1e-9)


def test_poisson_series_against_dense_matrices():
    """An AR(1) of 30 with Poisson counts: the mode, the determinant and the gradient by other ways."""
    rng = np.random.default_rng(1)
    y = rng.poisson(3.0, 30).astype(float)

    def logp(phi, s, b, y):
        chain = normal(b[1:], phi * b[:-1], s) + normal(b[0], 0.0, s / np.sqrt(1 - phi**2))
        return chain + np.sum(y * b - np.exp(b))
    laplace = jitad.posterior(logp, {"phi": interval(-1.0, 1.0), "s": positive(), "b": real(30)}, (y,)).laplace(["b"])
    assert len(laplace.names) == 2

    def dense(t):
        phi, s, b = np.tanh(t[0] / 2), np.exp(t[1]), np.zeros(30)
        precision = np.diag(np.r_[1.0, np.full(28, 1 + phi**2), 1.0]) - phi * (np.eye(30, k=1) + np.eye(30, k=-1))
        precision /= s**2
        for _ in range(50):
            b = b - np.linalg.solve(precision + np.diag(np.exp(b)), precision @ b - y + np.exp(b))
        prior = 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * b @ precision @ b
        return prior + np.sum(y * b - np.exp(b)) - 0.5 * np.linalg.slogdet(precision + np.diag(np.exp(b)))[1]
    t, h = np.array([0.8, -0.6]), 1e-4
    value, gradient = laplace.value_and_grad(t)
    assert value == pytest.approx(dense(t), rel=1e-11)
    slopes = [(8 * (dense(t + h * e) - dense(t - h * e)) - dense(t + 2 * h * e) + dense(t - 2 * h * e)) / (12 * h)
              for e in np.eye(2)]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7)
    with_jacobian = jitad.posterior(logp, {"phi": interval(-1.0, 1.0), "s": positive(), "b": real(30)}, (y,)).laplace(
        ["b"], jacobian=True)
    phi = np.tanh(0.4)
    assert with_jacobian.log_likelihood(t) == pytest.approx(value + np.log((1 - phi**2) / 2) - 0.6, rel=1e-9)


def test_modes_that_begin_where_the_derivative_leads(monkeypatch):
    """Steps of the fixed parameters, small and large: the values are those of a search from zeros, and near the last
    mode a value takes one factor."""
    y = np.random.default_rng(4).poisson(3.0, 40).astype(float)

    def logp(m, s, b, y):
        return np.sum(normal(b[1:], 0.5 * b[:-1], s)) + normal(b[0], 0.0, s) + np.sum(y * (m + b) - np.exp(m + b))
    post = jitad.posterior(logp, {"m": real(), "s": positive(), "b": real(40)}, (y,))
    points = [np.array(t) for t in ([0.5, -0.5], [0.5, -0.499], [0.51, -0.5], [0.8, -0.3], [2.5, 1.5], [0.5, -0.5])]
    expected = [post.laplace(["b"]).value_and_grad(t) for t in points]
    factors = []
    factored = SparsePattern.factor
    monkeypatch.setattr(SparsePattern, "factor", lambda self, data: factors.append(1) or factored(self, data))
    monkeypatch.setattr(marginal, "MANY", 1)
    laplace, counts = post.laplace(["b"]), []
    for t, (value, gradient) in zip(points, expected, strict=True):
        factors.clear()
        found = laplace.value_and_grad(t)
        counts.append(len(factors))
        assert found[0] == pytest.approx(value, rel=1e-11)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-8, atol=1e-8)
    assert counts[1] == 1 < counts[0]


def test_what_cannot_be_integrated_out():
    post = jitad.posterior(batches, {"mu": real(), "sd": positive(), "sb": positive(), "b": real(6)}, (DYESTUFF,))
    for random in (["c"], [], "b"):
        with pytest.raises(SignatureError, match="random must be a list of names"):
            post.laplace(random)
    empty = jitad.posterior(lambda mu, b: -mu * mu - np.sum(b * b), {"mu": real(), "b": real(0)})
    with pytest.raises(SignatureError, match=r"effects b have no elements; .* post.optimise\(\)"):
        empty.laplace(["b"])
    with pytest.raises(SignatureError, match=r"has shape \(3,\), not \(2,\): mu, sd, sb"):
        post.laplace(["b"]).log_likelihood(np.zeros(2))
    with pytest.raises(StartError, match="no mode that Newton's method finds"):
        jitad.posterior(lambda t, b: -t**2 + np.sum(b), {"t": real(), "b": real(2)}).laplace(["b"]).log_likelihood([0])
    with pytest.raises(StartError, match=r"not finite where the mode .*\n?.*test_laplace.py"):
        jitad.posterior(lambda t, b: np.sum(np.log(b - 1) - t * b), {"t": real(), "b": real(2)}).laplace(
            ["b"]).log_likelihood([0.0])


# --- modes -----------------------------------------------------------------------------------------------------

def test_maximum_likelihood_with_standard_errors():
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(200), rng.normal(size=200)])
    y = x @ [1.0, -2.0] + 0.5 * rng.normal(size=200)

    def logp(beta, sigma, y):
        return normal(y, x @ beta, sigma)
    post = jitad.posterior(logp, {"beta": real(2), "sigma": positive()}, (y,))
    coefficients, residuals = np.linalg.lstsq(x, y, rcond=None)[:2]
    sigma = np.sqrt(residuals[0] / 200)
    for method in ("L-BFGS-B", "trust-exact", "trust-krylov"):
        found = post.optimise(method=method, starts=2)
        np.testing.assert_allclose(found["beta"], coefficients, rtol=1e-7)
        assert found["sigma"] == pytest.approx(sigma, rel=1e-8) and found.converged
        np.testing.assert_allclose(found.errors["beta"], sigma * np.sqrt(np.diag(np.linalg.inv(x.T @ x))), rtol=1e-6)
        assert found.errors["sigma"] == pytest.approx(sigma / np.sqrt(400), rel=1e-6)
    assert "beta[1]" in str(found)
    with pytest.raises(SignatureError, match="method must be one of"):
        post.optimise(method="BFGS")
    with pytest.warns(EstimateWarning, match="not positive definite .*b"):
        jitad.posterior(lambda p: -p["a"] ** 2, {"a": real(), "b": real()}).optimise({"a": 1.0, "b": 0.0})


def test_the_normal_distribution_at_the_mode():
    scale = np.array([[2.0, 0.6], [0.6, 1.0]])
    post = jitad.posterior(lambda p: -0.5 * (p["x"] - 1) @ np.linalg.solve(scale, p["x"] - 1), {"x": real(2)})
    approximation = post.normal(starts=1)
    np.testing.assert_allclose(approximation.covariance, scale, rtol=1e-8)
    assert approximation.log_evidence == pytest.approx(np.log(2 * np.pi) + 0.5 * np.log(np.linalg.det(scale)))
    draws = approximation.draws(20000, seed=0)["x"][0]
    np.testing.assert_allclose(np.cov(draws.T), scale, atol=0.05)
    us = np.array([[1.0, 1.0], [0.0, 2.0]])
    expected = [post.logp(u) - approximation.log_evidence for u in us]
    np.testing.assert_allclose(approximation.log_density(us), expected, rtol=1e-9)


def test_where_an_optimiser_begins_may_be_given_in_any_form():
    post = jitad.posterior(lambda p: -np.sum((p["x"] ** 2 - 1) ** 2) + 0.1 * np.sum(p["x"]), {"x": real(2)})
    left, right = [-1.1, -0.9], [1.1, 0.9]
    for start, sign in ((left, -1), (np.array(left), -1), ({"x": np.array(left)}, -1), ([left], -1),
                        (np.array([left, right, left]), 1), ([left, {"x": right}], 1),
                        (lambda rng: np.array(left), -1)):
        assert np.all(np.sign(post.optimise(start)["x"]) == sign), start
    with pytest.raises(SignatureError, match="starts must be an integer, 1 or more, not 0"):
        post.optimise(starts=0)
