"""Posteriors: value and gradient against what is written by hand, values and free vectors, forms of calling, words."""
from __future__ import annotations

import dataclasses
from collections import namedtuple

import numpy as np
import pandas
import pytest

import jitad
from jitad.constraints import cholesky_corr, interval, lower, positive, real, simplex
from jitad.errors import ConstraintError, OutputError, SignatureError, StartError

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = {"mu": real(), "tau": positive(), "eta": real(8)}


def schools(p, y, sigma):
    z = (y - p["mu"] - p["tau"] * p["eta"]) / sigma
    return -0.5 * np.sum(z * z) - 0.5 * np.sum(p["eta"] ** 2) - 0.5 * (p["mu"] / 5) ** 2 - np.log1p((p["tau"] / 5) ** 2)


def by_name(mu, tau, eta, y, sigma):
    return schools({"mu": mu, "tau": tau, "eta": eta}, y, sigma)


def by_hand(u, y, sigma):
    return schools({"mu": u[0], "tau": np.exp(u[1]), "eta": u[2:]}, y, sigma) + u[1]


@dataclasses.dataclass
class Schools:
    mu: object
    tau: object
    eta: object


Named = namedtuple("Named", "mu tau eta")
U = np.random.default_rng(0).normal(size=10)


def test_value_and_gradient_are_those_of_the_transformed_density():
    post = jitad.posterior(schools, SCHOOLS, (Y, SIGMA))
    value, gradient = post.value_and_grad(U)
    expected = jitad.value_and_grad(by_hand)(U, Y, SIGMA)
    assert value == pytest.approx(expected[0], rel=1e-13) and post.logp(U) == value
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)
    assert post.dim == 10 and post.names == ["mu", "tau", *(f"eta[{i}]" for i in range(8))]
    assert repr(post) == "<Posterior of 10 free numbers: mu real(), tau positive(), eta real(8)>"


@pytest.mark.parametrize(("logp", "parameters", "data"), [
    (by_name, SCHOOLS, (Y, SIGMA)),
    (by_name, SCHOOLS, {"sigma": SIGMA, "y": Y}),
    (schools, SCHOOLS, {"sigma": SIGMA, "y": Y}),
    (jitad.jit_grad(schools), SCHOOLS, [Y.tolist(), SIGMA.tolist()]),
    (lambda p, y, sigma: by_name(p.mu, p.tau, p.eta, y, sigma), Schools(**SCHOOLS), (Y, SIGMA)),
    (lambda p, sigma, y: by_name(p.mu, p.tau, p.eta, y, sigma), Named(**SCHOOLS), {"y": Y, "sigma": SIGMA}),
])
def test_forms_in_which_densities_are_written(logp, parameters, data):
    post = jitad.posterior(logp, parameters, data)
    assert post.logp(U) == pytest.approx(by_hand(U, Y, SIGMA), rel=1e-12)
    values = post.constrain(U)
    np.testing.assert_allclose(post.unconstrain(values), U, rtol=1e-12)
    assert isinstance(values, dict if isinstance(parameters, dict) else type(parameters))


def test_many_free_vectors_at_once_and_bounds_by_earlier_parameters():
    parameters = {"a": positive(), "b": lower(lambda p: p["a"]), "p": simplex(3), "L": cholesky_corr(3),
                  "c": interval(lambda p: -p["b"], lambda p: p["b"], 2)}
    post = jitad.posterior(lambda p: -p["a"] - p["b"] + np.sum(p["p"]) + p["L"][2, 1] * np.sum(p["c"]), parameters)
    assert post.dim == 1 + 1 + 2 + 3 + 2
    assert post.names[2:7] == ["p.free[0]", "p.free[1]", "L.free[0]", "L.free[1]", "L.free[2]"]
    us = np.random.default_rng(1).normal(size=(2, 3, post.dim))
    many = post.constrain(us)
    assert many["L"].shape == (2, 3, 3, 3) and many["a"].shape == (2, 3)
    for index in np.ndindex(2, 3):
        one = post.constrain(us[index])
        for name, value in one.items():
            np.testing.assert_allclose(many[name][index], value, rtol=1e-12, atol=1e-15)
        assert one["b"] > one["a"] and np.all(abs(one["c"]) < one["b"])
        np.testing.assert_allclose(post.unconstrain(one), us[index], rtol=1e-8)


def test_other_data():
    post = jitad.posterior(schools, SCHOOLS, {"y": Y, "sigma": SIGMA})
    other = post.with_data(y=Y + 1)
    assert other.logp(U) == pytest.approx(by_hand(U, Y + 1, SIGMA), rel=1e-12)
    assert post.logp(U) == pytest.approx(by_hand(U, Y, SIGMA), rel=1e-12)
    in_order = jitad.posterior(schools, SCHOOLS, (Y, SIGMA)).with_data(Y[:2], SIGMA[:2])
    with pytest.raises(ValueError):                      # eta has eight still
        in_order.logp(U)
    with pytest.raises(SignatureError, match="no data called 'z'; the data are y, sigma"):
        post.with_data(z=Y)
    with pytest.raises(SignatureError, match="has 2 data, and 1 were given"):
        post.with_data(Y)


