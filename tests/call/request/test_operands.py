"""Functions of libraries as what transforms are given, called, compiled, and inside of recorded code."""
from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.special as sp

from jitad import ArgumentTypeError, TapeMismatchWarning, cache, grad, hessian, jacobian, jit, jvp, value_and_grad, vjp

X = np.array([0.5, 1.0, 2.0])


def test_every_transform_takes_them():
    assert np.array_equal(grad(np.sum)(X), np.ones(3))
    assert np.allclose(jacobian(np.exp)(X), np.diag(np.exp(X)))
    assert np.allclose(vjp(sp.gammaln, X)[1](np.ones(3)), sp.digamma(X))
    assert np.allclose(jvp(np.sin, (X,), (X,))[1], X * np.cos(X))
    assert np.allclose(hessian(np.linalg.norm)(X), (np.eye(3) - np.outer(X, X) / (X @ X)) / np.sqrt(X @ X))


def test_keywords_out_and_names_are_the_functions():
    assert np.array_equal(jit(np.sum)(np.outer(X, X), axis=1), np.outer(X, X).sum(1))
    out = np.zeros(3)
    assert jit(np.exp)(X, out=out) is out and np.allclose(out, np.exp(X))
    g = value_and_grad(np.linalg.norm)
    assert g.__name__ == "norm" and g.__module__ == "numpy.linalg"
    with pytest.raises(TypeError, match="axs"):
        g(X, axs=0)


def test_each_is_a_function_of_its_own(recwarn):
    for f in (np.ptp, np.prod, np.add.reduce, np.maximum.reduce, functools.partial(np.ptp)):
        assert np.isclose(jit(f)(X), f(X))
    assert not [w for w in recwarn if issubclass(w.category, TapeMismatchWarning)]
    assert cache.info(np.ptp).compiles >= 1
    cache.clear(np.ptp)
    assert cache.info(np.ptp).currsize == 0


def test_inside_of_recorded_code():
    def f(x):
        slopes = grad(np.sum)(x) + jacobian(np.exp)(x) @ x + vjp(sp.expit, x)[1](x)
        return jit(np.linalg.norm)(x) * np.sum(slopes) * grad(max)(x[0], x[1]) + grad(functools.partial(
            np.linalg.norm, ord=2))(x)[0]

    value, gradient = value_and_grad(f)(X[::-1].copy())
    x, h = X[::-1], 1e-6
    s = sp.expit(x)
    plain = np.linalg.norm(x) * np.sum(1.0 + np.exp(x) * x + s * (1 - s) * x) + x[0] / np.linalg.norm(x)
    assert np.isclose(value, plain)
    differences = [(jit(f)(x + h * e) - jit(f)(x - h * e)) / (2 * h) for e in np.eye(3)]
    assert np.allclose(gradient, differences, rtol=1e-6)


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"a function is needed, not a float \(at .*test_operands.py:\d+\)"):
        grad(3.0)


def failing(x):
    assert x[0] > 0, "the first must be positive"
    assert x.shape == (3,) and not np.isnan(x).any()
    return np.sum(x * x)


def test_asserts_that_pytest_has_rewritten():
    g = grad(failing)
    assert np.allclose(g(X), 2 * X)
    with pytest.raises(AssertionError, match=r"the first must be positive\nassert .*-0\.5.* > 0"):
        g(-X)
    assert np.allclose(g(X), 2 * X)
