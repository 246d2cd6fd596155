"""Jacobians, Hessians, derivatives and products with them: closed forms, structures, types."""
from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

import jitad
from jitad import (
    derivative,
    hessian,
    hvp,
    jacobian,
    jit_grad,
    jvp,
    linearize,
    second_derivative,
    value_and_derivative,
    value_and_jacobian,
    value_derivative_and_second_derivative,
    value_gradient_and_hessian,
    vjp,
)
from tests.helpers.public import compiling, fresh, quadratic, same, x3, y3

__all__ = ["fresh"]

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
MODES = ("auto", "forward", "reverse")


@dataclasses.dataclass
class Pair:
    a: object
    b: object


# --- Jacobians -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", MODES)
def test_jacobians_in_closed_form(mode):
    same(jacobian(lambda x: A @ x, mode=mode)(x3), A)
    same(jacobian(lambda x: np.outer(x, x), mode=mode)(x3),
         np.einsum("ik,j->ijk", np.eye(3), x3) + np.einsum("jk,i->ijk", np.eye(3), x3))
    same(jacobian(lambda X: X @ y3, mode=mode)(A), np.einsum("ij,k->ijk", np.eye(2), y3))
    same(jacobian(lambda x: np.cumsum(x**2), mode=mode)(x3), np.tril(np.ones((3, 3))) * (2 * x3))
    same(jacobian(quadratic, argnums=1, mode=mode)(x3, y3), x3**2)


@pytest.mark.parametrize("mode", MODES)
def test_a_jacobian_has_the_structure_of_the_result_and_of_the_argument_within(mode):
    def f(p, x):
        return {"u": p["a"] * x, "v": (p["a"] * np.sum(x), p["b"] @ x)}

    p = {"a": 2.0, "b": A}
    got = jacobian(f, mode=mode)(p, x3)
    assert list(got) == ["u", "v"] and type(got["v"]) is tuple and list(got["u"]) == ["a", "b"]
    same(got["u"]["a"], x3), same(got["u"]["b"], np.zeros((3, 2, 3)))
    same(got["v"][0]["a"], 6.0), same(got["v"][0]["b"], np.zeros((2, 3)))
    same(got["v"][1]["a"], np.zeros(2)), same(got["v"][1]["b"], np.einsum("ij,k->ijk", np.eye(2), x3))
    both = jacobian(f, argnums=(1, 0), mode=mode)(p, x3)
    assert type(both["u"]) is tuple
    same(both["u"][0], 2 * np.eye(3)), same(both["u"][1]["a"], x3), same(both["v"][1][0], A)


def test_dataclasses_and_lone_elements():
    got = jacobian(lambda p: Pair(p.a * p.b, np.sum(p.b)))(Pair(2.0, np.array([[3.0]])))
    assert type(got) is Pair and type(got.a) is Pair
    same(got.a.a, np.array([[3.0]])), same(got.a.b, np.full((1, 1, 1, 1), 2.0))
    same(got.b.a, 0.0), same(got.b.b, np.ones((1, 1)))


@pytest.mark.parametrize("mode", MODES)
def test_blocks_have_the_dtype_of_the_argument(mode):
    def f(x, y):
        return x * y

    x32 = x3.astype(np.float32)
    got = jacobian(f, argnums=(0, 1), mode=mode)(x32, y3)
    same(got[0], np.diag(y3).astype(np.float32)), same(got[1], np.diag(x3))
    same(jacobian(lambda x: x * 3, mode=mode)(np.float32(2)), np.float32(3))
    same(jacobian(lambda x: x * 3, mode=mode)(2), 3.0)
    same(jacobian(lambda x: x * 3, mode=mode)(np.array(2.0)), np.array(3.0))


@pytest.mark.parametrize("mode", MODES)
def test_empty_arguments_and_results(mode):
    same(jacobian(lambda x: x * 2, mode=mode)(np.zeros(0)), np.zeros((0, 0)))
    same(jacobian(lambda x, y: x * np.sum(y), argnums=1, mode=mode)(x3, np.zeros((0, 2))), np.zeros((3, 0, 2)))
    same(jacobian(lambda x: x[:0], mode=mode)(x3), np.zeros((0, 3)))
    assert hessian(lambda x, y: np.sum(x) + np.sum(y), argnums=(0, 1))(np.zeros(0), x3)[0][1].shape == (0, 3)
    assert jacobian(lambda x, y: y, mode=mode)((), x3) == ()


