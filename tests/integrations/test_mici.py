"""The bridge to mici: what its systems ask for, against closed forms; chains on a manifold and in the plane."""

import mici
import numpy as np

from jitad.integrations.mici import constraint, density

Y = np.array([1.0, 2.0, 4.0])


def logp(q, y):
    return -0.5 * np.sum((y - q[0]) ** 2) * np.exp(-q[1]) - 0.5 * y.size * q[1]


def circle(q, radius):
    return np.array([q @ q - radius**2])


def test_gradient_and_value_in_micis_order():
    arguments = density(logp, (Y,))
    gradient, value = arguments["grad_neg_log_dens"](np.array([1.0, 0.0]))
    assert value == arguments["neg_log_dens"](np.array([1.0, 0.0])) == 5.0
    np.testing.assert_allclose(gradient, [-4.0, -3.5])


def test_second_and_third_derivatives():
    arguments = density(lambda q: -np.sum(np.exp(q) * np.array([1.0, 2.0])), second=True)
    q = np.array([0.1, 0.2])
    weights = np.array([1.0, 2.0]) * np.exp(q)
    wanted = (np.diag(weights), weights, weights.sum())
    for found, right in zip(arguments["hess_neg_log_dens"](q), wanted, strict=True):
        np.testing.assert_allclose(found, right)
    product = arguments["mtp_neg_log_dens"](q)(np.array([[2.0, 5.0], [7.0, 3.0]]))
    np.testing.assert_allclose(product, weights * [2.0, 3.0])


def test_jacobian_and_products_of_a_constraint():
    arguments = constraint(circle, (2.0,))
    q = np.array([0.6, 0.8])
    jacobian, value = arguments["jacob_constr"](q)
    np.testing.assert_allclose(jacobian, [[1.2, 1.6]])
    np.testing.assert_allclose(value, [-3.0])
    np.testing.assert_allclose(arguments["constr"](q), value)
    np.testing.assert_allclose(arguments["mhp_constr"](q)(np.array([[1.0, 2.0]])), [2.0, 4.0])


def test_chains_on_a_circle_stay_there():
    system = mici.systems.DenseConstrainedEuclideanMetricSystem(
        **density(lambda q: 3.0 * q[0]), **constraint(circle, (1.0,)), dens_wrt_hausdorff=True)
    integrator = mici.integrators.ConstrainedLeapfrogIntegrator(system, step_size=0.4)
    sampler = mici.samplers.StaticMetropolisHMC(system, integrator, np.random.default_rng(1), n_step=4)
    draws = sampler.sample_chains(0, 300, [np.array([1.0, 0.0])], adapters=[], display_progress=False).traces["pos"][0]
    np.testing.assert_allclose(np.sum(draws**2, axis=1), 1.0, atol=1e-7)
    # von Mises with kappa = 3: the mean of cos is I1(3) / I0(3) = 0.8100
    assert abs(draws[:, 0].mean() - 0.81) < 0.08


def test_softabs_takes_the_second_derivatives():
    system = mici.systems.SoftAbsRiemannianMetricSystem(**density(logp, (Y,), second=True))
    state = mici.states.ChainState(pos=np.array([1.0, 0.3]), mom=np.array([0.2, -0.1]), dir=1)
    start = system.h(state)
    integrator = mici.integrators.ImplicitLeapfrogIntegrator(system, step_size=0.01)
    for _ in range(5):
        state = integrator.step(state)
    assert abs(system.h(state) - start) < 1e-4
