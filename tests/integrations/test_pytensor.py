"""The bridge to PyTensor: values and derivatives in graphs, by several linkers; PyMC's potentials and distributions."""

import functools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from jitad.errors import ArgumentTypeError
from jitad.integrations.pytensor import as_op

X = np.random.default_rng(0).normal(size=(6, 2))
COUNTS = np.arange(6)


def logp(b, s, x, y):
    return -0.5 * np.sum((x @ b - y) ** 2) / s**2 - y.size * np.log(s)


def expected(b, s):
    return -0.5 * pt.sum((X @ b - COUNTS) ** 2) / s**2 - 6 * pt.log(s)


@pytest.mark.parametrize(("mode", "order"), [("FAST_COMPILE", 2), ("NUMBA", 1)])
def test_values_and_derivatives(mode, order):
    b, s = pt.dvector("b"), pt.dscalar("s")

    def everything(value):
        gradient = pt.grad(value, [b, s])
        return [value, *gradient, *(pytensor.gradient.jacobian(gradient[0], [b, s]) if order == 2 else [])]

    found, wanted = (pytensor.function([b, s], everything(value), mode=mode)([0.3, 0.4], 1.5)
                     for value in (as_op(logp)(b, s, X, COUNTS), expected(b, s)))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_value_and_gradient_come_from_one_operation():
    b, s = pt.dvector("b"), pt.dscalar("s")
    value = as_op(logp)(b, s, X, COUNTS)
    graph = pytensor.function([b, s], [value, *pt.grad(value, [b, s])], mode="FAST_COMPILE").maker.fgraph
    assert sum(type(node.op).__module__ == "jitad.integrations.pytensor" for node in graph.apply_nodes) == 1


def test_vectors_and_constants():
    x = pt.dvector("x")
    gradient = pt.grad((as_op(lambda x, y: np.sin(x) * y, ndim=1)(x, 2.0) ** 2).sum(), x)
    at = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient.eval({x: at}), 8 * np.sin(at) * np.cos(at))


def test_a_potential_samples_with_the_gradient():
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, 1.0, shape=2)
        s = pm.HalfNormal("s", 1.0)
        pm.Potential("likelihood", as_op(logp)(b, s, X, COUNTS))
    same = pm.Model()
    with same:
        b = pm.Normal("b", 0.0, 1.0, shape=2)
        s = pm.HalfNormal("s", 1.0)
        pm.Potential("likelihood", expected(b, s))
    point = {"b": np.array([0.1, -0.2]), "s_log__": np.array(0.4)}
    np.testing.assert_allclose(model.compile_dlogp()(point), same.compile_dlogp()(point), rtol=1e-10)
    trace = pm.sample(model=model, draws=50, tune=50, chains=1, progressbar=False, random_seed=1,
                      compute_convergence_checks=False)
    assert trace.posterior["b"].shape == (1, 50, 2)


def test_the_density_of_a_distribution():
    pointwise = as_op(lambda value, mu: -0.5 * (value - mu) ** 2, ndim=1)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.CustomDist("y", mu, logp=pointwise, observed=COUNTS.astype(float))
    gradient = model.compile_dlogp()({"mu": 0.5})
    np.testing.assert_allclose(gradient, np.sum(COUNTS - 0.5) - 0.5)


def test_constants_alone_and_negative_ranks_are_refused():
    with pytest.raises(ArgumentTypeError, match="none of the inputs is a variable made of floats"):
        as_op(logp)(X[0], 1.0, X, COUNTS)
    with pytest.raises(ArgumentTypeError, match="not -1"):
        as_op(logp, ndim=-1)


def test_errors_of_the_function_reach_the_caller():
    s = pt.dvector("s")
    with pytest.raises(ValueError, match="must be positive"):
        as_op(refusing)(s).eval({s: np.array([-1.0])})


def refusing(s):
    if s[0] <= 0:
        raise ValueError("s must be positive")
    return np.log(s[0])


def test_decorators_of_the_user_stay():
    @functools.wraps(np.sum)
    def doubled(x):
        return 2.0 * np.sum(x)

    x = pt.dvector("x")
    assert as_op(doubled)(x).eval({x: np.ones(3)}) == 6.0


def test_a_vector_function_of_one_input_is_differentiated_twice():
    x = pt.dvector("x")
    slope = pt.grad(as_op(lambda x: x**3, ndim=1)(x).sum(), x)
    np.testing.assert_allclose(pt.grad(slope.sum(), x).eval({x: np.array([1.0, 2.0])}), [6.0, 12.0])
