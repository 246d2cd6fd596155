"""Every method of every distribution that has a rule, against scipy.stats: values, edges, invalid parameters, and
derivatives against differences."""
from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.stats as st

from jitad import jit, jit_grad
from jitad.cache.keys.identity import unwrap
from jitad.tape.evaluate import evaluate
from jitad.trace.record import record
from jitad.trace.scipy_rules.stats.distributions import stand_in
from jitad.trace.scipy_rules.stats.rules import RULES
from jitad.trace.scipy_rules.stats.standing import distributions, standing
from tests.helpers.cases.functions import gradients, tape_of
from tests.helpers.cases.stats import UNIVARIATE, arguments, differentiable, invalid_arguments, is_discrete

# What SciPy rounds more than we do: in tails, against mpmath in test_accuracy.py.
ROUGH = {("skewnorm", m) for m in ("cdf", "sf", "logcdf", "logsf")} | {
    ("mielke", "isf")} | {(n, m) for n in ("binom", "nbinom", "geom", "poisson") for m in ("logcdf", "logsf")}
SUBTRACTED = ("alpha", "burr", "dlaplace", "fisk", "jf_skew_t", "kappa3", "mielke", "planck", "skewcauchy",
              "truncweibull_min")
FAR = {("invgauss", "logsf"), ("wald", "logsf")}


def probability(values, method):
    with np.errstate(over="ignore"):
        return np.exp(values) if method.startswith("log") else values


