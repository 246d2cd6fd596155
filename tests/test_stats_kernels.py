"""Kernels of densities against the interpreter: many distributions at once, one compilation for each kind of method."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats as st
from public import fresh  # noqa: F401
from stats_cases import METHODS, arguments, is_discrete

import jitad
from jitad.evaluate import evaluate
from jitad.trace.pytree import leaves_of

GROUPS = {"densities": ("logpdf", "logpmf", "pdf", "pmf"), "distribution functions": ("cdf", "logsf"),
          "the rest": ("ppf", "isf", "logcdf", "sf", "mean", "var", "std", "entropy", "median")}


def objects(methods):
    """(name, method, data) with the bound methods of SciPy, every third of the sample points and all edges."""
    for name, method in METHODS:
        if method in methods:
            inner, edges = arguments(name, method), arguments(name, method, edges=True)
            data = [np.concatenate([a[::3], b[:9]]) for a, b in zip(inner, edges, strict=True)]
            yield f"{name}.{method}", getattr(getattr(st, name), method), data


@pytest.mark.parametrize("group", GROUPS)
def test_many_methods_in_one_kernel(group):
    table = list(objects(GROUPS[group]))
    functions = {key: function for key, function, _ in table}
    data = {key: tuple(columns) for key, _, columns in table}
    finite = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, function, columns in table:
            finite[key] = np.isfinite(function(*columns)).astype(float)

    def values(data):
        return {key: function(*data[key]) for key, function in functions.items()}

    def total(data):
        return sum(np.sum(np.where(finite[key] > 0, function(*data[key]), 0.0)) for key, function in functions.items())

    compiled = jitad.jit(values).compile(data)
    got = leaves_of(compiled(data))[0]
    expected = evaluate(compiled.tape, *leaves_of(data)[0])
    for key, g, e in zip(sorted(functions), got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=2e-12, atol=1e-14 if "log" in key else 1e-300, err_msg=key)
    compiled = jitad.value_and_grad(total).compile(data)
    value, slopes = compiled(data)
    captured = [finite[key] for key in functions]
    expected_value, *expected = evaluate(compiled.tape, *leaves_of(data)[0], *captured)
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
    assert not is_discrete("gamma")
