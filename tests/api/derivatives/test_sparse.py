"""Sparse Jacobians and Hessians as users ask for them: against the dense ones, in every form of argument and result."""
from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve

import jitad
from jitad import cache, hessian, jacobian, value_and_jacobian, value_gradient_and_hessian
from tests.helpers.public import compiling, fresh, same, x3, y3

__all__ = ["fresh"]

RNG = np.random.default_rng(8)
X = RNG.normal(size=40)


def broyden(x):
    """Broyden's tridiagonal function."""
    left, right = np.concatenate([np.zeros(1), x[:-1]]), np.concatenate([x[1:], np.zeros(1)])
    return (3 - 2 * x) * x - left - 2 * right + 1


def hierarchy(theta, group, y):
    """Poisson counts in groups, with effects that share mean and scale."""
    effects, mean, scale = theta[:-2], theta[-2], theta[-1]
    eta = effects[group]
    prior = 0.5 * np.sum((effects - mean) ** 2) * np.exp(-2 * scale) + scale * len(effects)
    return np.sum(y * eta - np.exp(eta)) - prior


GROUP = RNG.integers(0, 38, 100)
COUNTS = RNG.poisson(1.0, 100).astype(float)


# --- values ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_a_band(mode):
    g = jacobian(broyden, sparse=True, mode=mode)
    found = g(X)
    assert type(found) is csr_array and found.shape == (40, 40) and found.nnz == 118 and found.dtype == np.float64
    np.testing.assert_allclose(found.toarray(), jacobian(broyden)(X), rtol=1e-13)
    with compiling(0):
        np.testing.assert_allclose(g(2 * X).toarray(), jacobian(broyden)(2 * X), rtol=1e-13)


def test_newton_with_a_band():
    g, x = value_and_jacobian(broyden, sparse=True), -np.ones(40)
    for _ in range(8):
        value, slope = g(x)
        x = x - spsolve(slope.tocsc(), value)
    assert np.abs(g(x)[0]).max() < 1e-13


def test_a_hierarchy_needs_as_many_products_as_it_has_shared_parameters():
    g = hessian(hierarchy, sparse=True)
    found, expected = g(X, GROUP, COUNTS), hessian(hierarchy)(X, GROUP, COUNTS)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-13)
    assert (found.toarray() == found.toarray().T).all() and found.nnz == 38 + 4 * 38 + 4
    assert str(g.tape(X, GROUP, COUNTS)).count("[3,40]")              # three colours for forty parameters
    assert "[40,40]" not in str(g.tape(X, GROUP, COUNTS))


def test_all_from_one_kernel():
    value, gradient, matrix = value_gradient_and_hessian(hierarchy, sparse=True)(X, GROUP, COUNTS)
    expected = value_gradient_and_hessian(hierarchy)(X, GROUP, COUNTS)
    same(value, expected[0]), same(gradient, expected[1])
    np.testing.assert_allclose(matrix.toarray(), expected[2], rtol=1e-12, atol=1e-13)


def test_more_arguments_trees_and_shapes_lie_flat_beside_one_another():
    def f(p, k, w):
        return {"u": p["a"] * k, "v": (p["b"].sum(axis=1), np.sin(w))}

    p = {"a": np.array(1.5), "b": RNG.normal(size=(2, 3))}
    found = jacobian(f, argnums=(2, 0), sparse=True)(p, 2.0, 3)        # an int, as a float
    expected = np.zeros((4, 8))
    expected[0, 1], expected[3, 0] = 2.0, np.cos(3.0)
    expected[1, 2:5] = expected[2, 5:8] = 1
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-15)
    assert found.nnz == 8
    h = hessian(lambda a, b: np.sum(a * b[0]) + b[1, 1] ** 3, argnums=(0, 1), sparse=True)(x3, np.ones((2, 3)))
    rows, columns = h.nonzero()
    assert h.shape == (9, 9) and sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [
        (0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2), (7, 7)]


def test_numbers_single_precision_and_nothing():
    same(jacobian(lambda t: t**2, sparse=True)(3.0).toarray(), np.array([[6.0]]))
    same(jacobian(lambda x: np.sum(x * x), sparse=True)(x3).toarray(), np.array([[2.0, 4.0, 6.0]]))
    A = RNG.normal(size=(4, 3))
    for mode in ("forward", "reverse"):                                 # where everything depends on everything
        same(jacobian(lambda x: A @ x, sparse=True, mode=mode)(x3).toarray(), A)
    same(hessian(lambda x: np.sum(A @ x) ** 2, sparse=True)(x3).toarray(), 2 * np.outer(A.sum(0), A.sum(0)))
    found = jacobian(lambda x: x[1:] * x[:-1], sparse=True)(x3.astype("f4"))
    same(found.toarray(), np.array([[2, 1, 0], [0, 3, 2]], "f4"))
    for found, shape in ((jacobian(lambda x: np.floor(x), sparse=True)(x3), (3, 3)),
                         (jacobian(lambda x: x * 2, sparse=True)(np.zeros(0)), (0, 0)),
                         (jacobian(lambda x: y3 * 1, sparse=True)(x3), (3, 3)),
                         (jacobian(lambda p: p["k"][:0], sparse=True)({"k": x3}), (0, 3)),
                         (jacobian(lambda p: y3 * 1, sparse=True)({}), (3, 0)),
                         (hessian(lambda x: np.sum(x), sparse=True)(x3), (3, 3))):
        assert found.shape == shape and found.nnz == 0 and found.dtype == np.float64


