"""Derivatives by complex arguments and of complex results, outside and inside of recorded code, at any depth.

What is like the argument is ``d/dRe + 1j d/dIm``; in Jacobians and Hessians both stand along a further last dimension.
"""
from __future__ import annotations

import re

import numpy as np
import pytest

import jitad
from jitad import grad, hessian, hvp, jacobian, jit, jvp, linearize, value_and_grad, vjp
from tests.helpers.cases.complex import interpreted, same

z3, c3 = np.array([1 + 2j, -0.5 + 1j, 0.3 - 0.7j]), np.array([0.4 - 1j, 2.0 + 0.1j, -0.6 + 0.8j])
x3 = np.array([0.5, -1.2, 0.8])


def entire(z):
    return z * z * np.exp(0.3 * z) + z[0]


def slope(z):
    """The derivative of `entire`."""
    return np.diag((2 * z + 0.3 * z * z) * np.exp(0.3 * z)) + np.eye(3)[0]


def mixed(z):
    return np.conj(z) * z[::-1] + np.abs(z) ** 2


def mixed_parts(z):
    """The Jacobian of `mixed` by real and by imaginary parts."""
    flip = np.eye(3)[::-1]
    by_conj, by_z = np.diag(z[::-1]) + np.diag(z), np.conj(z)[:, None] * flip + np.diag(np.conj(z))
    return np.stack([by_z + by_conj, 1j * (by_z - by_conj)], axis=-1)


def energy(z):
    return np.sum(np.abs(z) ** 4) + np.real(z[0] * z[1])


def steepest(z):
    return 4 * np.abs(z) ** 2 * z + np.conj(np.array([z[1], z[0], 0]))


def curved(z):
    """The Hessian of `energy` by parts."""
    found, cross = np.zeros((3, 2, 3, 2)), np.diag([1.0, -1.0])
    for i, w in enumerate(z):
        u = np.array([w.real, w.imag])
        found[i, :, i] = 4 * (u @ u) * np.eye(2) + 8 * np.outer(u, u)
    found[0, :, 1] += cross
    found[1, :, 0] += cross
    return found


def by_parts(derivative):
    return np.stack([derivative, 1j * derivative], axis=-1)