def scipy_values(name, method, args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(getattr(getattr(st, name), method)(*args))


def recorded(name, method):
    return lambda *args: getattr(stand_in(getattr(st, name)), method)(*args)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_values(name):
    for method, edges in itertools.product(RULES[name], (False, True)):
        args = arguments(name, method, edges)
        got, = evaluate(tape_of(recorded(name, method), *args), *args)
        expected = scipy_values(name, method, args)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        limits = (np.abs(args[0]) >= 500.0) & np.isnan(expected) & ~np.isnan(got)  # inf - inf in SciPy
        assert np.all(got[limits & np.isinf(args[0])] == (-np.inf if method.startswith("log") else 0.0))
        if method.startswith("log"):                                # the logarithm of an underflow in SciPy
            limits |= np.isinf(expected) & (got < -700.0)
        if (name, method) in FAR:
            limits |= np.abs(expected) > 1e6
        if name in SUBTRACTED:
            with np.errstate(invalid="ignore"):
                limits |= np.abs(probability(got, method) - probability(expected, method)) < 4e-16
        rough = 1e-15 if (name, method) in ROUGH and method.startswith("log") else 1e-300
        tolerance = 1e-8 if (name, method) in ROUGH else 1e-10
        np.testing.assert_allclose(got[~limits], expected[~limits], rtol=tolerance, atol=rough, err_msg=method)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_invalid_parameters(name):
    for method in RULES[name]:
        args = invalid_arguments(name, method)
        got, = evaluate(tape_of(recorded(name, method), *args), *args)
        expected = scipy_values(name, method, args)
        assert np.isnan(got[:-1]).all(), method
        if method not in ("logcdf", "logsf"):                       # SciPy forgets it at an end of the support
            assert np.isnan(expected[:-1]).all(), method
        np.testing.assert_allclose(got[-1], expected[-1], rtol=1e-10, atol=1e-15, err_msg=method)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_derivatives(name):
    for method in RULES[name]:
        args = arguments(name, method)
        tape = tape_of(recorded(name, method), *args)
        value, = evaluate(tape, *args)
        got = gradients(tape, args, [np.ones(value.shape)])
        for i in differentiable(name, method):
            expected, error = difference(RULES[name][method], args, i)
            clear = np.isfinite(value) & np.isfinite(expected)
            with np.errstate(invalid="ignore"):
                wrong = clear & (np.abs(got[i] - expected) > error)
            assert clear.any() or name in ("cauchy", "halfcauchy", "levy", "levy_l"), method
            assert not wrong.any(), [method, *(a[wrong][0] for a in args), got[i][wrong][0], expected[wrong][0]]


def difference(rule, args, i):
    """The derivative by the five-point rule, and how far it may be off."""
    near_end = np.minimum(args[i], 1.0 - args[i]) if list(rule.signature.parameters)[i] in ("q", "p") else args[i]
    h = 2e-4 * np.maximum(0.005 if near_end is args[i] else 0.0, np.abs(near_end))

    def at(s):
        moved = [a + s * h if j == i else a for j, a in enumerate(args)]
        with np.errstate(all="ignore"):
            return np.asarray(rule(*moved), np.float64)

    with np.errstate(all="ignore"):
        base, one, two = at(0), at(1) - at(-1), at(2) - at(-2)
        fine, coarse = (8 * one - two) / (12 * h), two / (4 * h)
        return fine, 1e-6 * np.abs(fine) + 1e-3 * np.abs(coarse - fine) + 1e-12 * np.abs(base) / h + 1e-15


OUTSIDE = {"expon": -1.0, "gamma": -1.0, "beta": 2.0, "uniform": 3.0, "pareto": 0.5, "lognorm": -0.5, "halfnorm": -2.0,
           "invgauss": -1.0, "weibull_min": -0.1, "truncnorm": 99.0, "poisson": 1.5, "binom": -1.0, "bernoulli": 0.5}


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_derivative_flows_from_outside_of_the_support(name):
    """Not even where the formula is infinite or undefined there."""
    method = "logpmf" if is_discrete(name) else "logpdf"
    args = [a[:1] for a in arguments(name, method)]
    args[0] = np.array([OUTSIDE[name] + 2.0 * is_discrete(name)])
    tape = tape_of(recorded(name, method), *args)
    value, = evaluate(tape, *args)
    assert value == -np.inf
    slopes = gradients(tape, args, [np.ones(1)])
    assert all(np.all(s == 0) for s in slopes), slopes


def test_float32_and_integers_and_shapes():
    x, mu, sigma = np.float32([[0.5], [1.5]]), np.arange(3), np.float32(2.0)
    for args in ((x, mu, sigma), (3, mu, 2), (np.float32(1.5), 0, 1), (np.zeros((0, 3)), mu, 1.0)):
        got, = evaluate(record(unwrap(lambda *a: st.norm.logpdf(*a)), args).tape(), *args)
        expected = np.asarray(st.norm.logpdf(*args))
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_every_listed_distribution_has_its_density():
    listed = """alpha anglit arcsine argus bernoulli beta betabinom betanbinom betaprime binom boltzmann bradford burr
        burr12 cauchy chi chi2 cosine crystalball dgamma dirichlet dirichlet_multinomial dlaplace dweibull erlang expon
        exponnorm exponpow exponweib f fatiguelife fisk foldcauchy foldnorm gamma genextreme gengamma genhyperbolic
        geninvgauss genlogistic gennorm genpareto geom gibrat gompertz gumbel_l gumbel_r halfcauchy halfgennorm
        halflogistic halfnorm hypergeom hypsecant invgamma invgauss invweibull invwishart jf_skew_t johnsonsb johnsonsu
        kappa3 laplace laplace_asymmetric levy levy_l loggamma logistic loglaplace lognorm logser loguniform lomax
        matrix_normal maxwell mielke moyal multinomial multivariate_normal multivariate_t nakagami nbinom ncx2
        nhypergeom norm normal_inverse_gamma norminvgauss pareto pearson3 planck poisson powerlaw powerlognorm
        powernorm randint rayleigh rdist recipinvgauss reciprocal rel_breitwigner rice semicircular skellam skewcauchy
        skewnorm t trapezoid triang truncexpon truncnorm truncpareto truncweibull_min uniform vonmises vonmises_fisher
        vonmises_line wald weibull_max weibull_min wishart wrapcauchy yulesimon""".split()
    assert sorted(listed) == sorted(RULES)
    for name in listed:
        assert {"logpdf", "logpmf"} & set(RULES[name]) and {"pdf", "pmf"} & set(RULES[name])
    assert set(RULES) <= set(distributions())
    assert {standing(d).get("rvs", "impure") for d in distributions().values()} == {"impure"}
    assert standing(st.landau)["logpdf"] == "refused" and len(UNIVARIATE) == len(listed) - 10


@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_quantiles_have_a_derivative_by_the_scale(method):
    q = np.array([0.3, 0.5, 0.8])
    law = getattr(st.norm, method)
    by_location, by_scale = jit_grad(lambda loc, scale: np.sum(law(q, loc, scale)), argnums=(0, 1))(0.2, 1.3)
    assert by_location == 3.0
    assert by_scale == pytest.approx(np.sum(law(q)), rel=1e-14)


def test_quantiles_at_the_ends_are_those_of_scipy():
    q = np.array([-0.1, 0.0, 0.3, 1.0, 1.1, np.nan])
    cases = [(st.norm, (0.2, 1.3)), (st.norm, (0.2, -1.0)), (st.gamma, (-2.0, 0.0, 1.0)),
             (st.uniform, (1.0, 2.0)), (st.beta, (2.0, 3.0, 1.0, 2.0))]
    for law, parameters in cases:
        got = jit(lambda q, *p, law=law: (law.ppf(q, *p), law.isf(q, *p)))(q, *parameters)
        np.testing.assert_allclose(got, (law.ppf(q, *parameters), law.isf(q, *parameters)), rtol=1e-12)