def test_zeros_of_other_columns_meet_no_infinity():
    f = lambda x: np.sqrt(x[:-1]) + x[1:] ** 2
    found = jacobian(f, sparse=True)(np.array([0.0, 0.0, 4.0])).toarray()
    np.testing.assert_array_equal(found, [[np.inf, 0, 0], [0, np.inf, 8]])


def test_results_are_fresh():
    g = jacobian(broyden, sparse=True)
    first = g(X)
    first.data[:], first.indices[:], first.indptr[:] = 0, 0, 0
    np.testing.assert_allclose(g(X).toarray(), jacobian(broyden)(X), rtol=1e-13)


def test_the_pattern():
    g = hessian(lambda x: np.sum(x[1:] * x[:-1]), sparse=True)
    pattern = g.pattern(x3)
    assert type(pattern) is csr_array
    same(pattern.toarray(), np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool))
    same(value_and_jacobian(lambda x: x, sparse=True).pattern(x3).toarray(), np.eye(3, dtype=bool))


# --- data that says where --------------------------------------------------------------------------------

def test_other_places_are_compiled_again_with_a_warning():
    g = jacobian(lambda x, i: x[i] ** 2, sparse=True)
    there, elsewhere = np.array([0, 2, 2]), np.array([1, 0, 2])
    with compiling(1):
        same(g(x3, there).toarray(), np.array([[2.0, 0, 0], [0, 0, 6], [0, 0, 6]]))
    with pytest.warns(jitad.TapeMismatchWarning, match=r"another way is taken at .*test_sparse\.py"):
        found = g(x3, elsewhere)
    same(found.toarray(), np.array([[0, 4.0, 0], [2, 0, 0], [0, 0, 6]]))
    with compiling(0):                                                  # both are known now
        assert g(2 * x3, there)[0, 0] == 4 and g(2 * x3, elsewhere)[0, 1] == 8


def test_captured_places_are_watched():
    places = np.array([0, 2])

    def f(x):
        return x[places] * 3

    g = jacobian(f, sparse=True)
    same(g(x3).toarray(), np.array([[3.0, 0, 0], [0, 0, 3]]))
    places[0] = 1
    same(g(x3).toarray(), np.array([[0.0, 3, 0], [0, 0, 3]]))


def test_what_is_sorted_may_be_anywhere():
    found = jacobian(lambda x: np.sort(x) ** 2, sparse=True)(np.array([3.0, 1.0, 2.0]))
    assert found.nnz == 9
    same(found.toarray(), np.array([[0, 2.0, 0], [0, 0, 4], [6, 0, 0]]))


def test_a_loop():
    def f(x):
        level, total = x[0], 0.0
        for t in range(1, 40):
            total = total - 0.5 * (x[t] - 0.9 * np.tanh(level)) ** 2
            level = x[t]
        return total

    found = hessian(f, sparse=True)(X)
    np.testing.assert_allclose(found.toarray(), hessian(f)(X), rtol=1e-12, atol=1e-13)
    assert found.nnz == 40 + 2 * 39


# --- rules of the user's own -----------------------------------------------------------------------------

@jitad.primitive(vjp=lambda ct, y, x: ct * y)
def exponential(x):
    return np.exp(x)


@jitad.primitive(jvp=lambda dots, y, x, z: dots[0] * z + dots[1] * x)
def product(x, z):
    return x * z


@jitad.primitive(vjp=lambda ct, y, x: ct[::-1] * 5.0)
def turned(x):
    """The rule has another pattern than the function, and counts."""
    return x * 1.0


def test_the_pattern_of_a_rule_is_that_of_the_rule():
    for mode in ("forward", "reverse"):
        found = jacobian(lambda x: product(exponential(x[1:]), x[:-1]) + x[0], sparse=True, mode=mode)(x3)
        e2, e3 = np.exp(2.0), np.exp(3.0)
        same(found.toarray(), np.array([[e2 + 1, e2, 0], [1, e3, 2 * e3]]), rtol=1e-14)
        assert found.nnz == 5
        found = jacobian(turned, sparse=True, mode=mode)(x3)
        same(found.toarray(), 5.0 * np.eye(3)[::-1])
        assert found.nnz == 3
    found = hessian(lambda x: np.sum(exponential(x) ** 2), sparse=True)(x3)
    same(found.toarray(), np.diag(4 * np.exp(2 * x3)), rtol=1e-14)
    assert found.nnz == 3