def test_where_the_density_is_not_finite():
    post = jitad.posterior(lambda p: np.sum(np.log(p["x"])) - p["s"] ** 2, {"x": real(2), "s": real()})
    value, gradient = post.value_and_grad(np.array([1.0, -1.0, 0.5]))
    assert np.isnan(value) and gradient[0] == 1.0
    with pytest.raises(StartError) as caught:
        post.check(np.array([1.0, -1.0, 0.5]))
    assert "test_posterior.py" in str(caught.value) and "log" in str(caught.value)

    def refuses(p):
        if p["x"] < 0:
            raise ValueError("x must not be negative")
        return -p["x"]
    with pytest.raises(StartError, match=r"ValueError: x must not be negative \(at .*test_posterior.py:\d+\)"):
        jitad.posterior(refuses, {"x": real()}).check(np.array([-1.0]))


def test_check_finds_what_is_flat_and_unused():
    found = jitad.posterior(lambda p: -0.5 * (p["a"] - p["b"][1]) ** 2, {"a": real(), "b": real(2), "c": positive()}
                            ).check({"a": 1.0, "b": np.array([0.0, 3.0]), "c": 2.0})
    assert found.unused == ("c", "b[0]") and found.value == pytest.approx(-2 + np.log(2))
    assert len(found.flat) == 3                          # a with b[1], b[0], c, whose log-Jacobian is linear
    names = {tuple(sorted(name for name, _ in direction)) for direction in found.flat}
    assert {name for of in names for name in of} == {"a", "b[0]", "b[1]", "c"}


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ((schools, ["mu"]), SignatureError, "must be a dict of constraints"),
    ((schools, {}), SignatureError, "no parameters"),
    ((schools, {1: real()}), SignatureError, "names of parameters are strings"),
    ((schools, {"mu": 1.0}), SignatureError, "must have a constraint"),
    ((schools, {"p": simplex(1)}), SignatureError, "no free numbers"),
    ((schools, SCHOOLS, Y), SignatureError, "data must be a tuple"),
    ((schools, SCHOOLS, {"y": pandas.Series(Y), "sigma": SIGMA}), SignatureError, "a Series; give arrays: y.to_numpy"),
    ((None, SCHOOLS), SignatureError, "logp must be a function"),
    ((lambda mu, y: -mu, {"mu": real()}, (Y, SIGMA)), SignatureError, "1 further arguments, but there are 2 data"),
    ((lambda p: p["x"], {"x": real(3)}), OutputError, r"an array of shape \(3,\); sum it"),
    ((lambda p: None, {"x": real(3)}), OutputError, "a NoneType"),
    ((lambda p: p["z"], {"x": real(3)}), KeyError, "z"),
])
def test_what_does_not_fit_is_said_at_once(arguments, error, words):
    with pytest.raises(error, match=words):
        jitad.posterior(*arguments)


def test_values_that_do_not_fit_are_named():
    post = jitad.posterior(schools, SCHOOLS, (Y, SIGMA))
    with pytest.raises(ConstraintError, match="parameter 'tau': positive\\(\\): the value is not positive"):
        post.unconstrain({"mu": 0.0, "tau": -1.0, "eta": np.zeros(8)})
    with pytest.raises(SignatureError, match="without 'eta' and with unknown 'theta'"):
        post.unconstrain({"mu": 0.0, "tau": 1.0, "theta": np.zeros(8)})
    with pytest.raises(SignatureError, match=r"has shape \(3,\), but the free vector has shape \(10,\): mu 1, tau 1"):
        post.logp(np.zeros(3))
    with pytest.raises(SignatureError, match="must be a dict"):
        post.unconstrain(3.0)


def test_ravel_goes_there_and_back_and_is_recorded():
    tree = {"b": (1.0, np.arange(4.0).reshape(2, 2)), "a": Named(2.0, np.ones(2), 0.0)}
    vector, unravel = jitad.ravel(tree)
    np.testing.assert_array_equal(vector, [1, 0, 1, 2, 3, 2, 1, 1, 0])
    assert unravel(vector)["a"].mu == 2.0 and unravel(vector)["b"][1].shape == (2, 2)
    gradient = jitad.grad(lambda v: np.sum(unravel(v)["b"][1] ** 2) + unravel(v)["a"].mu)(vector)
    np.testing.assert_array_equal(gradient, [0, 0, 2, 4, 6, 1, 0, 0, 0])
    with pytest.raises(ValueError, match=r"a vector of shape \(9,\) is needed"):
        unravel(np.zeros(3))


def test_a_gradient_of_ones_own_is_kept():
    @jitad.custom_gradient
    def logp(x):
        return np.sum(x), lambda ct: (7.0 * ct * x,)

    value, gradient = jitad.posterior(logp, {"x": real(2)}).value_and_grad(np.array([1.0, 2.0]))
    assert value == 3.0 and gradient.tolist() == [7.0, 14.0]


def test_an_error_of_numpy_is_at_the_users_line():
    post = jitad.posterior(lambda p: np.linalg.cholesky(-np.eye(2) * p["x"] ** 2)[0, 0], {"x": real()})
    with pytest.raises(StartError, match=r"LinAlgError: .*\(at .*test_posterior.py:\d+\)"):
        post.sample(10, start={"x": 1.0}, progress=False)


def test_code_in_a_folder_called_jitad_is_the_users():
    names = {}
    exec(compile("def logp(p):\n    raise ValueError('nowhere')", "/home/jitad/model.py", "exec"), names)
    with pytest.raises(StartError, match=r"ValueError: nowhere \(at /home/jitad/model.py:2\)"):
        jitad.posterior(names["logp"], {"x": real()}).sample(10, start={"x": 1.0}, progress=False)
