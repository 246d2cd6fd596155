"""Libraries with BridgeStan's C interface, by its own client: densities, values, names.

A C compiler makes them; where there is none, conftest.py leaves this file out. What needs none is in `tests/export`."""
from __future__ import annotations

import bridgestan
import numpy as np
import pytest

import jitad
from jitad.constraints import corr, interval, positive, real
from jitad.integrations.bridgestan import export

Y = np.array([0.3, 1.2, -0.4])


def logp(mu, tau, a, C, low, y, mask):
    z = (y - mu - np.where(mask, 0.0, low)) / tau
    return -0.5 * np.sum(z * z) - 3 * np.log(tau) - tau - np.sum(a**2) - 0.5 * mu**2 + C[0, 1] - C[2, 1] ** 2 - low


def test_a_posterior_by_the_client_of_bridgestan(tmp_path):
    post = jitad.posterior(
        logp, {"mu": real(), "tau": positive(), "a": real(2, 3), "C": corr(3),
               "low": interval(0, lambda p: 1 + p["tau"])}, (Y, np.array([True, False, True])),
        generated=lambda mu, tau, a, C, low, y, mask: {"t": a.T * mu, "n": np.sum(a > 0)})
    model = bridgestan.StanModel(export(post, tmp_path / "some.model").library)
    assert (model.name(), model.param_num(), model.param_unc_num()) == ("logp", 18, post.dim)
    assert model.param_names()[:5] == ["mu", "tau", "a.1.1", "a.2.1", "a.1.2"] and model.param_names()[-1] == "low"
    assert model.param_names(include_gq=True)[-3:] == ["t.2.2", "t.3.2", "n"]
    assert model.param_unc_names()[2:4] == ["a.1.1", "a.1.2"] and model.param_unc_names()[8:11] == ["C.1", "C.2", "C.3"]
    rng = np.random.default_rng(0)
    for u in rng.normal(size=(3, post.dim)):
        value, gradient = model.log_density_gradient(u)
        np.testing.assert_allclose(value, post.logp(u), rtol=1e-13)
        np.testing.assert_allclose(gradient, post.value_and_grad(u)[1], rtol=1e-12)
        without = model.log_density(u, jacobian=False)
        np.testing.assert_allclose(without, post.likelihood(u, *post.observed.values), rtol=1e-13)
        stored = post.stored(u)
        values = [np.ravel(x, order="F") for group in ("posterior", "generated") for x in stored[group].values()]
        found = model.param_constrain(u, include_gq=True, rng=model.new_rng(1))
        np.testing.assert_allclose(found, np.concatenate(values), rtol=1e-13)
        np.testing.assert_allclose(model.param_unconstrain(model.param_constrain(u)), u, rtol=1e-9)
        np.testing.assert_allclose(model.param_unconstrain_json(
            {name: np.asarray(x) for name, x in stored["posterior"].items()}), u, rtol=1e-9)
    value, gradient, curvature = model.log_density_hessian(u)
    exact = jitad.hessian(post.density.function)(u, *post.observed.values)
    np.testing.assert_allclose(curvature, exact, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.log_density_hessian_vector_product(u, 3 * u)[1], exact @ (3 * u), rtol=1e-7)
    start = model.param_initialize(model.new_rng(5), init_radius=0.5)
    assert np.all(abs(start) < 0.5) and np.isfinite(model.log_density(start))
    np.testing.assert_array_equal(start, model.param_initialize(model.new_rng(5), init_radius=0.5))
    for given, words in ((model.param_constrain(u) * -1.0, "outside of the set"), ("{}", "has no parameter mu")):
        call = model.param_unconstrain_json if isinstance(given, str) else model.param_unconstrain
        with pytest.raises(RuntimeError, match=words):
            call(given)
    with pytest.raises(RuntimeError, match="not finite here"):
        model.log_density(np.full(post.dim, 800.0))
    with pytest.raises(RuntimeError, match="data are part of this library"):
        bridgestan.StanModel(model.lib_path, {"y": [1.0]}, warn=False)


def test_a_compiled_density_of_a_vector(tmp_path):
    @jitad.value_and_grad
    def density(theta, x):
        return -np.sum(np.log1p(np.exp(x @ theta))) - theta @ theta
    x = np.random.default_rng(0).normal(size=(40, 3))
    compiled = density.compile(np.zeros(3), x)
    model = bridgestan.StanModel(compiled.export(tmp_path / "density").library)
    assert model.param_names() == ["theta.1", "theta.2", "theta.3"] == model.param_unc_names()
    at = np.array([0.3, -0.2, 1.0])
    value, gradient = model.log_density_gradient(at)
    np.testing.assert_allclose(value, density(at, x)[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, density(at, x)[1], rtol=1e-13)