@jitad.primitive(opaque=True, vjp=lambda ct, y, x: ct * 2.0)
def unseen(x):
    return 2.0 * x


def test_code_that_is_called_has_the_pattern_of_its_rule():
    found = jacobian(lambda x: unseen(x) * x, sparse=True)(x3)
    same(found.toarray(), np.diag(4 * x3))
    assert found.nnz == 3


# --- as all others ---------------------------------------------------------------------------------------

class Model:
    scale = 3.0

    @jacobian(sparse=True)
    def flow(self, x):
        return x**2 * self.scale


def test_decorators_methods_and_pickles():
    same(Model().flow(x3).toarray(), np.diag(6 * x3))
    same(Model().flow.value(x3), 3 * x3**2)
    g = pickle.loads(pickle.dumps(jacobian(broyden, sparse=True)))
    np.testing.assert_allclose(g(X).toarray(), jacobian(broyden)(X), rtol=1e-13)
    compiled = g.compile(X)
    same(compiled(X).toarray(), g(X).toarray())
    same(compiled.interpret(X).toarray(), g(X).toarray())
    h = hessian(hierarchy, sparse=True)
    same(h.value_and_grad(X, GROUP, COUNTS)[1], jitad.jit_grad(hierarchy)(X, GROUP, COUNTS))


def test_another_process_finds_it_on_the_disk(tmp_path):
    code = ("import numpy as np, jitad\n"
            "def f(x, i): return x[i] * x[:3]\n"
            "J = jitad.jacobian(f, sparse=True)(np.arange(4.0), np.array([3, 0, 1]))\n"
            "print(J.toarray().tolist(), jitad.cache.info().compiles)\n")
    script = tmp_path / "script.py"
    script.write_text(code)
    env = {"JITAD_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "JITAD_DISK_CACHE": "1"}
    runs = [subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=env).stdout
            for _ in range(2)]
    matrix = [[3.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0]]
    assert runs == [f"{matrix} 1\n", f"{matrix} 0\n"]


def test_numbers_that_are_not_finite_are_found():
    g = jacobian(lambda x: np.sqrt(x[1:]), sparse=True)
    g.check_finite(x3)
    with pytest.raises(jitad.NonFiniteError, match=r"the Jacobian of .* is inf at \[0\].*its derivative there"):
        g.check_finite(np.zeros(3))
    with pytest.raises(jitad.NonFiniteError), jitad.debug_nonfinite():
        g(np.zeros(3))


# --- what is refused -------------------------------------------------------------------------------------

def refused(error, what, call, *args, **kwargs):
    before = cache.info().currsize
    with pytest.raises(error, match=what) as caught:
        call(*args, **kwargs)
    assert cache.info().currsize == before
    assert "test_sparse.py" in str(caught.value)


def test_options_that_exclude_each_other():
    refused(jitad.ArgumentTypeError, "lazy=True and sparse=True exclude each other", jacobian, broyden, lazy=True,
            sparse=True)
    refused(jitad.ArgumentTypeError, "lazy=True and sparse=True exclude each other", hessian, lazy=True, sparse=True)


def test_places_where_there_is_no_sparse_matrix():
    g, h = jacobian(broyden, sparse=True), hessian(lambda x: np.sum(x), sparse=True)
    g(X)
    refused(jitad.SignatureError, "out= of `broyden` cannot take a sparse matrix", g, X, out=np.zeros((40, 40)))
    refused(jitad.ArgumentTypeError, "`broyden` gives a sparse matrix, which has no further dimension", jitad.batch, g)
    refused(jitad.UnsupportedOperationError, "a sparse matrix of derivatives of `broyden` cannot be computed",
            jitad.jit(lambda x: np.sum(g(x).data)), X)
    refused(jitad.UnsupportedOperationError, "leave out sparse=True there", jacobian(h), x3)
    same(jitad.jit(lambda x: g.value(x) * 2)(X), 2 * broyden(X))


def test_files_hold_no_sparse_matrix(tmp_path):
    compiled = jacobian(broyden, sparse=True).compile(X)
    with pytest.raises(jitad.TapeFileError, match="a sparse matrix cannot be in a file"):
        compiled.save(tmp_path / "tape")
    assert not list(tmp_path.iterdir())


def test_wrong_arguments():
    refused(jitad.OutputError, "a Jacobian needs floats", jacobian(lambda x: x > 0, sparse=True), x3)
    refused(jitad.OutputError, "a Hessian needs one real scalar", hessian(broyden, sparse=True), X)
    refused(jitad.ArgumentTypeError, "is boolean and cannot be differentiated", jacobian(broyden, sparse=True), x3 > 0)
    refused(jitad.OutputError, "a sparse Jacobian of `.*` with complex arguments or results is not supported",
            jacobian(lambda x: x * 1j, sparse=True), x3)
