"""Linear operators that stand for Jacobians and Hessians: products, adjoints, solvers."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, cg, lsqr

from jitad import hessian, jacobian
from tests.helpers.public import compiling, fresh, same, x3, y3

__all__ = ["fresh"]

RNG = np.random.default_rng(4)
A = RNG.normal(size=(5, 3))


def f(x, scale=1.0):
    return np.tanh(A @ x) * scale


def test_a_lazy_jacobian_is_the_jacobian():
    J = jacobian(f, lazy=True)(x3)
    dense, V, U = jacobian(f)(x3), RNG.normal(size=(3, 4)), RNG.normal(size=(5, 2))
    assert isinstance(J, LinearOperator) and J.shape == (5, 3) and J.dtype == np.float64
    same(J @ y3, dense @ y3), same(J.matvec(y3[:, None]), (dense @ y3)[:, None])
    np.testing.assert_allclose(J @ V, dense @ V, rtol=1e-13)
    np.testing.assert_allclose(J.T @ U, dense.T @ U, rtol=1e-13)
    np.testing.assert_allclose(J.rmatvec(U[:, 0]), dense.T @ U[:, 0], rtol=1e-13)
    np.testing.assert_allclose((J.H @ J) @ y3, dense.T @ dense @ y3, rtol=1e-13)


def test_two_kernels_serve_every_point():
    operator = jacobian(f, lazy=True)
    with compiling(2):
        for point in (x3, 2 * x3, x3 - 5):
            J = operator(point, 2.0)
            J @ y3, J.T @ np.ones(5)
    H = hessian(lambda x: np.sum(f(x) ** 2), lazy=True)
    with compiling(1):
        for point in (x3, 2 * x3):
            H(point) @ y3, H(point).T @ y3


def test_the_point_is_the_one_at_which_it_was_made():
    x = x3.copy()
    J, dense = jacobian(f, lazy=True)(x), jacobian(f)(x)
    x[:] = 0
    same(J @ y3, dense @ y3)


def test_trees_and_several_arguments():
    def g(p, k):
        return {"u": p["w"] * k, "v": (np.sum(p["w"]) * p["s"], p["s"] ** 2)}

    p = {"s": 2, "w": A}                                  # an int, as a float
    J = jacobian(g, argnums=(1, 0), lazy=True)(p, 3.0)
    blocks = jacobian(g, argnums=(1, 0))(p, 3.0)
    parts = [blocks["u"], blocks["v"][0], blocks["v"][1]]
    dense = np.vstack([np.hstack([np.reshape(row[0], (n, 1)), np.reshape(row[1]["s"], (n, 1)),
                                  np.reshape(row[1]["w"], (n, 15))]) for row, n in zip(parts, (15, 1, 1), strict=True)])
    np.testing.assert_allclose(J @ np.eye(17), dense, rtol=1e-13)
    np.testing.assert_allclose(J.T @ np.eye(17), dense.T, rtol=1e-13)


def test_float32():
    J = jacobian(lambda x: x * 2, lazy=True)(x3.astype("f4"))
    assert J.dtype == np.float32
    same(J @ y3, 2 * y3.astype("f4"))


def test_solvers():
    y = f(np.array([0.1, -0.2, 0.3]))
    x = np.zeros(3)
    for _ in range(8):                                    # Gauss and Newton
        x = x - lsqr(jacobian(f, lazy=True)(x), f(x) - y, atol=1e-14, btol=1e-14)[0]
    np.testing.assert_allclose(x, [0.1, -0.2, 0.3], atol=1e-10)
    H = hessian(lambda b: np.sum(np.logaddexp(0, A @ b)) + b @ b, lazy=True)(x3)
    step, failed = cg(H, y3, rtol=1e-12)
    assert not failed
    np.testing.assert_allclose(hessian(lambda b: np.sum(np.logaddexp(0, A @ b)) + b @ b)(x3) @ step, y3, rtol=1e-9)


def test_decorators_and_methods():
    class Model:
        scale = 3.0

        @jacobian(lazy=True)
        def flow(self, x):
            return x**2 * self.scale

    same(Model().flow(x3) @ y3, 6 * x3 * y3)
    assert repr(Model.flow) == "<jitad lazy Jacobian of flow>"
    with pytest.raises(TypeError):
        jacobian(f, lazy=True)()
