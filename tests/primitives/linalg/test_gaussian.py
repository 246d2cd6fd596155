"""Gaussian densities by every usual spelling: the closed cotangent ``(alpha alpha^T - A^-1) / 2``, nothing dearer."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg import cholesky as scipy_cholesky

import jitad
from jitad.cache.keys.identity import unwrap
from jitad.passes.differentiate.modes import one, pullback
from jitad.passes.optimise.rewrites import optimise
from jitad.primitives.linalg import cholesky, mT, solve
from jitad.primitives.linalg.forms import triangles
from jitad.tape.builder import Builder
from jitad.tape.evaluate import evaluate
from jitad.tape.types import Aval
from jitad.trace.record import record


def textbook(K, y):
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.sum(np.log(np.diag(L)))


def from_factor(K, y):
    factor = cho_factor(K)
    return -0.5 * y @ cho_solve(factor, y) - np.log(np.diag(factor[0])).sum()


def lower_factor(K, y):
    factor = cho_factor(K, lower=True)
    return -y @ cho_solve(factor, y) / 2 - np.log(factor[0].diagonal()).sum()


def whitened(K, y):
    L = scipy_cholesky(K, lower=True)
    z = solve_triangular(L, y, lower=True)
    return -0.5 * (np.sum(z**2) + 2 * np.sum(np.log(np.diag(L))))


def upper(K, y):
    U = np.linalg.cholesky(K, upper=True)
    z = solve_triangular(U, y, trans="T")
    return -(z @ z) / 2 - np.linalg.slogdet(U)[1]


def elementwise(K, y):
    L = np.linalg.cholesky(K)
    z = np.linalg.solve(np.tril(L), y[:, None])[:, 0]
    return np.sum(-0.5 * np.square(z) - np.log(np.diagonal(L)))


def scaled_solve(K, y):
    L = np.linalg.cholesky(K)
    return -0.5 * (y * 2.0) @ solve_triangular(L, solve_triangular(L, y / 2, lower=True), trans=1, lower=True) - np.log(
        np.diag(L)).sum()


DENSITIES = [textbook, from_factor, lower_factor, whitened, upper, elementwise, scaled_solve]


def problem(n=5, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n))
    return a @ a.T / n + np.eye(n), rng.normal(size=n)


def gradient_tape(f, *args):
    """The optimised tape of the gradient with respect to all arguments."""
    recording = record(unwrap(f), args)
    builder, (y,) = recording.builder, recording.outputs
    return optimise(builder.finish(pullback(builder, [y], [one(y)], recording.argument_inputs)))


def names(tape):
    return [node.prim.name for node in tape.nodes]


@pytest.mark.parametrize("f", DENSITIES)
def test_closed_form(f):
    K, y = problem()
    tape = gradient_tape(f, K, y)
    by_matrix, by_vector = evaluate(tape, K, y)
    alpha, inverse = np.linalg.solve(K, y), np.linalg.inv(K)
    np.testing.assert_allclose(by_matrix, 0.5 * (np.outer(alpha, alpha) - inverse), rtol=1e-12)
    np.testing.assert_allclose(by_vector, -alpha, rtol=1e-12)
    assert (by_matrix == by_matrix.T).all()
    assert names(tape).count("cholesky_inverse") == 1 and "solve" not in names(tape) and "tril" not in names(tape)
    assert all(tape.nodes[n.inputs[1]].aval.shape[-1] == 1 for n in tape.nodes if n.prim.name == "solve_triangular")


def numeric(f, K, direction, step=1e-6):
    return (f(K + step * direction) - f(K - step * direction)) / (2 * step)


GENERAL = {
    "columns": lambda L, b: np.sum(solve_triangular(L, b, lower=True) ** 2),
    "other columns": lambda L, b: np.sum(cho_solve((L, True), b) * np.arange(12.0).reshape(4, 3)),
    "no symmetry": lambda L, b: np.sum(np.sin(solve_triangular(L, b, lower=True))),
    "weights": lambda L, b: np.sum(np.log(np.diag(L)) * np.arange(4.0)),
    "all of the factor": lambda L, b: np.sum(np.cos(L)) + np.log(np.diag(L)).sum(),
    "part of a where": lambda L, b: np.sum(np.where(np.arange(4) > 1, np.log(np.diag(L)), 0.0)),
    "product": lambda L, b: np.log(np.prod(np.diag(L))) + np.linalg.slogdet(L)[1] * 3 - np.linalg.det(L),
    "scaled factor": lambda L, b: np.sum(solve_triangular(2.0 * L, b, lower=True) ** 2),
    "two sides": lambda L, b: solve_triangular(L, b[:, 0], lower=True) @ solve_triangular(L, b[:, 1], lower=True),
}


@pytest.mark.parametrize("name", GENERAL)
def test_other_uses_of_the_factor(name):
    """The general rule where the closed form does not hold, and the closed form for several right sides."""
    K, _ = problem(4)
    b = np.random.default_rng(1).normal(size=(4, 3))
    direction = np.random.default_rng(2).normal(size=(4, 4))
    direction += direction.T

    use = GENERAL[name]

    def f(K, b):
        return use(np.linalg.cholesky(K), b)
    gradient, _ = evaluate(gradient_tape(f, K, b), K, b)
    slope = numeric(lambda K: f(K, b), K, direction)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-7)
    np.testing.assert_allclose(gradient, gradient.T, rtol=1e-13)


def test_coefficients_that_are_traced_and_batches():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(3, 4, 4))
    K, y, s = a @ np.swapaxes(a, 1, 2) + 4 * np.eye(4), rng.normal(size=(3, 4)), np.array([0.5, -2.0, 3.0])

    def f(K, y, s):
        L = np.linalg.cholesky(K)
        z = np.linalg.solve(L, y[..., None])[..., 0]
        return np.sum(s * (-0.5 * np.sum(z * z, axis=-1) - np.log(np.diagonal(L, 0, 1, 2)).sum(-1) * s))
    tape = gradient_tape(f, K, y, s)
    alpha = np.linalg.solve(K, y[..., None])
    expected = s[:, None, None] / 2 * (alpha @ np.swapaxes(alpha, 1, 2) - s[:, None, None] * np.linalg.inv(K))
    np.testing.assert_allclose(evaluate(tape, K, y, s)[0], expected, rtol=1e-12)
    assert "tril" not in names(tape)


def test_the_hessian_of_a_density():
    """The closed form is made of rows that can be differentiated again: d2 of -log|K|/2 in direction E is
    tr(K^-1 E K^-1 E) / 2."""
    K, y = problem(3)
    E = np.diag([1.0, 2.0, 3.0])

    def slope(t):
        return jitad.jit_grad(lambda t: textbook(K + t * E, y))(t)
    inverse, alpha = np.linalg.inv(K), np.linalg.solve(K, y)
    expected = 0.5 * np.trace(inverse @ E @ inverse @ E) - alpha @ E @ inverse @ E @ alpha
    np.testing.assert_allclose(jitad.jit_grad(slope)(0.0), expected, rtol=1e-12)


def lower_by_assignment(x):
    L = np.zeros((3, 3))
    L[np.tril_indices(3)] = x
    return L


@pytest.mark.parametrize(("make", "expected"), [
    (lambda x: np.tril(x.reshape(2, 3)[:, :2]), (True, False)),
    (lambda x: np.triu(x.reshape(2, 3)[:, :2]).T, (True, False)),
    (lambda x: np.tril(x.reshape(2, 3)[:, :2], 1), (False, False)),
    (lambda x: -np.tril(x.reshape(2, 3)[:, :2]) * x[0] + np.eye(2), (True, False)),
    (lambda x: np.diag(x), (True, True)),
    (lower_by_assignment, (True, False)),
    (lambda x: lower_by_assignment(x).T / 2, (False, True)),
    (lambda x: lower_by_assignment(x) + x[0], (False, False)),
    (lambda x: x.reshape(2, 3)[:, :2], (False, False)),
    (lambda x: np.where(np.tri(2, dtype=bool), x[:4].reshape(2, 2), 0.0), (True, False)),
    (lambda x: np.tri(2) * x[:4].reshape(2, 2), (False, False)),            # which may be infinite
])
def test_what_is_known_to_be_triangular(make, expected):
    made, = record(unwrap(make), (np.arange(1.0, 7.0),)).outputs
    assert triangles(made) == expected


def test_long_sums_of_the_factor():
    """Taking a cotangent apart has an end: many terms, and terms that double."""
    K, y = problem(3)

    def f(K, y):
        L = np.linalg.cholesky(K)
        doubled, total = L, 0.0
        for i in range(40):
            doubled = (doubled + doubled) * 0.5
            total = total + np.sum(np.linalg.solve(L, y * i))
        return total + np.log(np.diag(doubled)).sum() + np.linalg.solve(doubled, y) @ y
    gradient = evaluate(gradient_tape(f, K, y), K, y)[0]
    direction = np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.sum(gradient * direction), numeric(lambda K: f(K, y), K, direction), rtol=1e-6)


def test_triangular_systems_are_recognised():
    x, y = np.array([2.0, 1.0, 3.0, -1.0, 0.5, 4.0]), np.array([1.0, 2.0, 3.0])

    def f(x, y):
        L = lower_by_assignment(x)
        return np.sum(np.linalg.solve(L, y) ** 2) + np.linalg.slogdet(L)[1]
    tape = gradient_tape(f, x, y)
    assert "solve" not in names(tape) and "inv" not in names(tape)
    h = 1e-6
    for gradient, i, args in zip(evaluate(tape, x, y), (0, 1), ((x, y),) * 2, strict=True):
        for j in range(len(args[i])):
            shifted = [[a + h * s * (np.arange(len(a)) == j) * (k == i) for k, a in enumerate(args)] for s in (1, -1)]
            np.testing.assert_allclose(gradient[j], (f(*shifted[0]) - f(*shifted[1])) / (2 * h), rtol=1e-6, atol=1e-8)


def test_kernels():
    """All spellings, a batch and shared factors in one kernel."""
    K, y = problem(40)
    rng = np.random.default_rng(4)
    a = rng.normal(size=(2, 3, 3)) + 4 * np.eye(3)

    def general(K, y, a):
        big = np.linalg.solve(K, y) @ y + np.linalg.slogdet(K)[1] + np.log(np.linalg.det(K))
        skew = K + np.triu(np.ones((40, 40)), 1)
        other = np.linalg.slogdet(skew)[1] + np.sum(np.linalg.solve(skew, y) * y) + np.sum(np.linalg.inv(skew))
        small = np.sum(np.linalg.solve(a, y[:6].reshape(2, 3, 1))) + np.sum(np.linalg.slogdet(a)[1])
        return big + other + small
    for f, args in ((lambda K, y, a: sum(d(K, y) for d in DENSITIES[:5]), (K, y, a)), (general, (K, y, a))):
        tape = gradient_tape(f, *args)
        kernel = jitad.jit_grad(f, argnums=(0, 1, 2)) if f is general else jitad.jit_grad(f, argnums=(0, 1))
        for got, expected in zip(kernel(*args), evaluate(tape, *args), strict=False):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)


def test_structure_survives_a_view_of_leading_dimensions():
    builder = Builder()
    x = builder.input(Aval((2, 3, 3), np.dtype(float)), "x")
    L = cholesky(x)
    assert triangles(mT(L)) == (False, True)
    assert solve(mT(L), -x).node.prim.name == "solve_triangular"
