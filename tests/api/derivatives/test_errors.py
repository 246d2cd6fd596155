"""What derivatives refuse, and how they say it."""
from __future__ import annotations

import numpy as np
import pytest

import jitad
from jitad import cache, derivative, hessian, hvp, jacobian, jit_grad, jvp, linearize, vjp
from tests.helpers.public import fresh, x3, y3

__all__ = ["fresh"]


def refused(error, call, *args, **kwargs):
    """The text of the error; nothing has come into the cache."""
    before = cache.info().currsize
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert cache.info().currsize == before
    text = str(caught.value)
    assert "test_errors.py" in text
    return text


def f(x):
    return {"u": x**2, "v": np.sum(x)}


def energy(x):
    return np.sum(x**2)


# --- seeds -----------------------------------------------------------------------------------------------

SEEDS = [
    (x3, "`ct` for `f` has another structure than the result: * instead of {'u': *, 'v': *}"),
    ({"u": x3}, "another structure"),
    ({"u": np.ones(2), "v": 1.0}, "`ct` for result['u'] of `f` has shape (2,), not (3,)"),
    ({"u": np.ones((1, 3)), "v": 1.0}, "shape (1, 3), not (3,)"),
    ({"u": 1.0, "v": 1.0}, "shape (), not (3,)"),
    ({"u": x3.astype("f4"), "v": 1.0}, "`ct` for result['u'] of `f` has dtype float32, not float64"),
    ({"u": x3, "v": None}, "`ct` for `f` has None at `ct['v']`"),
    ({"u": x3, "v": "one"}, "a string at `ct['v']`"),
    ({"u": x3 > 0, "v": 1.0}, "boolean at `ct['u']`"),
]


@pytest.mark.parametrize(("seed", "what"), SEEDS, ids=range(len(SEEDS)))
def test_cotangents_of_another_kind(seed, what):
    _, pullback = vjp(f, x3)
    assert what in refused(jitad.ArgumentTypeError, pullback, seed)


