"""Derivatives of derivatives, and derivatives that recorded code asks for."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad import (
    derivative,
    grad,
    hessian,
    hvp,
    jacobian,
    jit,
    jit_grad,
    jvp,
    linearize,
    second_derivative,
    value_gradient_and_hessian,
    vjp,
)
from jitad.call.build.specialize import build
from tests.helpers.public import compiling, fresh, same, x3, y3

__all__ = ["fresh"]


def interpreted(g, *args):
    """What a transformed function gives, by the interpreter: recorded anew, not compiled."""
    arguments = g.subject.arguments(args, {})
    entry = build(g.subject.target, g.subject.request, arguments)
    return entry.interpret([*arguments.inputs, *(entry.captured(g.subject.target) or ())])


def quartic(x):
    return np.sum(x**4) / 24


# --- higher orders ---------------------------------------------------------------------------------------

def test_derivatives_of_one_number_to_the_sixth_order():
    f = lambda t: np.exp(2 * t) * t                       # f(n) = 2^n t e^2t + n 2^(n-1) e^2t
    for n in range(1, 7):
        f = derivative(f)
        expected = float((2**n * 0.3 + n * 2 ** (n - 1)) * np.exp(0.6))
        assert interpreted(f, 0.3) == pytest.approx(expected, rel=1e-13)
    g = grad(grad(grad(lambda t: np.sin(t))))
    same(g(0.7), float(-np.cos(0.7)))


def test_a_hessian_of_a_hessian():
    fourth = interpreted(hessian(lambda x: np.sum(hessian(quartic)(x) * np.outer(y3, y3))), x3)
    same(fourth, np.diag(y3**2), rtol=1e-14)
    fourth = interpreted(jacobian(jacobian(hessian(quartic))), x3)
    expected = np.zeros((3,) * 4)
    expected[np.arange(3), np.arange(3), np.arange(3), np.arange(3)] = 1
    same(fourth, expected, rtol=1e-14)


@pytest.mark.parametrize("modes", [(a, b, c) for a in ("forward", "reverse") for b in ("forward", "reverse")
                                   for c in ("forward", "reverse")])
def test_third_derivatives_in_every_mixture_of_modes(modes):
    def f(x):
        return x[0] ** 2 * x[1] * np.exp(x[2])

    for mode in modes:
        f = jacobian(f, mode=mode)
    third = interpreted(f, x3)
    e = np.exp(3.0)
    assert third[0, 0, 1] == third[1, 0, 0] == pytest.approx(2 * e)
    assert third[0, 1, 2] == pytest.approx(2 * e) and third[2, 2, 2] == pytest.approx(2 * e)
    assert third[1, 1, 0] == 0 and third[0, 0, 0] == 0
    np.testing.assert_allclose(third, np.transpose(third, (2, 0, 1)), rtol=1e-13)


def test_mixed_derivatives():
    def f(x, y):
        return np.sum(np.sin(x) * y**2)

    mixed = jacobian(jit_grad(f, argnums=0), argnums=1)
    same(mixed(x3, y3), np.diag(2 * np.cos(x3) * y3), rtol=1e-14)
    third = interpreted(jacobian(jacobian(jit_grad(f, argnums=0), argnums=1), argnums=1), x3, y3)
    same(third[1, 1, 1], 2 * np.cos(2.0))
    same(interpreted(hvp(lambda x, y: np.sum(jit_grad(f)(x, y) * y), argnums=1), x3, y3, x3), 6 * np.cos(x3) * y3 * x3,
         rtol=1e-14)


def test_jvp_of_vjp_and_vjp_of_jvp():
    def back(x):
        return vjp(lambda x: np.sin(x) * x, x)[1](y3)[0]

    def forth(x):
        return jvp(lambda x: np.sin(x) * x, (x,), (y3,))[1]

    second = y3 * (2 * np.cos(x3) - x3 * np.sin(x3))
    same(jvp(back, (x3,), (x3,))[1], second * x3, rtol=1e-14)
    same(vjp(forth, x3)[1](x3)[0], second * x3, rtol=1e-14)


# --- in recorded code ---------------------------------------------------------------------------------------

hess = hessian(quartic)


def test_captured_derivatives():
    """Decorated functions that recorded code reads from its globals and cells."""
    product, slopes = hvp(quartic), value_gradient_and_hessian(quartic)

    @jit
    def f(x):
        value, gradient, H = slopes(x)
        return value + gradient @ H @ product(x, hess(x) @ x)

    same(f(x3), float(np.sum(x3**4) / 24 + (x3**3 / 6) @ (x3**2 / 2 * x3**2 / 2 * x3**2 / 2 * x3)), rtol=1e-14)


def test_products_in_recorded_code():
    def inner(x, p):
        return {"u": x * p["s"], "v": np.sum(x**2)}

    @jit
    def f(x, s):
        value, pullback = vjp(inner, x, {"s": s})
        dx, dp = pullback({"u": x, "v": 2.0})
        again = pullback({"u": np.ones(3), "v": np.zeros(())})[1]["s"]
        _, pushforward = linearize(inner, x, {"s": s})
        tangent = pushforward(dx, {"s": 0.0})
        return value["v"], dx, dp["s"], again, tangent["u"], pushforward(x, {"s": s})["v"]

    v, dx, ds, again, du, dv = f(x3, 2.0)
    same(v, 14.0), same(dx, 2 * x3 + 4 * x3), same(ds, 14.0), same(again, 6.0), same(du, 12 * x3), same(dv, 28.0)


def test_a_seed_from_a_captured_tree():
    ct = {"u": y3, "v": 1.0}

    @jit
    def f(x):
        return vjp(lambda x: {"u": 2 * x, "v": np.sum(x)}, x)[1](ct)[0]

    same(f(x3), 2 * y3 + 1)
    ct["u"] = x3                                          # a capture: seen by the next call
    same(f(x3), 2 * x3 + 1)


def test_what_is_around_an_inner_derivative_is_constant_there():
    @jit_grad
    def f(x):
        return np.sum(jacobian(lambda z: z * x)(x) * np.outer(x, x))      # d(z x)/dz at z = x is diag(x)

    same(f(x3), 3 * x3**2)
    g = jit(lambda t: derivative(lambda s: s * t)(t) + second_derivative(lambda s: s**2 * t)(t))
    same(g(2.0), 6.0)


def test_newton_steps_inside_a_compiled_loop():
    @jit
    def minimise(x):
        def step(i, x):
            return x - np.linalg.solve(hessian(lambda z: np.sum(np.exp(z) - z * y3))(x), grad(
                lambda z: np.sum(np.exp(z) - z * y3))(x))
        return jitad.fori_loop(0, 8, step, x)

    same(minimise(np.ones(3)), np.log(y3), rtol=1e-12)


def test_transformed_functions_of_transformed_functions():
    energy = jit_grad(lambda x, a: np.sum(x**3) * a)
    H = jacobian(energy)
    same(H(x3, 2.0), np.diag(12 * x3))
    with compiling(0):
        same(H(2 * x3, 2.0), np.diag(24 * x3))
    same(jit(lambda x: vjp(energy, x, 2.0)[1](y3)[0])(x3), 12 * x3 * y3)
    same(jit(lambda x: jvp(energy, (x, 2.0), (y3, None))[1])(x3), 12 * x3 * y3)


def test_functions_out_of_containers():
    functions = [lambda x: x**2]
    same(jit(lambda x: vjp(functions[0], x)[1](y3)[0])(x3), 2 * x3 * y3)
    same(jit(lambda x: jvp(np.sin, (x,), (y3,))[1])(x3), np.cos(x3) * y3)
