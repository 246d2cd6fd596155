"""numpy.linalg and scipy.linalg by factors: values, dtypes, shapes and gradients against the libraries themselves."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import jitad.trace.record  # noqa: F401  (fills the tables)
from jitad import jit, value_and_grad
from jitad.errors import UnsupportedOperationError
from jitad.tape.evaluate import evaluate
from jitad.trace.substitutes import SUBSTITUTES
from tests.helpers.cases.functions import check_gradient, data, plain, tape_of
from tests.helpers.solvers import agrees, differences

SQUARE, BATCH, TALL, WIDE, PAIR = (3, 3), (2, 3, 3), (4, 3), (2, 4), ((3, 3), (3, 3))


def of(name):
    """The replacement of a function of scipy.linalg, which outside of a recording is the function."""
    return SUBSTITUTES[getattr(scipy.linalg, name)]


def sym(x):
    """Symmetric, with values well apart."""
    return x + np.swapaxes(x, -1, -2) + np.diag(np.arange(x.shape[-1]) * 4.0)


def spd(x):
    return x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1]) * 3


def apart(x):
    """With singular values well apart."""
    m, n = x.shape[-2:]
    return x + np.eye(m, n) * (3.0 * np.arange(1, n + 1))


NUMPY = [
    ("eigvalsh", lambda x: np.linalg.eigvalsh(sym(x)), (SQUARE,)),
    ("eigvalsh U", lambda x: np.linalg.eigvalsh(sym(x), "U"), (BATCH,)),
    ("eigh", lambda x: tuple(np.linalg.eigh(sym(x))), (SQUARE,)),
    ("eigh batch", lambda x: np.linalg.eigh(sym(x), UPLO="u").eigenvectors, (BATCH,)),
    ("svd", lambda x: tuple(np.linalg.svd(apart(x))), (SQUARE,)),
    ("svd tall", lambda x: tuple(np.linalg.svd(apart(x), full_matrices=False)), (TALL,)),
    ("svd wide", lambda x: np.linalg.svd(apart(x), full_matrices=False).Vh, (WIDE,)),
    ("svd values", lambda x: np.linalg.svd(apart(x), compute_uv=False), (BATCH,)),
    ("svd hermitian", lambda x: np.linalg.svd(sym(x), compute_uv=False, hermitian=True), (SQUARE,)),
    ("svdvals", lambda x: np.linalg.svdvals(apart(x)), (TALL,)), ("svdvals empty", np.linalg.svdvals, ((2, 0, 3),)),
    *((f"cond {p}", lambda x, p=p: np.linalg.cond(spd(x), p), (SQUARE,)) for p in (None, 2, -2, 1, np.inf, "fro")),
    ("cond batch", lambda x: np.linalg.cond(apart(x)), ((2, 4, 3),)),
    ("matrix_rank", lambda x: np.linalg.matrix_rank(x @ x.T), (TALL,)),
    ("matrix_rank tol", lambda x: np.linalg.matrix_rank(apart(x), tol=2.0), (BATCH,)),
    ("matrix_rank rtol", lambda x: np.linalg.matrix_rank(sym(x), hermitian=True, rtol=0.1), (SQUARE,)),
    ("matrix_rank vector", np.linalg.matrix_rank, ((3,),)),
    ("pinv", np.linalg.pinv, (TALL,)), ("pinv wide", lambda x: np.linalg.pinv(apart(x), 1e-12), (WIDE,)),
    ("pinv hermitian", lambda x: np.linalg.pinv(sym(x), hermitian=True), (SQUARE,)),
    ("pinv deficient", lambda x: np.linalg.pinv(np.outer(x[:, 0], x[0]), 1e-8), (TALL,)),
    ("pinv rtol", lambda x: np.linalg.pinv(apart(x), rtol=None), ((2, 4, 3),)),
    ("pinv empty", np.linalg.pinv, ((0, 3),)),
    ("qr", lambda x: tuple(np.linalg.qr(apart(x))), (SQUARE,)),
    ("qr tall", lambda x: tuple(np.linalg.qr(apart(x))), (TALL,)),
    ("qr wide", lambda x: tuple(np.linalg.qr(apart(x), "complete")), (WIDE,)),
    ("qr r", lambda x: np.linalg.qr(apart(x), mode="r"), ((2, 4, 3),)),
    ("qr empty", lambda x: tuple(np.linalg.qr(x)), ((0, 3),)),
    *((f"norm {p}", lambda x, p=p: np.linalg.norm(apart(x), p), (TALL,)) for p in (2, -2, "nuc")),
    ("norm nuc axes", lambda x: np.linalg.norm(x, "nuc", axis=(2, 0), keepdims=True), ((2, 3, 4),)),
    ("matrix_norm 2", lambda x: np.linalg.matrix_norm(apart(x), ord=2), (BATCH,)),
    ("tensorinv", lambda x: np.linalg.tensorinv((np.eye(6) * 4 + x).reshape(2, 3, 6), ind=2), ((6, 6),)),
    ("tensorsolve", lambda x, y: np.linalg.tensorsolve((np.eye(6) * 4 + x).reshape(2, 3, 6), y), ((6, 6), (2, 3))),
    ("tensorsolve axes", lambda x, y: np.linalg.tensorsolve(
        np.moveaxis((np.eye(6) * 4 + x).reshape(2, 3, 6), 2, 0), y, axes=(0,)), ((6, 6), (2, 3))),
    ("linalg.cross", np.linalg.cross, ((4, 3), (4, 3))), ("cross", lambda x, y: np.cross(x, y, axis=0), (PAIR)),
    *((("cross 2-3", np.cross, ((4, 2), (3,))),) if np.lib.NumpyVersion(np.__version__) < "2.5.0" else ()),
    ("cross axes", lambda x, y: np.cross(x, y, 0, 1, 0), ((3, 4), (4, 3))),
    ("multi_dot", lambda x, y: np.linalg.multi_dot([x, y, x]), (PAIR)),
    ("matrix_power -3", lambda x: np.linalg.matrix_power(spd(x), -3), (BATCH,)),
]

SCIPY = [
    ("eigh", lambda x: of("eigh")(sym(x))[0], (SQUARE,)),
    ("eigh vectors", lambda x: of("eigh")(sym(x), lower=False)[1] ** 2, (SQUARE,)),
    ("eigh subset", lambda x: of("eigh")(sym(x), eigvals_only=True, subset_by_index=[1, 2]), (SQUARE,)),
    *((f"eigh pair {t}", lambda x, y, t=t: of("eigh")(sym(x), spd(y), type=t)[0], (PAIR)) for t in (1, 2, 3)),
    *((f"eigh pair {t} {w}", lambda x, y, t=t, w=w: of("eigh")(sym(x), spd(y), type=t, lower=w)[1], (PAIR))
      for t, w in ((1, True), (2, False), (3, True))),
    ("eigvalsh", lambda x, y: of("eigvalsh")(sym(x), spd(y)), (PAIR)),
    ("svd", lambda x: of("svd")(apart(x), full_matrices=False), (TALL,)),
    ("svd values", lambda x: of("svd")(apart(x), compute_uv=False), (TALL,)), ("svdvals", of("svdvals"), (WIDE,)),
    ("norm", lambda x: of("norm")(apart(x), "nuc"), (TALL,)), ("norm 1-d", lambda x: of("norm")(x), ((4,),)),
    ("pinv", lambda x: of("pinv")(apart(x)), (WIDE,)),
    ("pinv rank", lambda x: of("pinv")(apart(x), rtol=0.5, return_rank=True), (TALL,)),
    ("polar", lambda x: of("polar")(apart(x)), (SQUARE,)),
    ("polar tall", lambda x: of("polar")(apart(x), "left"), (TALL,)),
    ("polar wide", lambda x: of("polar")(apart(x)), (WIDE,)),
    ("qr", lambda x: of("qr")(apart(x)), (SQUARE,)), ("qr r", lambda x: of("qr")(apart(x), mode="r"), (WIDE,)),
    ("qr economic", lambda x: of("qr")(apart(x), mode="economic"), (TALL,)),
    ("lu", lambda x: of("lu")(x[::-1] + np.eye(3)[::-1]), (SQUARE,)),
    ("lu permuted", lambda x: of("lu")(x + 4 * np.eye(3)[[1, 2, 0]], permute_l=True), (SQUARE,)),
    ("lu indices", lambda x: of("lu")(x + 4 * np.eye(3)[[1, 2, 0]], p_indices=True), (SQUARE,)),
    ("lu_factor", lambda x: of("lu_factor")(x + 4 * np.eye(3)[[1, 2, 0]])[0], (SQUARE,)),
    ("lu_factor pivots", lambda x: of("lu_factor")(x[::-1] + 4 * np.eye(3)[[1, 2, 0]])[1] * 1.0, (SQUARE,)),
    ("lu_factor batch", lambda x: of("lu_factor")(x[..., ::-1, :])[1] * 1.0, (BATCH,)),
    *((f"lu_solve {t}", lambda x, y, t=t: of("lu_solve")(of("lu_factor")(x + 4 * np.eye(3)[[1, 2, 0]]), y, trans=t),
       (SQUARE, (3, 2))) for t in (0, 1)),
    ("lu_solve vector", lambda x, y: of("lu_solve")(of("lu_factor")(spd(x)), y), (SQUARE, (3,))),
    ("lu_solve given", lambda y: of("lu_solve")(scipy.linalg.lu_factor(np.eye(3)[[1, 2, 0]] + 0.1), y), ((3,),)),
    ("expm", of("expm"), (SQUARE,)), ("expm batch", lambda x: of("expm")(x * 3), ((2, 2, 2),)),
    ("expm 1", of("expm"), ((1, 1),)),
    ("sqrtm", lambda x: of("sqrtm")(spd(x) + x), (SQUARE,)),
    ("solve_sylvester", lambda x, y, q: of("solve_sylvester")(spd(x), y + 4 * np.eye(2), q), (SQUARE, (2, 2), (3, 2))),
    ("lyapunov", lambda x, q: of("solve_continuous_lyapunov")(spd(x) + x, q), (PAIR)),
    ("discrete lyapunov", lambda x, q: of("solve_discrete_lyapunov")(x / 20, q), (PAIR)),
    ("discrete bilinear", lambda x, q: of("solve_discrete_lyapunov")(x / 20, q, method="bilinear"), (PAIR)),
    ("toeplitz", of("toeplitz"), ((3,), (4,))), ("toeplitz one", of("toeplitz"), ((4,),)),
    ("hankel", of("hankel"), ((3,), (2,))),
    ("hankel one", of("hankel"), ((3,),)), ("circulant", of("circulant"), ((4,),)),
    ("circulant batch", of("circulant"), ((2, 3),)),
    ("block_diag", lambda x, y: of("block_diag")(x, y, 3.0, [1.0, 2.0]), ((2, 3), (2,))),
    ("block_diag one", of("block_diag"), ((2, 3),)),
    ("solve_banded", lambda ab, b: of("solve_banded")(
        (2, 1), ab + 4 * (np.arange(4) == 1)[:, None], b), ((4, 5), (5,))),
    ("solve_banded 2-d", lambda ab, b: of("solve_banded")((0, 1), ab, b), ((2, 5), (5, 2))),
    ("solveh_banded", lambda ab, b: of("solveh_banded")(ab + 8 * (np.arange(3) == 2)[:, None], b), ((3, 5), (5,))),
    ("solveh_banded lower", lambda ab, b: of("solveh_banded")(
        ab + 8 * (np.arange(2) == 0)[:, None], b, lower=True), ((2, 5), (5, 2))),
]
TABLE = [*NUMPY, *((f"scipy {label}", *rest) for label, *rest in SCIPY)]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize(("label", "function", "shapes"), TABLE, ids=[row[0] for row in TABLE])
def test_value_and_gradient(label, function, shapes, dtype):
    args = data(shapes, dtype)
    expected = plain(function, args)
    tape = tape_of(function, *args)
    tolerance = 3e-4 if dtype == "float32" else 1e-10
    for g, e in zip(evaluate(tape, *args), expected, strict=True):
        assert g.shape == e.shape and g.dtype == e.dtype, label
        np.testing.assert_allclose(g, e, rtol=tolerance, atol=tolerance * 10)
    if dtype == "float64":
        check_gradient(function, tape, args, expected)


REFUSED = [
    (np.linalg.eig, (SQUARE,), "complex"),
    (np.linalg.svd, (TALL,), "full_matrices=False"),
    (lambda x: np.linalg.svd(x, hermitian=True), (SQUARE,), "hermitian"),
    (lambda x: np.linalg.qr(x, "complete"), (TALL,), "reduced"), (lambda x: np.linalg.qr(x, "raw"), (SQUARE,), "raw"),
    (lambda x, r: np.linalg.pinv(x, r), (SQUARE, ()), "traced rcond"),
    (lambda x: np.linalg.pinv(x, np.ones(2)), (BATCH,), "array for rcond"),
    (lambda x, n: np.linalg.matrix_power(x, n), (SQUARE, ()), "exponent"),
    (of("qr"), (TALL,), "economic"), (lambda x: of("qr")(x, pivoting=True), (SQUARE,), "pivoting"),
    (lambda x: of("pinv")(x, atol=1.0), (SQUARE,), "rtol"),
    (lambda x: of("eigh")(x, subset_by_value=(0, 1)), (SQUARE,), "subset_by_value"),
    (lambda x, y: of("lstsq")(x, y, lapack_driver="gelsy"), (TALL, (4,)), "gelsy"),
    (of("toeplitz"), (SQUARE,), "vectors"), (lambda ab, b: of("solveh_banded")(ab, b), (BATCH, (3,)), "batch"),
]


@pytest.mark.parametrize(("function", "shapes", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_says_what_to_do(function, shapes, message):
    with pytest.raises(UnsupportedOperationError, match=message) as caught:
        tape_of(function, *data(shapes, "float64"))
    assert "/home/user/model.py:7" in str(caught.value)


WRONG = [
    (np.linalg.eigh, (TALL,)), (lambda x: np.linalg.eigh(x, "X"), (SQUARE,)), (np.linalg.svd, ((3,),)),
    (lambda x: np.linalg.qr(x, "wrong"), (SQUARE,)), (lambda x: np.linalg.tensorinv(x, 0), (SQUARE,)),
    (np.linalg.tensorsolve, (TALL, (4,))), (lambda x: np.linalg.cond(x), ((0, 3),)), (np.linalg.lstsq, (SQUARE, (4,))),
    (np.linalg.lstsq, (BATCH, (3,))), (lambda x: np.linalg.pinv(x, 0.1, rtol=0.2), (SQUARE,)),
    (lambda x: np.linalg.matrix_rank(x, 0.1, rtol=0.1), (SQUARE,)), (np.cross, ((4,), (4,))),
    (of("eigh"), (SQUARE, (2, 2))), (lambda x: of("qr")(x, mode="x"), (SQUARE,)),
    (of("lstsq"), (TALL, (3,))), (lambda x, b: of("solve_banded")((1, 1), x, b), (TALL, (3,))),
    (lambda x, b: of("solve_banded")((1, 2), x, b), (TALL, (4,))), (of("solveh_banded"), (TALL, (4,))),
    (of("expm"), ((3,),)),
    (of("expm"), (TALL,)),
    (lambda x: of("polar")(x, "up"), (SQUARE,)), (lambda x: of("eigh")(x, subset_by_index=(1, 5)), (SQUARE,)),
]


@pytest.mark.parametrize(("function", "shapes"), WRONG, ids=range(len(WRONG)))
def test_what_the_libraries_refuse_raises_the_same(function, shapes):
    args = data(shapes, "float64")
    with pytest.raises((ValueError, np.linalg.LinAlgError)) as expected:
        function(*args)
    with pytest.raises(type(expected.value)) as caught:
        tape_of(function, *args)
    assert str(caught.value).split()[:3] == str(expected.value).split()[:3]


Z = np.array([[2.0, 2.0], [2.0, 5.0]]) + 0.3j * np.array([[1.0, -1.0], [0.5, 0.2]])


def test_functions_of_complex_matrices_and_powers():
    names = "cosm sinm tanm coshm sinhm tanhm signm expm logm sqrtm".split()

    def total(t, power):
        found = sum(np.sum(np.abs(getattr(scipy.linalg, name)(Z * t)) ** 2) for name in names)
        powers = [scipy.linalg.fractional_matrix_power(a * t, q) for a in (Z, Z.real) for q in (power, 2, -1.0)]
        return found + sum(np.sum(np.abs(p)) for p in powers)
    agrees(total, 0.3, 0.4)
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(jit(lambda a: scipy.linalg.fractional_matrix_power(a, 3))(singular), 25 * singular)
    for function in (lambda a: scipy.linalg.logm(a) + a, lambda a: scipy.linalg.fractional_matrix_power(a, 0.5)):
        with pytest.raises(np.linalg.LinAlgError, match=r"no real (logarithm|square root)"):
            jit(function)(np.diag([0.0, 1.0]))


def test_norms_are_differentiated_by_their_order():
    norms = lambda x, p: (np.linalg.norm(x, p) + scipy.linalg.norm(x, p) + np.linalg.vector_norm(x, ord=p)
                          + np.linalg.norm(x * (1 + 0.3j), ord=p, axis=0) + scipy.stats.pmean(np.abs(x), p))
    compiled, x = value_and_grad(norms, argnums=1), np.array([1.0, -2.0, 5.0])
    for p in (1.0, 2.0, 3.5, -1.5):
        value, slope = compiled(x, p)
        np.testing.assert_allclose(value, norms(x, p), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(lambda p: norms(x, float(p)), (p,))[0], rtol=1e-6)
    of_matrix = jit(lambda x, p: np.linalg.norm(x, p) + np.linalg.cond(x, p) + np.linalg.norm(x[0], p))
    for p in (1.0, 2.0, -2.0, np.inf, 1.0):
        x = np.array([[1.0, 2.0], [3.0, 5.0]])
        np.testing.assert_allclose(of_matrix(x, p), np.linalg.norm(x, p) + np.linalg.cond(x, p)
                                   + np.linalg.norm(x[0], p))
    with pytest.raises(UnsupportedOperationError, match="pmean with a traced power that is 0"):
        jit(lambda p: scipy.stats.pmean(np.ones(3), p))(0.0)
