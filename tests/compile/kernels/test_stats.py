"""Kernels of densities against the interpreter: many distributions at once, one compilation for each kind of method."""
from __future__ import annotations

import numpy as np
import scipy.stats as st

import jitad
from jitad.tape.evaluate import evaluate
from jitad.trace.pytree import leaves_of
from tests.helpers.cases.stats import METHODS, arguments
from tests.helpers.public import fresh  # noqa: F401

TAILS = {("norm", "logcdf"), ("gamma", "sf"), ("t", "cdf"), ("cauchy", "ppf"), ("pareto", "var")}
KINDS = """bernoulli beta betabinom binom cauchy chi2 crystalball expon exponnorm f gamma genextreme gennorm geom
    gumbel_l gumbel_r halfcauchy halfnorm invgamma invgauss laplace logistic lognorm nbinom norm pareto pearson3 poisson
    rice skewnorm skellam t truncnorm uniform vonmises wald weibull_min wrapcauchy""".split()
TABLE = [(name, method) for name, method in METHODS
         if (name in KINDS and method in ("logpdf", "logpmf")) or (name, method) in TAILS]


def test_many_methods_in_one_kernel():
    functions, data = {}, {}
    for name, method in TABLE:
        inner, edges = arguments(name, method), arguments(name, method, edges=True)
        functions[f"{name}.{method}"] = getattr(getattr(st, name), method)
        data[f"{name}.{method}"] = tuple(np.concatenate([a[::5], b[:9]]) for a, b in zip(inner, edges, strict=True))

    compiled = jitad.jit(lambda data: {key: function(*data[key]) for key, function in functions.items()}).compile(data)
    got = leaves_of(compiled(data))[0]
    values = evaluate(compiled.tape, *leaves_of(data)[0])
    for key, g, e in zip(functions, got, values, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-11, atol=1e-14 if "log" in key else 1e-300, err_msg=key)

    finite = {key: np.isfinite(v) for key, v in zip(functions, values, strict=True)}
    for name in ("chi2", "wald", "gumbel_l", "halfcauchy", "invgamma", "betabinom", "halfnorm"):  # like others
        for table in (functions, data, finite):
            table.pop(f"{name}.logpdf", None)
            table.pop(f"{name}.logpmf", None)
    compiled = jitad.value_and_grad(lambda data: sum(
        np.sum(np.where(finite[key], function(*data[key]), 0.0)) for key, function in functions.items())).compile(data)
    value, slopes = compiled(data)
    expected_value, *expected = evaluate(compiled.tape, *leaves_of(data)[0], *finite.values())
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for g, e in zip(leaves_of(slopes)[0], expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12 * max(1.0, np.abs(e[np.isfinite(e)]).max(initial=0.0)))


def test_no_mask_where_none_is_needed():
    """The checks of a normal's parameters are outside of the loop."""
    def f(mu, sigma, y):
        return st.norm.logpdf(y, mu, sigma).sum()

    source = jitad.value_and_grad(f, argnums=(0, 1)).source(0.5, 2.0, np.ones(1000))
    head, loop = source.split("for i in range", 1)
    assert "sigma > 0" in head and "select" not in loop.split("return")[0].split("grad_sigma")[0]


def test_later_calls_take_every_edge():
    """One tape serves valid and invalid parameters, points inside and outside."""
    f = jitad.value_and_grad(lambda y, a, s: st.gamma.logpdf(y, a, 0.0, s).sum(), argnums=(1, 2))
    for y, a, s in (([1.0, 2.0], 2.0, 1.5), ([1.0, -2.0], 2.0, 1.5), ([1.0, 2.0], -2.0, 1.5), ([1.0, 2.0], 2.0, 0.0),
                    ([np.nan, 2.0], 2.0, 1.0)):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(f(np.array(y), a, s)[0], st.gamma.logpdf(y, a, 0.0, s).sum(), rtol=1e-12)
    assert jitad.cache.info().compiles == 1