def test_auto_takes_the_mode_with_fewer_directions():
    def tape(f, x, mode):
        return jacobian(f, mode=mode).compile(x).tape

    def wide(x):
        return A @ np.exp(x)

    def tall(x):
        return A.T @ np.exp(x)

    assert tape(wide, x3, "auto") == tape(wide, x3, "reverse") != tape(wide, x3, "forward")
    two = np.ones(2)
    assert tape(tall, two, "auto") == tape(tall, two, "forward") != tape(tall, two, "reverse")


def test_structural_zeros_meet_no_infinity():
    """The tangent of one element does not meet the infinite partial derivative of another."""
    with np.errstate(divide="ignore"):
        expected = np.diag([np.inf, 0.5, 0.25])
        same(jacobian(lambda x: np.sqrt(x), mode="forward")(np.array([0.0, 1.0, 4.0])), expected)
        same(jacobian(lambda x: np.sqrt(x), mode="reverse")(np.array([0.0, 1.0, 4.0])), expected)
        got = hessian(lambda x: np.sum(x**1.5 * x[::-1]) + x[1])(np.array([0.0, 1.0, 4.0]))
    same(got[1], np.array([0.0, 3.75 * 1.0, 0.0]))
    assert got[0, 0] == np.inf and got[0, 2] == 3.0


def test_value_and_jacobian():
    value, jac = value_and_jacobian(lambda x: {"y": x**2})(x3)
    same(value["y"], x3**2), same(jac["y"], np.diag(2 * x3))
    value, jac = value_and_jacobian(argnums=(0, 1))(lambda x, k: k * x)(x3, 2.0)
    same(value, 2 * x3), same(jac[1], x3)


# --- Hessians ------------------------------------------------------------------------------------------

def test_hessians_in_closed_form():
    M = A.T @ A + np.diag([1.0, 2.0, 3.0])
    same(hessian(lambda x: 0.5 * x @ M @ x)(x3), M)
    same(hessian(lambda x: np.sum(np.exp(x)))(x3), np.diag(np.exp(x3)))
    same(hessian(lambda x: np.prod(x))(x3), np.array([[0.0, 3, 2], [3, 0, 1], [2, 1, 0]]))
    same(hessian(lambda x: np.sum(x))(x3), np.zeros((3, 3)))
    same(hessian(lambda t: t**3)(2.0), 12.0)
    S = A.T @ A + np.eye(3)
    inverse = np.linalg.inv(S)
    same(hessian(lambda K: np.linalg.slogdet(K)[1])(S), -np.einsum("jk,li->ijkl", inverse, inverse), rtol=1e-10)


def test_a_hessian_of_trees_has_a_block_for_each_pair():
    def f(p, s):
        return p["w"] @ A @ p["v"] * s**2

    p = {"w": np.array([1.0, 2.0]), "v": x3}
    H = hessian(f)(p, 2.0)
    assert list(H) == ["w", "v"] and list(H["v"]) == ["w", "v"]
    same(H["w"]["w"], np.zeros((2, 2))), same(H["w"]["v"], 4 * A), same(H["v"]["w"], 4 * A.T)
    H = hessian(f, argnums=(0, 1))(p, 2.0)
    same(H[1][1], float(2 * p["w"] @ A @ x3)), same(H[0]["w"][1], 4 * A @ x3), same(H[1][0]["v"], 4 * A.T @ p["w"])
    same(H[0]["w"][0]["v"], 4 * A)


def test_hessians_are_exactly_symmetric():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 7)), rng.normal(size=40)
    H = hessian(lambda b: np.sum(np.log1p(np.exp(X @ b)) * y) + np.sum(b[:3]) ** 3)(rng.normal(size=7))
    np.testing.assert_array_equal(H, H.T)


def test_value_gradient_and_hessian_come_from_one_kernel():
    f = value_gradient_and_hessian(lambda x: np.sum(x**3))
    with compiling(1):
        value, gradient, H = f(x3)
    same(value, 36.0), same(gradient, 3 * x3**2), same(H, np.diag(6 * x3))
    value, gradient, H = value_gradient_and_hessian(quadratic, argnums=(0, 1))(x3, y3)
    same(gradient[1], x3**2), same(H[0][1], np.diag(2 * x3))


