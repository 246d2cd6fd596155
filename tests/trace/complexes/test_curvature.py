"""Second derivatives of what is made of complex numbers."""
from __future__ import annotations

import numpy as np
import pytest

from jitad import hessian, hvp, jit_grad


def test_the_curvature_of_eigenvalues_of_two_by_two():
    """They are ``(a + d) / 2 -+ r`` with the length r of the vector ((a - d) / 2, b, c)."""
    def upper(q):
        a, b, c, d = q
        return np.linalg.eigvalsh(np.array([[a, b - 1j * c], [b + 1j * c, d]]))[1]

    q = np.array([1.3, 0.4, -0.8, 0.2])
    v, turn = np.array([(q[0] - q[3]) / 2, q[1], q[2]]), np.array([[0.5, 0, 0, -0.5], [0, 1, 0, 0], [0, 0, 1, 0]])
    r = np.sqrt(v @ v)
    expected = turn.T @ (np.eye(3) - np.outer(v, v) / r**2) @ turn / r
    np.testing.assert_allclose(hessian(upper)(q), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hvp(upper)(q, q), 0, atol=1e-14)


def test_the_curvature_of_a_modulus():
    x = np.array([0.6, -0.8])
    length = lambda x: np.linalg.svdvals(np.reshape(x[0] + 1j * x[1], (1, 1)))[0]
    np.testing.assert_allclose(hessian(length)(x), np.eye(2) - np.outer(x, x), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_second_derivatives_of_complex_spectra_are_those_of_differences(shape):
    rng = np.random.default_rng(shape)
    other, x, v, w = (rng.normal(size=s) for s in (shape, shape, shape, min(shape)))
    spectra = [lambda x: np.linalg.svdvals(x + 1j * other) @ w, lambda x: np.linalg.svd(
        x - 1j * other, compute_uv=False) ** 3 @ w]
    if shape[0] == shape[1]:
        spectra += [lambda x: np.linalg.eigvalsh(x + 1j * other, "U") @ w, lambda x: np.linalg.eigvalsh(
            (x + 1j * other) @ (x + 1j * other).conj().T) @ w]
    for f in spectra:
        g, h = jit_grad(f), 1e-5
        numbers = (g(x + h * v) - g(x - h * v)) / (2 * h)
        np.testing.assert_allclose(hvp(f)(x, v), numbers, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(np.tensordot(hessian(f)(x), v, 2), numbers, rtol=1e-7, atol=1e-8)


def test_equal_values_that_are_not_pairs_by_design_have_no_curvature():
    """Two eigenvalues that meet still give NaN."""
    lower = lambda x: np.linalg.eigvalsh(np.array([[x[0], 1j * x[1]], [-1j * x[1], -x[0]]]))[0]
    assert np.isfinite(hessian(lower)(np.array([0.3, 0.1]))).all()
    assert np.isnan(hessian(lower)(np.zeros(2))).any()
