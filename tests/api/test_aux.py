"""`has_aux=True`: what a function computes on the way comes with its derivative."""
from __future__ import annotations

import pickle

import numpy as np
import pytest

import jitad
from jitad.errors import ArgumentTypeError, OutputError, SignatureError

A = np.arange(6.0).reshape(2, 3)
X = np.array([1.0, -2.0, 0.5])


def f(x, A):
    r = A @ x
    return np.sum(r * r), {"r": r, "most": (np.max(r), 3)}


def same(found, x, A):
    r = A @ x
    np.testing.assert_allclose(found["r"], r, rtol=1e-14)
    assert found["most"] == (r.max(), 3) and set(found) == {"r", "most"}


def test_derivatives_with_what_comes_along():
    g, both = jitad.jit_grad(f, has_aux=True), jitad.value_and_grad(has_aux=True)(f)
    for x in (X, X[::-1] * 3):                                # the second call is compiled code alone
        slope = 2 * A.T @ (A @ x)
        gradient, aux = g(x, A)
        np.testing.assert_allclose(gradient, slope, rtol=1e-14)
        same(aux, x, A)
        (value, aux), gradient = both(x, A)
        assert value == pytest.approx(np.sum((A @ x) ** 2), rel=1e-14)
        np.testing.assert_allclose(gradient, slope, rtol=1e-14)
        same(aux, x, A)
    assert g.value(X, A)[0] == g.value_and_grad(X, A)[0][0] == g.bind(A).value_and_grad(X)[0][0]
    (value, aux), gradient = pickle.loads(pickle.dumps(both))(X, A)
    same(aux, X, A)


def test_out_takes_the_gradient():
    out = np.zeros(3)
    gradient, aux = jitad.jit_grad(lambda x: (np.sum(x * x), x + 1.0), has_aux=True)(X, out=out)
    assert gradient is out
    np.testing.assert_array_equal(out, 2 * X)
    np.testing.assert_array_equal(aux, X + 1.0)


def test_inside_others_and_for_a_batch():
    def outer(x):
        gradient, aux = jitad.jit_grad(f, has_aux=True)(x, A)
        return np.sum(gradient * x) + np.sum(aux["r"])
    np.testing.assert_allclose(jitad.jit_grad(outer)(X), 4 * A.T @ (A @ X) + A.sum(axis=0), rtol=1e-13)
    points = np.stack([X, X + 1])
    gradients, aux = jitad.batch(jitad.jit_grad(f, has_aux=True), in_axes=(0, None))(points, A)
    np.testing.assert_allclose(gradients, 2 * points @ A.T @ A, rtol=1e-13)
    np.testing.assert_allclose(aux["r"], points @ A.T, rtol=1e-14)


@pytest.mark.parametrize("wrong", [lambda x: np.sum(x), lambda x: [np.sum(x), x], lambda x: (np.sum(x), x, x)])
def test_no_pair_is_refused(wrong):
    with pytest.raises(OutputError, match=r"returned no pair \(last computed at .*test_aux.py:\d+\); with has"):
        jitad.jit_grad(wrong, has_aux=True)(X)


def test_what_cannot_be():
    with pytest.raises(OutputError, match="returned an array of shape"):
        jitad.value_and_grad(lambda x: (x, x), has_aux=True)(X)
    with pytest.raises(ArgumentTypeError, match="has_aux must be True or False, not 1"):
        jitad.jit_grad(f, has_aux=1)
    with pytest.raises(SignatureError, match="leave out has_aux=True"):
        jitad.jit_grad(f, has_aux=True).compile(X, A).cfunc  # noqa: B018
