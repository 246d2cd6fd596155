"""Multivariate distributions against scipy.stats: values, derivatives, and the errors that SciPy raises."""
from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.stats as st

from jitad import grad, hessian, jit, value_and_grad
from jitad.cache.keys.identity import unwrap
from jitad.errors import UnsupportedOperationError
from jitad.passes.differentiate.modes import pullback
from jitad.tape.builder import Builder
from jitad.tape.evaluate import GuardMiss, evaluate
from jitad.trace.record import record
from tests.programs.table import interpreted

rng = np.random.default_rng(0)
root = rng.normal(size=(3, 3))
S = root @ root.T + np.eye(3)
x, mu = rng.normal(size=(2, 3))
X = rng.normal(size=(5, 3))
W = np.stack([S + i * np.eye(3) for i in range(4)], -1)
alpha, p = np.array([0.5, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
D = rng.dirichlet(np.full(3, 20.0), 6).T
N = np.array([[2.0, 3.0, 5.0], [1.0, 0.0, 9.0]])
mvn, mvt, wishart, dirichlet, multinomial = (
    st.multivariate_normal, st.multivariate_t, st.wishart, st.dirichlet, st.multinomial)
flat = mvn(np.zeros(3), np.outer(root[:, 0], root[:, 0]), allow_singular=True)

CASES = [
    (lambda x, m, S: mvn.logpdf(x, m, S), (x, mu, S)), (lambda x, m, S: mvn.pdf(x, mean=m, cov=S), (X, mu, S)),
    (lambda x, m, S: mvn(m, cov=S).logpdf(x), (X.reshape(5, 1, 3), mu, S)), (lambda x: mvn.logpdf(x), (0.3,)),
    (lambda x: mvn.logpdf(x, np.zeros(3)), (X,)), (lambda x, s: mvn.logpdf(x, None, s), (x, 2.0)),
    (lambda x, s: mvn.logpdf(x, [0, 0, 0], s), (X, mu**2 + 0.1)),
    (lambda x, s: mvn.logpdf(x, np.zeros(3), s), (X, 0.7)),
    (lambda x: mvn.logpdf(x, np.zeros(3), [1.0, 2.0, 3.0]), (X,)), (lambda x: mvn.logpdf(x, cov=np.eye(3)), (x,)),
    (lambda x, m, S: mvn.logpdf(x, m, S, allow_singular=True), (X, mu, S)),
    (lambda x, s: mvn([0, 0, 0], s * np.ones(3), allow_singular=True).pdf(x), (X, 0.7)),
    (lambda b, z: mvn(np.zeros(3), b @ b.T, allow_singular=True).logpdf(z @ b.T), (root[:, :2], X[:, :2])),
    (lambda m, S: mvn.entropy(m, S), (mu, S)), (lambda S: mvn(cov=S).entropy(), (S,)),
    (lambda x, m, S, df: mvt.logpdf(x, m, S, df), (X, mu, S, 3.5)), (lambda x, df: mvt.logpdf(x, df=df), (x, 7.5)),
    (lambda x, m, S, df: mvt(m, S, df=df).pdf(x), (X[:, :2], mu[:2], S[:2, :2], 3.5)),
    (lambda x, b, df: mvt.logpdf(x, np.zeros(3), b @ b.T, df), (x, root[:, :2], 3.5)),
    (lambda x, s: mvt(None, s * np.ones((3, 3)), 4.0, allow_singular=True).logpdf(x), (X, 0.7)),
    (lambda x, m, S: mvt.logpdf(x, m, S, 60), (rng.normal(size=(2, 4)), np.ones(4), 2.0)),
    (lambda x, df, S: wishart.logpdf(x, df, S), (S + 1, 4.5, S)), (lambda x, df, S: wishart(df, S).pdf(x), (W, 4.5, S)),
    (lambda x, df, S: wishart.logpdf(x, df, S), (x**2 + 1, 4.5, 2.0)), (lambda df, S: wishart.mean(df, S), (4.5, S)),
    (lambda x, df: wishart.logpdf(x, df, [1.0, 2.0, 3.0]), (x**2 + 1, 4.5)),
    (lambda df, S: wishart.var(df, S), (4.5, S)),
    (lambda x, df, S: st.invwishart.logpdf(x, df, S), (S + 1, 4.5, S)),
    (lambda x, df, S: st.invwishart(df, S).pdf(x), (W, 4.5, S)), (lambda df, S: st.invwishart.mean(df, S), (4.5, S)),
    (lambda x, df: st.invwishart.logpdf(x, df, [1.0, 2.0, 3.0]), (x**2 + 1, 4.5)),
    (lambda x, m, S, T: st.matrix_normal.logpdf(x, m, S, T), (X[:3], X[2:5], S, S[:3, :3] + np.eye(3))),
    (lambda x, T: st.matrix_normal(rowcov=[1.0, 2.0], colcov=T).pdf(x), (X[:4].reshape(2, 2, 3), S)),
    (lambda x, s: st.matrix_normal.logpdf(x, np.zeros((5, 3)), 2.0, s), (X, 0.7)),
    (lambda m, k: st.vonmises_fisher.logpdf(np.eye(3), m / np.sqrt(m @ m), k), (x, 2.5)),
    (lambda m, k: st.vonmises_fisher(m / np.sqrt(m @ m), k).pdf([0.6, 0.8]), (mu[:2], 40.0)),
    (lambda n, a: st.dirichlet_multinomial.logpmf(n, a, 10), (N, alpha)),
    (lambda n, a: st.dirichlet_multinomial(a, 10).pmf(n), (N[0], alpha)),
    (lambda x, s, m, l, a, b: st.normal_inverse_gamma.logpdf(x, s, m, l, a, b),
     (x, mu**2 + 0.1, 0.3, 2.0, 1.5, np.array([0.7, 1.0, 2.0]))),
    (lambda x, s: st.normal_inverse_gamma.pdf(x, s), (x, mu)),
    (lambda x, m, c: mvn.cdf(x, m, [[1 + c[0] ** 2, c[1]], [c[1], 1.5]]), (X[:, :2], mu[:2], p[1:])),
    (lambda x, c: mvn([0.2, -0.1], [[1.0, -c], [-c, 1.0]]).logcdf(x, lower_limit=x - 1.0), (X[:2, :2] / 4, 0.6)),
    (lambda x, m, s: mvn.cdf(x, m, s), (0.3, 0.4, 1.3)),
    (lambda x, a: dirichlet.logpdf(x, a), (p, alpha)), (lambda x, a: dirichlet(a).logpdf(x), (D, alpha)),
    (lambda x, a: dirichlet.pdf(x, a), (D[:2], alpha)), (lambda a: dirichlet.logpdf([0.2, 0.3], a), (alpha,)),
    (lambda a: dirichlet.mean(a), (alpha,)), (lambda a: dirichlet(a).var(), (alpha,)),
    (lambda a: dirichlet.entropy(a), (alpha,)),
    (lambda n, p: multinomial.logpmf(n, n.sum(-1).astype(int), p), (N, p)),
    (lambda n, p: multinomial(10, p).pmf(n), (N + np.array([[0], [0.5]]), p)),
    (lambda n, q: multinomial.logpmf(n, 10, q / q.sum()), (N[0], p)),
    (lambda n, p: multinomial.logpmf(n, [10, -1], p), (N, p)),
    (lambda n, p: multinomial.logpmf(n, 10, p), (N[0], p - [0.3, 0.0, 0.0])),
]


def slopes_of(tape, args, weights):
    builder = Builder()
    inputs = [builder.input(tape.nodes[i].aval, f"x{i}") for i in tape.inputs]
    outputs = builder.replay(tape, inputs)
    return evaluate(builder.finish(pullback(builder, outputs, [builder.const(weights)], inputs)), *args)


@pytest.mark.filterwarnings("ignore:Some rows of `p`")
@pytest.mark.parametrize(("f", "args"), CASES, ids=range(len(CASES)))
def test_value_and_derivatives(f, args):
    tape = record(unwrap(f), args).tape()
    expected = np.asarray(f(*args))
    got, = evaluate(tape, *args)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-11)
    if not np.isfinite(expected).all() or got.dtype != float:
        return
    weights = np.asarray(rng.normal(size=expected.shape))
    slopes = slopes_of(tape, args, weights)
    for i, a in enumerate(args):
        name = f.__code__.co_varnames[i]
        if name == "n" or (name == "p" or a is p or a is D):
            continue                                                # counts, and points on the simplex
        t = np.asarray(rng.normal(size=np.shape(a)))
        t = (t + np.swapaxes(t, 0, 1)) / 2 if np.shape(a)[:2] in ((2, 2), (3, 3)) else t
        moved = [[b + s * 1e-4 * t if i == j else b for j, b in enumerate(args)] for s in (1, -1, 2, -2)]
        one, minus, two, minus_two = (np.sum(weights * f(*m)) for m in moved)
        expected_slope = (8 * (one - minus) - (two - minus_two)) / 12e-4
        np.testing.assert_allclose(np.sum(slopes[i] * t), expected_slope, rtol=2e-8, atol=1e-9)


def test_derivatives_on_the_simplex():
    """d logpmf / d p = n / p, the last component being free where the sum is 1; d logpdf / d x = (alpha - 1) / x."""
    for f, args, slope in ((lambda p, n: multinomial.logpmf(n, 10, p), (p, N[0]), N[0] / p),
                           (lambda x, a: dirichlet.logpdf(x, a), (p, alpha), (alpha - 1) / p)):
        slopes, _ = slopes_of(record(unwrap(f), args).tape(), args, np.ones(()))
        np.testing.assert_allclose(slopes, slope, rtol=1e-13)


def test_large_degrees_of_freedom():
    for points in (X, X[:, :2]):
        def f(x, df):
            return mvt.logpdf(x, df=df, loc=np.zeros(x.shape[1]))

        tape = record(unwrap(f), (points, 1e10)).tape()
        for df in (1e10, 1e15, np.inf):
            got, = evaluate(tape, points, df)
            with mp.workdps(50):
                d, v = points.shape[1], mp.mpf(df)
                exact = [mp.loggamma((v + d) / 2) - mp.loggamma(v / 2) - d * mp.log(v * mp.pi) / 2
                         - (v + d) / 2 * mp.log1p(mp.mpf(s) / v) for s in (points**2).sum(1)] if df < np.inf else (
                             mvn.logpdf(points, np.zeros(d)))
            np.testing.assert_allclose(got, np.array(exact, float), rtol=1e-14)


@pytest.mark.parametrize(("f", "args"), [
    (lambda x: mvn.logpdf(x, np.zeros((2, 2))), (x,)), (lambda x, S: mvn.logpdf(x, [0, 0, 0], S), (x, S[:2])),
    (lambda x, S: mvn.logpdf(x, [0, 0, 0], S), (x, S[:2, :2])), (lambda x, S: mvn.logpdf(x, None, S), (x, W)),
    (lambda x, d: mvt.logpdf(x, df=d), (x, -1.0)), (lambda x, d: mvt.logpdf(x, df=d), (x, np.nan)),
    (lambda x, d: mvt(df=d).logpdf(x), (x, 0.0)),
    (lambda x, a: dirichlet.logpdf(x, a), (p, -alpha)), (lambda x, a: dirichlet.logpdf(x, a), (p, S)),
    (lambda x, a: dirichlet.logpdf(x, a), (p[:1], alpha)), (lambda x, a: dirichlet.logpdf(x, a), (p * 1.01, alpha)),
    (lambda x, a: dirichlet.logpdf(x, a), (-p, alpha)), (lambda x, a: dirichlet.logpdf(x, a), (p * 5, alpha)),
    (lambda x, a: dirichlet.logpdf(x, a), (np.array([0.0, 0.5, 0.5]), alpha)),
    (lambda x, a: dirichlet.logpdf(x, a), (np.ones((2, 1, 1)) / 3, alpha)),
    (lambda x, p: multinomial.logpmf(x, 10, p), (N[:, :2], p)), (lambda x, p: multinomial.logpmf(x, 10, p), (3.0, p)),
    (lambda x, S: wishart.logpdf(x, 5, S), (S, S[:2])), (lambda x, S: wishart.logpdf(x, 5, S), (S, W)),
    (lambda x, S: wishart.logpdf(x, 2.0, S), (S, S)), (lambda x, S: wishart.logpdf(x, [5.0, 5.0], S), (S, S)),
    (lambda x, S: wishart.logpdf(x, 5, S), (S[:2], S)), (lambda x, S: wishart.logpdf(x, 5, S), (S[:2, :2], S)),
    (lambda x, S: wishart.logpdf(x, 5, S), (W[None], S)),
])
def test_errors_are_scipys(f, args):
    with pytest.raises(ValueError, match=r".") as expected:
        f(*args)
    with pytest.raises(ValueError, match=r".") as caught:
        record(unwrap(f), args)
    words = str(expected.value).split()
    assert str(caught.value).split()[:3] == words[:3]


def test_matrices_that_are_not_positive_definite():
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    f = lambda x, S: mvn.logpdf(x, np.zeros(2), S)
    tape = record(unwrap(f), (x[:2], np.eye(2))).tape()
    with pytest.raises(np.linalg.LinAlgError):
        evaluate(tape, x[:2], bad)
    with pytest.raises(np.linalg.LinAlgError):
        record(unwrap(lambda x: mvn.logpdf(x, np.zeros(3), 0.0)), (x,))
    with pytest.raises(np.linalg.LinAlgError, match="allow_singular is False"):
        record(unwrap(lambda s: mvt(np.zeros(2), s * np.ones((2, 2)), 3.0).logpdf([0.1, 0.2])), (0.3,))


def test_second_derivatives_among_matrices_of_one_rank():
    """Between two columns that turn, as do the null space and the points of the support."""
    f = lambda b: mvn.logpdf(b @ mu[:2], np.zeros(3), b @ b.T, allow_singular=True)
    b, way, h = root[:, :2], rng.normal(size=(3, 2)), 1e-4
    slope = lambda t: interpreted(grad(f), (b + t * way,))
    curvature = np.tensordot(interpreted(hessian(f), (b,)), way, 2)
    np.testing.assert_allclose(curvature, (slope(h) - slope(-h)) / (2 * h), rtol=1e-6, atol=1e-7)


def test_off_the_support_the_density_is_zero():
    assert interpreted(jit(lambda z: flat.logpdf(z)), (x,)) == flat.logpdf(x) == -np.inf
    with pytest.raises(ValueError, match="positive semidefinite"):
        interpreted(jit(lambda z: mvn.logpdf(z, None, -np.eye(3), allow_singular=True)), (x,))


def test_a_point_that_leaves_the_simplex_is_noticed_later():
    f = lambda x, a: dirichlet.logpdf(x, a)
    tape = record(unwrap(f), (p, alpha)).tape()
    with pytest.raises(GuardMiss):
        evaluate(tape, p * 1.01, alpha)
    with pytest.raises(GuardMiss):
        evaluate(tape, p, -alpha)


def test_two_normal_variables_below_bounds():
    """The integral of the density, up to strong correlations and far from the middle; its derivative by the correlation
    is the density."""
    def exactly(h, k, r):
        rest = mp.sqrt(1 - mp.mpf(r) ** 2)
        steep = [k / r + s * 8 * rest for s in (-1, 0, 1)] if r else []
        return mp.quad(lambda t: mp.npdf(t) * mp.ncdf((k - r * t) / rest), sorted({-14, h, *(
            s for s in steep if -14 < s < h)}))
    for h, k, r in ((0.3, -0.5, 0.0), (0.7, 0.71, 0.999), (-1.2, 1.1, -0.97), (1.5, -0.4, 0.92), (-5.0, -6.0, 0.93)):
        cdf = lambda c, h=h, k=k: mvn.cdf([h, k], cov=[[1.0, c], [c, 1.0]])
        value, slope = interpreted(value_and_grad(cdf), (r,))
        np.testing.assert_allclose(value, float(exactly(h, k, r)), rtol=1e-12, atol=1e-16)
        np.testing.assert_allclose(slope, mvn.pdf([h, k], cov=[[1.0, r], [r, 1.0]]), rtol=1e-11, atol=1e-15)
    assert jit(lambda x: mvn.cdf(x, cov=np.eye(2)))(np.array([np.inf, 0.0])) == 0.5
    with pytest.raises(UnsupportedOperationError, match="cdf in more than two dimensions"):
        jit(lambda x: mvn.cdf(x, np.zeros(3)))(np.ones(3))