CASES = {
    "vjp": (lambda z: vjp(entire, z)[1](c3)[0], lambda z: np.conj(slope(z)).T @ c3),
    "vjp of a mixed one": (lambda z: vjp(mixed, z)[1](c3)[0], lambda z: np.einsum(
        "ijp,i->jp", mixed_parts(z), np.conj(c3)).real @ np.array([1, 1j])),
    "vjp, real seed": (lambda z: vjp(entire, z)[1](x3)[0], lambda z: np.conj(slope(z)).T @ x3),
    "vjp of reals": (lambda z: vjp(lambda x: np.exp(1j * x), z.real)[1](c3)[0],
                     lambda z: np.real(np.conj(1j * np.exp(1j * z.real)) * c3)),
    "vjp of a dict": (lambda z: vjp(lambda t: {"a": t["z"] * t["s"]}, {"z": z, "s": 2j})[1]({"a": c3})[0]["s"],
                      lambda z: np.conj(z) @ c3),
    "jvp": (lambda z: jvp(entire, (z,), (c3,))[1], lambda z: slope(z) @ c3),
    "jvp, real tangent": (lambda z: jvp(entire, (z,), (x3,)), lambda z: (entire(z), slope(z) @ x3)),
    "linearize": (lambda z: linearize(mixed, z)[1](c3), lambda z: mixed_parts(z) @ np.array([1, 0]) @ c3.real
                  + mixed_parts(z) @ np.array([0, 1]) @ c3.imag),
    "grad": (lambda z: grad(energy)(z), steepest),
    "grad by a number": (lambda z: grad(lambda w: (w * w).imag)(z[0]), lambda z: np.conj(2 * z[0]) * 1j),
    "value_and_grad": (lambda z: value_and_grad(energy)(z), lambda z: (energy(z), steepest(z))),
    "hvp": (lambda z: hvp(energy)(z, c3), lambda z: curved(z).reshape(3, 2, 6) @ np.stack(
        [c3.real, c3.imag], -1).ravel() @ np.array([1, 1j])),
    "jacobian": (lambda z: jacobian(entire)(z), lambda z: by_parts(slope(z))),
    "jacobian of a mixed one": (lambda z: jacobian(mixed)(z), mixed_parts),
    "jacobian, reverse": (lambda z: jacobian(mixed, mode="reverse")(z), mixed_parts),
    "jacobian of fewer": (lambda z: jacobian(lambda z: mixed(z)[:1] + z[2])(z),
                          lambda z: mixed_parts(z)[:1] + by_parts(np.eye(3)[2:])),
    "jacobian of one number": (lambda z: jacobian(lambda w: w * w)(z[0]), lambda z: by_parts(2 * z[0])),
    "jacobian by reals": (lambda z: jacobian(lambda x: np.exp(1j * x))(z.real),
                          lambda z: np.diag(1j * np.exp(1j * z.real))),
    "jacobian of reals": (lambda z: jacobian(lambda z: np.abs(z) ** 2)(z), lambda z: np.stack(
        [np.diag(2 * z.real), np.diag(2 * z.imag)], -1)),
    "hessian": (lambda z: hessian(energy)(z), curved),
    "jacobian of a gradient": (lambda z: jacobian(grad(energy))(z), lambda z: np.einsum(
        "ipjq,p->ijq", curved(z), np.array([1, 1j]))),
    "jacobian of a jacobian": (lambda z: jacobian(jacobian(energy))(z), curved),
    "gradient of a gradient": (
        lambda z: grad(lambda z: np.sum(np.abs(grad(energy)(z)) ** 2))(z), lambda z: 2 * np.einsum(
            "ipjq,ip->jq", curved(z), np.stack([steepest(z).real, steepest(z).imag], -1)) @ np.array([1, 1j])),
    "gradient through a pullback": (lambda z: grad(lambda w: np.sum(np.abs(vjp(entire, z)[1](w)[0]) ** 2))(c3),
                                    lambda z: 2 * slope(z) @ np.conj(slope(z)).T @ c3),
    "derivative of a number": (lambda z: jitad.derivative(lambda t: np.exp(1j * t) * c3)(z[0].real),
                               lambda z: 1j * np.exp(1j * z[0].real) * c3),
    "operators without a function between": (lambda z: jacobian(grad(jit(energy)))(z)[..., 0], lambda z: np.einsum(
        "ipj,p->ij", curved(z)[..., 0], np.array([1, 1j]))),
    "jvp of jvp": (lambda z: jvp(lambda z: jvp(entire, (z,), (c3,))[1], (z,), (c3,))[1], lambda z: (
        (2 + 1.2 * z + 0.09 * z * z) * np.exp(0.3 * z)) * c3 ** 2),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_have_one_convention_inside_and_outside(name):
    operator, expected = CASES[name]
    same(interpreted(jit(operator), z3), expected(z3), 1e-12, 1e-12)


def test_outermost_operators_and_kernels_agree_with_those_inside():
    names = list(CASES)
    for name, got in zip(names, jit(lambda z: [CASES[n][0](z) for n in names])(z3), strict=True):
        same(got, CASES[name][1](z3), 1e-12, 1e-12)
    for name in ("vjp, real seed", "jvp", "jacobian of a mixed one", "jacobian by reals", "hessian",
                 "jacobian of a gradient"):
        same(CASES[name][0](z3), CASES[name][1](z3), 1e-12, 1e-12)


def test_single_precision_stays():
    z = z3.astype(np.complex64)
    for operator in (lambda z: jacobian(entire)(z), lambda z: vjp(entire, z)[1](z)[0], lambda z: grad(energy)(z)):
        assert interpreted(jit(operator), z).dtype == np.complex64
    assert interpreted(hessian(energy), z).dtype == np.float32


@pytest.mark.parametrize(("operator", "words"), [
    (lambda: vjp(lambda z: np.abs(z), z3)[1](c3), "has dtype complex128, not float64"),
    (lambda: jit(lambda z: vjp(lambda z: np.abs(z), z)[1](c3)[0])(z3), "has dtype complex128, not float64"),
    (lambda: jvp(entire, (z3,), (c3[:2],)), "has shape (2,), not (3,)"),
    (lambda: grad(entire)(z3), "returned a complex value"), (lambda: jit(grad(entire))(z3), "returned a complex value"),
    (lambda: jitad.derivative(lambda w: w * w)(1j), "use jacobian, which has d/dRe and d/dIm"),
    (lambda: jacobian(entire, sparse=True)(z3), "leave out sparse=True"),
])
def test_what_has_no_meaning_is_refused(operator, words):
    with pytest.raises((jitad.ArgumentTypeError, jitad.OutputError), match=re.escape(words)):
        operator()
