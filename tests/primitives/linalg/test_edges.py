"""Linear algebra at its edges: repeated values, missing rank, failures, empty and batched matrices, one big kernel."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import jitad
from jitad import jit, jit_grad
from jitad.compile.lower.lower import program_of

RNG = np.random.default_rng(0)
Q = np.linalg.qr(RNG.normal(size=(4, 4)))[0]


def twice():
    """Symmetric, with a pair of equal eigenvalues."""
    return Q @ np.diag([1.0, 2.0, 2.0, 5.0]) @ Q.T


@pytest.mark.parametrize("a", [np.eye(4) * 2.0, twice()], ids=["identity", "pair"])
def test_symmetric_functions_of_repeated_eigenvalues(a):
    """d sum(log w) = inv(A), d sum(w^3) = 3 A^2, whatever the vectors are."""
    both = jit_grad(lambda a: np.sum(np.log(np.linalg.eigvalsh(a))) + np.sum(np.linalg.eigh(a)[0] ** 3))
    np.testing.assert_allclose(both(a), np.linalg.inv(a) + 3 * a @ a, rtol=1e-12, atol=1e-12)


def test_vectors_of_repeated_eigenvalues_have_no_derivative():
    """The derivative of V log(w) V^T at the identity exists, but cannot be told from the vectors: NaN, not zero."""
    def f(a):
        w, v = np.linalg.eigh(a)
        return np.sum(((v * np.log(w)) @ v.T) * np.arange(16.0).reshape(4, 4))
    assert np.isnan(jit_grad(f)(np.eye(4))).all()


def test_other_vectors_do_not_mind_repeated_eigenvalues():
    """d (v . c)^2 = 2 (v . c) v^T dA (w - A)^+ c."""
    c, a = np.arange(4.0), twice()

    def f(a, c):
        return (np.linalg.eigh(a)[1][:, -1] @ c) ** 2
    v = np.linalg.eigh(a)[1][:, -1]
    moved = np.linalg.pinv(5.0 * np.eye(4) - a, 1e-10) @ c
    expected = 2 * (v @ c) * np.outer(v, moved)
    np.testing.assert_allclose(jit_grad(f)(a, c), (expected + expected.T) / 2, rtol=1e-9, atol=1e-12)


def test_norms_by_singular_values_at_ties():
    """d nuclear norm = U V^T, the orthogonal factor."""
    a = 3.0 * Q
    np.testing.assert_allclose(jit_grad(lambda a: np.linalg.norm(a, "nuc"))(a), Q, rtol=1e-12)
    tall = np.eye(5, 2) * [4.0, 1.0]
    np.testing.assert_allclose(jit_grad(lambda a: np.linalg.norm(a, 2))(tall), np.eye(5, 2) * [1.0, 0.0], atol=1e-14)


def test_polar_factor_of_an_orthogonal_matrix():
    """dU of A = U at P = I: the skew part U skew(U^T dA)."""
    weights = RNG.normal(size=(4, 4))
    gradient = jit_grad(lambda a: np.sum(scipy.linalg.polar(a)[0] * weights))(Q)
    skew = Q.T @ weights
    np.testing.assert_allclose(gradient, Q @ (skew - skew.T) / 2, rtol=1e-11)


def test_singular_vectors_of_a_matrix_without_full_rank():
    """Vectors that belong to nonzero values are differentiable; those that belong to zero are not."""
    a = np.outer(np.arange(1.0, 5.0), [1.0, 2.0, 2.0])

    def first(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return np.sum((u[:, 0] * vh[0, 0]) ** 2 * np.arange(4.0)) + s[0]
    h, e = 1e-6, RNG.normal(size=a.shape)
    slope = (first(a + h * e) - first(a - h * e)) / (2 * h)
    np.testing.assert_allclose(np.sum(jit_grad(first)(a) * e), slope, rtol=1e-7)
    assert np.isnan(jit_grad(lambda a: np.linalg.svd(a, full_matrices=False)[0][0, 2])(a)).any()


def test_least_squares():
    x, y = RNG.normal(size=(6, 3)), RNG.normal(size=6)

    def numpys(x, y):
        b, residuals, rank, s = np.linalg.lstsq(x, y, rcond=None)
        return b @ np.array([1.0, -1.0, 2.0]) + residuals.sum() * rank + s[0]

    def scipys(x, y):
        b, residual, rank, s = scipy.linalg.lstsq(x, y)
        return b @ b + residual * rank + s[-1]
    for f in (numpys, scipys):
        value, (by_x, by_y) = jitad.value_and_grad(f, argnums=(0, 1))(x, y)
        np.testing.assert_allclose(value, f(x, y), rtol=1e-12)
        e, d, h = RNG.normal(size=x.shape), RNG.normal(size=y.shape), 1e-6
        slope = (f(x + h * e, y + h * d) - f(x - h * e, y - h * d)) / (2 * h)
        np.testing.assert_allclose(np.sum(by_x * e) + by_y @ d, slope, rtol=1e-7)
    with pytest.warns(jitad.TapeMismatchWarning, match="another way"):
        flat = np.repeat(x[:, :1], 3, axis=1)
        np.testing.assert_allclose(jit(numpys)(flat, y), numpys(flat, y), rtol=1e-10)
        g = jit(numpys)
        g(x, y)
        g(flat, y)


FAILING = {
    "eigh": (lambda a: np.linalg.eigh(a)[0].sum(), np.full((3, 3), np.nan), "Eigenvalues did not converge"),
    "svd": (lambda a: np.linalg.svdvals(a).sum(), np.full((3, 2), np.nan), "SVD did not converge"),
    "cholesky": (lambda a: np.linalg.cholesky(a).sum(), -np.eye(40), "Matrix is not positive definite"),
    "solve": (lambda a: np.linalg.solve(a, a[0]).sum(), np.ones((40, 40)), "Singular matrix"),
    "triangular": (lambda a: np.linalg.solve(np.tril(a), a[0]).sum(), np.diag([1.0, 0.0, 2.0]), "Singular matrix"),
    "solve_triangular": (lambda a: scipy.linalg.solve_triangular(a, a[0]).sum(), np.diag([1.0, 0.0, 2.0]),
                         "singular matrix: resolution failed at diagonal 1"),
    "inv": (lambda a: np.linalg.inv(a).sum() + np.linalg.slogdet(a)[1], np.ones((2, 2)), "Singular matrix"),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a).sum(), -np.eye(2), "no real square root"),
    "solve_banded": (lambda a: scipy.linalg.solve_banded((1, 1), a, a[0]).sum(), np.zeros((3, 4)), "singular matrix"),
    "solveh_banded": (lambda a: scipy.linalg.solveh_banded(a, a[0]).sum(), -np.ones((3, 4)), "not positive definite"),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures_are_those_of_the_libraries(name):
    f, a, message = FAILING[name]
    if name != "sqrtm":
        with pytest.raises(np.linalg.LinAlgError, match=message):
            f(a)
    with pytest.raises(np.linalg.LinAlgError, match=message):
        jit(f)(a)


def test_a_lone_unsymmetric_matrix_and_a_definite_one_by_the_same_kernel():
    """Which factorization serves is decided by the matrix that comes."""
    f = jit(lambda a, b: np.linalg.solve(a, b) @ b + np.linalg.slogdet(a)[1] * np.linalg.slogdet(a)[0])
    b = RNG.normal(size=40)
    definite = np.eye(40) * 3 + np.outer(b, b)
    for a in (definite, definite + np.triu(np.ones((40, 40)), 1), definite - 4 * np.eye(40), -definite):
        sign, log = np.linalg.slogdet(a)
        np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b) @ b + log * sign, rtol=1e-10)


def test_vectors_that_nobody_reads_are_not_computed():
    tape = jit(lambda a: np.sum(np.log(np.linalg.eigh(a)[0])) + np.linalg.norm(a, 2)).compile(np.eye(3)).tape
    program = str(program_of(tape, ("C",)))
    assert "eigvalsh" in program and "svdvals" in program and "'eigh'" not in program and "'svd'" not in program


def everything(a, t, b):
    """Gradients of all families in one kernel; a: a batch of square matrices, t: tall ones, b: right sides."""
    s = a + np.swapaxes(a, -1, -2) + np.diag([0.0, 5.0, 11.0])
    w, v = np.linalg.eigh(s)
    total = np.sum(w * w) + np.sum(v[..., 0] ** 2 * b[..., 0])
    u, d, vh = np.linalg.svd(t, full_matrices=False)
    total = total + np.sum(u[..., 0] ** 2 * d[..., :1]) + np.sum(vh[..., 1] ** 2)
    q, r = np.linalg.qr(t)
    total = total + np.sum(np.sin(q)) + np.sum(r * r * np.arange(4.0).reshape(2, 2)) + np.sum(np.linalg.pinv(t) ** 2)
    total = total + np.sum(np.cos(scipy.linalg.expm(a[0]))) + np.sum(scipy.linalg.sqrtm(a[0] @ a[0].T + np.eye(3)))
    total = total + np.sum(scipy.linalg.solve_sylvester(a[0] + 4 * np.eye(3), a[1] + 4 * np.eye(3), b[0] @ b[1].T))
    total = total + np.sum(scipy.linalg.polar(t[0])[0])
    total = total + np.sum(scipy.linalg.lu_solve(scipy.linalg.lu_factor(a[1]), b[1]))
    band = scipy.linalg.solve_banded((1, 1), a[0] + 5 * np.eye(3)[1][:, None], b[0])
    definite = scipy.linalg.solveh_banded(a[1][:2] + np.array([[0.0], [9.0]]), b[1])
    return total + np.sum(band) + np.sum(definite) + np.linalg.cond(a[0])


def test_one_kernel_with_everything():
    a, t, b = RNG.normal(size=(2, 3, 3)), RNG.normal(size=(2, 4, 2)), RNG.normal(size=(2, 3, 2))
    value, gradients = jitad.value_and_grad(everything, argnums=(0, 1, 2))(a, t, b)
    np.testing.assert_allclose(value, everything(a, t, b), rtol=1e-10)
    directions, h = [RNG.normal(size=x.shape) for x in (a, t, b)], 1e-5

    def along(s):
        return everything(*(x + s * d for x, d in zip((a, t, b), directions, strict=True)))
    slope = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    np.testing.assert_allclose(sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True)), slope, rtol=1e-6)
    for name in ("F", "strided"):
        same = [np.asfortranarray(x) if name == "F" else np.repeat(x, 2, axis=-1)[..., ::2] for x in (a, t, b)]
        np.testing.assert_allclose(jit(everything)(*same), value, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::jitad.TapeMismatchWarning")
def test_empty_matrices_and_batches():
    def f(a, t):
        return (np.linalg.eigvalsh(a).sum() + np.linalg.svdvals(t).sum() + np.linalg.qr(t)[0].sum()
                + np.linalg.slogdet(a)[1].sum() + np.linalg.pinv(t).sum() + np.linalg.inv(a).sum())
    for a, t in ((np.zeros((0, 3, 3)), np.zeros((0, 3, 2))), (np.zeros((2, 0, 0)), np.zeros((2, 3, 0)))):
        value, gradients = jitad.value_and_grad(f, argnums=(0, 1))(a, t)
        assert value == f(a, t) == 0.0
        assert [g.shape for g in gradients] == [a.shape, t.shape]