def test_products_with_a_hessian():
    f = hvp(quadratic, argnums=0)
    same(f(x3, y3, x3), 2 * y3 * x3)
    same(f(x3, x3, y=y3), 2 * y3 * x3)                    # the vector is the last positional argument
    with compiling(0):
        same(f(x3, y3 + 1, x3), 2 * (y3 + 1) * x3)
        same(f(x3, x3, y=y3 + 1), 2 * (y3 + 1) * x3)
    v = (x3, y3)
    got = hvp(quadratic, argnums=(0, 1))(x3, y3, v)
    same(got[0], 2 * y3 * x3 + 2 * x3 * y3), same(got[1], 2 * x3 * x3)
    same(hvp(lambda p: p["a"] ** 2 * p["b"])({"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 0.0})["b"], 4.0)
    same(hvp(lambda v, *, ct: np.sum(v**3) * ct)(x3, np.ones(3), ct=2.0), 12 * x3)     # names that seeds have


# --- one number ------------------------------------------------------------------------------------------

def test_derivatives_with_respect_to_one_number():
    def f(t, x):
        return {"a": t**3, "b": np.sin(t * x)}

    got = derivative(f)(2.0, x3)
    same(got["a"], 12.0), same(got["b"], x3 * np.cos(2 * x3))
    value, slope = value_and_derivative(f)(2, x3)         # an int, cast
    same(value["a"], 8.0), same(slope["a"], 12.0)
    got = second_derivative(f)(2.0, x3)
    same(got["a"], 12.0), same(got["b"], -(x3**2) * np.sin(2 * x3))
    value, slope, curvature = value_derivative_and_second_derivative(lambda x, t: np.exp(t * x), argnums=1)(3.0, 0.5)
    same(slope, 3 * value), same(curvature, 9 * value)
    same(derivative(lambda t: t * 2)(np.float32(1)), np.float32(2))
    same(derivative(lambda t: t * x3)(np.array(1.0)), x3)


# --- vjp, jvp, linearize -----------------------------------------------------------------------------------

def f_tree(x, p):
    return {"u": x * p["s"], "v": np.sum(x**2)}


def test_vjp_gives_value_and_pullback():
    value, pullback = vjp(f_tree, x3, {"s": 2.0})
    same(value["u"], 2 * x3), same(value["v"], 14.0)
    dx, dp = pullback({"u": y3, "v": 0.5})
    same(dx, 2 * y3 + x3), same(dp["s"], float(x3 @ y3))
    dx, _ = pullback({"u": np.zeros(3), "v": 1})          # again, with another seed; an int
    same(dx, 2 * x3)
    assert vjp(f_tree, x3, {"s": 2.0}, argnums=1)[1]({"u": y3, "v": 0.0}) == {"s": 32.0}
    (only,) = vjp(f_tree, x3, {"s": 2.0}, argnums=(0,))[1]({"u": y3, "v": 0.0})
    same(only, 2 * y3)


def test_linearize_gives_value_and_pushforward():
    value, pushforward = linearize(f_tree, x3, {"s": 2.0})
    same(value["v"], 14.0)
    got = pushforward(y3, {"s": 1.0})
    same(got["u"], 2 * y3 + x3), same(got["v"], 2 * float(x3 @ y3))
    same(linearize(f_tree, x3, {"s": 2.0}, argnums=0)[1](x3)["u"], 2 * x3)


def test_jvp_gives_value_and_tangent_from_one_kernel():
    with compiling(1):
        value, tangent = jvp(f_tree, (x3, {"s": 2.0}), (y3, None))
    same(value["u"], 2 * x3), same(tangent["u"], 2 * y3), same(tangent["v"], 64.0)
    value, tangent = jvp(lambda t: t**2, (3,), (1,))
    same(value, 9.0), same(tangent, 6.0)


def test_what_is_not_made_of_floats_is_data():
    def f(x, index, flag, name):
        return x[index] * (2 if flag and name == "twice" else 1)

    index = np.array([2, 0])
    value, pullback = vjp(f, x3, index, True, "twice")
    same(value, 2 * x3[index])
    got = pullback(np.array([1.0, 10.0]))
    same(got[0], np.array([20.0, 0.0, 2.0]))
    assert got[1:] == (None, None, None)
    _, pushforward = linearize(f, x3, index, True, "twice")
    same(pushforward(y3, None, None, None), 2 * y3[index])


def test_a_pullback_is_of_the_point_where_it_was_made():
    x = x3.copy()
    _, pullback = vjp(lambda x: np.sum(x**2), x)
    x[:] = 100
    same(pullback(1.0)[0], 2 * x3)


def test_vjp_against_jvp_of_a_random_program():
    rng = np.random.default_rng(5)
    X, group = rng.normal(size=(6, 3)), np.array([0, 2, 2, 1, 0, 2])

    def f(b, s):
        eta = np.tanh(X @ b) * s[group]
        return np.sort(eta)[:0].sum() + np.cumsum(eta)[1::2], np.exp(b) / np.sum(s)

    b, s, tb, ts = rng.normal(size=3), rng.uniform(1, 2, 3), rng.normal(size=3), rng.normal(size=3)
    ct = rng.normal(size=3), rng.normal(size=3)
    _, (u, w) = jvp(f, (b, s), (tb, ts))
    db, ds = vjp(f, b, s)[1](ct)
    same(float(ct[0] @ u + ct[1] @ w), float(db @ tb + ds @ ts), rtol=1e-12)


# --- decorators, views, out ----------------------------------------------------------------------------------

def test_decorators_with_and_without_arguments():
    @hessian
    def f(x):
        """Documented."""
        return np.sum(x**3)

    @jacobian(argnums=1, mode="forward")
    def g(x, y):
        return x * y

    @hvp()
    def h(x):
        return np.sum(x**3)

    same(f(x3), np.diag(6 * x3)), same(g(x3, y3), np.diag(x3)), same(h(x3, x3), 6 * x3**2)
    assert (f.__name__, f.__doc__, repr(f)) == ("f", "Documented.", f"<jitad hessian of {f.__qualname__}>")
    assert list(inspect.signature(g).parameters) == ["x", "y"]
    same(f.value(x3), 36.0), same(f.value_and_grad(x3)[1], 3 * x3**2), same(g.value(x3, y3), x3 * y3)
    assert "hessian_x_x" in f.tape(x3) and "def " in f.source(x3)
    compiled = f.compile(x3)
    same(compiled(2 * x3), np.diag(12 * x3)), same(compiled.interpret(x3), np.diag(6 * x3))
    assert h.compile(x3, y3).interpret(x3, y3).tolist() == (6 * x3 * y3).tolist()


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @hessian
        def energy(self, x):
            return np.sum(x**3) * self.scale

        def plain(self, x):
            return x**2 * self.scale

    same(Model(2.0).energy(x3), np.diag(12 * x3))
    m = Model(3.0)
    same(vjp(m.plain, x3)[1](y3)[0], 6 * x3 * y3)
    same(jacobian(m.plain)(x3), np.diag(6 * x3))


def test_out():
    H, J = np.empty((3, 3)), np.empty((3, 3))
    f = hessian(lambda x: np.sum(x**3))
    assert f(x3, out=H) is H
    same(H, np.diag(6 * x3))
    value, gradient, got = value_gradient_and_hessian(lambda x: np.sum(x**3))(x3, out=J)
    assert got is J and value == 36.0
    same(J, np.diag(6 * x3)), same(gradient, 3 * x3**2)
    with pytest.raises(jitad.SignatureError, match=r"out= of .* shape \(3, 3\)"):
        f(x3, out=np.empty(3))


def test_results_are_fresh_and_arguments_stay():
    x = x3.copy()
    f = jacobian(lambda x: x**2)
    a = f(x)
    a[:] = 0
    same(f(x), np.diag(2 * x3)), same(x, x3)


def test_derivatives_of_transformed_functions():
    same(jacobian(jit_grad(lambda x: np.sum(x**3)))(x3), np.diag(6 * x3))
    g = jit_grad(lambda x: np.sum(x**4))
    same(vjp(g, x3)[1](y3)[0], 12 * x3**2 * y3)
    same(jvp(g, (x3,), (y3,))[1], 12 * x3**2 * y3)
    with compiling(0):
        vjp(g, 2 * x3)[1](y3)


def test_products_take_the_options_of_the_function():
    f = jitad.jit(lambda x: x**3, on_mismatch="error")
    same(vjp(f, x3)[1](x3)[0], 3 * x3**3)
    same(jvp(f, (x3,), (x3,))[1], 3 * x3**3)
    for product in (lambda x: vjp(f, x)[1](x), lambda x: jvp(f, (x,), (x,)), lambda x: jitad.linearize(f, x)[1](x)):
        product(x3)
        with pytest.raises(jitad.TapeMismatchError, match="argument `x`"):
            product(np.ones(2))