def test_tangents_and_vectors_of_another_kind():
    assert "`tangents` for x of `f` has shape (2,), not (3,)" in refused(
        jitad.ArgumentTypeError, jvp, f, (x3,), (np.ones(2),))
    assert "`tangents` for `f` has another structure than the argument: ([*],)" in refused(
        jitad.ArgumentTypeError, jvp, f, (x3,), ([x3],))
    assert "`v` for x of `energy` has dtype float32" in refused(
        jitad.ArgumentTypeError, hvp(energy), x3, x3.astype("f4"))
    assert "`v` for `energy` has another structure than the argument: (*, *) instead of *" in refused(
        jitad.ArgumentTypeError, hvp(energy), x3, (x3, x3))
    with pytest.raises(TypeError, match="needs `v` as its last positional argument"):
        hvp(energy)(x=x3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        hvp(energy)(x3)


def test_seeds_inside_a_recording():
    def outer(x):
        return vjp(energy, x)[1](np.ones(2))[0].sum()

    def flag(x):
        return vjp(energy, x)[1](True)[0].sum()

    assert "`ct` for result of `energy` has shape (2,), not ()" in refused(jitad.ArgumentTypeError, jit_grad(outer), x3)
    assert "`ct` for `energy` has a boolean" in refused(jitad.ArgumentTypeError, jit_grad(flag), x3)


def test_how_products_are_called():
    _, pushforward = linearize(lambda x, k, y: x * y, x3, 1, y3)
    assert "takes 3 tangents" in refused(jitad.ArgumentTypeError, pushforward, x3)
    assert "argument 1 is not made of floats" in refused(jitad.ArgumentTypeError, pushforward, x3, 1.0, y3)
    assert "2 primals but 1 tangents" in refused(jitad.ArgumentTypeError, jvp, f, (x3, x3), (x3,))
    assert "no tangent is given" in refused(jitad.ArgumentTypeError, jvp, f, (x3,), (None,))
    assert "must be tuples, one entry for each argument, not ndarray and ndarray" in refused(
        jitad.ArgumentTypeError, jvp, f, x3, x3)
    assert "none of the arguments of `f` is made of floats" in refused(jitad.ArgumentTypeError, vjp, f, 3)
    assert "argnums must be an int or a tuple of different ints" in refused(
        jitad.ArgumentTypeError, vjp, f, x3, argnums="x")
    assert "a function is needed, not a int" in refused(jitad.ArgumentTypeError, vjp, 3, x3)


# --- results ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("transform", "word"), [(jacobian, "Jacobian"), (derivative, "derivative")])
def test_results_without_derivative(transform, word):
    argument = x3 if transform is jacobian else 2.0
    text = refused(jitad.OutputError, transform(lambda x: {"a": x, "n": x > 1}), argument)
    assert "boolean (result['n'], b1" in text and f"a {word} needs floats" in text and "astype(float)" in text
    assert "integers (result, i8" in refused(jitad.OutputError, transform(lambda x: np.zeros(3, int)), argument)


@pytest.mark.parametrize("transform", [derivative, jitad.second_derivative, jitad.value_and_derivative,
                                       jitad.value_derivative_and_second_derivative])
def test_derivatives_by_one_number_of_other_numbers(transform):
    text = refused(jitad.OutputError, transform(lambda t: np.array([1, 2])), 2.0)
    assert "returned integers (result, i8[2])" in text and "a derivative needs floats" in text
    assert "a derivative of `test_" in refused(jitad.OutputError, transform(lambda t: t * t), 2j)


def test_products_of_integers():
    assert "a pullback needs floats" in refused(jitad.OutputError, vjp(lambda x: x > 1, x3)[1], x3)
    assert "a tangent needs floats" in refused(jitad.OutputError, jvp, lambda x: x > 1, (x3,), (x3,))


@pytest.mark.parametrize("transform", [hessian, jitad.value_gradient_and_hessian])
def test_hessians_need_a_scalar(transform):
    assert "returned an array of shape (3,)" in refused(jitad.OutputError, transform(lambda x: x * 2), x3)
    text = refused(jitad.OutputError, transform(lambda x: (x[0], x[1])), x3)
    assert "2 values in a container" in text and "a Hessian needs one real scalar" in text
    assert "a boolean" in refused(jitad.OutputError, transform(lambda x: x[0] > 0), x3)


def test_a_derivative_is_by_one_number():
    text = refused(jitad.ArgumentTypeError, derivative(lambda x: x * 2), x3)
    assert "with respect to one number" in text and "`x`: f8[3]" in text and "jacobian" in text
    assert "with respect to one number" in refused(jitad.ArgumentTypeError, derivative(lambda p: p["a"] * p["b"]),
                                                   {"a": 1.0, "b": 2.0})
    assert "argnums must be an int, not (0, 1)" in refused(jitad.ArgumentTypeError, derivative, f, argnums=(0, 1))


# --- options and arguments -----------------------------------------------------------------------------------

def test_options():
    assert 'mode must be "auto", "forward" or "reverse", not \'backward\'' in refused(
        jitad.ArgumentTypeError, jacobian, f, mode="backward")
    assert "mode must be" in refused(jitad.ArgumentTypeError, jitad.value_and_jacobian, f, mode=None)
    assert "argnums must be" in refused(jitad.ArgumentTypeError, hessian, f, argnums=(0, 0))
    assert "on_mismatch must be" in refused(jitad.ArgumentTypeError, hvp, f, on_mismatch="quiet")
    assert "a function is needed" in refused(jitad.ArgumentTypeError, hessian, 3)


def test_the_machine_serves_what_kernels_serve():
    chains = np.stack([x3, x3 + 1])
    for f, x in ((jacobian(energy), x3), (hessian(energy), x3), (jitad.batch(jit_grad(energy)), chains)):
        served = f.compile(x, tier="machine")
        assert served.tier == "machine"
        np.testing.assert_allclose(served(x + 0.25), f(x + 0.25), rtol=1e-12)


def test_arguments_that_cannot_be_differentiated():
    assert "boolean" in refused(jitad.ArgumentTypeError, jacobian(f), x3 > 1)
    assert "a string and cannot be differentiated" in refused(jitad.ArgumentTypeError, hessian(energy), "x")
    assert "with respect to argument 1, but was called with 1 positional argument" in refused(
        jitad.ArgumentTypeError, hvp(energy, argnums=1), x3, x3)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_loops_whose_end_depends_on_values(mode):
    def halved(x):
        return jitad.while_loop(lambda v: v[0] > 1, lambda v: v / 2, x)

    np.testing.assert_array_equal(jacobian(halved, mode=mode)(x3 * 4), 0.25 * np.eye(3))


# --- a C function, lazy operators ------------------------------------------------------------------------------

def test_a_product_has_no_c_function():
    with pytest.raises(jitad.SignatureError, match="`energy` was compiled for hvp"):
        hvp(energy).compile(x3, x3).cfunc                 # noqa: B018
    assert hessian(energy).compile(x3).cfunc.address      # that of value and gradient


def test_lazy_operators_where_they_cannot_be():
    assert "`f` gives a linear operator, of which there is no batch" in refused(
        jitad.ArgumentTypeError, jitad.batch, jacobian(f, lazy=True))
    J = jacobian(f, lazy=True)
    assert "a lazy Jacobian of `f` cannot be made while a function is recorded" in refused(
        jitad.UnsupportedOperationError, jit_grad(lambda x: np.sum(J(x) @ x)), x3)
    H = hessian(lambda x, *, k: np.sum(x) * k, lazy=True)
    assert "takes no keyword-only arguments" in refused(jitad.ArgumentTypeError, H, x3, k=2.0)
    assert "the vector is complex" in refused(jitad.ArgumentTypeError, hessian(energy, lazy=True)(x3).matvec, 1j * x3)
